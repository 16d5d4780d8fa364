"""Rows of other types than the table's: what goes into which column, and what is an error."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, read_delta, sql, write_delta
from tests.support.errors import raises
from tests.support.log_writer import write_commit
from tests.support.settings import settings
from tests.support.table_builder import array_of, field, map_of, metadata, protocol, struct_of

NO_ANSI = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.session.timeZone": "America/New_York",
}


def table(path: str, data_type: object) -> str:
    write_commit(Path(path), 0, [protocol(), metadata(field("v", data_type))])
    return path


FIT: list[tuple[Any, str, Any]] = [
    ("integer", "5L", 5),
    ("byte", "7BD", 7),
    ("decimal(5,2)", "1.2BD", Decimal("1.20")),
    ("double", "3", 3.0),
    ("double", "CAST(0.5 AS FLOAT)", 0.5),
    ("string", "12", "12"),
    ("string", "DATE'2024-02-29'", "2024-02-29"),
    ("string", "TIMESTAMP'2024-02-29 12:00:00Z'", "2024-02-29 12:00:00"),
    ("timestamp_ntz", "DATE'2024-02-29'", dt.datetime(2024, 2, 29)),
    ("date", "TIMESTAMP'2024-02-29 01:00:00Z'", dt.date(2024, 2, 29)),
    ("integer", "CAST(NULL AS BIGINT)", None),
    ("date", "null", None),
    (struct_of(field("a", "integer")), "null", None),
    (array_of("string"), "array(null)", [None]),
    (array_of("integer"), "array(1L, null)", [1, None]),
    (map_of("string", "integer"), "map(1, 2L)", {"1": 2}),
    (struct_of(field("a", "integer"), field("b", "string")), "named_struct('B', 'x', 'A', 1L)",
     (1, "x")),
    (struct_of(field("a", "integer"), field("b", "string")), "named_struct('b', 'x')",
     (None, "x")),
    (array_of(struct_of(field("a", "integer"), field("b", "string"))),
     "array(named_struct('b', 2, 'a', 1L), null)", [(1, "2"), None]),
]  # fmt: skip


ROUNDED: list[tuple[Any, str, Any]] = [
    ("byte", "CAST(7.9 AS DOUBLE)", 7),
    ("integer", "17.75BD", 17),
    ("decimal(5,2)", "1.239BD", Decimal("1.24")),
    ("decimal(5,2)", "1.239D", Decimal("1.24")),
    ("float", "16777217", 16777216.0),
    ("double", "9007199254740993L", 9007199254740992.0),
    (struct_of(field("a", "integer")), "named_struct('a', 7.9D)", (7,)),
    (map_of("string", "integer"), "map('k', 7.9D)", {"k": 7}),
]  # fmt: skip
"""Values of types that a column holds only rounded or cut off."""


@pytest.mark.parametrize("session", [{}, NO_ANSI], ids=["usual", "no ANSI"])
def test_values_that_fit(spark: SparkSession, table_path: str, session: dict[str, str]) -> None:
    """Values are converted alike in every session, as Spark's store assignment policy ANSI says."""
    columns = [field(f"v{n}", data_type) for n, (data_type, _, _) in enumerate(FIT)]
    first = [protocol(features=["timestampNtz"]), metadata(*columns)]
    write_commit(Path(table_path), 0, first)
    values = ", ".join(f"{value} AS V{n}" for n, (_, value, _) in enumerate(FIT))
    with settings(spark, session):
        write_delta(spark.sql(f"SELECT {values}"), table_path, mode="append")
    [row] = read_delta(spark, table_path).collect()
    assert list(row) == [wanted for _, _, wanted in FIT]


def test_write_delta_refuses_types_that_insert_rounds(spark: SparkSession, table_path: str) -> None:
    """A write loses no digits; INSERT converts as SQL does."""
    columns = [field(f"v{n}", data_type) for n, (data_type, _, _) in enumerate(ROUNDED)]
    write_commit(Path(table_path), 0, [protocol(), metadata(*columns)])
    for n, (_, value, _) in enumerate(ROUNDED):
        rows = spark.sql(f"SELECT {value} AS v{n}")
        for merges in (False, True):  # the table does not widen types
            with raises("DELTA_FAILED_TO_MERGE_FIELDS"):
                write_delta(rows, table_path, mode="append", merge_schema=merges)
    assert load_snapshot(spark, table_path).version == 0
    values = ", ".join(value for _, value, _ in ROUNDED)
    with settings(spark, NO_ANSI):
        sql(spark, f"INSERT INTO delta.`{table_path}` SELECT {values}")
    [row] = read_delta(spark, table_path).collect()
    assert list(row) == [wanted for _, _, wanted in ROUNDED]


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        ("integer", "3000000000L"),
        ("decimal(3,1)", "100"),
        ("byte", "200BD"),
        (array_of("integer"), "array(1L, 3000000000L)"),
        (struct_of(field("a", "short")), "named_struct('a', 40000)"),
    ],
)
def test_an_overflow_is_an_error(spark, table_path, data_type, value) -> None:  # type: ignore[no-untyped-def]
    """A value that does not fit never becomes null or another number, whatever the session says."""
    table(table_path, data_type)
    with settings(spark, NO_ANSI), raises("DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"):
        write_delta(spark.sql(f"SELECT {value} AS v"), table_path, mode="append")
    assert load_snapshot(spark, table_path).version == 0


@pytest.mark.parametrize(
    ("data_type", "value", "error"),
    [
        ("integer", "'1'", "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("boolean", "1", "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("integer", "true", "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("timestamp", "5L", "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("date", "'2024-01-01'", "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("binary", "'x'", "DELTA_FAILED_TO_MERGE_FIELDS"),
        (array_of("integer"), "array('1')", "DELTA_FAILED_TO_MERGE_FIELDS"),
        (struct_of(field("a", "integer")), "named_struct('b', 1)", "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("string", "array(1)", "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("integer", "1 AS w, 3", "DELTA_METADATA_MISMATCH"),
    ],
)
def test_types_that_do_not_fit(spark: SparkSession, table_path, data_type, value, error) -> None:  # type: ignore[no-untyped-def]
    table(table_path, data_type)
    with raises(error):
        write_delta(spark.sql(f"SELECT {value} AS v"), table_path, mode="append")
    assert [p.name for p in Path(table_path).iterdir()] == ["_delta_log"]  # nothing was written
