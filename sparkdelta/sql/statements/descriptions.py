"""DESCRIBE of tables and columns, SHOW COLUMNS, SHOW PARTITIONS and SHOW TBLPROPERTIES."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.api.reading_and_writing import load_snapshot
from sparkdelta.base.protocol.property_rules import FEATURE, MIN_READER_VERSION, MIN_WRITER_VERSION
from sparkdelta.base.protocol.protocol_upgrades import CURRENT_DEFAULT
from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.table_schema import field_named, quoted, quoted_path
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    NonPartitionColumnReferenceError,
    ShownPartitionColumnError,
    ShownPartitionTableError,
)
from sparkdelta.sql.grammar.statement_values import (
    DescribeColumn,
    DescribeTable,
    ShowColumns,
    ShowPartitions,
    ShowProperties,
)
from sparkdelta.sql.statements.inserted_rows import partition_condition
from sparkdelta.sql.statements.queries import SparkSql
from sparkdelta.table.listing.table_names import path_in_name, with_database
from sparkdelta.table.snapshot.snapshot import Snapshot

_HAS_ROWS = "coalesce(stats_parsed.numRecords - coalesce(deletionVector.cardinality, 0), 1) > 0"


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
        database = with_database(sql.spark, name)[-2]
        yield from (("Catalog", SESSION_CATALOG, ""), ("Database", database, ""))
        yield "Table", name[-1], ""
    if snapshot.metadata.description is not None:
        yield "Comment", snapshot.metadata.description, ""
    yield from (("Location", snapshot.path, ""), ("Provider", "delta", ""))
    properties = ",".join(
        f"{key}={value}" for key, value in sorted(all_properties(snapshot).items())
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


def described_column(sql: SparkSql, path: str, statement: DescribeColumn) -> DataFrame:
    """DESCRIBE of a column."""
    snapshot = load_snapshot(sql.spark, path)
    name = ".".join(statement.column)
    field = field_named(snapshot.schema, name)
    if field is None:
        raise ColumnNotFoundError(column=name, available=snapshot.schema.names)
    _, data_type, comment = _column(field)
    rows = [("col_name", field.name), ("data_type", data_type), ("comment", comment or "NULL")]
    return text_rows(sql.spark, ("info_name", "info_value"), rows)


def shown_partitions(sql: SparkSql, path: str, statement: ShowPartitions) -> DataFrame:
    """SHOW PARTITIONS: those with live files, as the log has them.

    Raises
    ------
    ShownPartitionTableError, ShownPartitionColumnError
        The table has no partition columns, or not this one.
    """
    snapshot = load_snapshot(sql.spark, path)
    names = snapshot.metadata.partition_columns
    if not names:
        raise ShownPartitionTableError(path=snapshot.path)
    try:
        where = partition_condition(snapshot, statement.partition, time_zone=sql.time_zone)
    except NonPartitionColumnReferenceError as error:
        raise ShownPartitionColumnError(
            column=error.column, path=snapshot.path, available=names
        ) from None
    files = snapshot.add_files().where(_HAS_ROWS)
    values = [F.col(f"partitionValues_parsed.{quoted(name)}").alias(name) for name in names]
    partitions = files.select(*values).distinct()
    return partitions if where is None else partitions.where(where)


def shown_columns(sql: SparkSql, path: str, statement: ShowColumns) -> DataFrame:  # noqa: ARG001
    """SHOW COLUMNS."""
    names = load_snapshot(sql.spark, path).schema.names
    return text_rows(sql.spark, ("col_name",), [(name,) for name in names])


def shown_properties(sql: SparkSql, path: str, statement: ShowProperties) -> DataFrame:
    """SHOW TBLPROPERTIES."""
    found, key = all_properties(load_snapshot(sql.spark, path)), statement.key
    if key is not None:
        missing = f"Table {_shown_name(sql, statement.target)} does not have property: {key}"
        found = {key: found.get(key, missing)}
    return text_rows(sql.spark, ("key", "value"), sorted(found.items()))


def _shown_name(sql: SparkSql, name: Sequence[str]) -> str:
    """Return the name of a table with catalog and database, or its path."""
    if path_in_name(name) is not None:
        return quoted_path(name)
    database = with_database(sql.spark, name)[-2]
    return f"{SESSION_CATALOG}.{database}.{name[-1]}"


def all_properties(snapshot: Snapshot) -> dict[str, str]:
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
