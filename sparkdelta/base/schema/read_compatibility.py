"""Compatibility of the schema that rows were written with and the one they are read with.

References
----------
PROTOCOL.md#reader-requirements-for-type-widening,
PROTOCOL.md#reader-requirements-for-column-mapping
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

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
    return _are_compatible(written, read, modes, is_earlier=False)


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
    return _are_compatible(written, read, (written_mode, read_mode), is_earlier=True)


def _are_compatible(
    written: DataType,
    read: DataType,
    modes: tuple[ColumnMappingMode, ColumnMappingMode],
    *,
    is_earlier: bool,
) -> bool:
    """Return True if rows written with one schema can be read with another.

    Parameters
    ----------
    modes
        Of the two schemas.
    is_earlier
        True if the schema to read with is the earlier one: it may lack fields, and no type is
        widened.
    """
    if ColumnMappingMode.ID in modes and modes[0] is not modes[1]:
        return False
    if isinstance(written, StructType) and isinstance(read, StructType):
        written_fields = {field.name: field for field in written.fields}
        read_fields = {field.name: field for field in read.fields}
        fewer, more = (read_fields, written_fields) if is_earlier else (written_fields, read_fields)
        return fewer.keys() <= more.keys() and all(
            (read_fields[name].nullable or not written_fields[name].nullable)
            and _stored_name(written_fields[name], modes[0])
            == _stored_name(read_fields[name], modes[1])
            and _are_compatible(
                written_fields[name].dataType,
                read_fields[name].dataType,
                modes,
                is_earlier=is_earlier,
            )
            for name in fewer
        )
    if isinstance(written, ArrayType) and isinstance(read, ArrayType):
        return (read.containsNull or not written.containsNull) and _are_compatible(
            written.elementType, read.elementType, modes, is_earlier=is_earlier
        )
    if isinstance(written, MapType) and isinstance(read, MapType):
        return (
            (read.valueContainsNull or not written.valueContainsNull)
            and _are_compatible(written.keyType, read.keyType, modes, is_earlier=is_earlier)
            and _are_compatible(written.valueType, read.valueType, modes, is_earlier=is_earlier)
        )
    if written == read or is_earlier:
        return written == read
    return is_supported_type_change(str(written.jsonValue()), str(read.jsonValue()))


def _stored_name(field: StructField, mode: ColumnMappingMode) -> str:
    """Return the name of a column in data files.

    It is the column's own where mapping by name was enabled on a table that has files.
    """
    if mode is ColumnMappingMode.NONE:
        return field.name
    return str((field.metadata or {}).get(PHYSICAL_NAME, field.name))
