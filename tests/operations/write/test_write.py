"""`write_delta`: what it writes, what it refuses, and that delta-rs reads it."""

from __future__ import annotations

import datetime as dt
import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta import read_delta, write_delta
from sparkdelta.base.spark.spark_errors import SPARK_ERRORS
from sparkdelta.base.storage.local_files import LocalTableFiles
from sparkdelta.base.storage.worker_files import ArrowFiles
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    DeltaError,
    DeltaWarning,
    InvalidArgumentError,
    InvalidColumnNameError,
    TableNotFoundError,
)
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.rows import file_descriptions
from tests.support.errors import raises
from tests.support.log_writer import write_commit
from tests.support.settings import HOSTILE, settings
from tests.support.spark_jobs import no_jobs

PEOPLE = [("Alice", 47, "a"), ("Bob", 23, "b"), ("Carol", 51, None)]


def people(spark: SparkSession, rows: list[tuple] | None = None) -> DataFrame:
    return spark.createDataFrame(PEOPLE if rows is None else rows, "name STRING, age INT, p STRING")


def rows(spark: SparkSession, path: str) -> list[tuple]:
    return sorted(map(tuple, read_delta(spark, path).collect()), key=str)


def commit(path: str, version: int) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for line in Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines():
        for name, document in json.loads(line).items():
            found.setdefault(name, []).append(document)
    return found


def test_a_new_table(spark: SparkSession, table_path: str) -> None:
    done = write_delta(people(spark).coalesce(1), table_path, user_metadata="first")
    assert (done.version, done.num_files, done.num_rows, done.retries) == (0, 1, 3, 0)
    found = commit(table_path, 0)
    [info], [protocol], [metadata], [add] = (
        found[name] for name in ("commitInfo", "protocol", "metaData", "add")
    )
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert info["operation"] == "WRITE"
    assert info["operationParameters"] == {"mode": "ErrorIfExists", "partitionBy": "[]"}
    assert info["operationMetrics"] == {
        "numFiles": "1", "numOutputRows": "3", "numOutputBytes": str(add["size"]),
    }  # fmt: skip
    assert (info["userMetadata"], info["isBlindAppend"]) == ("first", True)
    assert "readVersion" not in info
    assert [f["name"] for f in json.loads(metadata["schemaString"])["fields"]] == [
        "name", "age", "p",
    ]  # fmt: skip
    assert json.loads(add["stats"]) == {
        "numRecords": 3,
        "minValues": {"name": "Alice", "age": 23, "p": "a"},
        "maxValues": {"name": "Carol", "age": 51, "p": "b"},
        "nullCount": {"name": 0, "age": 0, "p": 1},
        "tightBounds": True,
    }
    assert Path(table_path, add["path"]).stat().st_size == add["size"] == done.num_bytes
    assert rows(spark, table_path) == sorted(PEOPLE, key=str)
    # Nothing else is left: what names no file of the table is for nobody.
    names = {p.name for p in Path(table_path).rglob("*") if p.is_file()}
    log = {"00000000000000000000.json", "00000000000000000000.crc"}
    assert names == {*log, Path(add["path"]).name}


@pytest.mark.both_kinds
def test_modes(spark: SparkSession, table_path: str) -> None:
    one = people(spark, PEOPLE[:1])
    assert write_delta(one, table_path, mode="ignore").version == 0
    with raises("DELTA_TABLE_ALREADY_EXISTS"):
        write_delta(one, table_path)
    assert write_delta(one, table_path, mode="ignore").version is None
    assert write_delta(one, table_path, mode="append").version == 1
    assert len(rows(spark, table_path)) == 2
    done = write_delta(people(spark, PEOPLE[1:]), table_path, mode="overwrite")
    assert done.version == 2
    assert rows(spark, table_path) == sorted(PEOPLE[1:], key=str)
    assert len(commit(table_path, 2)["remove"]) == 2
    assert commit(table_path, 2)["commitInfo"][0]["isBlindAppend"] is False
    assert len(read_delta(spark, table_path, version=1).collect()) == 2
    with pytest.raises(InvalidArgumentError):
        write_delta(one, table_path, mode="upsert")


