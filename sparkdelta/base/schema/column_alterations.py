"""Schemas with a column added, renamed, moved, dropped or of another type, at any level.

A path leads through structs by the names of fields, in any case, and through arrays and maps by
`element`, `key` and `value`.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#type-change-metadata
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql.types import DataType, StructField, StructType

from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.schema.table_schema import quoted, quoted_path
from sparkdelta.base.schema.type_folds import parts, with_parts
from sparkdelta.base.schema.type_widening import TYPE_CHANGES
from sparkdelta.error_names import sql_type
from sparkdelta.exceptions import ColumnNotFoundError, DeltaError


@dataclass(frozen=True, slots=True)
class Position:
    """The place of a column in its struct: after another one, or first if that is None."""

    after: str | None = None

    def __str__(self) -> str:
        return "FIRST" if self.after is None else f"AFTER {self.after}"


def path_text(path: ColumnPath) -> str:
    """Return a path as SQL, with backticks where they are needed."""
    return ".".join(n if n.isidentifier() and n.isascii() else quoted(n) for n in path)


def spelled_path(schema: StructType, path: ColumnPath) -> ColumnPath:
    """Return a path as the schema spells it."""
    names: list[str] = []
    data_type: DataType = schema
    for name in path:
        found = {name_key(n): (n, inner) for n, inner in _members(data_type)}.get(name_key(name))
        if found is None:
            available = [n for n, _ in _members(data_type)]
            error = ColumnNotFoundError(column=path_text(path), available=available)
            if not isinstance(data_type, StructType):
                parent = path_text(tuple(names))
                error.named("INVALID_FIELD_NAME", name=path_text(path), parent=parent)
            raise error
        spelled, data_type = found
        names.append(spelled)
    return tuple(names)


def type_at(schema: StructType, path: ColumnPath) -> DataType:
    """Return the type at a path that is spelled as in the schema."""
    data_type: DataType = schema
    for name in path:
        data_type = dict(_members(data_type))[name]
    return data_type


def field_at(schema: StructType, path: ColumnPath) -> StructField | None:
    """Return the field at a path spelled as in the schema; None for elements, keys and values."""
    parent = type_at(schema, path[:-1])
    return parent[path[-1]] if isinstance(parent, StructType) else None


def with_column(
    schema: StructType, parent: ColumnPath, field: StructField, position: Position | None
) -> StructType:
    """Return the schema with a new column, the last one of its struct without a position."""

    def added(struct: StructType) -> StructType:
        _check_new(struct, (*parent, field.name), "add")
        last = Position(struct.names[-1] if struct.names else None)
        try:
            return _placed(struct.fields, field, position or last, parent)
        except ColumnNotFoundError as error:
            raise error.named("FIELD_NOT_FOUND", name=field.name) from None

    return _with_struct(schema, parent, added, field.name)


def without_column(schema: StructType, path: ColumnPath) -> StructType:
    """Return the schema without a column."""

    def dropped(struct: StructType) -> StructType:
        rest = [field for field in struct.fields if field.name != path[-1]]
        if not rest:
            raise DeltaError.of(
                "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
                column=path_text(path),
                schema=struct.treeString(),
            )
        return StructType(rest)

    return _with_struct(schema, path[:-1], dropped)


def with_renamed_column(schema: StructType, path: ColumnPath, name: str) -> StructType:
    """Return the schema with another name for a column."""

    def renamed(struct: StructType) -> StructType:
        others = StructType([field for field in struct.fields if field.name != path[-1]])
        _check_new(others, (*path[:-1], name), "rename")
        return StructType(
            [
                StructField(name, f.dataType, f.nullable, f.metadata) if f.name == path[-1] else f
                for f in struct.fields
            ]
        )

    return _with_struct(schema, path[:-1], renamed)


def with_changed_column(
    schema: StructType,
    path: ColumnPath,
    change: Callable[[StructField], StructField],
    position: Position | None = None,
) -> StructType:
    """Return the schema with a column changed in place, or moved."""

    def changed(struct: StructType) -> StructType:
        fields = [change(field) if field.name == path[-1] else field for field in struct.fields]
        if position is None or name_key(position.after or "") == name_key(path[-1]):
            return StructType(fields)  # after itself a column stays where it is
        others = [field for field in fields if field.name != path[-1]]
        return _placed(others, change(struct[path[-1]]), position, path[:-1])

    return _with_struct(schema, path[:-1], changed)


def with_wider_type(
    schema: StructType, path: ColumnPath, data_type: DataType, *, is_recorded: bool = True
) -> StructType:
    """Return the schema with another type at a path.

    The nearest field records the change if `is_recorded`: readers need not know of some changes.
    """
    widened, _ = _widened(schema, path, data_type, () if is_recorded else None)
    assert isinstance(widened, StructType)
    return widened


def _widened(
    before: DataType, path: ColumnPath, after: DataType, trail: ColumnPath | None
) -> tuple[DataType, dict[str, object] | None]:
    """Return a type with the type at a path replaced, and the change that its field must record.

    The change is None without a trail, or if a field inside records it.
    """
    if not path:
        if trail is None:
            return after, None
        types = {"fromType": before.jsonValue(), "toType": after.jsonValue()}
        return after, {**types, **({"fieldPath": ".".join(trail)} if trail else {})}
    name, rest = path[0], path[1:]
    if not isinstance(before, StructType):
        inner_trail = None if trail is None else (*trail, name)
        changed = {n: _widened(t, rest, after, inner_trail) for n, t in parts(before) if n == name}
        inner = [changed[n][0] if n == name else t for n, t in parts(before)]
        return with_parts(before, inner), changed[name][1]
    fields = []
    for field in before.fields:
        if field.name != name:
            fields.append(field)
            continue
        data_type, change = _widened(field.dataType, rest, after, None if trail is None else ())
        metadata = dict(field.metadata or {})
        if change is not None:
            metadata[TYPE_CHANGES] = [*metadata.get(TYPE_CHANGES, ()), change]
        fields.append(StructField(name, data_type, field.nullable, metadata))
    return StructType(fields), None


def _members(data_type: DataType) -> list[tuple[str, DataType]]:
    if isinstance(data_type, StructType):
        return [(field.name, field.dataType) for field in data_type.fields]
    return parts(data_type)


def _with_struct(
    schema: StructType,
    path: ColumnPath,
    change: Callable[[StructType], StructType],
    name: str | None = None,
) -> StructType:
    """Return the schema with the struct at a path replaced by the result of a function.

    Parameters
    ----------
    name
        The name of the field that the function changes, for errors.
    """

    def changed(data_type: DataType, rest: ColumnPath) -> DataType:
        if not rest:
            if not isinstance(data_type, StructType):
                raise DeltaError.of(
                    "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT",
                    column=path_text(path),
                    data_type=data_type.simpleString(),
                    name=name or path[-1],
                )
            return change(data_type)
        if isinstance(data_type, StructType):
            return StructType(
                [
                    StructField(f.name, changed(f.dataType, rest[1:]), f.nullable, f.metadata)
                    if f.name == rest[0]
                    else f
                    for f in data_type.fields
                ]
            )
        inner = [changed(t, rest[1:]) if n == rest[0] else t for n, t in parts(data_type)]
        return with_parts(data_type, inner)

    result = changed(schema, path)
    assert isinstance(result, StructType)
    return result


def _check_new(struct: StructType, path: ColumnPath, operation: str) -> None:
    if name_key(path[-1]) in (name_key(name) for name in struct.names):
        error = DeltaError.of("DELTA_DUPLICATE_COLUMNS_FOUND", columns=(path_text(path),))
        raise error.named(
            "FIELD_ALREADY_EXISTS",
            op=operation,
            fieldNames=quoted_path(path),
            struct=f'"{sql_type(struct.simpleString())}"',
        )


def _placed(
    fields: list[StructField], field: StructField, position: Position, parent: ColumnPath
) -> StructType:
    if position.after is None:
        return StructType([field, *fields])
    places = {name_key(f.name): number for number, f in enumerate(fields, 1)}
    place = places.get(name_key(position.after))
    if place is None:
        column, available = path_text((*parent, position.after)), [f.name for f in fields]
        raise ColumnNotFoundError(column=column, available=available)
    return StructType([*fields[:place], field, *fields[place:]])
