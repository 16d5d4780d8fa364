"""Constraints, invariants, NOT NULL, bounded texts, generated and default columns."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, StringType

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from sparkdelta.exceptions import DeltaError
from tests.support.log_writer import write_commit
from tests.support.settings import settings
from tests.support.table_builder import array_of, field, map_of, metadata, protocol, struct_of

FEATURES = [
    "checkConstraints", "invariants", "generatedColumns", "allowColumnDefaults", "appendOnly",
]  # fmt: skip
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": FEATURES}}
ODD = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
}


def table(path: str, *fields: Any, **of_metadata: Any) -> str:
    write_commit(Path(path), 0, [PROTOCOL, metadata(*fields, **of_metadata)])
    return path


def append(spark: SparkSession, sql: str, path: str) -> list[tuple[Any, ...]]:
    before = set(map(str, read_delta(spark, path).collect()))
    write_delta(spark.sql(sql), path, mode="append")
    return [tuple(row) for row in read_delta(spark, path).collect() if str(row) not in before]


def refused(spark: SparkSession, frame: DataFrame | str, path: str) -> DeltaError:
    version = load_snapshot(spark, path).version
    rows = spark.sql(frame) if isinstance(frame, str) else frame
    with pytest.raises(DeltaError) as raised:
        write_delta(rows, path, mode="append")
    assert load_snapshot(spark, path).version == version
    return raised.value


def test_check_constraints(spark: SparkSession, table_path: str) -> None:
    """ "CHECK Constraints": true of every row, neither false nor null."""
    table(
        table_path, field("Age", "integer"), field("p", "string"), partitioned_by=["p"],
        configuration={"delta.constraints.adult": "age >= 18 -- years", "delta.constraints.named":
                       "p <> 'it''s \\\\ \"x\"'"},
    )  # fmt: skip
    with settings(spark, ODD):
        assert append(spark, "SELECT 18 AS age, 'a' AS p", table_path) == [(18, "a")]
        for age, p, named in (("17", "'a'", "adult"), ("null", "'a'", "adult"),
                              ("20", "string(null)", "named")):  # fmt: skip
            error = refused(spark, f"SELECT CAST({age} AS INT) AS age, {p} AS p", table_path)
            assert error.getCondition() == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
            assert named in error.message
        assert '"Age":17' in refused(spark, "SELECT 17 AS age, 'a' AS p", table_path).message
    # Of many rows the one that breaks it is shown.
    rows = spark.range(100).selectExpr("int(116 - id) AS age", "'x' AS p")
    assert '"Age":17' in refused(spark, rows.repartition(3), table_path).message
    # Rows that are not written are not checked.
    good = spark.createDataFrame([(20, "z"), (1, "z"), (1, "z")], "age INT, p STRING")
    write_delta(good.repartition(3, "age").filter("age > 18"), table_path, mode="append")


def test_rows_below_a_limit_are_not_checked(spark: SparkSession, table_path: str) -> None:
    table(table_path, field("v", "long"), configuration={"delta.constraints.c": "v < 1"})
    rows = spark.range(0, 4, 1, numPartitions=4).selectExpr("id AS v").limit(1)
    assert rows.collect()[0][0] == 0
    write_delta(rows, table_path, mode="append")
    assert read_delta(spark, table_path).count() == 1


def test_column_invariants(spark: SparkSession, table_path: str) -> None:
    """ "Column Invariants": neither false nor null."""
    invariant = json.dumps({"expression": {"expression": "x > 3"}})
    inner = field("y", "integer", metadata={"delta.invariants": json.dumps(
        {"expression": {"expression": "s.y < 10"}})})  # fmt: skip
    table(
        table_path,
        field("x", "integer", metadata={"delta.invariants": invariant}),
        field("s", struct_of(inner)),
    )
    rows = "SELECT {} AS x, named_struct('y', {}) AS s"
    assert append(spark, rows.format(4, 5), table_path) == [(4, (5,))]
    assert "invariant of x" in refused(spark, rows.format(3, 5), table_path).message
    assert "invariant of s.y" in refused(spark, rows.format(4, 10), table_path).message
    assert (
        refused(spark, "SELECT 5 AS x", table_path).getCondition()
        == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    )


def test_rules_that_are_not_carried_out_are_refused(spark: SparkSession, table_path: str) -> None:
    for number, (metadata_key, named) in enumerate(
        [("delta.invariants", "invariants (a.x)"), ("CURRENT_DEFAULT", "allowColumnDefaults (a.x)"),
         ("delta.generationExpression", "generatedColumns (a.x)")]
    ):  # fmt: skip
        path = f"{table_path}{number}"
        inner = field("x", "integer", metadata={metadata_key: "1"})
        table(path, field("a", array_of(struct_of(inner))), field("b", "integer"))
        error = refused(spark, "SELECT 1 AS b", path)
        assert error.getCondition() == "DELTA_WRITE_NOT_IMPLEMENTED"
        assert error.missing == (named,)


NESTED = struct_of(
    field("a", "integer", nullable=False),
    field("l", {**array_of(struct_of(field("b", "integer", nullable=False))),
                "containsNull": False}),
    field("m", {**map_of("string", "integer"), "valueContainsNull": False}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "column"),
    [
        ("CAST(NULL AS STRUCT<a: INT>)", None),
        ("named_struct('a', 1)", None),
        ("named_struct('a', 1, 'l', array(named_struct('b', 1)), 'm', map('k', 1))", None),
        ("named_struct('a', CAST(NULL AS INT))", "s.a"),
        ("named_struct('m', map('k', 1))", "s.a"),
        ("named_struct('a', 1, 'l', array(CAST(NULL AS STRUCT<b: INT>)))", "s.l.element"),
        ("named_struct('a', 1, 'l', array(named_struct('b', 1), named_struct('b', int(null))))",
         "s.l.element.b"),
        ("named_struct('a', 1, 'm', map('k', int(null)))", "s.m.value"),
    ],
)  # fmt: skip
def test_not_null_at_every_level(spark, table_path, value, column) -> None:  # type: ignore[no-untyped-def]
    table(table_path, field("s", NESTED))
    sql = f"SELECT {value} AS s"
    if column is None:
        assert len(append(spark, sql, table_path)) == 1
        return
    error = refused(spark, sql, table_path)
    assert error.getCondition() == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    assert column in error.message


def test_texts_of_bounded_length_are_declared_within_other_types(
    spark: SparkSession, table_path: str
) -> None:
    """The metadata is Spark's, as delta-spark stores it."""
    builder = DeltaTable.create(spark).location(table_path)
    builder = builder.addColumn("a", "ARRAY<VARCHAR(3)>")
    builder.addColumn("m", "MAP<STRING, STRUCT<`x-y`: CHAR(2), n: INT>>").execute()
    alter_table(spark, table_path).add_column("s", "STRUCT<c: VARCHAR(1)>")
    schema = load_snapshot(spark, table_path).schema
    declared = {f.name: f.metadata["__CHAR_VARCHAR_TYPE_STRING"] for f in schema.fields}
    assert declared == {
        "a": "array<varchar(3)>",
        "m": "map<string, struct<`x-y`: char(2), `n`: int>>",
        "s": "struct<c:varchar(1)>",
    }
    assert schema["a"].dataType == ArrayType(StringType())
    row = "SELECT array({}) AS a, map('k', named_struct('x-y', {}, 'n', 1)) AS m"
    append(spark, row.format("'abc'", "'ab'"), table_path)
    for values in (("'abcd'", "'ab'"), ("'abc'", "'abc'")):
        error = refused(spark, row.format(*values), table_path)
        assert error.getCondition() == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"


