"""DESCRIBE of tables, columns, history and details; SHOW COLUMNS, PARTITIONS and TBLPROPERTIES."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.base.protocol.protocol_upgrades import CURRENT_DEFAULT
from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.table_schema import field_named, quoted, quoted_path
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import ColumnNotFoundError, DeltaError, NonPartitionColumnReferenceError
from sparkdelta.operations.changes.describe import table_detail
from sparkdelta.sql.grammar.parser import Name, Parser
from sparkdelta.sql.grammar.statement_grammar import (
    STATEMENTS,
    no_partitions,
    no_v2_command,
    not_allowed,
    refused,
    statement,
)
from sparkdelta.sql.grammar.tokens import Kind
from sparkdelta.sql.statements.inserted_rows import partition_condition
from sparkdelta.sql.statements.statement_table import StatementTable
from sparkdelta.table.definition.table_description import all_properties
from sparkdelta.table.listing.table_names import name_in_catalog

_HAS_ROWS = "coalesce(stats_parsed.numRecords - coalesce(deletionVector.cardinality, 0), 1) > 0"


_NO_TABLES = ("CATALOG", "DATABASE", "FUNCTION", "NAMESPACE", "PROCEDURE", "QUERY", "SCHEMA")

refused(no_v2_command, "ANALYZE TABLE", "MSCK REPAIR TABLE")
refused(not_allowed, "SHOW CREATE TABLE")


def _load_data(parser: Parser) -> NoReturn:
    parser.accept("LOCAL")
    parser.expect("INPATH")
    parser.string()
    parser.accept("OVERWRITE")
    parser.expect("INTO TABLE")
    parser.table()
    raise no_v2_command("LOAD DATA")


STATEMENTS["LOAD DATA"] = _load_data


def _index(parser: Parser, statement: str) -> NoReturn:
    parser.accept("IF NOT EXISTS")
    parser.accept("IF EXISTS")
    parser.word()
    parser.expect("ON")
    parser.accept("TABLE")
    parser.table()
    raise no_v2_command(statement)


for _statement in ("CREATE INDEX", "DROP INDEX"):
    STATEMENTS[_statement] = partial(_index, statement=_statement)


@statement("DESCRIBE|DESC HISTORY", line="table [LIMIT limit:number]", only_delta=True)
def _describe_history(table: StatementTable, limit: int | None = None) -> DataFrame:
    return table.delta.history(limit)


@statement("DESCRIBE|DESC DETAIL", only_delta=True)
def _describe_detail(table: StatementTable) -> DataFrame:
    return table_detail(table.spark, table.snapshot, _catalog_name(table))


def _described(parser: Parser) -> dict[str, Any]:
    """Parse ``[TABLE] [EXTENDED] table [column]``."""
    if parser.token.is_word(*_NO_TABLES) and parser.ahead().kind is not Kind.END:
        raise parser.error("a table is expected")  # it is Spark's
    parser.accept("TABLE")
    extended = parser.accept("EXTENDED|FORMATTED")
    parser.table()
    if parser.peek("PARTITION ("):
        raise no_partitions(parser)
    if parser.peek("AS JSON"):
        raise no_v2_command("DESCRIBE TABLE AS JSON")
    if parser.token.is_name:
        return {"column": parser.name()}
    return {"extended": True} if extended else {}


@statement("DESCRIBE|DESC", line="*described", described=_described)
def _describe(
    table: StatementTable, *, extended: bool = False, column: Name | None = None
) -> DataFrame:
    fields = table.snapshot.schema.fields
    if column is not None:
        return _column_info(table, ".".join(column))
    by_name = {field.name: field for field in fields}
    partitions = [by_name[name] for name in table.snapshot.metadata.partition_columns]
    rows: list[tuple[str, str, str | None]] = [*map(_column, fields)]
    if partitions:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += map(_column, partitions)
    if extended:
        rows += _details(table)
    return text_rows(table.spark, ("col_name", "data_type", "comment"), rows)


def _column_info(table: StatementTable, name: str) -> DataFrame:
    field = field_named(table.snapshot.schema, name)
    if field is None:
        raise ColumnNotFoundError(column=name, available=table.snapshot.schema.names)
    _, data_type, comment = _column(field)
    rows = [("col_name", field.name), ("data_type", data_type), ("comment", comment or "NULL")]
    return text_rows(table.spark, ("info_name", "info_value"), rows)


def _details(table: StatementTable) -> Iterator[tuple[str, str, str | None]]:
    """Yield the rows of DESCRIBE EXTENDED below the columns."""
    snapshot, name = table.snapshot, table.name
    yield from (("", "", ""), ("# Detailed Table Information", "", ""))
    names = name_in_catalog(table.spark, name)
    _, database, last = names or (SESSION_CATALOG, *name)
    yield from (("Catalog", SESSION_CATALOG, ""), ("Namespace", database, ""))
    yield from (("Database", database, ""), ("Table", last, ""))
    engine = engine_of(table.spark)
    is_managed = names is not None and engine.is_managed(name)
    yield "Type", "EXTERNAL" if names and not is_managed else "MANAGED", ""  # of paths, too
    if snapshot.metadata.description is not None:
        yield "Comment", snapshot.metadata.description, ""
    yield from (("Location", snapshot.path, ""), ("Provider", "delta", ""))
    owner = "" if names is None else engine.owner(name)
    if owner:
        yield "Owner", owner, ""
    if is_managed:
        yield "Is_managed_location", "true", ""
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


def _shown_values(parser: Parser) -> Mapping[str, str | None]:
    values = parser.partition()
    if None in values.values():
        raise parser.error("each column of PARTITION needs a value")
    return values


@statement("SHOW PARTITIONS", line="table [PARTITION partition]", partition=_shown_values)
def show_partitions(
    table: StatementTable, partition: Mapping[str, str | None] | None = None
) -> DataFrame:
    """Return the partitions with live files, as the log has them.

    Parameters
    ----------
    partition
        The values to look for, as SQL text by column.

    Raises
    ------
    DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE, DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN
        The table has no partition columns, or not this one.
    """
    snapshot = table.snapshot
    names = snapshot.metadata.partition_columns
    if not names:
        raise DeltaError.of("DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE", path=snapshot.path)
    try:
        where = partition_condition(snapshot, partition or {}, time_zone=table.sql.time_zone)
    except NonPartitionColumnReferenceError as error:
        raise DeltaError.of(
            "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
            column=error.column,
            path=snapshot.path,
            available=names,
        ) from None
    files = snapshot.add_files().where(_HAS_ROWS)
    shown = [F.col(f"partitionValues_parsed.{quoted(name)}").alias(name) for name in names]
    partitions = files.select(*shown).distinct()
    return partitions if where is None else partitions.where(where)


def _table_of_database(parser: Parser) -> None:
    """Parse ``FROM table [FROM database]``."""
    parser.expect("FROM|IN")
    name = parser.table()
    if parser.accept("FROM|IN"):
        parser.target = (*parser.name(), *name)


@statement("SHOW COLUMNS", line="*table_of_database", table_of_database=_table_of_database)
def _show_columns(table: StatementTable) -> DataFrame:
    names = table.snapshot.schema.names
    return text_rows(table.spark, ("col_name",), [(name,) for name in names])


@statement("SHOW TBLPROPERTIES", line="table [( key:property )]")
def _show_properties(table: StatementTable, key: str | None = None) -> DataFrame:
    properties = all_properties(table.snapshot)
    if key is not None:
        missing = (
            f"Table {_catalog_name(table) or quoted_path(table.name)} does not have property: {key}"
        )
        properties = {key: properties.get(key, missing)}
    return text_rows(table.spark, ("key", "value"), sorted(properties.items()))


def _catalog_name(table: StatementTable) -> str | None:
    names = name_in_catalog(table.spark, table.name)
    return None if names is None else ".".join(names)


def _show_extended(parser: Parser) -> None:
    """Refuse ``SHOW TABLE EXTENDED`` of a partition; about tables, it is as Spark has it."""
    database = parser.name() if parser.accept("FROM|IN") else ()
    parser.accept("LIKE")
    name = (*database, parser.string())
    if parser.accept("PARTITION"):
        parser.target = name
        raise no_partitions(parser)


STATEMENTS["SHOW TABLE EXTENDED"] = _show_extended


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
