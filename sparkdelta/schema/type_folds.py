"""Walks over nested types, and their copies with other fields or leaves.

A leaf is a type that holds no other: VARIANT, texts of any collation and user-defined types too.

References
----------
PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from sparkdelta.protocol.predicates import ColumnPath

_T = TypeVar("_T")


class FieldWithin(NamedTuple):
    """A field somewhere in a type.

    Attributes
    ----------
    path
        The names of the field and of those that it is in, from the outermost. Elements, keys and
        values have no names.
    repeated
        Whether it is in an array or a map.
    """

    path: ColumnPath
    field: StructField
    repeated: bool


def parts(data_type: DataType) -> list[tuple[str, DataType]]:
    """The types directly in an array or a map, by the names that the protocol has for them."""
    if isinstance(data_type, ArrayType):
        return [("element", data_type.elementType)]
    if isinstance(data_type, MapType):
        return [("key", data_type.keyType), ("value", data_type.valueType)]
    return []


def parts_together(left: DataType, right: DataType) -> list[tuple[str, DataType, DataType]]:
    """The `parts` of two arrays, or of two maps, side by side; of any other two types none."""
    ones, others = parts(left), parts(right)
    if len(ones) != len(others):
        return []
    return [(name, one, other) for (name, one), (_, other) in zip(ones, others, strict=True)]


def with_parts(data_type: DataType, types: Sequence[DataType]) -> DataType:
    """An array or a map with other types for its `parts`; any other type as it is."""
    if isinstance(data_type, ArrayType):
        return ArrayType(types[0], data_type.containsNull)
    if isinstance(data_type, MapType):
        return MapType(types[0], types[1], data_type.valueContainsNull)
    return data_type


def types_within(
    data_type: DataType, path: ColumnPath = ()
) -> Iterator[tuple[ColumnPath, DataType]]:
    """A type and all types in it, with the field that each is in; outer ones first."""
    yield path, data_type
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            yield from types_within(field.dataType, (*path, field.name))
    for _, part in parts(data_type):
        yield from types_within(part, path)


def fields_within(
    data_type: DataType, path: ColumnPath = (), *, repeated: bool = False
) -> Iterator[FieldWithin]:
    """All fields of a type at every level, each before those that are in it."""
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            inner = (*path, field.name)
            yield FieldWithin(inner, field, repeated)
            yield from fields_within(field.dataType, inner, repeated=repeated)
    for _, part in parts(data_type):
        yield from fields_within(part, path, repeated=True)


def _same(value: _T) -> _T:
    return value


def transformed(
    data_type: DataType,
    *,
    field: Callable[[StructField], StructField] = _same,
    leaf: Callable[[DataType], DataType] = _same,
    nullable: bool = False,
) -> DataType:
    """A type with its fields and leaves changed at every level.

    Parameters
    ----------
    field
        Takes a field and returns it with another name, nullability or metadata. What its type
        holds is changed afterwards: fields are visited as `fields_within` lists them.
    leaf
        Takes a type that holds no other.
    nullable
        Whether elements of arrays and values of maps become nullable.
    """

    def of_type(inner: DataType) -> DataType:
        if isinstance(inner, StructType):
            return StructType([of_field(field(member)) for member in inner.fields])
        if isinstance(inner, ArrayType):
            return ArrayType(of_type(inner.elementType), nullable or inner.containsNull)
        if isinstance(inner, MapType):
            key, value = of_type(inner.keyType), of_type(inner.valueType)
            return MapType(key, value, nullable or inner.valueContainsNull)
        return leaf(inner)

    def of_field(member: StructField) -> StructField:
        data_type = of_type(member.dataType)
        if data_type is member.dataType:
            return member
        return StructField(member.name, data_type, member.nullable, member.metadata)

    return of_type(data_type)


def with_fields(schema: StructType, field: Callable[[StructField], StructField]) -> StructType:
    """A schema with its fields changed at every level, see `transformed`."""
    found = transformed(schema, field=field)
    assert isinstance(found, StructType)
    return found
