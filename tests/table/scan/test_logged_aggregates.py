"""``count(*)``, ``min`` and ``max`` of a table come from its log where that knows them exactly."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import sparkdelta
from sparkdelta import DeltaTable, load_snapshot, read_delta, write_delta
from sparkdelta.base.jvm import jvm_aggregates
from sparkdelta.exceptions import DeltaConcurrentModificationException
from tests.support.errors import raises
from tests.support.log_writer import write_checkpoint, write_commit
from tests.support.settings import settings
from tests.support.spark_jobs import counted_jobs, jvm_calls, no_jobs, plan
from tests.support.table_builder import (
    add,
    field,
    ids,
    inline_vector,
    metadata,
    protocol,
    remove,
    write_data,
)

pytestmark = pytest.mark.classic("Spark Connect reads files")

FIELDS = (
    field("id", "long"), field("n", "integer"), field("d", "date"), field("s", "string"),
    field("x", "double"), field("m", "decimal(38,0)"), field("t", "timestamp"),
)  # fmt: skip
LARGE, SMALL = Decimal(10**38 - 1), Decimal(1 - 10**38)
VECTORS = protocol(features=["deletionVectors"])


def _file(table: Path, name: str, columns: Mapping[str, list[Any]], **more: Any) -> dict[str, Any]:
    """Write a data file of some columns, with exact bounds of those whose JSON is their value."""
    types = {
        "id": pa.int64(), "n": pa.int32(), "d": pa.date32(), "s": pa.string(), "x": pa.float64(),
        "m": pa.decimal128(38, 0), "t": pa.timestamp("us", tz="UTC"),
    }  # fmt: skip
    rows = pa.table({key: pa.array(values, types[key]) for key, values in columns.items()})
    action = write_data(table, name, rows, **{k: v for k, v in more.items() if k != "stats"})
    known = {key: [v for v in values if v is not None] for key, values in columns.items()}
    stats: dict[str, Any] = {
        "numRecords": rows.num_rows,
        "minValues": {key: min(values) for key, values in known.items() if values},
        "maxValues": {key: max(values) for key, values in known.items() if values},
        "nullCount": {key: values.count(None) for key, values in columns.items()},
        **more.get("stats", {}),
    }
    text = json.dumps(
        {key: value for key, value in stats.items() if value is not None}, default=_stored
    )
    action["add"]["stats"] = text
    return action


def _stored(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
    return str(value) if isinstance(value, dt.date) else float(value)


DAY, MOMENT = dt.date(2024, 5, 1), dt.datetime(2024, 5, 1, 12, 0, 0, 123456, dt.timezone.utc)
ROWS: Mapping[str, list[Any]] = {
    "id": [3, 1, 2], "n": [7, None, -5], "d": [DAY, None, dt.date(2023, 1, 1)],
    "s": ["a", "b" * 40, None], "x": [0.5, math.nan, -1.5], "m": [LARGE, SMALL, None],
    "t": [MOMENT, None, MOMENT],
}  # fmt: skip
NULLS: Mapping[str, list[Any]] = {"id": [9], **{key: [None] for key in ROWS if key != "id"}}


def _plain(table: Path) -> list[dict[str, Any]]:
    return [_file(table, "a", ROWS), _file(table, "b", {**NULLS, "n": [40]})]


def _truncated(table: Path) -> list[dict[str, Any]]:
    """A file of inexact bounds: text is truncated, decimals are rounded, NaN is missing."""
    bounds = {
        "minValues": {"id": 1, "s": "a", "x": -1.5, "m": -1e38},
        "maxValues": {"id": 3, "s": "c", "x": 0.5, "m": 1e38},
    }
    return [_file(table, "a", ROWS, stats=bounds)]


def _wide(table: Path) -> list[dict[str, Any]]:
    return [_file(table, "a", ROWS, stats={"tightBounds": False, "minValues": {"id": 0}})]


def _vectors(table: Path) -> list[dict[str, Any]]:
    return [*_plain(table), _file(table, "c", ROWS, deletionVector=inline_vector([0, 1]))]


def _of_no_rows(table: Path) -> list[dict[str, Any]]:
    """One file has no rows, and of another one all are deleted."""
    none = _file(table, "none", {key: [] for key in ROWS}, stats={"minValues": None})
    gone = _file(table, "gone", {"id": [77]}, deletionVector=inline_vector([0]))
    return [*_plain(table), none, gone]


def _without(member: str) -> Callable[[Path], list[dict[str, Any]]]:
    return lambda table: [
        *_plain(table),
        _file(table, "c", {**ROWS, "id": [8, 8, 8]}, stats={member: None}),
    ]


def _without_statistics(table: Path) -> list[dict[str, Any]]:
    other = _file(table, "c", ROWS)
    del other["add"]["stats"]
    return [*_plain(table), other]


def _evolved(table: Path) -> list[dict[str, Any]]:
    """An older file has no column `n`."""
    return [*_plain(table), _file(table, "old", {"id": [0]})]


def _old_days(table: Path) -> list[dict[str, Any]]:
    """A day that two calendars name differently."""
    return [_file(table, "a", {**NULLS, "d": [dt.date(1500, 1, 1)]})]


COUNT, ID, N, D = "count(*)", "max(id)", "min(n)", "max(d)"
TABLES: dict[str, tuple[Callable[[Path], list[dict[str, Any]]], set[str]]] = {
    "plain": (_plain, {COUNT, ID, N, D}),
    "empty": (lambda _: [], {COUNT, ID, N, D}),
    "truncated": (_truncated, {COUNT, ID}),
    "wide": (_wide, {COUNT}),
    "vectors": (_vectors, {COUNT}),
    "no rows": (_of_no_rows, {COUNT, ID, N, D}),
    "no statistics": (_without_statistics, set()),
    "no number": (_without("numRecords"), set()),
    "no bounds": (_without("maxValues"), {COUNT, N}),
    "no null count": (_without("nullCount"), {COUNT, ID, N, D}),
    "evolved": (_evolved, {COUNT, ID}),
    "old days": (_old_days, {COUNT, ID, N}),
}
"""Tables, and the aggregates that their logs know."""


def _is_by_log(rows: DataFrame) -> bool:
    return plan(rows)[0].name == "LocalTableScan"


QUICK = ("plain", "vectors", "no statistics", "truncated")
"""The tables that `make test` has."""


@pytest.mark.every_case
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in TABLES],
)
def test_aggregates_are_those_of_the_files(
    enabled: SparkSession, tmp_path: Path, name: str
) -> None:
    """The log answers exactly where it can, and never else.

    PROTOCOL.md#per-file-statistics
    """
    files, known = TABLES[name]
    write_commit(tmp_path, 0, [VECTORS, metadata(*FIELDS), *files(tmp_path)])
    rows = enabled.read.format("delta").load(str(tmp_path))
    assert rows.count() == rows.selectExpr("count(*)").collect()[0][0]
    wanted = [COUNT, ID, N, D, *(f"{each}({key})" for key in "sxmt" for each in ("min", "max"))]
    [expected] = rows.selectExpr(*wanted).collect()
    for aggregate, value in zip(wanted, expected, strict=True):
        found = enabled.sql(f"SELECT {aggregate} FROM delta.`{tmp_path}`")
        assert _is_by_log(found) == (aggregate in known), aggregate
        assert str(found.collect()[0][0]) == str(value), aggregate  # NaN is not equal to itself


@pytest.fixture
def table(enabled: SparkSession, table_path: str) -> str:
    """A table with the ids 0 to 9 in two files."""
    write_delta(enabled.range(0, 10, 1, 2), table_path)
    return table_path


def _load(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("delta").load(path)


def _append_by_another_engine(table: str, rows: pa.Table, **fields: Any) -> None:
    log = Path(table) / "_delta_log"
    version = len(list(log.glob("*.json")))
    write_commit(Path(table), version, [write_data(Path(table), f"f{version}", rows, **fields)])


def test_an_unchanged_table_is_counted_without_a_job(enabled: SparkSession, table: str) -> None:
    rows = _load(enabled, table)
    with counted_jobs(enabled) as jobs:
        assert rows.count() == 10
        found = enabled.sql(f"SELECT count(*) FROM delta.`{table}`")
    assert jobs.count <= 2  # for the logs of two snapshots
    with no_jobs(enabled):
        assert rows.count() == 10
        assert found.collect() == [(10,)]
    assert found.where("`count(1)` > 10").collect() == []


@pytest.mark.parametrize("of_frame", [True, False])
def test_counts_are_of_the_version_that_a_query_reads(
    enabled: SparkSession, table: str, *, of_frame: bool
) -> None:
    def read(version: str = "") -> Callable[[], int]:
        rows = enabled.sql(f"SELECT * FROM delta.`{table}` {version}")
        if of_frame:
            return rows.count
        return lambda: rows.selectExpr("count(*)").collect()[0][0]

    latest, pinned, ours = read(), read("VERSION AS OF 0"), read_delta(enabled, table)
    _append_by_another_engine(table, ids(10, 14))
    assert (latest(), pinned(), ours.count()) == (14, 10, 10)
    DeltaTable.forPath(enabled, table).delete("id = 0")
    assert (latest(), pinned(), ours.count()) == (13, 10, 10)
    write_commit(Path(table), 3, [remove(f) for f in _paths(enabled, table)])
    assert (latest(), pinned()) == (0, 10)


def _paths(spark: SparkSession, table: str) -> list[str]:
    return [row["path"] for row in load_snapshot(spark, table).add_files().collect()]


def test_a_result_is_of_the_version_when_it_is_collected(enabled: SparkSession, table: str) -> None:
    text = f"SELECT count(*) AS n, max(id) AS last FROM delta.`{table}`"
    rows, later = enabled.sql(text), enabled.sql(text)
    rows.createOrReplaceTempView("counted")
    pinned = enabled.sql(f"{text} VERSION AS OF 0")
    assert all(map(_is_by_log, (rows, pinned)))
    stats = {"numRecords": 5, "minValues": {"id": 10}, "maxValues": {"id": 14}}
    _append_by_another_engine(table, ids(10, 15))
    _add_with_statistics(table, stats)
    assert [each.collect() for each in (later, pinned)] == [[(15, 14)], [(10, 9)]]
    assert enabled.table("counted").collect() == [(15, 14)]
    enabled.catalog.dropTempView("counted")


def _add_with_statistics(table: str, stats: dict[str, Any] | None) -> None:
    """Commit the last file again with other statistics."""
    log = Path(table) / "_delta_log"
    version = len(list(log.glob("*.json")))
    action = json.loads((log / f"{version - 1:020}.json").read_text())
    action["add"]["stats"] = None if stats is None else json.dumps(stats)
    write_commit(Path(table), version, [action])


def test_files_are_read_if_a_later_log_does_not_know(enabled: SparkSession, table: str) -> None:
    rows = enabled.sql(f"SELECT count(*), max(id) FROM delta.`{table}`")
    again = enabled.sql(f"SELECT count(*), max(id) FROM delta.`{table}`")
    assert rows.collect() == [(10, 9)]
    _append_by_another_engine(table, ids(10, 15))
    _add_with_statistics(table, None)
    assert again.collect() == [(15, 14)]
    assert rows.where("`max(id)` > 3").collect() == [(15, 14)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(id) FROM {}",
        "SELECT count(DISTINCT id) FROM {}",
        "SELECT count(*) FILTER (WHERE id > 3) FROM {}",
        "SELECT max(id + 1) FROM {}",
        "SELECT count(*) + 1 FROM {}",
        "SELECT count(*) FROM {} WHERE id > 3",
        "SELECT count(*) FROM {} GROUP BY id % 2",
        "SELECT count(*) FROM {} HAVING count(*) > 20",
        "SELECT count(*) FROM (SELECT * FROM {} LIMIT 3)",
        "SELECT count(*) FROM (SELECT DISTINCT id % 3 FROM {})",
        "SELECT count(*) FROM (SELECT explode(array(1, 2)) FROM {})",
        "SELECT count(*) FROM {} AS a JOIN {} AS b ON a.id = b.id",
        "SELECT count(*) FROM (TABLE {} UNION ALL TABLE {})",
        "SELECT max(x) FROM (SELECT -id AS x FROM {})",
        "SELECT count(*) FROM {} TABLESAMPLE (3 ROWS)",
    ],
)  # fmt: skip
def test_other_queries_read_files(enabled: SparkSession, table: str, query: str) -> None:
    vectors = {"delta.enableDeletionVectors": "true"}
    enabled.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('{next(iter(vectors))}' = 'true')")
    DeltaTable.forPath(enabled, table).delete("id = 5")
    _load(enabled, table).createOrReplaceTempView("delta_rows")
    enabled.createDataFrame(read_delta(enabled, table).toArrow()).createOrReplaceTempView("plain")
    name = f"delta.`{table}`"
    found = enabled.sql(query.format(name, name))
    assert not _is_by_log(found)
    assert sorted(found.collect()) == sorted(enabled.sql(query.format("plain", "plain")).collect())
    for view in ("delta_rows", "plain"):
        enabled.catalog.dropTempView(view)


def test_counts_of_other_rows_of_a_table(enabled: SparkSession, table: str) -> None:
    rows = _load(enabled, table)
    found = [
        rows.union(rows), rows.limit(3), rows.where("id > 3"), rows.distinct(), rows.sample(0.0),
        rows.join(rows.select("id"), "id"), rows.groupBy().count(),
        rows.selectExpr("explode(array(id, id))"),
    ]  # fmt: skip
    assert [each.count() for each in found] == [20, 3, 6, 10, 0, 10, 1, 20]
    renamed = rows.select("id", rows["id"] + 1).withColumnRenamed("id", "x").alias("a")
    assert renamed.count() == 10
    with no_jobs(enabled):
        assert renamed.count() == 10


def test_bounds_are_of_the_column_of_a_name(enabled: SparkSession, table_path: str) -> None:
    """Physical names are no other column's name."""
    rows = enabled.range(10).selectExpr("id AS a", "id + 100 AS b").coalesce(1)
    write_delta(rows, table_path, properties={"delta.columnMapping.mode": "name"})
    name = f"delta.`{table_path}`"
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        enabled.sql(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}")
    found = enabled.sql(f"SELECT min(A), max(t.b) FROM {name} AS t")
    assert _is_by_log(found)
    assert found.collect() == [(100, 9)]
    swapped = enabled.sql(f"SELECT max(a), max(b) FROM (SELECT a AS b, b AS a FROM {name})")
    assert swapped.collect() == [(9, 109)]


