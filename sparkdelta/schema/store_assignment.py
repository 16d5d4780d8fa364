"""Conversion of values to column types by Spark's ANSI store assignment policy.

Structs are matched by field name. A value that does not fit raises an error and is never replaced
by null or another value. Nothing depends on session settings.

References
----------
PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.exceptions import CastOverflowError
from sparkdelta.schema.sql_text import text_literal, type_text
from sparkdelta.schema.table_schema import as_nullable, quoted
from sparkdelta.schema.type_folds import parts_together

_DATETIME_TYPES = (DateType, TimestampType, TimestampNTZType)


def can_assign(given: DataType, wanted: DataType) -> bool:
    """True if values of one type may be stored in a column of another, subject to overflow checks.

    Numeric types can be assigned to each other, and so can dates and timestamps. Every atomic type
    can be assigned to STRING, but STRING to no other type. A struct may lack fields, but must not
    have extra ones.

    Examples
    --------
    >>> from pyspark.sql.types import IntegerType, LongType
    >>> can_assign(LongType(), IntegerType()), can_assign(StringType(), IntegerType())
    (True, False)
    """
    if isinstance(given, NullType) or as_nullable(given) == as_nullable(wanted):
        return True
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        wanted_fields = {field.name.lower(): field for field in wanted.fields}
        return all(
            field.name.lower() in wanted_fields
            and can_assign(field.dataType, wanted_fields[field.name.lower()].dataType)
            for field in given.fields
        )
    if inner := parts_together(given, wanted):
        return all(can_assign(source, target) for _, source, target in inner)
    if isinstance(wanted, StringType):
        return isinstance(given, AtomicType)
    return any(
        isinstance(given, kind) and isinstance(wanted, kind)
        for kind in (NumericType, _DATETIME_TYPES)
    )


def assigned(value: str, given: DataType, wanted: DataType, *, column: str, depth: int = 0) -> str:
    """Return a SQL expression that converts a value to the column's type, or raises if it does not
    fit.

    Parameters
    ----------
    value
        A SQL expression of type `given`.
    wanted
        A type that `can_assign` allows.
    column
        The column's name, for the error.
    """
    if as_nullable(given) == as_nullable(wanted):
        return value
    inner = depth + 1
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        given_fields = {field.name.lower(): field for field in given.fields}
        members = []
        for field in wanted.fields:
            source = given_fields.get(field.name.lower())
            member = f"CAST(NULL AS {type_text(field.dataType)})"
            if source is not None:
                member = assigned(
                    f"{value}.{quoted(source.name)}",
                    source.dataType,
                    field.dataType,
                    column=f"{column}.{field.name}",
                    depth=inner,
                )
            members += [text_literal(field.name), member]
        return f"IF({value} IS NULL, NULL, named_struct({', '.join(members)}))"
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return _each(value, given.elementType, wanted.elementType, column=column, depth=inner)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        keys, values = (
            _each(f"{part}({value})", has, wants, column=column, depth=inner)
            for part, has, wants in (
                ("map_keys", given.keyType, wanted.keyType),
                ("map_values", given.valueType, wanted.valueType),
            )
        )
        return f"map_from_arrays({keys}, {values})"
    name = type_text(wanted)
    if not isinstance(wanted, NumericType) or isinstance(given, NullType):
        return f"CAST({value} AS {name})"
    error = CastOverflowError(
        column=column, row_type=given.simpleString(), table_type=wanted.simpleString()
    )
    # CAST depends on the session: without ANSI mode an overflow wraps around.
    return (
        f"IF({value} IS NOT NULL AND TRY_CAST({value} AS {name}) IS NULL, "
        f"raise_error({text_literal(str(error))}), TRY_CAST({value} AS {name}))"
    )


def _each(array: str, given: DataType, wanted: DataType, *, column: str, depth: int) -> str:
    element = f"x{depth}"
    value = assigned(element, given, wanted, column=column, depth=depth)
    return array if value == element else f"transform({array}, {element} -> {value})"
