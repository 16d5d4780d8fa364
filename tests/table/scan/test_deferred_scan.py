"""Filters that come after `read_delta` choose files as its `where` does."""

from __future__ import annotations

import datetime as dt
import gc
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote

import pyarrow as pa
import pytest
from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import load_snapshot, read_delta, write_delta
from sparkdelta.base.jvm import jvm_file_index
from sparkdelta.base.spark import classic_engine
from sparkdelta.exceptions import InvalidPartitionValueError
from sparkdelta.table.log.log_reader import FileLists
from sparkdelta.table.scan import scan as scans
from sparkdelta.table.scan.deferred_scan import LateFiles
from sparkdelta.table.scan.file_listing_modes import FileListingMode
from sparkdelta.table.scan.live_files import LiveFiles
from tests.support.log_writer import write_checkpoint, write_commit
from tests.support.settings import settings
from tests.support.snapshots import SPARK_ERRORS, raised_by, rows
from tests.support.spark_jobs import files_read, no_jobs, plan
from tests.support.table_builder import (
    create,
    field,
    ids,
    inline_vector,
    metadata,
    protocol,
    remove,
    struct_of,
    write_data,
)

FILES = 8
START = dt.datetime(2024, 3, 1, tzinfo=dt.timezone.utc)
FIELDS = (
    field("id", "long"), field("n", "integer"), field("s", "string"), field("t", "timestamp"),
    field("d", "date"), field("x", "double"), field("o", struct_of(field("i", "long"))),
    field("p", "integer"), field("b", "binary"), field("m", "decimal(10,2)"),
)  # fmt: skip
PHYSICAL = {"delta.columnMapping.mode": "name"}


def _rows(number: int) -> pa.Table:
    """Ten rows of a file, of which one has nulls."""
    at = list(range(number * 10, number * 10 + 10))
    moments = [START + dt.timedelta(hours=each) for each in at]
    nulled: Callable[[list[Any]], list[Any]] = lambda values: [None, *values[1:]]  # noqa: E731
    return pa.table(
        {
            "id": pa.array(at, pa.int64()),
            "n": pa.array(nulled(at), pa.int32()),
            "s": pa.array(nulled([f"{each:03}" for each in at])),
            "t": pa.array(nulled(moments), pa.timestamp("us", tz="UTC")),
            "d": pa.array(nulled([moment.date() for moment in moments])),
            "x": pa.array(nulled([each / 2 for each in at])),
            "o": pa.array(nulled([{"i": each} for each in at]), pa.struct([("i", pa.int64())])),
            "b": pa.array([bytes([each]) for each in at]),
            "m": pa.array(list(at), pa.decimal128(10, 2)),
        }
    )


def write_file(table: Path, number: int) -> dict[str, Any]:
    data = _rows(number)
    action = write_data(table, f"f{number}", data, {"p": str(number % 3)})
    shown = data.select(["id", "n", "s", "t", "d", "x", "m"]).to_pylist()[1:]
    bounds = [{**row, "o": {"i": row["id"]}} for row in (shown[0], shown[-1])]
    bounds[0]["id"] -= 1
    bounds[0]["m"] -= 1
    nulls = {name: 0 if name in ("id", "m") else 1 for name in shown[0]}
    stats = {
        "numRecords": 10,
        "minValues": bounds[0],
        "maxValues": bounds[1],
        "nullCount": {**nulls, "o": {"i": 1}},
    }
    action["add"]["stats"] = json.dumps(stats, default=_stored)
    return action


