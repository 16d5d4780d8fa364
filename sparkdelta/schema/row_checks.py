"""SQL conditions for values that the column types forbid, at every level.

References
----------
PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from sparkdelta.exceptions import (
    ConstraintError,
    NotNullViolatedError,
    TextTooLongError,
    WriteNotImplementedError,
)
from sparkdelta.schema.table_schema import quoted

CHAR_OR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"  # Spark's metadata key for the declared type
_BOUNDED = re.compile(r"(?:var)?char\((?P<length>\d+)\)", re.IGNORECASE)


def is_longer_text(before: str | None, after: str | None) -> bool:
    """True if every text of one declared type is a value of another; None is STRING.

    Examples
    --------
    >>> is_longer_text("char(3)", "varchar(3)"), is_longer_text("varchar(3)", "char(9)")
    (True, False)
    >>> is_longer_text("varchar(3)", None), is_longer_text(None, "varchar(3)")
    (True, False)
    """
    if after is None:
        return True
    old, new = (_BOUNDED.fullmatch(text or "") for text in (before, after))
    if old is None or new is None or not after.lower().startswith("varchar"):
        return False
    return int(old["length"]) <= int(new["length"])


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A condition that no row may meet, and the error to raise if one does.

    Attributes
    ----------
    condition
        A SQL expression that is true for an invalid row.
    """

    condition: str
    error: ConstraintError


def forbidden_values(schema: StructType, *, path: str) -> list[Forbidden]:
    """Return checks for nulls in non-nullable columns, fields, elements and values, and for strings
    longer than their CHAR or VARCHAR length.

    The fields of a null struct are not checked.

    Raises
    ------
    WriteNotImplementedError
        A length restriction cannot be parsed.
    """
    return [
        check
        for field in schema.fields
        for check in _field_checks(quoted(field.name), field, field.name, 0, path)
    ]


def _field_checks(
    value: str, field: StructField, name: str, depth: int, path: str
) -> Iterator[Forbidden]:
    if not field.nullable:
        yield Forbidden(f"{value} IS NULL", NotNullViolatedError(column=name))
    bounded = (field.metadata or {}).get(CHAR_OR_VARCHAR)
    if bounded is not None:
        match = _BOUNDED.fullmatch(str(bounded))
        if match is None:
            raise WriteNotImplementedError(path=path, missing=(f"{bounded} ({name})",))
        error = TextTooLongError(column=name, data_type=str(bounded))
        yield Forbidden(f"char_length({value}) > {match['length']}", error)
    yield from _nested_checks(value, field.dataType, name, depth, path)


def _nested_checks(
    value: str, data_type: DataType, name: str, depth: int, path: str
) -> Iterator[Forbidden]:
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            inner, inner_name = f"{value}.{quoted(field.name)}", f"{name}.{field.name}"
            for check in _field_checks(inner, field, inner_name, depth, path):
                yield Forbidden(f"{value} IS NOT NULL AND {check.condition}", check.error)
    elif isinstance(data_type, ArrayType):
        element = StructField(f"{name}.element", data_type.elementType, data_type.containsNull)
        yield from _element_checks(value, element, depth, path)
    elif isinstance(data_type, MapType):
        key = StructField(f"{name}.key", data_type.keyType)
        item = StructField(f"{name}.value", data_type.valueType, data_type.valueContainsNull)
        yield from _element_checks(f"map_keys({value})", key, depth, path)
        yield from _element_checks(f"map_values({value})", item, depth, path)


def _element_checks(array: str, element: StructField, depth: int, path: str) -> Iterator[Forbidden]:
    for check in _field_checks(f"x{depth}", element, element.name, depth + 1, path):
        yield Forbidden(f"exists({array}, x{depth} -> {check.condition})", check.error)
