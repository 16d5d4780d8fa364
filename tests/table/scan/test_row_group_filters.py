"""Conditions find their rows in files of any writer, whatever Spark filters row groups by."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import (
    DeltaTable,
    load_snapshot,
    read_changes,
    read_delta,
    write_checkpoint,
    write_delta,
)
from tests.support.log_writer import write_commit
from tests.support.spark_jobs import files_read, plan
from tests.support.table_builder import add, field, metadata, protocol, struct_of

NAN = float("nan")
UTC = dt.timezone.utc
FLOATS = (field("id", "long"), field("f", "double"))
READS: tuple[Callable[[SparkSession, Path, str], DataFrame], ...] = (
    lambda spark, table, where: read_delta(spark, table, where=where),
    lambda spark, table, where: read_delta(spark, table).filter(where),
)


def _table(
    table: Path,
    fields: Sequence[dict[str, Any]],
    rows: pa.Table,
    stats: dict[str, Any] | None = None,
    properties: dict[str, str] | None = None,
) -> Path:
    """A table of one file by pyarrow, with a row group for each row."""
    table.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, table / "a.parquet", row_group_size=1, store_decimal_as_integer=True)
    of_file = {"numRecords": rows.num_rows, **(stats or {})}
    size = (table / "a.parquet").stat().st_size
    action = add("a.parquet", size=size, stats=json.dumps(of_file))
    write_commit(table, 0, [protocol(1, 4), metadata(*fields, configuration=properties), action])
    return table


def _floats(table: Path, numbers: Sequence[float], **fields: Any) -> Path:
    rows = pa.table({"id": pa.array(range(len(numbers)), pa.int64()), "f": list(numbers)})
    return _table(table, FLOATS, rows, **fields)


def _ids(
    spark: SparkSession, table: Path, conditions: Sequence[str], read: Any
) -> dict[str, list[int]]:
    """The ids of the rows that each condition selects, in one job for the rows of all."""
    selected = (
        read(spark, table, condition).select(F.lit(number).alias("n"), "id")
        for number, condition in enumerate(conditions)
    )
    rows = reduce(DataFrame.unionAll, selected).collect()
    return {
        condition: sorted(row["id"] for row in rows if row["n"] == number)
        for number, condition in enumerate(conditions)
    }


@pytest.mark.parametrize("read", READS, ids=("where", "filter"))
def test_nan_and_zeros_of_other_writers_are_selected(
    spark: SparkSession, tmp_path: Path, read: Any
) -> None:
    table = _floats(tmp_path / "t", [NAN, 2.0, -1.0, -0.0])
    wanted = {
        "f > 100": [0],
        "f >= 2": [0, 1],
        "f = double('NaN')": [0],
        "NOT (f <= 100)": [0],
        "f IN (double('NaN'), 7)": [0],
        "f <> 2": [0, 2, 3],
        "f = 0": [3],
        "f >= 0": [0, 1, 3],
    }
    assert _ids(spark, table, list(wanted), read) == wanted


def test_delete_update_and_overwrite_change_nan_rows_of_other_writers(
    spark: SparkSession, tmp_path: Path
) -> None:
    deleted = _floats(tmp_path / "deleted", [NAN, 2.0, -1.0])
    DeltaTable.forPath(spark, str(deleted)).delete("f > 100")
    assert sorted(row["id"] for row in read_delta(spark, deleted).collect()) == [1, 2]
    updated = _floats(tmp_path / "updated", [NAN, 2.0, -1.0])
    DeltaTable.forPath(spark, str(updated)).update("f > 100", {"id": "id + 10"})
    assert sorted(row["id"] for row in read_delta(spark, updated).collect()) == [1, 2, 10]
    replaced = _floats(tmp_path / "replaced", [NAN, 2.0, -1.0])
    new = spark.sql("SELECT 20L AS id, 101D AS f")
    write_delta(new, replaced, mode="overwrite", replace_where="f > 100")
    assert sorted(row["id"] for row in read_delta(spark, replaced).collect()) == [1, 2, 20]


@pytest.mark.full
def test_merge_and_changes_find_nan_rows_of_other_writers(
    spark: SparkSession, tmp_path: Path
) -> None:
    merged = _floats(tmp_path / "merged", [NAN, 2.0, -1.0])
    source = spark.sql("SELECT 30L AS id, double('NaN') AS f")
    (
        DeltaTable.forPath(spark, str(merged))
        .alias("t")
        .merge(source.alias("s"), "t.f = s.f AND t.f > 100")
        .whenMatchedUpdate(set={"id": "s.id"})
        .whenNotMatchedInsert(values={"id": "99", "f": "s.f"})
        .execute()
    )
    assert sorted(row["id"] for row in read_delta(spark, merged).collect()) == [1, 2, 30]
    table = _floats(
        tmp_path / "changed", [NAN, 2.0], properties={"delta.enableChangeDataFeed": "true"}
    )
    changes = read_changes(spark, table, start_version=0).filter("f > 100")
    assert [row["id"] for row in changes.collect()] == [0]


def test_nested_floats_are_not_filtered_by_and_their_siblings_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    structs = [{"f": NAN, "i": 1}, {"f": 1.0, "i": 2}, None]
    rows = pa.table({"id": pa.array([0, 1, 2], pa.int64()), "s": structs})
    fields = (field("id", "long"), field("s", struct_of(field("f", "double"), field("i", "long"))))
    table = _table(tmp_path / "t", fields, rows)
    wanted = {"s.f > 100": [0], "NOT (s.f <= 100)": [0], "s.f IS NULL": [2], "s.i = 1": [0]}
    for read in READS:
        assert _ids(spark, table, list(wanted), read) == wanted
    selected = read_delta(spark, table).filter("s.i = 2 AND s.f < 5").select("id")
    scan = plan(selected)[-1].text
    assert "EqualTo(s.i,2)" in scan
    assert "s.f,5" not in scan
    narrow = plan(read_delta(spark, table).select("s.i"))[-1].text
    assert "ReadSchema: struct<s:struct<i:bigint>>" in narrow


def test_a_late_filter_on_floats_still_chooses_files(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    for number in (1.0, 5.0):
        struct = f"named_struct('f', {number}D, 'i', 1)"
        write_delta(spark.sql(f"SELECT {number}D AS f, {struct} AS s"), table, mode="append")
    for condition in ("f < 2", "s.f < 2"):
        rows = read_delta(spark, table).filter(condition)
        assert len(rows.collect()) == 1
        assert files_read(rows) == [1]


def _metric(rows: DataFrame, name: str) -> int:
    """A metric of the only scan of a DataFrame, which is collected first."""
    plans: Any = rows._jdf.queryExecution().executedPlan()
    if plans.nodeName().startswith("AdaptiveSparkPlan"):
        plans = plans.executedPlan()
    scan = plans.collectLeaves().head()
    return int(scan.metrics().apply(name).value())


@pytest.mark.parametrize("read", READS, ids=("where", "filter"))
def test_row_groups_are_skipped_by_numbers_texts_and_days(
    spark: SparkSession, tmp_path: Path, read: Any
) -> None:
    days = [dt.date(2024, 1, 1 + number) for number in range(4)]
    texts = [f"t{number}" for number in range(4)]
    rows = pa.table({"id": pa.array(range(4), pa.int64()), "s": texts, "d": days, "f": [0.5] * 4})
    fields = (
        field("id", "long"), field("s", "string"), field("d", "date"), field("f", "double")
    )  # fmt: skip
    bounds = {"minValues": {"d": "2024-01-01"}, "maxValues": {"d": "2024-01-04"}}
    table = _table(tmp_path / "t", fields, rows, bounds)
    for condition in ("id = 2", "s = 't2'", "d = DATE'2024-01-03'", "id = 2 AND f < 1"):
        selected = read(spark, table, condition)
        assert [row["id"] for row in selected.collect()] == [2], condition
        assert _metric(selected, "numOutputRows") == 1, condition


GAP = {
    "d = DATE'1582-10-10'": [1],
    "d > DATE'1582-10-08'": [1],
    "d <> DATE'1582-10-10'": [0],
    "d IN (DATE'1582-10-10', DATE'2000-01-01')": [1],
    "d = make_date(1582, 10, 10)": [1],
    "t = TIMESTAMP'1582-10-10 12:00:00'": [1],
    "t > TIMESTAMP'1582-10-05 12:00:00'": [1],
}


def _days(spark: SparkSession, table: Path) -> Path:
    select = "SELECT {id}L AS id, DATE'{day}' AS d, TIMESTAMP'{day} 12:00:00' AS t"
    for number, day in enumerate(("1582-10-04", "1582-10-10")):
        write_delta(spark.sql(select.format(id=number, day=day)), table, mode="append")
    return table


@pytest.mark.full
@pytest.mark.parametrize("read", READS, ids=("where", "filter"))
def test_days_that_the_julian_calendar_has_not_are_selected(
    spark: SparkSession, tmp_path: Path, read: Any
) -> None:
    table = _days(spark, tmp_path / "t")
    assert _ids(spark, table, list(GAP), read) == GAP
    if read is READS[0]:
        later = read_delta(spark, table, where="id >= 0").filter("d = DATE'1582-10-10'")
        assert [row["id"] for row in later.collect()] == [1]
        DeltaTable.forPath(spark, str(table)).delete("d = DATE'1582-10-10'")
        assert [row["id"] for row in read_delta(spark, table).collect()] == [0]


@pytest.mark.full
def test_late_filter_by_a_day_of_the_gap_is_refused_where_a_checkpoint_may_have_such_days(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = _days(spark, tmp_path / "t")
    write_checkpoint(spark, table)
    where = "d = DATE'1582-10-10'"
    assert [row["id"] for row in read_delta(spark, table, where=where).collect()] == [1]
    for selected in ("id >= 0", "t > TIMESTAMP'1000-01-01'", "t <> TIMESTAMP'2024-01-01'"):
        later = read_delta(spark, table, where=selected).filter(where)
        assert [row["id"] for row in later.collect()] == [1], selected
    with pytest.raises(Exception, match="give the condition as where= of read_delta"):
        read_delta(spark, table).filter(where).collect()
    assert read_delta(spark, table).filter("d >= DATE'1582-10-15'").count() == 0


@pytest.mark.full
def test_columns_are_filtered_in_parquet_where_the_condition_excludes_the_gap(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = _days(spark, tmp_path / "t")
    write_checkpoint(spark, table)
    rows = read_delta(spark, table, where="d < DATE'1582-10-05'").filter(
        "t < TIMESTAMP'2024-01-01'"
    )
    assert "PushedFilters: []" in plan(rows)[-1].text
    write_delta(
        spark.sql("SELECT 2L AS id, DATE'2024-01-01' AS d, now() AS t"), table, mode="append"
    )
    rows = read_delta(spark, table, where="d > DATE'1582-10-17'").filter(
        "t > TIMESTAMP'2024-01-01'"
    )
    assert "GreaterThan(d,1582-10-17)" in plan(rows)[-1].text
    assert "GreaterThan(t," not in plan(rows)[-1].text
    assert [row["id"] for row in rows.collect()] == [2]


def test_decimals_of_files_that_were_written_before_a_widening_are_selected(
    spark: SparkSession, tmp_path: Path
) -> None:
    change = {"fromType": "decimal(5,2)", "toType": "decimal(20,2)"}
    fields = (
        field("id", "long"),
        field("c", "decimal(20,2)", metadata={"delta.typeChanges": [change]}),
    )
    rows = pa.table({"id": pa.array([0], pa.int64()), "c": [Decimal("1.00")]})
    rows = rows.set_column(1, "c", rows["c"].cast(pa.decimal128(5, 2)))
    table = tmp_path / "t"
    table.mkdir()
    pq.write_table(rows, table / "a.parquet", store_decimal_as_integer=True)
    size = (table / "a.parquet").stat().st_size
    configuration = {"delta.enableTypeWidening": "true"}
    actions = [
        protocol(features=["typeWidening"]),
        metadata(*fields, configuration=configuration),
        add("a.parquet", size=size),
    ]
    write_commit(table, 0, actions)
    wanted = {"c < 42949672961.00": [0], "c <> 42949672961.00": [0], "c = 1": [0]}
    for read in READS:
        assert _ids(spark, table, list(wanted), read) == wanted


@pytest.mark.full
def test_bounds_with_offsets_without_seconds_keep_their_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    moment = dt.datetime(1850, 1, 1, 0, 7, 33, tzinfo=UTC)
    moments = pa.array([moment], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": pa.array([1], pa.int64()), "t": moments})
    bound = {"id": 1, "t": "1850-01-01T01:01:01.000+00:53"}  # of +00:53:28
    fields = (field("id", "long"), field("t", "timestamp"))
    table = _table(tmp_path / "t", fields, rows, {"minValues": bound, "maxValues": bound})
    wanted = {
        "t = TIMESTAMP'1850-01-01 00:07:33Z'": [1],
        "t <= TIMESTAMP'1850-01-01 00:07:33Z'": [1],
        "t < TIMESTAMP'1850-01-01 00:07:40Z'": [1],
        "t IN (TIMESTAMP'1850-01-01 00:07:33Z', TIMESTAMP'1900-01-01 00:00:00Z')": [1],
        "t > TIMESTAMP'1850-01-01 00:09:10Z'": [],
    }
    for read in READS:
        assert _ids(spark, table, list(wanted), read) == wanted
    assert (
        load_snapshot(spark, table).scan("t > TIMESTAMP'1850-01-01 00:09:10Z'").files().count() == 0
    )
    DeltaTable.forPath(spark, str(table)).delete("t = TIMESTAMP'1850-01-01 00:07:33Z'")
    assert read_delta(spark, table).count() == 0


CONSTANTS = {
    "b": ("byte", pa.int8(), [-1, 0, 7], "{}Y"),
    "i": ("integer", pa.int32(), [-(2**31), 0, 2**31 - 1], "{}"),
    "l": ("long", pa.int64(), [-(2**63) + 1, 0, 2**63 - 1], "{}L"),
    "x": ("float", pa.float32(), [NAN, -0.0, 1.5], "float('{}')"),
    "y": ("double", pa.float64(), [NAN, 0.0, -1.5], "double('{}')"),
    "s": ("string", pa.string(), ["", "Z", "\U0001f600"], "'{}'"),
    "c": (
        "decimal(9,2)", pa.decimal128(9, 2),
        [Decimal("-1.25"), Decimal("0.00"), Decimal("9999999.99")], "{}BD",
    ),
    "d": (
        "date", pa.date32(),
        [dt.date(1582, 10, 10), dt.date(1582, 10, 15), dt.date(2024, 2, 29)], "DATE'{}'",
    ),
    "t": (
        "timestamp", pa.timestamp("us", "UTC"),
        [dt.datetime(1582, 10, 10, 1), dt.datetime(1850, 1, 1, 0, 7, 33), dt.datetime(2024, 2, 29)],
        "TIMESTAMP'{}Z'",
    ),
    "n": (
        "timestamp_ntz", pa.timestamp("us"),
        [dt.datetime(1582, 10, 10, 1), dt.datetime(1850, 1, 1), dt.datetime(2024, 2, 29)],
        "TIMESTAMP_NTZ'{}'",
    ),
}  # fmt: skip
"""The type of a column, its values, and a constant of the type in SQL."""


def _conditions() -> list[str]:
    conditions = []
    for name, (_, _, values, form) in CONSTANTS.items():
        constants = [form.format(value) for value in values]
        for operator in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
            conditions += [f"{name} {operator} {constant}" for constant in constants]
        conditions += [f"NOT ({name} <= {constants[0]})", f"{name} IN ({', '.join(constants[:2])})"]
    return conditions


@pytest.mark.slow
@pytest.mark.parametrize("read", READS, ids=("where", "filter"))
@pytest.mark.every_case
def test_each_operator_on_each_type_selects_the_rows_that_spark_selects_in_memory(
    spark: SparkSession, tmp_path: Path, read: Any
) -> None:
    columns = {
        name: pa.array(values, data_type) for name, (_, data_type, values, _) in CONSTANTS.items()
    }
    rows = pa.table({"id": pa.array([0, 1, 2], pa.int64()), **columns})
    fields = [field("id", "long"), *(field(name, kind[0]) for name, kind in CONSTANTS.items())]
    table = _table(tmp_path / "t", fields, rows)
    conditions = _conditions()
    in_memory = read_delta(spark, table).cache()
    flags = in_memory.select(
        "id", *(F.expr(text).alias(str(number)) for number, text in enumerate(conditions))
    ).collect()
    in_memory.unpersist()
    wanted = {
        text: [row["id"] for row in sorted(flags) if row[str(number)]]
        for number, text in enumerate(conditions)
    }
    for start in range(0, len(conditions), 40):
        part = conditions[start : start + 40]
        assert _ids(spark, table, part, read) == {text: wanted[text] for text in part}