def _stored(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return str(value) if isinstance(value, dt.date) else float(value)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of eight files, in one directory, whose bounds are known."""
    table = tmp_path_factory.mktemp("late") / "table"
    opening = [protocol(), metadata(*FIELDS, partitioned_by=["p"])]
    write_commit(table, 0, [*opening, *(write_file(table, number) for number in range(FILES))])
    return table


CONDITIONS = {
    "id = 25": 1,
    "id BETWEEN 18 AND 21": 2,
    "25 > id": 3,
    "id <=> 25": 1,
    "id IN (3, 4, 71)": 2,
    "id IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 40, 41, 42, 43)": 2,
    "NOT (id > 19)": 2,
    "id = 25 OR n = 77": 2,
    "n = 25L": 1,
    "n < 12.5": 2,
    "n % 100 = 25": 8,
    "o.i = 25": 1,
    "s = '025'": 1,
    "s LIKE '02%'": 1,
    "s LIKE '%5'": 8,
    "x > 36.7 AND x < 100": 1,
    "m = 25": 1,
    "d = '2024-03-02'": 3,
    "t = '2024-03-02T01:00:00Z'": 1,
    "p = 1": 3,
    "p = 1 AND id < 30": 1,
    "p IS NULL": 0,
    "id IS NULL": 0,
    "b = X'19'": 8,
    "FALSE": 0,
    "p IN (0, 2) AND s >= '071'": 0,
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_files_of_where(spark: SparkSession, known: Path, condition: str) -> None:
    late = read_delta(spark, str(known)).filter(condition)
    given = read_delta(spark, str(known), where=condition)
    found = rows(late)
    assert found == rows(given)
    assert sum(files_read(late)) == sum(files_read(given)) == CONDITIONS[condition]
    assert late.schema == given.schema


def test_however_a_filter_is_written(spark: SparkSession, known: Path) -> None:
    """After other columns and names, in SQL, beside functions of Python, inferred from a join."""
    table = read_delta(spark, str(known))
    table.createOrReplaceTempView("known")
    is_25 = F.udf(lambda value: value == 25, "boolean")
    other = spark.range(100).withColumnRenamed("id", "k")
    queries: dict[str, tuple[DataFrame, list[int]]] = {
        "renamed": (
            table.select(F.col("id").alias("k"), "p").withColumn("l", F.col("k") * 2)
            .filter("k = 25 AND l = 50"), [1],
        ),
        "view": (spark.sql("SELECT s FROM (SELECT id AS k, s FROM known) WHERE k IN (3, 71)"), [2]),
        "beside a function": (table.filter(is_25("id")).filter("id < 30"), [3]),
        "literal key": (table.join(other, table.id == other.k).filter("k = 25"), [1]),
        "union": (table.filter("id = 1").union(table.filter("id = 71")), [1, 1]),
        "self join": (table.filter("id = 25").join(table.select("id", "n"), "id"), [1, 1]),
        "partitions": (spark.sql("SELECT * FROM known WHERE p = (SELECT max(p) FROM known)"), [2]),
    }  # fmt: skip
    found = {}
    for name, (frame, _) in queries.items():
        frame.collect()
        found[name] = files_read(frame)
    assert found == {name: files for name, (_, files) in queries.items()}


def test_partitions_are_pruned_by_the_rows_of_a_join(
    spark: SparkSession, known: Path, tmp_path: Path
) -> None:
    spark.createDataFrame([(1, 7), (2, 8)], "q INT, k INT").write.parquet(str(tmp_path / "small"))
    small = spark.read.parquet(str(tmp_path / "small")).filter("k = 7")
    table = read_delta(spark, str(known))
    joined = table.join(small, table.p == small.q)
    assert {row["p"] for row in joined.collect()} == {1}
    assert files_read(joined)[0] == 3


@pytest.mark.parametrize(
    ("condition", "files"),
    [("p % 2 = 1", 3), ("CAST(p AS STRING) = '2'", 2), ("p <> 0", 5), ("coalesce(p, 1) = 1", 3)],
)
def test_conditions_on_partitions_are_exact(
    spark: SparkSession, known: Path, condition: str, files: int
) -> None:
    """Spark does not evaluate them again: no filter is left in the plan."""
    frame = read_delta(spark, str(known)).filter(condition)
    assert "Filter" not in {node.name for node in plan(frame)}
    assert rows(frame) == rows(read_delta(spark, str(known), where=condition))
    assert files_read(frame) == [files]


def test_an_or_with_a_partition_column_chooses_no_files(spark: SparkSession, known: Path) -> None:
    """Spark does not hand it over, so that only `where` does."""
    condition = "p = 1 OR id = 25"
    late, given = (
        read_delta(spark, str(known)).filter(condition),
        read_delta(spark, str(known), where=condition),
    )
    assert rows(late) == rows(given)
    assert (sum(files_read(late)), sum(files_read(given))) == (FILES, 4)


@pytest.mark.slow
def test_filters_that_depend_on_settings_keep_their_files(spark: SparkSession, known: Path) -> None:
    """A filter keeps the time zone and mode of its analysis, which its text does not tell."""
    conditions = [
        "CAST(t AS STRING) >= '2024-03-04 05'", "CAST(d AS TIMESTAMP) > t", "hour(t) = 3",
        "CAST(t AS DATE) = d", "t >= '2024-03-04'", "CAST(n AS TINYINT) > 70", "CAST(s AS INT) = 5",
        "date_format(t, 'dd') = '02'", "collate(s, 'UTF8_LCASE') = '025'", "file_size > 5",
    ]  # fmt: skip
    everything = read_delta(spark, str(known)).cache()
    try:
        for zone, ansi in (("Asia/Tokyo", "false"), ("America/New_York", "true")):
            with settings(
                spark, {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}
            ):
                late = read_delta(spark, str(known), columns=None)
                late = late.select("*", F.col("_metadata.file_size").alias("file_size"))
                copies = everything.withColumn("file_size", F.lit(6))
                analyzed = [(late.filter(c), copies.filter(c)) for c in conditions]
                for frame, _ in analyzed:
                    assert frame._jdf.queryExecution().analyzed() is not None
            with settings(spark, {"spark.sql.session.timeZone": "Pacific/Kiritimati"}):
                for condition, (frame, copy) in zip(conditions, analyzed, strict=True):
                    count = frame.drop("file_size").count()
                    assert count == copy.drop("file_size").count(), condition
    finally:
        everything.unpersist()


def test_partition_columns_in_another_order(spark: SparkSession, table: Path) -> None:
    """The schema has them in one order, the metadata in another."""
    schema = (field("s", "string"), field("id", "long"), field("p", "integer"))
    files = [
        write_data(table, f"f{n}", ids(n, n + 1), {"p": str(n), "s": text})
        for n, text in enumerate(("one", "two", "three"))
    ]
    write_commit(table, 0, [protocol(), metadata(*schema, partitioned_by=["p", "s"]), *files])
    frame = read_delta(spark, str(table))
    assert rows(frame) == [("one", 0, 0), ("three", 2, 2), ("two", 1, 1)]
    found = frame.filter("s = 'two'")
    assert rows(found) == [("two", 1, 1)]
    assert files_read(found) == [1]


def test_a_query_that_runs_again_lists_no_files(spark: SparkSession, known: Path) -> None:
    """Neither in the log nor in the storage."""
    with (
        patch.object(FileLists, "find", lambda *_: None),
        patch.object(LiveFiles, "frame", autospec=True, side_effect=LiveFiles.frame) as in_log,
        patch.object(
            jvm_file_index, "file_index", side_effect=jvm_file_index.file_index
        ) as in_storage,
    ):
        frame = read_delta(spark, str(known)).filter("id > 25")
        assert frame.count() == frame.count() == 54
        assert (in_log.call_count, in_storage.call_count) == (1, 1)
        assert frame.filter("id < 30").count() == 4
        assert (in_log.call_count, in_storage.call_count) == (2, 2)


def test_nothing_is_listed_before_a_query_runs(spark: SparkSession, known: Path) -> None:
    with no_jobs(spark), patch.object(LateFiles, "chosen", side_effect=AssertionError):
        frame = read_delta(spark, str(known)).filter("id = 3")
        frame.explain(extended=True)
        frame.createOrReplaceTempView("unused")
        assert frame.columns[0] == "id"


def test_the_session_is_as_it_was(spark: SparkSession, known: Path) -> None:
    frame = read_delta(spark, str(known)).filter("id = 3")
    jvm: Any = spark._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    active = sessions.getActiveSession().get()
    before = SparkSession.getActiveSession()
    assert frame.count() == 1
    assert SparkSession.getActiveSession() is before
    assert sessions.getActiveSession().get().equals(active)


def test_column_mapping(spark: SparkSession, table: Path) -> None:
    """Filters have physical names, at every level.

    PROTOCOL.md#reader-requirements-for-column-mapping
    """

    def mapped(name: str, number: int, data_type: Any) -> Any:
        more = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
        return field(name, data_type, metadata=more)

    fields = [
        mapped("c2", 1, "long"), mapped("c1", 2, "long"),
        mapped("o", 3, struct_of(mapped("c4", 5, "long"), mapped("c5", 4, "long"))),
        mapped("q", 6, struct_of(mapped("y", 7, "long"))),
    ]  # fmt: skip
    actions = []
    for number in range(4):
        nested = {"c5": number, "c4": -number}
        bounds = {"c1": number, "c2": -number, "c3": nested, "c6": {"c7": number}}
        data = pa.table({name: [value] for name, value in bounds.items()})
        action = write_data(table, f"f{number}", data)
        stats = {"numRecords": 1, "minValues": bounds, "maxValues": bounds}
        action["add"]["stats"] = json.dumps(stats)
        actions.append(action)
    write_commit(table, 0, [protocol(2, 5), metadata(*fields, configuration=PHYSICAL), *actions])
    frame = read_delta(spark, str(table))
    # Spark's text of a filter may have either name of a nested field: if they name two, it is
    # not trusted.
    conditions = {"c2 = 2": 1, "c1 = -2": 1, "q.y = 2": 1, "o.c4 = 2": 4, "o.c5 = -2": 4}
    for condition, files in conditions.items():
        for found in (frame.filter(condition), frame.filter(condition).select("c2", "q.y")):
            assert [row["c2"] for row in found.collect()] == [2], condition
            assert files_read(found) == [files], condition


def test_each_rule_has_a_name(
    spark: SparkSession, known: Path, table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    snapshot = load_snapshot(spark, str(known))
    assert snapshot.scan().listing is FileListingMode.LATE
    assert snapshot.scan("id = 1").listing is FileListingMode.CONDITION
    assert snapshot.scan(max_driver_files=7).listing is FileListingMode.MANY_FILES
    cached = snapshot.cache()
    assert cached.scan().listing is FileListingMode.CACHED
    cached.uncache()
    vectors = [protocol(features=["deletionVectors"]), metadata(field("id", "long"))]
    write_commit(table, 0, [*vectors, write_data(table, "f", ids(0, 5))])
    assert load_snapshot(spark, str(table)).scan().listing is FileListingMode.LATE
    deleted = write_data(table, "f", ids(0, 5), deletionVector=inline_vector([1]))
    write_commit(table, 1, [deleted])
    assert load_snapshot(spark, str(table)).scan().listing is FileListingMode.LATE
    with patch.object(scans, "MAX_PACKED_VECTORS", 0):
        assert load_snapshot(spark, str(table)).scan().listing is FileListingMode.DELETION_VECTORS
    assert rows(read_delta(spark, str(table))) == [(0,), (2,), (3,), (4,)]
    with (
        patch.object(jvm_file_index._FileIndex.Java, "implements", ("org.example.FileIndex",)),
        patch.dict(classic_engine._calling_back, clear=True),
        caplog.at_level(logging.WARNING),
    ):
        found = [load_snapshot(spark, str(known)).scan() for _ in range(2)]
        assert [scan.listing for scan in found] == [FileListingMode.NO_CALLS] * 2
        assert found[0].to_df().filter("id = 25").count() == 1
    (line,) = [record.getMessage() for record in caplog.records if "choose no files" in record.msg]
    assert "ClassNotFoundException" in line
    with (
        patch.object(jvm_file_index, "ClientServer", JavaClass),
        patch.dict(classic_engine._calling_back, clear=True),
    ):
        assert load_snapshot(spark, str(known)).scan().listing is FileListingMode.NO_CALLS
    assert "at once" in str(found[0].report())


class TestErrors:
    @pytest.fixture(autouse=True)
    def _lists_files_each_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(FileLists, "find", lambda *_: None)

    def test_missing_and_wrong_files(self, spark: SparkSession, table: Path) -> None:
        schema = (field("p", "integer"), field("id", "long"))
        good, bad = (write_data(table, p, ids(0, 1), {"p": p}) for p in ("1", "x"))
        write_commit(table, 0, [protocol(), metadata(*schema, partitioned_by=["p"]), good, bad])
        frame = read_delta(spark, str(table))
        assert isinstance(raised_by(frame.collect), InvalidPartitionValueError)
        write_commit(table, 1, [remove("x")])
        (table / "1").unlink()
        frame = read_delta(spark, str(table))
        error = raised_by(frame.collect)
        assert error.getCondition() == "DELTA_FILE_NOT_FOUND"
        with pytest.raises(SPARK_ERRORS, match="DELTA_FILE_NOT_FOUND") as raised:
            frame.count()
        assert "Traceback" not in str(raised.value)

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no"), SystemExit()])
    def test_a_callback_always_answers(
        self, spark: SparkSession, known: Path, error: BaseException
    ) -> None:
        frame = read_delta(spark, str(known))
        with (
            patch.object(LiveFiles, "frame", side_effect=error),
            pytest.raises(SPARK_ERRORS, match=type(error).__name__),
        ):
            frame.collect()
        assert frame.count() == 80

    def test_a_job_of_the_listing_can_be_cancelled(self, spark: SparkSession, known: Path) -> None:
        """The job belongs to the group of the query that waits for it."""
        context = spark.sparkContext
        chosen = LateFiles.chosen

        def cancelled(files: LateFiles, predicate: Any) -> Any:
            slow = spark.range(10**13).selectExpr("sum(hash(id)) AS file")
            timer = Timer(1, context.cancelJobGroup, ["late"])
            timer.start()
            with patch.object(LiveFiles, "frame", lambda _: slow):
                return chosen(files, predicate)

        context.setJobGroup("late", "a query", interruptOnCancel=True)
        try:
            with (
                patch.object(LateFiles, "chosen", cancelled),
                pytest.raises(SPARK_ERRORS, match="cancel"),
            ):
                read_delta(spark, str(known)).collect()
        finally:
            for name in ("jobGroup.id", "job.description", "job.interruptOnCancel"):
                context.setLocalProperty(f"spark.{name}", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_caches_know_the_files(spark: SparkSession, table: Path, has_checkpoint: bool) -> None:
    """Another read of the version is answered from the cache, a table in its place is not."""

    def write(file: dict[str, Any]) -> None:
        create(table, file)
        if has_checkpoint:
            write_checkpoint(table, 0, [protocol(), metadata(), file])

    write(write_data(table, "f", ids(0, 3)))
    frame = read_delta(spark, str(table)).cache()
    assert frame.count() == 3
    again = read_delta(spark, str(table))
    assert "InMemoryTableScan" in {node.name for node in plan(again)}
    (table / "_delta_log" / f"{0:020}.json").unlink()
    write(write_data(table, "another", ids(0, 5)))
    other = read_delta(spark, str(table))
    assert other.count() == 5
    assert frame.count() == 3
    frame.unpersist()


def test_caches_know_where_a_table_is(spark: SparkSession, tmp_path: Path) -> None:
    """Copies of a table have its id, and perhaps a checkpoint of the same name."""
    frames = []
    for name, count in (("a", 3), ("b", 5)):
        file = write_data(tmp_path / name, "f", ids(0, count))
        write_commit(tmp_path / name, 0, [protocol(), metadata(), file])
        write_checkpoint(tmp_path / name, 0, [protocol(), metadata(), file])
        frames.append(read_delta(spark, str(tmp_path / name), version=0))
    assert frames[1].subtract(frames[0]).count() == 2


def test_a_list_of_files_is_of_a_time_zone(spark: SparkSession, table: Path) -> None:
    """Casts of a condition depend on that of the session."""
    file = write_data(table, "f", ids(0, 1), {"p": "2024-01-01 16:00:00"})
    fields = metadata(field("id", "long"), field("p", "timestamp"), partitioned_by=["p"])
    write_commit(table, 0, [protocol(), fields, file])
    snapshot, zone = load_snapshot(spark, str(table)), "spark.sql.session.timeZone"
    for name, count in (("America/New_York", 0), ("Asia/Tokyo", 1), ("America/New_York", 0)):
        with settings(spark, {zone: name}):
            assert snapshot.scan("CAST(p AS DATE) = DATE'2024-01-02'").to_df().count() == count


def test_texts_that_are_not_utf8(spark: SparkSession, table: Path) -> None:
    """Spark compares their bytes, which its text of a filter does not have."""
    data = pa.table({"s": ["abc\N{GRINNING FACE}"]})
    file = write_data(table, "f", data)
    bounds = {"s": data["s"][0].as_py()}
    stats = {"numRecords": 1, "minValues": bounds, "maxValues": bounds, "nullCount": {"s": 0}}
    file["add"]["stats"] = json.dumps(stats)
    write_commit(table, 0, [protocol(), metadata(field("s", "string")), file])
    condition = "s < concat('abc', CAST(X'FF' AS STRING))"
    found = read_delta(spark, str(table)).filter(condition)
    found.collect()
    assert files_read(found) == [1]


def test_subqueries(spark: SparkSession, known: Path) -> None:
    table = read_delta(spark, str(known))
    table.createOrReplaceTempView("late")
    for column in ("id", "p"):
        frame = spark.sql(f"SELECT * FROM late WHERE {column} = (SELECT max({column}) FROM late)")
        (highest,) = table.selectExpr(f"max({column})").first() or ()
        assert frame.count() == table.filter(f"{column} = {highest}").count() > 0
        assert {row[column] for row in frame.collect()} == {highest}
    spark.catalog.dropTempView("late")


def test_hidden_files_in_encoded_directories(spark: SparkSession, table: Path) -> None:
    file = write_data(table, "p=a%2Fb/_f.parquet", ids(0, 3), {"p": "a/b"})
    fields = metadata(field("id", "long"), field("p", "string"), partitioned_by=["p"])
    write_commit(table, 0, [protocol(), fields, file])
    frame = read_delta(spark, str(table))
    assert rows(frame) == [(n, "a/b") for n in range(3)]
    assert [unquote(unquote(f)).rpartition("/p=")[2] for f in frame.inputFiles()] == [
        "a/b/_f.parquet"
    ]


def test_a_table_is_written_from_itself(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    write_delta(spark.range(10), table)
    frame = read_delta(spark, table).filter("id >= 5")
    write_delta(frame, table, mode="overwrite")
    assert rows(read_delta(spark, table)) == [(n,) for n in range(5, 10)]
    assert frame.count() == 5


@pytest.mark.full
def test_many_queries_at_once(spark: SparkSession, known: Path) -> None:
    table = read_delta(spark, str(known))
    with ThreadPoolExecutor(20) as threads:
        counts = list(threads.map(lambda n: table.filter(f"id < {n}").count(), range(1, 80, 4)))
    assert counts == list(range(1, 80, 4))


def test_broadcasts_take_no_thread_that_waits(spark: SparkSession, table: Path) -> None:
    """The plan of a listing has no broadcast and no adaptive stage, commits after a checkpoint
    included."""
    actions = [protocol(), metadata(field("id", "long")), write_data(table, "f", ids(0, 3))]
    write_commit(table, 0, actions)
    write_checkpoint(table, 0, actions)
    write_commit(table, 1, [write_data(table, "g", ids(3, 5))])
    plans = []
    listed = LiveFiles.frame

    def seen(files: LiveFiles) -> DataFrame:
        found = listed(files)
        plans.append({node.name for node in plan(found)})
        return found

    with patch.object(LiveFiles, "frame", seen):
        assert read_delta(spark, str(table)).filter("id > 1").count() == 3
    (names,) = plans
    assert not [name for name in names if "Broadcast" in name or "Adaptive" in name]


@pytest.mark.parametrize("count", [100, 10_000])
@pytest.mark.slow
def test_neither_heap_keeps_what_is_over(spark: SparkSession, known: Path, count: int) -> None:
    """PySpark keeps a Python object for as long as the JVM has its proxy."""
    jvm: Any = spark._jvm
    before, plans = _indexes(), []
    for number in range(count):
        frame = read_delta(spark, str(known)).filter(f"id = {number % 80}")
        if number % 20 == 0:
            assert frame.count() == 1
            plans.append(jvm.java.lang.ref.WeakReference(frame._jdf.queryExecution().analyzed()))
    del frame

    def is_freed() -> bool:
        gc.collect()
        jvm.java.lang.System.gc()
        jvm.java.lang.System.runFinalization()
        kept = sum(plan.get() is not None for plan in plans)
        return kept <= 2 and _indexes() <= before + 5

    deadline = time.monotonic() + 180  # a thread of the JVM's tells Python what it freed
    while not is_freed():
        assert time.monotonic() < deadline


def _indexes() -> int:
    gc.collect()
    return sum(isinstance(thing, jvm_file_index._FileIndex) for thing in gc.get_objects())
