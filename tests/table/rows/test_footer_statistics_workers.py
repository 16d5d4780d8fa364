"""Statistics from footers: never a bound that a value is beyond."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from sparkdelta.base.parquet.parquet_schema_workers import file_schema
from sparkdelta.table.rows.footer_statistics_workers import _upper_prefix, file_statistics


def footer(table: pa.Table, *, by_spark: bool = True, rows: int = 2) -> pq.ParquetFile:
    """A file of pyarrow; its footer may name the writer that Spark has."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=rows, store_decimal_as_integer=True)
    content = sink.getvalue().to_pybytes()
    if by_spark:
        name = pq.ParquetFile(pa.BufferReader(content)).metadata.created_by.encode()
        content = content.replace(name, b"parquet-mr version 1.17.0".ljust(len(name)))
    return pq.ParquetFile(pa.BufferReader(content))


def statistics(file: pq.ParquetFile, *columns: tuple[str, ...]) -> dict[str, Any]:
    text = file_statistics(file.metadata, file_schema(file), columns)
    found: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return found


UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("values", "data_type", "low", "high"),
    [
        ([3, None, -1, None, None], pa.int32(), -1, 3),
        ([2**62, 1], pa.int64(), 1, 2**62),
        ([1.5, -2.0, 0.0], pa.float64(), Decimal("-2.0"), Decimal("1.5")),
        ([1.0, float("inf")], pa.float64(), None, None),
        ([Decimal("1.50"), Decimal("-7.25")], pa.decimal128(9, 2), Decimal("-7.25"),
         Decimal("1.50")),
        ([Decimal("-0.000000000001"), Decimal(10) ** 20], pa.decimal128(38, 12),
         Decimal("-0.000000000001"), Decimal("100000000000000000000.000000000000")),
        ([Decimal("-" + "9" * 38), Decimal("9" * 37 + "8")], pa.decimal128(38, 0),
         -int("9" * 38), int("9" * 37 + "8")),
        ([Decimal("-0." + "1" * 38), Decimal("0." + "0" * 37 + "1")], pa.decimal128(38, 38),
         Decimal("-0." + "1" * 38), Decimal("0." + "0" * 37 + "1")),
        ([Decimal("12345678901234567890.123456789012345678")], pa.decimal128(38, 18),
         Decimal("12345678901234567890.123456789012345678"),
         Decimal("12345678901234567890.123456789012345678")),
        ([dt.date(2024, 2, 29), dt.date(1, 1, 1)], pa.date32(), "0001-01-01", "2024-02-29"),
        ([dt.datetime(2024, 2, 29, 1, 2, 3, 4567, UTC)], pa.timestamp("us", "UTC"),
         "2024-02-29T01:02:03.004Z", "2024-02-29T01:02:03.005Z"),
        ([dt.datetime(1900, 1, 1, 0, 0, 0, 1, UTC)], pa.timestamp("us", "UTC"),
         "1900-01-01T00:00:00.000Z", "1900-01-01T00:00:00.001Z"),
        ([dt.datetime(2024, 2, 29, 1, 2, 3)], pa.timestamp("us"),
         "2024-02-29T01:02:03.000", "2024-02-29T01:02:03.000"),
        (["b", "ä", "a"], pa.string(), "a", "ä"),
        (['"\\\n'], pa.string(), '"\\\n', '"\\\n'),
        ([True, False], pa.bool_(), None, None),
        ([b"x"], pa.binary(), None, None),
        ([None, None], pa.int32(), None, None),
    ],
)  # fmt: skip
def test_bounds(values: Any, data_type: pa.DataType, low: Any, high: Any) -> None:
    """ "Per-file Statistics", over several row groups."""
    found = statistics(footer(pa.table({"c": pa.array(values, data_type)})), ("c",))
    assert found["numRecords"] == len(values)
    assert found["nullCount"] == {"c": values.count(None)}
    assert (found["minValues"].get("c"), found["maxValues"].get("c")) == (low, high)


@pytest.mark.parametrize("values", [[1.5, math.nan], [1.5, 2.5]])
def test_floats_of_writers_that_leave_out_nan(values: list[float]) -> None:
    """ "Per-file Statistics": of a column with NaN Arrow's footers hold bounds of the numbers."""
    single = pa.array(values, pa.float32())
    table = pa.table({"f": single, "s": [{"d": value, "n": None} for value in values], "i": [1, 2]})
    paths = (("f",), ("s", "d"), ("i",))
    found = statistics(footer(table, by_spark=False), *paths)
    assert found["minValues"] == {"i": 1}
    assert found["maxValues"] == {"i": 2}
    assert found["nullCount"] == {"f": 0, "s": {"d": 0}, "i": 0}


