"""Conversion of values to column types by Spark's store assignment policies.

Structs are matched by field name. A value that does not fit raises an error and is never replaced
by null or another value, except by policy LEGACY. Nothing depends on session settings.

References
----------
PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.moment_texts import date_text
from sparkdelta.base.schema.spatial_types import is_spatial
from sparkdelta.base.schema.sql_text import text_literal, type_text
from sparkdelta.base.schema.table_schema import as_nullable, field_named, quoted
from sparkdelta.base.schema.type_folds import parts_together
from sparkdelta.exceptions import DeltaError

_DATETIME_TYPES = (DateType, TimestampType, TimestampNTZType)


class StoreAssignment(Enum):
    """A policy of conversions to the types of columns.

    Attributes
    ----------
    EXACT
        Conversions between related types that lose no digits.
    ANSI
        All casts of ANSI SQL, as Spark's and delta-spark's policy ANSI together have them.
    STRICT
        Conversions that no value can fail, and that lose no digits of integers.
    LEGACY
        All casts as without ANSI mode: a value that cannot be converted becomes null, an integer
        out of range another integer.
    """

    EXACT = "EXACT"
    ANSI = "ANSI"
    STRICT = "STRICT"
    LEGACY = "LEGACY"


def can_store(given: DataType, wanted: DataType, policy: StoreAssignment) -> bool:
    """Return True if values of one type may be stored as another by a policy; a struct may lack
    fields of the other.
    """
    if policy is StoreAssignment.EXACT:
        return can_assign(given, wanted) and is_exact(given, wanted)
    if not can_convert(given, wanted, adds_fields=True, policy=policy):
        return False
    return policy is not StoreAssignment.STRICT or is_up_cast(given, wanted)


def can_assign(given: DataType, wanted: DataType) -> bool:
    """Return True if values of one type, unless they overflow, may be stored as another.

    Numeric types can be assigned to each other, and so can dates and timestamps. Every atomic type
    can be assigned to STRING, but STRING to no other type. A struct may lack fields, but must not
    have extra ones.
    """
    if isinstance(given, NullType) or as_nullable(given) == as_nullable(wanted):
        return True
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        return all(
            target is not None and can_assign(source, target)
            for source, target in _field_types(given, wanted)
        )
    if inner := parts_together(given, wanted):
        return all(can_assign(source, target) for _, source, target in inner)
    if isinstance(wanted, StringType):
        return isinstance(given, AtomicType) and not is_spatial(given)
    return any(
        isinstance(given, kind) and isinstance(wanted, kind)
        for kind in (NumericType, _DATETIME_TYPES)
    )


def is_exact(given: DataType, wanted: DataType) -> bool:
    """Return True if assignable numbers are stored exactly or raise errors, but never are rounded.

    Conversions between dates and timestamps count as exact.
    """
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        pairs = _field_types(given, wanted)
        return all(target is not None and is_exact(source, target) for source, target in pairs)
    if inner := parts_together(given, wanted):
        return all(is_exact(source, target) for _, source, target in inner)
    if not isinstance(given, NumericType) or not isinstance(wanted, NumericType):
        return True
    if type(given) is type(wanted) and not isinstance(given, DecimalType):
        return True
    if isinstance(wanted, FloatType | DoubleType):
        return isinstance(given, _EXACT_IN_FLOAT) or (
            isinstance(wanted, DoubleType) and isinstance(given, IntegerType | FloatType)
        )
    return not isinstance(given, FloatType | DoubleType) and _scale(given) <= _scale(wanted)


_EXACT_IN_FLOAT = (ByteType, ShortType)


def _scale(data_type: DataType) -> int:
    return data_type.scale if isinstance(data_type, DecimalType) else 0


def can_convert(
    given: DataType,
    wanted: DataType,
    *,
    adds_fields: bool = False,
    policy: StoreAssignment = StoreAssignment.ANSI,
) -> bool:
    """Return True if UPDATE and MERGE may set a column of one type to a value of another.

    They allow every conversion of atomic types that ANSI SQL has, such as STRING to INT, which
    fails for a value that does not fit; by policy LEGACY, every conversion of atomic types that
    Spark has. If the table's schema evolves (`adds_fields`), a struct may lack fields of the
    column; else it must have the same.
    """
    if isinstance(given, NullType) or as_nullable(given) == as_nullable(wanted):
        return True
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        return (adds_fields or len(given) == len(wanted)) and all(
            target is not None
            and can_convert(source, target, adds_fields=adds_fields, policy=policy)
            for source, target in _field_types(given, wanted)
        )
    if inner := parts_together(given, wanted):
        return all(
            can_convert(one, other, adds_fields=adds_fields, policy=policy)
            for _, one, other in inner
        )
    if can_assign(given, wanted):
        return True
    if policy is StoreAssignment.LEGACY:  # Spark refuses the casts that it does not have
        return isinstance(given, AtomicType) and isinstance(wanted, AtomicType)
    return any(isinstance(given, ones) and isinstance(wanted, others) for ones, others in _EXPLICIT)


_EXPLICIT: tuple[tuple[tuple[type[DataType], ...], tuple[type[DataType], ...]], ...] = (
    ((StringType,), (NumericType, *_DATETIME_TYPES, BooleanType, BinaryType)),
    ((BooleanType,), (NumericType,)),
    ((NumericType,), (BooleanType,)),
    ((NumericType,), (TimestampType,)),
    ((TimestampType,), (NumericType,)),
)
"""Conversions of ANSI SQL that store assignment does not have."""


def is_up_cast(given: DataType, wanted: DataType) -> bool:
    """Return True if convertible values are stored without errors, and integers with all digits."""
    if isinstance(given, NullType) or as_nullable(given) == as_nullable(wanted):
        return True
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        pairs = _field_types(given, wanted)
        return all(target is not None and is_up_cast(source, target) for source, target in pairs)
    if inner := parts_together(given, wanted):
        return all(is_up_cast(source, target) for _, source, target in inner)
    if isinstance(wanted, StringType):
        return True
    if isinstance(wanted, DecimalType):
        whole, scale = wanted.precision - wanted.scale, wanted.scale
        if isinstance(given, DecimalType):
            return whole >= given.precision - given.scale and scale >= given.scale
        return whole >= _INTEGER_DIGITS.get(type(given), whole + 1)
    if isinstance(given, DecimalType):
        return given.scale == 0 and given.precision < _INTEGER_DIGITS.get(type(wanted), 0)
    return any(
        type(given) in order and type(wanted) in order[order.index(type(given)) :]
        for order in _UP_CASTS
    )


_UP_CASTS: tuple[tuple[type[DataType], ...], ...] = (
    (ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType),
    (DateType, TimestampNTZType, TimestampType, TimestampNTZType),
    (LongType, TimestampType, LongType),
)
"""Types whose values Spark takes for values of each type that follows."""

_INTEGER_DIGITS: dict[type[DataType], int] = {
    ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20,
}  # fmt: skip


def assigned(
    value: str,
    given: DataType,
    wanted: DataType,
    *,
    column: str,
    kept: tuple[str, DataType] | None = None,
    policy: StoreAssignment = StoreAssignment.ANSI,
    depth: int = 0,
) -> str:
    """Return SQL that converts a value to the column's type, or raises if it does not fit.

    Parameters
    ----------
    wanted
        A type that `can_assign` or `can_convert` allows.
    column
        The column's name, for the error.
    kept
        The column's old value, as a SQL expression, and its type: the fields of structs that only
        it has are kept. By default they become null.
    policy
        LEGACY for a plain cast, which must be evaluated without ANSI mode.
    """
    if as_nullable(given) == as_nullable(wanted):
        return value
    inner = depth + 1
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        members = []
        for field in wanted.fields:
            source, old = field_of(value, given, field.name), None
            if kept is not None:
                old = field_of(*kept, field.name)
            if source is None:
                source, old = old, None
            member = f"CAST(NULL AS {type_text(field.dataType)})"
            if source is not None:
                name = f"{column}.{field.name}"
                member = assigned(
                    *source, field.dataType, column=name, kept=old, policy=policy, depth=inner
                )
            members += [text_literal(field.name), member]
        is_null = f"{value} IS NULL"
        if kept is not None and _has_more_fields(wanted, given):
            is_null = f"{is_null} AND {kept[0]} IS NULL"
        return f"IF({is_null}, NULL, named_struct({', '.join(members)}))"
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        types = given.elementType, wanted.elementType
        return _each(value, *types, column=column, policy=policy, depth=inner)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        keys, values = (
            _each(f"{part}({value})", has, wants, column=column, policy=policy, depth=inner)
            for part, has, wants in (
                ("map_keys", given.keyType, wanted.keyType),
                ("map_values", given.valueType, wanted.valueType),
            )
        )
        converted = f"map_from_arrays({keys}, {values})"
        if keys == f"map_keys({value})":
            return converted
        # Spark itself raises an error unless the session that runs this has policy LAST_WIN.
        key_type = wanted.keyType.simpleString()
        problem = f"[DUPLICATED_MAP_KEY] Keys of a map in {column} are equal as {key_type}"
        return (
            f"IF(size({converted}) < size({value}), raise_error({text_literal(problem)}), "
            f"{converted})"
        )
    name = type_text(wanted)
    if isinstance(given, NullType) or policy is StoreAssignment.LEGACY:
        return f"CAST({value} AS {name})"
    if isinstance(given, DateType) and isinstance(wanted, StringType):
        value = date_text(value)
    # CAST depends on the session: without ANSI mode it wraps around on overflow, for instance.
    tried = f"TRY_CAST({value} AS {name})"
    if isinstance(wanted, StringType):
        return tried
    row_type, table_type = given.simpleString(), wanted.simpleString()
    if can_assign(given, wanted):
        error = DeltaError.of(
            "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
            column=column,
            row_type=row_type,
            table_type=table_type,
        )
        text = text_literal(str(error))
    else:
        error = DeltaError.of(
            "DELTA_CAST_INVALID_INPUT",
            column=column,
            row_type=row_type,
            table_type=table_type,
            value=_VALUE,
        )
        before, _, after = map(text_literal, str(error).partition(_VALUE))
        text = f"concat({before}, left(string({value}), {_MAX_SHOWN_VALUE}), {after})"
    return f"IF({value} IS NOT NULL AND {tried} IS NULL, raise_error({text}), {tried})"


_VALUE = "{value}"
_MAX_SHOWN_VALUE = 100


def field_of(value: str, data_type: DataType, name: str) -> tuple[str, DataType] | None:
    """Return SQL for the field of a struct, found by name ignoring case, and its type."""
    field = field_named(data_type, name)
    return None if field is None else (f"{value}.{quoted(field.name)}", field.dataType)


def _field_types(
    struct: StructType, other: StructType
) -> Iterator[tuple[DataType, DataType | None]]:
    """Yield the type of each field, and its type in another struct, if it is there."""
    types = {name_key(field.name): field.dataType for field in other.fields}
    for field in struct.fields:
        yield field.dataType, types.get(name_key(field.name))


def _has_more_fields(data_type: DataType, other: DataType) -> bool:
    """Return True if a struct, or a struct directly inside it, has a field that another lacks."""
    if not isinstance(data_type, StructType) or not isinstance(other, StructType):
        return False
    pairs = _field_types(data_type, other)
    return any(inner is None or _has_more_fields(outer, inner) for outer, inner in pairs)


def _each(
    array: str,
    given: DataType,
    wanted: DataType,
    *,
    column: str,
    policy: StoreAssignment,
    depth: int,
) -> str:
    element = f"x{depth}"
    value = assigned(element, given, wanted, column=column, policy=policy, depth=depth)
    return array if value == element else f"transform({array}, {element} -> {value})"
