"""Statements that add, rename, drop and change columns.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#column-mapping, PROTOCOL.md#type-widening,
PROTOCOL.md#default-columns, PROTOCOL.md#void-type
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType, FloatType, NullType, StringType, StructField, StructType

from sparkdelta.base.predicates.resolved_names import UnusableError, name_parts
from sparkdelta.base.protocol.column_lists import STATISTICS_COLUMNS, column_list
from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.protocol.protocol_upgrades import (
    CURRENT_DEFAULT,
    FIELD_FEATURES,
    GENERATION_EXPRESSION,
    IDENTITY_START,
)
from sparkdelta.base.protocol.table_properties import is_type_widening_enabled
from sparkdelta.base.protocol.type_changes import is_supported_type_change
from sparkdelta.base.schema.column_alterations import (
    Position,
    field_at,
    path_text,
    spelled_path,
    type_at,
    with_changed_column,
    with_column,
    with_renamed_column,
    with_wider_type,
    without_column,
)
from sparkdelta.base.schema.column_ids import without_ids
from sparkdelta.base.schema.column_mapping import physical_path
from sparkdelta.base.schema.declared_columns import bounded_text
from sparkdelta.base.schema.row_checks import CHAR_OR_VARCHAR, is_longer_text
from sparkdelta.base.schema.store_assignment import is_up_cast
from sparkdelta.base.schema.table_constraints import row_rules
from sparkdelta.base.schema.type_widening import TYPE_CHANGES
from sparkdelta.base.schema.written_schema import check_columns, clean_field
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    DeltaError,
    InvalidArgumentError,
    UnsupportedColumnChangeError,
)
from sparkdelta.table.definition.alteration import Alteration, alteration, with_schema
from sparkdelta.table.definition.clustering import clustering_columns
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.definition.rule_expressions import check_default, check_unused
from sparkdelta.table.log.table_configuration import TableConfiguration
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
    """Parse a name with dots and backticks as the path of a column."""
    try:
        return tuple(name_parts(name))
    except (UnusableError, TypeError) as error:
        problem = f"{name!r} is not a column; quote names with dots in backticks"
        raise InvalidArgumentError(argument="name", problem=problem) from error


def add_columns(snapshot: Snapshot, columns: Sequence[NewColumn]) -> Alteration:
    """Return the alteration that adds columns, which are null in existing rows."""
    table = snapshot.configuration
    schema, shown = table.schema, []
    paths = [tuple(map(name_key, (*new.parent, new.field.name))) for new in columns]
    repeated = [path_text(path) for path in dict.fromkeys(paths) if paths.count(path) > 1]
    if repeated:
        raise DeltaError.of("DELTA_DUPLICATE_COLUMNS_FOUND", columns=repeated)
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
    """Return the alteration that renames a column; data files keep the physical name."""
    table = snapshot.configuration
    if not table.is_mapped:
        raise DeltaError.of("DELTA_UNSUPPORTED_RENAME_COLUMN", path=snapshot.path)
    parent, as_named = path_text(path[:-1]), path_text((*path[:-1], name))
    old = _field_path(
        table.schema,
        path,
        lambda error, _: error.named("INVALID_FIELD_NAME", name=as_named, parent=parent),
    )
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
    """Return the alteration that drops columns; data files keep their values."""
    table = snapshot.configuration
    schema, dropped = table.schema, list[ColumnPath]()
    for path in paths:
        try:
            dropped.append(_field_path(schema, path, _not_to_be_dropped))
        except ColumnNotFoundError:
            if not if_exists:
                raise
            continue
        if not table.is_mapped:
            raise DeltaError.of("DELTA_UNSUPPORTED_DROP_COLUMN", path=snapshot.path)
        schema = without_column(schema, dropped[-1])
    shown = {"columns": [path_text(path) for path in dropped]}
    return altered(snapshot, schema, "DROP COLUMNS", shown, None, checked_drop(snapshot, dropped))


def checked_drop(snapshot: Snapshot, paths: Sequence[ColumnPath]) -> Mapping[str, str]:
    """Check that columns can be dropped, and return the table's properties without them."""
    table, clustering = snapshot.configuration, clustering_columns(snapshot) or ()
    for path in paths:
        if path[0] in table.partition_columns:
            raise DeltaError.of("DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN", column=path_text(path))
        physical = physical_path_of(table, path)
        if any(column[: len(physical)] == physical for column in clustering):
            raise DeltaError.of("DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN", column=path_text(path))
    check_unused(snapshot.log.spark, table, paths, path=snapshot.path)
    return _with_statistics_columns(
        table.properties, lambda p: None if any(_is_within(p, path) for path in paths) else p
    )


