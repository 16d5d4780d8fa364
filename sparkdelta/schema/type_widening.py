"""The type changes a table's schema records, and whether this engine can read across them."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sparkdelta.exceptions import InvalidSchemaError, UnsupportedTypeChangeError
from sparkdelta.protocol.type_changes import is_supported_type_change

TYPE_CHANGES = "delta.typeChanges"


def check_type_changes(schema: DataType, column: str = "") -> None:
    """Refuse a table whose history holds a type change that a reader does not know how to convert.

    Raises
    ------
    UnsupportedTypeChangeError

    References
    ----------
    PROTOCOL.md#reader-requirements-for-type-widening
    """
    if isinstance(schema, StructType):
        for field in schema.fields:
            name = f"{column}.{field.name}".lstrip(".")
            for change in (field.metadata or {}).get(TYPE_CHANGES, ()):
                _check(change, name)
            check_type_changes(field.dataType, name)
    elif isinstance(schema, ArrayType):
        check_type_changes(schema.elementType, column)
    elif isinstance(schema, MapType):
        check_type_changes(schema.keyType, column)
        check_type_changes(schema.valueType, column)


def _check(change: object, column: str) -> None:
    if not isinstance(change, dict) or not {"fromType", "toType"} <= change.keys():
        raise InvalidSchemaError(
            problem=f"{TYPE_CHANGES} of column {column!r} is malformed: {change}"
        )
    from_type, to_type = str(change["fromType"]), str(change["toType"])
    if not is_supported_type_change(from_type, to_type):
        path = ".".join(filter(None, (column, change.get("fieldPath"))))
        raise UnsupportedTypeChangeError(field=path, from_type=from_type, to_type=to_type)
