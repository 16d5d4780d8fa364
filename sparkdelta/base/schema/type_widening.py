"""Validation of the type changes recorded in a table's schema.

References
----------
PROTOCOL.md#reader-requirements-for-type-widening
"""

from __future__ import annotations

from pyspark.sql.types import DataType

from sparkdelta.base.protocol.type_changes import is_supported_type_change
from sparkdelta.base.schema.type_folds import fields_within
from sparkdelta.exceptions import DeltaError

TYPE_CHANGES = "delta.typeChanges"


def check_type_changes(schema: DataType) -> None:
    """Raise if the schema records a type change that cannot be read."""
    for path, field, _ in fields_within(schema):
        for change in (field.metadata or {}).get(TYPE_CHANGES, ()):
            _check(change, ".".join(path))


def _check(change: object, column: str) -> None:
    if not isinstance(change, dict) or not {"fromType", "toType"} <= change.keys():
        raise DeltaError.of(
            "DELTA_INVALID_SCHEMA",
            problem=f"{TYPE_CHANGES} of column {column!r} is malformed: {change}",
        )
    from_type, to_type = str(change["fromType"]), str(change["toType"])
    if not is_supported_type_change(from_type, to_type):
        path = ".".join(filter(None, (column, change.get("fieldPath"))))
        raise DeltaError.of(
            "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
            field=path,
            from_type=from_type,
            to_type=to_type,
        )
