"""Column mapping: physical names and field ids of logical columns.

References
----------
PROTOCOL.md#reader-requirements-for-column-mapping
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import DataType, StructField, StructType

from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.table_schema import without_collations
from sparkdelta.base.schema.type_folds import transformed, with_fields
from sparkdelta.exceptions import DeltaError

PHYSICAL_NAME = "delta.columnMapping.physicalName"
COLUMN_ID = "delta.columnMapping.id"
PARQUET_FIELD_ID = "parquet.field.id"


def physical_name(field: StructField, mode: ColumnMappingMode) -> str:
    """Return the name of a column in partition values, statistics and (not in `id` mode) files."""
    if mode is ColumnMappingMode.NONE:
        return field.name
    name = (field.metadata or {}).get(PHYSICAL_NAME)
    if not isinstance(name, str):
        raise DeltaError.of(
            "DELTA_INVALID_COLUMN_MAPPING",
            problem=f"column {field.name!r} has no {PHYSICAL_NAME}, which column mapping mode "
            f"{mode.value} requires",
        )
    return name


def physical_path(
    schema: StructType, path: tuple[str, ...], mode: ColumnMappingMode
) -> tuple[str, ...]:
    """Return the physical names along the path of a column or nested struct field."""
    names: list[str] = []
    data_type: DataType = schema
    for name in path:
        assert isinstance(data_type, StructType)
        field = data_type[name]
        names.append(physical_name(field, mode))
        data_type = field.dataType
    return tuple(names)


def physical_type(data_type: DataType, mode: ColumnMappingMode) -> DataType:
    """Return a type as data files store it: physical names at every level and plain strings.

    In `id` mode, it has field ids under the metadata key that Spark's Parquet reader uses; a field
    without an id is matched by its physical name, since no file can contain its id. Everything is
    nullable: a file may contain nulls that the schema forbids, and an optimizer that relies on
    non-nullability would return wrong rows.
    """

    def physical(field: StructField) -> StructField:
        metadata = {}
        if mode is ColumnMappingMode.ID and COLUMN_ID in (field.metadata or {}):
            metadata[PARQUET_FIELD_ID] = field.metadata[COLUMN_ID]
        return StructField(physical_name(field, mode), field.dataType, True, metadata)

    return without_collations(transformed(data_type, field=physical, nullable=True))


def physical_field(field: StructField, mode: ColumnMappingMode) -> StructField:
    """Return one field as data files store it, see `physical_type`."""
    schema = physical_type(StructType([field]), mode)
    assert isinstance(schema, StructType)
    return schema.fields[0]


def named_by_file(field: StructField, names: Mapping[int, str]) -> StructField:
    """Rename a field from `physical_field` in `id` mode to the names that a file uses for its ids.

    An id that the file does not contain gets a name that does not exist in the file, so that the
    column reads as null.
    """

    def renamed(inner: StructField) -> StructField:
        field_id = (inner.metadata or {}).get(PARQUET_FIELD_ID)
        name = inner.name if field_id is None else names.get(field_id, f"__no_field_{field_id}")
        return StructField(name, inner.dataType, inner.nullable)

    return with_fields(StructType([field]), renamed).fields[0]
