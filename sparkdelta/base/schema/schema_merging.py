"""Schema evolution: a table's schema merged with the columns and types of new rows.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#type-widening, PROTOCOL.md#type-change-metadata
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import (
    AtomicType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StructField,
    StructType,
)

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.type_changes import is_supported_type_change
from sparkdelta.base.schema.type_folds import parts_together, with_parts
from sparkdelta.base.schema.type_widening import TYPE_CHANGES
from sparkdelta.base.schema.written_schema import clean_field

_MAX_PRECISION = 38
_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_INT_DIGITS, _LONG_DIGITS = 10, 20
"""The least digits of a DECIMAL that readers convert stored integers to."""
_WIDENED = (*_INTEGERS, FloatType, DateType, DecimalType)


def merged_schema(table: StructType, rows: StructType, *, widening: bool = False) -> StructType:
    """Merge the schema of rows into the schema of a table, which `matched_columns` then checks.

    New columns and fields are appended as nullable, and `void` gets the type of the rows. With
    `widening`, types are widened, and each change is recorded in the field metadata.
    """
    row_fields = {name_key(field.name): field for field in rows.fields}
    table_names = {name_key(field.name) for field in table.fields}
    merged = [
        _merged_field(field, row_fields[name_key(field.name)], widening=widening)
        if name_key(field.name) in row_fields
        else field
        for field in table.fields
    ]
    new = [clean_field(field) for field in rows.fields if name_key(field.name) not in table_names]
    return StructType([*merged, *new])


def _merged_field(table: StructField, rows: StructField, *, widening: bool) -> StructField:
    merged = _merged_type(table.dataType, rows.dataType, widening=widening)
    changes = [
        {"fromType": old.jsonValue(), "toType": new.jsonValue()} | ({"fieldPath": p} if p else {})
        for p, old, new in _changes("", table.dataType, merged)
    ]
    metadata = dict(table.metadata or {})
    if changes:
        metadata[TYPE_CHANGES] = [*metadata.get(TYPE_CHANGES, ()), *changes]
    return StructField(table.name, merged, table.nullable, metadata)


def _merged_type(table: DataType, rows: DataType, *, widening: bool) -> DataType:
    if isinstance(table, NullType):
        return clean_field(StructField("", rows)).dataType
    if isinstance(table, StructType) and isinstance(rows, StructType):
        return merged_schema(table, rows, widening=widening)
    if inner := parts_together(table, rows):
        return with_parts(table, [_merged_type(a, b, widening=widening) for _, a, b in inner])
    return _wider(table, rows) if widening else table


def _wider(table: DataType, rows: DataType) -> DataType:
    """Return the type that a column gets when rows of another type are written.

    It is the type of the rows if readers can convert stored values to it, or a DECIMAL that holds
    the values of both; else the table's type.
    """
    if not (isinstance(table, _WIDENED) and isinstance(rows, AtomicType)):
        return table
    if is_supported_type_change(str(table.jsonValue()), str(rows.jsonValue())):
        return rows
    return _common_decimal(table, rows) if isinstance(rows, DecimalType) else table


def _common_decimal(table: DataType, rows: DecimalType) -> DataType:
    """Return the DECIMAL that holds the digits of both types, or the table's type if there is none.

    It is also the table's if that holds the fractions of the rows already.
    """
    if isinstance(table, DecimalType):
        digits, scale = table.precision - table.scale, table.scale
    elif isinstance(table, _INTEGERS) and rows.scale > 0:
        digits, scale = (_LONG_DIGITS if isinstance(table, LongType) else _INT_DIGITS), 0
    else:
        return table
    scale = max(scale, rows.scale)
    precision = scale + max(digits, rows.precision - rows.scale)
    return DecimalType(precision, scale) if precision <= _MAX_PRECISION else table


def _changes(
    path: str, before: DataType, after: DataType
) -> Iterator[tuple[str, DataType, DataType]]:
    """Yield the changed types with their field paths, except nested fields, which record theirs."""
    if inner := parts_together(before, after):
        for name, old, new in inner:
            yield from _changes(f"{path}.{name}", old, new)
    elif not isinstance(before, StructType | NullType) and before != after:
        yield path.lstrip("."), before, after
