"""Rows read by executors from a DataFrame of files: the same as Spark's own reader gives."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import load_snapshot, read_delta, write_delta
from sparkdelta.exceptions import InvalidPartitionValueError, StorageError
from sparkdelta.table.scan import file_split_workers
from sparkdelta.table.scan.distributed_scan import DistributedScan
from sparkdelta.table.scan.live_files import LiveFiles
from sparkdelta.table.scan.scan_request import ScanRequest
from tests.base.spark.test_library_sessions import WANTED, _comparable, _types
from tests.support.distributed import distributed_scans
from tests.support.log_writer import write_commit
from tests.support.rows import assert_same_rows, spark_rows
from tests.support.settings import HOSTILE, settings
from tests.support.snapshots import SPARK_ERRORS, raised_by, rows
from tests.support.spark_jobs import counted_jobs, plan
from tests.support.table_builder import (
    add,
    array_of,
    create,
    field,
    ids,
    inline_vector,
    map_of,
    metadata,
    protocol,
    struct_of,
    write_data,
    write_vectors,
)

UTC = dt.timezone.utc


def _distributed(spark: SparkSession, table: Path, **options: Any) -> DataFrame:
    with distributed_scans():
        return read_delta(spark, str(table), **options)


def _assert_same(spark: SparkSession, table: Path, **options: Any) -> pa.Table:
    """Both scans give the same columns and rows; the rows as Spark's own reader gives them."""
    native = read_delta(spark, str(table), **options)
    ours = _distributed(spark, table, **options)
    assert ours.schema == native.schema
    expected = spark_rows(native)
    assert_same_rows(ours, expected)
    return expected


def _scan(spark: SparkSession, table: Path, **arguments: Any) -> DataFrame:
    """The rows of a distributed scan of a request."""
    state = load_snapshot(spark, str(table)).state
    request = ScanRequest(
        configuration=state.configuration,
        table_root=state.log.store.table_root,
        partition_time_zone="UTC",
        version=0,
        options={},
        **arguments,
    )
    files = LiveFiles(state, None, None, tracks_rows=False)
    return DistributedScan(spark, request).rows(files.frame())


class TestPlans:
    def test_files_are_dealt_to_tasks_and_read_in_arrow(
        self, spark: SparkSession, table: Path
    ) -> None:
        create(table, *(write_data(table, f"f{n}", ids(n, n + 1)) for n in range(3)))
        with counted_jobs(spark) as jobs:
            frame = _distributed(spark, table)
        assert jobs.count <= 2  # the files' sizes are summed up, in two stages at most
        names = [node.name for node in plan(frame)]
        assert "MapInArrow" in names
        assert "FileScan" not in names
        assert "BroadcastHashJoin" not in names
        (dealt,) = [n.text for n in plan(frame) if n.name == "Exchange"]
        assert "SinglePartition, REPARTITION_BY_NUM" in dealt
        assert rows(frame) == [(0,), (1,), (2,)]

    def test_tasks_are_made_for_bytes(self, spark: SparkSession, table: Path) -> None:
        mebibyte = 1024 * 1024
        sizes = [10 * file_split_workers.SPLIT_BYTES, *[mebibyte] * 63]
        create(table, *(add(f"f{n}", size=size) for n, size in enumerate(sizes)))
        frame = _distributed(spark, table)
        (dealt,) = [n.text for n in plan(frame) if n.name == "Exchange"]
        # Opening a file counts for a quarter of a mebibyte.
        assert "RoundRobinPartitioning(12)" in dealt

    def test_splits_hold_every_byte_once(self, spark: SparkSession) -> None:
        sizes = [0, 1, 9, 10, 11, 35, None, -5, 10**15, 2**63 - 1]
        files = spark.createDataFrame([(str(n), n) for n in sizes], "file STRING, size LONG")
        splits = file_split_workers.file_splits(files, tasks=2, split_bytes=10)
        found: dict[str, list[tuple[int, int | None]]] = {}
        for file, _, start, end in splits.collect():
            found.setdefault(file, []).append((start, end))
        assert len(found) == len(sizes)
        for parts in found.values():
            parts.sort(key=lambda part: part[0])
            assert parts[0][0] == 0
            assert parts[-1][1] is None
            assert [end for _, end in parts[:-1]] == [start for start, _ in parts[1:]]
        assert [len(found[n]) for n in ("0", "10", "11", "35")] == [1, 1, 2, 4]
        assert len(found[str(10**15)]) == file_split_workers.MAX_SPLITS


