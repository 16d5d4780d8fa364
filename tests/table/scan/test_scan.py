"""From live files to rows: plans, paths, partition values, files that are missing."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import load_snapshot, read_delta
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    DeltaError,
    InvalidArgumentError,
    InvalidPartitionValueError,
)
from sparkdelta.table.scan import native_scan
from tests.support.distributed import distributed_scans, listed_at_once
from tests.support.errors import raises
from tests.support.log_writer import write_checkpoint, write_commit
from tests.support.settings import settings
from tests.support.snapshots import SPARK_ERRORS, raised_by, rows
from tests.support.spark_jobs import jvm_calls, no_jobs, plan
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
    remove,
    struct_of,
    write_data,
)


@pytest.fixture(params=["late", "listed", "workers"])
def reader(request: pytest.FixtureRequest) -> Iterator[str]:
    """Spark's own reader, of files that are chosen when a query runs or before, and workers."""
    scans = {"late": nullcontext, "listed": listed_at_once, "workers": distributed_scans}
    with scans[request.param]():
        yield request.param


def is_connect(spark: SparkSession) -> bool:
    return "connect" in type(spark).__module__


@pytest.fixture
def listed() -> Iterator[None]:
    """Files are listed before a query runs."""
    with listed_at_once():
        yield


def test_a_full_scan_is_sparks_own(spark: SparkSession, table: Path) -> None:
    """The plan has Spark's own FileScan, with at most a projection above it."""
    create(table, write_data(table, "f", ids(0, 3)), write_data(table, "g", ids(3, 5)))
    ours = plan(read_delta(spark, str(table)))
    theirs = plan(spark.read.schema("id LONG").parquet(str(table / "f"), str(table / "g")))
    assert {node.name for node in ours} <= {"Project", "ColumnarToRow", "FileScan"}
    (scan,), (wanted,) = ([n.text for n in p if n.name == "FileScan"] for p in (ours, theirs))
    for part in (r"Batched: \w+", r"Format: \w+", r"ReadSchema: .*"):
        assert re.findall(part, scan) == re.findall(part, wanted)


@pytest.mark.classic("counts calls of the JVM")
def test_calls_of_the_jvm_do_not_grow_with_the_files(spark: SparkSession, table: Path) -> None:
    """A call takes as long as to ask a local disk for a file: 100,000 took minutes."""
    create(table, *(write_data(table, f"f{n}", ids(0, 3)) for n in range(50)))
    few = load_snapshot(spark, str(table))
    write_commit(table, 1, [write_data(table, f"f{n}", ids(0, 3)) for n in range(50, 250)])
    many = load_snapshot(spark, str(table))
    more = jvm_calls(spark, many.scan().to_df) - jvm_calls(spark, few.scan().to_df)
    assert more < 200, "calls for 200 more files"


@pytest.mark.classic("looks into an RDD, which Spark Connect lacks")
def test_tuning_settings_of_the_user_apply_to_scans(spark: SparkSession, table: Path) -> None:
    create(table, *(write_data(table, f"f{n}", ids(0, 1000)) for n in range(8)))
    usual = read_delta(spark, str(table)).rdd.getNumPartitions()
    assert usual < 8
    with settings(spark, {"spark.sql.files.maxPartitionBytes": "1000"}):
        assert read_delta(spark, str(table)).rdd.getNumPartitions() >= 8
    assert read_delta(spark, str(table)).rdd.getNumPartitions() == usual


@pytest.mark.parametrize("is_vectorized", ["true", "false"])
def test_either_reader_of_sparks_reads_wide_rows(
    spark: SparkSession, table: Path, is_vectorized: str
) -> None:
    """Rows of more columns than `spark.sql.codegen.maxFields` are read, with nothing between them
    and the query.
    """
    names = [f"c{n}" for n in range(120)]
    data = pa.table({name: pa.array([1]) for name in names})
    schema = metadata(*(field(name, "long") for name in names))
    write_commit(table, 0, [protocol(), schema, write_data(table, "f", data)])
    with settings(spark, {"spark.sql.parquet.enableVectorizedReader": is_vectorized}):
        assert rows(read_delta(spark, str(table))) == [(1,) * 120]


