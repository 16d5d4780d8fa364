"""How rows are to be written, as the caller said it.

References
----------
PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column

from sparkdelta.exceptions import InvalidArgumentError, InvalidIdempotentWriteError

MODES = {"append": "Append", "overwrite": "Overwrite", "error": "ErrorIfExists", "ignore": "Ignore"}
"""The modes of a write, and how history names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How rows are written; see `sparkdelta.write_delta`."""

    mode: str = "error"
    partition_by: Sequence[str] | None = None
    replace_where: str | Column | None = None
    merge_schema: bool = False
    txn_app_id: str | None = None
    txn_version: int | None = None
    user_metadata: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    max_records_per_file: int | None = None
    compression: str = "snappy"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            problem = f"{self.mode!r} is none of {', '.join(MODES)}"
            raise InvalidArgumentError(argument="mode", problem=problem)
        if self.replace_where is not None and self.mode != "overwrite":
            problem = "it replaces rows, so the mode must be overwrite"
            raise InvalidArgumentError(argument="replace_where", problem=problem)
        if (self.txn_app_id is None) != (self.txn_version is None):
            raise InvalidIdempotentWriteError(problem="one of the two is missing")