def _large_file(table: Path, *, count: int = 50_000, groups: int = 10) -> dict[str, Any]:
    data = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "s": [f"text {n}" for n in range(count)],
            "f": pa.array([float(n) for n in range(count)]),
        }
    )
    table.mkdir(parents=True)
    pq.write_table(data, table / "f", row_group_size=count // groups)
    return add("f", size=(table / "f").stat().st_size, stats='{"numRecords": 50000}')


LARGE = (field("id", "long"), field("s", "string"), field("f", "double"))


class TestSplits:
    @pytest.mark.full
    @pytest.mark.parametrize("split_bytes", [1_000, 50_000, 10_000_000])
    @pytest.mark.parametrize("size", ["right", "too small", "too large"])
    def test_every_row_is_read_once(
        self,
        spark: SparkSession,
        table: Path,
        monkeypatch: pytest.MonkeyPatch,
        split_bytes: int,
        size: str,
    ) -> None:
        """Whatever size the log says, and with the right positions for the deletion vector."""
        action = _large_file(table)
        factor = {"right": 1, "too small": 0.3, "too large": 3}[size]
        action["add"]["size"] = int(action["add"]["size"] * factor)
        (vector,) = write_vectors(table, [0, 4_999, 5_000, 49_999])
        action["add"]["deletionVector"] = vector
        write_commit(table, 0, [protocol(features=["deletionVectors"]), metadata(*LARGE), action])
        # The defaults are bound to the functions: this is where the scan takes them from.
        monkeypatch.setattr(
            file_split_workers.file_splits, "__kwdefaults__", {"split_bytes": split_bytes}
        )
        frame = _distributed(spark, table)
        found = [row[0] for row in frame.select("id").collect()]
        assert sorted(found) == sorted(set(range(50_000)) - {0, 4_999, 5_000, 49_999})


@pytest.mark.full
def test_only_wanted_columns_are_read(spark: SparkSession, table: Path) -> None:
    """A column that cannot be read does not matter where it is not asked for."""
    data = pa.table({"id": pa.array([1, 2]), "s": pa.array([b"x", b"y"])})
    schema = (field("id", "long"), field("s", "integer"), field("gone", "string"))
    write_commit(table, 0, [protocol(), metadata(*schema), write_data(table, "f", data)])
    assert rows(_scan(spark, table, columns=frozenset(["gone", "id"]))) == [(1, None), (2, None)]
    assert _scan(spark, table, columns=frozenset(["gone", "id"])).columns == ["id", "gone"]
    assert _scan(spark, table, columns=frozenset()).count() == 2
    error = raised_by(lambda: _scan(spark, table).collect())
    assert error.getCondition() == "DELTA_DATA_FILE_UNSUPPORTED"
    assert "column s of" in str(error)


def test_counting_reads_no_column_but_deletion_vectors(spark: SparkSession, table: Path) -> None:
    files = [
        write_data(table, "f", ids(0, 100_000), deletionVector=inline_vector([5, 70_000])),
        write_data(table, "g", ids(0, 3)),
    ]
    write_commit(table, 0, [protocol(features=["deletionVectors"]), metadata(), *files])
    assert _scan(spark, table, columns=frozenset()).count() == 100_001


class TestTypes:
    def _write(self, table: Path, schema: list[dict[str, Any]], *data: pa.Table) -> None:
        files = [write_data(table, f"f{n}", part) for n, part in enumerate(data)]
        features = protocol(features=["timestampNtz"])
        write_commit(table, 0, [features, metadata(*schema), *files])

    def test_nested_fields_that_files_lack(self, spark: SparkSession, table: Path) -> None:
        """Structs whose every field is new are null where the file says so."""
        inner = struct_of(field("x", "integer"), field("late", "string"))
        new = struct_of(field("late", "string"))
        schema = [
            field("o", inner), field("n", new), field("l", array_of(new)),
            field("m", map_of("string", new)), field("ll", array_of(array_of(inner))),
        ]  # fmt: skip
        x = pa.struct([("gone", pa.list_(pa.int8())), ("x", pa.int32())])
        some = {"gone": [1, 2], "x": 1}
        data = pa.table(
            {
                "o": pa.array([some, None, {"gone": None, "x": None}], x),
                "n": pa.array([some, None, {"gone": None, "x": None}], x),
                "l": pa.array([[some, None], None, []], pa.list_(x)),
                "m": pa.array([[("a", some), ("b", None)], None, []], pa.map_(pa.string(), x)),
                "ll": pa.array([[[some], None, []], None, []], pa.list_(pa.list_(x))),
            }
        )
        self._write(table, schema, data, data.select(["o"]))
        if not spark.version.startswith("4.0."):  # which takes such a struct for null
            _assert_same(spark, table)
        found = rows(_distributed(spark, table))
        assert ((1, None), (None,), [(None,), None], {"a": (None,), "b": None},
                [[(1, None)], None, []]) in found  # fmt: skip

    def test_types_that_arrow_writes(self, spark: SparkSession, table: Path) -> None:
        """An Arrow schema in the footer makes other arrays of the same columns."""
        schema = [
            field("s", "string"), field("b", "binary"), field("l", array_of("integer")),
            field("t", "timestamp"), field("d", "date"),
            field("u8", "short"), field("u16", "integer"), field("u32", "long"),
            field("u64", "decimal(20,0)"), field("x", "binary"), field("u", "long"),
        ]  # fmt: skip
        moment = dt.datetime(2024, 3, 10, 7, 30, tzinfo=UTC)
        data = pa.table(
            {
                "s": pa.array(["a", None, "a"]).dictionary_encode(),
                "b": pa.array([b"a", None, b""], pa.large_binary()),
                "l": pa.array([[1], None, []], pa.large_list(pa.int32())),
                "t": pa.array([moment, None, moment], pa.timestamp("s", "America/New_York")),
                "d": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)], pa.date64()),
                "u8": pa.array([255, None, 0], pa.uint8()),
                "u16": pa.array([65_535, None, 0], pa.uint16()),
                "u32": pa.array([2**32 - 1, None, 0], pa.uint32()),
                "u64": pa.array([2**64 - 1, None, 0], pa.uint64()),
                "x": pa.array([b"abc", None, b"def"], pa.binary(3)),
                "u": pa.array([7, None, -7], pa.duration("us")),
            }
        )
        self._write(table, schema, data.drop_columns(["u"]))
        _assert_same(spark, table)

    @pytest.mark.skipif(
        int(pa.__version__.split(".")[0]) < 26,
        reason="pyarrow before 26 cannot read null among lists of a fixed size",
    )
    def test_lists_of_a_fixed_size(self, spark: SparkSession, table: Path) -> None:
        lists = pa.array([[1, 2], None, [3, None]], pa.list_(pa.int64(), 2))
        self._write(table, [field("f", array_of("long"))], pa.table({"f": lists}))
        _assert_same(spark, table)

    def test_bytes_that_are_no_utf8(self, spark: SparkSession, table: Path) -> None:
        self._write(table, [field("s", "string")], pa.table({"s": pa.array([b"a", b"\xff\xfe"])}))
        hexadecimal = [rows(frame.select(F.hex("s"))) for frame in (
            read_delta(spark, str(table)), _distributed(spark, table))]  # fmt: skip
        assert hexadecimal == [[("61",), ("FFFE",)]] * 2

    def test_moments_with_and_without_a_zone(self, spark: SparkSession, table: Path) -> None:
        moments = [dt.datetime(2024, 3, 10, 7, 30), None, dt.datetime(1500, 1, 1)]
        data = pa.table(
            {
                "n": pa.array(moments, pa.timestamp("us", "UTC")),
                "t": pa.array(moments, pa.timestamp("ms")),
            }
        )
        self._write(table, [field("t", "timestamp"), field("n", "timestamp_ntz")], data)
        _assert_same(spark, table)

    def test_void_within_others(self, spark: SparkSession, table: Path) -> None:
        inner = struct_of(field("v", "void"), field("x", "integer"))
        schema = [field("o", inner), field("l", array_of(inner)), field("v", array_of("void"))]
        x = pa.struct([("x", pa.int32())])
        data = pa.table(
            {
                "o": pa.array([{"x": 1}, None], x),
                "l": pa.array([[{"x": 1}, None], None], pa.list_(x)),
            }
        )
        self._write(table, schema, data)
        native, ours = read_delta(spark, str(table)), _distributed(spark, table)
        assert ours.schema == native.schema
        assert rows(ours) == rows(native) == [(None,) * 3, ((None, 1), [(None, 1), None], None)]

    def test_columns_of_nulls_and_of_another_case(self, spark: SparkSession, table: Path) -> None:
        data = pa.table({"ID": pa.array([1]), "N": pa.nulls(1)})
        self._write(table, [field("id", "long"), field("n", "integer")], data)
        assert _assert_same(spark, table).to_pylist() == [{"id": 1, "n": None}]

    def test_names_that_differ_by_case(self, spark: SparkSession, table: Path) -> None:
        self._write(table, [field("a", "long")], pa.table([[1], [2]], names=["a", "A"]))
        error = raised_by(lambda: _distributed(spark, table).collect())
        assert error.getCondition() == "DELTA_DATA_FILE_UNSUPPORTED"
        with pytest.raises(SPARK_ERRORS):
            read_delta(spark, str(table)).collect()

    @pytest.mark.slow
    def test_old_forms_of_lists_and_maps(
        self, spark: SparkSession, table: Path, tmp_path: Path
    ) -> None:
        frame = spark.sql(
            "SELECT array(1, NULL) AS l, array(1, 2) AS n, map('k', array(struct(1 AS x))) AS m,"
            " CAST(1.5 AS DECIMAL(9,2)) AS d"
        )
        legacy = {"spark.sql.parquet.writeLegacyFormat": "true"}
        with settings(spark, legacy):
            frame.coalesce(1).write.parquet(str(tmp_path / "parts"))
        table.mkdir()
        (part,) = (tmp_path / "parts").glob("*.parquet")
        part.rename(table / "f")
        element = struct_of(field("x", "integer"))
        schema = [
            field("l", array_of("integer")), field("n", array_of("integer")),
            field("m", map_of("string", array_of(element))), field("d", "decimal(9,2)"),
        ]  # fmt: skip
        write_commit(table, 0, [protocol(), metadata(*schema), add("f")])
        assert _assert_same(spark, table).num_rows == 1


