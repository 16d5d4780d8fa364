"""Data files that are written and not committed.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#writer-requirements-for-clustered-table,
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.base.protocol.wide_statistics import num_records
from sparkdelta.base.protocol.z_cubes import CLUSTERING_PROVIDER, ZCube
from sparkdelta.base.schema.sql_text import from_json_text
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_row
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.table.rows.footer_statistics_workers import ADDED, NUM_RECORDS

MAX_NEW_FILES = 10_000
"""Up to this many new files are known to the driver one by one."""


@dataclass(frozen=True, slots=True)
class NewFiles:
    """New data files and their add actions.

    Attributes
    ----------
    values
        Their add actions; None if they are many.
    places
        Their absolute paths, or that of a directory with them, see `orphans.report_orphans`.
    cube
        The Z-cube that they are, if any.
    """

    count: int
    num_rows: int
    size_bytes: int
    described: Callable[[], DataFrame] = field(repr=False)
    values: tuple[AddFile, ...] | None = None
    places: tuple[str, ...] = ()
    cube: ZCube | None = None

    def in_cube(self, cube: ZCube) -> NewFiles:
        """Return the same files as a Z-cube."""
        values = None if self.values is None else tuple(
            replace(add, tags=cube.tags, clustering_provider=CLUSTERING_PROVIDER)
            for add in self.values
        )  # fmt: skip
        return replace(self, values=values, cube=cube)

    def only(self, adds: Sequence[AddFile]) -> NewFiles:
        """Return some of the files with these add actions."""
        rows, size = sum(num_records(add.stats) or 0 for add in adds), sum(add.size for add in adds)
        return replace(self, count=len(adds), num_rows=rows, size_bytes=size, values=tuple(adds))

    @classmethod
    def known(cls, spark: SparkSession, table: pa.Table, places: Sequence[str]) -> NewFiles:
        """Create new files from descriptions on the driver.

        Parameters
        ----------
        table
            The columns of `ADDED`.
        """

        def described() -> DataFrame:
            return local_frame(spark, table, ADDED)

        return cls(
            table.num_rows,
            pc.sum(table[NUM_RECORDS], min_count=0).as_py(),
            pc.sum(table["size"], min_count=0).as_py(),
            described,
            tuple(map(_value, table.to_pylist())),
            tuple(places),
        )

    @classmethod
    def many(cls, described: DataFrame, places: Sequence[str]) -> NewFiles:
        """Create new files from descriptions on executors; only their totals are read."""
        totals = described.agg(
            F.count("*").alias("count"),
            F.sum(NUM_RECORDS).alias("rows"),
            F.sum("size").alias("size"),
        )
        row = read_row(totals, what="totals of the new data files")
        return cls(row["count"], row["rows"], row["size"], lambda: described, places=tuple(places))

    @property
    def adds(self) -> DataFrame:
        """The add actions of the files in a column `add`."""
        fields = [F.col(name) for name in ADDED.names if name != NUM_RECORDS]
        if self.cube is not None:
            tags = (F.lit(text) for pair in self.cube.tags.items() for text in pair)
            fields.append(F.create_map(*tags).alias("tags"))
            fields.append(F.lit(CLUSTERING_PROVIDER).alias("clusteringProvider"))
        return self.described().select(F.struct(*fields).alias("add"))

    def last_value(self, column: str, *, is_highest: bool) -> int | None:
        """Return the highest value of a LONG column, or the lowest; None without rows, or if a file
        has no statistics of it.
        """
        bound = "maxValues" if is_highest else "minValues"
        if self.values is not None:
            known = [json.loads(add.stats or "{}").get(bound, {}) for add in self.values]
            if not all(column in each for each in known):
                return None
            return (max if is_highest else min)((int(e[column]) for e in known), default=None)
        found = StructType([StructField(bound, StructType([StructField(column, LongType())]))])
        value = f"{from_json_text('add.stats', found)}.{bound}.{quoted(column)}"
        values = self.adds.selectExpr(f"{value} AS value")
        last = F.max("value") if is_highest else F.min("value")
        row = read_row(
            values.agg(last, F.count_if(F.isnull("value"))), what="last value of an identity column"
        )
        return None if row[0] is None or row[1] else int(row[0])


def _value(row: Mapping[str, Any]) -> AddFile:
    return AddFile(
        path=row["path"],
        partition_values=dict(row["partitionValues"]),
        size=row["size"],
        modification_time=row["modificationTime"],
        data_change=row["dataChange"],
        stats=row["stats"],
    )
