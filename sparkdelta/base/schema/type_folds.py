"""Traversal and transformation of nested types.

A leaf is a type that contains no other type, including VARIANT, strings of any collation and
user-defined types.

References
----------
PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from sparkdelta.base.protocol.column_names import ColumnPath

_T = TypeVar("_T")


class FieldWithin(NamedTuple):
    """A field at any level of a type.

    Attributes
    ----------
    path
        The field names from the outermost to the field itself. Array elements, map keys and map
        values do not add a name.
    repeated
        True if the field is inside an array or a map.
    """

    path: ColumnPath
    field: StructField
    repeated: bool


def parts(data_type: DataType) -> list[tuple[str, DataType]]:
    """Return the types directly inside an array or a map, by the protocol's names for them."""
    if isinstance(data_type, ArrayType):
        return [("element", data_type.elementType)]
    if isinstance(data_type, MapType):
        return [("key", data_type.keyType), ("value", data_type.valueType)]
    return []


def parts_together(left: DataType, right: DataType) -> list[tuple[str, DataType, DataType]]:
    """Return the `parts` of two arrays or of two maps in pairs; an empty list for other types."""
    ones, others = parts(left), parts(right)
    if len(ones) != len(others):
        return []
    return [(name, one, other) for (name, one), (_, other) in zip(ones, others, strict=True)]


def with_parts(data_type: DataType, types: Sequence[DataType]) -> DataType:
    """Return an array or map type with other types for its `parts`; any other type unchanged."""
    if isinstance(data_type, ArrayType):
        return ArrayType(types[0], data_type.containsNull)
    if isinstance(data_type, MapType):
        return MapType(types[0], types[1], data_type.valueContainsNull)
    return data_type


def types_within(
    data_type: DataType, path: ColumnPath = ()
) -> Iterator[tuple[ColumnPath, DataType]]:
    """Yield a type and all types inside it, outer types first, each with the path of its field."""
    yield path, data_type
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            yield from types_within(field.dataType, (*path, field.name))
    for _, part in parts(data_type):
        yield from types_within(part, path)


def fields_within(
    data_type: DataType, path: ColumnPath = (), *, repeated: bool = False
) -> Iterator[FieldWithin]:
    """Yield all fields of a type at every level, each before the fields inside it."""
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            inner = (*path, field.name)
            yield FieldWithin(inner, field, repeated)
            yield from fields_within(field.dataType, inner, repeated=repeated)
    for _, part in parts(data_type):
        yield from fields_within(part, path, repeated=True)


def _identity(value: _T) -> _T:
    return value


def transformed(
    data_type: DataType,
    *,
    field: Callable[[StructField], StructField] = _identity,
    leaf: Callable[[DataType], DataType] = _identity,
    nullable: bool = False,
) -> DataType:
    """Return a type with its fields and leaves transformed at every level.

    Parameters
    ----------
    field
        A function that returns a field with another name, nullability or metadata. The type of the
        returned field is transformed afterwards; fields are visited in the order of
        `fields_within`.
    leaf
        A function that returns the replacement of a leaf type.
    nullable
        True if array elements and map values become nullable.
    """

    def transform_type(inner: DataType) -> DataType:
        if isinstance(inner, StructType):
            return StructType([transform_field(field(member)) for member in inner.fields])
        if isinstance(inner, ArrayType):
            return ArrayType(transform_type(inner.elementType), nullable or inner.containsNull)
        if isinstance(inner, MapType):
            key, value = transform_type(inner.keyType), transform_type(inner.valueType)
            return MapType(key, value, nullable or inner.valueContainsNull)
        return leaf(inner)

    def transform_field(member: StructField) -> StructField:
        data_type = transform_type(member.dataType)
        if data_type is member.dataType:
            return member
        return StructField(member.name, data_type, member.nullable, member.metadata)

    return transform_type(data_type)


def with_fields(schema: StructType, field: Callable[[StructField], StructField]) -> StructType:
    """Return a schema with its fields transformed at every level, see `transformed`."""
    result = transformed(schema, field=field)
    assert isinstance(result, StructType)
    return result
