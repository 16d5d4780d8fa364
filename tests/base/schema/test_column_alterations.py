"""Schemas with a column added, renamed, moved, dropped or of another type, at any level."""

import pytest
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from sparkdelta.base.schema.column_alterations import (
    Position,
    path_text,
    spelled_path,
    with_changed_column,
    with_column,
    with_renamed_column,
    with_wider_type,
    without_column,
)
from sparkdelta.exceptions import ColumnNotFoundError
from tests.support.errors import raises


def struct(**fields):
    return {"type": "struct", "fields": [field(name, kind) for name, kind in fields.items()]}


def field(name, kind):
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def array(element):
    return {"type": "array", "elementType": element, "containsNull": True}


def keyed(key, value):
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def shown(schema):
    return schema.simpleString()


SCHEMA = StructType.fromJson(
    struct(
        a="integer",
        s=struct(X="integer", y="string"),
        items=array(struct(e="integer")),
        m=keyed("string", array("integer")),
    )
)
NEW = StructField("n", LongType())


@pytest.mark.parametrize(
    ("parent", "position", "wanted"),
    [
        ((), None, "m:map<string,array<int>>,n:bigint>"),
        ((), Position(), "struct<n:bigint,a:int,"),
        ((), Position("A"), "struct<a:int,n:bigint,"),
        (("s",), Position("x"), "struct<X:int,n:bigint,y:string>"),
        (("items", "element"), None, "array<struct<e:int,n:bigint>>"),
    ],
)
def test_a_new_column(parent, position, wanted):
    assert wanted in shown(with_column(SCHEMA, parent, NEW, position))


def test_the_first_column_of_a_table_without_columns():
    assert with_column(StructType(), (), NEW, None) == StructType([NEW])


@pytest.mark.parametrize(
    ("parent", "name", "position", "error"),
    [
        ((), "A", None, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (("s",), "x", None, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (("a",), "n", None, "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT"),
        (("items",), "n", None, "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT"),
        ((), "n", Position("nope"), ColumnNotFoundError),
    ],
)
def test_columns_that_have_no_place(parent, name, position, error):
    with raises(error):
        with_column(SCHEMA, parent, StructField(name, LongType()), position)


def test_paths():
    assert spelled_path(SCHEMA, ("ITEMS", "Element", "E")) == ("items", "element", "e")
    assert path_text(("s", "x y", "`", "1")) == "s.`x y`.````.`1`"
    for path in (("s", "nope"), ("a", "element"), ("m", "element")):
        with pytest.raises(ColumnNotFoundError):
            spelled_path(SCHEMA, path)


def test_names_and_order():
    assert "s:struct<q.r:int,y:string>" in shown(with_renamed_column(SCHEMA, ("s", "X"), "q.r"))
    assert with_renamed_column(SCHEMA, ("a",), "A").names == ["A", "s", "items", "m"]
    with raises("DELTA_DUPLICATE_COLUMNS_FOUND"):
        with_renamed_column(SCHEMA, ("s", "X"), "Y")
    assert without_column(SCHEMA, ("s",)).names == ["a", "items", "m"]
    with raises("DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"):
        without_column(SCHEMA, ("items", "element", "e"))
    moved = with_changed_column(SCHEMA, ("s", "y"), lambda f: f, Position())
    assert "s:struct<y:string,X:int>" in shown(moved)
    assert with_changed_column(SCHEMA, ("m",), lambda f: f, Position("a")).names[1] == "m"
    for path in (("a",), ("s", "y")):  # after itself
        assert with_changed_column(SCHEMA, path, lambda f: f, Position(path[-1].upper())) == SCHEMA


def test_wider_types_are_recorded():
    """Type Change Metadata: by the nearest field, with the path inside it."""
    wider = with_wider_type(SCHEMA, ("m", "value", "element"), LongType())
    wider = with_wider_type(wider, ("items", "element", "e"), DoubleType())
    assert shown(wider).endswith("items:array<struct<e:double>>,m:map<string,array<bigint>>>")
    assert wider["m"].metadata == {
        "delta.typeChanges": [
            {"fromType": "integer", "toType": "long", "fieldPath": "value.element"}
        ]
    }
    assert wider["items"].metadata == {}
    assert wider["items"].dataType.elementType["e"].metadata == {
        "delta.typeChanges": [{"fromType": "integer", "toType": "double"}]
    }
