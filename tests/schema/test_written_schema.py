"""Which rows fit which table."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
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
)

from sparkdelta.exceptions import (
    DuplicateColumnsError,
    InvalidColumnNameError,
    InvalidPartitionColumnError,
    MergeFieldsError,
    MetadataMismatchError,
    UnsupportedDataTypeError,
)
from sparkdelta.schema.written_schema import (
    check_columns,
    check_partition_columns,
    field_metadata,
    indexed_columns,
    matched_columns,
    nested_not_null,
    new_table_schema,
    uses_type,
)


def struct(**fields):
    return StructType([StructField(name, data_type) for name, data_type in fields.items()])


INNER = StructType([StructField("x", IntegerType(), nullable=False)])


def test_a_new_table_promises_nothing():
    """ "Schema Serialization Format": comments stay, other metadata is about another table."""
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
        ]
    )
    found = new_table_schema(schema)
    inner = struct(x=IntegerType())
    assert found == StructType(
        [
            StructField("a", IntegerType(), metadata={"comment": "c"}),
            StructField("s", inner),
            StructField("l", ArrayType(inner)),
            StructField("m", MapType(StringType(), inner)),
        ]
    )
    assert found["a"].metadata == {"comment": "c"}


@pytest.mark.parametrize(
    "data_type",
    [NullType(), CharType(3), VarcharType(3), StringType("UTF8_LCASE"), StructType([])],
)
@pytest.mark.parametrize("wrap", [lambda t: t, ArrayType, lambda t: MapType(StringType(), t),
                                  lambda t: struct(x=t)])  # fmt: skip
def test_types_that_are_not_written(data_type, wrap):
    with pytest.raises(UnsupportedDataTypeError):
        check_columns(struct(a=wrap(data_type)))


@pytest.mark.parametrize(
    "name", ["a b", "a,b", "a;b", "a{", "a}", "(a", "a)", "a\nb", "a\tb", "a=b", ""]
)
def test_names_that_data_files_cannot_have(name):
    for schema in (struct(**{name: IntegerType()}), struct(s=struct(**{name: IntegerType()}))):
        with pytest.raises(InvalidColumnNameError):
            check_columns(schema)


def test_names_are_unique_whatever_their_case():
    for schema in (
        struct(a=IntegerType(), A=IntegerType()),
        struct(s=struct(x=LongType(), X=LongType())),
    ):
        with pytest.raises(DuplicateColumnsError):
            check_columns(schema)
    check_columns(struct(a=IntegerType(), s=struct(a=IntegerType())))


def test_partition_columns():
    schema = struct(a=IntegerType(), b=StringType(), c=ArrayType(LongType()), d=BinaryType())
    assert check_partition_columns(schema, ["B", "a"]) == ("b", "a")
    assert check_partition_columns(schema, []) == ()
    for names in (["x"], ["a", "A"], ["c"], ["d"]):
        with pytest.raises(InvalidPartitionColumnError):
            check_partition_columns(schema, names)
    with pytest.raises(InvalidPartitionColumnError):
        check_partition_columns(struct(a=IntegerType()), ["a"])


@pytest.mark.parametrize(
    ("table", "rows", "fits"),
    [
        (LongType(), IntegerType(), True),
        (LongType(), ByteType(), True),
        (IntegerType(), ShortType(), True),
        (DoubleType(), FloatType(), True),
        (IntegerType(), LongType(), False),
        (FloatType(), DoubleType(), False),
        (DoubleType(), LongType(), False),
        (StringType(), IntegerType(), False),
        (TimestampType(), DateType(), False),
        (TimestampType(), TimestampNTZType(), False),
        (DecimalType(10, 2), DecimalType(9, 2), False),
        (INNER, struct(x=IntegerType()), True),
        (INNER, struct(y=IntegerType()), False),
        (INNER, struct(x=LongType()), False),
        (ArrayType(LongType()), ArrayType(LongType(), containsNull=False), True),
    ],
)
def test_which_types_fit(table, rows, fits):
    if fits:
        [(field, source)] = matched_columns(struct(c=table), struct(C=rows), path="/t")
        assert (field.name, source) == ("c", "C")
    else:
        with pytest.raises(MergeFieldsError):
            matched_columns(struct(c=table), struct(c=rows), path="/t")


def test_columns_that_one_side_lacks():
    table = struct(a=IntegerType(), b=IntegerType())
    found = matched_columns(table, struct(b=IntegerType()), path="/t")
    assert [(field.name, source) for field, source in found] == [("a", None), ("b", "b")]
    with pytest.raises(MetadataMismatchError):
        matched_columns(table, struct(c=IntegerType()), path="/t")


def test_which_columns_have_statistics():
    """ "Per-file Statistics": the first leaves; partition columns are none."""
    schema = struct(p=LongType(), s=struct(x=LongType(), y=struct(z=LongType())), a=LongType())
    assert indexed_columns(schema, ["P"], 2) == (("s", "x"), ("s", "y", "z"))
    assert indexed_columns(schema, ["p"], -1) == (("s", "x"), ("s", "y", "z"), ("a",))
    assert indexed_columns(schema, [], 0) == ()


def test_what_is_promised_inside_columns():
    assert nested_not_null(StructType([StructField("a", IntegerType(), nullable=False)])) == []
    commented = StructType([StructField("x", IntegerType(), metadata={"comment": "c"})])
    assert nested_not_null(struct(s=commented)) == []
    for data_type in (INNER, ArrayType(LongType(), False), MapType(LongType(), LongType(), False)):
        assert nested_not_null(struct(s=data_type)) == ["s"]


def test_looking_inside_types():
    nested = struct(a=ArrayType(MapType(StringType(), struct(x=TimestampNTZType()))))
    assert uses_type(nested, TimestampNTZType)
    assert not uses_type(nested, TimestampType)
    inner = StructType([StructField("x", LongType(), metadata={"k": "v"})])
    assert field_metadata(struct(a=ArrayType(inner))) == {"a": {}, "a.x": {"k": "v"}}
