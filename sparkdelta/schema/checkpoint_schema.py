"""The Spark types of a checkpoint's rows, as a table's properties want them.

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

from sparkdelta.schema.action_schemas import (
    ADD,
    CHECKPOINT_METADATA,
    DOMAIN_METADATA,
    METADATA,
    PROTOCOL,
    REMOVE,
    SIDECAR,
    TXN,
)
from sparkdelta.schema.statistics_schema import leaves

STATS_PARSED = "stats_parsed"
PARTITION_VALUES_PARSED = "partitionValues_parsed"

_OF_ONE_FILE = ("path", "size", "modificationTime", "stats", "baseRowId")
_SELDOM_REPEATED = (
    LongType,
    FloatType,
    DoubleType,
    DecimalType,
    TimestampType,
    TimestampNTZType,
)


@dataclass(frozen=True, slots=True)
class CheckpointSchema:
    """What a table's checkpoint holds of each file.

    Attributes
    ----------
    statistics
        The type of `stats_parsed`.
    partition_keys
        The physical name and the field of each partition column.
    with_json, with_struct
        In which forms statistics are written.
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
        """The type of `partitionValues_parsed`: physical names."""
        return StructType([StructField(key, f.dataType) for key, f in self.partition_keys])

    @property
    def sidecar_file(self) -> StructType:
        """The columns of a sidecar file."""
        return StructType([StructField("add", self.add), StructField("remove", REMOVE)])

    @property
    def table_actions(self) -> StructType:
        """The columns of a checkpoint's own file that are not file actions, but for V2's."""
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
        """The columns of a classic checkpoint that follows the V1 spec."""
        return StructType([*self.table_actions.fields, *self.sidecar_file.fields])

    @property
    def v2_file(self) -> StructType:
        """The columns of the top-level file of a V2 checkpoint.

        Those of the file actions are there, though empty: delta-spark refuses a file without them.
        """
        return StructType(
            [
                *self.classic_file.fields,
                StructField("checkpointMetadata", CHECKPOINT_METADATA),
                StructField("sidecar", SIDECAR),
            ]
        )

    @property
    def seldom_repeated(self) -> list[str]:
        """The leaves of `add`, dotted as in Parquet, whose values differ from file to file: of them
        a writer makes a dictionary in vain, and in each row group anew.
        """
        bounds = [
            ".".join((kind, *path))
            for kind in ("minValues", "maxValues")
            if self.with_struct and kind in self.statistics.names
            for path, data_type in leaves(self.statistics[kind].dataType)
            if isinstance(data_type, _SELDOM_REPEATED)
        ]
        present = [name for name in _OF_ONE_FILE if name in self.add.names]
        return [f"add.{name}" for name in present] + [f"add.{STATS_PARSED}.{p}" for p in bounds]

    def fingerprint(self, layout: str, columns: Sequence[tuple[str, ...]] = ()) -> str:
        """What sidecars must have in common to be of one checkpoint: types, and their layout.

        Parameters
        ----------
        columns
            Physical names of those columns of the data that the layout follows.
        """
        types = f"{self.partition_values.json()} {self.sidecar_file.json()}"
        text = f"2 {layout} {json.dumps(columns)} {types}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]