def test_partitions(spark: SparkSession, table_path: str) -> None:
    write_delta(people(spark), table_path, partition_by=["P"])
    adds = {json.dumps(a["partitionValues"]): a["path"] for a in commit(table_path, 0)["add"]}
    assert set(adds) == {'{"p": "a"}', '{"p": "b"}', '{"p": null}'}
    assert adds['{"p": "a"}'].startswith("p=a/")
    write_delta(people(spark, [("Dan", 1, "a")]), table_path, mode="append", partition_by=["p"])
    assert len(rows(spark, table_path)) == 4
    with raises("DELTA_METADATA_MISMATCH"):
        write_delta(people(spark), table_path, mode="append", partition_by=["name"])
    snapshot = sparkdelta.load_snapshot(spark, table_path)
    assert snapshot.scan("p = 'a'").files().count() == 2


STRANGE = [
    "a/b", "a=b", "50%", "%41", "ü ñ", "a b", "x:y", "#?", "'\"", "{}[]", "\\", "line\nbreak",
    "__HIVE_DEFAULT", " lead", "trail ", "..", ".", "_h", "null", "1.0", "\x01", "+",
]  # fmt: skip


def test_partition_values_come_back_exactly(spark: SparkSession, table_path: str) -> None:
    """ "Partition Value Serialization": nothing is lost in the name of a directory."""
    wanted = [(number, text) for number, text in enumerate(STRANGE)]
    frame = spark.createDataFrame([*wanted, (98, None), (99, "")], "n INT, `.p` STRING")
    write_delta(frame.repartition(1), table_path, partition_by=[".p"])
    assert rows(spark, table_path) == sorted([*wanted, (98, None), (99, None)], key=str)
    values = {a["partitionValues"][".p"] for a in commit(table_path, 0)["add"]}
    assert values == {*STRANGE, None}


def test_a_value_that_stands_for_none_is_refused(spark: SparkSession, table_path: str) -> None:
    frame = people(spark, [("x", 1, "__HIVE_DEFAULT_PARTITION__")])
    with pytest.raises(DeltaError):
        write_delta(frame, table_path, partition_by=["p"])
    with pytest.raises(TableNotFoundError):
        read_delta(spark, table_path)


TYPES = """SELECT * FROM VALUES
  (1, true, 1Y, 1S, 5000000000L, 1.5F, -2.5D, 1.50BD, DATE'2024-02-29',
   TIMESTAMP'2024-02-29 12:00:00.123456Z', TIMESTAMP_NTZ'2024-02-29 12:00:00.123456', 's', X'00FF'),
  (2, false, -1Y, -1S, -1L, 0F, 0D, -0.01BD, DATE'1500-01-01',
   TIMESTAMP'1500-01-01 00:00:00.000001Z', TIMESTAMP_NTZ'1500-01-01 00:00:00', '', X''),
  (3, null, null, null, null, null, null, null, null, null, null, null, null)
AS t(n, b, i1, i2, i8, f4, f8, d, day, ts, ntz, s, bin)"""
PARTITIONED = ["b", "i1", "i2", "i8", "f4", "f8", "d", "day", "ts", "ntz", "s"]


WRITER = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.compression.codec": "none",
    "spark.sql.files.maxRecordsPerFile": "1",
    "spark.sql.session.timeZone": "America/New_York",
}


