"""Compatibility of the schema that rows were written with and the one they are read with.

References
----------
PROTOCOL.md#reader-requirements-for-type-widening,
PROTOCOL.md#reader-requirements-for-column-mapping
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.protocol.type_changes import is_supported_type_change
from sparkdelta.base.schema.column_mapping import PHYSICAL_NAME


def is_read_compatible(
    written: DataType,
    read: DataType,
    written_mode: ColumnMappingMode = ColumnMappingMode.NONE,
    read_mode: ColumnMappingMode = ColumnMappingMode.NONE,
) -> bool:
    """Return True if all rows written with one schema can be read with another.

    Columns may only be added, types widened, and `NOT NULL` dropped. With the column mapping modes
    of the schemas, columns of one name must have one name in data files, too, and field ids in
    both or in none.
    """
    modes = written_mode, read_mode
    if ColumnMappingMode.ID in modes and written_mode is not read_mode:
        return False
    if isinstance(written, StructType) and isinstance(read, StructType):
        by_name = {name_key(field.name): field for field in read.fields}
        return all(
            (new := by_name.get(name_key(old.name))) is not None
            and old.name == new.name
            and (new.nullable or not old.nullable)
            and _stored_name(old, written_mode) == _stored_name(new, read_mode)
            and is_read_compatible(old.dataType, new.dataType, *modes)
            for old in written.fields
        )
    if isinstance(written, ArrayType) and isinstance(read, ArrayType):
        return (read.containsNull or not written.containsNull) and is_read_compatible(
            written.elementType, read.elementType, *modes
        )
    if isinstance(written, MapType) and isinstance(read, MapType):
        return (
            (read.valueContainsNull or not written.valueContainsNull)
            and is_read_compatible(written.keyType, read.keyType, *modes)
            and is_read_compatible(written.valueType, read.valueType, *modes)
        )
    return written == read or is_supported_type_change(
        str(written.jsonValue()), str(read.jsonValue())
    )


def is_readable_as(
    read: DataType,
    written: DataType,
    read_mode: ColumnMappingMode = ColumnMappingMode.NONE,
    written_mode: ColumnMappingMode = ColumnMappingMode.NONE,
) -> bool:
    """Return True if rows written with one schema can be read with an earlier one.

    The later schema may only have more fields, and the names in data files and field ids are as in
    `is_read_compatible`. No type may be wider, and nothing null that was not.
    """
    modes = read_mode, written_mode
    if ColumnMappingMode.ID in modes and read_mode is not written_mode:
        return False
    if isinstance(read, StructType) and isinstance(written, StructType):
        by_name = {field.name: field for field in written.fields}
        return all(
            (new := by_name.get(old.name)) is not None
            and (old.nullable or not new.nullable)
            and _stored_name(old, read_mode) == _stored_name(new, written_mode)
            and is_readable_as(old.dataType, new.dataType, *modes)
            for old in read.fields
        )
    if isinstance(read, ArrayType) and isinstance(written, ArrayType):
        return (read.containsNull or not written.containsNull) and is_readable_as(
            read.elementType, written.elementType, *modes
        )
    if isinstance(read, MapType) and isinstance(written, MapType):
        return (
            (read.valueContainsNull or not written.valueContainsNull)
            and is_readable_as(read.keyType, written.keyType, *modes)
            and is_readable_as(read.valueType, written.valueType, *modes)
        )
    return read == written


def _stored_name(field: StructField, mode: ColumnMappingMode) -> str:
    """Return the name of a column in data files.

    It is the column's own where mapping by name was enabled on a table that has files.
    """
    if mode is ColumnMappingMode.NONE:
        return field.name
    return str((field.metadata or {}).get(PHYSICAL_NAME, field.name))
