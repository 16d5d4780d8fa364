"""The options of a write.

References
----------
PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column

from sparkdelta.base.protocol.arguments import (
    checked_choice,
    checked_count,
    checked_flag,
    checked_names,
    checked_text,
    checked_version,
)
from sparkdelta.base.spark.library_sessions import UTC
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

MODES = {"append": "Append", "overwrite": "Overwrite", "error": "ErrorIfExists", "ignore": "Ignore"}
"""The modes of a write, and how history names them."""

OUTPUT_MODES = {"append": "append", "complete": "overwrite"}
"""The output modes of a stream, and the modes in which its batches are written."""

_SPELLINGS = {"errorifexists": "error", "default": "error"}
PARTITION_OVERWRITE_MODES = ("static", "dynamic")
COMPRESSIONS = (
    "none", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd",
)  # fmt: skip
"""The codecs of Spark's Parquet writer; some need a library of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of a write, by `sparkdelta.write_delta` or delta-spark's interfaces.

    Attributes
    ----------
    output_mode
        The output mode, one of `OUTPUT_MODES`, if the rows are a batch of a stream; then the
        application is the query, and the transaction the batch.
    comment
        The description of a new table.
    defines_table
        True if history shows a table that the rows create or replace, not a write.
    replaces_table
        With `overwrite`: True if the rows and these options define the table anew.
    converts
        True if values are converted to the types of the columns as by SQL, streams and writes into
        tables by name: by the store assignment policy. Else digits must not be lost.
    is_managed
        With `defines_table`: True if history shows that the session catalog manages the table.
    time_zone
        The time zone in which values are converted to the types of their columns.
    """

    mode: str = "error"
    partition_by: Sequence[str] | None = None
    cluster_by: Sequence[str] | None = None
    replace_where: str | Column | None = None
    partition_overwrite_mode: str = "static"
    merge_schema: bool = False
    overwrite_schema: bool = False
    txn_app_id: str | None = None
    txn_version: int | None = None
    user_metadata: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    data_change: bool = True
    max_records_per_file: int | None = None
    target_file_size: int | None = None
    compression: str | None = None
    output_mode: str | None = None
    comment: str | None = None
    defines_table: bool = False
    replaces_table: bool = False
    requires_table: bool = False
    is_managed: bool = False
    time_zone: str = UTC
    converts: bool = False

    def __post_init__(self) -> None:
        self._check_types()
        checked_choice(self.mode, "mode", tuple(MODES))
        if self.replace_where is not None and self.mode != "overwrite":
            problem = "it requires mode overwrite"
            raise InvalidArgumentError(argument="replace_where", problem=problem)
        if self.replace_where is not None and self.replaces_table:
            problem = "a table is replaced with all of its rows"
            raise InvalidArgumentError(argument="replace_where", problem=problem)
        checked_choice(
            self.partition_overwrite_mode, "partition_overwrite_mode", PARTITION_OVERWRITE_MODES
        )
        if self.is_dynamic and self.replace_where is not None:
            raise DeltaError.of("DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE")
        if self.is_dynamic and self.mode != "overwrite":
            problem = "dynamic requires mode overwrite"
            raise InvalidArgumentError(argument="partition_overwrite_mode", problem=problem)
        if self.compression is not None:
            checked_choice(self.compression, "compression", COMPRESSIONS)
        if self.overwrite_schema and self.is_dynamic:
            raise DeltaError.of("DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE")
        if self.overwrite_schema and (self.mode != "overwrite" or self.replace_where is not None):
            problem = "it requires mode overwrite without replace_where"
            raise InvalidArgumentError(argument="overwrite_schema", problem=problem)
        if (self.txn_app_id is None) != (self.txn_version is None):
            reason = (
                "Both txnVersion and txnAppId must be specified for idempotent data frame writes"
            )
            raise DeltaError.of(
                "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", problem="only one of them is given"
            ).named("DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", reason=reason)

    def _check_types(self) -> None:
        for argument in ("merge_schema", "overwrite_schema", "data_change"):
            checked_flag(getattr(self, argument), argument)
        for argument in ("mode", "partition_overwrite_mode", "compression", "txn_app_id",
                         "user_metadata"):  # fmt: skip
            checked_text(getattr(self, argument), argument)
        for argument in ("max_records_per_file", "target_file_size"):
            checked_count(getattr(self, argument), argument)
        checked_version(self.txn_version, "txn_version")
        checked_names(self.partition_by, "partition_by")
        checked_names(self.cluster_by, "cluster_by")
        for key, value in self.properties.items():
            checked_text(value, f"properties[{key!r}]")

    @classmethod
    def spelled(cls, **options: Any) -> WriteOptions:
        """Create options from words in any case, and modes in all of Spark's spellings."""
        for name in ("mode", "partition_overwrite_mode", "compression"):
            if isinstance(options[name], str):
                word = options[name].lower()
                options[name] = _SPELLINGS.get(word, word) if name == "mode" else word
        return cls(**options)

    @property
    def is_dynamic(self) -> bool:
        """True if the write replaces only the partitions that its rows are in."""
        return self.partition_overwrite_mode == "dynamic"
