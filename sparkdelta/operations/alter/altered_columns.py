"""Statements that add, rename, drop and change columns.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#column-mapping, PROTOCOL.md#type-widening,
PROTOCOL.md#default-columns
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType, StringType, StructField, StructType

from sparkdelta.base.predicates.resolved_names import UnusableError, name_parts
from sparkdelta.base.protocol.column_lists import STATISTICS_COLUMNS, column_list
from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.protocol.protocol_upgrades import (
    CURRENT_DEFAULT,
    FIELD_FEATURES,
    GENERATION_EXPRESSION,
    IDENTITY_START,
)
from sparkdelta.base.schema.column_alterations import (
    Position,
    field_at,
    path_text,
    spelled_path,
    type_at,
    with_changed_column,
    with_column,
    with_renamed_column,
    without_column,
)
from sparkdelta.base.schema.column_ids import without_ids
from sparkdelta.base.schema.column_mapping import physical_path
from sparkdelta.base.schema.declared_columns import bounded_text
from sparkdelta.base.schema.table_constraints import row_rules
from sparkdelta.base.schema.type_widening import TYPE_CHANGES
from sparkdelta.base.schema.written_schema import check_columns
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    DropClusteringColumnError,
    DropPartitionColumnError,
    InvalidArgumentError,
    UnsupportedColumnChangeError,
    UnsupportedDropError,
    UnsupportedRenameError,
)
from sparkdelta.operations.alter.retyped_columns import retyped
from sparkdelta.table.definition.alteration import Alteration, alteration, with_schema
from sparkdelta.table.definition.clustering import clustering_columns
from sparkdelta.table.definition.rule_expressions import check_default, check_unused
from sparkdelta.table.definition.table_change import TableChange
from sparkdelta.table.log.configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column to be added.

    Attributes
    ----------
    parent
        The path of the struct that gets it; empty for the table.
    position
        None for the last one.
    """

    field: StructField
    parent: ColumnPath = ()
    position: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """A change of a column; attributes that are None or False leave it as it is.

    Attributes
    ----------
    set_not_null
        True for a column that must be NOT NULL already.
    """

    data_type: DataType | None = None
    comment: str | None = None
    position: Position | None = None
    drop_not_null: bool = False
    set_not_null: bool = False
    default: str | None = None
    drop_default: bool = False


def column_path(name: str) -> ColumnPath:
    """The path that a name with dots and backticks means.

    Raises
    ------
    InvalidArgumentError
    """
    try:
        return tuple(name_parts(name))
    except (UnusableError, TypeError) as error:
        problem = f"{name!r} is not a column; quote names with dots in backticks"
        raise InvalidArgumentError(argument="name", problem=problem) from error


def add_columns(snapshot: Snapshot, columns: Sequence[NewColumn]) -> Alteration:
    """The table with new columns, which are null in existing rows.

    Raises
    ------
    DuplicateColumnsError, ColumnNotFoundError, AddColumnParentError
        There is a column of this name, or no place for it.
    InvalidArgumentError, InvalidColumnNameError, UnsupportedDataTypeError, ChangeDataColumnsError
        No table can have such a column, or not one with rows.
    """
    table = snapshot.configuration
    schema, shown = table.schema, []
    for new in columns:
        parent = spelled_path(schema, new.parent)
        field = new_field(new.field)
        check_columns(StructType([field]), any_names=table.is_mapped)
        if CURRENT_DEFAULT in field.metadata:
            check_default(snapshot.log.spark, field)
        schema = with_column(schema, parent, field, new.position)
        place = {} if new.position is None else {"position": str(new.position)}
        shown.append({"column": shown_field((*parent, field.name), new.field), **place})
    return altered(snapshot, schema, "ADD COLUMNS", {"columns": shown})


def rename_column(snapshot: Snapshot, path: ColumnPath, name: str) -> Alteration:
    """The table with another name for a column; data files keep the physical name.

    Raises
    ------
    UnsupportedRenameError
        The table has no column mapping.
    ColumnNotFoundError, DuplicateColumnsError
    ConstraintDependentColumnError, GeneratedDependentColumnError
        An expression of the table uses the column.
    """
    table = snapshot.configuration
    if not table.is_mapped:
        raise UnsupportedRenameError(path=snapshot.path)
    old = _field_path(table.schema, path)
    new = (*old[:-1], name)
    schema = with_renamed_column(table.schema, old, name)
    check_columns(StructType([StructField(name, StringType())]), any_names=True)
    check_unused(snapshot.log.spark, table, [old], path=snapshot.path)
    properties = _with_statistics_columns(
        table.properties, lambda p: (*new, *p[len(old) :]) if _is_within(p, old) else p
    )
    partition_columns = tuple(
        name if _is_within((column,), old) else column for column in table.partition_columns
    )
    shown = {"oldColumnPath": path_text(old), "newColumnPath": path_text(new)}
    return altered(snapshot, schema, "RENAME COLUMN", shown, partition_columns, properties)


