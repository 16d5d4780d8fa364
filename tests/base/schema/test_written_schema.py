"""Tests of the schemas of rows that fit a table."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
    VariantType,
)

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.schema.store_assignment import StoreAssignment
from sparkdelta.base.schema.table_schema import stored_schema
from sparkdelta.base.schema.written_schema import (
    check_collations,
    check_columns,
    check_partition_columns,
    matched_columns,
    new_table_schema,
)
from sparkdelta.exceptions import InvalidColumnNameError
from tests.support.errors import raises


def struct(**fields):
    return StructType([StructField(name, data_type) for name, data_type in fields.items()])


INNER = StructType([StructField("x", IntegerType(), nullable=False)])


def test_a_new_table_promises_nothing():
    """ "Schema Serialization Format": comments and the declared types of strings stay, other
    metadata is about another table.
    """
    metadata = {
        "comment": "c",
        "delta.columnMapping.id": 1,
        "__CHAR_VARCHAR_TYPE_STRING": "char(1)",
    }
    schema = StructType(
        [
            StructField("a", IntegerType(), nullable=False, metadata=metadata),
            StructField("s", INNER, nullable=False),
            StructField("l", ArrayType(INNER, containsNull=False)),
            StructField("m", MapType(StringType(), INNER, valueContainsNull=False)),
            StructField("t", StringType(), metadata=metadata),
        ]
    )
    found = new_table_schema(schema)
    inner = struct(x=IntegerType())
    declared = {key: metadata[key] for key in ("comment", "__CHAR_VARCHAR_TYPE_STRING")}
    assert found == StructType(
        [
            StructField("a", IntegerType(), metadata={"comment": "c"}),
            StructField("s", inner),
            StructField("l", ArrayType(inner)),
            StructField("m", MapType(StringType(), inner)),
            StructField("t", StringType(), metadata=declared),
        ]
    )
    assert found["a"].metadata == {"comment": "c"}
    assert found["t"].metadata == declared


@pytest.mark.parametrize(
    "data_type",
    [CharType(3), VarcharType(3), StructType([])],
)
@pytest.mark.parametrize("wrap", [lambda t: t, ArrayType, lambda t: MapType(StringType(), t),
                                  lambda t: struct(x=t)])  # fmt: skip
def test_types_that_are_not_written(data_type, wrap):
    with raises("DELTA_UNSUPPORTED_DATA_TYPES"):
        check_columns(struct(a=wrap(data_type)))


def test_where_void_is_not_written():
    """Void Type: in arrays and maps, and where nothing would be left."""
    void, text = NullType(), StringType("UTF8_LCASE")
    for wrong in (
        ArrayType(void),
        MapType(text, struct(v=void)),
        ArrayType(struct(v=void, x=text)),
    ):
        with raises("DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"):
            stored_schema(struct(a=LongType(), b=struct(c=LongType(), d=wrong)))
    for nothing in (struct(v=void), struct(a=LongType(), s=struct(v=void, t=struct(v=void)))):
        with raises("DELTA_CANNOT_WRITE_EMPTY_SCHEMA"):
            stored_schema(nothing)
    schema = struct(v=void, a=LongType(), s=struct(v=void, x=text))
    check_columns(schema)
    assert stored_schema(schema) == struct(a=LongType(), s=struct(x=StringType()))


def test_collations_need_their_feature():
    schema = struct(a=LongType(), s=struct(x=ArrayType(StringType("UTF8_LCASE"))))
    check_columns(schema)
    check_collations(schema, Protocol(1, 7, None, ("collations", "domainMetadata")))
    check_collations(struct(a=StringType()), Protocol(1, 2))
    with raises("DELTA_UNSUPPORTED_DATA_TYPES"):
        check_collations(schema, Protocol(1, 7, None, ("domainMetadata",)))


@pytest.mark.parametrize(
    "name", ["a b", "a,b", "a;b", "a{", "a}", "(a", "a)", "a\nb", "a\tb", "a=b", ""]
)
def test_names_that_data_files_cannot_have(name):
    for schema in (struct(**{name: IntegerType()}), struct(s=struct(**{name: IntegerType()}))):
        with pytest.raises(InvalidColumnNameError):
            check_columns(schema)


def test_names_of_columns_that_are_mapped():
    """Column Mapping: data files have names of their own."""
    schema = struct(**{"a b": struct(**{"x,y": IntegerType()})})
    check_columns(schema, any_names=True)
    with pytest.raises(InvalidColumnNameError):
        check_columns(struct(**{"": IntegerType()}), any_names=True)


def test_names_are_unique_whatever_their_case():
    for schema in (
        struct(a=IntegerType(), A=IntegerType()),
        struct(dıd=IntegerType(), did=IntegerType()),
        struct(s=struct(x=LongType(), X=LongType())),
    ):
        with raises("DELTA_DUPLICATE_COLUMNS_FOUND"):
            check_columns(schema)
    check_columns(struct(a=IntegerType(), s=struct(a=IntegerType())))


def test_partition_columns():
    schema = struct(a=IntegerType(), b=StringType(), c=ArrayType(LongType()), d=BinaryType())
    assert check_partition_columns(schema, ["B", "a"]) == ("b", "a")
    assert check_partition_columns(schema, []) == ()
    greek = StructType([StructField("Σdate", StringType()), StructField("n", LongType())])
    assert check_partition_columns(greek, ["ςDATE"]) == ("Σdate",)
    schema = schema.add("v", VariantType())
    for names in (["x"], ["a", "A"], ["c"], ["d"], ["v"]):
        with raises("DELTA_INVALID_PARTITION_COLUMN"):
            check_partition_columns(schema, names)
    with raises("DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"):
        check_partition_columns(struct(a=IntegerType()), ["a"])


@pytest.mark.parametrize(
    ("table", "rows", "fits"),
    [
        (LongType(), IntegerType(), True),
        (IntegerType(), LongType(), True),
        (StringType(), IntegerType(), True),
        (IntegerType(), StringType(), False),
        (TimestampType(), BooleanType(), False),
        (INNER, struct(x=LongType()), True),
        (INNER, struct(y=IntegerType()), False),
    ],
)
def test_which_types_fit(table, rows, fits):
    if fits:
        [(field, source)] = matched_columns(struct(c=table), struct(C=rows), path="/t")
        assert (field.name, source) == ("c", "C")
    else:
        with raises("DELTA_FAILED_TO_MERGE_FIELDS"):
            matched_columns(struct(c=table), struct(c=rows), path="/t")


@pytest.mark.parametrize(
    ("table", "exact", "rounded"),
    [
        (IntegerType(), [LongType(), DecimalType(38, 0)], [FloatType(), DecimalType(3, 1)]),
        (FloatType(), [ByteType(), ShortType()], [IntegerType(), DoubleType(), DecimalType(1, 0)]),
        (DoubleType(), [IntegerType(), FloatType()], [LongType(), DecimalType(1, 0)]),
        (DecimalType(4, 2), [LongType(), DecimalType(38, 2)], [DecimalType(4, 3), DoubleType()]),
        (DateType(), [DateType(), TimestampType(), TimestampNTZType()], []),
        (TimestampType(), [DateType(), TimestampNTZType()], []),
        (StringType(), [DoubleType(), TimestampType(), BinaryType()], []),
    ],
)
def test_types_whose_values_would_be_rounded_fit_only_where_sql_converts(table, exact, rounded):
    for rows in (*exact, *rounded):
        for pair in (
            (struct(c=table), struct(c=rows)),
            (struct(c=struct(x=table)), struct(c=struct(X=rows))),
            (struct(c=ArrayType(table)), struct(c=ArrayType(rows))),
            (struct(c=MapType(table, table)), struct(c=MapType(table, rows))),
        ):
            assert len(matched_columns(*pair, path="/t", policy=StoreAssignment.ANSI)) == 1
            if rows in exact:
                assert len(matched_columns(*pair, path="/t")) == 1
            else:
                with raises("DELTA_FAILED_TO_MERGE_FIELDS"):
                    matched_columns(*pair, path="/t")


def test_columns_that_one_side_lacks():
    table = struct(a=IntegerType(), b=IntegerType())
    found = matched_columns(table, struct(b=IntegerType()), path="/t")
    assert [(field.name, source) for field, source in found] == [("a", None), ("b", "b")]
    with raises("DELTA_METADATA_MISMATCH"):
        matched_columns(table, struct(c=IntegerType()), path="/t")
