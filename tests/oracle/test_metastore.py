"""Names in a Hive metastore: what one engine puts there, new sessions of both find."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.delta_spark import DELTA_SETTINGS, DeltaSpark, DeltaSparkUnavailable
from tests.support.spark_worker import SparkWorker

pytestmark = [pytest.mark.oracle, pytest.mark.slow]  # a JVM for each session: Derby serves one

_HERE = "tests.oracle.test_metastore"


def hive_session(scratch: Path, *, root: str, has_delta_spark: bool) -> SparkSession:
    """A session whose catalog is a metastore below a directory; runs in a process of its own."""
    settings = {
        "spark.sql.warehouse.dir": f"{root}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL":
            f"jdbc:derby:;databaseName={root}/metastore;create=true",
        "spark.driver.extraJavaOptions":
            f"-Dderby.system.home={root}/derby -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        "spark.databricks.delta.snapshotPartitions": "2",
        **(DELTA_SETTINGS if has_delta_spark else {}),
    }  # fmt: skip
    builder = SparkSession.builder.master("local[2]").appName("metastore").enableHiveSupport()
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if not has_delta_spark:
        import sparkdelta

        sparkdelta.enable(spark)
    return spark


def made(spark: SparkSession, database: str, root: str) -> None:
    """Tables by all ways that name one, in a database of their own."""
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")
    spark.sql(
        "CREATE TABLE parted (id BIGINT, `p q` STRING, d DATE) USING delta "
        "PARTITIONED BY (`p q`) COMMENT 'a comment' "
        "TBLPROPERTIES ('own' = 'value', 'delta.columnMapping.mode' = 'name')"
    )
    spark.sql("INSERT INTO parted VALUES (1, 'a b', DATE '2024-01-01'), (2, NULL, NULL)")
    spark.range(3).write.format("delta").saveAsTable("saved")
    spark.range(4).write.format("delta").option("path", f"{root}/{database} x").saveAsTable("ext")
    spark.range(5).writeTo(f"{database}.written").using("delta").create()
    spark.sql("CREATE TABLE clustered (id BIGINT) USING delta CLUSTER BY (id)")
    spark.sql("CREATE TABLE `CamelCase` USING delta AS SELECT 1 AS `Id`")
    spark.sql("CREATE VIEW seen (id, t COMMENT 'c') AS SELECT id, `p q` FROM parted WHERE id > 1")
    spark.sql("CREATE VIEW over_seen AS SELECT s.*, upper(t) AS u FROM seen s JOIN ext USING (id)")


TABLES = ("parted", "saved", "ext", "written", "clustered", "CamelCase")
VIEWS = ("seen", "over_seen")


def found(spark: SparkSession, database: str) -> dict[str, Any]:
    """Return the names that a session lists, and columns, rows, format, partition columns and type
    of each table.
    """
    spark.sql(f"USE {database}")
    listed = {row["tableName"].lower() for row in spark.sql("SHOW TABLES").collect()}
    answers: dict[str, Any] = {"listed": sorted(listed)}
    for name in TABLES:
        table = spark.table(name)
        rows = sorted(repr(tuple(row)) for row in spark.sql(f"SELECT * FROM {name}").collect())
        [detail] = spark.sql(f"DESCRIBE DETAIL {database}.{name}").collect()
        kind = spark.catalog.getTable(f"{database}.{name}").tableType
        answers[name] = [table.columns, rows, detail["format"], detail["partitionColumns"], kind]
    spark.sql("USE default")
    for name in VIEWS:
        view = spark.table(f"{database}.{name}")
        answers[name] = [view.dtypes, sorted(repr(tuple(row)) for row in view.collect())]
    return answers


def changed(spark: SparkSession, database: str, number: int) -> None:
    """Rows and columns that come and go by name."""
    spark.sql(f"INSERT INTO {database}.parted VALUES (3, 'c', NULL)")
    spark.sql(f"ALTER TABLE {database}.saved ADD COLUMNS (more{number} STRING)")
    spark.sql(f"INSERT INTO {database}.saved (id, more{number}) VALUES (9, 'm')")
    spark.sql(f"DELETE FROM {database}.ext WHERE id = {number}")
    spark.sql(f"ALTER TABLE {database}.written RENAME TO {database}.moved")
    spark.sql(f"ALTER TABLE {database}.moved RENAME TO {database}.written")
    spark.sql(f"UPDATE {database}.CamelCase SET id = {number}")


def dropped(spark: SparkSession, database: str) -> int:
    """Drop all; return what is left of it."""
    for name in VIEWS:
        spark.sql(f"DROP VIEW {database}.{name}")
    for name in TABLES:
        spark.sql(f"DROP TABLE {database}.{name}")
    left = spark.sql(f"SHOW TABLES IN {database}").count()
    spark.sql(f"DROP DATABASE {database}")
    return left


@contextmanager
def session(root: Path, *, has_delta_spark: bool = False) -> Iterator[SparkWorker]:
    """A new session of one of the engines."""
    make, options = f"{_HERE}:hive_session", {"root": str(root), "has_delta_spark": has_delta_spark}
    if not has_delta_spark:
        with SparkWorker(make, **options) as worker:
            yield worker
        return
    theirs = DeltaSpark(session=make, **options)
    try:
        theirs.start()
    except DeltaSparkUnavailable as unavailable:
        pytest.skip(f"delta-spark: {unavailable}")
    try:
        yield theirs
    finally:
        theirs.stop()


def test_names_outlive_sessions(tmp_path: Path) -> None:
    """One session after the other: ours, ours, delta-spark's, ours, delta-spark's."""
    find = f"{_HERE}:found"
    with session(tmp_path) as ours:
        ours.run(f"{_HERE}:made", database="ours", root=str(tmp_path))
        before = ours.run(find, database="ours")
    assert before["listed"] == sorted(map(str.lower, [*TABLES, *VIEWS]))
    assert [len(before[name][1]) for name in VIEWS] == [1, 1]
    assert [len(before[name][1]) for name in TABLES] == [2, 3, 4, 5, 0, 1]
    kinds = {name: before[name][4] for name in TABLES}
    assert kinds == {name: "EXTERNAL" if name == "ext" else "MANAGED" for name in TABLES}

    with session(tmp_path) as ours:
        assert ours.run(find, database="ours") == before
        ours.run(f"{_HERE}:changed", database="ours", number=1)
        after = ours.run(find, database="ours")
    assert [len(after[name][1]) for name in TABLES] == [3, 4, 3, 5, 0, 1]

    with session(tmp_path, has_delta_spark=True) as theirs:
        assert theirs.run(find, database="ours") == after
        theirs.run(f"{_HERE}:made", database="theirs", root=str(tmp_path))
        theirs.run(f"{_HERE}:changed", database="theirs", number=1)
        theirs.run(f"{_HERE}:changed", database="ours", number=2)
        by_them = [theirs.run(find, database=name) for name in ("ours", "theirs")]

    with session(tmp_path) as ours:
        assert [ours.run(find, database=name) for name in ("ours", "theirs")] == by_them
        ours.run(f"{_HERE}:changed", database="theirs", number=2)
        assert ours.run(f"{_HERE}:dropped", database="ours") == 0
        last = ours.run(find, database="theirs")
    assert not (tmp_path / "warehouse" / "ours.db" / "saved").exists()
    assert (tmp_path / "ours x" / "_delta_log").is_dir()

    with session(tmp_path, has_delta_spark=True) as theirs:
        assert theirs.run(find, database="theirs") == last
        assert theirs.run(f"{_HERE}:dropped", database="theirs") == 0
