"""SQL conditions for values that the column types forbid, at every level.

References
----------
PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyspark.errors import ParseException
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.schema.type_folds import parts_together, with_parts
from sparkdelta.exceptions import DeltaError

SHOWN = "\0"
"""In an error, the place of a text that the row has."""

CHAR_OR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"  # Spark's metadata key for the declared type
_NESTED = (ArrayType, MapType, StructType)
_BOUNDED = re.compile(r"(?:var)?char\((?P<length>\d+)\)", re.IGNORECASE)
_CHAR = re.compile(r"\bchar\(", re.IGNORECASE)


def is_longer_text(before: str | None, after: str | None) -> bool:
    """Return True if every text of one declared type is a value of another; None is STRING.

    Examples
    --------
    >>> is_longer_text("char(3)", "varchar(3)"), is_longer_text("varchar(3)", "char(9)")
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
    """A SQL condition that is true for invalid rows, and the error to raise for them.

    Attributes
    ----------
    shown
        SQL for the text that stands in the place of `SHOWN` in the error.
    """

    condition: str
    error: DeltaError
    shown: str = "''"


def forbidden_values(schema: StructType, *, path: str) -> list[Forbidden]:
    """Return checks for forbidden nulls, and for strings longer than their CHAR or VARCHAR length.

    The fields of a null struct are not checked.
    """
    return [
        replace(check, shown=f"string({quoted(field.name)})")
        for field in schema.fields
        for check in _field_checks(quoted(field.name), field, field.name, 0, path)
    ]


def _field_checks(
    value: str, field: StructField, name: str, depth: int, path: str
) -> Iterator[Forbidden]:
    if not field.nullable:
        yield Forbidden(
            f"{value} IS NULL", DeltaError.of("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", column=name)
        )
    try:
        data_type = declared_type(field)
    except DeltaError:
        raise
    except (ParseException, OtherTypeError) as cause:
        missing = (f"{field.metadata[CHAR_OR_VARCHAR]} ({name})",)
        raise DeltaError.of("DELTA_WRITE_NOT_IMPLEMENTED", path=path, missing=missing) from cause
    if isinstance(data_type, CharType | VarcharType):
        error = DeltaError.of(
            "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
            column=name,
            data_type=data_type.simpleString(),
            value=SHOWN,
        )
        yield Forbidden(f"char_length({value}) > {data_type.length}", error)
    yield from _nested_checks(value, data_type, name, depth, path)


class OtherTypeError(Exception):
    """The error for a declared type with other fields than the type of the column."""


def has_char_type(field: StructField) -> bool:
    """Return True if a column was declared with CHAR at any level."""
    declared = str((field.metadata or {}).get(CHAR_OR_VARCHAR, ""))
    return _CHAR.search(declared) is not None


def declared_type(field: StructField) -> DataType:
    """Return the type of a column with the CHAR and VARCHAR types that were declared for its texts.

    Raises
    ------
    ParseException, OtherTypeError
        The declared types are not valid, or not of this column.
    """
    declared = (field.metadata or {}).get(CHAR_OR_VARCHAR)
    if declared is None:
        return field.dataType
    return _with_lengths(field.dataType, _parsed_type(str(declared)))


def _parsed_type(text: str) -> DataType:
    bounded = _BOUNDED.fullmatch(text)
    if bounded is None:
        return DataType.fromDDL(text)
    kind = VarcharType if text.lower().startswith("varchar") else CharType
    return kind(int(bounded["length"]))


def _with_lengths(stored: DataType, declared: DataType) -> DataType:
    """Return a type with the CHAR and VARCHAR types that were declared for its texts."""
    if isinstance(stored, StringType) and isinstance(declared, CharType | VarcharType):
        return declared
    if inner := parts_together(stored, declared):
        return with_parts(stored, [_with_lengths(old, new) for _, old, new in inner])
    if isinstance(stored, StructType) and isinstance(declared, StructType):
        if stored.names != declared.names:
            raise OtherTypeError
        types = map(_with_lengths, *([f.dataType for f in t.fields] for t in (stored, declared)))
        pairs = zip(stored.fields, types, strict=True)
        return StructType([StructField(f.name, t, f.nullable, f.metadata) for f, t in pairs])
    if isinstance(stored, _NESTED) or isinstance(declared, _NESTED):
        raise OtherTypeError
    return stored


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
