"""Field ids of array elements, map keys and map values, which have no StructField.

References
----------
PROTOCOL.md#writer-requirements-for-icebergcompatv2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.column_mapping import physical_name
from sparkdelta.base.schema.type_folds import fields_within, parts, with_fields
from sparkdelta.exceptions import DeltaError

NESTED_IDS = "delta.columnMapping.nested.ids"
_PROTOCOL_KEY = "parquet.field.nested.ids"

ParquetPath: TypeAlias = tuple[str, ...]
"""The names from the root of a Parquet schema to one of its fields."""


def with_nested_ids(schema: StructType, *, max_id: int) -> tuple[StructType, int]:
    """Assign an id to every element, key and value without one, in the nearest enclosing field.

    Returns the schema, which must have column ids, and the highest id assigned so far.
    """
    existing = (_assigned_ids(field).values() for _, field, _ in fields_within(schema))
    last = max([max_id, *(number for numbers in existing for number in numbers)])

    def assigned(field: StructField) -> StructField:
        nonlocal last
        ids = _assigned_ids(field)
        for key in _keys(field):
            if key not in ids:
                last += 1
                ids[key] = last
        metadata = {**(field.metadata or {}), NESTED_IDS: ids}
        return StructField(field.name, field.dataType, field.nullable, metadata)

    return with_fields(schema, assigned), last


def nested_field_ids(schema: StructType) -> dict[ParquetPath, int]:
    """Return the ids of elements, keys and values by their path in data files."""
    return dict(_ids_of_fields(schema, ()))


def _ids_of_fields(schema: StructType, path: ParquetPath) -> Iterator[tuple[ParquetPath, int]]:
    for field in schema.fields:
        name = physical_name(field, ColumnMappingMode.NAME)
        yield from _ids(field.dataType, (*path, name), name, _assigned_ids(field))


def _ids(
    data_type: DataType, path: ParquetPath, key: str, ids: Mapping[str, int]
) -> Iterator[tuple[ParquetPath, int]]:
    if isinstance(data_type, StructType):
        yield from _ids_of_fields(data_type, path)
    group = "list" if isinstance(data_type, ArrayType) else "key_value"
    for name, inner in parts(data_type):
        inner_path, inner_key = (*path, group, name), f"{key}.{name}"
        if inner_key not in ids:
            raise DeltaError.of(
                "DELTA_INVALID_COLUMN_MAPPING", problem=f"{inner_key} has no field id"
            )
        yield inner_path, ids[inner_key]
        yield from _ids(inner, inner_path, inner_key, ids)


def _keys(field: StructField) -> Iterator[str]:
    """Yield the keys of the nested ids of a field, except inside nested fields."""

    def walked(data_type: DataType, key: str) -> Iterator[str]:
        for name, inner in parts(data_type):
            yield f"{key}.{name}"
            yield from walked(inner, f"{key}.{name}")

    return walked(field.dataType, physical_name(field, ColumnMappingMode.NAME))


def _assigned_ids(field: StructField) -> dict[str, int]:
    metadata = field.metadata or {}
    ids = {**(metadata.get(_PROTOCOL_KEY) or {}), **(metadata.get(NESTED_IDS) or {})}
    return {str(key): int(number) for key, number in ids.items()}