def drop_columns(
    snapshot: Snapshot, paths: Sequence[ColumnPath], *, if_exists: bool = False
) -> Alteration:
    """The table without some columns; data files keep their values.

    Raises
    ------
    UnsupportedDropError
        The table has no column mapping.
    ColumnNotFoundError
        There is no such column, and `if_exists` is False.
    DropPartitionColumnError, DropClusteringColumnError, DropOnlyColumnError
    ConstraintDependentColumnError, GeneratedDependentColumnError
        An expression of the table uses a column.
    """
    table = snapshot.configuration
    if not table.is_mapped:
        raise UnsupportedDropError(path=snapshot.path)
    schema, dropped = table.schema, list[ColumnPath]()
    for path in paths:
        try:
            dropped.append(_field_path(schema, path))
        except ColumnNotFoundError:
            if not if_exists:
                raise
            continue
        schema = without_column(schema, dropped[-1])
    shown = {"columns": [path_text(path) for path in dropped]}
    return altered(snapshot, schema, "DROP COLUMNS", shown, None, checked_drop(snapshot, dropped))


def checked_drop(snapshot: Snapshot, paths: Sequence[ColumnPath]) -> Mapping[str, str]:
    """Check that columns can be dropped, and return the table's properties without them.

    Raises
    ------
    DropPartitionColumnError, DropClusteringColumnError
    ConstraintDependentColumnError, GeneratedDependentColumnError
        An expression of the table uses a column.
    """
    table, clustering = snapshot.configuration, clustering_columns(snapshot) or ()
    for path in paths:
        if path[0] in table.partition_columns:
            raise DropPartitionColumnError(column=path_text(path))
        physical = physical_path_of(table, path)
        if any(column[: len(physical)] == physical for column in clustering):
            raise DropClusteringColumnError(column=path_text(path))
    check_unused(snapshot.log.spark, table, paths, path=snapshot.path)
    return _with_statistics_columns(
        table.properties, lambda p: None if any(_is_within(p, path) for path in paths) else p
    )


def change_column(snapshot: Snapshot, path: ColumnPath, change: ColumnChange) -> Alteration:
    """The table with a column changed; no data file is written.

    Raises
    ------
    ColumnNotFoundError
    UnsupportedColumnChangeError
        Its type cannot become this one, or not in this table; or nulls are to be excluded.
    InvalidArgumentError
        The change is empty, or the default does not fit.
    ConstraintDependentColumnError, GeneratedDependentColumnError
        The type is another one, and an expression of the table uses the column.
    """
    schema, shown = _with_change(snapshot, snapshot.configuration.schema, path, change)
    return altered(snapshot, schema, "CHANGE COLUMN", shown)


def change_columns(
    snapshot: Snapshot, changes: Sequence[tuple[ColumnPath, ColumnChange]]
) -> Alteration:
    """The table with several columns changed, one after another, as by `change_column`."""
    schema, shown = snapshot.configuration.schema, list[Mapping[str, object]]()
    for path, change in changes:
        schema, parameters = _with_change(snapshot, schema, path, change)
        shown.append(parameters)
    return altered(snapshot, schema, "CHANGE COLUMNS", {"columns": shown})


def _with_change(
    snapshot: Snapshot, schema: StructType, path: ColumnPath, change: ColumnChange
) -> tuple[StructType, Mapping[str, object]]:
    """A schema with a column changed, and how the parameters of the operation show the column."""
    if change == ColumnChange():
        raise InvalidArgumentError(argument="change_column", problem="nothing is to be changed")
    path = spelled_path(schema, path)
    if change.data_type is not None:
        schema = retyped(snapshot, schema, path, change.data_type)
    if change != ColumnChange(data_type=change.data_type):
        path = _field_path(schema, path)
        if change.set_not_null:
            _check_not_null(schema, path)
        schema = with_changed_column(
            schema, path, lambda field: changed_field(field, change), change.position
        )
    field = field_at(schema, path) or StructField(path[-1], type_at(schema, path))
    if change.default is not None:
        check_default(snapshot.log.spark, field)
    position = {} if change.position is None else {"position": str(change.position)}
    return schema, {"column": shown_field(path, field), **position}


