"""CREATE TABLE and REPLACE TABLE, with columns or a query, LIKE another table, or by CLONE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.api.cloning import clone
from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.reading_and_writing import load_snapshot
from sparkdelta.base.protocol.settable_properties import without_comment
from sparkdelta.base.schema.column_ids import without_ids
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.alter.altered_columns import column_path
from sparkdelta.operations.upkeep.catalog_entries import named
from sparkdelta.operations.write.create_table import Creation, create_table, create_table_like
from sparkdelta.operations.write.write import write
from sparkdelta.sql.grammar.parser import Name, Parser
from sparkdelta.sql.grammar.statement_grammar import STATEMENTS, Statement
from sparkdelta.sql.grammar.tokens import Fragment
from sparkdelta.sql.statements.column_definitions import (
    CONSTRAINTS,
    ColumnText,
    column_text,
    columns_of_table,
    table_properties,
)
from sparkdelta.sql.statements.options import WRITE, arguments, given_location, with_settings
from sparkdelta.sql.statements.statement_table import StatementTable
from sparkdelta.sql.statements.statement_targets import view_of_name
from sparkdelta.table.definition.clustering import clustering_columns, logical_columns
from sparkdelta.table.definition.definition_change import TableDescription
from sparkdelta.table.definition.table_description import all_properties
from sparkdelta.table.definition.write_options import WriteOptions
from sparkdelta.table.listing.table_names import NewTable, name_not_found, table_path
from sparkdelta.table.log.session_times import session_time
from sparkdelta.table.snapshot.snapshot import Snapshot

_CREATIONS = {
    "CREATE TABLE": Creation.CREATE,
    "CREATE TABLE IF NOT EXISTS": Creation.CREATE_IF_NOT_EXISTS,
    "CREATE EXTERNAL TABLE": Creation.CREATE,
    "CREATE EXTERNAL TABLE IF NOT EXISTS": Creation.CREATE_IF_NOT_EXISTS,
    "CREATE OR REPLACE TABLE": Creation.CREATE_OR_REPLACE,
    "REPLACE TABLE": Creation.REPLACE,
}
_REPLACES = (Creation.REPLACE, Creation.CREATE_OR_REPLACE)
_CONSTRAINT_CLAUSE = "a constraint in CREATE TABLE; use ALTER TABLE ... ADD CONSTRAINT ... CHECK"
_CLONE_METRICS = StructType(
    [
        StructField(name, LongType())
        for name in (
            "source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files",
            "removed_files_size", "copied_files_size",
        )
    ]
)  # fmt: skip


def _create(parser: Parser, creation: Creation) -> Statement:
    """Parse the name of a table and the clauses after it."""
    parser.table()
    function: Callable[..., DataFrame | None]
    function, clauses = create, _table_clauses
    if parser.accept("LIKE"):
        function, clauses = create_like, _like_clauses
    elif parser.peek("SHALLOW") or parser.peek("DEEP") or parser.peek("CLONE"):
        parser.creates_delta = True
        function, clauses = create_clone, _clone_clauses
    arguments = {"creation": creation, **clauses(parser)}
    if function is create_like and creation in _REPLACES:
        raise parser.error("LIKE goes with CREATE TABLE, not with REPLACE")
    return Statement(function, arguments)


STATEMENTS.update({head: partial(_create, creation=each) for head, each in _CREATIONS.items()})


def _table_clauses(parser: Parser) -> dict[str, Any]:
    found = dict[str, Any]()
    if parser.accept("("):
        found["columns"] = columns_of_table(parser)
        if any(map(parser.peek, CONSTRAINTS)):
            error = DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=_CONSTRAINT_CLAUSE)
            raise error.named("UNSUPPORTED_FEATURE.TABLE_OPERATION", operation="table constraint")
        parser.expect(")")
    seen: set[str] = set()
    while not parser.is_at_end:
        clause = parser.token.text.upper()
        if clause in seen:
            raise parser.error(f"{clause} is there twice")
        seen.add(clause)
        if parser.accept("USING"):
            found["provider"] = parser.word().lower()
        elif parser.accept("PARTITIONED BY"):
            names, columns = _partitions(parser)
            found["partition_by"] = names
            if columns:
                found["columns"] = (*found.get("columns", ()), *columns)
        elif parser.accept("CLUSTER BY"):
            found["cluster_by"] = parser.names()
        elif parser.accept("LOCATION"):
            found["location"] = parser.string()
        elif parser.accept("OPTIONS"):
            found["options"] = parser.properties()
        elif parser.accept("COMMENT"):
            found["comment"] = parser.string()
        elif parser.accept("TBLPROPERTIES"):
            found["properties"] = table_properties(parser)
        else:
            if parser.peek("CLUSTERED BY"):
                raise _no_buckets(parser)
            parser.accept("AS")
            starts = parser.token.is_word("SELECT", "WITH", "VALUES", "TABLE", "FROM")
            if not starts and not parser.peek("("):
                raise parser.error("a clause of CREATE TABLE is expected")
            if "columns" in found:
                raise parser.error("a table has either definitions of columns or a query")
            found["query"] = parser.rest()
    return _with_location(parser, found)


def _no_buckets(parser: Parser) -> DeltaError:
    return parser.error("a Delta table has no buckets; use PARTITIONED BY or CLUSTER BY").named(
        "DELTA_OPERATION_NOT_ALLOWED_DETAIL"
    )


def _with_location(parser: Parser, found: dict[str, Any]) -> dict[str, Any]:
    """Return the clauses of CREATE TABLE with the path among the options as the location."""
    options = found.pop("options", {})
    others = {name: text for name, text in options.items() if name.lower() != "path"}
    if others.keys() != options.keys():
        if "location" in found:
            raise parser.error("the location is there twice")
        found["location"] = given_location(options)
    return {**found, "options": others} if others else found


def _partitions(parser: Parser) -> tuple[tuple[str, ...], tuple[ColumnText, ...]]:
    """Return the names of partition columns, and the definitions of those that have a type here."""
    names, columns = list[str](), list[ColumnText]()

    def column() -> None:
        if parser.ahead().is_symbol("("):
            if parser.token.is_word("BUCKET"):
                raise _no_buckets(parser)
            raise parser.error("the name of a column is expected")
        if parser.ahead().is_symbol(",", ")"):
            names.append(parser.word())
        else:
            columns.append(column_text(parser, in_table=True))
            names.extend(column_path(columns[-1].name))

    parser.enclosed(column)
    return tuple(names), tuple(columns)


def create(
    table: StatementTable,
    creation: Creation,
    *,
    provider: str | None = None,
    columns: tuple[ColumnText, ...] = (),
    partition_by: tuple[str, ...] = (),
    cluster_by: tuple[str, ...] = (),
    location: str | None = None,
    comment: str | None = None,
    properties: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    query: Fragment | None = None,
) -> None:
    """Create a table, with or without a query; one with a name is registered afterwards.

    Parameters
    ----------
    provider
        After USING.
    options
        After OPTIONS: of the write of a query. Without one they become properties of a new table,
        as in delta-spark, and are ignored where a table may be replaced.
    """
    if provider not in (None, "delta"):
        raise DeltaError.of(
            "DELTA_STATEMENT_NOT_SUPPORTED", statement=f"USING {provider} of a Delta table"
        )
    is_optional = creation is Creation.CREATE_IF_NOT_EXISTS
    is_kept = creation not in _REPLACES
    if creation is Creation.REPLACE and len(table.name) == 2:
        shown = quoted_path(table.name)
        if not (table.path or table.spark.catalog.databaseExists(quoted_path(table.name[:1]))):
            raise DeltaError.of("DELTA_CANNOT_REPLACE_MISSING_TABLE", path=shown)
    new = NewTable.of(table.spark, table.name, location, is_optional=is_kept, replaces=not is_kept)
    with named(new, table.spark, comment):
        if query is not None:
            replaces = creation in _REPLACES
            write_options = WriteOptions.spelled(
                **_options_of_query(options or {}),
                mode="overwrite" if replaces else "ignore" if is_optional else "error",
                partition_by=partition_by,
                cluster_by=cluster_by,
                comment=comment,
                properties=properties or {},
                defines_table=True,
                replaces_table=replaces,
                requires_table=creation is Creation.REPLACE,
                is_managed=new.is_managed,
            )
            write(table.sql.query(query), new.path, write_options)
            return
        if not columns and creation in _REPLACES:
            raise DeltaError.of("DELTA_SCHEMA_NOT_PROVIDED", path=new.path)
        kept = {} if creation in _REPLACES else options or {}
        marked = {f"option.{name}": text for name, text in kept.items()}
        properties = {**(properties or {}), **kept, **marked}
        exists = creation not in _REPLACES and DeltaTable.isDeltaTable(table.spark, new.path)
        if exists and new.name is None:
            if creation is Creation.CREATE:
                raise DeltaError.of("DELTA_TABLE_ALREADY_EXISTS", path=new.path)
            return
        description = TableDescription(
            columns=tuple(column.field for column in columns),
            partition_by=partition_by,
            clustering_columns=cluster_by,
            comment=comment,
            properties=properties,
            is_managed=new.is_managed,
        )
        if exists:  # and only gets a name
            _check_described(load_snapshot(table.spark, new.path), description)
        else:
            create_table(table.spark, new.path, description, creation)


def _options_of_query(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of CREATE TABLE as arguments of the write of its query."""
    found = arguments(options, WRITE, function="OPTIONS")
    for replaced in ("overwrite_schema", "replace_where", "partition_overwrite_mode"):
        found.pop(replaced, None)  # the table is defined anew
    found = {"compression": None, **with_settings(found, overwrites=False)}
    return {**found, "merge_schema": False}


