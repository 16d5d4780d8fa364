"""Upper bounds of the number of JVM calls of each operation. A call is a round trip, regardless of
the size of the table.

Bounds are some 10% above what was counted; raise one only for a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, read_delta, write_delta

pytestmark = pytest.mark.classic("counts calls of the JVM")

_PROPERTIES = {"delta.enableDeletionVectors": "true"}
_CALL = "c\n"
_BOUNDS = {"read": 190, "where": 180, "append": 85, "delete": 310, "update": 510, "merge": 920}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of methods since; attributes are looked up by other commands."""
    found: list[str] = []
    send = ClientServerConnection.send_command

    def counted(connection: ClientServerConnection, command: str) -> str:
        if command.startswith(_CALL):
            found.append(command)
        answer: str = send(connection, command)
        return answer

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    return found


@pytest.fixture(scope="module")
def operations(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Callable[[], object]]:
    path = str(tmp_path_factory.mktemp("jvm-calls") / "table")
    rows = spark.range(0, 1_000, 1, 2).selectExpr("id", "id % 7 AS k", "CAST(id AS STRING) AS s")
    write_delta(rows, path, properties=_PROPERTIES)
    table = DeltaTable.forPath(spark, path)
    source = rows.filter("id > 990").alias("s")
    ids: Iterator[int] = count(100)

    def merge() -> None:
        clauses = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll()
        clauses.whenNotMatchedInsertAll().execute()

    return {
        "read": lambda: read_delta(spark, path).count(),
        "where": lambda: read_delta(spark, path, where="id = 5").count(),
        "append": lambda: write_delta(rows.limit(5), path, mode="append"),
        "delete": lambda: table.delete(f"id = {next(ids)}"),
        "update": lambda: table.update(f"id = {next(ids)}", {"s": "'z'"}),
        "merge": merge,
    }


@pytest.mark.parametrize("name", _BOUNDS)
def test_an_operation_makes_few_calls(
    operations: dict[str, Callable[[], object]], calls: list[str], name: str
) -> None:
    run = operations[name]
    run()
    calls.clear()
    run()
    assert _BOUNDS[name] / 2 < len(calls) <= _BOUNDS[name]