@pytest.mark.parametrize("group", ["usual", "writer", "time zone, no ANSI", "plans"])
@pytest.mark.parametrize("partition_by", [[], PARTITIONED], ids=["columns", "partitions"])
def test_types(spark, table_path, partition_by, group) -> None:  # type: ignore[no-untyped-def]
    """Values, statistics and partition values are the same in every session."""
    frame = spark.sql(TYPES)
    wanted = [tuple(None if v == "" and partition_by else v for v in r) for r in frame.collect()]
    hostile = {"writer": WRITER, **HOSTILE}.get(group, {})
    with settings(spark, hostile):
        before = dict(spark.conf.getAll)
        write_delta(frame.coalesce(1), table_path, partition_by=partition_by)
        assert dict(spark.conf.getAll) == before
    assert rows(spark, table_path) == sorted(wanted, key=str)
    found = commit(table_path, 0)
    assert len(found["add"]) == (3 if partition_by else 1)
    assert found["protocol"][0]["readerFeatures"] == ["timestampNtz"]
    if partition_by:
        values = [a["partitionValues"] for a in found["add"]]
        assert {v["ts"] for v in values} == {
            "2024-02-29T12:00:00.123456Z", "1500-01-01T00:00:00.000001Z", None,
        }  # fmt: skip
        assert {v["d"] for v in values} == {"1.50", "-0.01", None}
        return
    report = sparkdelta.load_snapshot(spark, table_path).add_files()
    bounds = report.selectExpr(
        "min(stats_parsed.minValues.ts)", "max(stats_parsed.maxValues.ts)",
        "min(stats_parsed.minValues.day)", "max(stats_parsed.maxValues.d)",
        "max(stats_parsed.maxValues.f8)", "sum(stats_parsed.nullCount.bin)",
    ).collect()[0]  # fmt: skip
    low, high, day, decimal, double, nulls = bounds
    assert (day, decimal, double, nulls) == (dt.date(1500, 1, 1), Decimal("1.50"), 1.5 - 1.5, 1)
    times = [row[9] for row in wanted if row[9] is not None]
    assert low <= min(times)
    assert max(times) <= high


def test_not_a_number_and_long_texts(spark: SparkSession, table_path: str) -> None:
    """ "Per-file Statistics": a bound is never wrong; without one a file is always read."""
    long = "a" * 40
    frame = spark.createDataFrame(
        [(float("nan"), long, "\U0010ffff" * 40), (1.0, long, "x")], "f DOUBLE, s STRING, u STRING"
    )
    write_delta(frame.coalesce(1), table_path)
    [stats] = [json.loads(a["stats"]) for a in commit(table_path, 0)["add"]]
    assert "f" not in stats["maxValues"]
    assert stats["minValues"]["s"] == "a" * 32
    assert stats["maxValues"]["s"] == "a" * 32 + "\U0010ffff"
    assert stats["maxValues"]["u"] == "\U0010ffff" * 40
    for where in ("f > 100", f"s = '{long}'", "f = 1.0"):
        assert read_delta(spark, table_path, where=where).count() >= 1
    short = {"delta.dataSkippingStringPrefixLength": "2"}
    write_delta(frame.coalesce(1), f"{table_path}-short", properties=short)
    [stats] = [json.loads(a["stats"]) for a in commit(f"{table_path}-short", 0)["add"]]
    assert (stats["minValues"]["s"], stats["maxValues"]["s"]) == ("aa", "aa\U0010ffff")


def test_nested_columns_and_the_bound_on_statistics(spark: SparkSession, table_path: str) -> None:
    frame = spark.sql(
        "SELECT named_struct('x', 1L, 'y', array(1, 2)) AS a, map('k', 1) AS m, 7 AS z, 8 AS last"
    )
    write_delta(frame, table_path, properties={"delta.dataSkippingNumIndexedCols": "4"})
    [stats] = [json.loads(a["stats"]) for a in commit(table_path, 0)["add"]]
    assert stats["minValues"] == {"a": {"x": 1}, "z": 7}
    assert read_delta(spark, table_path).collect() == frame.collect()


def test_an_empty_frame(spark: SparkSession, table_path: str) -> None:
    done = write_delta(people(spark, []), table_path)
    assert (done.version, done.num_files, done.num_rows) == (0, 0, 0)
    assert rows(spark, table_path) == []
    write_delta(people(spark), table_path, mode="append")
    assert write_delta(people(spark, []), table_path, mode="overwrite").version == 2
    assert rows(spark, table_path) == []


