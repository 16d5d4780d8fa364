"""The comparison itself: what it takes for equal, and what it must not."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.support import rows
from tests.support.corpus import Predicate, spark_literal
from tests.support.rows import assert_same_rows, python_rows, type_name, without_void

_MAP = pa.map_(pa.string(), pa.list_(pa.float64()))
_VARIANT = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
_VARIANT_METADATA_FIRST = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])


def one_column(values: list[Any], data_type: pa.DataType) -> pa.Table:
    return pa.table({"c": pa.array(values, data_type)})


@pytest.mark.parametrize(
    ("actual", "expected", "data_type"),
    [
        ([1, 2, 2, None], [2, None, 1, 2], pa.int32()),
        ([float("nan"), 1.5], [1.5, float("nan")], pa.float64()),
        ([[("a", [1.0]), ("b", None)]], [[("b", None), ("a", [1.0])]], _MAP),
        ([None, [], [None]], [[None], None, []], pa.list_(pa.int8())),
        ([{"a": None}, None], [None, {"a": None}], pa.struct([("a", pa.date32())])),
        ([b"\x00", b""], [b"", b"\x00"], pa.binary()),
    ],
)
def test_equal(actual: list[Any], expected: list[Any], data_type: pa.DataType) -> None:
    assert_same_rows(one_column(actual, data_type), one_column(expected, data_type))


@pytest.mark.parametrize(
    ("actual", "expected", "data_type"),
    [
        ([1, 1, 2], [1, 2, 2], pa.int32()),
        ([0.0], [-0.0], pa.float32()),
        ([None], [""], pa.string()),
        ([None], [[]], pa.list_(pa.int8())),
        ([None], [{"a": None}], pa.struct([("a", pa.int8())])),
        ([[1, 2]], [[2, 1]], pa.list_(pa.int8())),
        ([[("a", [1.0])]], [[("a", [2.0])]], _MAP),
        ([[("a", None)]], [[]], _MAP),
        ([True], [None], pa.bool_()),
        ([], [None], pa.null()),
    ],
)
def test_different(actual: list[Any], expected: list[Any], data_type: pa.DataType) -> None:
    with pytest.raises(AssertionError, match="rows differ"):
        assert_same_rows(one_column(actual, data_type), one_column(expected, data_type))


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (pa.int32(), pa.int64()),
        (pa.decimal128(10, 2), pa.decimal128(11, 2)),
        (pa.timestamp("us"), pa.timestamp("us", tz="UTC")),
        (pa.string(), pa.binary()),
        (pa.struct([("a", pa.int8())]), pa.struct([("A", pa.int8())])),
    ],
)
def test_types_differ(actual: pa.DataType, expected: pa.DataType) -> None:
    with pytest.raises(AssertionError, match="columns differ"):
        assert_same_rows(one_column([], actual), one_column([], expected))


def test_layouts_of_one_type_are_equal() -> None:
    names = ["a", "b", "a"]
    assert_same_rows(
        one_column(names, pa.dictionary(pa.int32(), pa.string())),
        one_column(names, pa.large_string()),
    )
    zoned = datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert_same_rows(
        one_column([zoned], pa.timestamp("us", tz="Etc/UTC")),
        one_column([zoned], pa.timestamp("ms", tz="UTC")),
    )


def test_order_of_columns_counts() -> None:
    table = pa.table({"a": [1], "b": [2]})
    with pytest.raises(AssertionError, match="columns differ"):
        assert_same_rows(table, table.select(["b", "a"]))


def test_slices_compare_by_what_they_show() -> None:
    values = [[("a", [1.0])], None, [], [("b", [2.0, 3.0]), ("c", None)]]
    whole = one_column(values, _MAP)
    for start in range(4):
        for length in range(4 - start):
            part = one_column(values[start : start + length], _MAP)
            assert_same_rows(whole.slice(start, length), part)


def test_instants_beyond_the_calendar() -> None:
    micros = pa.array([-(10**18), 10**18], pa.int64())
    column = micros.cast(pa.timestamp("us", tz="UTC"))
    assert python_rows(pa.table({"c": column})) == [(-(10**18),), (10**18,)]
    ancient = one_column([date(1, 1, 1)], pa.date32())
    assert_same_rows(ancient, ancient)


def test_variants() -> None:
    document = {"metadata": b"\x01\x01\x00\x01k", "value": b"\x02\x01\x00\x00\x02\x0c\x07"}
    other = {**document, "value": b"\x02\x01\x00\x00\x02\x0c\x08"}
    actual = one_column([document, None], _VARIANT)
    assert type_name(_VARIANT) == type_name(_VARIANT_METADATA_FIRST) == "variant"
    assert_same_rows(actual, one_column([None, document], _VARIANT_METADATA_FIRST))
    with pytest.raises(AssertionError, match="rows differ"):
        assert_same_rows(actual, one_column([None, other], _VARIANT))
    assert_same_rows(actual, one_column(['{"k": 7}', None], pa.string()), variants_as_json=True)
    nested = pa.list_(pa.struct([("v", _VARIANT)]))
    text = pa.list_(pa.struct([("v", pa.string())]))
    assert_same_rows(
        one_column([[{"v": document}, None], None], nested),
        one_column([None, [{"v": '{"k":7}'}, None]], text),
        variants_as_json=True,
    )


def test_void_columns_can_be_left_out() -> None:
    void = pa.array([None], pa.null())
    table = pa.table({"a": [1], "b": void, "c": pa.StructArray.from_arrays([void], ["d"])})
    assert without_void(table).column_names == ["a"]


def test_large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_MANY_ROWS", 3)
    values = [Decimal(n) for n in (5, 3, 3, 1)]
    table = one_column([*values, None], pa.decimal128(9, 2))
    assert_same_rows(table, one_column([None, *reversed(values)], pa.decimal128(9, 2)))
    with pytest.raises(AssertionError, match="1 missing, 1 unexpected"):
        assert_same_rows(table, one_column([*values, Decimal(1)], pa.decimal128(9, 2)))


def test_the_difference_is_readable() -> None:
    instant = pa.timestamp("us", tz="UTC")
    actual = pa.table({"id": [1, 2], "at": pa.array([0, 86_400_000_000], instant)})
    expected = pa.table({"id": [1, 2], "at": pa.array([0, 1], instant)})
    with pytest.raises(AssertionError) as caught:
        assert_same_rows(actual, expected)
    assert str(caught.value).splitlines() == [
        "rows differ: 2 expected, 2 actual, 1 missing, 1 unexpected",
        "columns: id: long, at: timestamp",
        "missing x1: (2, 1970-01-01 00:00:00.000001)",
        "unexpected x1: (2, 1970-01-02 00:00:00)",
        "most similar pair:",
        "  at: expected 1970-01-01 00:00:00.000001, actual 1970-01-02 00:00:00",
    ]


def test_predicates_in_spark_sql() -> None:
    assert Predicate("a`b", "=", "string", "it's \\").spark_sql() == r"`a``b` = 'it\'s \\'"
    assert Predicate("x.y", "is_null", "long", None).spark_sql() == "`x.y` IS NULL"
    assert spark_literal("timestamp", "2024-01-01T00:00:00") == "TIMESTAMP'2024-01-01T00:00:00Z'"
    offset = spark_literal("timestamp", "2024-01-01T00:00:00-02:00")
    assert offset == "TIMESTAMP'2024-01-01T00:00:00-02:00'"
    assert spark_literal("decimal(5,2)", "1.50") == "CAST('1.50' AS decimal(5,2))"