@pytest.mark.full
class TestOldCalendars:
    """Files that Spark 2 wrote, and Spark 3 in LEGACY mode."""

    LEGACY: ClassVar = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.session.timeZone": "UTC",
    }
    SCHEMA = (field("d", "date"), field("t", "timestamp"), field("l", array_of("date")))

    def _write(self, spark: SparkSession, table: Path, zone: str, first: str, kind: str) -> None:
        days = spark.sql(
            f"SELECT explode(sequence(DATE'{first}', DATE'1950-01-01', INTERVAL 13 DAYS)) AS d"
        )
        frame = days.selectExpr(
            "d",
            "CAST(d AS TIMESTAMP) + INTERVAL 12345.678901 SECONDS AS t",
            "array(d, NULL) AS l",
        )
        values = {
            **self.LEGACY,
            "spark.sql.session.timeZone": zone,
            "spark.sql.parquet.outputTimestampType": kind,
        }
        with settings(spark, values):
            frame.coalesce(1).write.parquet(str(table / "parts"))
        (part,) = (table / "parts").glob("*.parquet")
        part.rename(table / "f")
        write_commit(table, 0, [protocol(), metadata(*self.SCHEMA), add("f")])

    @pytest.mark.parametrize("kind", ["TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96"])
    def test_dates_and_timestamps_of_all_centuries(
        self, spark: SparkSession, table: Path, kind: str
    ) -> None:
        self._write(spark, table, "UTC", "0001-01-01", kind)
        assert _assert_same(spark, table).num_rows > 50_000

    @pytest.mark.parametrize("kind", ["TIMESTAMP_MICROS", "INT96"])
    def test_other_zones(self, spark: SparkSession, table: Path, kind: str) -> None:
        """Since 1900 the calendars agree in all zones; what is older is refused."""
        self._write(spark, table, "America/New_York", "1900-01-02", kind)
        _assert_same(spark, table)

    def test_older_ones_of_other_zones_are_refused(self, spark: SparkSession, table: Path) -> None:
        self._write(spark, table, "America/New_York", "1899-01-01", "TIMESTAMP_MICROS")
        error = raised_by(lambda: _distributed(spark, table).collect())
        assert error.getCondition() == "DELTA_DATA_FILE_UNSUPPORTED"
        assert "column t of" in str(error)
        days = _scan(spark, table, columns=frozenset(["d"]))
        assert_same_rows(days, spark_rows(read_delta(spark, str(table), columns=["d"])))

    def test_int96_beyond_what_nanoseconds_hold(self, spark: SparkSession, table: Path) -> None:
        frame = spark.sql("SELECT TIMESTAMP'0001-01-01 00:00:00.000001 UTC' AS t UNION ALL"
                          " SELECT TIMESTAMP'9999-12-31 23:59:59.999999 UTC'")  # fmt: skip
        corrected = {
            "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
            "spark.sql.parquet.outputTimestampType": "INT96",
        }
        with settings(spark, corrected):
            frame.coalesce(1).write.parquet(str(table / "parts"))
        (part,) = (table / "parts").glob("*.parquet")
        part.rename(table / "f")
        write_commit(table, 0, [protocol(), metadata(field("t", "timestamp")), add("f")])
        native = read_delta(spark, str(table))
        ours = _distributed(spark, table)
        assert rows(ours.select(F.unix_micros("t"))) == rows(native.select(F.unix_micros("t")))