def test_columns_are_matched_by_name(spark: SparkSession, table_path: str) -> None:
    write_delta(people(spark), table_path)
    frame = spark.sql("SELECT 5Y AS AGE, 'Dan' AS Name")
    write_delta(frame, table_path, mode="append")
    assert ("Dan", 5, None) in rows(spark, table_path)
    for sql, error in (
        ("SELECT 'x' AS name, 1 AS age, 'p' AS p, 1 AS more", "DELTA_METADATA_MISMATCH"),
        ("SELECT 'x' AS name, 'young' AS age", "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("SELECT 1 AS age, 2 AS Age", "DELTA_DUPLICATE_COLUMNS_FOUND"),
    ):
        with raises(error):
            write_delta(spark.sql(sql), table_path, mode="append")
    assert sparkdelta.load_snapshot(spark, table_path).version == 1


def test_new_columns(spark: SparkSession, table_path: str) -> None:
    """A schema that grows keeps what it has, the table's id included."""
    write_delta(people(spark), table_path, partition_by=["p"], properties={"mine": "1"})
    frame = spark.sql("SELECT 'Dan' AS NAME, 'a' AS p, named_struct('x', 1) AS New")
    done = write_delta(frame, table_path, mode="append", merge_schema=True)
    assert done.version == 1
    [before], [after] = (commit(table_path, version)["metaData"] for version in (0, 1))
    schema = json.loads(after["schemaString"])["fields"]
    assert schema[:3] == json.loads(before["schemaString"])["fields"]
    assert (schema[3]["name"], schema[3]["nullable"]) == ("New", True)
    assert {**after, "schemaString": ""} == {**before, "schemaString": ""}
    found = {row["name"]: row["New"] for row in read_delta(spark, table_path).collect()}
    assert found == {"Alice": None, "Bob": None, "Carol": None, "Dan": (1,)}
    write_delta(people(spark), table_path, mode="append", merge_schema=True)
    assert "metaData" not in commit(table_path, 2)
    for sql, error in (
        ("SELECT '1' AS age, 1 AS more", "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("SELECT 1 AS `m m`", InvalidColumnNameError),
        ("SELECT array(null) AS more, 'a' AS p", "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
    ):
        with raises(error):
            write_delta(spark.sql(sql), table_path, mode="append", merge_schema=True)
    assert sparkdelta.load_snapshot(spark, table_path).version == 2


@pytest.mark.parametrize(
    ("sql", "options", "error"),
    [
        ("SELECT 1 AS `a b`", {}, InvalidColumnNameError),
        ("SELECT named_struct('a,b', 1) AS s", {}, InvalidColumnNameError),
        ("SELECT null AS v", {}, "DELTA_CANNOT_WRITE_EMPTY_SCHEMA"),
        ("SELECT array(null) AS v", {}, "DELTA_CANNOT_WRITE_EMPTY_SCHEMA"),
        ("SELECT INTERVAL '1' DAY AS v", {}, "DELTA_UNSUPPORTED_DATA_TYPES"),
        ("SELECT 'x' COLLATE UTF8_LCASE AS v", {}, "DELTA_UNSUPPORTED_DATA_TYPES"),
        ("SELECT 1 AS a", {"partition_by": ["b"]}, "DELTA_INVALID_PARTITION_COLUMN"),
        ("SELECT 1 AS a", {"partition_by": ["a"]}, "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"),
        ("SELECT 1 AS a, 2 AS b", {"partition_by": ["a", "A"]}, "DELTA_INVALID_PARTITION_COLUMN"),
        ("SELECT 1 AS a, array(1) AS b", {"partition_by": ["b"]}, "DELTA_INVALID_PARTITION_COLUMN"),
        ("SELECT 1 AS a", {"properties": {"delta.enableRowTrackin": "true"}},
         "DELTA_UNKNOWN_CONFIGURATION"),
        ("SELECT 1 AS a", {"properties": {"delta.checkpointInterval": "0"}}, InvalidArgumentError),
        ("SELECT 1 AS a", {"properties": {"delta.feature.icebergWriterCompatV1": "supported"}},
         "DELTA_WRITE_NOT_IMPLEMENTED"),
        ("SELECT 1 AS a", {"properties": {"delta.dataSkippingStatsColumns": "b"}},
         ColumnNotFoundError),
        ("SELECT 1 AS a", {"overwrite_schema": True, "mode": "append"}, InvalidArgumentError),
        ("SELECT 1 AS a", {"overwrite_schema": True, "mode": "overwrite", "replace_where": "a = 1"},
         InvalidArgumentError),
        ("SELECT 1 AS a", {"properties": {"delta.isolationLevel": "none"}}, InvalidArgumentError),
        ("SELECT 1 AS a", {"replace_where": "a = 1"}, InvalidArgumentError),
        ("SELECT 1 AS a", {"replace_where": "b = 1", "mode": "overwrite"}, ColumnNotFoundError),
        ("SELECT 1 AS a", {"txn_app_id": "x"}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"),
    ],
)  # fmt: skip
def test_unsuitable_rows_create_no_table(spark, table_path, sql, options, error) -> None:  # type: ignore[no-untyped-def]
    with raises(error):
        write_delta(spark.sql(sql), table_path, **options)
    assert not Path(table_path).exists()  # nothing was written


@pytest.mark.parametrize(
    ("protocol", "configuration", "field", "named"),
    [
        ((1, 7, ["icebergWriterCompatV3"]), {}, {}, "icebergWriterCompatV3"),
    ],
)  # fmt: skip
def test_unsupported_features_are_named(  # type: ignore[no-untyped-def]
    spark, table_path, protocol, configuration, field, named
) -> None:
    reader, writer, *features = protocol
    column = {"name": "age", "type": "integer", "nullable": True, "metadata": field}
    metadata = {
        "id": "i",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [column]}),
        "partitionColumns": [],
        "configuration": configuration,
    }
    versions = {"minReaderVersion": reader, "minWriterVersion": writer}
    lists = {"writerFeatures": features[0]} if features else {}
    actions = [{"protocol": {**versions, **lists}}, {"metaData": metadata}]
    write_commit(Path(table_path), 0, actions)
    for mode in ("append", "overwrite"):
        with raises("DELTA_WRITE_NOT_IMPLEMENTED") as raised:
            write_delta(spark.sql("SELECT 1 AS age"), table_path, mode=mode)
        assert named in raised.value.missing
    assert [p.name for p in Path(table_path).iterdir()] == ["_delta_log"]


def test_not_null(spark: SparkSession, table_path: str) -> None:
    fields = [
        {"name": "a", "type": "integer", "nullable": False, "metadata": {}},
        {"name": "b", "type": "integer", "nullable": True, "metadata": {}},
    ]
    metadata = {
        "id": "i",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
    }
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    write_commit(Path(table_path), 0, [protocol, {"metaData": metadata}])
    write_delta(spark.sql("SELECT 1 AS a"), table_path, mode="append")
    for sql in ("SELECT CAST(null AS INT) AS a", "SELECT if(id=5,null,1) a FROM range(9)"):
        with raises("DELTA_NOT_NULL_CONSTRAINT_VIOLATED"):
            write_delta(spark.sql(sql), table_path, mode="append")
    with no_jobs(spark), raises("DELTA_MISSING_NOT_NULL_COLUMN_VALUE", match="lack a,"):
        write_delta(spark.sql("SELECT 1 AS b"), table_path, mode="append")
    assert rows(spark, table_path) == [(1, None)]


def test_the_first_rows_with_replace_where(spark: SparkSession, table_path: str) -> None:
    """They make the table, as a repeated job must have a first run."""
    done = write_delta(
        people(spark), table_path, mode="overwrite", replace_where="age > 0", partition_by=["p"]
    )
    assert (done.version, done.num_rows) == (0, len(PEOPLE))
    assert commit(table_path, 0)["commitInfo"][0]["operationParameters"]["predicate"] == "age > 0"
    with raises("DELTA_REPLACE_WHERE_MISMATCH"):
        write_delta(people(spark), f"{table_path} 2", mode="overwrite", replace_where="age > 23")
    assert not sparkdelta.DeltaTable.isDeltaTable(spark, f"{table_path} 2")


@pytest.mark.full
def test_replace_where(spark: SparkSession, table_path: str) -> None:
    write_delta(people(spark), table_path, partition_by=["p"])
    done = write_delta(
        people(spark, [("Ann", 1, "a")]), table_path, mode="overwrite", replace_where="p = 'a'"
    )
    assert done.version == 1
    assert rows(spark, table_path) == sorted([("Ann", 1, "a"), *PEOPLE[1:]], key=str)
    found = commit(table_path, 1)
    assert [r["partitionValues"] for r in found["remove"]] == [{"p": "a"}]
    assert found["commitInfo"][0]["operationParameters"]["predicate"] == "p = 'a'"
    for frame, where, error in (
        (people(spark, [("Ann", 1, "b")]), "p = 'a'", "DELTA_REPLACE_WHERE_MISMATCH"),
        (people(spark, [("Ann", 1, None)]), "p = 'a'", "DELTA_REPLACE_WHERE_MISMATCH"),
    ):
        with raises(error):
            write_delta(frame, table_path, mode="overwrite", replace_where=where)
    assert sparkdelta.load_snapshot(spark, table_path).version == 1


def test_a_write_that_is_done_once(spark: SparkSession, table_path: str) -> None:
    """ "Transaction Identifiers" """
    for version, wanted in ((1, 0), (1, None), (0, None), (2, 1)):
        done = write_delta(
            people(spark), table_path, mode="append", txn_app_id="job", txn_version=version
        )
        assert done.version == wanted
    assert len(rows(spark, table_path)) == 6


def test_an_append_only_table_is_not_overwritten(spark: SparkSession, table_path: str) -> None:
    write_delta(people(spark), table_path, properties={"delta.appendOnly": "true"})
    before = sorted(Path(table_path).rglob("*"))
    with raises("DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        write_delta(people(spark), table_path, mode="overwrite")
    assert sorted(Path(table_path).rglob("*")) == before
    write_delta(people(spark), table_path, mode="append")


def test_in_commit_timestamps(spark: SparkSession, table_path: str) -> None:
    for _ in range(2):
        write_delta(
            people(spark), table_path, mode="append",
            properties={"delta.enableInCommitTimestamps": "true"} if _ == 0 else None,
        )  # fmt: skip
    first, second = (commit(table_path, v)["commitInfo"][0] for v in (0, 1))
    assert first["inCommitTimestamp"] < second["inCommitTimestamp"]


def test_the_rows_of_the_table_itself(spark: SparkSession, table_path: str) -> None:
    write_delta(people(spark), table_path)
    older = read_delta(spark, table_path).filter("age > 40")
    write_delta(older, table_path, mode="overwrite")
    assert len(rows(spark, table_path)) == 2


def test_executors_describe_what_the_driver_does_not(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The add actions are the same, whoever reads the footers; on HDFS the driver does, through
    Hadoop.
    """
    told = []
    for name, most in (("driver", 16), ("executors", 0), ("hadoop", 0)):
        with monkeypatch.context() as patched:
            patched.setattr(file_descriptions, "MAX_DRIVER_FOOTERS", most)
            patched.setattr(ArrowFiles, "is_near", lambda *_, near=name != "hadoop": near)
            path = f"{table_path}-{name}"
            write_delta(people(spark).coalesce(1), path, partition_by=["p"])
        adds = [{**add, "path": "", "modificationTime": 0} for add in commit(path, 0)["add"]]
        told.append(sorted(adds, key=str))
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == 3


def test_rows_without_a_partition_column(spark: SparkSession, table_path: str) -> None:
    """Rows without a partition column are refused, as all of them would be in the partition of
    nulls.
    """
    write_delta(people(spark), table_path, partition_by=["p"])
    for mode in ("append", "overwrite"):
        with raises("DELTA_PARTITION_COLUMN_NOT_FOUND") as raised:
            write_delta(people(spark).drop("p"), table_path, mode=mode)
        assert raised.value.column == "p"
    nulls = people(spark).selectExpr("* EXCEPT (p)", "NULL AS p")
    assert write_delta(nulls, table_path, mode="append").version == 1


def test_a_table_beside_other_files(spark: SparkSession, table_path: str) -> None:
    Path(table_path).mkdir()
    Path(table_path, "part-0.parquet").write_bytes(b"")
    with pytest.warns(DeltaWarning) as warned:
        assert write_delta(spark.range(1), table_path, mode="append").version == 0
    assert [warning.filename for warning in warned] == [__file__]
    write_delta(spark.range(1), table_path, mode="append")  # no warning, which is an error


@pytest.mark.classic("makes the storage of this process fail")
def test_a_failure_before_the_commit(
    spark: SparkSession,
    table_path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The table is as it was. What failed before a commit leaves nothing; else the log says where
    files lie that nobody refers to.
    """
    write_delta(people(spark), table_path)
    there = set(Path(table_path).iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(file_descriptions, "describe_few_files", _fail)
        with pytest.raises(ConnectionResetError):
            write_delta(people(spark), table_path, mode="append")
        assert set(Path(table_path).iterdir()) == there
        patched.setattr(LocalTableFiles, "delete_directory", _fail)
        with pytest.raises(ConnectionResetError):
            write_delta(people(spark), table_path, mode="append")
    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "commit", _fail)
        with pytest.raises(ConnectionResetError):
            write_delta(people(spark), table_path, mode="append")
    left = {path for path in set(Path(table_path).iterdir()) - there if path.suffix != ".crc"}
    assert all(str(path) in caplog.text for path in left)
    [directory] = (path for path in left if path.name.startswith("_sparkdelta-"))
    assert list(directory.glob("*.parquet"))
    assert {path.suffix for path in left - {directory}} == {".parquet"}
    assert rows(spark, table_path) == sorted(PEOPLE, key=str)
    assert write_delta(people(spark), table_path, mode="append").version == 1


def _fail(*_: object) -> None:
    raise ConnectionResetError


@pytest.mark.classic("tasks of a cluster may still write when the failed job's files are deleted")
def test_failures_of_the_job(spark: SparkSession, table_path: str) -> None:
    """A failure of the job is an error of ours, in few words, with Spark's own as its cause."""
    boom = F.udf(lambda _: 1 // 0, "int")
    for frame, problem in (
        (spark.range(2).select(boom("id").alias("p")), "ZeroDivisionError"),
        (spark.range(2).selectExpr("id DIV (id - 1) AS p"), "DIVIDE_BY_ZERO"),
        (spark.range(1).selectExpr("repeat('x', 300) AS p"), "Mkdirs failed"),
    ):
        with settings(spark, {"spark.sql.ansi.enabled": "true"}), \
                raises("DELTA_WRITE_FAILED") as raised:  # fmt: skip
            write_delta(frame.selectExpr("p", "1 AS n"), table_path, partition_by=["p"])
        assert problem in raised.value.problem
        assert len(raised.value.problem.splitlines()) == 1
        assert isinstance(raised.value.__cause__, SPARK_ERRORS)
    assert not list(Path(table_path).iterdir())


def test_threads_lose_no_row(spark: SparkSession, table_path: str) -> None:
    """Threads write data files at the same time, each in a directory of its own."""
    write_delta(people(spark, []), table_path)

    def append(writer: int) -> int | None:
        frame = spark.range(writer * 10, writer * 10 + 10).selectExpr("id::string AS name")
        return write_delta(frame, table_path, mode="append").version

    with ThreadPoolExecutor(5) as pool:
        assert sorted(pool.map(append, range(5))) == [1, 2, 3, 4, 5]
    assert len({name for name, _, _ in rows(spark, table_path)}) == 50


def test_delta_rs_reads_what_we_wrote(spark: SparkSession, table_path: str) -> None:
    deltalake = pytest.importorskip("deltalake")
    write_delta(people(spark), table_path, partition_by=["p"])
    write_delta(people(spark, [("Dan", 1, "a/b c%")]), table_path, mode="append")
    write_delta(
        people(spark, [("Eve", 2, "b")]), table_path, mode="overwrite", replace_where="p = 'b'"
    )
    table = deltalake.DeltaTable(table_path)
    assert table.version() == 2
    found = table.to_pyarrow_table().select(["name", "age", "p"]).to_pylist()
    assert sorted((tuple(row.values()) for row in found), key=str) == rows(spark, table_path)
    deltalake.write_deltalake(table_path, table.to_pyarrow_table(), mode="append")
    assert len(rows(spark, table_path)) == 8
    assert write_delta(people(spark), table_path, mode="append").version == 4


@pytest.mark.full
def test_delta_rs_finds_rows_by_rare_characters(spark: SparkSession, table_path: str) -> None:
    """Of statistics with escaped characters from U+20000 on, it would read other bounds."""
    deltalake = pytest.importorskip("deltalake")
    write_delta(people(spark, [("\U00020000a", 1, "b"), ("\U00020000b", 2, "b")]), table_path)
    table = deltalake.DeltaTable(table_path)
    table.create_checkpoint()
    found = table.to_pyarrow_table(filters=[("name", ">=", "\U00020000b")])
    assert found["age"].to_pylist() == [2]
    assert sparkdelta.verify(spark, table_path).is_clean