def test_bounds_of_partition_columns_and_generated_columns(
    enabled: SparkSession, table_path: str
) -> None:
    (
        DeltaTable.create(enabled)
        .location(table_path)
        .addColumn("id", "BIGINT")
        .addColumn("p", "INT")
        .addColumn("twice", "BIGINT", generatedAlwaysAs="id * 2")
        .partitionedBy("p")
        .execute()
    )
    rows = enabled.sql("VALUES (1L, 3), (2L, NULL), (9L, 10) AS t(id, p)")
    write_delta(rows, table_path, mode="append")
    name = f"delta.`{table_path}`"
    found = enabled.sql(f"SELECT min(p), max(p), max(twice), count(1) FROM {name}")
    assert _is_by_log(found)
    assert found.collect() == [(3, 10, 18, 3)]
    DeltaTable.forPath(enabled, table_path).delete("p IS NOT NULL")
    assert found.selectExpr("*").collect() == [(None, None, 4, 1)]


PARTITIONED = {
    "p": "INT", "s": "STRING", "b": "BOOLEAN", "c": "CHAR(3)", "x": "DOUBLE", "t": "TIMESTAMP",
}  # fmt: skip
"""Partition columns. The log answers about the first three."""


@pytest.fixture
def partitioned(enabled: SparkSession, table_path: str) -> Iterator[str]:
    """A table with partition values at their limits, of which one has no rows left."""
    columns = ", ".join(f"{name} {kind}" for name, kind in PARTITIONED.items())
    name, vectors = f"delta.`{table_path}`", "'delta.enableDeletionVectors' = 'true'"
    enabled.sql(
        f"CREATE TABLE {name} (id BIGINT, {columns}) USING delta "
        f"PARTITIONED BY ({', '.join(PARTITIONED)}) "
        f"TBLPROPERTIES ({vectors}, 'delta.columnMapping.mode' = 'name')"
    )
    enabled.sql(
        f"""INSERT INTO {name} VALUES
        (1, 3, 'a', true, 'u', 0.0D, TIMESTAMP '2024-03-10 02:30:00'),
        (2, 3, 'a', true, 'u', -0.0D, TIMESTAMP '2024-03-10 02:30:00'),
        (3, NULL, '', NULL, NULL, DOUBLE('NaN'), NULL),
        (4, -1, 'a b/%=😀', false, 'vv', 1.5D, NULL),
        (5, -1, 'A', false, 'vv', 1.5D, NULL),
        (6, 77, 'gone', false, 'vv', 1.5D, NULL)"""
    )
    enabled.sql(f"DELETE FROM {name} WHERE id IN (1, 6)")
    with settings(enabled, {"spark.sql.session.timeZone": "Asia/Kathmandu"}):
        yield name


