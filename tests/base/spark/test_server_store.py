"""A Spark Connect client commits where the server is: it reaches neither its disk nor its store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from operator import le
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession

from sparkdelta import load_snapshot, read_delta
from sparkdelta.base.storage.object_log import open_objects
from tests.support.connect_server import connect_server
from tests.support.s3_server import BUCKET, s3_jars, s3_server

pytestmark = [pytest.mark.connect, pytest.mark.full]
ROOT = Path(__file__).parents[3]

HISTORY = """
import json, os, sys
import sparkdelta
from pyspark.sql import SparkSession
from sparkdelta import DeltaTable, read_delta, write_delta
remote, path = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
def rows(start, end):
    return spark.range(start, end, 1, 2).selectExpr("id", "id % 2 AS part", "'a' AS s")
vectors = {"delta.enableDeletionVectors": "true"}
write_delta(rows(0, 10), path, partition_by=["part"], properties=vectors)
write_delta(rows(10, 20), path, mode="append")
table = DeltaTable.forPath(spark, path)
table.delete("id = 3")
table.delete("id = 5")
source = rows(18, 22).alias("s")
merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedDelete()
merge.whenNotMatchedInsertAll().execute()
optimized = table.optimize().executeCompaction()
checkpoint = sparkdelta.write_checkpoint(spark, path).version
deleted = sparkdelta.vacuum(spark, path, retention_hours=0, check_retention=False).deleted.count
write_delta(rows(30, 31), path, mode="append")
ids = sorted(row["id"] for row in read_delta(spark, path).collect())
names = [row["operation"] for row in table.history().collect()]
is_seen = os.path.exists(path)
print(json.dumps([ids, names, checkpoint, deleted, is_seen]))
spark.stop()
"""
ONCE = """
import json, os, sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import SparkConnectClient
from sparkdelta import DeltaError, DeltaTable, read_delta, write_delta
from sparkdelta.base.spark import connect_storage
remote, root = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
written = []
write_parquet = connect_storage.write_parquet
def counted(rows, directory, **options):
    written.append(directory)
    write_parquet(rows, directory, **options)
connect_storage.write_parquet = counted
def times(write):
    "Count the writes of the rows: one of data files, and one more if they are staged first."
    written.clear()
    write()
    return 1 + sum("/rows-" in directory for directory in written)
def changes(name):
    path = f"{root}/{name}"
    rows = spark.range(4).selectExpr("id", "CAST(id AS STRING) AS s")
    source = spark.range(3, 6).selectExpr("id", "'new' AS s").alias("s")
    def merge():
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    counts = [times(lambda: write_delta(rows, path)), times(merge)]
    return counts, sorted(map(list, read_delta(spark, path).collect()))
def timed(name):
    path = f"{root}/{name}"
    return times(lambda: write_delta(spark.sql("SELECT TIMESTAMP'2024-01-01' AS t"), path))
found = {"same": changes("same"), "times": timed("times")}
spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
found["microseconds"] = timed("microseconds")
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
found["time zone"] = [changes("time zone"), timed("zoned")]
spark.conf.set("spark.sql.session.timeZone", "UTC")
spark.conf.set("spark.sql.ansi.enabled", "false")
found["not ansi"] = changes("not ansi")
spark.conf.set("spark.sql.ansi.enabled", "true")
config = SparkConnectClient.config
def refuse(self, operation):
    if operation.WhichOneof("op_type") == "set":
        raise PySparkException(f"{operation.set.pairs[0].key} cannot be set here")
    return config(self, operation)
SparkConnectClient.config = refuse
found["refused"] = changes("refused")
zoned = f"{root}/microseconds"
write_delta(spark.sql("SELECT TIMESTAMP'2024-01-02' AS t"), zoned, mode="append")
before = os.listdir(zoned), os.listdir(f"{zoned}/_delta_log")
try:
    DeltaTable.forPath(spark, zoned).optimize().executeCompaction()
except DeltaError as error:
    found["error"] = [error.error_class, error.argument]
found["unchanged"] = before == (os.listdir(zoned), os.listdir(f"{zoned}/_delta_log"))
print(json.dumps(found))
spark.stop()
"""
COUNTS = """
import json, sys
from collections import Counter
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import SparkConnectClient
from sparkdelta import DeltaTable, read_delta, write_delta
from sparkdelta.base.spark import server_tasks
remote, path = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
sent = Counter()
def count(owner, name):
    method = getattr(owner, name)
    def counted(*args, **kwargs):
        sent[name] += 1
        return method(*args, **kwargs)
    setattr(owner, name, counted)
for name in ("_execute_and_fetch_as_iterator", "_analyze", "config"):
    count(SparkConnectClient, name)
count(server_tasks, "_task")
def requests(action):
    "Return the tasks on the server, all executed plans, and the analyses; warm."
    for _ in range(2):
        sent.clear()
        action()
    return [sent[name] for name in ("_task", "_execute_and_fetch_as_iterator", "_analyze")]