def test_filters_and_columns_reach_the_files(spark: SparkSession, table: Path) -> None:
    data = pa.table({"id": pa.array([1, 2]), "s": ["a", "b"], "p": ["x", "x"]})
    schema = (field("id", "long"), field("s", "string"), field("p", "string"))
    write_commit(
        table,
        0,
        [
            protocol(),
            metadata(*schema, partitioned_by=["p"]),
            *(write_data(table, f"p={p}/f", data.select(["id", "s"]), {"p": p}) for p in "xy"),
        ],
    )
    frame = read_delta(spark, str(table), where="id > 1 AND p = 'y'", columns=["id"])
    (scan,) = [node.text for node in plan(frame) if node.name == "FileScan"]
    assert re.search(r"PushedFilters: \[.*GreaterThan\(id,1\)", scan)
    assert re.search(r"ReadSchema: struct<id:bigint>", scan)
    if not is_connect(spark):  # where partition values are joined to the rows of files
        assert re.search(r"PartitionFilters: \[.*= y", scan)
    assert rows(frame) == [(2,)]


PARTITION_FIELDS = (
    field("i", "integer"), field("d", "date"), field("t", "timestamp"), field("s", "string"),
    field("b", "binary"), field("m", "decimal(10,2)"), field("f", "double"), field("o", "boolean"),
)  # fmt: skip
PARTITIONS: list[dict[str, str | None]] = [
    {"i": "1", "d": "2024-01-31", "t": "2024-06-01 12:00:00.5", "s": "a b/c=d%",
     "b": "\\u0001\\u00ff", "m": "-1.50", "f": "NaN", "o": "true"},
    {"i": "-2", "d": "1500-01-01", "t": "2024-06-01T12:00:00.000000Z", "s": "é", "b": "é",
     "m": "0.01", "f": "-Infinity", "o": "false"},
    dict.fromkeys("idtsbmfo"),
    dict.fromkeys("idtsbmfo", ""),
]  # fmt: skip


def _partitioned(table: Path, *, one_directory: bool) -> None:
    schema = (*PARTITION_FIELDS, field("id", "long"))
    files = [
        write_data(table, f"f{n}" if one_directory else f"part {n}/f", ids(n, n + 1), values)
        for n, values in enumerate(PARTITIONS)
    ]
    write_commit(table, 0, [protocol(), metadata(*schema, partitioned_by=list("idtsbmfo")), *files])


def _shown(spark: SparkSession, table: Path) -> list[Any]:
    frame = read_delta(spark, str(table))
    shown = frame.select("i", "d", F.unix_millis("t"), "s", F.hex("b"), "m", "f", "o", "id")
    return [repr(tuple(row)) for row in shown.orderBy("id").collect()]