KNOWN_GROUPS = (
    "SELECT DISTINCT p FROM {}",
    "SELECT DISTINCT S, p FROM {} AS t",
    "SELECT DISTINCT b FROM {} ORDER BY b DESC LIMIT 2",
    "SELECT count(p), count(DISTINCT p), count(DISTINCT s), count(b) FROM {}",
    "SELECT p, count(*) AS n, min(p), count(s) FROM {} GROUP BY p ORDER BY n, p",
    "SELECT count(*) FROM {} GROUP BY s, b",
    "SELECT p, max(id) FROM {} GROUP BY p",
)
UNKNOWN_GROUPS = (
    "SELECT max(n) FROM (SELECT p, count(*) AS n FROM {} GROUP BY p)",
    "SELECT DISTINCT c FROM {}",
    "SELECT DISTINCT x FROM {}",
    "SELECT DISTINCT t FROM {}",
    "SELECT DISTINCT p, id FROM {}",
    "SELECT DISTINCT p + 1 FROM {}",
    "SELECT p AS q, count(*) FROM {} GROUP BY p + 0, p",
    "SELECT sum(DISTINCT p) FROM {}",
    "SELECT count(DISTINCT p, s) FROM {}",
    "SELECT count(id) FROM {}",
    "SELECT p, count(*) FROM {} GROUP BY p WITH ROLLUP",
    "SELECT DISTINCT p FROM {} WHERE p > 0",
)