def change_column(snapshot: Snapshot, path: ColumnPath, change: ColumnChange) -> Alteration:
    """Return the alteration that changes a column; no data file is written."""
    schema, shown = _with_change(snapshot, snapshot.configuration.schema, path, change)
    return altered(snapshot, schema, "CHANGE COLUMN", shown)


def change_columns(
    snapshot: Snapshot, changes: Sequence[tuple[ColumnPath, ColumnChange]]
) -> Alteration:
    """Return the alteration that changes several columns, one after another."""
    schema, shown = snapshot.configuration.schema, list[Mapping[str, object]]()
    for path, change in changes:
        schema, parameters = _with_change(snapshot, schema, path, change)
        # The fields of the column stand beside its position, not within `column` as for one column.
        column = parameters["column"]
        assert isinstance(column, Mapping)
        place = {key: value for key, value in parameters.items() if key != "column"}
        shown.append({**column, **place})
    return altered(snapshot, schema, "CHANGE COLUMNS", {"columns": shown})


def _with_change(
    snapshot: Snapshot, schema: StructType, path: ColumnPath, change: ColumnChange
) -> tuple[StructType, Mapping[str, object]]:
    """Return a schema with a column changed, and the column as history shows it."""
    if change == ColumnChange():
        raise InvalidArgumentError(argument="change_column", problem="nothing is to be changed")
    path = spelled_path(schema, path)
    before = field_at(schema, path)
    if change.data_type is not None:
        schema = retyped(snapshot, schema, path, change.data_type)
    if change != ColumnChange(data_type=change.data_type):
        path = _field_path(
            schema, path, lambda error, _: error.named("DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY")
        )
        if change.set_not_null:
            _check_not_null(schema, path)
        schema = with_changed_column(
            schema, path, lambda field: changed_field(field, change), change.position
        )
    field = field_at(schema, path) or StructField(path[-1], type_at(schema, path))
    if change.default is not None:
        check_default(snapshot.log.spark, field)
    position = {} if change.position is None else {"position": str(change.position)}
    return schema, {"column": shown_field(path, field, before), **position}


def retyped(
    snapshot: Snapshot, schema: StructType, path: ColumnPath, data_type: DataType
) -> StructType:
    """Return the schema with another type at a path, if existing rows can be read with it."""
    table, before, field = snapshot.configuration, type_at(schema, path), field_at(schema, path)
    stored = bounded_text(StructField("column", data_type))
    check_columns(StructType([stored]))
    metadata = {} if field is None else dict(field.metadata or {})

    def refused(problem: str) -> UnsupportedColumnChangeError:
        shown = metadata.get(CHAR_OR_VARCHAR, before.simpleString())
        error = UnsupportedColumnChangeError(
            column=path_text(path), before=shown, after=data_type.simpleString(), problem=problem
        )
        if isinstance(before, StructType):
            return error.named("CANNOT_UPDATE_FIELD.STRUCT_TYPE")
        is_bounded = CHAR_OR_VARCHAR in {**metadata, **stored.metadata}
        if is_bounded or not is_up_cast(before, data_type):
            error.named("NOT_SUPPORTED_CHANGE_COLUMN")
        return error

    def with_text(field: StructField) -> StructField:
        return _with_text_type(field, new)

    old, new = metadata.get(CHAR_OR_VARCHAR), stored.metadata.get(CHAR_OR_VARCHAR)
    if stored.dataType == before:
        if old == new:
            return schema
        if field is None or not is_longer_text(old, new):
            raise refused("texts can only become longer")
        return with_changed_column(schema, path, with_text)
    if isinstance(before, NullType | StringType):
        if isinstance(before, StringType):
            if not isinstance(stored.dataType, StringType) or new is not None:
                raise refused("texts can only become longer, or get another collation")
            # Expressions of the table would compare otherwise.
            check_unused(
                snapshot.log.spark, table, [path], path=snapshot.path, is_generated_too=True
            )
        schema = with_wider_type(schema, path, clean_field(stored).dataType, is_recorded=False)
        return schema if field is None else with_changed_column(schema, path, with_text)
    if not is_type_widening_enabled(table.protocol, table.properties):
        raise refused(
            "enable type widening first, set_properties({'delta.enableTypeWidening': 'true'})"
        )
    names = before.jsonValue(), stored.dataType.jsonValue()
    if not all(isinstance(n, str) for n in names) or not is_supported_type_change(*map(str, names)):
        raise refused("the type is not wider")
    if IDENTITY_START in metadata:
        raise refused("it is an identity column")
    if path[0] in table.partition_columns and isinstance(before, FloatType):
        raise refused("partition values of FLOAT are short of the digits that DOUBLE needs")
    check_unused(snapshot.log.spark, table, [path], path=snapshot.path, is_generated_too=True)
    return with_wider_type(schema, path, stored.dataType)


