"""Settings of Spark and delta-spark: delta-spark's interfaces follow them in enabled sessions, and
the functions of this library do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from sparkdelta.base.schema.store_assignment import StoreAssignment, can_store
from sparkdelta.base.spark.spark_errors import SPARK_ERRORS
from tests.support.errors import raises
from tests.support.log_writer import write_commit
from tests.support.table_builder import field, metadata, protocol

_DELTA = "spark.databricks.delta"
_INSERT_9 = (
    "MERGE INTO {} AS t USING (SELECT 9 AS id) s ON t.id = s.id "
    "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
)


@contextmanager
def _settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in values:
            spark.conf.unset(name)


def _rows(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(path).collect())


def _last_commit(spark: SparkSession, path: str) -> dict[str, Any]:
    return DeltaTable.forPath(spark, path).history(1).collect()[0].asDict()


def _two_days(spark: SparkSession, path: str) -> None:
    rows = spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t (id, day)")
    write_delta(rows.coalesce(1), path, mode="overwrite", partition_by=["day"])


@pytest.mark.full
def test_overwrites_replace_partitions_by_setting(enabled: SparkSession, table_path: str) -> None:
    name, dynamic = f"delta.`{table_path}`", {"spark.sql.sources.partitionOverwriteMode": "DYNAMIC"}
    rows = enabled.sql("SELECT 9 AS id, 'a' AS day")
    writer = rows.write.format("delta").mode("overwrite")
    _two_days(enabled, table_path)
    with _settings(enabled, dynamic):
        enabled.sql(f"INSERT OVERWRITE {name} SELECT 8, 'a'")
        assert _rows(enabled, table_path) == [(2, "b"), (8, "a")]
        writer.save(table_path)
        assert _rows(enabled, table_path) == [(2, "b"), (9, "a")]
        assert (
            "isDynamicPartitionOverwrite"
            in _last_commit(enabled, table_path)["operationParameters"]
        )
        rows.write.insertInto(name, overwrite=True)
        rows.write.format("delta").mode("append").save(table_path)
        assert _rows(enabled, table_path) == [(2, "b"), (9, "a"), (9, "a")]
        enabled.range(1).selectExpr("7 AS id", "'b' AS day").write.format("delta").mode(
            "overwrite"
        ).option("replaceWhere", "day = 'b'").save(table_path)
        assert _rows(enabled, table_path) == [(7, "b"), (9, "a"), (9, "a")]
        with raises("DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE"):
            rows.write.format("delta").mode("overwrite").partitionBy("day").option(
                "overwriteSchema", "true"
            ).save(table_path)
        write_delta(rows, table_path, mode="overwrite")
        assert _rows(enabled, table_path) == [(9, "a")], "our function depends on no setting"
        _two_days(enabled, table_path)
        writer.option("partitionOverwriteMode", "static").save(table_path)
        assert _rows(enabled, table_path) == [(9, "a")], "the option counts"


@pytest.mark.full
def test_schemas_evolve_by_setting(enabled: SparkSession, table_path: str) -> None:
    name, evolving = f"delta.`{table_path}`", {f"{_DELTA}.schema.autoMerge.enabled": "true"}

    def columns() -> list[str]:
        return load_snapshot(enabled, table_path).schema.names

    rows = enabled.sql("SELECT 7 AS id, 'a' AS day, 1 AS n")
    _two_days(enabled, table_path)
    with _settings(enabled, evolving):
        with raises("DELTA_METADATA_MISMATCH"):
            write_delta(rows, table_path, mode="append")
        append = rows.write.format("delta").mode("append")
        append.save(table_path)
        enabled.sql(f"INSERT INTO {name} SELECT 1, 'b', 2, 3 AS o")
        enabled.sql(f"INSERT INTO {name} BY NAME SELECT 1 AS id, 'b' AS day, 4 AS p")
        more = rows.withColumn("q", F.lit(5))
        more.writeTo(name).append()
        source = rows.withColumn("r", F.lit(6)).alias("s")
        merge = DeltaTable.forPath(enabled, table_path).alias("t").merge(source, "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        assert columns() == ["id", "day", "n", "o", "p", "q", "r"]
        with raises("DELTA_METADATA_MISMATCH"):
            rows.withColumn("x", F.lit(1)).write.format("delta").mode("append").option(
                "mergeSchema", "false"
            ).save(table_path)
        replacing = rows.withColumn("s", F.lit(1)).write.format("delta").mode("overwrite")
        replacing.option("replaceUsing", "day").save(table_path)
        assert columns()[-1] == "s"
    with raises("DELTA_METADATA_MISMATCH"):
        rows.withColumn("y", F.lit(1)).write.format("delta").mode("append").save(table_path)


def test_new_tables_have_default_properties(
    enabled: SparkSession, table_path: str, tmp_path: Path
) -> None:
    defaults = f"{_DELTA}.properties.defaults"
    values = {
        f"{defaults}.enableChangeDataFeed": "true",
        f"{defaults}.enabledeletionvectors": "true",  # not its spelling
        f"{defaults}.feature.deletionVectors": "supported",
        f"{defaults}.notAProperty": "x",
    }
    on = {"delta.enableChangeDataFeed": "true"}

    def properties(path: str) -> dict[str, str]:
        return dict(load_snapshot(enabled, path).properties)

    paths = [str(tmp_path / name) for name in "abcdefg"]
    with _settings(enabled, values):
        enabled.range(1).write.format("delta").save(paths[0])
        enabled.sql(f"CREATE TABLE delta.`{paths[1]}` (id INT) USING delta")
        enabled.sql(f"CREATE TABLE delta.`{paths[2]}` USING delta AS SELECT 1 AS id")
        DeltaTable.create(enabled).location(paths[3]).addColumn("id", "INT").execute()
        for path in paths[:4]:
            assert properties(path) == on
        assert "deletionVectors" in (
            load_snapshot(enabled, paths[0]).protocol.writer_features or ()
        )
        off = "TBLPROPERTIES ('delta.ENABLEchangeDataFeed' = 'false')"
        enabled.sql(f"CREATE TABLE delta.`{paths[4]}` (id INT) USING delta {off}")
        assert properties(paths[4]) == {"delta.enableChangeDataFeed": "false"}
        write_delta(enabled.range(1), paths[5])
        assert properties(paths[5]) == {}, "our function depends on no setting"
        enabled.range(1).write.format("delta").mode("append").save(paths[5])
        assert properties(paths[5]) == {}, "the table exists"
    with _settings(enabled, {f"{defaults}.appendOnly": "perhaps"}), raises("DELTA_ILLEGAL_OPTION"):
        enabled.range(1).write.format("delta").save(paths[6])


def test_other_properties_of_a_table_with_a_short_default_retention_are_set(
    enabled: SparkSession, table_path: str
) -> None:
    retention = {"delta.logRetentionDuration": "interval 1 day"}
    default = {f"{_DELTA}.properties.defaults.logRetentionDuration": "interval 1 day"}
    with _settings(enabled, default):
        enabled.sql(f"CREATE TABLE delta.`{table_path}` (id INT) USING delta")
    change = f"ALTER TABLE delta.`{table_path}`"
    enabled.sql(f"{change} SET TBLPROPERTIES ('own' = 'x', 'other' = 'y')")
    enabled.sql(f"{change} UNSET TBLPROPERTIES ('other')")
    assert dict(load_snapshot(enabled, table_path).properties) == {**retention, "own": "x"}
    period = "'delta.deletedFileRetentionDuration' = 'interval 2 weeks'"
    with raises("DELTA_ILLEGAL_OPTION"):
        enabled.sql(f"{change} SET TBLPROPERTIES ({period})")


@pytest.mark.slow
def test_commits_have_the_metadata_of_the_setting(enabled: SparkSession, table_path: str) -> None:
    name = f"delta.`{table_path}`"
    table_of = DeltaTable.forPath

    def metadata() -> str | None:
        text: str | None = _last_commit(enabled, table_path)["userMetadata"]
        return text

    with _settings(enabled, {f"{_DELTA}.commitInfo.userMetadata": "mine"}):
        enabled.range(4).write.format("delta").save(table_path)
        assert metadata() == "mine"
        for statement in (
            f"DELETE FROM {name} WHERE id = 0",
            f"ALTER TABLE {name} ADD COLUMNS (n INT)",
            _INSERT_9.format(name),
        ):
            enabled.sql(statement)
            assert metadata() == "mine"
        table_of(enabled, table_path).update(set={"n": "1"})
        assert metadata() == "mine"
        enabled.range(1).write.format("delta").mode("append").option("userMetadata", "other").save(
            table_path
        )
        assert metadata() == "other"
        alter_table(enabled, table_path).set_properties({"p": "q"})
        assert metadata() is None, "our function depends on no setting"
        sparkdelta.sql(enabled, f"DELETE FROM {name} WHERE id = 1")
        assert metadata() is None, "our function depends on no setting"


@pytest.mark.slow
def test_changes_of_an_application_are_committed_once(
    enabled: SparkSession, table_path: str
) -> None:
    name = f"delta.`{table_path}`"
    app_id, version = f"{_DELTA}.write.txnAppId", f"{_DELTA}.write.txnVersion"
    _two_days(enabled, table_path)
    changes = (
        f"INSERT INTO {name} VALUES (3, 'c')",
        f"DELETE FROM {name} WHERE id = 1",
        f"UPDATE {name} SET id = 7 WHERE id = 2",
        _INSERT_9.format(name),
    )
    for number, change in enumerate(changes):
        with _settings(enabled, {app_id: "app", version: str(number)}):
            enabled.sql(change)
            for other in changes:
                enabled.sql(other)
            enabled.sql("SELECT 5 AS id, 'x' AS day").write.format("delta").mode("append").save(
                table_path
            )
    snapshot = load_snapshot(enabled, table_path)
    assert snapshot.version == len(changes)
    assert [tuple(row)[:2] for row in snapshot.transactions().collect()] == [("app", 3)]
    ids = enabled.read.format("delta").load(table_path).select("id").collect()
    assert sorted(row[0] for row in ids) == [3, 7, 9]
    reset = {app_id: "app", version: "9", f"{version}.autoReset.enabled": "true"}
    for refused in ({app_id: "app"}, {version: "1"}, {app_id: "app", version: "one"}, reset):
        with _settings(enabled, refused), raises("DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"):
            enabled.sql(changes[0])


@pytest.mark.full
def test_tables_are_delta_tables_by_default(
    enabled: SparkSession, table_path: str, tmp_path: Path
) -> None:
    names = [f"by_default_{number}" for number in range(5)]
    with _settings(enabled, {"spark.sql.sources.default": "delta"}):
        try:
            enabled.sql(f"CREATE TABLE {names[0]} (id INT)")
            enabled.sql(f"CREATE TABLE IF NOT EXISTS {names[1]} AS SELECT 1 AS id")
            enabled.range(2).write.saveAsTable(names[2])
            enabled.range(2).writeTo(names[3]).create()
            enabled.catalog.createTable(names[4], schema=enabled.range(1).schema)
            for name in names:
                DeltaTable.forName(enabled, name)
            enabled.range(2).write.save(table_path)
            assert enabled.read.load(table_path).count() == 2
            stream = enabled.readStream.load(table_path).writeStream.trigger(availableNow=True)
            stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            stream.start(str(tmp_path / "copy")).awaitTermination()
            assert DeltaTable.isDeltaTable(enabled, str(tmp_path / "copy"))
        finally:
            for name in names:
                enabled.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.full
def test_streams_follow_settings(enabled: SparkSession, table_path: str, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    write_delta(enabled.range(2).withColumn("n", F.lit(1)), source)
    write_delta(enabled.range(1), table_path)
    values = {
        f"{_DELTA}.commitInfo.userMetadata": "mine",
        f"{_DELTA}.schema.autoMerge.enabled": "true",
    }
    with _settings(enabled, values):
        stream = enabled.readStream.format("delta").load(source).writeStream.format("delta")
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        stream.trigger(availableNow=True).start(table_path).awaitTermination()
    assert _last_commit(enabled, table_path)["userMetadata"] == "mine"
    assert load_snapshot(enabled, table_path).schema.names == ["id", "n"]


_POLICY = "spark.sql.storeAssignmentPolicy"


def _stored(spark: SparkSession, path: str, how: str, column: str, value: str) -> Any:
    """Return the value that each way of writing stores; delta-spark 4.4.0 stores the same."""
    name, of_column = f"delta.`{path}`", column.split()[0]
    spark.sql(f"CREATE OR REPLACE TABLE {name} ({column}, k INT) USING delta")
    row = f"SELECT {value} AS {of_column}, 1 AS k"
    if how == "insert":
        spark.sql(f"INSERT INTO {name} {row}")
    elif how == "by name":
        spark.sql(f"INSERT INTO {name} BY NAME {row}")
    elif how == "insertInto":
        spark.sql(row).write.insertInto(name)
    elif how == "writeTo":
        spark.sql(row).writeTo(name).append()
    elif how == "update":
        spark.sql(f"INSERT INTO {name} VALUES (NULL, 1)")
        spark.sql(f"UPDATE {name} SET {of_column} = {value}")
    else:
        spark.sql(
            f"MERGE INTO {name} AS t USING ({row}) AS s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *"
        )
    [stored] = spark.read.format("delta").load(path).collect()
    return stored[0]


_WAYS = ("insert", "by name", "insertInto", "writeTo", "update", "merge")
_LEGACY_VALUES = (
    ("v INT", "'x'", None),
    ("v INT", "3000000000L", -1294967296),
    ("v INT", "17.75D", 17),
    ("v INT", "true", 1),
    ("v DECIMAL(4, 2)", "123.4BD", None),
    ("v ARRAY<INT>", "array('x', '1')", [None, 1]),
    ("v INT", "DATE'2024-01-02'", None),
)
_STRICT_VALUES = (
    ("v INT", "17.75D", "CANNOT_UP_CAST_DATATYPE"),
    ("v INT", "'7'", "CANNOT_UP_CAST_DATATYPE"),
    ("v INT", "5L", "CANNOT_UP_CAST_DATATYPE"),
    ("v BIGINT", "5", 5),
    ("v STRING", "5", "5"),
    ("v DECIMAL(6, 2)", "1.5BD", Decimal("1.50")),
    ("v DOUBLE", "1", 1.0),
)
_ANSI_VALUES = (
    ("v INT", "17.75D", 17),
    ("v INT", "'7'", 7),
    ("v INT", "true", 1),
    ("v BINARY", "'x'", b"x"),
    ("v INT", "'x'", "DELTA_CAST_INVALID_INPUT"),
    ("v INT", "3000000000L", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
)


@pytest.mark.parametrize(
    "how", ["insert", *(pytest.param(way, marks=pytest.mark.full) for way in _WAYS[1:])]
)
@pytest.mark.parametrize(
    ("policy", "values"),
    [("ANSI", _ANSI_VALUES), ("strict", _STRICT_VALUES), ("LEGACY", _LEGACY_VALUES)],
)
def test_values_are_converted_by_the_store_assignment_policy(
    enabled: SparkSession,
    table_path: str,
    policy: str,
    values: tuple[tuple[str, str, Any], ...],
    how: str,
) -> None:
    some = values if how == "insert" else values[:2]
    with _settings(enabled, {_POLICY: policy}):
        for column, value, expected in some:
            if isinstance(expected, str) and "_" in expected:
                with raises(expected):
                    _stored(enabled, table_path, how, column, value)
            else:
                assert _stored(enabled, table_path, how, column, value) == expected


_NEW_YORK = {"spark.sql.session.timeZone": "America/New_York"}
_EVENING = "TIMESTAMP '2024-01-02 03:00:00Z'"
"""22:00 on the first of January in New York."""


@pytest.mark.classic("rules are in UTC and ANSI mode on Spark Connect")
def test_generated_columns_are_in_the_time_zone_of_the_session(
    enabled: SparkSession, table_path: str
) -> None:
    """delta-spark 4.4.0 stores the same days and refuses the same rows."""
    name, days = f"delta.`{table_path}`", "SELECT id, CAST(d AS STRING) FROM {} ORDER BY id"
    enabled.sql(
        f"CREATE TABLE {name} (id INT, ts TIMESTAMP, "
        "d DATE GENERATED ALWAYS AS (CAST(ts AS DATE))) USING delta"
    )
    with _settings(enabled, _NEW_YORK):
        enabled.sql(f"INSERT INTO {name} (id, ts) VALUES (1, {_EVENING})")
        rows = enabled.sql(f"SELECT 2 AS id, {_EVENING} AS ts")
        rows.write.format("delta").mode("append").save(table_path)
        enabled.sql(
            f"MERGE INTO {name} AS t USING (SELECT 3 AS id) AS s ON t.id = s.id "
            f"WHEN NOT MATCHED THEN INSERT (id, ts) VALUES (3, {_EVENING})"
        )
        enabled.sql(f"UPDATE {name} SET ts = {_EVENING} - INTERVAL 1 HOUR WHERE id = 3")
        enabled.sql(f"INSERT INTO {name} (id, ts, d) VALUES (4, {_EVENING}, DATE '2024-01-01')")
        with raises("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
            enabled.sql(f"INSERT INTO {name} (id, ts, d) VALUES (5, {_EVENING}, DATE '2024-01-02')")
        write_delta(enabled.sql(f"SELECT 6 AS id, {_EVENING} AS ts"), table_path, mode="append")
    found = [tuple(row) for row in enabled.sql(days.format(name)).collect()]
    local, utc = "2024-01-01", "2024-01-02"
    assert found == [(1, local), (2, local), (3, local), (4, local), (6, utc)]


@pytest.mark.classic("rules are in UTC and ANSI mode on Spark Connect")
@pytest.mark.full
def test_constraints_and_defaults_are_in_the_time_zone_of_the_session(
    enabled: SparkSession, table_path: str
) -> None:
    """As with delta-spark 4.4.0."""
    name = f"delta.`{table_path}`"
    enabled.sql(
        f"CREATE TABLE {name} (id INT, ts TIMESTAMP DEFAULT TIMESTAMP '2024-01-01 00:00:00', "
        f"t STRING DEFAULT CAST({_EVENING} AS STRING)) USING delta "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    with _settings(enabled, _NEW_YORK):
        enabled.sql(f"INSERT INTO {name} (id) VALUES (1)")
        enabled.sql(f"ALTER TABLE {name} ADD CONSTRAINT local CHECK (hour(ts) = 0)")
        enabled.sql(f"INSERT INTO {name} (id) VALUES (2)")
        with raises("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"):
            alter_table(enabled, table_path).add_constraint("utc", "hour(ts) = 0")
        enabled.sql(f"ALTER TABLE {name} DROP CONSTRAINT local")
    enabled.sql(f"INSERT INTO {name} (id) VALUES (3)")
    query = f"SELECT id, unix_timestamp(ts), t FROM {name} ORDER BY id"
    assert [tuple(row) for row in enabled.sql(query).collect()] == [
        (1, 1704085200, "2024-01-01 22:00:00"),
        (2, 1704085200, "2024-01-01 22:00:00"),
        (3, 1704067200, "2024-01-02 03:00:00"),
    ]


@pytest.mark.classic("rules are in UTC and ANSI mode on Spark Connect")
def test_rules_follow_the_ansi_mode_of_the_session(enabled: SparkSession, table_path: str) -> None:
    """As with delta-spark 4.4.0: without ANSI mode a cast that fails is null."""
    name = f"delta.`{table_path}`"
    enabled.sql(
        f"CREATE TABLE {name} (s STRING, n INT GENERATED ALWAYS AS (CAST(s AS INT))) USING delta"
    )
    enabled.sql(f"ALTER TABLE {name} ADD CONSTRAINT c CHECK (CAST(s AS INT) IS NULL OR s > 0)")
    insert = f"INSERT INTO {name} (s) VALUES ('x')"
    with pytest.raises(SPARK_ERRORS):
        enabled.sql(insert)
    with _settings(enabled, {"spark.sql.ansi.enabled": "false"}):
        enabled.sql(insert)
        with pytest.raises(SPARK_ERRORS):
            write_delta(enabled.sql("SELECT 'y' AS s"), table_path, mode="append")
    assert _rows(enabled, table_path) == [("x", None)]


def test_partition_values_without_a_time_zone_are_in_that_of_the_session(
    enabled: SparkSession, table_path: str
) -> None:
    """delta-spark 4.4.0 reads the same instants."""
    write_commit(
        Path(table_path),
        0,
        [
            protocol(),
            metadata(field("id", "integer"), field("ts", "timestamp"), partitioned_by=["ts"]),
        ],
    )
    name, local = f"delta.`{table_path}`", "TIMESTAMP '2024-01-02 03:00:00'"
    enabled.sql(f"INSERT INTO {name} VALUES (1, TIMESTAMP '2024-01-02 03:00:00Z')")
    commit = Path(table_path) / "_delta_log" / f"{1:020}.json"
    text = re.sub(r'"ts": ?"[^"]*"', '"ts":"2024-01-02 03:00:00"', commit.read_text())
    commit.write_text(text)
    for checksum in commit.parent.glob("*.crc"):
        checksum.unlink()
    query = f"SELECT unix_timestamp(ts) FROM {name} WHERE ts = {local}"
    seconds_of = "unix_timestamp(ts)"
    reads = {
        "SQL": lambda: enabled.sql(query),
        "load": lambda: enabled.read.format("delta").load(table_path).selectExpr(seconds_of),
        "toDF": lambda: DeltaTable.forPath(enabled, table_path).toDF().selectExpr(seconds_of),
    }
    for zone, seconds in (("America/New_York", 1704182400), ("UTC", 1704164400)):
        with _settings(enabled, {"spark.sql.session.timeZone": zone}):
            found = {kind: [row[0] for row in read().collect()] for kind, read in reads.items()}
            assert found == {kind: [seconds] for kind in reads}, zone
            [ours] = read_delta(enabled, table_path).selectExpr(seconds_of).collect()
            assert ours[0] == 1704164400, "our function depends on no setting"


def test_restore_takes_times_in_the_time_zone_of_the_session(
    enabled: SparkSession, table_path: str
) -> None:
    """As delta-spark does; a text without a time zone is local."""
    for number in range(2):
        enabled.range(number, number + 1).write.format("delta").mode("overwrite").save(table_path)
    table = DeltaTable.forPath(enabled, table_path)
    with _settings(enabled, _NEW_YORK):
        [first] = table.history().filter("version = 0").selectExpr("string(timestamp)").collect()
        table.restoreToTimestamp(first[0])
        assert _rows(enabled, table_path) == [(0,)]
        assert table.cloneAtTimestamp(first[0], f"{table_path}2", True).toDF().collect() == [(0,)]


def test_our_functions_convert_by_policy_ansi_whatever_the_setting(
    enabled: SparkSession, table_path: str
) -> None:
    enabled.sql(f"CREATE TABLE delta.`{table_path}` (v INT) USING delta")
    with _settings(enabled, {_POLICY: "LEGACY"}), raises("DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"):
        write_delta(enabled.sql("SELECT 3000000000L AS v"), table_path, mode="append")
    with _settings(enabled, {_POLICY: "LEGACY"}), raises("DELTA_CAST_INVALID_INPUT"):
        sparkdelta.sql(enabled, f"INSERT INTO delta.`{table_path}` SELECT 'x'")


@pytest.mark.classic("looks into the JVM")
def test_conversions_of_policy_strict_are_those_of_spark(spark: SparkSession) -> None:
    numbers = "tinyint smallint int bigint float double decimal(3,0) decimal(5,2) decimal(10,0)"
    others = "decimal(20,0) decimal(38,18) boolean string binary date timestamp timestamp_ntz"
    nested = "array<int> array<bigint> map<int,date> map<bigint,timestamp> struct<a:int>"
    names = f"{numbers} {others} {nested}".split()
    jvm: Any = spark._jvm
    rule = jvm.org.apache.spark.sql.catalyst.expressions.Cast
    types = {name: jvm.org.apache.spark.sql.types.DataType.fromDDL(name) for name in names}
    parsed = {name: spark.createDataFrame([], f"c {name}").schema["c"].dataType for name in names}
    pairs = [(one, other) for one in names for other in names]
    ours = [
        pair
        for pair in pairs
        if can_store(*(parsed[name] for name in pair), StoreAssignment.STRICT)
    ]
    theirs = [pair for pair in pairs if rule.canUpCast(*(types[name] for name in pair))]
    assert set(ours) ^ set(theirs) == set()