@pytest.mark.full
class TestSettings:
    def test_the_table_reads_as_it_is_expected_to(self, spark: SparkSession, table: Path) -> None:
        _types(table)
        found = _distributed(spark, table).toDF("id", "t", "n", "d", "b", "s", "p", "o")
        assert _comparable(found) == WANTED

    @pytest.mark.parametrize("group", [*HOSTILE, "Arrow"])
    @pytest.mark.parametrize("when", ["before", "after"])
    def test_types_and_values(
        self, spark: SparkSession, table: Path, group: str, when: str
    ) -> None:
        values = {
            **HOSTILE,
            "Arrow": {
                "spark.sql.execution.arrow.useLargeVarTypes": "true",
                "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
                "spark.sql.execution.arrow.pyspark.enabled": "false",
                "spark.sql.execution.sortBeforeRepartition": "false",
                "spark.sql.session.timeZone": "Asia/Kathmandu",
            },
        }[group]
        _types(table)
        names = ("id", "t", "n", "d", "b", "s", "p", "o")
        made = _distributed(spark, table).toDF(*names)
        with settings(spark, values):
            frame = made if when == "after" else _distributed(spark, table).toDF(*names)
            assert _comparable(frame) == WANTED


class TestErrors:
    @pytest.mark.parametrize("name", ["f", "_f", ".f", "a b%20c+d.parquet"])
    def test_names(self, spark: SparkSession, table: Path, name: str) -> None:
        action = write_data(table, name, ids(0, 2))
        action["add"]["path"] = name.replace("%", "%25").replace(" ", "%20")
        create(table, action)
        assert rows(_distributed(spark, table)) == [(0,), (1,)]
        (table / name).unlink()
        error = raised_by(lambda: _distributed(spark, table).collect())
        assert error.getCondition() == "DELTA_FILE_NOT_FOUND"

    @pytest.mark.parametrize("content", [b"", b"not Parquet at all"])
    def test_files_that_are_no_parquet(
        self, spark: SparkSession, table: Path, content: bytes
    ) -> None:
        create(table, write_data(table, "f", ids(0, 2)), write_data(table, "g", ids(0, 2)))
        (table / "g").write_bytes(content)
        error = raised_by(lambda: _distributed(spark, table).collect())
        assert type(error) is StorageError

    def test_a_directory_in_its_place(self, spark: SparkSession, table: Path) -> None:
        create(table, add("f"))
        (table / "f").mkdir()
        pq.write_table(ids(7, 9), table / "f" / "x.parquet")
        error = raised_by(lambda: _distributed(spark, table).collect())
        assert isinstance(error, StorageError)

    def test_a_torn_file(self, spark: SparkSession, table: Path) -> None:
        create(table, write_data(table, "f", ids(0, 100_000)))
        content = bytearray((table / "f").read_bytes())
        content[1_000:5_000] = b"x" * 4_000
        (table / "f").write_bytes(content)
        error = raised_by(lambda: _distributed(spark, table).collect())
        assert isinstance(error, StorageError)

    def test_a_storage_without_a_reader(self, spark: SparkSession, table: Path) -> None:
        create(table, add("nowhere://host/f"))
        error = raised_by(lambda: _distributed(spark, table).collect())
        assert isinstance(error, StorageError)
        assert "nowhere" in str(error)

    def test_a_partition_value_of_another_type(self, spark: SparkSession, table: Path) -> None:
        action = write_data(table, "p=x/f", ids(0, 1), {"p": "x"})
        schema = (field("p", "integer"), field("id", "long"))
        write_commit(table, 0, [protocol(), metadata(*schema, partitioned_by=["p"]), action])
        error = raised_by(lambda: _distributed(spark, table).collect())
        assert isinstance(error, InvalidPartitionValueError)