def _with_text_type(field: StructField, declared: str | None) -> StructField:
    metadata = {k: v for k, v in (field.metadata or {}).items() if k != CHAR_OR_VARCHAR}
    if declared is not None:
        metadata[CHAR_OR_VARCHAR] = declared
    return StructField(field.name, field.dataType, field.nullable, metadata)


def _check_not_null(schema: StructType, path: ColumnPath) -> None:
    """Refuse to make a nullable column NOT NULL: its rows are not searched for nulls."""
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
    """Return the physical path of a column, as far as it leads through structs alone."""
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
    """Return the alteration of a table that gets another schema."""
    table = snapshot.configuration
    if schema.json() == table.schema.json():
        return alteration(DefinitionChange(table, table), operation, shown)
    after = with_schema(table, schema, partition_columns=partition_columns, properties=properties)
    row_rules(after.schema, after.protocol, after.properties, path=snapshot.path)
    return alteration(DefinitionChange(table, after), operation, shown)


def new_field(column: StructField) -> StructField:
    """Return the field of a new column, without ids of another table.

    It must be nullable, and neither a generated nor an identity column.
    """
    [field] = without_ids(StructType([bounded_text(column)])).fields
    if not field.nullable:
        problem = f"{field.name} is NOT NULL, but existing rows have no value for a new column"
        operation = "NOT NULL in ALTER TABLE ADD COLUMNS"
        raise InvalidArgumentError(argument="columns", problem=problem).named(
            "DELTA_OPERATION_NOT_ALLOWED", operation=operation
        )
    if (FIELD_FEATURES.keys() - {CURRENT_DEFAULT}) & field.metadata.keys():
        problem = f"{field.name} is a generated or identity column, and existing rows have none"
        raise InvalidArgumentError(argument="columns", problem=problem)
    return field


def _field_path(
    schema: StructType,
    path: ColumnPath,
    refused: Callable[[ColumnNotFoundError, DataType], DeltaError],
) -> ColumnPath:
    """Return the path of a field as the schema spells it; refuse elements, keys and values.

    Parameters
    ----------
    refused
        Names that error, given the type at the path.
    """
    spelled = spelled_path(schema, path)
    if field_at(schema, spelled) is None:
        error = ColumnNotFoundError(column=path_text(path), available=schema.names)
        raise refused(error, type_at(schema, spelled))
    return spelled


def _not_to_be_dropped(error: ColumnNotFoundError, data_type: DataType) -> DeltaError:
    return error.named(
        "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
        data_type=data_type.simpleString(),
    )


def changed_field(field: StructField, change: ColumnChange) -> StructField:
    """Return a field with another comment, nullability or default."""
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


def shown_field(
    path: ColumnPath, field: StructField, before: StructField | None = None
) -> str | dict[str, object]:
    """Return a column as the parameters of an operation show it: with the changes of its type that
    it had before.
    """
    data_type = field.dataType.jsonValue()
    metadata = {k: v for k, v in (field.metadata or {}).items() if k != TYPE_CHANGES}
    if before is not None and TYPE_CHANGES in (before.metadata or {}):
        metadata[TYPE_CHANGES] = before.metadata[TYPE_CHANGES]
    return {
        "name": path_text(path),
        "type": data_type if isinstance(data_type, str) else field.dataType.typeName(),
        "nullable": field.nullable,
        "metadata": metadata,
    }
