"""The library's own sessions on a Spark Connect server are used again, and show nothing old."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, read_delta, write_delta
from sparkdelta.base.spark import connect_sessions
from sparkdelta.base.spark.connect_sessions import connect_copy, connect_sibling
from sparkdelta.base.spark.library_sessions import TABLE_SETTINGS
from tests.support.cluster import ROOT

pytestmark = [pytest.mark.connect, pytest.mark.full]
TIME_ZONE = "spark.sql.session.timeZone"

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from sparkdelta.base.spark.connect_sessions import connect_sibling
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
with connect_sibling(spark, {}, is_kept=True) as kept:
    kept.range(1).collect()
    print(kept.session_id)
"""


@pytest.fixture
def user(connect_session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session of a user of its own."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # for PySpark's functions
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    connection: Any = copy(connect_session.client._builder)
    connection._params = {**connection._params, connection.PARAM_SESSION_ID: str(uuid4())}
    session: Any = ConnectSession(connection=connection)
    yield session
    session.stop()


def id_of(session: Any) -> str:
    return str(session.session_id)


def waiting(user: Any) -> list[str]:
    """The ids of the sessions that are kept for a user's."""
    return [id_of(session) for _, session in connect_sessions._kept.get(user.session_id, [])]


def id_of_sibling(user: SparkSession, *changed: str) -> str:
    with connect_sibling(user, TABLE_SETTINGS, is_kept=True) as sibling:
        for name in changed:
            connect_sessions.change_settings(sibling, {name: "17"})
        return id_of(sibling)


def test_a_sibling_is_used_again_with_its_settings(user: SparkSession) -> None:
    name = "spark.sql.shuffle.partitions"
    first = id_of_sibling(user, name)
    assert id_of_sibling(user) == first
    with connect_sibling(user, TABLE_SETTINGS, is_kept=True) as sibling:
        assert sibling.conf.get(name) == user.conf.get(name)
        assert id_of_sibling(user) != id_of(sibling), "one block at a time uses a session"


def test_a_session_that_is_not_to_be_kept_is_released(user: SparkSession) -> None:
    with connect_sibling(user, TABLE_SETTINGS) as sibling:
        pass
    assert sibling.client.is_closed
    assert not waiting(user)


def test_an_error_releases_the_session(user: SparkSession) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        connect_sibling(user, TABLE_SETTINGS, is_kept=True) as sibling,
    ):
        raise KeyboardInterrupt
    assert sibling.client.is_closed
    assert not waiting(user)


def test_a_session_that_the_server_lost_is_replaced(user: SparkSession) -> None:
    first = id_of_sibling(user)
    [(_, kept)] = connect_sessions._kept[id_of(user)]
    kept.client.release_session()
    assert id_of_sibling(user) != first
    assert len(waiting(user)) == 1


def test_the_kept_sessions_end_with_the_users(user: SparkSession) -> None:
    id_of_sibling(user)
    [(_, kept)] = connect_sessions._kept[id_of(user)]
    user.stop()
    assert kept.client.is_closed
    assert not waiting(user)


def id_of_copy(user: SparkSession) -> str:
    with connect_copy(user) as session:
        return id_of(session)


def test_a_program_ends_and_releases_the_kept_sessions(user: Any) -> None:
    remote = f"sc://{user.client._builder.endpoint}/"
    command = [sys.executable, "-c", PROGRAM, remote]
    answer = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, timeout=120)
    released = f"{remote};session_id={answer.stdout.decode().strip()}"
    with pytest.raises(PySparkException, match="SESSION_CLOSED"):
        type(user).builder.remote(released).create().range(1).collect()


def test_a_copy_is_used_again_until_its_original_changes(user: SparkSession) -> None:
    if not hasattr(user, "cloneSession"):
        pytest.skip("Spark has no copies of sessions before 4.2")
    first = id_of_copy(user)
    user.range(3).collect()
    user.sql("SELECT 1").collect()
    assert user.catalog.currentDatabase() == "default"
    assert id_of_copy(user) == first
    changes = [
        lambda: user.conf.set(TIME_ZONE, "Asia/Tokyo"),
        lambda: user.range(1).createOrReplaceTempView("v"),
        lambda: user.catalog.dropTempView("v"),
        lambda: user.sql("DECLARE OR REPLACE VARIABLE n INT DEFAULT 1"),
        lambda: user.sql("WITH s AS (SELECT 2 AS n) SELECT n FROM s") and user.sql("SET VAR n = 2"),
        lambda: user.udf.register("twice", lambda n: 2 * n, "int"),
        lambda: user.sql("USE default"),
    ]
    for number, change in enumerate(changes):
        change()
        last, first = first, id_of_copy(user)
        assert first != last, f"change {number}"
        assert waiting(user) == [first], "copies of an earlier state are released"


def test_a_session_that_functions_of_streams_may_change_is_copied_each_time(
    user: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(user, "cloneSession"):
        pytest.skip("Spark has no copies of sessions before 4.2")
    user.range(1).collect()  # makes it on the server
    with monkeypatch.context() as process:
        process.setenv("SPARK_CONNECT_LOCAL_URL", "sc://localhost")  # as in their processes
        assert id_of_copy(user) != id_of_copy(user)
    assert id_of_copy(user) == id_of_copy(user)
    rates = user.readStream.format("rate").load()
    query = rates.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    query.stop()
    assert id_of_copy(user) != id_of_copy(user)


@pytest.mark.more_connect
def test_writes_see_what_the_session_is_now(user: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_delta(user.range(2).selectExpr("id", "current_timestamp() AS t"), path)
    for first in (10, 20):
        rows = user.range(first, first + 2).selectExpr("id", "current_timestamp() AS t")
        rows.createOrReplaceTempView("new_rows")
        write_delta(user.table("new_rows"), path, mode="append")
        user.udf.register("plus", lambda n, first=first: n + first, "bigint")
        merge = (
            DeltaTable.forPath(user, path)
            .alias("t")
            .merge(
                user.table("new_rows").selectExpr("plus(id) AS id", "t").alias("s"), "t.id = s.id"
            )
        )
        merge.whenNotMatchedInsertAll().execute()
    found = sorted(row["id"] for row in read_delta(user, path).select("id").collect())
    assert found == [0, 1, 10, 11, 20, 20, 21, 21, 40, 41]


def test_the_size_of_files_of_one_write_is_not_that_of_the_next(
    user: SparkSession, tmp_path: Path
) -> None:
    rows = user.range(0, 40_000, 1, 1).selectExpr("id", "sha2(CAST(id AS STRING), 512) AS text")
    write_delta(rows, str(tmp_path / "small"), target_file_size=200_000)
    write_delta(rows, str(tmp_path / "whole"))
    counts = [len([*(tmp_path / name).glob("*.parquet")]) for name in ("small", "whole")]
    assert counts[0] > 1
    assert counts[1] == 1
    assert pq.read_table(next((tmp_path / "whole").glob("*.parquet"))).num_rows == 40_000