@pytest.mark.parametrize(
    ("queries", "is_known"), [(KNOWN_GROUPS, True), (UNKNOWN_GROUPS, False)], ids=["log", "files"]
)
def test_groups_of_partition_values(
    enabled: SparkSession, partitioned: str, queries: Sequence[str], *, is_known: bool
) -> None:
    """PROTOCOL.md#partition-value-serialization"""
    rows = enabled.table(partitioned).toArrow()
    enabled.createDataFrame(rows).createOrReplaceTempView("plain")
    for query in queries:
        found, expected = (enabled.sql(query.format(each)) for each in (partitioned, "plain"))
        kinds = {node.name for node in plan(found)}
        assert ("LocalTableScan" in kinds) == is_known, query
        assert [(f.name, f.dataType) for f in found.schema] == [
            (f.name, f.dataType) for f in expected.schema
        ], query
        results = [each.collect() for each in (found, expected)]
        if "ORDER BY" not in query:
            results = [sorted(each, key=str) for each in results]
        assert str(results[0]) == str(results[1]), query  # NaN is not equal to itself
    enabled.catalog.dropTempView("plain")


def test_groups_are_of_the_version_that_a_query_reads(
    enabled: SparkSession, partitioned: str
) -> None:
    found = enabled.sql(f"SELECT DISTINCT p FROM {partitioned} ORDER BY p")
    assert found.collect() == [(None,), (-1,), (3,)]
    enabled.sql(f"DELETE FROM {partitioned} WHERE p = -1")
    assert found.selectExpr("p").collect() == [(None,), (3,)]
    enabled.sql(f"DELETE FROM {partitioned}")
    assert found.selectExpr("p").collect() == []