def test_floats_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """ "Per-file Statistics": its footers hold NaN as the maximum."""
    rows = "VALUES (double('NaN'), 1F), (1D, 2F), (2D, 3F) AS t(d, f)"
    spark.sql(f"SELECT d, named_struct('f', f, 'd', d) AS s FROM {rows}").coalesce(1).write.parquet(
        str(tmp_path / "t")
    )
    (path,) = (tmp_path / "t").glob("*.parquet")
    found = statistics(pq.ParquetFile(path), ("d",), ("s", "f"), ("s", "d"))
    assert found["minValues"] == {"s": {"f": 1}}
    assert found["maxValues"] == {"s": {"f": 3}}
    assert found["nullCount"] == {"d": 0, "s": {"f": 0, "d": 0}}


def test_only_the_wanted_columns() -> None:
    table = pa.table({
        "a": pa.array([{"x": 1, "y": "s"}, None]),
        "l": pa.array([[1, 2], None]),
        "b.c": [1, 2],
        "no": [1, 2],
    })  # fmt: skip
    found = statistics(footer(table), ("a", "x"), ("l",), ("b.c",), ("gone",), ("a",))
    assert found["minValues"] == {"a": {"x": 1}, "b.c": 1}
    assert found["nullCount"] == {"a": {"x": 1}, "b.c": 0}


def test_text_is_not_escaped() -> None:
    file = footer(pa.table({"𠀀": ["é", "𠀀" * 33]}))
    text = file_statistics(file.metadata, file_schema(file), (("𠀀",),))
    assert '"minValues":{"𠀀":"é"}' in text
    assert f'"maxValues":{{"𠀀":"{"𠀀" * 32}􏿿"}}' in text


def test_a_row_group_without_bounds_spoils_the_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"c": [1, 2]}), tmp_path / "f", write_statistics=False)
    file = pq.ParquetFile(tmp_path / "f")
    found = json.loads(file_statistics(file.metadata, file_schema(file), (("c",),)))
    assert found == {
        "numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {}, "tightBounds": True,
    }  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.text(st.sampled_from("a\u00fc\ud7ff\ue000\U0010ffff"), max_size=40),
    st.sampled_from([0, 1, 32]),
)
def test_a_shortened_text_is_not_less(text: str, length: int) -> None:
    assert _upper_prefix(text, length).encode() >= text.encode()
    assert text.encode() >= text[:32].encode()


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    numbers = st.integers(-most, most) | st.sampled_from([-most, 1 - most, most - 1, most])
    return numbers.map(lambda number: Decimal(f"{number}E-{scale}"))


ORDERED = {
    "decimal": (pa.decimal128(38, 0), _decimals(38, 0)),
    "fraction": (pa.decimal128(38, 38), _decimals(38, 38)),
    "both": (pa.decimal128(38, 18), _decimals(38, 18)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats()),
    "float": (pa.float32(), st.floats(width=32)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "text": (pa.string(), st.text(st.sampled_from("a\u00fc\ufffd\uffff\U0001f600\U0010ffff"))),
}


@pytest.mark.parametrize("name", ORDERED)
@settings(deadline=None, max_examples=25)
@given(st.data())
def test_no_value_is_beyond_its_bounds(name: str, data: st.DataObject) -> None:
    """ "Per-file Statistics", up to the limits of the types."""
    data_type, strategy = ORDERED[name]
    values = data.draw(st.lists(strategy | st.none(), min_size=1, max_size=5))
    found = statistics(footer(pa.table({"c": pa.array(values, data_type)})), ("c",))
    low, high = found["minValues"].get("c"), found["maxValues"].get("c")
    for value in values:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            continue
        assert low is None or _ordered(low, value) <= _ordered(value, value)
        assert high is None or _ordered(value, value) <= _ordered(high, value)


def _ordered(bound: Any, value: Any) -> Any:
    """A bound, or a value, as what compares like values of its type."""
    if isinstance(value, str):
        return bound.encode()
    if isinstance(value, float):
        return float(bound)
    if isinstance(value, dt.date) and isinstance(bound, str):
        return type(value).fromisoformat(bound)
    return bound