def rows(start, end):
    return spark.range(start, end, 1, 2).selectExpr("id", "CAST(id AS STRING) AS s")
def merge():
    merge = DeltaTable.forPath(spark, path).alias("t").merge(rows(5, 15).alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
properties = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "100"}
write_delta(rows(0, 10), path, properties=properties)
ids = iter(range(10))
found = {
    "append": requests(lambda: write_delta(rows(20, 30), path, mode="append")),
    "read": requests(lambda: read_delta(spark, path, where=f"id = {next(ids)}").count()),
    "overwrite": requests(lambda: write_delta(rows(0, 10), path, mode="overwrite")),
    "delete": requests(lambda: DeltaTable.forPath(spark, path).delete(f"id = {next(ids)}")),
    "merge": requests(merge),
}
print(json.dumps(found))
spark.stop()
"""
IDS = [*(id_ for id_ in range(18) if id_ not in (3, 5)), 20, 21, 30]
OPERATIONS = [
    "WRITE", "VACUUM END", "VACUUM START", "OPTIMIZE", "MERGE", "DELETE", "DELETE", "WRITE",
    "WRITE",
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with a disk of its own."""
    with connect_server(tmp_path_factory.mktemp("server")) as remote:
        yield remote


def answer_of(
    program: str,
    *arguments: str,
    hidden: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Any:
    """Run a client and return the last line that it prints.

    Parameters
    ----------
    hidden
        A directory that is empty for the client, in a mount namespace of its own.
    """
    command = [sys.executable, "-c", program, *arguments]
    if hidden is not None:
        command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                   'mount -t tmpfs none "$0" && exec "$@"', str(hidden), *command]  # fmt: skip
    found = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-5000:]
    return json.loads(found.stdout.splitlines()[-1])


def file_types(file: Path) -> str:
    """Return the physical type of the only column of a Parquet file."""
    return str(pq.read_metadata(file).schema.column(0).physical_type)


def hides_directories(tmp_path: Path) -> bool:
    """Return True if a process can have a mount namespace of its own here."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none"]
    try:
        return subprocess.run([*command, str(tmp_path)], check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.more_connect
def test_a_client_without_the_servers_disk_runs_every_verb(
    spark: SparkSession, server: str, tmp_path: Path
) -> None:
    if not hides_directories(tmp_path):
        pytest.skip("this system allows no mount namespace")
    path = tmp_path / "a table"
    ids, names, checkpoint, deleted, is_seen = answer_of(
        HISTORY, server, str(path), hidden=tmp_path
    )
    assert not is_seen, "the client has the server's disk"
    assert ids == IDS
    assert names == OPERATIONS
    assert sorted(row["id"] for row in read_delta(spark, str(path)).collect()) == IDS
    assert load_snapshot(spark, str(path)).version == len(OPERATIONS) - 1
    hint = json.loads((path / "_delta_log" / "_last_checkpoint").read_bytes())
    assert hint["version"] >= checkpoint == 5
    assert deleted > 0
    leftovers = [p for p in path.rglob("*") if ".tmp" in p.name or "sparkdelta" in p.name]
    assert not leftovers


@pytest.mark.oracle
@pytest.mark.slow
def test_a_client_without_the_servers_credentials_runs_every_verb_on_s3(tmp_path: Path) -> None:
    """From Spark 4.3 on, a server does not show its secret settings, and no client sends them."""
    jars = s3_jars(tmp_path)
    wrong = {
        "AWS_ACCESS_KEY_ID": "wrong", "AWS_SECRET_ACCESS_KEY": "wrong",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_REGION": "eu-west-1",
    }  # fmt: skip
    with s3_server() as settings:
        secrets = {"AWS_ACCESS_KEY_ID": "fs.s3a.access.key",
                   "AWS_SECRET_ACCESS_KEY": "fs.s3a.secret.key"}  # fmt: skip
        hadoop = {f"spark.hadoop.{name}": value for name, value in settings.items()
                  if name not in secrets.values()}  # fmt: skip
        hadoop["spark.jars"] = ",".join(map(str, jars))
        environment = {name: settings[setting] for name, setting in secrets.items()}
        with connect_server(tmp_path, hadoop, environment=environment) as remote:
            path = f"s3a://{BUCKET}/a table"
            ids, names, checkpoint, deleted, _ = answer_of(HISTORY, remote, path, environment=wrong)
        objects = open_objects(path, settings)
        hint = json.loads(bytes(objects.get("_delta_log/_last_checkpoint").bytes()))
        left = [each["path"] for batch in objects.list() for each in batch]
    assert ids == IDS
    assert names == [name for name in OPERATIONS if "VACUUM" not in name], "as delta-spark on S3"
    assert hint["version"] >= checkpoint == 5
    assert deleted > 0
    assert not [path for path in left if ".tmp" in path or "sparkdelta" in path]


@pytest.mark.more_connect
def test_rows_are_written_once_unless_the_sessions_settings_matter(
    spark: SparkSession, server: str, tmp_path: Path
) -> None:
    found = answer_of(ONCE, server, str(tmp_path))
    rows = [[0, "0"], [1, "1"], [2, "2"], [3, "new"], [4, "new"], [5, "new"]]
    assert found["same"] == [[1, 1], rows]
    has_copies = hasattr(ConnectSession, "cloneSession")
    assert found["times"] == (1 if has_copies else 2), "Spark writes INT96 by default"
    assert found["microseconds"] == 1
    assert found["time zone"] == [[[1, 3], rows], 2], "updates and inserts are staged apart"
    assert found["not ansi"] == [[2, 3], rows]
    assert found["refused"] == found["same"], "nothing is set"
    error, setting = found["error"]
    assert error == "DELTA_ILLEGAL_OPTION"
    assert setting in (  # what its threads need first
        "spark.sql.maxConcurrentOutputFileWriters",
        "spark.sql.parquet.outputTimestampType",
    )
    assert found["unchanged"]
    types = {file_types(file) for name in ("times", "microseconds", "zoned")
             for file in (tmp_path / name).glob("*.parquet")}  # fmt: skip
    assert types == {"INT64"}
    for name in ("same", "time zone", "not ansi"):
        read = read_delta(spark, str(tmp_path / name)).collect()
        assert sorted(map(list, read)) == rows


def test_calls_send_few_requests(server: str, tmp_path: Path) -> None:
    """The tasks on the server, all executed plans, and the analyses of each call."""
    most = {
        "append": (4, 5, 1),
        "read": (1, 4, 2),
        "overwrite": (4, 6, 3),
        "delete": (7, 12, 8),
        "merge": (9, 16, 17),
    }
    sent = answer_of(COUNTS, server, str(tmp_path / "t"))
    assert sent.keys() == most.keys()
    for call, counts in sent.items():
        assert all(map(le, counts, most[call])), (call, counts)


MANY = """
import json, sys, threading
from pyspark.sql import SparkSession
from sparkdelta import DeltaTable, read_delta, write_delta
from sparkdelta.exceptions import DeltaConcurrentModificationException
remote, path = sys.argv[1:]
def session():
    return SparkSession.builder.remote(remote).create()
