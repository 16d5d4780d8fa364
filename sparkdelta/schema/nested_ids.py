"""Ids of what has no field of its own: elements of arrays, keys and values of maps.

References
----------
PROTOCOL.md#writer-requirements-for-icebergcompatv2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from sparkdelta.exceptions import ColumnMappingError
from sparkdelta.protocol.table_properties import ColumnMappingMode
from sparkdelta.schema.column_mapping import physical_name
from sparkdelta.schema.type_folds import fields_within, parts, with_fields

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
    known = (_known(field).values() for _, field, _ in fields_within(schema))
    last = max([max_id, *(number for numbers in known for number in numbers)])

    def assigned(field: StructField) -> StructField:
        nonlocal last
        ids = _known(field)
        for key in _keys(field):
            if key not in ids:
                last += 1
                ids[key] = last
        metadata = {**(field.metadata or {}), NESTED_IDS: ids}
        return StructField(field.name, field.dataType, field.nullable, metadata)

    return with_fields(schema, assigned), last


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
    group = "list" if isinstance(data_type, ArrayType) else "key_value"
    for name, inner in parts(data_type):
        here, own = (*path, group, name), f"{key}.{name}"
        if own not in known:
            raise ColumnMappingError(problem=f"{own} has no field id")
        yield here, known[own]
        yield from _ids(inner, here, own, known)


def _keys(field: StructField) -> Iterator[str]:
    """What needs an id, down to the next fields."""

    def walked(data_type: DataType, key: str) -> Iterator[str]:
        for name, inner in parts(data_type):
            yield f"{key}.{name}"
            yield from walked(inner, f"{key}.{name}")

    return walked(field.dataType, physical_name(field, ColumnMappingMode.NAME))


def _known(field: StructField) -> dict[str, int]:
    metadata = field.metadata or {}
    found = {**(metadata.get(_AS_IN_PROTOCOL) or {}), **(metadata.get(NESTED_IDS) or {})}
    return {str(key): int(number) for key, number in found.items()}
