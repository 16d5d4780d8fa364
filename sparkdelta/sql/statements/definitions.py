"""Statements that define tables, carried out."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, LongType, StructField, StructType

from sparkdelta.api.alter import alter_table
from sparkdelta.api.cloning import clone, convert_to_delta
from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.reading_and_writing import load_snapshot
from sparkdelta.base.predicates.resolved_names import UnusableError, find_column
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.property_rules import without_comment
from sparkdelta.base.protocol.protocol_upgrades import CURRENT_DEFAULT, GENERATION_EXPRESSION
from sparkdelta.base.schema.column_alterations import Position
from sparkdelta.base.schema.column_ids import without_ids
from sparkdelta.base.schema.declared_columns import bounded_text, declared_type, identity_metadata
from sparkdelta.base.schema.table_schema import as_nullable, quoted, quoted_path, type_of_path
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.exceptions import (
    CreatedTableMismatchError,
    InvalidArgumentError,
    MissingReplacedTableError,
    SetLocationSchemaError,
    StatementNotSupportedError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from sparkdelta.operations.alter.alter_table import alter
from sparkdelta.operations.alter.altered_columns import (
    ColumnChange,
    NewColumn,
    add_columns,
    change_columns,
    column_path,
)
from sparkdelta.operations.copy.convert import parquet_path
from sparkdelta.operations.write.create_table import Creation, create_table, create_table_like
from sparkdelta.operations.write.write import write
from sparkdelta.sql.grammar.statement_values import (
    AddColumns,
    Alter,
    ChangeColumns,
    Clone,
    ColumnText,
    Convert,
    CreateLike,
    CreateTable,
    DropFeature,
    ReplaceColumns,
    SetLocation,
)
from sparkdelta.sql.statements.descriptions import all_properties
from sparkdelta.sql.statements.queries import SparkSql
from sparkdelta.table.definition.clustering import clustering_columns, logical_columns
from sparkdelta.table.definition.table_change import TableDescription
from sparkdelta.table.definition.write_options import WriteOptions
from sparkdelta.table.listing.table_names import NewTable, move_named_table, table_path
from sparkdelta.table.log.session_times import session_time
from sparkdelta.table.snapshot.snapshot import Snapshot

_MODES = {
    Creation.CREATE: "error",
    Creation.CREATE_IF_NOT_EXISTS: "ignore",
    Creation.REPLACE: "overwrite",
    Creation.CREATE_OR_REPLACE: "overwrite",
}

_CLONE_METRICS = StructType(
    [
        StructField(name, LongType())
        for name in (
            "source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files",
            "removed_files_size", "copied_files_size",
        )
    ]
)  # fmt: skip


def create(sql: SparkSql, path: str, statement: CreateTable) -> None:  # noqa: ARG001
    """CREATE TABLE, with or without a query; a table with a name is registered afterwards."""
    if statement.provider not in (None, "delta"):
        raise StatementNotSupportedError(statement=f"USING {statement.provider} of a Delta table")
    table = NewTable.of(sql.spark, statement.target, statement.location)
    with table.named(sql.spark):
        if statement.query is not None:
            write(sql.query(statement.query), table.path, _options(statement, table))
        elif _is_described(sql, statement, table):
            description = TableDescription(
                columns=tuple(map(_field, statement.columns)),
                partition_by=statement.partition_by,
                clustering_columns=statement.cluster_by,
                comment=statement.comment,
                properties=statement.properties,
                is_managed=table.is_managed,
            )
            create_table(sql.spark, table.path, description, statement.creation)


def _options(statement: CreateTable, table: NewTable) -> WriteOptions:
    mode = _MODES[statement.creation]
    return WriteOptions(
        mode=mode,
        partition_by=statement.partition_by,
        cluster_by=statement.cluster_by,
        comment=statement.comment,
        properties=statement.properties,
        defines_table=True,
        replaces_table=mode == "overwrite",
        requires_table=statement.creation is Creation.REPLACE,
        is_managed=table.is_managed,
    )


def _is_described(sql: SparkSql, statement: CreateTable, table: NewTable) -> bool:
    """True if a statement without a query describes the table; False if the table is there, is as
    the statement says, and only gets a name.

    Raises
    ------
    TableAlreadyExistsError
        It has the name, too.
    CreatedTableMismatchError
        It is another table.
    StatementNotSupportedError
        The table would have no columns.
    """
    replaces = _MODES[statement.creation] == "overwrite"
    if replaces or not DeltaTable.isDeltaTable(sql.spark, table.path):
        if not statement.columns:
            raise StatementNotSupportedError(statement="CREATE TABLE without columns")
        return True
    if table.name is not None:
        _check_described(load_snapshot(sql.spark, table.path), statement)
    elif statement.creation is Creation.CREATE:
        raise TableAlreadyExistsError(path=table.path)
    return False


def _check_described(snapshot: Snapshot, statement: CreateTable) -> None:
    """Raise if a statement describes another table than the one that its location has.

    Raises
    ------
    CreatedTableMismatchError
    """
    table = snapshot.configuration
    differences = []
    if statement.columns:
        if without_ids(snapshot.schema) != StructType(list(map(_field, statement.columns))):
            differences.append("columns")
        if tuple(statement.partition_by) != tuple(snapshot.metadata.partition_columns):
            differences.append("partition columns")
        clustering = logical_columns(table, clustering_columns(snapshot) or ())
        if tuple(map(column_path, statement.cluster_by)) != clustering:
            differences.append("clustering columns")
    elif statement.partition_by or statement.cluster_by:
        differences.append("columns")
    properties, comment = without_comment(statement.properties)
    comment = comment if statement.comment is None else statement.comment
    if comment not in (None, snapshot.metadata.description):
        differences.append("comment")
    if not properties.items() <= all_properties(snapshot).items():
        differences.append("properties")
    if differences:
        raise CreatedTableMismatchError(path=snapshot.path, differences=differences)


def created_like(sql: SparkSql, path: str, statement: CreateLike) -> None:  # noqa: ARG001
    """CREATE TABLE ... LIKE."""
    source = table_path(sql.spark, statement.source)
    if source is None:
        raise StatementNotSupportedError(statement="LIKE a table that is no Delta table")
    if statement.provider not in (None, "delta"):
        raise StatementNotSupportedError(statement=f"USING {statement.provider} LIKE a Delta table")
    table = NewTable.of(sql.spark, statement.target, statement.location)
    with table.named(sql.spark):
        create_table_like(
            sql.spark, source, table.path, statement.properties, statement.creation,
            is_managed=table.is_managed,
        )  # fmt: skip


def relocated(sql: SparkSql, path: str, statement: SetLocation) -> None:
    """ALTER TABLE ... SET LOCATION: the table there has the same columns."""
    now, then = (load_snapshot(sql.spark, each) for each in (path, statement.location))
    tables = [(without_ids(each.schema), each.metadata.partition_columns) for each in (now, then)]
    if tables[0] != tables[1]:
        raise SetLocationSchemaError(path=now.path, location=then.path)
    move_named_table(sql.spark, statement.target, then.path)


def converted(sql: SparkSql, path: str, statement: Convert) -> None:  # noqa: ARG001
    """CONVERT TO DELTA."""
    *source, directory = statement.target
    convert_to_delta(
        sql.spark,
        parquet_path(".".join([*source, quoted(directory)])),
        partition_schema=statement.partition_schema,
        collect_statistics=statement.collects_statistics,
    )


def cloned(sql: SparkSql, path: str, statement: Clone) -> DataFrame:  # noqa: ARG001
    """CREATE TABLE ... CLONE."""
    source = table_path(sql.spark, statement.source)
    if source is None:
        raise TableNotFoundError(path=quoted_path(statement.source))
    table, time = NewTable.of(sql.spark, statement.target, statement.location), None
    if statement.timestamp is not None:
        time = session_time(sql.spark, statement.timestamp)
    replaces = statement.creation is Creation.REPLACE
    if replaces and not DeltaTable.isDeltaTable(sql.spark, table.path):
        raise MissingReplacedTableError(path=table.path)
    is_optional = statement.creation is Creation.CREATE_IF_NOT_EXISTS
    if is_optional and table.name is None and DeltaTable.isDeltaTable(sql.spark, table.path):
        return sql.spark.createDataFrame([], _CLONE_METRICS)
    with table.named(sql.spark):
        result = clone(
            sql.spark,
            source,
            table.path,
            deep=statement.deep,
            version=statement.version,
            timestamp=time,
            replace=statement.creation in (Creation.REPLACE, Creation.CREATE_OR_REPLACE),
            properties=statement.properties,
        )
    names = [field.name for field in _CLONE_METRICS.fields]
    columns = {name: pa.array([getattr(result, name)], pa.int64()) for name in names}
    return local_frame(sql.spark, pa.table(columns), _CLONE_METRICS)


def altered(sql: SparkSql, path: str, statement: Alter) -> None:
    """ALTER TABLE."""
    if "set_not_null" in statement.options:  # SQL alone has it: it changes nothing
        with_changed_columns(sql, path, ChangeColumns(statement.target, (statement,)))
        return
    values = statement.values
    if statement.method == "change_column" and len(values) == 2 and any(statement.options.values()):
        values = values[: 1 if _has_type(sql, path, *values) else 2]
    method = getattr(alter_table(sql.spark, path), statement.method)
    method(*values, **statement.options)


def _has_type(sql: SparkSql, path: str, name: str, data_type: str) -> bool:
    """True if a column has the type that CHANGE COLUMN repeats."""
    schema = load_snapshot(sql.spark, path).schema
    try:
        column = find_column(schema, column_path(name))
    except UnusableError:
        return False
    its_own = type_of_path(schema, column.path)
    return as_nullable(its_own) == as_nullable(_type(data_type))


def with_changed_columns(sql: SparkSql, path: str, statement: ChangeColumns) -> None:
    """ALTER TABLE ... ALTER COLUMN of several columns, in one version."""
    changes = [_column_change(*each.values, **each.options) for each in statement.changes]
    alter(sql.spark, path, partial(change_columns, changes=changes))


def _column_change(
    name: str,
    data_type: str | None = None,
    *,
    first: bool = False,
    after: str | None = None,
    **options: Any,
) -> tuple[ColumnPath, ColumnChange]:
    position = Position() if first else None
    if after is not None:
        position = Position(column_path(after)[-1])
    changed_type = None if data_type is None else _type(data_type)
    return column_path(name), ColumnChange(data_type=changed_type, position=position, **options)


def with_columns(sql: SparkSql, path: str, statement: AddColumns) -> None:
    """ALTER TABLE ... ADD COLUMNS, in one version."""
    new = []
    for column in statement.columns:
        position = Position() if column.is_first else None
        if column.after is not None:
            position = Position(column_path(column.after)[-1])
        new.append(NewColumn(_field(column), column_path(column.name)[:-1], position))
    alter(sql.spark, path, partial(add_columns, columns=tuple(new)))


def with_columns_replaced(sql: SparkSql, path: str, statement: ReplaceColumns) -> None:
    """ALTER TABLE ... REPLACE COLUMNS."""
    columns = StructType(list(map(_field, statement.columns)))
    alter_table(sql.spark, path).replace_columns(columns)


def without_feature(sql: SparkSql, path: str, statement: DropFeature) -> None:
    """ALTER TABLE ... DROP FEATURE."""
    table = DeltaTable.forPath(sql.spark, path)
    table.dropFeatureSupport(statement.name, statement.truncates_history)


def _field(column: ColumnText) -> StructField:
    metadata: dict[str, object] = {}
    if column.comment is not None:
        metadata["comment"] = column.comment
    if column.default is not None:
        metadata[CURRENT_DEFAULT] = column.default
    if column.generated is not None:
        metadata[GENERATION_EXPRESSION] = column.generated
    if column.identity is not None:
        start, step, by_default = column.identity
        metadata |= identity_metadata(start, step, allows_explicit_values=by_default)
    name = column_path(column.name)[-1]
    return bounded_text(StructField(name, _type(column.data_type), column.nullable, metadata))


def _type(text: str) -> DataType:
    """Return a type by its SQL name.

    Raises
    ------
    InvalidArgumentError
        It is no type: Spark's error would show a text that is not the user's.
    """
    try:
        return declared_type(text)
    except ParseException as error:
        problem = f"{text} is not a type"
        raise InvalidArgumentError(argument="dataType", problem=problem) from error
