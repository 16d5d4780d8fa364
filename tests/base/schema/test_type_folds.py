"""Walks over nested types, and copies of them."""

from pyspark.sql.types import (
    ArrayType,
    CharType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)
from pyspark.testing.objects import ExamplePointUDT

from sparkdelta.base.schema.type_folds import (
    fields_within,
    parts_together,
    transformed,
    types_within,
    with_fields,
    with_parts,
)

INNER = StructType([StructField("x", LongType(), nullable=False, metadata={"k": 1})])
SCHEMA = StructType(
    [
        StructField("s", INNER, nullable=False),
        StructField("m", MapType(INNER, ArrayType(INNER, False), False)),
        StructField("v", VariantType(), metadata={"comment": "c"}),
        StructField("t", StringType("UNICODE")),
        StructField("c", CharType(3)),
        StructField("u", ExamplePointUDT()),
    ]
)


def test_fields_of_every_level():
    found = [(".".join(path), field, repeated) for path, field, repeated in fields_within(SCHEMA)]
    x = INNER["x"]
    assert found == [
        ("s", SCHEMA["s"], False),
        ("s.x", x, False),
        ("m", SCHEMA["m"], False),
        ("m.x", x, True),
        ("m.x", x, True),
        *((name, SCHEMA[name], False) for name in "vtcu"),
    ]


def test_types_of_every_level():
    m = SCHEMA["m"].dataType
    assert list(types_within(SCHEMA)) == [
        ((), SCHEMA),
        (("s",), INNER),
        (("s", "x"), LongType()),
        (("m",), m),
        (("m",), INNER),
        (("m", "x"), LongType()),
        (("m",), m.valueType),
        (("m",), INNER),
        (("m", "x"), LongType()),
        *(((name,), SCHEMA[name].dataType) for name in "vtcu"),
    ]
    assert list(types_within(VariantType())) == [((), VariantType())]


def test_an_unchanged_type_stays_the_same():
    assert transformed(SCHEMA).json() == SCHEMA.json()


def test_leaves_are_changed_and_what_holds_them_stays():
    wider = transformed(
        SCHEMA, leaf=lambda leaf: IntegerType() if isinstance(leaf, LongType) else leaf
    )
    assert wider.json() == SCHEMA.json().replace('"long"', '"integer"')
    assert "long" in SCHEMA.json()


def test_fields_are_changed_from_outside_in():
    seen = []

    def numbered(field):
        seen.append(field.name)
        return StructField(f"{field.name}{len(seen)}", field.dataType, True, {"n": len(seen)})

    changed = with_fields(SCHEMA, numbered)
    assert seen == [path[-1] for path, _, _ in fields_within(SCHEMA)]
    assert changed.names == ["s1", "m3", "v6", "t7", "c8", "u9"]
    renamed = StructType([StructField("x4", LongType(), metadata={"n": 4})])
    assert changed["m3"].dataType.keyType == renamed
    assert changed["m3"].dataType.valueContainsNull is False
    assert changed["t7"].dataType == StringType("UNICODE")


def test_elements_and_values_become_nullable():
    m = transformed(SCHEMA, nullable=True)["m"].dataType
    assert (m.valueContainsNull, m.valueType.containsNull) == (True, True)
    assert m.keyType == INNER


def test_parts_side_by_side():
    longs, texts = ArrayType(LongType(), False), ArrayType(StringType())
    assert parts_together(longs, texts) == [("element", LongType(), StringType())]
    pairs = MapType(StringType(), LongType(), False)
    assert parts_together(pairs, pairs) == [
        ("key", StringType(), StringType()),
        ("value", LongType(), LongType()),
    ]
    for other in (pairs, INNER, LongType(), ExamplePointUDT()):
        assert parts_together(longs, other) == []
    assert parts_together(INNER, INNER) == []


def test_other_parts_are_as_nullable_as_before():
    assert with_parts(ArrayType(LongType(), False), [INNER]) == ArrayType(INNER, False)
    pairs = MapType(StringType(), LongType(), False)
    assert with_parts(pairs, [LongType(), INNER]) == MapType(LongType(), INNER, False)
    assert with_parts(VariantType(), []) == VariantType()
