"""A Hive metastore service: what its clients see of tables that enabled sessions describe."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.support.delta_spark import DELTA_SETTINGS, DeltaSpark, DeltaSparkUnavailable
from tests.support.spark_worker import SparkWorker

pytestmark = [pytest.mark.oracle, pytest.mark.slow]  # a JVM for the service and for each session

_HERE = "tests.oracle.test_metastore_service"


def service_session(scratch: Path, *, port: int, has_delta_spark: bool) -> SparkSession:
    """Return a session on the service; runs in a process of its own."""
    settings = {
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.hadoop.hive.metastore.uris": f"thrift://127.0.0.1:{port}",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        "spark.databricks.delta.snapshotPartitions": "2",
        **(DELTA_SETTINGS if has_delta_spark else {}),
    }
    builder = SparkSession.builder.master("local[2]").appName("service").enableHiveSupport()
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if not has_delta_spark:
        import sparkdelta

        sparkdelta.enable(spark, sync_catalog=True)
    return spark


def make(spark: SparkSession, place: str) -> None:
    """Create a table at a place, and change its columns and properties."""
    spark.sql(
        "CREATE TABLE described (id BIGINT COMMENT 'key', day DATE) USING delta "
        f"PARTITIONED BY (day) LOCATION '{place}' COMMENT 'events' TBLPROPERTIES ('team' = 'ours')"
    )
    spark.sql("ALTER TABLE described ADD COLUMNS (amount DECIMAL(10, 2) AFTER id)")
    spark.sql("INSERT INTO described VALUES (1, 2.50, DATE'2024-01-02')")


def hive_table(spark: SparkSession) -> list[Any]:
    """Return the columns, comment and properties of the table as Hive itself has them."""
    client = spark._jsparkSession.sharedState().externalCatalog().unwrapped().client()
    table = client.getTable("default", "described")
    columns = [
        [each["name"], each["type"], each["metadata"].get("comment")]
        for each in json.loads(table.schema().json())["fields"]
    ]
    texts = (table.comment(), table.properties().get("team"))
    return [columns, *(str(each.get()) if each.isDefined() else None for each in texts)]


def rows(spark: SparkSession) -> list[str]:
    """Return the columns and the rows of the table."""
    frame = spark.table("described")
    return [*frame.columns, *sorted(repr(tuple(row)) for row in frame.collect())]


def drop_column(spark: SparkSession) -> None:
    """Drop a column, with column mapping."""
    spark.sql("ALTER TABLE described SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql("ALTER TABLE described DROP COLUMN amount")


@contextmanager
def metastore(root: Path) -> Iterator[int]:
    """Run Hive's metastore service of PySpark's JARs, on Derby; yield its Thrift port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={root}/derby;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.async.log.enabled": "false",  # needs a JAR that PySpark does not have
        "hive.metastore.warehouse.dir": f"file:{root}/warehouse",
        # Else the service keeps the first types of columns, and Spark hides the new ones in
        # properties.
        "hive.metastore.disallow.incompatible.col.type.changes": "false",
    }
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    command = [str(java), "-cp", str(jars), "org.apache.hadoop.hive.metastore.HiveMetaStore"]
    for name, value in settings.items():
        command += ["--hiveconf", f"{name}={value}"]
    log = root / "metastore.log"
    with log.open("w") as output:
        service = subprocess.Popen(
            [*command, "-p", str(port)], stdout=output, stderr=output, cwd=root
        )
    try:
        deadline = time.monotonic() + 120
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert service.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.5)
        yield port
    finally:
        service.kill()
        service.wait()


def test_clients_of_a_metastore_service_see_the_columns(tmp_path: Path) -> None:
    make_session, place = f"{_HERE}:service_session", str(tmp_path / "described")
    with metastore(tmp_path) as port:
        with SparkWorker(make_session, port=port, has_delta_spark=False) as ours:
            ours.run(f"{_HERE}:make", place=place)
            columns = [
                ["id", "long", "key"],
                ["amount", "decimal(10,2)", None],
                ["day", "date", None],
            ]
            assert ours.run(f"{_HERE}:hive_table") == [columns, "events", "ours"]
            before = ours.run(f"{_HERE}:rows")
            assert before == ["id", "amount", "day", before[3]]

        theirs = DeltaSpark(session=make_session, port=port, has_delta_spark=True)
        try:
            theirs.start()
        except DeltaSparkUnavailable as unavailable:
            pytest.skip(f"delta-spark: {unavailable}")
        try:
            assert theirs.run(f"{_HERE}:rows") == before
            theirs.run(f"{_HERE}:drop_column")
        finally:
            theirs.stop()

        with SparkWorker(make_session, port=port, has_delta_spark=False) as ours:
            assert ours.run(f"{_HERE}:rows")[:2] == ["id", "day"]
            ours.run(f"{_HERE}:describe_again")
            columns = [["id", "long", "key"], ["day", "date", None]]
            assert ours.run(f"{_HERE}:hive_table") == [columns, "events", "again"]


def describe_again(spark: SparkSession) -> None:
    """Change a property, so that the table is described again."""
    spark.sql("ALTER TABLE described SET TBLPROPERTIES ('team' = 'again')")
