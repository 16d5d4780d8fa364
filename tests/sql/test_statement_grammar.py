"""Delta's statements and the tables of queries, without Spark."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sparkdelta.exceptions import DeltaError, InvalidArgumentError, StatementSyntaxError
from sparkdelta.operations.write.create_table import Creation
from sparkdelta.sql.grammar.parameters import bind_parameters, check_quoted
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.relations import common_names, relations
from sparkdelta.sql.grammar.statement_grammar import parse
from sparkdelta.sql.grammar.tokens import Fragment, tokenize
from sparkdelta.sql.statements import statement_text
from sparkdelta.sql.statements.column_definitions import ColumnText

P = ("delta", "/p q")


CONSTRAINT = "a constraint in CREATE TABLE; use ALTER TABLE ... ADD CONSTRAINT ... CHECK"


assert statement_text  # has all statements registered


V2, PARTITIONS = (
    "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
    "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
)


class Refused(str):
    """The name of a statement that is refused, or the condition of its error."""


def called(function: str, target: tuple[str, ...], **arguments: Any) -> tuple[Any, ...]:
    """The function of a statement, its table and arguments."""
    return function, target, arguments


def tokens_of(text: str) -> Fragment:
    found = tokenize(text)
    assert found is not None
    return found


def parsed(text: str) -> tuple[Any, ...] | Refused | None:
    parser = Parser(text, tokens_of(text).tokens)
    try:
        statement = parse(parser)
    except DeltaError as error:
        if error.error_class == "DELTA_STATEMENT_NOT_SUPPORTED":
            return Refused(error.statement)
        if error.error_class in (V2, PARTITIONS, "DELTA_OPERATION_NOT_ALLOWED"):
            return Refused(error.error_class)
        raise
    if statement is None:
        return None
    arguments = {
        name: value.text if isinstance(value, Fragment) else value
        for name, value in statement.arguments.items()
    }
    return called(statement.function.__name__.lstrip("_"), parser.target or (), **arguments)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("DELETE FROM delta.`/p q`;", called("delete", P)),
        ("delete from db.t AS x where x.a IN (1, 2) -- why", called("delete", ("db", "t"), alias="x", where="x.a IN (1, 2)")),
        ("DELETE FROM t x WHERE a = ';'", called("delete", ("t",), alias="x", where="a = ';'")),
        (
            "UPDATE delta.`/p q` SET a = CASE WHEN b, c THEN 1 END, `x y`.c = f(1, 2) WHERE a <=> 2Y",
            called("update", P, values={"a": "CASE WHEN b, c THEN 1 END", "`x y`.c": "f(1, 2)"}, where="a <=> 2Y"),
        ),
        ("DELETE FROM t WHERE (start < 1 AND end > 2)", called("delete", ("t",), where="(start < 1 AND end > 2)")),
        ("UPDATE t SET a = f(end, CASE WHEN end > 1 THEN s.end END), case = t.case WHERE b", called("update", ("t",), values={"a": "f(end, CASE WHEN end > 1 THEN s.end END)", "case": "t.case"}, where="b")),
        ("CONVERT TO DELTA parquet.`/p q` NO STATISTICS PARTITIONED BY (a INT, b DECIMAL(5, 2))", called("convert", ("parquet", "/p q"), partition_schema="a INT, b DECIMAL(5, 2)", no_statistics=True)),
        (
            "INSERT INTO t REPLACE WHERE a IS DISTINCT FROM b.from FROM s SELECT 1",
            called("insert", ("t",), query="FROM s SELECT 1", replace_where="a IS DISTINCT FROM b.from"),
        ),
        (
            "INSERT INTO t REPLACE USING (a, `b c`) (SELECT 1) UNION (SELECT 2)",
            called("insert", ("t",), query="(SELECT 1) UNION (SELECT 2)", replace_using=("a", "`b c`")),
        ),
        (
            "INSERT INTO TABLE t AS x BY NAME REPLACE ON x.a = s.a AND trim(x.b) <> ')' (SELECT * FROM q) AS s",
            called("insert", ("t",), query="(SELECT * FROM q)", replace_on="x.a = s.a AND trim(x.b) <> ')'", alias="x", by_name=True, query_alias="s"),
        ),
        (
            "INSERT WITH SCHEMA EVOLUTION INTO t x REPLACE ON (x.a) IN (1) (VALUES (1)) LIMIT 1",
            called("insert", ("t",), query="(VALUES (1)) LIMIT 1", replace_on="(x.a) IN (1)", alias="x", evolves=True),
        ),
        (
            "INSERT INTO t REPLACE ON t.a IN (SELECT a FROM q) AND NOT EXISTS (SELECT 1) OR t.b BETWEEN (SELECT 1) AND 2 (SELECT b) s",
            called("insert", ("t",), query="(SELECT b)", replace_on="t.a IN (SELECT a FROM q) AND NOT EXISTS (SELECT 1) OR t.b BETWEEN (SELECT 1) AND 2", query_alias="s"),
        ),
        ("INSERT INTO t REPLACE ON t.a = (SELECT max(a) FROM q) SELECT b", called("insert", ("t",), query="SELECT b", replace_on="t.a = (SELECT max(a) FROM q)")),
        ("INSERT INTO t REPLACE ON t.a = b FROM q SELECT b", called("insert", ("t",), query="FROM q SELECT b", replace_on="t.a = b")),
        ("CONVERT TO DELTA parquet.`/p`", called("convert", ("parquet", "/p"))),
        ("ALTER TABLE t CHANGE COLUMN a a INT NOT NULL", Refused("CHANGE COLUMN with NOT NULL or DEFAULT")),
        ("UPDATE t AS u SET u.a = DEFAULT", called("update", ("t",), alias="u", values={"u.a": "DEFAULT"})),
        ("INSERT INTO TABLE t (a, b) VALUES (1, 'x')", called("insert", ("t",), query="VALUES (1, 'x')", columns=("a", "b"))),
        (
            "INSERT INTO t WITH ('mergeSchema' = 'true', txnVersion 5, a.b = TRUE) PARTITION (d = 1) (a) WITH q AS (SELECT 1) TABLE q",
            called("insert", ("t",), query="WITH q AS (SELECT 1) TABLE q", columns=("a",), partition={"d": "1"}, options={"mergeSchema": "true", "txnVersion": "5", "a.b": "true"}),
        ),
        (
            "INSERT INTO t AS x WITH ('a' = 'b') REPLACE ON x.a = 1 SELECT 1",
            called("insert", ("t",), query="SELECT 1", alias="x", replace_on="x.a = 1", options={"a": "b"}),
        ),
        ("INSERT INTO t BY NAME SELECT 1 AS a", called("insert", ("t",), query="SELECT 1 AS a", by_name=True)),
        ("INSERT WITH SCHEMA EVOLUTION INTO t (SELECT 1)", called("insert", ("t",), query="(SELECT 1)", evolves=True)),
        (
            "INSERT OVERWRITE TABLE t PARTITION (d = '2024', e) SELECT a FROM s",
            called("insert", ("t",), query="SELECT a FROM s", overwrites=True, partition={"d": "'2024'", "e": None}),
        ),
        (
            "INSERT INTO t REPLACE WHERE d = 1 AND e IN (2) WITH q AS (SELECT 1) SELECT * FROM q",
            called("insert", ("t",), query="WITH q AS (SELECT 1) SELECT * FROM q", replace_where="d = 1 AND e IN (2)"),
        ),
        ("OPTIMIZE delta.`/p q` WHERE d >= '2024' ZORDER BY (a, b.c)", called("optimize_table", P, where="d >= '2024'", zorder_by=("a", "b.c"))),
        ("OPTIMIZE '/p q' FULL", called("optimize_table", P, full=True)),
        ("REORG TABLE t WHERE a = 1 APPLY (PURGE)", called("reorg_table", ("t",), where="a = 1")),
        ("RESTORE TABLE t TO VERSION AS OF 3", called("restore", ("t",), version=3)),
        ("RESTORE t TO TIMESTAMP AS OF now() - INTERVAL 1 DAY", called("restore", ("t",), timestamp="now() - INTERVAL 1 DAY")),
        ("DESC HISTORY '/p q' LIMIT 5", called("describe_history", P, limit=5)),
        ("DESCRIBE DETAIL delta.`/p q`", called("describe_detail", P)),
        ("VACUUM '/p q' LITE RETAIN 0.5 HOURS DRY RUN", called("vacuum_table", P, mode="lite", retention_hours=0.5, dry_run=True)),
        ("VACUUM t USING INVENTORY (SELECT * FROM inv) FULL", called("vacuum_table", ("t",), inventory="(SELECT * FROM inv)")),
        ("TRUNCATE TABLE t", called("truncate_table", ("t",))),
        ("ALTER TABLE t SET TBLPROPERTIES ('it''s' = \"a\"\"b'\" )", called("set_properties", ("t",), properties={"it's": "a\"b'"})),
        ("FSCK REPAIR TABLE delta.`/p q` DRY RUN", called("repair_table", P, dry_run=True)),
        ("SHOW COLUMNS FROM t IN db", called("show_columns", ("db", "t"))),
        ("SHOW CREATE TABLE t AS SERDE", Refused("DELTA_OPERATION_NOT_ALLOWED")),
        ("CREATE TABLE IF NOT EXISTS t LIKE delta.`/p q` LOCATION '/q' TBLPROPERTIES ('a' = 'b')", called("create_like", ("t",), source=P, creation=Creation.CREATE_IF_NOT_EXISTS, location="/q", properties={"a": "b"})),
        *[(f"CREATE TABLE t ({columns}) USING delta", Refused(CONSTRAINT)) for columns in (
            "a INT PRIMARY KEY", "a INT NOT NULL CHECK (a > 0)", "a INT, CONSTRAINT c CHECK (a > 0)", "a INT, UNIQUE (a)", "a INT, FOREIGN KEY (a) REFERENCES u (a)",
        )],
        ("CREATE TABLE t (a INT, check INT, constraint STRING) USING delta", called("create", ("t",), creation=Creation.CREATE, provider="delta", columns=(
            ColumnText(name="a", data_type="INT"), ColumnText(name="check", data_type="INT"), ColumnText(name="constraint", data_type="STRING"),
        ))),
        ("INSERT OVERWRITE t PARTITION (d = CAST(X'61' AS string), e = -1.5, f = DATE '2024-01-01') SELECT 1", called("insert", ("t",), query="SELECT 1", overwrites=True, partition={"d": "CAST(X'61' AS string)", "e": "-1.5", "f": "DATE '2024-01-01'"})),
        ("CREATE TABLE t (a STRUCT<b: INT, c: MAP<STRING, ARRAY<INT>>> NOT NULL COMMENT 'x', `d e` DECIMAL(5, 2) DEFAULT (1 + 2), g DATE GENERATED ALWAYS AS (CAST(a.b AS DATE)), i BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH -5 INCREMENT BY 2)) USING delta PARTITIONED BY (g) LOCATION '/p' TBLPROPERTIES ('delta.appendOnly' = 'true', delta.x = false, y = 3) COMMENT 'hi'", called("create", ("t",), creation=Creation.CREATE, provider="delta", partition_by=("g",), location="/p", comment="hi", properties={"delta.appendOnly": "true", "delta.x": "false", "y": "3"}, columns=(
                ColumnText(name="a", data_type="STRUCT<b: INT, c: MAP<STRING, ARRAY<INT>>>", nullable=False, comment="x"),
                ColumnText(name="`d e`", data_type="DECIMAL(5, 2)", default="(1 + 2)"),
                ColumnText(name="g", data_type="DATE", generated="CAST(a.b AS DATE)"),
                ColumnText(name="i", data_type="BIGINT", identity=(-5, 2, True)),
            ))),
        ("CREATE TABLE t USING delta PARTITIONED BY (`a.b`, `c``d`) AS SELECT 1", called("create", ("t",), creation=Creation.CREATE, provider="delta", partition_by=("a.b", "c`d"), query="SELECT 1")),
        ("CREATE OR REPLACE TABLE delta.`/p q` USING DELTA CLUSTER BY (a, b) AS SELECT 1", called("create", P, creation=Creation.CREATE_OR_REPLACE, provider="delta", cluster_by=("a", "b"), query="SELECT 1")),
        ("CREATE TABLE IF NOT EXISTS t USING delta LOCATION '/p'", called("create", ("t",), creation=Creation.CREATE_IF_NOT_EXISTS, provider="delta", location="/p")),
        ("CREATE TABLE t SHALLOW CLONE delta.`/p q` VERSION AS OF 3 LOCATION '/q'", called("create_clone", ("t",), source=P, deep=False, creation=Creation.CREATE, version=3, location="/q")),
        ("DROP TABLE IF EXISTS t", called("drop_table", ("t",))),
        ("ALTER TABLE t ADD COLUMNS (c INT COMMENT 'x' AFTER a, s.d STRING FIRST)", called("add_new_columns", ("t",), columns=(ColumnText(name="c", data_type="INT", comment="x", after="a"), ColumnText(name="s.d", data_type="STRING", is_first=True)))),
        ("ALTER TABLE t RENAME COLUMN a TO b", called("rename_column", ("t",), name="a", new_name="b")),
        ("ALTER TABLE t DROP COLUMNS (a, b.c)", called("drop_columns", ("t",), names=("a", "b.c"))),
        ("ALTER TABLE t ALTER COLUMN a TYPE BIGINT", called("alter_columns", ("t",), changes=({"name": "a", "data_type": "BIGINT"},))),
        ("ALTER TABLE t ALTER COLUMN a DROP NOT NULL", called("alter_columns", ("t",), changes=({"name": "a", "drop_not_null": True},))),
        ("ALTER TABLE t ALTER COLUMN a SET NOT NULL", called("alter_columns", ("t",), changes=({"name": "a", "set_not_null": True},))),
        ("ALTER TABLE t ALTER COLUMN a SYNC IDENTITY", called("alter_columns", ("t",), synchronized="a")),
        ("ALTER TABLE t REPLACE COLUMNS (a INT, `b c` STRING COMMENT 'x')", called("replace_columns", ("t",), columns=(ColumnText(name="a", data_type="INT"), ColumnText(name="`b c`", data_type="STRING", comment="x")))),
        ("ALTER TABLE t CHANGE COLUMN a a BIGINT COMMENT 'x' AFTER c", called("alter_columns", ("t",), changes=({"name": "a", "data_type": "BIGINT", "comment": "x", "first": False, "after": "c", "repeats_type": True},))),
        ("ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a', b.c)", called("unset_properties", ("t",), names=["a", "b.c"], if_exists=True)),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0 AND b <> 'x')", called("add_constraint", ("t",), name="c", check="a > 0 AND b <> 'x'")),
        ("ALTER TABLE t DROP FEATURE deletionVectors TRUNCATE HISTORY", called("drop_feature", ("t",), name="deletionVectors", truncates_history=True)),
        ("ALTER TABLE t CLUSTER BY NONE", called("cluster_by", ("t",), columns=())),
        ("ALTER TABLE t RENAME TO u", called("rename_table", ("t",), name=("u",))),
        ("ALTER TABLE t SET LOCATION '/q'", called("set_location", ("t",), location="/q")),
        ("ALTER TABLE t CHANGE a SYNC IDENTITY", called("alter_columns", ("t",), synchronized="a")),
        ("GENERATE symlink_format_manifest FOR TABLE delta.`/p q`", called("generate", P, mode="symlink_format_manifest")),
        ("CREATE TEMP VIEW v AS SELECT 1", None),
        ("SHOW TABLES", None),
        ("DESCRIBE TABLE t", called("describe", ("t",))),
        ("DESC FORMATTED t", called("describe", ("t",), extended=True)),
        ("DESCRIBE EXTENDED t a.b", called("describe", ("t",), column=("a", "b"))),
        ("DESC t a", called("describe", ("t",), column=("a",))),
        ("DESCRIBE t PARTITION (p = 1)", Refused(PARTITIONS)),
        ("DESCRIBE EXTENDED t AS JSON", Refused(V2)),
        ("ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 1)", Refused(PARTITIONS)),
        ("ALTER TABLE t PARTITION (p = 1) RENAME TO PARTITION (p = 2)", Refused(PARTITIONS)),
        ("ALTER TABLE t RECOVER PARTITIONS", Refused(V2)),
        ("REFRESH TABLE t", called("refresh", ("t",))),
        ("CACHE TABLE delta.`/p q`", called("cache", P)),
        ("CACHE LAZY TABLE t OPTIONS ('storageLevel' 'DISK_ONLY')", called("cache_lazily", ("t",), options={"storageLevel": "DISK_ONLY"})),
        ("CACHE TABLE t OPTIONS (a 'b') AS SELECT 1", None),
        ("UNCACHE TABLE IF EXISTS db.t", called("uncache", ("db", "t"))),
        ("SHOW TABLE EXTENDED IN db LIKE 't' PARTITION (p = 1)", Refused(PARTITIONS)),
        ("SHOW TABLE EXTENDED LIKE 't*'", None),
        ("ANALYZE TABLE t COMPUTE STATISTICS", Refused(V2)),
        ("SHOW PARTITIONS t", called("show_partitions", ("t",))),
        (
            "SHOW PARTITIONS delta.`/p q` PARTITION (p = DATE'2024-01-01', q = NULL)",
            called("show_partitions", P, partition={"p": "DATE'2024-01-01'", "q": "NULL"}),
        ),
        ("SHOW TBLPROPERTIES delta.`/p q` ('a.b')", called("show_properties", P, key="a.b")),
        ("DELETE FROM IDENTIFIER('db.' || CAST(X'60742078602e75' AS string)) x", called("delete", ("db", "t x", "u"), alias="x")),
        ("DELETE FROM db.2024_sales WHERE 1e5 > 2Y", called("delete", ("db", "2024_sales"), where="1e5 > 2Y")),
        (r"ALTER TABLE t ALTER COLUMN a COMMENT 'x\ny\u0041\101\%\q''z'", called("alter_columns", ("t",), changes=({"name": "a", "comment": "x\nyAA\\%q'z"},))),
        (r"ALTER TABLE t SET TBLPROPERTIES (a = 3.5, b = r'\n')", called("set_properties", ("t",), properties={"a": "3.5", "b": "\\n"})),
        ("UPDATE t SET a == 1 WHERE a == 2", called("update", ("t",), values={"a": "1"}, where="a == 2")),
        (
            "WITH c AS (SELECT ')'), d (x) AS (TABLE c) INSERT INTO t SELECT * FROM d",
            called("insert", ("t",), query="SELECT * FROM d", queries="WITH c AS (SELECT ')'), d (x) AS (TABLE c)"),
        ),
        ("WITH c AS (SELECT 'INSERT') SELECT * FROM c", None),
        (
            "WITH RECURSIVE c (n) MAX RECURSION LEVEL 5 AS (SELECT 1), d (TABLE c) INSERT INTO t TABLE d",
            called("insert", ("t",), query="TABLE d", queries="WITH RECURSIVE c (n) MAX RECURSION LEVEL 5 AS (SELECT 1), d (TABLE c)"),
        ),
        ("INSERT INTO t REPLACE WHERE a > 1 (SELECT 1)", called("insert", ("t",), query="(SELECT 1)", replace_where="a > 1")),
        ("CREATE TABLE t USING delta PARTITIONED BY (b DATE, `c d` STRING) OPTIONS (PATH '/p')", called("create", ("t",), creation=Creation.CREATE, provider="delta", partition_by=("b", "c d"), location="/p", columns=(
            ColumnText(name="b", data_type="DATE"), ColumnText(name="`c d`", data_type="STRING"),
        ))),
        ("ALTER TABLE t ADD COLUMNS a INT, b STRING FIRST", called("add_new_columns", ("t",), columns=(ColumnText(name="a", data_type="INT"), ColumnText(name="b", data_type="STRING", is_first=True)))),
        ("ALTER TABLE t DROP COLUMN a, b.c", called("drop_columns", ("t",), names=("a", "b.c"))),
        ("ALTER TABLE t CHANGE a TYPE BIGINT", called("alter_columns", ("t",), changes=({"name": "a", "data_type": "BIGINT"},))),
        ("ALTER TABLE t CHANGE comment comment STRING", called("alter_columns", ("t",), changes=({"name": "comment", "data_type": "STRING", "first": False, "repeats_type": True},))),
        ("ALTER TABLE t ALTER a SET DEFAULT f(1, 2), b.c TYPE DECIMAL(5, 2), d FIRST", called("alter_columns", ("t",), changes=({"name": "a", "default": "f(1, 2)"}, {"name": "b.c", "data_type": "DECIMAL(5, 2)"}, {"name": "d", "first": True}))),
        ("RESTORE t FOR SYSTEM_VERSION AS OF '3'", called("restore", ("t",), version=3)),
    ],
)  # fmt: skip
def test_statements(text: str, statement: tuple[Any, ...] | Refused | None) -> None:
    assert parsed(text) == statement


def test_merge() -> None:
    merge = parsed(
        """MERGE WITH SCHEMA EVOLUTION INTO delta.`/p q` AS t
        USING (SELECT * FROM v WHERE x ON y) s ON t.id = s.id AND CASE WHEN true THEN true END
        WHEN MATCHED AND s.d THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.a = s.a, b = CASE WHEN s.b THEN 1 ELSE 2 END
        WHEN NOT MATCHED BY TARGET AND s.x > 1 THEN INSERT (id, `a b`) VALUES (s.id, f(s.a, 1))
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND t.a > 5 THEN UPDATE SET a = 0
        WHEN NOT MATCHED BY SOURCE THEN DELETE"""
    )
    assert merge == called(
        "merge",
        P,
        alias="t",
        source="(SELECT * FROM v WHERE x ON y) s",
        source_alias="s",
        condition="t.id = s.id AND CASE WHEN true THEN true END",
        actions=[
            ("whenMatchedDelete", "s.d"),
            ("whenMatchedUpdate", None, {"t.a": "s.a", "b": "CASE WHEN s.b THEN 1 ELSE 2 END"}),
            ("whenNotMatchedInsert", "s.x > 1", {"id": "s.id", "`a b`": "f(s.a, 1)"}),
            ("whenNotMatchedInsertAll", None),
            ("whenNotMatchedBySourceUpdate", "t.a > 5", {"a": "0"}),
            ("whenNotMatchedBySourceDelete", None),
        ],
        evolves=True,
    )
    sources = {
        "db.s": "s", "delta.`/s` VERSION AS OF 3 AS u": "u", "(SELECT 1) AS v": "v", "{df}": None,
        "s w": "w", "(SELECT 1)": None, "(SELECT 1) AS x (a, b)": "x", "s@v3": "s",
    }  # fmt: skip
    for text, alias in sources.items():
        found = parsed(f"MERGE INTO t USING {text} ON a = b WHEN MATCHED THEN DELETE")
        assert isinstance(found, tuple)
        assert (found[2]["source"], found[2]["source_alias"]) == (text, alias)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("DELETE FROM t WHERE", (1, 20)),
        ("UPDATE t SET a 1", (1, 16)),
        ("MERGE INTO t USING s\nON a = b WHEN MATCHED THEN UPSERT", (2, 28)),
        ("MERGE INTO t USING s ON a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", None),
        ("RESTORE t TO 3", (1, 14)),
        ("OPTIMIZE t ZORDER a", (1, 12)),
        ("DELETE FROM t x y", (1, 17)),
        ("INSERT INTO t WITH ('a' = NULL) SELECT 1", (1, 27)),
        ("INSERT INTO t WITH () SELECT 1", (1, 21)),
        ("CREATE TABLE t (a INT) USING delta AS SELECT 1", None),
        ("CREATE TABLE t (a INT) LOCATION '/p' LOCATION '/q'", (1, 38)),
        ("INSERT INTO t PARTITION (a = 1, A = 2) SELECT 1", (1, 35)),
        ("ALTER TABLE t ALTER COLUMN a SET DEFAULT 1, A FIRST", (1, 52)),
        ("ALTER TABLE t ALTER COLUMN a FIRST, b SYNC IDENTITY", (1, 52)),
        ("DESCRIBE HISTORY t LIMIT x", (1, 26)),
        ("INSERT OVERWRITE t PARTITION (d = a) SELECT 1 AS a", (1, 35)),
        ("INSERT INTO t PARTITION (d = rand()) SELECT 1", (1, 30)),
        ("INSERT OVERWRITE t REPLACE WHERE a = 1 SELECT 1", (1, 28)),
        ("INSERT INTO t (a) REPLACE WHERE a = 1 SELECT 1", (1, 27)),
        ("INSERT INTO t PARTITION (a = 1) REPLACE WHERE a = 1 SELECT 1", (1, 41)),
        ("CREATE OR REPLACE TABLE t LIKE s", None),
        ("SHOW COLUMNS t", (1, 14)),
        ("SHOW PARTITIONS t PARTITION (p)", (1, 32)),
        ("DESCRIBE t a b", (1, 14)),
        ("MERGE INTO t USING a s JOIN b ON x WHEN MATCHED THEN DELETE", (1, 24)),
        ("VACUUM t LITE FULL", (1, 15)),
        ("CREATE TABLE t (a INT) USING delta OPTIONS (path 'y') LOCATION 'x'", (1, 67)),
        ("CREATE TABLE t (a INT) USING delta PARTITIONED BY (days(a))", (1, 52)),
        ("DELETE FROM IDENTIFIER(a)", (1, 24)),
        ("DELETE FROM IDENTIFIER('a.')", (1, 24)),
        ("DESCRIBE DATABASE d", (1, 10)),
        ("REORG t APPLY (PURGE)", (1, 7)),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT", (1, 26)),
        ("ALTER TABLE t SET TBLPROPERTIES (a = 'b', location = '/p')", (1, 33)),
        ("CREATE TABLE t (a INT) USING delta TBLPROPERTIES (provider = 'x')", (1, 50)),
    ],
)
def test_statements_with_unknown_words_are_refused(
    text: str, place: tuple[int, int] | None
) -> None:
    with pytest.raises(StatementSyntaxError) as raised:
        parsed(text)
    assert place is None or (raised.value.line, raised.value.column) == place
    assert "⟨here⟩" in raised.value.excerpt


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT * FROM delta.`/p`", [("delta./p", True)]),
        ("SELECT * FROM delta.`/p` x JOIN db.t AS y ON x.a = y.a, u", [("delta./p", False), ("db.t", False), ("u", True)]),
        ("SELECT `delta`.`x` FROM delta.`s3://b/p q` delta WHERE a LIKE 'delta.`/p`'", [("delta.s3://b/p q", False)]),
        ("SELECT extract(YEAR FROM delta.`x`), trim(BOTH 'x' FROM delta.y) FROM t", [("t", True)]),
        ("SELECT a IS NOT DISTINCT FROM delta.`x` FROM t", [("t", True)]),
        ("WITH c AS (SELECT * FROM p) SELECT c.a FROM c LEFT JOIN q USING (a) WHERE a IN (SELECT a FROM r)", [("p", True), ("c", True), ("q", True), ("r", True)]),
        ("FROM t |> WHERE a > 1 |> JOIN u ON true", [("t", True), ("u", True)]),
        ("SELECT * FROM (SELECT 1) x, (a JOIN b) LIMIT 5", [("a", True), ("b", True)]),
        ("SELECT * FROM t TABLESAMPLE (5 ROWS) x", [("t", False)]),
        ("SELECT * FROM range(5), LATERAL explode(a), t", [("t", True)]),
        ("TABLE t UNION ALL TABLE u", [("t", False), ("u", False)]),
        ("SELECT a, b FROM t GROUP BY a, c ORDER BY d, e", [("t", True)]),
        ("SELECT CASE WHEN x THEN 1 END FROM t@v5", [("t@v5", True)]),
        ("EXPLAIN SELECT * FROM t", [("t", True)]),
        ("FROM stream, stream AS s JOIN STREAM t x, STREAM(db.u), stream WHERE a", [("stream", True), ("stream", False), ("t", False), ("db.u", True), ("stream", True)]),
        ("SHOW COLUMNS FROM t", []),
        ("SELECT * FROM IDENTIFIER('db.t') x, 1u", [("db.t", False), ("1u", True)]),
        ("SELECT * FROM IDENTIFIER(lower('T')) x JOIN u", [("u", True)]),
        ("SELECT a.from, b, a.join, c FROM t", [("t", True)]),
        ("SELECT f(from, a), max(from), b FROM t with, u AS from, v", [("t", False), ("u", False), ("v", True)]),
        ("SELECT * FROM (WITH a AS (FROM b) FROM a) with (x), c", [("b", True), ("a", True), ("c", True)]),
        ("SELECT k FROM t LATERAL VIEW OUTER explode(m) e AS k, v LATERAL VIEW explode(n) AS x, y WHERE a IN (SELECT b FROM u)", [("t", True), ("u", True)]),
        ("SELECT trim(FROM a), trim(BOTH FROM b), trim(FROM (SELECT c FROM d)), substring(e FROM f), overlay(g PLACING h FROM i) FROM t", [("d", True), ("t", True)]),
    ],
)  # fmt: skip
def test_tables_of_queries(text: str, found: list[tuple[str, bool]]) -> None:
    tokens = tokens_of(text)
    assert [(".".join(r.name), r.needs_alias) for r in relations(tokens)] == found


def test_options_of_tables() -> None:
    text = "SELECT * FROM t WITH ('a' = 'b', c.d 5) AS x, u VERSION AS OF 1 WITH (e = true), v with JOIN w"
    tokens = tokens_of(text)
    found = list(relations(tokens))
    assert [(each.name, each.options, each.needs_alias) for each in found] == [
        (("t",), {"a": "b", "c.d": "5"}, False),
        (("u",), {"e": "true"}, True),
        (("v",), None, False),
        (("w",), None, True),
    ]
    assert text[found[0].end :].startswith(" AS x")


@pytest.mark.parametrize(
    ("clause", "version", "time", "has_alias"),
    [
        ("VERSION AS OF 3", "3", None, False),
        ("VERSION AS OF '3' AS x", "'3'", None, True),
        ("FOR SYSTEM_VERSION AS OF 3 x", "3", None, True),
        ("TIMESTAMP AS OF '2024-01-01' x", None, "'2024-01-01'", True),
        ("TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY", None, "current_timestamp() - INTERVAL 1 DAY", False),
        ("TIMESTAMP AS OF current_timestamp() - INTERVAL '1' HOURS WHERE a", None, "current_timestamp() - INTERVAL '1' HOURS", False),
        ("FOR TIMESTAMP AS OF TIMESTAMP '2024-01-01 00:00:00' AS x", None, "TIMESTAMP '2024-01-01 00:00:00'", True),
        ("TIMESTAMP AS OF '2024-01-01'::timestamp x", None, "'2024-01-01'::timestamp", True),
        ("TIMESTAMP AS OF (SELECT max(t) FROM u)", None, "(SELECT max(t) FROM u)", False),
    ],
)  # fmt: skip
def test_time_travel(clause: str, version: str | None, time: str | None, has_alias: bool) -> None:
    text = f"SELECT * FROM delta.`/p` {clause}"
    tokens = tokens_of(text)
    first = next(relations(tokens))
    assert (first.version and first.version.text) == version
    assert (first.timestamp and first.timestamp.text) == time
    assert first.needs_alias is not has_alias
    end = text.index(version or time or "") + len(version or time or "")
    assert first.end == end


def _common_names(text: str) -> dict[str, list[range]]:
    tokens = tokens_of(text)
    return common_names(text, tokens.tokens)


def test_names_of_common_table_expressions() -> None:
    text = "WITH a AS (SELECT 1), B (x, y) AS (SELECT 1, 2) SELECT * FROM a JOIN b"
    starts = {"a": text.index(", B"), "b": text.rindex(" SELECT")}
    known = {name: [range(start, len(text))] for name, start in starts.items()}
    assert _common_names(text) == known, "inside of its own query, a name is a table's"
    text = "SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c) JOIN c WINDOW w AS (ORDER BY a)"
    known = {"c": [range(text.index(" SELECT * FROM c"), text.index(" JOIN"))]}
    assert _common_names(text) == known, "and so it is outside of the query that names it"
    text = "WITH RECURSIVE c (n) MAX RECURSION LEVEL 9 AS (SELECT n FROM c) SELECT * FROM c"
    assert _common_names(text) == {"c": [range(text.index("c (n)"), len(text))]}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("WITH a (SELECT 1 AS x), b (x) (FROM a) SELECT * FROM a, b", ["a", "b"]),
        ("WITH a ((SELECT 1)) (SELECT * FROM a)", ["a"]),
        ("WITH a AS (SELECT case FROM t), b AS (SELECT CASE WHEN a THEN (1) END) TABLE b", ["a", "b"]),
        ("WITH a (TABLE b) SELECT * FROM (WITH c (values) (SELECT 1) SELECT * FROM c), a", ["a", "c"]),
        ("WITH RECURSIVE a MAX RECURSION LEVEL 5 (SELECT 1), b AS (SELECT 2) TABLE a", ["a", "b"]),
        ("SELECT s.with, a (SELECT 1) FROM t WITH ('x' = 'y'), b AS with JOIN c (x, 5)", []),
    ],
)  # fmt: skip
def test_names_may_be_given_without_as(text: str, names: list[str]) -> None:
    assert sorted(_common_names(text)) == names


@pytest.mark.parametrize("comment", ["-- \\\n", "{# x #}"])
def test_comments_that_are_others_for_spark_are_not_passed_over(comment: str) -> None:
    """Texts whose comments Spark reads in another way are not understood: for Spark, a comment goes
    on after a backslash at the end of its line, and DELETE would have no condition.
    """
    assert tokenize(f"DELETE FROM t {comment} WHERE a") is None
    assert tokenize("DELETE FROM t /* a /* b */ */ -- \\") is not None


def test_parameters() -> None:
    text = "DELETE FROM {name} WHERE a = :a AND b IN (?, ':a') AND c = :b"
    tokens = tokens_of(text)
    assert bind_parameters(tokens, {"a": "it's", "b": None}, {}) == (
        "DELETE FROM {name} WHERE a = CAST(X'69742773' AS string) AND b IN (?, ':a') AND c = NULL"
    )
    assert bind_parameters(tokens, [2**40], {"name": 1.5}) == (
        "DELETE FROM 1.5D WHERE a = :a AND b IN (1099511627776L, ':a') AND c = :b"
    )
    with pytest.raises(StatementSyntaxError):
        bind_parameters(tokens, [], {})
    with pytest.raises(InvalidArgumentError):
        bind_parameters(tokens, [object()], {})


@pytest.mark.parametrize(
    ("text", "value", "bound"),
    [
        ("a = 10-? AND b", -5, "a = 10-(-5) AND b"),
        ("a = 10-? AND b", -1.5, "a = 10-(-1.5D) AND b"),
        ("a = 10-? AND b", Decimal("-5"), "a = 10-(-5BD) AND b"),
        ("a=?AND b", 5, "a=5 AND b"),
        ("a = b OR?", True, "a = b OR TRUE"),
        ("a = ?::int AND b", 5, "a = 5::int AND b"),
        ("a = ?::int AND b", -5, "a = (-5)::int AND b"),
    ],
)
def test_a_parameter_stays_one_value(text: str, value: object, bound: str) -> None:
    """``10--5`` would begin a comment, and ``5AND`` be the name of a column."""
    tokens = tokens_of(text)
    assert bind_parameters(tokens, [value], {}) == bound


def test_a_name_in_braces_inside_of_quotes_is_refused() -> None:
    for text in ("a = '{x}'", "a = 'b {x!s}'", "delta.`/{x}`"):
        tokens = tokens_of(text)
        with pytest.raises(StatementSyntaxError):
            check_quoted(tokens, {"x": 5})
    text = "a = '{y} {{x}}' AND b = {x}"
    tokens = tokens_of(text)
    assert bind_parameters(tokens, None, {"x": 5}) == "a = '{y} {{x}}' AND b = 5"