def _check_described(snapshot: Snapshot, description: TableDescription) -> None:
    """Raise if a statement describes another table than the one that its location has.

    Raises
    ------
    DELTA_CREATE_TABLE_SCHEME_MISMATCH
    """
    differences = []
    if description.columns:
        if without_ids(snapshot.schema) != StructType(list(description.columns)):
            differences.append("columns")
        if description.partition_by != tuple(snapshot.metadata.partition_columns):
            differences.append("partition columns")
        clustering = logical_columns(snapshot.configuration, clustering_columns(snapshot) or ())
        if tuple(map(column_path, description.clustering_columns)) != clustering:
            differences.append("clustering columns")
    elif description.partition_by or description.clustering_columns:
        differences.append("columns")
    properties, comment = without_comment(description.properties)
    comment = comment if description.comment is None else description.comment
    if comment not in (None, snapshot.metadata.description):
        differences.append("comment")
    if not properties.items() <= all_properties(snapshot).items():
        differences.append("properties")
    if differences:
        error = DeltaError.of(
            "DELTA_CREATE_TABLE_SCHEME_MISMATCH", path=snapshot.path, differences=differences
        )
        raise _named_mismatch(error, snapshot, description, properties)


def _named_mismatch(
    error: DeltaError,
    snapshot: Snapshot,
    description: TableDescription,
    properties: Mapping[str, str],
) -> DeltaError:
    """Give an error the names that delta-spark has for the first of the differences."""
    first, path = error.differences[0], snapshot.path
    if first == "columns":
        return error.named(
            "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
            path=path,
            specifiedSchema=StructType(list(description.columns)).treeString(),
            existingSchema=snapshot.schema.treeString(),
            schemaDifferences=first,
        )
    if first == "properties":
        given, existing = properties, snapshot.metadata.configuration
        return error.named(
            "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
            path=path,
            specifiedProperties=_in_lines(given),
            existingProperties=_in_lines(existing),
        )
    return error.named(
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
        path=path,
        specifiedColumns=", ".join(description.partition_by),
        existingColumns=", ".join(snapshot.metadata.partition_columns),
    )


