"""DESCRIBE TABLE, SHOW COLUMNS and SHOW TBLPROPERTIES."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.engine.local_frames import local_frame
from sparkdelta.io import load_snapshot
from sparkdelta.protocol.property_rules import FEATURE, MIN_READER_VERSION, MIN_WRITER_VERSION
from sparkdelta.protocol.protocol_upgrades import CURRENT_DEFAULT
from sparkdelta.sql.queries import SparkSql
from sparkdelta.sql.statements import DescribeTable, ShowColumns, ShowProperties
from sparkdelta.table.log.table_names import SESSION_CATALOG, path_in_name, quoted_name
from sparkdelta.table.snapshot import Snapshot


def described_table(sql: SparkSql, path: str, statement: DescribeTable) -> DataFrame:
    """DESCRIBE TABLE."""
    snapshot = load_snapshot(sql.spark, path)
    by_name = {field.name: field for field in snapshot.schema.fields}
    partitions = [by_name[name] for name in snapshot.metadata.partition_columns]
    rows: list[tuple[str, str, str | None]] = [*map(_column, snapshot.schema.fields)]
    if partitions:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += map(_column, partitions)
    if statement.is_extended:
        rows += _details(sql, snapshot, statement.target)
    return text_rows(sql.spark, ("col_name", "data_type", "comment"), rows)


def _details(
    sql: SparkSql, snapshot: Snapshot, name: Sequence[str]
) -> Iterator[tuple[str, str, str | None]]:
    """Yield the rows of DESCRIBE EXTENDED after those of the columns."""
    yield from (("", "", ""), ("# Detailed Table Information", "", ""))
    if path_in_name(name) is None:
        database = name[-2] if len(name) > 1 else sql.spark.catalog.currentDatabase()
        yield from (("Catalog", SESSION_CATALOG, ""), ("Database", database, ""))
        yield "Table", name[-1], ""
    if snapshot.metadata.description is not None:
        yield "Comment", snapshot.metadata.description, ""
    yield from (("Location", snapshot.path, ""), ("Provider", "delta", ""))
    properties = ",".join(
        f"{key}={value}" for key, value in sorted(_all_properties(snapshot).items())
    )
    yield "Table Properties", f"[{properties}]", ""
    defaults = [f for f in snapshot.schema.fields if CURRENT_DEFAULT in (f.metadata or {})]
    if defaults:
        yield from (("", "", ""), ("# Column Default Values", "", ""))
    for field in defaults:
        yield field.name, field.dataType.simpleString(), field.metadata[CURRENT_DEFAULT]


def _column(field: StructField) -> tuple[str, str, str | None]:
    comment = (field.metadata or {}).get("comment")
    return field.name, field.dataType.simpleString(), comment


def shown_columns(sql: SparkSql, path: str, statement: ShowColumns) -> DataFrame:  # noqa: ARG001
    """SHOW COLUMNS."""
    names = load_snapshot(sql.spark, path).schema.names
    return text_rows(sql.spark, ("col_name",), [(name,) for name in names])


def shown_properties(sql: SparkSql, path: str, statement: ShowProperties) -> DataFrame:
    """SHOW TBLPROPERTIES."""
    found, key = _all_properties(load_snapshot(sql.spark, path)), statement.key
    if key is not None:
        missing = f"Table {quoted_name(statement.target)} does not have property: {key}"
        found = {key: found.get(key, missing)}
    return text_rows(sql.spark, ("key", "value"), sorted(found.items()))


def _all_properties(snapshot: Snapshot) -> dict[str, str]:
    """Return the properties of a table, and those that stand for its protocol."""
    protocol = snapshot.protocol
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return {
        **snapshot.properties,
        **{f"{FEATURE}{name}": "supported" for name in features},
        MIN_READER_VERSION: str(protocol.min_reader_version),
        MIN_WRITER_VERSION: str(protocol.min_writer_version),
    }


def text_rows(
    spark: SparkSession, names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> DataFrame:
    """Return a local DataFrame of strings."""
    columns = {
        name: pa.array([row[number] for row in rows], pa.string())
        for number, name in enumerate(names)
    }
    schema = StructType([StructField(name, StringType()) for name in names])
    return local_frame(spark, pa.table(columns), schema)
