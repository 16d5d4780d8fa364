"""Spark types of a checkpoint's rows, derived from the table's schema and properties.

References
----------
PROTOCOL.md#checkpoint-schema, PROTOCOL.md#checkpoints-1
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import (
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.schema.action_schemas import (
    ADD,
    CHECKPOINT_METADATA,
    DOMAIN_METADATA,
    METADATA,
    PROTOCOL,
    REMOVE,
    SIDECAR,
    TXN,
)
from sparkdelta.base.schema.statistics_schema import leaves

STATS_PARSED = "stats_parsed"
PARTITION_VALUES_PARSED = "partitionValues_parsed"

_HIGH_CARDINALITY_FIELDS = ("path", "size", "modificationTime", "stats", "baseRowId")
_HIGH_CARDINALITY_TYPES = (
    LongType,
    FloatType,
    DoubleType,
    DecimalType,
    TimestampType,
    TimestampNTZType,
)


@dataclass(frozen=True, slots=True)
class CheckpointSchema:
    """The columns that a table's checkpoint stores for each file.

    Attributes
    ----------
    statistics
        The type of `stats_parsed`.
    partition_keys
        The physical name and the field of each partition column.
    with_json, with_struct
        True if statistics are written as JSON (`stats`) or as a struct (`stats_parsed`).
    """

    statistics: StructType
    partition_keys: tuple[tuple[str, StructField], ...]
    with_json: bool = True
    with_struct: bool = True

    @property
    def add(self) -> StructType:
        """The type of `add`."""
        fields = [field for field in ADD.fields if self.with_json or field.name != "stats"]
        if self.with_struct and self.partition_keys:
            fields.append(StructField(PARTITION_VALUES_PARSED, self.partition_values))
        if self.with_struct:
            fields.append(StructField(STATS_PARSED, self.statistics))
        return StructType(fields)

    @property
    def partition_values(self) -> StructType:
        """The type of `partitionValues_parsed`, with physical names."""
        return StructType([StructField(key, f.dataType) for key, f in self.partition_keys])

    @property
    def sidecar_file(self) -> StructType:
        """The columns of a sidecar file."""
        return StructType([StructField("add", self.add), StructField("remove", REMOVE)])

    @property
    def table_actions(self) -> StructType:
        """The columns of non-file actions, without the ones that only V2 checkpoints have."""
        return StructType(
            [
                StructField("txn", TXN),
                StructField("metaData", METADATA),
                StructField("protocol", PROTOCOL),
                StructField("domainMetadata", DOMAIN_METADATA),
            ]
        )

    @property
    def classic_file(self) -> StructType:
        """The columns of a classic checkpoint file that follows the V1 spec."""
        return StructType([*self.table_actions.fields, *self.sidecar_file.fields])

    @property
    def v2_file(self) -> StructType:
        """The columns of the top-level file of a V2 checkpoint.

        The columns of file actions are included although they are empty: delta-spark rejects a file
        without them.
        """
        return StructType(
            [
                *self.classic_file.fields,
                StructField("checkpointMetadata", CHECKPOINT_METADATA),
                StructField("sidecar", SIDECAR),
            ]
        )

    @property
    def rarely_repeated(self) -> list[str]:
        """The leaf columns of `add`, dotted as in Parquet, of mostly distinct values.

        Dictionary encoding does not pay off for them.
        """
        bounds = [
            ".".join((kind, *path))
            for kind in ("minValues", "maxValues")
            if self.with_struct and kind in self.statistics.names
            for path, data_type in leaves(self.statistics[kind].dataType)
            if isinstance(data_type, _HIGH_CARDINALITY_TYPES)
        ]
        present = [name for name in _HIGH_CARDINALITY_FIELDS if name in self.add.names]
        return [f"add.{name}" for name in present] + [f"add.{STATS_PARSED}.{p}" for p in bounds]

    def fingerprint(self, layout: str, columns: Sequence[tuple[str, ...]] = ()) -> str:
        """Return a hash of the column types and the layout, which a checkpoint's sidecars share.

        `columns` are the physical names of the data columns that the layout depends on.
        """
        types = f"{self.partition_values.json()} {self.sidecar_file.json()}"
        text = f"2 {layout} {json.dumps(columns)} {types}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]
