"""Permanent SQL functions that read Delta tables, which Spark's session catalog keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support.errors import raises

_DATABASE = "of_functions"


@pytest.fixture
def numbers(enabled: SparkSession) -> Iterator[str]:
    """The name of a table with the ids 1 and 2, in a database that is dropped afterwards."""
    enabled.sql(f"CREATE DATABASE {_DATABASE}")
    try:
        enabled.sql(f"CREATE TABLE {_DATABASE}.numbers (id INT) USING delta")
        enabled.sql(f"INSERT INTO {_DATABASE}.numbers VALUES (1), (2)")
        yield f"{_DATABASE}.numbers"
    finally:
        enabled.sql("USE default")
        enabled.sql(f"DROP DATABASE {_DATABASE} CASCADE")


def _other_session(spark: SparkSession) -> SparkSession:
    """Another session of the application; on Spark Connect before 4.3, which has none, this one."""
    return spark.newSession() if hasattr(spark, "newSession") else spark


def _first(spark: SparkSession, query: str) -> Any:
    return tuple(spark.sql(query).first())


def test_permanent_functions_read_current_rows_in_every_session(
    enabled: SparkSession, numbers: str
) -> None:
    name = f"{_DATABASE}.at_least"
    enabled.sql(
        f"CREATE FUNCTION {name}(low INT DEFAULT 0) RETURNS BIGINT COMMENT 'counts' "
        f"RETURN (SELECT count(*) FROM {numbers} WHERE id >= low)"
    )
    assert _first(enabled, f"SELECT {name}(2), {name}()") == (1, 2)
    enabled.sql(f"INSERT INTO {numbers} VALUES (7)")
    other = _other_session(enabled)
    assert _first(enabled, f"SELECT {name}(2)") == (2,)
    assert _first(other, f"SELECT spark_catalog.{name}(2)") == (2,)
    described = _other_session(enabled).sql(f"DESCRIBE FUNCTION EXTENDED {name}").collect()
    assert any(f"FROM {numbers} WHERE id >= low" in row[0] for row in described)


def test_permanent_functions_call_others_and_serve_views(
    enabled: SparkSession, numbers: str
) -> None:
    create = f"CREATE FUNCTION {_DATABASE}"
    enabled.sql(f"{create}.biggest() RETURNS INT RETURN (SELECT max(id) FROM {numbers})")
    enabled.sql(f"{create}.next_id(step INT) RETURNS INT RETURN {_DATABASE}.biggest() + step")
    enabled.sql(
        f"{create}.numbers_from(low INT) RETURNS TABLE (id INT) "
        f"RETURN SELECT n.id FROM {numbers} AS n WHERE n.id >= low"
    )
    enabled.sql(
        f"CREATE VIEW {_DATABASE}.next_ids AS SELECT {_DATABASE}.next_id(id) AS id FROM {numbers}"
    )
    other = _other_session(enabled)
    assert _first(other, f"SELECT {_DATABASE}.next_id(10)") == (12,)
    is_connect = "connect" in type(enabled).__module__
    if not (is_connect and enabled.version.startswith("4.0.")):  # which lacks it: COMPATIBILITY
        assert _first(other, f"SELECT sum(id) FROM {_DATABASE}.next_ids") == (7,)
        assert _first(other, f"SELECT sum({_DATABASE}.next_id(id)) FROM {numbers}") == (7,)
    other.sql(f"USE {_DATABASE}")  # Spark 4.0 takes no database here
    assert _first(other, "SELECT count(*) FROM numbers_from(2)") == (1,)


def test_permanent_functions_are_replaced_and_dropped(enabled: SparkSession, numbers: str) -> None:
    name = f"{_DATABASE}.low"
    returns = f"{name}() RETURNS INT RETURN (SELECT {{}}(id) FROM {numbers})"
    enabled.sql(f"CREATE FUNCTION {returns.format('min')}")
    assert _first(enabled, f"SELECT {name}()") == (1,)
    enabled.sql(f"CREATE FUNCTION IF NOT EXISTS {returns.format('max')}")
    assert _first(enabled, f"SELECT {name}()") == (1,)
    with pytest.raises(AnalysisException, match="ROUTINE_ALREADY_EXISTS"):
        enabled.sql(f"CREATE FUNCTION {returns.format('max')}")
    enabled.sql(f"CREATE OR REPLACE FUNCTION {returns.format('max')}")
    assert _first(enabled, f"SELECT {name}()") == (2,)
    enabled.sql(f"DROP FUNCTION {name}")
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        enabled.sql(f"SELECT {name}()")


def test_permanent_functions_that_read_temporary_views_are_refused(
    enabled: SparkSession, numbers: str
) -> None:
    enabled.range(1).createOrReplaceTempView("of_functions_view")
    body = f"(SELECT max(n.id) FROM {numbers} n JOIN of_functions_view v ON n.id = v.id)"
    try:
        with raises("DELTA_STATEMENT_NOT_SUPPORTED", "temporary views"):
            enabled.sql(f"CREATE FUNCTION {_DATABASE}.joined() RETURNS INT RETURN {body}")
        assert not enabled.catalog.functionExists(f"{_DATABASE}.joined")
    finally:
        enabled.catalog.dropTempView("of_functions_view")