def _in_lines(properties: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in sorted(properties.items()))


def _like_clauses(parser: Parser) -> dict[str, Any]:
    found: dict[str, Any] = {"source": parser.table_name()}
    while not parser.is_at_end:
        if parser.accept("USING"):
            found["provider"] = parser.word().lower()
        elif parser.accept("LOCATION"):
            found["location"] = parser.string()
        else:
            parser.expect("TBLPROPERTIES")
            found["properties"] = table_properties(parser)
    return found


def create_like(
    table: StatementTable,
    creation: Creation,
    source: Name,
    *,
    provider: str | None = None,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Create a table with the columns and properties of another."""
    source_path = table_path(table.spark, source)
    if source_path is None:
        raise DeltaError.of(
            "DELTA_STATEMENT_NOT_SUPPORTED", statement="LIKE a table that is no Delta table"
        )
    if provider not in (None, "delta"):
        raise DeltaError.of(
            "DELTA_STATEMENT_NOT_SUPPORTED", statement=f"USING {provider} LIKE a Delta table"
        )
    is_optional = creation is Creation.CREATE_IF_NOT_EXISTS
    new = NewTable.of(table.spark, table.name, location, is_optional=is_optional)
    with named(new, table.spark):
        create_table_like(
            table.spark, source_path, new.path, properties or {}, creation,
            is_managed=new.is_managed,
        )  # fmt: skip


def _clone_clauses(parser: Parser) -> dict[str, Any]:
    deep = not parser.accept("SHALLOW")
    parser.accept("DEEP")
    parser.expect("CLONE")
    found = {"source": parser.table_name(), "deep": deep}
    found |= parser.moment("TBLPROPERTIES", "LOCATION")
    if parser.accept("TBLPROPERTIES"):
        found["properties"] = table_properties(parser)
    if parser.accept("LOCATION"):
        found["location"] = parser.string()
    return found


def create_clone(
    table: StatementTable,
    creation: Creation,
    source: Name,
    *,
    deep: bool,
    version: int | None = None,
    timestamp: str | None = None,
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
) -> DataFrame:
    """Create a table with the files of another."""
    spark, source_path = table.spark, table_path(table.spark, source)
    if source_path is None:
        view = view_of_name(spark, source)
        error = name_not_found(spark, source, searches=False)
        if view is not None:
            error.named("DELTA_CLONE_UNSUPPORTED_SOURCE", name=".".join(view), format="View")
        raise error
    is_optional = creation is Creation.CREATE_IF_NOT_EXISTS
    new = NewTable.of(spark, table.name, location, is_optional=is_optional)
    time = None if timestamp is None else session_time(spark, timestamp)
    if creation is Creation.REPLACE and not DeltaTable.isDeltaTable(spark, new.path):
        raise DeltaError.of("DELTA_CANNOT_REPLACE_MISSING_TABLE", path=new.path)
    if is_optional and new.name is None and DeltaTable.isDeltaTable(spark, new.path):
        return spark.createDataFrame([], _CLONE_METRICS)
    with named(new, spark):
        result = clone(
            spark,
            source_path,
            new.path,
            deep=deep,
            version=version,
            timestamp=time,
            replace=creation in _REPLACES,
            properties=properties,
        )
    names = [field.name for field in _CLONE_METRICS.fields]
    columns = {name: pa.array([getattr(result, name)], pa.int64()) for name in names}
    return local_frame(spark, pa.table(columns), _CLONE_METRICS)
