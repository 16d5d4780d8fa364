"""Expressions of a type and nullability, for plans of which only the schema matters."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.schema.table_schema import as_nullable


def value_of_field(field: StructField) -> Column:
    """Return an expression with the type and nullability of a field, under its name.

    It is nullable if Spark has no expression of the type that is not.
    """
    value = None if field.nullable else _not_null(field.dataType)
    if value is None:
        value = F.lit(None).cast(as_nullable(field.dataType))
    return value.alias(field.name, metadata=field.metadata or {})


def _not_null(data_type: DataType) -> Column | None:
    """Return an expression of a type that is not nullable; None if there is none."""
    if isinstance(data_type, StructType):
        return F.struct(*map(value_of_field, data_type.fields))
    if isinstance(data_type, DecimalType):
        digits = "." + "0" * data_type.scale if data_type.scale else ""
        return F.expr(f"0{digits}BD").cast(data_type)
    examples: tuple[tuple[type[DataType], Column], ...] = (
        (IntegralType, F.lit(0)),
        (FloatType, F.lit(0)),
        (DoubleType, F.lit(0)),
        (BooleanType, F.lit(False)),
        (StringType, F.lit("")),
        (BinaryType, F.lit(b"")),
        (DateType, F.current_date()),
        (TimestampType, F.current_timestamp()),
        (TimestampNTZType, F.localtimestamp()),
        (ArrayType, F.array()),
        (MapType, F.create_map()),
    )
    for kind, example in examples:
        if isinstance(data_type, kind):
            return example.cast(as_nullable(data_type))
    return None