def test_texts_of_bounded_length(spark: SparkSession, table_path: str) -> None:
    def bounded(name: str, data_type: str) -> dict[str, Any]:
        return field(name, "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": data_type})

    table(
        table_path,
        bounded("v", "varchar(3)"),
        field("a", array_of(struct_of(bounded("c", "char(2)")))),
    )
    rows = "SELECT {} AS v, array(named_struct('c', {})) AS a"
    assert append(spark, rows.format("'äöü'", "string(null)"), table_path) == [("äöü", [(None,)])]
    assert (
        refused(spark, rows.format("'abcd'", "'ab'"), table_path).getCondition()
        == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    )
    error = refused(spark, rows.format("'abc'", "'abc'"), table_path)
    assert "a.element.c" in error.message
    assert "char(2)" in error.message


def test_texts_of_bounded_length_at_every_level(spark: SparkSession, table_path: str) -> None:
    """The declared type is that of the whole column, as delta-spark has it."""
    inner = struct_of(field("c", "string"), field("n", "long"))
    declared = "map<char(2),array<struct<c:varchar(3),n:int>>>"
    metadata = {"__CHAR_VARCHAR_TYPE_STRING": declared}
    table(table_path, field("m", map_of("string", array_of(inner)), metadata=metadata))
    value = "SELECT map({}, array(NULL, named_struct('c', {}, 'n', 5000000000L))) AS m"
    append(spark, value.format("'ab'", "'abc'"), table_path)
    append(spark, value.format("'ab'", "NULL"), table_path)
    for texts, column in ((("'abc'", "'a'"), "m.key"), (("'a'", "'abcd'"), "m.value.element.c")):
        error = refused(spark, value.format(*texts), table_path)
        assert error.getCondition() == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
        assert column in error.message
    for number, other in enumerate(("array<varchar(3)>", "struct<d:varchar(3)>", "nonsense(")):
        path = f"{table_path} {number}"
        metadata = {"__CHAR_VARCHAR_TYPE_STRING": other}
        table(path, field("s", struct_of(field("c", "string")), metadata=metadata))
        error = refused(spark, "SELECT named_struct('c', 'x') AS s", path)
        assert error.getCondition() == "DELTA_WRITE_NOT_IMPLEMENTED"


