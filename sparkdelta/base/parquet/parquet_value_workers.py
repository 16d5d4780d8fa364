"""Conversion of Parquet values to Spark's types, with the same results as Spark's reader.

Conversions are exact. A type that Spark's reader does not support for the requested type is an
error, and so is a value that does not fit.

References
----------
PROTOCOL.md#delta-data-type-to-parquet-type-mappings, PROTOCOL.md#type-widening
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
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
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from sparkdelta.base.parquet.legacy_calendar_workers import (
    DAY_MICROS,
    Calendars,
    NotConvertibleError,
    rebased_days,
    rebased_micros,
)
from sparkdelta.base.parquet.parquet_schema_workers import Leaf

Convert = Callable[[pa.Array], pa.Array]

_PRIMITIVE: dict[type[DataType], pa.DataType] = {
    BooleanType: pa.bool_(),
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    StringType: pa.string(),
    BinaryType: pa.binary(),
    DateType: pa.date32(),
    TimestampType: pa.timestamp("us", "UTC"),
    TimestampNTZType: pa.timestamp("us"),
}
VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)


def arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of a Spark type; types that cannot be passed to Spark are refused."""
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, StructType):
        return pa.struct([arrow_field(f.name, f.dataType) for f in data_type.fields])
    if isinstance(data_type, ArrayType):
        return pa.list_(arrow_field("element", data_type.elementType))
    if isinstance(data_type, MapType):
        key = arrow_field("key", data_type.keyType).with_nullable(False)
        return pa.map_(key, arrow_field("value", data_type.valueType))
    if isinstance(data_type, VariantType):
        return VARIANT
    if type(data_type) not in _PRIMITIVE:
        raise NotConvertibleError(f"type {data_type.simpleString()} cannot be passed to Spark")
    return _PRIMITIVE[type(data_type)]


def arrow_field(name: str, data_type: DataType) -> pa.Field:
    """Return a nullable Arrow field, with the metadata that Spark requires for variants."""
    metadata = {b"variant": b"true"} if isinstance(data_type, VariantType) else None
    return pa.field(name, arrow_type(data_type), metadata=metadata)


def value_converter(leaf: Leaf, wanted: DataType, calendars: Calendars) -> Convert:
    """Return the conversion of a leaf's values, as Arrow reads them, to a Spark type.

    The conversion raises an error if a value does not fit.
    """
    if leaf.logical == "UNKNOWN":
        return lambda array: pa.nulls(len(array), arrow_type(wanted))
    convert = _converter(leaf, wanted, calendars)
    if convert is None:
        raise NotConvertibleError(
            f"its values are {leaf} in the file, which cannot be read as {wanted.simpleString()}"
        )
    checked = convert
    return lambda array: checked(_plain(array))


def _plain(array: pa.Array) -> pa.Array:
    """Undo extension and dictionary types from an Arrow schema in the footer."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return array


def _converter(leaf: Leaf, wanted: DataType, calendars: Calendars) -> Convert | None:
    physical, logical = leaf.physical, leaf.logical
    is_integer = physical in ("INT32", "INT64") and logical in ("NONE", "INT")
    if isinstance(wanted, DecimalType):
        return _decimals(leaf, wanted)
    if isinstance(wanted, TimestampType):
        return _timestamps(leaf, calendars)
    if isinstance(wanted, TimestampNTZType):
        return _local_timestamps(leaf, calendars)
    if isinstance(wanted, DateType) and logical == "DATE":
        return _dates if calendars.dates else _cast(wanted)
    if isinstance(wanted, (ByteType, ShortType, IntegerType)) and is_integer:
        return _cast(wanted) if physical == "INT32" else None
    if isinstance(wanted, LongType) and is_integer:
        return _cast(wanted) if leaf.signed or leaf.bits <= 32 else None
    if isinstance(wanted, DoubleType) and physical == "INT32" and is_integer and leaf.signed:
        return _cast(wanted)
    if isinstance(wanted, DoubleType) and physical in ("FLOAT", "DOUBLE"):
        return _cast(wanted)
    if isinstance(wanted, FloatType) and physical == "FLOAT":
        return _cast(wanted)
    if isinstance(wanted, BooleanType) and physical == "BOOLEAN":
        return _cast(wanted)
    if isinstance(wanted, StringType) and physical == "BYTE_ARRAY" and logical != "DECIMAL":
        return _texts
    if isinstance(wanted, BinaryType) and logical not in ("DECIMAL", "FLOAT16", "INTERVAL"):
        return _cast(wanted) if physical in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY") else None
    return None


def _cast(wanted: DataType) -> Convert:
    """Return Arrow's checked cast, which fails if a value does not fit."""
    target = arrow_type(wanted)
    return lambda array: array if array.type == target else array.cast(target)


def _texts(array: pa.Array) -> pa.Array:
    # Like Spark, do not check that bytes are valid UTF-8.
    target = pa.string()
    return array if array.type == target else array.cast(target, safe=False)


def _decimals(leaf: Leaf, wanted: DecimalType) -> Convert | None:
    """Return the conversion to a DECIMAL, if it is not narrower."""
    if leaf.logical == "DECIMAL":
        precision, scale = leaf.precision, leaf.scale
    elif leaf.logical in ("NONE", "INT") and leaf.physical in ("INT32", "INT64"):
        is_long = leaf.physical == "INT64" or (leaf.bits == 32 and not leaf.signed)
        precision, scale = (20 if is_long else 10), 0
    else:
        return None
    if not wanted.precision - precision >= wanted.scale - scale >= 0:
        return None
    return _cast(wanted)


def _dates(array: pa.Array) -> pa.Array:
    """Convert the dates of a file in the hybrid calendar."""
    days = array.cast(pa.date32()).view(pa.int32()).cast(pa.int64())
    return _mapped(days, rebased_days).cast(pa.int32()).view(pa.date32())


def _timestamps(leaf: Leaf, calendars: Calendars) -> Convert | None:
    if not _is_timestamp(leaf):
        return None
    is_old = calendars.int96 if leaf.physical == "INT96" else calendars.dates
    target, zone = pa.timestamp("us", "UTC"), calendars.zone
    if not is_old:
        return lambda array: _micros(array).view(target)
    return lambda array: _mapped(_micros(array), lambda micros: rebased_micros(micros, zone)).view(
        target
    )


def _local_timestamps(leaf: Leaf, calendars: Calendars) -> Convert | None:
    target = pa.timestamp("us")
    if leaf.logical == "DATE":  # widened
        dates = _dates if calendars.dates else _cast(DateType())
        return lambda array: pc.multiply_checked(
            dates(array).view(pa.int32()).cast(pa.int64()), DAY_MICROS
        ).view(target)
    return (lambda array: _micros(array).view(target)) if _is_timestamp(leaf) else None


def _is_timestamp(leaf: Leaf) -> bool:
    return leaf.physical == "INT96" or (
        leaf.logical == "TIMESTAMP" and leaf.unit in ("milliseconds", "microseconds")
    )


def _micros(array: pa.Array) -> pa.Array:
    """Return microseconds since the epoch; the time zone of an Arrow schema does not matter."""
    return array.cast(pa.timestamp("us", array.type.tz)).view(pa.int64())


def _mapped(numbers: pa.Array, function: Callable[..., object]) -> pa.Array:
    """Apply a function to numbers; nulls stay null."""
    filled = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    mapped = pa.array(function(filled), pa.int64())
    return pc.if_else(numbers.is_valid(), mapped, pa.scalar(None, pa.int64()))
