"""Tests of the schema of a table whose new rows bring fields or wider types."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from sparkdelta.base.protocol.type_changes import is_supported_type_change
from sparkdelta.base.schema.schema_merging import merged_schema


def struct(**fields):
    return StructType([StructField(name, data_type) for name, data_type in fields.items()])


def test_new_fields_at_every_level():
    """Change Metadata"""
    inner = StructType([StructField("x", LongType(), nullable=False, metadata={"k": 1})])
    table = StructType(
        [
            StructField("s", inner, nullable=False, metadata={"comment": "c"}),
            StructField("l", ArrayType(inner, containsNull=False)),
            StructField("m", MapType(inner, inner)),
        ]
    )
    more = StructType(
        [
            StructField("Y", LongType(), nullable=False, metadata={"comment": "y", "other": 1}),
            StructField("X", LongType()),
        ]
    )
    rows = struct(n=LongType(), M=MapType(more, more), L=ArrayType(more), S=more)
    found = merged_schema(table, rows)
    wanted = StructType([*inner.fields, StructField("Y", LongType(), metadata={"comment": "y"})])
    assert found == StructType(
        [
            StructField("s", wanted, nullable=False, metadata={"comment": "c"}),
            StructField("l", ArrayType(wanted, containsNull=False)),
            StructField("m", MapType(wanted, wanted)),
            StructField("n", LongType()),
        ]
    )
    assert found["s"].dataType["Y"].metadata == {"comment": "y"}
    assert merged_schema(found, rows) == found
    assert merged_schema(found, struct(s=struct(x=LongType()))) == found


@pytest.mark.parametrize(
    ("table", "rows", "wanted"),
    [
        (ByteType(), ShortType(), ShortType()),
        (ByteType(), LongType(), LongType()),
        (IntegerType(), ShortType(), IntegerType()),
        (FloatType(), DoubleType(), DoubleType()),
        (DateType(), TimestampNTZType(), TimestampNTZType()),
        (DecimalType(10, 2), DecimalType(12, 3), DecimalType(12, 3)),
        (DecimalType(12, 2), DecimalType(10, 4), DecimalType(14, 4)),
        (DecimalType(12, 2), DecimalType(10, 2), DecimalType(12, 2)),
        (DecimalType(38, 0), DecimalType(38, 10), DecimalType(38, 0)),
        (IntegerType(), DoubleType(), DoubleType()),
        (LongType(), DoubleType(), LongType()),
        (IntegerType(), FloatType(), IntegerType()),
        (DoubleType(), IntegerType(), DoubleType()),
        (IntegerType(), DecimalType(20, 0), DecimalType(20, 0)),
        (IntegerType(), DecimalType(9, 0), IntegerType()),
        (ShortType(), DecimalType(4, 2), DecimalType(12, 2)),
        (LongType(), DecimalType(20, 4), DecimalType(24, 4)),
        (LongType(), DecimalType(38, 30), LongType()),
        (DecimalType(4, 2), IntegerType(), DecimalType(4, 2)),
        (DecimalType(4, 2), DoubleType(), DecimalType(4, 2)),
        (IntegerType(), StringType(), IntegerType()),
        (StringType(), IntegerType(), StringType()),
    ],
)
def test_wider_types(table, rows, wanted):
    """Type Widening: recorded, and only where readers can convert the old values."""
    found = merged_schema(struct(a=table), struct(A=rows), widening=True)
    assert found["a"].dataType == wanted
    if wanted == table:
        assert found["a"].metadata == {}
        return
    names = [str(data_type.jsonValue()) for data_type in (table, wanted)]
    assert found["a"].metadata == {
        "delta.typeChanges": [{"fromType": names[0], "toType": names[1]}]
    }
    assert is_supported_type_change(*names)
    assert merged_schema(struct(a=table), struct(a=rows)) == struct(a=table)


def test_where_type_changes_are_recorded():
    """Type Change Metadata: at the nearest field, with the path to what is no field."""
    inner = struct(x=MapType(ByteType(), ArrayType(ByteType())), y=ByteType())
    wider = struct(x=MapType(ShortType(), ArrayType(LongType())), y=IntegerType())
    found = merged_schema(struct(l=ArrayType(inner)), struct(l=ArrayType(wider)), widening=True)
    assert found["l"].metadata == {}
    assert found["l"].dataType.elementType["y"].metadata == {
        "delta.typeChanges": [{"fromType": "byte", "toType": "integer"}]
    }
    changes = found["l"].dataType.elementType["x"].metadata["delta.typeChanges"]
    assert changes == [
        {"fromType": "byte", "toType": "short", "fieldPath": "key"},
        {"fromType": "byte", "toType": "long", "fieldPath": "value.element"},
    ]
    last = struct(x=MapType(LongType(), ArrayType(LongType())), y=IntegerType())
    again = merged_schema(found, struct(l=ArrayType(last)), widening=True)
    assert again["l"].dataType.elementType["x"].metadata["delta.typeChanges"] == [
        *changes, {"fromType": "short", "toType": "long", "fieldPath": "key"},
    ]  # fmt: skip
