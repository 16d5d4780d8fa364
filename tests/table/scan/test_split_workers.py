"""Tests of the workers' reader of Parquet files: row groups, batches, and refused files."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkdelta.base.parquet.row_group_workers import Bound, RowGroupBound
from tests.support.errors import raises
from tests.support.table_builder import array_of, field, map_of, struct_of
from tests.support.workers import read_batches, read_rows

UTC = dt.timezone.utc
COUNT = 50_000
LARGE = (field("id", "long"), field("s", "string"), field("f", "double"))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of ten row groups, in the order of its columns."""
    data = pa.table(
        {
            "id": pa.array(range(COUNT), pa.int64()),
            "s": [f"text {n:05}" for n in range(COUNT)],
            "f": pa.array([float(n) for n in range(COUNT)]),
        }
    )
    file = tmp_path_factory.mktemp("large") / "f"
    pq.write_table(data, file, row_group_size=COUNT // 10)
    return file


@pytest.mark.parametrize(
    ("limits", "smallest", "largest"),
    [({"batch_rows": 700}, 700, 700), ({"batch_bytes": 10_000}, 100, 1_000), ({}, 5_000, 5_000)],
)
def test_batches_are_bounded(
    large: Path, limits: dict[str, int], smallest: int, largest: int
) -> None:
    """The size of a batch is bounded in rows, and in bytes by what the footer says."""
    sizes = [batch.num_rows for batch in read_batches(large, *LARGE, **limits)]
    assert sum(sizes) == COUNT
    assert smallest <= max(sizes) <= largest


@pytest.mark.parametrize(
    ("bound", "groups"),
    [
        (RowGroupBound(("id",), 10_000, 14_999), 1),
        (RowGroupBound(("ID",), None, 5_000), 2),
        (RowGroupBound(("id",), 45_000, None), 1),
        (RowGroupBound(("id",), 50_000, None), 0),
        (RowGroupBound(("id",), None, -1), 0),
        (RowGroupBound(("f",), None, 4_999.0), 1),
        (RowGroupBound(("f",), 45_000.0, None), 10),  # NaN may be in any row group
        (RowGroupBound(("f",), None, float("nan")), 10),
        (RowGroupBound(("s",), "text 2", None), 6),
        (RowGroupBound(("s",), None, "text 09999z"), 2),
        (RowGroupBound(("s",), "u", None), 0),
        (RowGroupBound(("id",), None, None), 10),
        (RowGroupBound(("id",), "1", None), 10),
        (RowGroupBound(("gone",), 1, None), 10),
    ],
)
def test_row_groups_are_passed_over(large: Path, bound: RowGroupBound, groups: int) -> None:
    found = read_rows(large, *LARGE, bounds=(bound,))
    assert len(found) == groups * COUNT // 10


def test_bounds_are_a_conjunction(large: Path) -> None:
    bounds = (RowGroupBound(("id",), 10_000, None), RowGroupBound(("s",), None, "text 1"))
    assert [row[0] for row in read_rows(large, *LARGE, bounds=bounds)] == []
    assert len(read_rows(large, *LARGE[1:], bounds=bounds)) == 10_000  # of a column that is read


def test_rows_of_nan_are_kept(tmp_path: Path) -> None:
    """Statistics pass NaN over, and it is greater than any number."""
    pq.write_table(pa.table({"f": [1.0, float("nan")]}), tmp_path / "f")
    bound = RowGroupBound(("f",), 5.0, None)
    assert len(read_rows(tmp_path / "f", field("f", "double"), bounds=(bound,))) == 2


MOMENT = dt.datetime(2024, 5, 1, tzinfo=UTC)
LOCAL = MOMENT.replace(tzinfo=None)
MICROSECOND = dt.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("column", "less", "same", "more"),
    [
        (("d",), dt.date(2024, 4, 30), dt.date(2024, 5, 1), dt.date(2024, 5, 2)),
        (("t",), MOMENT - MICROSECOND, MOMENT, MOMENT + MICROSECOND),
        (("n",), LOCAL - MICROSECOND, LOCAL, LOCAL + MICROSECOND),
        (("w",), LOCAL - MICROSECOND, LOCAL, LOCAL + MICROSECOND),
        (("m",), Decimal("-1.51"), Decimal("-1.50"), Decimal("-1.49")),
        (("i",), Decimal("4.99"), 5, Decimal("5.01")),
        (("o", "X"), 6, 7, 8),
    ],
)
def test_bounds_of_other_types(
    tmp_path: Path, column: tuple[str, ...], less: Bound, same: Bound, more: Bound
) -> None:
    """Bounds apply to columns of any type, also to widened ones: `w` is a date in the file, `i` an
    integer.
    """
    schema = (
        field("d", "date"), field("t", "timestamp"), field("n", "timestamp_ntz"),
        field("m", "decimal(12,2)"), field("i", "decimal(12,2)"), field("w", "timestamp_ntz"),
        field("o", struct_of(field("x", "integer"))),
    )  # fmt: skip
    data = pa.table(
        {
            "d": [dt.date(2024, 5, 1)],
            "t": pa.array([MOMENT], pa.timestamp("ms", "UTC")),
            "n": pa.array([LOCAL], pa.timestamp("us")),
            "m": pa.array([Decimal("-1.50")], pa.decimal128(12, 2)),
            "i": pa.array([5], pa.int32()),
            "w": [dt.date(2024, 5, 1)],
            "o": pa.array([{"x": 7}], pa.struct([("x", pa.int32())])),
        }
    )
    pq.write_table(data, tmp_path / "f")
    for bound, count in (
        (RowGroupBound(column, same, same), 1),
        (RowGroupBound(column, less, None), 1),
        (RowGroupBound(column, None, more), 1),
        (RowGroupBound(column, more, None), 0),
        (RowGroupBound(column, None, less), 0),
    ):
        assert len(read_rows(tmp_path / "f", *schema, bounds=(bound,))) == count, bound