def test_generated_columns(spark: SparkSession, table_path: str) -> None:
    """ "Generated Columns": computed where they are missing, else compared by <=>."""
    table(
        table_path,
        field("at", "timestamp"),
        field("day", "date", metadata={"delta.generationExpression": "CAST(at AS DATE)"}),
        field("twice", "integer", metadata={"delta.generationExpression": "int(v * 2)"}),
        field("v", "long"),
        partitioned_by=["day"],
    )
    rows = "SELECT TIMESTAMP'2024-03-01 01:00:00Z' AS at, {} FROM range(1)"
    with settings(spark, ODD):  # in New York it is still February
        [row] = append(spark, rows.format("4L AS v"), table_path)
        assert row[1:] == (dt.date(2024, 3, 1), 8, 4)
        write_delta(spark.sql(rows.format("4L AS v, 8 AS twice")), table_path, mode="append")
        assert append(spark, "SELECT 1L AS v", table_path) == [(None, None, 2, 1)]
        assert append(spark, "SELECT CAST(null AS DATE) AS day", table_path) == [(None,) * 4]
        error = refused(spark, rows.format("4L AS v, 9 AS twice"), table_path)
        assert error.getCondition() == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
        assert "generated column" in error.message.lower()
        assert (
            refused(spark, rows.format("4L AS v, int(null) AS twice"), table_path).getCondition()
            == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
        )


