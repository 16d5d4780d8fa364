"""Schemas that rows of other schemas can be read with.

PROTOCOL.md#reader-requirements-for-type-widening,
PROTOCOL.md#reader-requirements-for-column-mapping
"""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.column_mapping import PHYSICAL_NAME
from sparkdelta.base.schema.read_compatibility import is_read_compatible, is_readable_as

pytestmark = pytest.mark.usefixtures("spark")  # which parses the schemas


@pytest.mark.parametrize(
    ("written", "read", "expected"),
    [
        ("a INT", "a INT", True),
        ("a INT", "a INT, b STRING", True),
        ("a INT, b STRING", "a INT", False),
        ("a INT", "A INT", False),
        ("a INT", "a LONG", True),
        ("a LONG", "a INT", False),
        ("a INT", "a STRING", False),
        ("a INT NOT NULL", "a INT", True),
        ("a INT", "a INT NOT NULL", False),
        ("s STRUCT<x: INT>", "s STRUCT<x: INT, y: INT>", True),
        ("s STRUCT<x: INT, y: INT>", "s STRUCT<x: INT>", False),
        ("l ARRAY<STRUCT<x: INT>>", "l ARRAY<STRUCT<x: BIGINT, y: INT>>", True),
        ("l ARRAY<INT>", "l MAP<INT, INT>", False),
        ("m MAP<INT, INT>", "m MAP<INT, STRING>", False),
    ],
)
def test_changes(written: str, read: str, *, expected: bool) -> None:
    old, new = StructType.fromDDL(written), StructType.fromDDL(read)
    assert is_read_compatible(old, new) == expected


@pytest.mark.parametrize(
    ("read", "written", "expected"),
    [
        ("a INT", "a INT, b STRING", True),
        ("a INT, b STRING", "a INT", False),
        ("a INT", "A INT", False),
        ("a INT", "a LONG", False),
        ("a INT NOT NULL", "a INT", False),
        ("a INT", "a INT NOT NULL", True),
        ("s STRUCT<x: INT>", "s STRUCT<x: INT, y: INT>", True),
        ("s STRUCT<x: INT, y: INT>", "s STRUCT<x: INT>", False),
        ("l ARRAY<STRUCT<x: INT>>", "l ARRAY<STRUCT<x: INT, y: INT>>", True),
        ("l ARRAY<STRUCT<x: INT>>", "l ARRAY<STRUCT<x: BIGINT>>", False),
        ("m MAP<INT, INT>", "m MAP<INT, INT>", True),
        ("m MAP<INT, INT>", "m MAP<BIGINT, INT>", False),
        ("m MAP<INT, INT>", "m MAP<INT, STRING>", False),
        ("l ARRAY<INT>", "l MAP<INT, INT>", False),
    ],
)
def test_later_rows_are_read_with_an_earlier_schema(
    read: str, written: str, *, expected: bool
) -> None:
    old, new = StructType.fromDDL(read), StructType.fromDDL(written)
    assert is_readable_as(old, new) == expected


def test_later_rows_have_the_same_names_in_files() -> None:
    def table(physical: str) -> StructType:
        return StructType([StructField("a", StructType(), True, {PHYSICAL_NAME: physical})])

    none, name, by_id = ColumnMappingMode
    assert is_readable_as(table("x"), table("x"), name, name)
    assert not is_readable_as(table("x"), table("y"), name, name)
    assert is_readable_as(table("x"), table("a"), none, name)
    assert not is_readable_as(table("x"), table("y"), none, name)
    assert not is_readable_as(table("a"), table("a"), none, by_id)


def test_names_of_mapped_columns() -> None:
    """A column that was dropped and added again is another one."""

    def table(physical: str) -> StructType:
        return StructType([StructField("a", StructType(), True, {PHYSICAL_NAME: physical})])

    none, name, by_id = ColumnMappingMode
    assert is_read_compatible(table("x"), table("x"), name, name)
    assert not is_read_compatible(table("x"), table("y"), name, name)
    assert is_read_compatible(table("x"), table("y"), none, none)
    # Mapping by name was enabled or removed between them: files have the names of columns.
    assert is_read_compatible(table("x"), table("a"), none, name)
    assert is_read_compatible(table("a"), table("x"), name, none)
    assert not is_read_compatible(table("a"), table("x"), none, name)
    assert not is_read_compatible(table("x"), table("a"), name, none)
    assert not is_read_compatible(table("a"), table("a"), none, by_id)
