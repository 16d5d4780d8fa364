""" "Writer Requirements for Column Mapping": ids and physical names."""

from itertools import count

from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from sparkdelta.base.schema.column_ids import with_column_ids, with_ids_of, without_ids
from sparkdelta.base.schema.needed_features import field_metadata

INNER = StructType([StructField("x", LongType(), metadata={"comment": "c"})])
SCHEMA = StructType(
    [
        StructField("a", LongType(), nullable=False),
        StructField("s", INNER),
        StructField("m", MapType(INNER, ArrayType(INNER, False))),
    ]
)


def mapping(schema):
    return {
        name: (m["delta.columnMapping.id"], m["delta.columnMapping.physicalName"])
        for name, m in field_metadata(schema).items()
    }


def test_every_field_at_every_level_has_its_own():
    numbers = count(1)
    schema, last = with_column_ids(SCHEMA, max_id=7, new_name=lambda: f"c{next(numbers)}")
    found = []

    def walk(data_type):
        if isinstance(data_type, StructType):
            for field in data_type.fields:
                found.append(field.metadata)
                walk(field.dataType)
        elif isinstance(data_type, ArrayType):
            walk(data_type.elementType)
        elif isinstance(data_type, MapType):
            walk(data_type.keyType)
            walk(data_type.valueType)

    walk(schema)
    ids = [metadata["delta.columnMapping.id"] for metadata in found]
    names = {metadata["delta.columnMapping.physicalName"] for metadata in found}
    assert (sorted(ids), last) == (list(range(8, 14)), 13)
    assert len(names) == 6
    assert without_ids(schema) == SCHEMA
    # Those that have them keep them, and the highest id is never given again.
    assert with_column_ids(schema, max_id=0) == (schema, 13)
    more, last = with_column_ids(
        StructType([*schema.fields, StructField("n", StringType())]), max_id=20
    )
    assert (more["n"].metadata["delta.columnMapping.id"], last) == (21, 21)


def test_new_names_are_unique():
    """Assign a globally unique identifier as the physical name."""
    first, second = (with_column_ids(SCHEMA, max_id=0)[0] for _ in range(2))
    assert not {n for _, n in mapping(first).values()} & {n for _, n in mapping(second).values()}
    assert first["a"].metadata["delta.columnMapping.physicalName"].startswith("col-")


def test_columns_that_stay_when_a_table_is_overwritten():
    before, _ = with_column_ids(SCHEMA, max_id=0)
    after = StructType(
        [
            StructField("S", StructType([*INNER.fields, StructField("y", LongType())])),
            StructField("a", StringType()),
            StructField("b", LongType()),
        ]
    )
    found, last = with_column_ids(with_ids_of(after, before), max_id=6)
    old, new = mapping(before), mapping(found)
    assert (new["S"], new["S.x"]) == (old["s"], old["s.x"])
    assert {new[name][0] for name in ("S.y", "a", "b")} == {7, 8, 9}
    assert last == 9