EXPRESSIONS = {
    "rand() > 0": "NON_DETERMINISTIC_EXPRESSION_IN_",
    "uuid() > ''": "NON_DETERMINISTIC_EXPRESSION_IN_",
    "input_file_name() > ''": "NON_DETERMINISTIC_EXPRESSION_IN_",
    "shouted('a') > ''": "UDF_IN_",
    "max(v) > 0": "AGGREGATE_IN_",
    "max(v) OVER (PARTITION BY v) > 0": "UNSUPPORTED_EXPRESSION_",
    "v IN (SELECT id FROM range(3))": "UNSUPPORTED_EXPRESSION_",
    "(SELECT max(id) FROM range(3)) > v": "UNSUPPORTED_EXPRESSION_",
    "EXISTS (SELECT id FROM range(3) WHERE id = v)": "UNSUPPORTED_EXPRESSION_",
    "explode(array(true))": "UNSUPPORTED_EXPRESSION_",
    "current_user() > ''": "UNSUPPORTED_EXPRESSION_",
    "at < current_timestamp()": "UNSUPPORTED_EXPRESSION_",
    "at < now()": "UNSUPPORTED_EXPRESSION_",
    "CAST(at AS DATE) < current_date() + 1": "UNSUPPORTED_EXPRESSION_",
    "unix_timestamp() > v": "UNSUPPORTED_EXPRESSION_",
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_that_are_not_of_a_row_alone(
    spark: SparkSession, table_path: str, expression: str
) -> None:
    """Generated Columns, CHECK Constraints: refused where a table is made, and where rows come."""
    spark.udf.register("shouted", str.upper)
    condition = EXPRESSIONS[expression]
    plain = [field("at", "timestamp"), field("v", "long")]
    generated = field("g", "boolean", metadata={"delta.generationExpression": expression})
    checked = {"delta.constraints.c": expression}
    rows = "SELECT TIMESTAMP'2024-03-01 01:00:00Z' AS at, 1L AS v"
    is_of_the_moment = any(word in expression for word in ("current_t", "now", "_date", "unix"))
    for suffix in ("GENERATED_COLUMN", "CHECK_CONSTRAINT"):
        of_column = suffix == "GENERATED_COLUMN"
        path = f"{table_path}-{suffix}"
        builder = DeltaTable.create(spark).location(path)
        builder.addColumn("at", "TIMESTAMP").addColumn("v", "BIGINT")
        if of_column:
            table(f"{path}-there", *plain, generated)
            builder.addColumn("g", "BOOLEAN", generatedAlwaysAs=expression)
        else:
            table(f"{path}-there", *plain, configuration=checked)
            builder.property("delta.constraints.c", expression)
        if is_of_the_moment and not of_column:
            builder.execute()
            assert append(spark, rows, f"{path}-there")
            continue
        with pytest.raises(DeltaError) as raised:
            builder.execute()
        assert raised.value.getCondition() == f"DELTA_{condition}{suffix}"
        assert not DeltaTable.isDeltaTable(spark, path)
        error = refused(spark, rows, f"{path}-there")
        assert error.getCondition() == f"DELTA_{condition}{suffix}"
        assert expression in error.message
        assert [p.name for p in Path(f"{path}-there").iterdir()] == ["_delta_log"]


def test_default_columns(spark: SparkSession, table_path: str) -> None:
    """ "Default Columns": for what the rows lack, not for nulls that they have."""
    table(
        table_path,
        field("id", "long"),
        field("n", "short", metadata={"CURRENT_DEFAULT": "40 + 2"}),
        field("s", "string", nullable=False, metadata={"CURRENT_DEFAULT": '"it\'s"'}),
        field("d", "date", metadata={"CURRENT_DEFAULT": "current_date()"}),
        field("g", "integer", metadata={"delta.generationExpression": "n + 1"}),
    )
    with settings(spark, ODD):
        [row] = append(spark, "SELECT 1 AS id", table_path)
    assert row[:3] == (1, 42, "it's")
    assert row[4] == 43
    assert abs((row[3] - dt.datetime.now(dt.timezone.utc).date()).days) <= 1
    [row] = append(spark, "SELECT 2 AS id, int(null) AS n, 'x' AS s", table_path)
    assert (row[1], row[2], row[4]) == (None, "x", None)
    assert (
        refused(spark, "SELECT 3 AS id, string(null) AS s", table_path).getCondition()
        == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    )


def test_rules_of_features_that_are_not_supported_are_none(
    spark: SparkSession, table_path: str
) -> None:
    """ "Active Features": what a table does not support has no meaning in it."""
    write_commit(
        Path(table_path), 0,
        [protocol(), metadata(
            field("v", "integer", metadata={"CURRENT_DEFAULT": "7", "delta.identity.start": 1,
                                            "delta.generationExpression": "1"}),
            field("w", "integer"), configuration={"delta.constraints.c": "v > 0"})],
    )  # fmt: skip
    assert append(spark, "SELECT 1 AS w", table_path) == [(None, 1)]


def test_an_empty_text_is_null_in_a_partition_for_every_rule(
    spark: SparkSession, table_path: str
) -> None:
    """PROTOCOL.md#partition-value-serialization"""
    generated = {"delta.generationExpression": "p IS NULL"}
    path = table(
        f"{table_path}/a",
        field("id", "long"),
        field("p", "string", nullable=False),
        partitioned_by=["p"],
    )
    assert (
        refused(spark, "SELECT 1L AS id, '' AS p", path).getCondition()
        == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    )
    path = table(
        f"{table_path}/b",
        field("id", "long"),
        field("p", "string"),
        field("g", "boolean", metadata=generated),
        partitioned_by=["p"],
    )
    assert append(spark, "SELECT 1L AS id, '' AS p", path) == [(1, None, True)]
    path = table(
        f"{table_path}/c",
        field("id", "long"),
        field("p", "string"),
        partitioned_by=["p"],
        configuration={"delta.constraints.c": "p IS NOT NULL"},
    )
    found = refused(spark, "SELECT 1L AS id, '' AS p", path)
    assert found.getCondition() == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
