"""The commands that a Spark Connect client may send are queries or change its session."""

from __future__ import annotations

from typing import Any

import pytest

from sparkdelta.base.spark.connect_commands import is_query, may_change_session

pytest.importorskip("grpc")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 2L AS num_inserted_rows",  # the result of a MERGE
        "WITH t AS (SELECT 1) SELECT * FROM t",
        "( VALUES (1))",
    ],
)
def test_a_query_changes_no_session(text: str) -> None:
    plan = plan_of(text)
    assert is_query(plan.command)
    assert not may_change_session(plan)


@pytest.mark.parametrize(
    "text", ["WITH t AS (SELECT 1) INSERT INTO s SELECT * FROM t", "USE other", "SET VAR x = 1"]
)
def test_a_statement_may_change_its_session(text: str) -> None:
    plan = plan_of(text)
    assert not is_query(plan.command)
    assert may_change_session(plan)


def plan_of(text: str) -> Any:
    import pyspark.sql.connect.proto as pb2

    relation = pb2.Relation(sql=pb2.SQL(query=text))
    return pb2.Plan(command=pb2.Command(sql_command=pb2.SqlCommand(input=relation)))