@pytest.mark.full
@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    "how",
    ["directories", "more directories than allowed", "one directory", "one directory, joined"],
)
def test_partition_values_come_from_the_log(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """PROTOCOL.md#partition-value-serialization"""
    _partitioned(table, one_directory=how.startswith("one directory"))
    if how.endswith("joined"):
        monkeypatch.setattr(native_scan, "MAX_PARTITION_LAYERS", 0)
    if how == "more directories than allowed":
        monkeypatch.setattr(native_scan, "MAX_PARTITION_DIRECTORIES", 0)
    moment = 1_717_243_200_000
    day = dt.date
    assert _shown(spark, table) == [
        repr((1, day(2024, 1, 31), moment + 500, "a b/c=d%", "01FF", _decimal("-1.50"),
              float("nan"), True, 0)),
        repr((-2, day(1500, 1, 1), moment, "é", "C3A9", _decimal("0.01"), float("-inf"), False, 1)),
        repr((*[None] * 8, 2)),
        repr((*[None] * 8, 3)),
    ]  # fmt: skip
    filtered = read_delta(spark, str(table), where="s = 'a b/c=d%' AND i = 1", columns=["id"])
    assert rows(filtered) == [(0,)]
    assert rows(read_delta(spark, str(table), where="d IS NULL", columns=["ID"])) == [(2,), (3,)]


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.full
def test_partition_timestamps_without_a_zone_are_in_the_callers(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, joined: bool
) -> None:
    """PROTOCOL.md#partition-value-serialization; files are left out by the same moments."""
    _partitioned(table, one_directory=False)
    if joined:
        monkeypatch.setattr(native_scan, "MAX_PARTITION_DIRECTORIES", 0)
    zone = "America/New_York"
    with_zone = 1_717_243_200_000
    without_one = with_zone + 4 * 3_600_000 + 500
    frame = read_delta(spark, str(table), partition_time_zone=zone)
    assert rows(frame.select("id", F.unix_millis("t"))) == [
        (0, without_one), (1, with_zone), (2, None), (3, None),
    ]  # fmt: skip
    where = "t = TIMESTAMP'2024-06-01 16:00:00.5Z'"
    snapshot = load_snapshot(spark, str(table), partition_time_zone=zone)
    assert rows(snapshot.scan(where, ["id"]).to_df()) == [(0,)]


@pytest.mark.parametrize("zone", ["Europe/Pariss", "", "+25:00", "'", None, 2])
def test_a_time_zone_that_is_none(spark: SparkSession, table: Path, zone: Any) -> None:
    """An unknown time zone is an error of the argument, not one of every file of a good writer."""
    create(table)
    with pytest.raises(InvalidArgumentError) as caught:
        load_snapshot(spark, str(table), partition_time_zone=zone)
    assert caught.value.argument == "partition_time_zone"
    for known in ("Asia/Kolkata", "+05:30", "PST"):
        with no_jobs(spark):
            load_snapshot(spark, str(table), partition_time_zone=known)


@pytest.mark.classic("Spark Connect joins partition values to the rows of files")
@pytest.mark.usefixtures("listed")
def test_tuples_of_one_directory_need_no_join(spark: SparkSession, table: Path) -> None:
    _partitioned(table, one_directory=True)
    nodes = plan(read_delta(spark, str(table)))
    assert {node.name for node in nodes} <= {"Project", "ColumnarToRow", "FileScan", "Union"}


def _decimal(text: str) -> Any:
    return Decimal(text)


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("joined", [False, True])
def test_a_partition_value_of_another_type_is_an_error(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, joined: bool
) -> None:
    if joined:
        monkeypatch.setattr(native_scan, "MAX_PARTITION_DIRECTORIES", 0)
    schema = (field("p", "integer"), field("id", "long"))
    action = write_data(table, "p=x/f", ids(0, 1), {"p": "x"})
    write_commit(table, 0, [protocol(), metadata(*schema, partitioned_by=["p"]), action])
    with pytest.raises(InvalidPartitionValueError):
        read_delta(spark, str(table))
    with pytest.raises(InvalidPartitionValueError):
        read_delta(spark, str(table), where="p = 1")


@pytest.mark.parametrize("where", ["p = 1", "p = id", "p IS NOT NULL AND id >= 0"])
@pytest.mark.parametrize("is_stored", [False, True])
def test_a_partition_value_of_another_type_of_a_dead_file(
    spark: SparkSession, table: Path, where: str, is_stored: bool
) -> None:
    """Files are chosen before it is known which of a checkpoint's are live.

    PROTOCOL.md#action-reconciliation
    """
    schema = (field("p", "integer"), field("id", "long"))
    good = write_data(table, "p=1/f", ids(1, 2), {"p": "1"})
    bad = add("p=x/f", partitionValues={"p": "x"})
    opening = [protocol(), metadata(*schema, partitioned_by=["p"]), good, bad]
    write_commit(table, 0, opening)
    if is_stored:
        write_checkpoint(table, 0, opening)
    write_commit(table, 1, [remove("p=x/f", deletionTimestamp=1)])
    rows = read_delta(spark, str(table), where=where)
    assert {row["p"] for row in rows.collect()} == {1}


@pytest.mark.parametrize(
    "name",
    ["_x.parquet", ".x.parquet", "_metadata-x.parquet", "_common_metadata.parquet", "_a=1.parquet",
     "x._COPYING_", "_dir/x.parquet", ".dir/_x.parquet", "a b%20c+d.parquet", "x#y?z.parquet",
     "é\u2028.parquet", "t=12:30/x.parquet", "[a].parquet", "{a,b}.parquet", "*.parquet", "x\\y"],
)  # fmt: skip
@pytest.mark.classic("Spark Connect refuses files of hidden names")
def test_files_of_any_name_are_read(spark: SparkSession, table: Path, name: str) -> None:
    """Spark's file sources leave out hidden names silently: rows or an error, never fewer."""
    good = write_data(table, "good.parquet", ids(0, 1))
    action = write_data(table, name, ids(1, 3))
    action["add"]["path"] = _encoded(name)
    create(table, good, action)
    frame = read_delta(spark, str(table))
    assert rows(frame) == [(0,), (1,), (2,)]
    assert frame.count() == 3


def _encoded(name: str) -> str:
    return quote(name, safe="/=:+")


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("absolute", ["/abs", "file:/", "file:///"])
def test_absolute_paths(spark: SparkSession, table: Path, tmp_path: Path, absolute: str) -> None:
    outside = write_data(tmp_path / "else where", "f g", ids(0, 2))
    path = str(tmp_path / "else where" / "f g").replace(" ", "%20")
    prefix = {"/abs": "", "file:/": "file:", "file:///": "file://"}[absolute]
    outside["add"]["path"] = prefix + path
    create(table, outside, write_data(table, "h", ids(2, 3)))
    assert rows(read_delta(spark, str(table))) == [(0,), (1,), (2,)]
    write_commit(table, 1, [remove("file:" + path.replace("%20", " "))])
    assert rows(read_delta(spark, str(table))) == [(2,)]


class TestMissingFiles:
    @pytest.mark.usefixtures("listed")
    def test_when_the_scan_is_built(self, spark: SparkSession, table: Path) -> None:
        create(table, write_data(table, "f", ids(0, 1)), write_data(table, "g h", ids(1, 2)))
        (table / "g h").unlink()
        for _ in range(2):
            with raises("DELTA_FILE_NOT_FOUND") as raised:
                read_delta(spark, str(table))
            assert raised.value.file.endswith("/table/g h")
            assert raised.value.version == 0
            assert "vacuum" in str(raised.value).lower()

    @pytest.mark.usefixtures("listed")
    def test_later(self, spark: SparkSession, table: Path) -> None:
        create(table, write_data(table, "f", ids(0, 1)), write_data(table, "g", ids(1, 2)))
        frame = read_delta(spark, str(table))
        (table / "g").unlink()
        with pytest.raises(SPARK_ERRORS, match=r"FILE_NOT_EXIST|FileNotFound|PATH_NOT_FOUND"):
            frame.collect()

    def test_of_a_hidden_name(self, spark: SparkSession, table: Path) -> None:
        create(table, write_data(table, "_f", ids(0, 1)))
        (table / "_f").unlink()
        error = raised_by(lambda: read_delta(spark, str(table)).collect())
        assert error.getCondition() in {"DELTA_FILE_NOT_FOUND", "DELTA_DATA_FILE_NOT_READ"}
        with raises("DELTA_FILE_NOT_FOUND", "DELTA_DATA_FILE_NOT_READ"):
            read_delta(spark, str(table), where="id = 0")

    @pytest.mark.parametrize("name", ["f", "_f"])
    def test_a_file_without_content(self, spark: SparkSession, table: Path, name: str) -> None:
        """An empty file, as a crash leaves it, fails the query: Spark's file sources leave such
        files out.
        """
        create(table, write_data(table, name, ids(0, 1)), write_data(table, "g", ids(1, 2)))
        (table / name).write_bytes(b"")
        with pytest.raises((DeltaError, *SPARK_ERRORS)):
            read_delta(spark, str(table)).collect()

    def test_a_directory_in_its_place(self, spark: SparkSession, table: Path) -> None:
        create(table, write_data(table, "f", ids(0, 1)), write_data(table, "g", ids(1, 2)))
        (table / "f").unlink()
        (table / "f").mkdir()
        pq.write_table(ids(7, 9), table / "f" / "x.parquet")
        with pytest.raises((DeltaError, *SPARK_ERRORS)):
            read_delta(spark, str(table)).collect()

    def test_a_file_that_is_no_parquet(self, spark: SparkSession, table: Path) -> None:
        create(table, write_data(table, "f", ids(0, 1)))
        (table / "f").write_bytes(b"not Parquet at all")
        with pytest.raises(SPARK_ERRORS):
            read_delta(spark, str(table)).collect()


@pytest.mark.usefixtures("reader")
def test_columns_and_cases(spark: SparkSession, table: Path) -> None:
    schema = (field("Id", "long"), field("a b.c", "string"), field("late", "integer"))
    old = pa.table({"ID": pa.array([1]), "a b.c": ["x"], "dropped": [True], "_change_type": ["i"]})
    write_commit(table, 0, [protocol(), metadata(*schema), write_data(table, "f", old)])
    frame = read_delta(spark, str(table))
    assert frame.columns == ["Id", "a b.c", "late"]
    assert rows(frame) == [(1, "x", None)]
    assert read_delta(spark, str(table), columns=["late", "iD"]).columns == ["late", "Id"]
    assert rows(read_delta(spark, str(table), columns=["A B.C"])) == [("x",)]
    with pytest.raises(ColumnNotFoundError) as raised:
        read_delta(spark, str(table), columns=["gone"])
    assert raised.value.available == ["Id", "a b.c", "late"]
    assert rows(read_delta(spark, str(table), columns=[]).select(F.lit(1))) == [(1,)]


@pytest.mark.usefixtures("reader")
def test_an_empty_table(spark: SparkSession, table: Path) -> None:
    create(table)
    frame = read_delta(spark, str(table))
    assert (frame.columns, frame.collect(), frame.count()) == (["id"], [], 0)
    assert read_delta(spark, str(table), where="id > 1").collect() == []


def test_nullability_is_as_declared(spark: SparkSession, table: Path) -> None:
    inner = {**array_of("integer"), "containsNull": False}
    schema = field("s", struct_of(field("a", inner, nullable=False)), nullable=False)
    write_commit(table, 0, [protocol(), metadata(schema)])
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.schema["s"].nullable is False
    struct = snapshot.schema["s"].dataType
    assert struct["a"].nullable is False
    assert struct["a"].dataType.containsNull is False


@pytest.mark.usefixtures("reader")
class TestColumnMapping:
    """PROTOCOL.md#column-mapping"""

    @staticmethod
    def _field(name: str, data_type: Any, number: int | None) -> dict[str, Any]:
        known = {} if number is None else {"delta.columnMapping.id": number}
        return field(
            name, data_type, metadata={**known, "delta.columnMapping.physicalName": f"col-{name}"}
        )

    def _create(self, table: Path, mode: str, data: pa.Table, **protocol_fields: Any) -> None:
        nested = struct_of(self._field("x", "long", 4), self._field("y", "string", 5))
        schema = (
            self._field("id", "long", 1),
            self._field("o", nested, 2),
            self._field("l", array_of(nested), 3),
            self._field("m", map_of("string", nested), 6),
        )
        action = write_data(table, "col-p=1/f", data, {"col-p": "1"})
        versions = protocol_fields or {"features": ["columnMapping"]}
        described = metadata(
            *schema,
            self._field("p", "integer", 7),
            partitioned_by=["p"],
            configuration={"delta.columnMapping.mode": mode},
        )
        write_commit(table, 0, [protocol(**versions), described, action])

    @staticmethod
    def _data(names: dict[str, str], *, with_ids: bool) -> pa.Table:
        def of(name: str, number: int, data_type: pa.DataType) -> pa.Field:
            tags = {b"PARQUET:field_id": str(number).encode()} if with_ids else None
            return pa.field(names.get(name, name), data_type, metadata=tags)

        nested = pa.struct([of("col-y", 5, pa.string()), of("col-x", 4, pa.int64())])
        x, y = names.get("col-x", "col-x"), names.get("col-y", "col-y")
        value = {x: 2, y: "z"}
        schema = pa.schema(
            [
                of("col-m", 6, pa.map_(pa.string(), nested)),
                of("col-l", 3, pa.list_(nested)),
                of("col-o", 2, nested),
                of("col-id", 1, pa.int64()),
            ]
        )
        columns = [[[("k", value)]], [[value]], [value], [1]]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
        return pa.table(arrays, schema=schema)

    WANTED: ClassVar = [(1, (2, "z"), [(2, "z")], {"k": (2, "z")}, 1)]

    @pytest.mark.parametrize(
        "versions", [{"features": ["columnMapping"]}, {"reader": 2, "writer": 5}]
    )
    def test_by_name(self, spark: SparkSession, table: Path, versions: dict[str, Any]) -> None:
        self._create(table, "name", self._data({}, with_ids=False), **versions)
        frame = read_delta(spark, str(table))
        assert rows(frame) == self.WANTED
        assert rows(frame.select("o.x", "l.y", "p")) == [(2, ["z"], 1)]
        assert frame.schema["id"].metadata == {}

    def test_by_id_where_files_have_other_names(self, spark: SparkSession, table: Path) -> None:
        """Names in a file count for nothing, at any level."""
        other = {f"col-{n}": f"other {n}" for n in ("id", "o", "l", "m", "x", "y")}
        self._create(table, "id", self._data(other, with_ids=True))
        assert rows(read_delta(spark, str(table))) == self.WANTED
        assert rows(read_delta(spark, str(table), where="o.x = 2", columns=["id"])) == [(1,)]

    def test_by_id_where_nested_names_are_swapped(
        self, spark: SparkSession, table: Path, reader: str
    ) -> None:
        """Spark cannot read such a file where the types differ, and says so; workers can."""
        swapped = {"col-x": "col-y", "col-y": "col-x"}
        self._create(table, "id", self._data(swapped, with_ids=True))
        frame = read_delta(spark, str(table))
        if reader != "workers" and not is_connect(spark):  # which reads the names of each file
            says_why = not spark.version.startswith("4.0.")
            text = "PARQUET_COLUMN_DATA_TYPE_MISMATCH" if says_why else "FAILED_READ_FILE"
            with pytest.raises(SPARK_ERRORS, match=text):
                frame.collect()
        else:
            assert rows(frame) == self.WANTED

    @pytest.mark.parametrize("vectorized", ["true", "false"])
    def test_by_id_where_nested_names_of_one_type_are_swapped(
        self, spark: SparkSession, table: Path, vectorized: str
    ) -> None:
        """Never the values of the other."""
        nested = struct_of(self._field("x", "long", 2), self._field("y", "long", 3))

        def tagged(name: str, data_type: pa.DataType, number: int) -> pa.Field:
            return pa.field(name, data_type, metadata={b"PARQUET:field_id": str(number).encode()})

        stored = pa.struct([tagged("col-y", pa.int64(), 2), tagged("col-x", pa.int64(), 3)])
        values = pa.array([{"col-y": 2, "col-x": 3}], stored)
        data = pa.table([values], schema=pa.schema([tagged("col-o", stored, 1)]))
        described = metadata(
            self._field("o", nested, 1), configuration={"delta.columnMapping.mode": "id"}
        )
        action = write_data(table, "f", data)
        write_commit(table, 0, [protocol(features=["columnMapping"]), described, action])
        with settings(spark, {"spark.sql.parquet.enableVectorizedReader": vectorized}):
            frame = read_delta(spark, str(table))
            assert rows(frame) == [((2, 3),)]
            assert rows(frame.select("o.x")) == [(2,)]
            assert rows(frame.select("o.y")) == [(3,)]

    def test_by_name_ids_count_for_nothing(self, spark: SparkSession, table: Path) -> None:
        """Whatever the session says of field ids."""
        self._create(table, "name", self._data({}, with_ids=True))
        assert rows(read_delta(spark, str(table))) == self.WANTED

    def test_by_id_files_without_ids_are_refused(
        self, spark: SparkSession, table: Path, reader: str
    ) -> None:
        """PROTOCOL.md#reader-requirements-for-column-mapping: an error, or nulls."""
        self._create(table, "id", self._data({}, with_ids=False))
        frame = read_delta(spark, str(table))
        if is_connect(spark):
            assert raised_by(frame.collect).getCondition() == "DELTA_INVALID_COLUMN_MAPPING"
        elif reader != "workers":
            with pytest.raises(SPARK_ERRORS, match="doesn't contain any field Ids"):
                frame.collect()
        else:
            assert raised_by(frame.collect).getCondition() == "DELTA_DATA_FILE_UNSUPPORTED"

    def test_on_reader_1_the_mode_is_ignored(self, spark: SparkSession, table: Path) -> None:
        """PROTOCOL.md#active-features"""
        data = self._data({f"col-{n}": n for n in ("id", "o", "l", "m", "x", "y")}, with_ids=False)
        self._create(table, "name", data, reader=1, writer=2)
        frame = read_delta(spark, str(table), columns=["id", "o", "l", "m"])
        assert rows(frame) == [(1, (2, "z"), [(2, "z")], {"k": (2, "z")})]


@pytest.mark.usefixtures("reader")
class TestRowTracking:
    """PROTOCOL.md#reader-requirements-for-row-tracking"""

    CONFIGURATION: ClassVar = {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id-1",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version-1",
    }
    COLUMNS: ClassVar = ["id", "_metadata.row_id", "_metadata.row_commit_version"]

    def _create(self, table: Path, *actions: Any, configuration: Any = None) -> None:
        first = [
            protocol(features=["rowTracking", "domainMetadata", "deletionVectors"]),
            metadata(configuration=self.CONFIGURATION if configuration is None else configuration),
        ]
        write_commit(table, 0, [*first, *actions])

    def test_generated_and_materialized(self, spark: SparkSession, table: Path) -> None:
        kept = ids(20, 22).append_column("_row-id-1", pa.array([7, None], pa.int64()))
        kept = kept.append_column("_row-version-1", pa.array([None, 1], pa.int64()))
        self._create(
            table,
            write_data(table, "f", ids(0, 2), baseRowId=100, defaultRowCommitVersion=5),
            write_data(table, "g", ids(10, 13), baseRowId=200, defaultRowCommitVersion=6,
                       deletionVector=inline_vector([1])),
            write_data(table, "h", kept, baseRowId=300, defaultRowCommitVersion=9),
        )  # fmt: skip
        frame = read_delta(spark, str(table), columns=self.COLUMNS)
        assert frame.columns == ["id", "row_id", "row_commit_version"]
        assert rows(frame) == sorted(
            [(0, 100, 5), (1, 101, 5), (10, 200, 6), (12, 202, 6), (20, 7, 9), (21, 301, 1)],
            key=repr,
        )
        assert read_delta(spark, str(table)).columns == ["id"]

    def test_only_where_it_is_enabled(self, spark: SparkSession, table: Path) -> None:
        self._create(table, configuration={"delta.enableRowTracking": "false"})
        with pytest.raises(InvalidArgumentError):
            read_delta(spark, str(table), columns=self.COLUMNS)


def test_more_files_than_the_driver_may_hold(spark: SparkSession, table: Path) -> None:
    """The list stays with the executors, with or without a version checksum or a checkpoint."""
    create(table, *(write_data(table, f"f{n}", ids(n, n + 1)) for n in range(4)))
    snapshot = load_snapshot(spark, str(table))
    few, many = (snapshot.scan(max_driver_files=bound).to_df() for bound in (4, 3))
    assert rows(few) == rows(many) == [(0,), (1,), (2,), (3,)]
    assert any(node.name == "MapInArrow" for node in plan(many))
    assert not any(node.name == "MapInArrow" for node in plan(few))
    filtered = snapshot.scan("id = 2", ["ID"], max_driver_files=1).to_df()
    assert rows(filtered) == [(2,)]
    unlooked = snapshot.scan("id + id = 4 AND rand() < 2", ["id"], max_driver_files=1).to_df()
    assert rows(unlooked) == [(2,)]