PROGRAM = """
import sys
from pyspark.sql import SparkSession
from sparkdelta import read_delta
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.maxResultSize", "1m").config("spark.driver.memory", "1g")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
frame = read_delta(spark, sys.argv[1])
print(*frame.selectExpr("count(*)", "sum(id)", "count(DISTINCT p)").first())
spark.stop()
"""


@pytest.mark.slow  # two minutes
def test_a_hundred_thousand_files_under_a_small_result_size(tmp_path: Path) -> None:
    """Their list does not fit the driver, so executors read it; linked to one file, each with its
    own partition value."""
    count, table = 100_000, tmp_path / "table"
    for number in range(5):  # file systems bound the links to one
        write_data(table, f"f{number}", ids(0, 3))
    actions = []
    for number in range(count):
        name = f"{number % 100}/part-{number:05}-0123456789abcdef0123456789abcdef.parquet"
        if number < 100:
            (table / str(number)).mkdir()
        os.link(table / f"f{number % 5}", table / name)
        actions.append(add(name, size=500, partitionValues={"p": str(number)}))
    schema = (field("id", "long"), field("p", "integer"))
    write_commit(table, 0, [protocol(), metadata(*schema, partitioned_by=["p"]), *actions])
    root = str(Path(__file__).parents[3])
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(table)],
        env={**os.environ, "PYTHONPATH": root, "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.split() == [str(3 * count), str(3 * count), str(count)]


@pytest.mark.full
def test_a_name_with_a_dot(spark: SparkSession, table: Path) -> None:
    write_delta(spark.sql("SELECT named_struct('c', 1) AS `a.b`, 2 AS a"), str(table))
    for name, value in (("a.b", (1,)), ("`a.b`", (1,)), ("`a.b`.c", 1), ("a", 2)):
        with distributed_scans():
            assert rows(read_delta(spark, str(table), columns=[name])) == [(value,)]
