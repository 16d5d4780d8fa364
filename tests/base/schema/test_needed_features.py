"""Active Features: what a table must support to be what it says."""

from pyspark.sql.types import (
    ArrayType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    VariantType,
)

from sparkdelta.base.protocol.table_features import TableFeature
from sparkdelta.base.schema.needed_features import field_metadata, needed_features


def struct(**fields):
    return StructType([StructField(name, data_type) for name, data_type in fields.items()])


def test_looking_inside_types():
    nested = struct(a=ArrayType(MapType(StringType(), struct(x=TimestampNTZType()))))
    assert needed_features(nested, {}) == {TableFeature.TIMESTAMP_NTZ}
    inner = StructType([StructField("x", LongType(), metadata={"k": "v"})])
    assert field_metadata(struct(a=ArrayType(inner))) == {"a": {}, "a.x": {"k": "v"}}


def test_types_columns_and_properties():
    schema = struct(a=ArrayType(TimestampNTZType()), v=VariantType())
    schema.add(StructField("g", LongType(), metadata={"delta.generationExpression": "1"}))
    needed = needed_features(schema, {"delta.enableDeletionVectors": "true"})
    assert {feature.value for feature in needed} == {
        "timestampNtz", "variantType", "generatedColumns", "deletionVectors",
    }  # fmt: skip
    assert needed_features(struct(a=LongType()), {}) == set()
