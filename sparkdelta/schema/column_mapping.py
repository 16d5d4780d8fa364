"""Logical columns to the names and ids that data files use."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import DataType, StructField, StructType

from sparkdelta.exceptions import ColumnMappingError
from sparkdelta.protocol.table_properties import ColumnMappingMode
from sparkdelta.schema.type_folds import transformed, with_fields

PHYSICAL_NAME = "delta.columnMapping.physicalName"
COLUMN_ID = "delta.columnMapping.id"
PARQUET_FIELD_ID = "parquet.field.id"


def physical_name(field: StructField, mode: ColumnMappingMode) -> str:
    """The name of a column in partition values, statistics and, but for `id` mode, in data files.

    Raises
    ------
    ColumnMappingError
        The mode asks for a physical name and the field has none.

    References
    ----------
    PROTOCOL.md#reader-requirements-for-column-mapping
    """
    if mode is ColumnMappingMode.NONE:
        return field.name
    name = (field.metadata or {}).get(PHYSICAL_NAME)
    if not isinstance(name, str):
        raise ColumnMappingError(
            problem=f"column {field.name!r} has no {PHYSICAL_NAME}, which column mapping mode "
            f"{mode.value} requires"
        )
    return name


def physical_path(
    schema: StructType, path: tuple[str, ...], mode: ColumnMappingMode
) -> tuple[str, ...]:
    """The physical names of a column and of the struct fields inside it."""
    names: list[str] = []
    data_type: DataType = schema
    for name in path:
        assert isinstance(data_type, StructType)
        field = data_type[name]
        names.append(physical_name(field, mode))
        data_type = field.dataType
    return tuple(names)


def physical_type(data_type: DataType, mode: ColumnMappingMode) -> DataType:
    """The type as a data file spells it: physical names at every level and, in `id` mode, field ids
    under the metadata key that Spark's Parquet reader looks at. All of it is nullable: what a file
    holds is the writer's promise, and an optimizer that trusts a broken one gives wrong rows.

    A field without an id in `id` mode is matched by its physical name, as no file can hold its id.
    """

    def spelled(field: StructField) -> StructField:
        metadata = {}
        if mode is ColumnMappingMode.ID and COLUMN_ID in (field.metadata or {}):
            metadata[PARQUET_FIELD_ID] = field.metadata[COLUMN_ID]
        return StructField(physical_name(field, mode), field.dataType, True, metadata)

    return transformed(data_type, field=spelled, nullable=True)


def physical_field(field: StructField, mode: ColumnMappingMode) -> StructField:
    """One field as a data file spells it, see `physical_type`."""
    schema = physical_type(StructType([field]), mode)
    assert isinstance(schema, StructType)
    return schema.fields[0]


def named_by_file(field: StructField, names: Mapping[int, str]) -> StructField:
    """A field of `physical_field` in `id` mode with the names that a file gives to its ids.

    An id that the file does not hold gets a name that no file holds, so that it reads as null.
    """

    def renamed(inner: StructField) -> StructField:
        field_id = (inner.metadata or {}).get(PARQUET_FIELD_ID)
        name = inner.name if field_id is None else names.get(field_id, f"__no_field_{field_id}")
        return StructField(name, inner.dataType, inner.nullable)

    return with_fields(StructType([field]), renamed).fields[0]