def test_a_moment_without_a_zone_says_nothing_of_one_with_a_zone(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": pa.array([MOMENT], pa.timestamp("us", "UTC"))}), tmp_path / "f")
    for bound in (LOCAL + dt.timedelta(1), dt.date(2030, 1, 1)):
        given = (RowGroupBound(("t",), bound, None),)
        assert len(read_rows(tmp_path / "f", field("t", "timestamp"), bounds=given)) == 1


def test_statistics_of_old_calendars_and_int96_are_not_used(tmp_path: Path) -> None:
    old = pa.table({"d": [dt.date(1400, 1, 1)]})
    writer = {"org.apache.spark.version": "2.4.8"}
    pq.write_table(old.replace_schema_metadata(writer), tmp_path / "f")
    after = (RowGroupBound(("d",), dt.date(1400, 1, 5), None),)
    assert read_rows(tmp_path / "f", field("d", "date"), bounds=after) == [(dt.date(1399, 12, 24),)]
    moments = pa.table({"t": pa.array([MOMENT], pa.timestamp("us", "UTC"))})
    pq.write_table(moments, tmp_path / "g", use_deprecated_int96_timestamps=True)
    after = (RowGroupBound(("t",), MOMENT + dt.timedelta(9), None),)
    assert read_rows(tmp_path / "g", field("t", "timestamp"), bounds=after) == [(MOMENT,)]


@pytest.mark.parametrize(
    ("logical", "data_type"),
    [
        ("integer", pa.int64()), ("integer", pa.string()), ("long", pa.float64()),
        ("long", pa.uint64()), ("long", pa.timestamp("us")), ("float", pa.float64()),
        ("double", pa.int64()), ("decimal(9,2)", pa.int32()), ("decimal(21,2)", pa.int64()),
        ("decimal(5,2)", pa.decimal128(9, 2)), ("decimal(9,1)", pa.decimal128(9, 2)),
        ("string", pa.int64()), ("binary", pa.decimal128(9, 2)), ("date", pa.string()),
        ("timestamp", pa.int64()), ("timestamp", pa.timestamp("ns")), ("timestamp", pa.date32()),
        ("boolean", pa.int32()), (array_of("integer"), pa.int32()),
        ("integer", pa.list_(pa.int32())),
        (struct_of(field("x", "integer")), pa.int32()), (map_of("string", "long"), pa.int64()),
        ("variant", pa.struct([("value", pa.binary())])), ("variant", pa.binary()),
        (struct_of(field("x", "integer")), pa.struct([("x", pa.int64())])),
    ],
)  # fmt: skip
def test_another_type_is_refused(tmp_path: Path, logical: Any, data_type: pa.DataType) -> None:
    pq.write_table(pa.table({"c": pa.array([None], data_type)}), tmp_path / "f")
    with raises("DELTA_DATA_FILE_UNSUPPORTED") as raised:
        read_batches(tmp_path / "f", field("c", logical))
    assert raised.value.column == "c"
    assert raised.value.file.endswith("/f")


@pytest.mark.parametrize(
    ("logical", "values"),
    [
        ("byte", pa.array([300], pa.int32())),
        ("integer", pa.array([2**32 - 1], pa.uint32())),
        ("timestamp", pa.array([2**62], pa.timestamp("ms", "UTC"))),
        ("timestamp_ntz", pa.array([2**31 - 1], pa.int32()).view(pa.date32())),
    ],
)
def test_a_value_that_does_not_fit_is_refused(
    tmp_path: Path, logical: str, values: pa.Array
) -> None:
    pq.write_table(pa.table({"c": values}), tmp_path / "f")
    with raises("DELTA_DATA_FILE_UNSUPPORTED"):
        read_batches(tmp_path / "f", field("c", logical))


def test_fields_that_may_both_be_meant_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table([[1], [2]], names=["a", "A"]), tmp_path / "f")
    with raises("DELTA_DATA_FILE_UNSUPPORTED"):
        read_batches(tmp_path / "f", field("a", "long"))


def test_ids_without_any_in_the_file_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "f")
    with raises("DELTA_DATA_FILE_UNSUPPORTED"):
        read_batches(tmp_path / "f", field("a", "long", metadata={"parquet.field.id": 1}))
