"""Compatibility of the schema that rows were written with and the one they are read with."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sparkdelta.protocol.table_properties import ColumnMappingMode
from sparkdelta.protocol.type_changes import is_supported_type_change
from sparkdelta.schema.column_mapping import physical_name


def is_read_compatible(
    written: DataType, read: DataType, mode: ColumnMappingMode = ColumnMappingMode.NONE
) -> bool:
    """True if all that was written with one schema has its place in another: columns may only be
    added, types widened, and `NOT NULL` dropped.

    Parameters
    ----------
    mode
        Of both schemas: columns of one name must have one physical name, too.

    Examples
    --------
    >>> from pyspark.sql.types import StructType
    >>> a, b = (StructType.fromDDL(ddl) for ddl in ("x INT", "x INT, y INT"))
    >>> is_read_compatible(a, b), is_read_compatible(b, a)
    (True, False)

    References
    ----------
    PROTOCOL.md#reader-requirements-for-type-widening,
    PROTOCOL.md#reader-requirements-for-column-mapping
    """
    if isinstance(written, StructType) and isinstance(read, StructType):
        by_name = {field.name.lower(): field for field in read.fields}
        return all(
            (new := by_name.get(old.name.lower())) is not None
            and old.name == new.name
            and (new.nullable or not old.nullable)
            and physical_name(old, mode) == physical_name(new, mode)
            and is_read_compatible(old.dataType, new.dataType, mode)
            for old in written.fields
        )
    if isinstance(written, ArrayType) and isinstance(read, ArrayType):
        return (read.containsNull or not written.containsNull) and is_read_compatible(
            written.elementType, read.elementType, mode
        )
    if isinstance(written, MapType) and isinstance(read, MapType):
        return (
            (read.valueContainsNull or not written.valueContainsNull)
            and is_read_compatible(written.keyType, read.keyType, mode)
            and is_read_compatible(written.valueType, read.valueType, mode)
        )
    return written == read or is_supported_type_change(
        str(written.jsonValue()), str(read.jsonValue())
    )