def test_too_many_groups_are_read_from_files(enabled: SparkSession, partitioned: str) -> None:
    with patch("sparkdelta.table.scan.logged_aggregates._MAX_GROUPS", 2):
        found = enabled.sql(f"SELECT DISTINCT p FROM {partitioned}")
        assert "LocalTableScan" not in {node.name for node in plan(found)}
        assert len(found.collect()) == 3


def test_statistics_of_a_checkpoint(enabled: SparkSession, tmp_path: Path) -> None:
    actions = [protocol(), metadata(*FIELDS), *_plain(tmp_path)]
    write_checkpoint(tmp_path, 0, actions)
    write_commit(tmp_path, 0, actions)
    write_commit(tmp_path, 1, [_file(tmp_path, "c", {**NULLS, "id": [50]})])
    found = enabled.sql(f"SELECT count(*), max(id), min(d) FROM delta.`{tmp_path}`")
    assert _is_by_log(found)
    assert found.collect() == [(5, 50, dt.date(2023, 1, 1))]


def test_cached_rows_are_counted(enabled: SparkSession, table: str) -> None:
    """A count fills the cache, as users expect."""
    rows = _load(enabled, table).persist()
    text = f"SELECT count(*) FROM delta.`{table}`"
    try:
        with counted_jobs(enabled) as jobs:
            assert rows.count() == 10
        assert jobs.count > 0
        assert rows.where("id >= 0").count() == 10
        (Path(table) / _paths(enabled, table)[0]).unlink()
        assert rows.count() == 10
        assert not _is_by_log(enabled.sql(text))
    finally:
        rows.unpersist()
    assert _is_by_log(enabled.sql(text))
    assert rows.count() == 10
    with no_jobs(enabled):
        assert rows.count() == 10