def _check_not_null(schema: StructType, path: ColumnPath) -> None:
    """Raise if a column may be null: its rows are not searched for nulls."""
    field = field_at(schema, path)
    if field is not None and field.nullable:
        shown = field.dataType.simpleString()
        raise UnsupportedColumnChangeError(
            column=path_text(path),
            before=shown,
            after=f"{shown} NOT NULL",
            problem="existing rows may have nulls in it; add a CHECK constraint, which is checked "
            "on all rows",
        )


def physical_path_of(table: TableConfiguration, path: ColumnPath) -> ColumnPath:
    """The physical path of a column, as far as it leads through structs alone."""
    while field_at(table.schema, path) is None or not _is_in_structs(table.schema, path):
        path = path[:-1]
    return physical_path(table.schema, path, table.column_mapping)


def _is_in_structs(schema: StructType, path: ColumnPath) -> bool:
    return all(isinstance(type_at(schema, path[:i]), StructType) for i in range(len(path)))


def altered(
    snapshot: Snapshot,
    schema: StructType,
    operation: str,
    shown: Mapping[str, object],
    partition_columns: tuple[str, ...] | None = None,
    properties: Mapping[str, str] | None = None,
) -> Alteration:
    """The alteration of a table that gets another schema.

    Raises
    ------
    ChangeDataColumnsError
        A column has a name that the change data feed has, too.
    """
    table = snapshot.configuration
    if schema.json() == table.schema.json():
        return alteration(TableChange(table, table), operation, shown)
    after = with_schema(table, schema, partition_columns=partition_columns, properties=properties)
    row_rules(after.schema, after.protocol, after.properties, path=snapshot.path)
    return alteration(TableChange(table, after), operation, shown)


def new_field(given: StructField) -> StructField:
    """The field of a new column, nullable, without ids of another table.

    Raises
    ------
    InvalidArgumentError
        The column is NOT NULL, a generated or an identity column.
    """
    [field] = without_ids(StructType([bounded_text(given)])).fields
    if not field.nullable:
        problem = f"{field.name} is NOT NULL, but existing rows have no value for a new column"
        raise InvalidArgumentError(argument="columns", problem=problem)
    if (FIELD_FEATURES.keys() - {CURRENT_DEFAULT}) & field.metadata.keys():
        problem = f"{field.name} is a generated or identity column, and existing rows have none"
        raise InvalidArgumentError(argument="columns", problem=problem)
    return field


def _field_path(schema: StructType, path: ColumnPath) -> ColumnPath:
    """The path as the schema spells it, of a column or field: not an element, key or value."""
    spelled = spelled_path(schema, path)
    if field_at(schema, spelled) is None:
        raise ColumnNotFoundError(column=path_text(path), available=schema.names)
    return spelled


def changed_field(field: StructField, change: ColumnChange) -> StructField:
    """A field with another comment, nullability or default.

    Raises
    ------
    InvalidArgumentError
        Its values are generated, and it cannot have a default.
    """
    metadata = dict(field.metadata or {})
    if change.comment is not None:
        metadata["comment"] = change.comment
    if change.drop_default:
        metadata.pop(CURRENT_DEFAULT, None)
    if change.default is not None:
        if metadata.keys() & {GENERATION_EXPRESSION, IDENTITY_START}:
            problem = f"{field.name} is a generated or identity column"
            raise InvalidArgumentError(argument="default", problem=problem)
        metadata[CURRENT_DEFAULT] = change.default
    is_nullable = field.nullable or change.drop_not_null
    return StructField(field.name, field.dataType, is_nullable, metadata)


def _with_statistics_columns(
    properties: Mapping[str, str], changed: Callable[[ColumnPath], ColumnPath | None]
) -> Mapping[str, str]:
    named = properties.get(STATISTICS_COLUMNS)
    if named is None:
        return properties
    paths = filter(None, map(changed, column_list(STATISTICS_COLUMNS, named)))
    rest = {name: value for name, value in properties.items() if name != STATISTICS_COLUMNS}
    text = ",".join(map(path_text, paths))
    return {**rest, STATISTICS_COLUMNS: text} if text else rest


def _is_within(path: ColumnPath, outer: ColumnPath) -> bool:
    return [name_key(n) for n in path[: len(outer)]] == [name_key(n) for n in outer]


def shown_field(path: ColumnPath, field: StructField) -> str | dict[str, object]:
    """A column as the parameters of an operation show it."""
    data_type = field.dataType.jsonValue()
    metadata = {k: v for k, v in (field.metadata or {}).items() if k != TYPE_CHANGES}
    return {
        "name": path_text(path),
        "type": data_type if isinstance(data_type, str) else field.dataType.typeName(),
        "nullable": field.nullable,
        "metadata": metadata,
    }
