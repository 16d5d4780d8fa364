"""schemaString to Spark's types, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from sparkdelta.base.schema.table_schema import (
    as_nullable,
    parse_table_schema,
    partition_fields,
    without_void,
)
from sparkdelta.base.schema.type_widening import check_type_changes
from tests.support.errors import raises
from tests.support.table_builder import array_of, field, map_of, struct_of


def parse(*fields: dict[str, Any]) -> StructType:
    return parse_table_schema(json.dumps(struct_of(*fields)), path="file:/t")


def test_every_primitive_type() -> None:
    """PROTOCOL.md#primitive-types"""
    names = [
        "string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary",
        "date", "timestamp", "timestamp_ntz", "decimal(38,10)", "variant", "void",
    ]  # fmt: skip
    schema = parse(*(field(f"c{n}", name) for n, name in enumerate(names)))
    found = [f.dataType for f in schema]
    assert found[12:15] == [DecimalType(38, 10), VariantType(), NullType()]
    assert [t.typeName() for t in found[:12]] == names[:12]


def test_nullability_and_metadata_at_every_level() -> None:
    """PROTOCOL.md#schema-serialization-format"""
    inner = field(
        "x", "long", nullable=False, metadata={"comment": "c", "delta.columnMapping.id": 7}
    )
    element = {**array_of(struct_of(inner)), "containsNull": False}
    schema = parse(field("o", map_of("string", element), nullable=False))
    assert schema["o"].nullable is False
    array = schema["o"].dataType.valueType
    assert array.containsNull is False
    assert array.elementType["x"].nullable is False
    assert array.elementType["x"].metadata == {"comment": "c", "delta.columnMapping.id": 7}


@pytest.mark.parametrize("text", [None, ""])
def test_no_schema(text: str | None) -> None:
    with raises("DELTA_SCHEMA_NOT_SET"):
        parse_table_schema(text, path="file:/t")


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "7", "null", '"struct"', '{"type":"struct"}', '{"type":"array"}', "{}",
     '{"type":"struct","fields":[{"name":"a"}]}',
     '{"type":"struct","fields":[{"name":"a","type":"nonsense","nullable":true,"metadata":{}}]}',
     '{"type":"struct","fields":[7]}', '{"type":"struct","fields":null}',
     '{"type":"struct","fields":' * 100_000],
)  # fmt: skip
def test_malformed_schemas_are_refused(text: str) -> None:
    with raises("DELTA_INVALID_SCHEMA"):
        parse_table_schema(text, path="file:/t")


@pytest.mark.parametrize("name", ["interval year to month", "geometry(EPSG:0)", "timestamp_nanos"])
def test_types_of_others_are_refused_by_column(name: str) -> None:
    with raises("DELTA_UNSUPPORTED_DATA_TYPES") as raised:
        parse(field("o", array_of(struct_of(field("x", name)))))
    assert (raised.value.column, raised.value.data_type) == ("o.x", name)


def test_names_that_differ_by_case_only() -> None:
    with raises("DELTA_INVALID_SCHEMA"):
        parse(field("a", "long"), field("A", "long"))
    with raises("DELTA_INVALID_SCHEMA"):
        parse(field("Σdate", "long"), field("ςdate", "long"))
    with raises("DELTA_INVALID_SCHEMA"):
        parse(field("o", map_of("string", struct_of(field("x", "long"), field("X", "long")))))
    with raises("DELTA_INVALID_SCHEMA"):
        parse(field("a", "long"), field("a", "string"))


def test_partition_columns_in_their_own_order_and_any_case() -> None:
    schema = parse(field("a", "long"), field("B", "date"), field("c", "string"))
    assert [f.name for f in partition_fields(schema, ("c", "b"))] == ["c", "B"]
    with raises("DELTA_PARTITION_COLUMN_NOT_FOUND") as raised:
        partition_fields(schema, ("d",))
    assert (raised.value.column, raised.value.available) == ("d", ["a", "B", "c"])


def test_without_void() -> None:
    """PROTOCOL.md#void-type"""
    only_void = StructType([StructField("v", NullType())])
    mixed = StructType([StructField("v", NullType()), StructField("a", LongType(), False)])
    kept = StructType([StructField("a", LongType(), False)])
    assert without_void(mixed) == kept
    assert without_void(only_void) is None
    assert without_void(ArrayType(NullType())) is None
    assert without_void(ArrayType(mixed, False)) == ArrayType(kept, False)
    assert without_void(MapType(StringType(), only_void)) is None
    assert without_void(MapType(StringType(), mixed)) == MapType(StringType(), kept)


def test_as_nullable_keeps_the_types() -> None:
    strict = StructType(
        [StructField("a", ArrayType(MapType(StringType(), IntegerType(), False), False), False)]
    )
    loose = StructType([StructField("a", ArrayType(MapType(StringType(), IntegerType())))])
    assert as_nullable(strict) == loose


def _changed(data_type: Any, **change: str) -> StructType:
    return parse(field("c", data_type, metadata={"delta.typeChanges": [change]}))


@pytest.mark.parametrize(
    ("data_type", "change"),
    [
        ("long", {"fromType": "integer", "toType": "long"}),
        (array_of("double"), {"fromType": "float", "toType": "double", "fieldPath": "element"}),
        ("decimal(12,4)", {"fromType": "decimal(10,2)", "toType": "decimal(12,4)"}),
        ("timestamp_ntz", {"fromType": "date", "toType": "timestamp_ntz"}),
    ],
)
def test_type_changes_of_the_protocol(data_type: Any, change: dict[str, str]) -> None:
    """PROTOCOL.md#type-change-metadata"""
    check_type_changes(_changed(data_type, **change))


def test_other_type_changes_are_refused_by_field() -> None:
    """PROTOCOL.md#reader-requirements-for-type-widening"""
    change = {"fromType": "string", "toType": "integer", "fieldPath": "value.element"}
    with raises("DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA") as raised:
        check_type_changes(_changed(map_of("string", array_of("integer")), **change))
    error = raised.value
    assert (error.field, error.from_type) == ("c.value.element", "string")
    with raises("DELTA_INVALID_SCHEMA"):
        check_type_changes(_changed("long", toType="long"))
