"""Ids of what has no field of its own: elements of arrays, keys and values of maps.

References
----------
PROTOCOL.md#writer-requirements-for-icebergcompatv2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from sparkdelta.exceptions import ColumnMappingError
from sparkdelta.protocol.table_properties import ColumnMappingMode
from sparkdelta.schema.column_ids import fields_within, rebuilt
from sparkdelta.schema.column_mapping import physical_name

NESTED_IDS = "delta.columnMapping.nested.ids"
_AS_IN_PROTOCOL = "parquet.field.nested.ids"

ParquetPath: TypeAlias = tuple[str, ...]
"""The names of a field of a Parquet file and of those that it is in, from the root."""


def with_nested_ids(schema: StructType, *, max_id: int) -> tuple[StructType, int]:
    """The schema with an id for each element, key and value that has none yet, in the metadata of
    the nearest field above, and the highest id that was ever given.

    Parameters
    ----------
    schema
        With ids and physical names.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-icebergcompatv2
    """
    known = (_known(field).values() for field in fields_within(schema))
    last = max([max_id, *(number for numbers in known for number in numbers)])

    def assigned(field: StructField) -> StructField:
        nonlocal last
        ids = _known(field)
        for key in _keys(field):
            if key not in ids:
                last += 1
                ids[key] = last
        metadata = {**(field.metadata or {}), NESTED_IDS: ids}
        return StructField(field.name, rebuilt(field.dataType, assigned), field.nullable, metadata)

    return StructType([assigned(field) for field in schema.fields]), last


def nested_field_ids(schema: StructType) -> dict[ParquetPath, int]:
    """The ids of elements, keys and values by where they are in data files.

    Raises
    ------
    ColumnMappingError
        One of them has no id.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-icebergcompatv2
    """
    return dict(_ids_of_fields(schema, ()))


def _ids_of_fields(schema: StructType, path: ParquetPath) -> Iterator[tuple[ParquetPath, int]]:
    for field in schema.fields:
        name = physical_name(field, ColumnMappingMode.NAME)
        yield from _ids(field.dataType, (*path, name), name, _known(field))


def _ids(
    data_type: DataType, path: ParquetPath, key: str, known: Mapping[str, int]
) -> Iterator[tuple[ParquetPath, int]]:
    if isinstance(data_type, StructType):
        yield from _ids_of_fields(data_type, path)
    for name, group, inner in _parts(data_type):
        here, own = (*path, group, name), f"{key}.{name}"
        if own not in known:
            raise ColumnMappingError(problem=f"{own} has no field id")
        yield here, known[own]
        yield from _ids(inner, here, own, known)


def _parts(data_type: DataType) -> list[tuple[str, str, DataType]]:
    """Name, group of the file, and type of what is directly in a list or map."""
    if isinstance(data_type, ArrayType):
        return [("element", "list", data_type.elementType)]
    if isinstance(data_type, MapType):
        return [
            ("key", "key_value", data_type.keyType),
            ("value", "key_value", data_type.valueType),
        ]
    return []


def _keys(field: StructField) -> Iterator[str]:
    """What needs an id, down to the next fields."""

    def walked(data_type: DataType, key: str) -> Iterator[str]:
        for name, _, inner in _parts(data_type):
            yield f"{key}.{name}"
            yield from walked(inner, f"{key}.{name}")

    return walked(field.dataType, physical_name(field, ColumnMappingMode.NAME))


def _known(field: StructField) -> dict[str, int]:
    metadata = field.metadata or {}
    found = {**(metadata.get(_AS_IN_PROTOCOL) or {}), **(metadata.get(NESTED_IDS) or {})}
    return {str(key): int(number) for key, number in found.items()}