def test_a_cached_result_follows_commits(enabled: SparkSession, table: str) -> None:
    rows = enabled.sql(f"SELECT count(*) FROM delta.`{table}`").persist()
    assert rows.collect() == [(10,)]
    write_delta(enabled.range(10, 11), table, mode="append")
    try:
        assert rows.selectExpr("*").collect() == [(11,)]
    finally:
        rows.unpersist()


def test_a_write_depends_on_the_version_that_it_counted(enabled: SparkSession, table: str) -> None:
    rows = enabled.sql(f"SELECT count(*) AS id FROM delta.`{table}`")
    rows.write.format("delta").mode("append").save(table)
    assert read_delta(enabled, table).where("id = 10").count() == 1
    cached = enabled.sql(f"SELECT count(*) AS id FROM delta.`{table}`").persist()
    assert cached.collect() == [(11,)]
    _append_by_another_engine(table, ids(20, 21))
    try:
        with pytest.raises(DeltaConcurrentModificationException):
            cached.write.format("delta").mode("overwrite").save(table)
    finally:
        cached.unpersist()


def test_a_changed_schema_is_an_error(enabled: SparkSession, table: str) -> None:
    rows = _load(enabled, table)
    write_delta(enabled.sql("SELECT 'x' AS id"), table, mode="overwrite", overwrite_schema=True)
    with raises("DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS") as raised:
        rows.count()
    assert isinstance(raised.value, AnalysisException)


def test_a_wrong_total_is_found(enabled: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL.md#state-validation"""
    actions = [protocol(), metadata(), add("a", stats='{"numRecords": 3}')]
    write_checkpoint(tmp_path, 0, actions)
    checksum = {"tableSizeBytes": 1, "numFiles": 2, "numMetadata": 1, "numProtocol": 1}
    (tmp_path / "_delta_log" / f"{0:020}.crc").write_text(json.dumps(checksum))
    with raises("DELTA_MALFORMED_LOG_FILE"):
        _load(enabled, str(tmp_path)).count()


def test_sessions_that_are_not_enabled_read_files(spark: SparkSession, table_path: str) -> None:
    write_delta(spark.range(3), table_path)
    found = sparkdelta.sql(spark, f"SELECT count(*) FROM delta.`{table_path}`")
    assert not _is_by_log(found)
    with counted_jobs(spark) as jobs:
        assert read_delta(spark, table_path).count() == 3
    assert jobs.count > 0


def test_files_are_read_if_spark_has_other_interfaces(enabled: SparkSession, table: str) -> None:
    with (
        patch.object(jvm_aggregates._AnsweredRows.Java, "implements", ("org.example.Table",)),
        patch.object(jvm_aggregates, "_completed", set()),
    ):
        found = enabled.sql(f"SELECT count(*) FROM delta.`{table}`")
    assert not _is_by_log(found)
    assert found.collect() == [(10,)]


def test_other_counts_take_few_calls(enabled: SparkSession) -> None:
    rows = enabled.range(3)
    for number in range(20):
        rows = rows.withColumn(f"c{number}", rows["id"])
    counted = jvm_calls(enabled, rows.count)
    sparkdelta.disable(enabled)
    assert counted - jvm_calls(enabled, rows.count) <= 15