first = session()
rows = first.range(0, 60, 1, 2).selectExpr("id", "id % 6 AS part", "0L AS n")
write_delta(rows, path, partition_by=["part"], properties={"delta.enableDeletionVectors": "true"})
conflicts, failures, lock = [], [], threading.Lock()
def again(change):
    for _ in range(50):
        try:
            return change()
        except DeltaConcurrentModificationException as error:
            with lock:
                conflicts.append(error.error_class)
    raise AssertionError("never committed")
def client(number, spark):
    try:
        spark.conf.set("spark.sql.session.timeZone", "UTC" if number % 2 else "Asia/Tokyo")
        table = DeltaTable.forPath(spark, path)
        new = spark.range(100 + number * 10, 105 + number * 10)
        new = new.selectExpr("id", "9L AS part", "0L AS n")
        again(lambda: write_delta(new, path, mode="append"))
        again(lambda: table.update(f"part = {number}", {"n": "n + 1"}))
        source = spark.range(number, 60, 6).selectExpr("id", "id % 6 AS part").alias("s")
        merge = table.alias("t").merge(source, f"t.id = s.id AND t.part = {number}")
        again(merge.whenMatchedUpdate(set={"n": "t.n + 1"}).execute)
        spark.stop()
    except BaseException as error:
        with lock:
            failures.append(repr(error)[:500])
threads = [threading.Thread(target=client, args=(n, session())) for n in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
rows = sorted(map(list, read_delta(first, path).select("id", "n").collect()))
history = [row["version"] for row in DeltaTable.forPath(first, path).history().collect()]
print(json.dumps([failures, rows, sorted(history), len(conflicts)]))
first.stop()
"""


@pytest.mark.more_connect
def test_sessions_of_one_server_write_one_table_at_once(server: str, tmp_path: Path) -> None:
    failures, rows, history, _ = answer_of(MANY, server, str(tmp_path / "t"))
    assert not failures
    appended = [[100 + client * 10 + n, 0] for client in range(6) for n in range(5)]
    assert rows == sorted([[id_, 2] for id_ in range(60)] + appended)
    assert history == [*range(1 + 3 * 6)]
    names = os.listdir(tmp_path / "t" / "_delta_log")
    assert sorted(name for name in names if name.endswith(".json")) == [
        f"{version:020d}.json" for version in history
    ]
    assert not [name for name in names if ".tmp" in name or "sparkdelta" in name]
