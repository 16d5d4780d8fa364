""" "Writer Requirements for IcebergCompatV2": ids of elements, keys and values, and the types."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from sparkdelta.base.schema.column_ids import with_column_ids, without_ids
from sparkdelta.base.schema.iceberg_types import check_iceberg_types
from sparkdelta.base.schema.nested_ids import NESTED_IDS, nested_field_ids, with_nested_ids
from tests.support.errors import raises

INTS = ArrayType(IntegerType())
SCHEMA = StructType(
    [  # as in the protocol's example
        StructField("col1", ArrayType(INTS)),
        StructField("col2", MapType(IntegerType(), INTS)),
        StructField("col3", MapType(IntegerType(), StructType([StructField("subcol1", INTS)]))),
        StructField("col4", IntegerType()),
    ]
)


def mapped(schema, max_id=0):
    names = iter(["p1", "p2", "p3", "p4", "p5", "p6"])
    return with_column_ids(schema, max_id=max_id, new_name=lambda: next(names))


def test_every_element_key_and_value_has_an_id():
    schema, last = with_nested_ids(mapped(SCHEMA)[0], max_id=99)
    found = {f.name: f.metadata[NESTED_IDS] for f in schema.fields}
    assert found == {
        "col1": {"p1.element": 100, "p1.element.element": 101},
        "col2": {"p2.key": 102, "p2.value": 103, "p2.value.element": 104},
        "col3": {"p3.key": 105, "p3.value": 106},
        "col4": {},
    }
    inner = schema["col3"].dataType.valueType["subcol1"]
    assert inner.metadata[NESTED_IDS] == {"p4.element": 107}
    assert last == 107
    assert nested_field_ids(schema) == {
        ("p1", "list", "element"): 100,
        ("p1", "list", "element", "list", "element"): 101,
        ("p2", "key_value", "key"): 102,
        ("p2", "key_value", "value"): 103,
        ("p2", "key_value", "value", "list", "element"): 104,
        ("p3", "key_value", "key"): 105,
        ("p3", "key_value", "value"): 106,
        ("p3", "key_value", "value", "p4", "list", "element"): 107,
    }
    assert without_ids(schema) == SCHEMA
    # What has one keeps it, and the highest id is never given again.
    assert with_nested_ids(schema, max_id=0) == (schema, 107)


def test_ids_are_different_from_those_of_columns():
    schema, max_id = mapped(SCHEMA)
    first, last = with_nested_ids(schema, max_id=max_id)
    columns = {f.metadata["delta.columnMapping.id"] for f in first.fields}
    assert not columns & set(nested_field_ids(first).values())
    # A column that comes later.
    more, highest = with_column_ids(
        StructType([*first.fields, StructField("n", INTS)]), max_id=last
    )
    more, highest = with_nested_ids(more, max_id=highest)
    assert (more["n"].metadata["delta.columnMapping.id"], highest) == (last + 1, last + 2)
    assert list(more["n"].metadata[NESTED_IDS].values()) == [last + 2]


def test_ids_under_the_protocols_own_key_count_too():
    schema, _ = mapped(StructType([StructField("l", INTS)]))
    schema.fields[0].metadata["parquet.field.nested.ids"] = {"p1.element": 7}
    assert nested_field_ids(schema) == {("p1", "list", "element"): 7}
    assert with_nested_ids(schema, max_id=9)[1] == 9


def test_an_id_that_is_missing():
    with raises("DELTA_INVALID_COLUMN_MAPPING", match=r"p1\.element"):
        nested_field_ids(mapped(StructType([StructField("l", INTS)]))[0])


@pytest.mark.parametrize(
    ("data_type", "versions"),
    [
        (StringType(), (1, 2)),
        (DecimalType(10, 2), (1, 2)),
        (StructType([StructField("x", IntegerType())]), (1, 2)),
        (INTS, (2,)),
        (MapType(StringType(), INTS), (2,)),
        (StructType([StructField("x", INTS)]), (2,)),
        (VariantType(), ()),
        (ArrayType(VariantType()), ()),
        (MapType(StringType(), VariantType()), ()),
    ],
)
def test_types(data_type, versions):
    schema = StructType([StructField("a", data_type)])
    check_iceberg_types(schema, None)
    for version in (1, 2):
        if version in versions:
            check_iceberg_types(schema, version)
            continue
        with raises("DELTA_ICEBERG_COMPAT_VIOLATION") as raised:
            check_iceberg_types(schema, version)
        assert raised.value.violation == "UNSUPPORTED_DATA_TYPE"


def test_changes_of_types():
    """Type Widening: only those that Iceberg knows."""

    def changed(from_type, to_type, data_type):
        change = {"fromType": from_type, "toType": to_type}
        field = StructField("x", data_type, metadata={"delta.typeChanges": [change]})
        return StructType([StructField("s", StructType([field]))])

    check_iceberg_types(changed("short", "integer", IntegerType()), 2)
    with raises("DELTA_ICEBERG_COMPAT_VIOLATION") as raised:
        check_iceberg_types(changed("integer", "decimal(12,2)", DecimalType(12, 2)), 2)
    assert raised.value.violation == "UNSUPPORTED_TYPE_WIDENING"
    assert "s.x" in raised.value.problem
