"""Delta's statements and the tables of queries, without Spark."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sparkdelta.exceptions import InvalidArgumentError, StatementSyntaxError
from sparkdelta.operations.merge.merge_clauses import Clause
from sparkdelta.operations.write.create_table import Creation
from sparkdelta.sql.grammar import statement_values as s
from sparkdelta.sql.grammar.parameters import bind_parameters, check_quoted
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.relations import common_names, relations
from sparkdelta.sql.grammar.statement_grammar import parse
from sparkdelta.sql.grammar.tokens import tokenize

P = ("delta", "/p q")


CONSTRAINT = "a constraint in CREATE TABLE; use ALTER TABLE ... ADD CONSTRAINT ... CHECK"


def parsed(text: str) -> s.Statement | None:
    tokens = tokenize(text)
    assert tokens is not None
    return parse(Parser(text, tokens))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("DELETE FROM delta.`/p q`;", s.Delete(P, None, None)),
        ("delete from db.t AS x where x.a IN (1, 2) -- why", s.Delete(("db", "t"), "x", "x.a IN (1, 2)")),
        ("DELETE FROM t x WHERE a = ';'", s.Delete(("t",), "x", "a = ';'")),
        (
            "UPDATE delta.`/p q` SET a = CASE WHEN b, c THEN 1 END, `x y`.c = f(1, 2) WHERE a <=> 2Y",
            s.Update(P, None, {"a": "CASE WHEN b, c THEN 1 END", "`x y`.c": "f(1, 2)"}, "a <=> 2Y"),
        ),
        ("DELETE FROM t WHERE (start < 1 AND end > 2)", s.Delete(("t",), None, "(start < 1 AND end > 2)")),
        ("UPDATE t SET a = f(end, CASE WHEN end > 1 THEN s.end END), case = t.case WHERE b", s.Update(("t",), None, {"a": "f(end, CASE WHEN end > 1 THEN s.end END)", "case": "t.case"}, "b")),
        ("CONVERT TO DELTA parquet.`/p q` NO STATISTICS PARTITIONED BY (a INT, b DECIMAL(5, 2))", s.Convert(("parquet", "/p q"), "a INT, b DECIMAL(5, 2)", False)),
        (
            "INSERT INTO t REPLACE WHERE a IS DISTINCT FROM b.from FROM s SELECT 1",
            s.Insert(target=("t",), query="FROM s SELECT 1", replace_where="a IS DISTINCT FROM b.from"),
        ),
        (
            "INSERT INTO t REPLACE USING (a, `b c`) (SELECT 1) UNION (SELECT 2)",
            s.Insert(target=("t",), query="(SELECT 1) UNION (SELECT 2)", replace_using=("a", "`b c`")),
        ),
        (
            "INSERT INTO TABLE t AS x BY NAME REPLACE ON x.a = s.a AND trim(x.b) <> ')' (SELECT * FROM q) AS s",
            s.Insert(target=("t",), query="(SELECT * FROM q)", replace_on="x.a = s.a AND trim(x.b) <> ')'", alias="x", by_name=True, query_alias="s"),
        ),
        (
            "INSERT WITH SCHEMA EVOLUTION INTO t x REPLACE ON (x.a) IN (1) (VALUES (1)) LIMIT 1",
            s.Insert(target=("t",), query="(VALUES (1)) LIMIT 1", replace_on="(x.a) IN (1)", alias="x", evolves=True),
        ),
        (
            "INSERT INTO t REPLACE ON t.a IN (SELECT a FROM q) AND NOT EXISTS (SELECT 1) OR t.b BETWEEN (SELECT 1) AND 2 (SELECT b) s",
            s.Insert(target=("t",), query="(SELECT b)", replace_on="t.a IN (SELECT a FROM q) AND NOT EXISTS (SELECT 1) OR t.b BETWEEN (SELECT 1) AND 2", query_alias="s"),
        ),
        ("INSERT INTO t REPLACE ON t.a = (SELECT max(a) FROM q) SELECT b", s.Insert(target=("t",), query="SELECT b", replace_on="t.a = (SELECT max(a) FROM q)")),
        ("INSERT INTO t REPLACE ON t.a = b FROM q SELECT b", s.Insert(target=("t",), query="FROM q SELECT b", replace_on="t.a = b")),
        ("CONVERT TO DELTA parquet.`/p`", s.Convert(("parquet", "/p"), None, True)),
        ("ALTER TABLE t CHANGE COLUMN a a INT NOT NULL", s.Unsupported(("t",), "CHANGE COLUMN with NOT NULL or DEFAULT")),
        ("UPDATE t AS u SET u.a = DEFAULT", s.Update(("t",), "u", {"u.a": "DEFAULT"}, None)),
        ("INSERT INTO TABLE t (a, b) VALUES (1, 'x')", s.Insert(target=("t",), query="VALUES (1, 'x')", columns=("a", "b"))),
        (
            "INSERT INTO t WITH ('mergeSchema' = 'true', txnVersion 5, a.b = TRUE) PARTITION (d = 1) (a) WITH q AS (SELECT 1) TABLE q",
            s.Insert(target=("t",), query="WITH q AS (SELECT 1) TABLE q", columns=("a",), partition={"d": "1"}, options={"mergeSchema": "true", "txnVersion": "5", "a.b": "true"}),
        ),
        (
            "INSERT INTO t AS x WITH ('a' = 'b') REPLACE ON x.a = 1 SELECT 1",
            s.Insert(target=("t",), query="SELECT 1", alias="x", replace_on="x.a = 1", options={"a": "b"}),
        ),
        ("INSERT INTO t BY NAME SELECT 1 AS a", s.Insert(target=("t",), query="SELECT 1 AS a", by_name=True)),
        ("INSERT WITH SCHEMA EVOLUTION INTO t (SELECT 1)", s.Insert(target=("t",), query="(SELECT 1)", evolves=True)),
        (
            "INSERT OVERWRITE TABLE t PARTITION (d = '2024', e) SELECT a FROM s",
            s.Insert(target=("t",), query="SELECT a FROM s", overwrites=True, partition={"d": "'2024'", "e": None}),
        ),
        (
            "INSERT INTO t REPLACE WHERE d = 1 AND e IN (2) WITH q AS (SELECT 1) SELECT * FROM q",
            s.Insert(target=("t",), query="WITH q AS (SELECT 1) SELECT * FROM q", replace_where="d = 1 AND e IN (2)"),
        ),
        ("OPTIMIZE delta.`/p q` WHERE d >= '2024' ZORDER BY (a, b.c)", s.Optimize(P, "d >= '2024'", ("a", "b.c"), False)),
        ("OPTIMIZE '/p q' FULL", s.Optimize(P, None, None, True)),
        ("REORG TABLE t WHERE a = 1 APPLY (PURGE)", s.Reorg(("t",), "a = 1")),
        ("RESTORE TABLE t TO VERSION AS OF 3", s.Restore(("t",), 3, None)),
        ("RESTORE t TO TIMESTAMP AS OF now() - INTERVAL 1 DAY", s.Restore(("t",), None, "now() - INTERVAL 1 DAY")),
        ("DESC HISTORY '/p q' LIMIT 5", s.DescribeHistory(P, 5)),
        ("DESCRIBE DETAIL delta.`/p q`", s.DescribeDetail(P)),
        ("VACUUM '/p q' LITE RETAIN 0.5 HOURS DRY RUN", s.Vacuum(target=P, mode="lite", retention_hours=0.5, dry_run=True)),
        ("VACUUM t USING INVENTORY (SELECT * FROM inv) FULL", s.Vacuum(target=("t",), inventory="(SELECT * FROM inv)")),
        ("TRUNCATE TABLE t", s.Truncate(("t",))),
        ("ALTER TABLE t SET TBLPROPERTIES ('it''s' = \"a\"\"b'\" )", s.Alter(target=("t",), method="set_properties", values=({"it's": "a\"b'"},), options={})),
        ("FSCK REPAIR TABLE delta.`/p q` DRY RUN", s.Repair(P, True)),
        ("SHOW COLUMNS FROM t IN db", s.ShowColumns(("db", "t"))),
        ("SHOW CREATE TABLE t AS SERDE", s.Unsupported(("t",), "SHOW CREATE TABLE")),
        ("CREATE TABLE IF NOT EXISTS t LIKE delta.`/p q` LOCATION '/q' TBLPROPERTIES ('a' = 'b')", s.CreateLike(target=("t",), source=P, creation=Creation.CREATE_IF_NOT_EXISTS, location="/q", properties={"a": "b"})),
        *[(f"CREATE TABLE t ({columns}) USING delta", s.Unsupported(("t",), CONSTRAINT)) for columns in (
            "a INT PRIMARY KEY", "a INT NOT NULL CHECK (a > 0)", "a INT, CONSTRAINT c CHECK (a > 0)", "a INT, UNIQUE (a)", "a INT, FOREIGN KEY (a) REFERENCES u (a)",
        )],
        ("CREATE TABLE t (a INT, check INT, constraint STRING) USING delta", s.CreateTable(target=("t",), creation=Creation.CREATE, provider="delta", columns=(
            s.ColumnText(name="a", data_type="INT"), s.ColumnText(name="check", data_type="INT"), s.ColumnText(name="constraint", data_type="STRING"),
        ))),
        ("INSERT OVERWRITE t PARTITION (d = CAST(X'61' AS string), e = -1.5, f = DATE '2024-01-01') SELECT 1", s.Insert(target=("t",), query="SELECT 1", overwrites=True, partition={"d": "CAST(X'61' AS string)", "e": "-1.5", "f": "DATE '2024-01-01'"})),
        ("CREATE TABLE t (a STRUCT<b: INT, c: MAP<STRING, ARRAY<INT>>> NOT NULL COMMENT 'x', `d e` DECIMAL(5, 2) DEFAULT (1 + 2), g DATE GENERATED ALWAYS AS (CAST(a.b AS DATE)), i BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH -5 INCREMENT BY 2)) USING delta PARTITIONED BY (g) LOCATION '/p' TBLPROPERTIES ('delta.appendOnly' = 'true', delta.x = false, y = 3) COMMENT 'hi'", s.CreateTable(
            target=("t",), creation=Creation.CREATE, provider="delta", partition_by=("g",), location="/p", comment="hi",
            properties={"delta.appendOnly": "true", "delta.x": "false", "y": "3"},
            columns=(
                s.ColumnText(name="a", data_type="STRUCT<b: INT, c: MAP<STRING, ARRAY<INT>>>", nullable=False, comment="x"),
                s.ColumnText(name="`d e`", data_type="DECIMAL(5, 2)", default="(1 + 2)"),
                s.ColumnText(name="g", data_type="DATE", generated="CAST(a.b AS DATE)"),
                s.ColumnText(name="i", data_type="BIGINT", identity=(-5, 2, True)),
            ),
        )),
        ("CREATE TABLE t USING delta PARTITIONED BY (`a.b`, `c``d`) AS SELECT 1", s.CreateTable(target=("t",), creation=Creation.CREATE, provider="delta", partition_by=("a.b", "c`d"), query="SELECT 1")),
        ("CREATE OR REPLACE TABLE delta.`/p q` USING DELTA CLUSTER BY (a, b) AS SELECT 1", s.CreateTable(target=P, creation=Creation.CREATE_OR_REPLACE, provider="delta", cluster_by=("a", "b"), query="SELECT 1")),
        ("CREATE TABLE IF NOT EXISTS t USING delta LOCATION '/p'", s.CreateTable(target=("t",), creation=Creation.CREATE_IF_NOT_EXISTS, provider="delta", location="/p")),
        ("CREATE TABLE t SHALLOW CLONE delta.`/p q` VERSION AS OF 3 LOCATION '/q'", s.Clone(target=("t",), source=P, deep=False, creation=Creation.CREATE, version=3, location="/q")),
        ("DROP TABLE IF EXISTS t", s.DropTable(("t",))),
        ("ALTER TABLE t ADD COLUMNS (c INT COMMENT 'x' AFTER a, s.d STRING FIRST)", s.AddColumns(("t",), (s.ColumnText(name="c", data_type="INT", comment="x", after="a"), s.ColumnText(name="s.d", data_type="STRING", is_first=True)))),
        ("ALTER TABLE t RENAME COLUMN a TO b", s.Alter(("t",), "rename_column", ("a", "b"), {})),
        ("ALTER TABLE t DROP COLUMNS (a, b.c)", s.Alter(("t",), "drop_columns", ("a", "b.c"), {"if_exists": False})),
        ("ALTER TABLE t ALTER COLUMN a TYPE BIGINT", s.Alter(("t",), "change_column", ("a", "BIGINT"), {})),
        ("ALTER TABLE t ALTER COLUMN a DROP NOT NULL", s.Alter(("t",), "change_column", ("a",), {"drop_not_null": True})),
        ("ALTER TABLE t ALTER COLUMN a SET NOT NULL", s.Alter(("t",), "change_column", ("a",), {"set_not_null": True})),
        ("ALTER TABLE t ALTER COLUMN a SYNC IDENTITY", s.Alter(("t",), "sync_identity", ("a",), {})),
        ("ALTER TABLE t REPLACE COLUMNS (a INT, `b c` STRING COMMENT 'x')", s.ReplaceColumns(("t",), (s.ColumnText(name="a", data_type="INT"), s.ColumnText(name="`b c`", data_type="STRING", comment="x")))),
        ("ALTER TABLE t CHANGE COLUMN a a BIGINT COMMENT 'x' AFTER c", s.Alter(("t",), "change_column", ("a", "BIGINT"), {"comment": "x", "first": False, "after": "c"})),
        ("ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a', b.c)", s.Alter(("t",), "unset_properties", (["a", "b.c"],), {"if_exists": True})),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0 AND b <> 'x')", s.Alter(("t",), "add_constraint", ("c", "a > 0 AND b <> 'x'"), {})),
        ("ALTER TABLE t DROP FEATURE deletionVectors TRUNCATE HISTORY", s.DropFeature(("t",), "deletionVectors", True)),
        ("ALTER TABLE t CLUSTER BY NONE", s.Alter(("t",), "cluster_by", (), {})),
        ("ALTER TABLE t RENAME TO u", s.RenameTable(("t",), ("u",))),
        ("ALTER TABLE t SET LOCATION '/q'", s.SetLocation(("t",), "/q")),
        ("ALTER TABLE t CHANGE a SYNC IDENTITY", s.Alter(("t",), "sync_identity", ("a",), {})),
        ("GENERATE symlink_format_manifest FOR TABLE delta.`/p q`", s.Generate(P, "symlink_format_manifest")),
        ("CREATE TEMP VIEW v AS SELECT 1", None),
        ("SHOW TABLES", None),
        ("DESCRIBE TABLE t", s.DescribeTable(("t",), False)),
        ("DESC FORMATTED t", s.DescribeTable(("t",), True)),
        ("DESCRIBE EXTENDED t a.b", s.DescribeColumn(("t",), ("a", "b"), True)),
        ("DESC t a", s.DescribeColumn(("t",), ("a",), False)),
        (
            "DESCRIBE t PARTITION (p = 1)",
            s.Unsupported(("t",), "DESCRIBE of a partition, or AS JSON"),
        ),
        ("REFRESH TABLE t", s.Refresh(("t",))),
        ("CACHE TABLE delta.`/p q`", s.CacheTable(P, False, {})),
        ("CACHE LAZY TABLE t OPTIONS ('storageLevel' 'DISK_ONLY')", s.CacheTable(("t",), True, {"storageLevel": "DISK_ONLY"})),
        ("CACHE TABLE t AS SELECT 1", s.Unsupported(("t",), "CACHE TABLE of a query by the name of a Delta table")),
        ("UNCACHE TABLE IF EXISTS db.t", s.UncacheTable(("db", "t"))),
        ("SHOW TABLE EXTENDED IN db LIKE 't' PARTITION (p = 1)", s.Unsupported(("db", "t"), "SHOW TABLE EXTENDED of a partition")),
        ("SHOW TABLE EXTENDED LIKE 't*'", None),
        ("ANALYZE TABLE t COMPUTE STATISTICS", s.Unsupported(("t",), "ANALYZE TABLE")),
        ("SHOW PARTITIONS t", s.ShowPartitions(("t",), {})),
        (
            "SHOW PARTITIONS delta.`/p q` PARTITION (p = DATE'2024-01-01', q = NULL)",
            s.ShowPartitions(P, {"p": "DATE'2024-01-01'", "q": "NULL"}),
        ),
        ("SHOW TBLPROPERTIES delta.`/p q` ('a.b')", s.ShowProperties(P, "a.b")),
        ("DELETE FROM IDENTIFIER('db.' || CAST(X'60742078602e75' AS string)) x", s.Delete(("db", "t x", "u"), "x", None)),
        ("DELETE FROM db.2024_sales WHERE 1e5 > 2Y", s.Delete(("db", "2024_sales"), None, "1e5 > 2Y")),
        (r"ALTER TABLE t ALTER COLUMN a COMMENT 'x\ny\u0041\101\%\q''z'", s.Alter(("t",), "change_column", ("a",), {"comment": "x\nyAA\\%q'z"})),
        (r"ALTER TABLE t SET TBLPROPERTIES (a = 3.5, b = r'\n')", s.Alter(("t",), "set_properties", ({"a": "3.5", "b": "\\n"},), {})),
        ("UPDATE t SET a == 1 WHERE a == 2", s.Update(("t",), None, {"a": "1"}, "a == 2")),
        (
            "WITH c AS (SELECT ')'), d (x) AS (TABLE c) INSERT INTO t SELECT * FROM d",
            s.Insert(target=("t",), query="WITH c AS (SELECT ')'), d (x) AS (TABLE c) (SELECT * FROM d)"),
        ),
        ("WITH c AS (SELECT 'INSERT') SELECT * FROM c", None),
        (
            "WITH RECURSIVE c (n) MAX RECURSION LEVEL 5 AS (SELECT 1), d (TABLE c) INSERT INTO t TABLE d",
            s.Insert(target=("t",), query="WITH RECURSIVE c (n) MAX RECURSION LEVEL 5 AS (SELECT 1), d (TABLE c) (TABLE d)"),
        ),
        ("INSERT INTO t REPLACE WHERE a > 1 (SELECT 1)", s.Insert(target=("t",), query="(SELECT 1)", replace_where="a > 1")),
        ("CREATE TABLE t USING delta PARTITIONED BY (b DATE, `c d` STRING) OPTIONS (PATH '/p')", s.CreateTable(target=("t",), creation=Creation.CREATE, provider="delta", partition_by=("b", "c d"), location="/p", columns=(
            s.ColumnText(name="b", data_type="DATE"), s.ColumnText(name="`c d`", data_type="STRING"),
        ))),
        ("ALTER TABLE t ADD COLUMNS a INT, b STRING FIRST", s.AddColumns(("t",), (s.ColumnText(name="a", data_type="INT"), s.ColumnText(name="b", data_type="STRING", is_first=True)))),
        ("ALTER TABLE t DROP COLUMN a, b.c", s.Alter(("t",), "drop_columns", ("a", "b.c"), {"if_exists": False})),
        ("ALTER TABLE t CHANGE a TYPE BIGINT", s.Alter(("t",), "change_column", ("a", "BIGINT"), {})),
        ("ALTER TABLE t CHANGE comment comment STRING", s.Alter(("t",), "change_column", ("comment", "STRING"), {"comment": None, "first": False, "after": None})),
        ("ALTER TABLE t ALTER a SET DEFAULT f(1, 2), b.c TYPE DECIMAL(5, 2), d FIRST", s.ChangeColumns(("t",), (
            s.Alter(("t",), "change_column", ("a",), {"default": "f(1, 2)"}),
            s.Alter(("t",), "change_column", ("b.c", "DECIMAL(5, 2)"), {}),
            s.Alter(("t",), "change_column", ("d",), {"first": True}),
        ))),
        ("RESTORE t FOR SYSTEM_VERSION AS OF '3'", s.Restore(("t",), 3, None)),
    ],
)  # fmt: skip
def test_statements(text: str, statement: s.Statement | None) -> None:
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
    assert merge == s.Merge(
        P,
        "t",
        "(SELECT * FROM v WHERE x ON y) s",
        "s",
        "t.id = s.id AND CASE WHEN true THEN true END",
        (
            s.MergeAction(Clause.MATCHED_DELETE, "s.d", None),
            s.MergeAction(
                Clause.MATCHED_UPDATE,
                None,
                {"t.a": "s.a", "b": "CASE WHEN s.b THEN 1 ELSE 2 END"},
            ),
            s.MergeAction(
                Clause.NOT_MATCHED_INSERT, "s.x > 1", {"id": "s.id", "`a b`": "f(s.a, 1)"}
            ),
            s.MergeAction(Clause.NOT_MATCHED_INSERT, None, None),
            s.MergeAction(Clause.NOT_MATCHED_BY_SOURCE_UPDATE, "t.a > 5", {"a": "0"}),
            s.MergeAction(Clause.NOT_MATCHED_BY_SOURCE_DELETE, None, None),
        ),
        True,
    )
    sources = {
        "db.s": "s", "delta.`/s` VERSION AS OF 3 AS u": "u", "(SELECT 1) AS v": "v", "{df}": None,
        "s w": "w", "(SELECT 1)": None, "(SELECT 1) AS x (a, b)": "x", "s@v3": "s",
    }  # fmt: skip
    for text, alias in sources.items():
        found = parsed(f"MERGE INTO t USING {text} ON a = b WHEN MATCHED THEN DELETE")
        assert isinstance(found, s.Merge)
        assert (found.source, found.source_alias) == (text, alias)


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
        ("CREATE OR REPLACE TABLE t LIKE s", None),
        ("SHOW COLUMNS t", (1, 14)),
        ("SHOW PARTITIONS t PARTITION (p)", (1, 32)),
        ("DESCRIBE t a b", (1, 14)),
        ("MERGE INTO t USING a s JOIN b ON x WHEN MATCHED THEN DELETE", (1, 24)),
        ("VACUUM t LITE FULL", (1, 15)),
        ("CREATE TABLE t (a INT) USING delta OPTIONS (x 'y')", (1, 44)),
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
def test_what_is_understood_in_part_is_refused(text: str, place: tuple[int, int] | None) -> None:
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
    tokens = tokenize(text)
    assert tokens is not None
    assert [(".".join(r.name), r.needs_alias) for r in relations(text, tokens)] == found


def test_options_of_tables() -> None:
    text = "SELECT * FROM t WITH ('a' = 'b', c.d 5) AS x, u VERSION AS OF 1 WITH (e = true), v with JOIN w"
    tokens = tokenize(text)
    assert tokens is not None
    found = relations(text, tokens)
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
    tokens = tokenize(text)
    assert tokens is not None
    first = relations(text, tokens)[0]
    assert (first.version and first.version.text) == version
    assert (first.timestamp and first.timestamp.text) == time
    assert first.needs_alias is not has_alias
    end = text.index(version or time or "") + len(version or time or "")
    assert first.end == end


def _common_names(text: str) -> dict[str, list[range]]:
    tokens = tokenize(text)
    assert tokens is not None
    return common_names(text, tokens)


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
    tokens = tokenize(text)
    assert tokens is not None
    assert bind_parameters(text, tokens, {"a": "it's", "b": None}, {}) == (
        "DELETE FROM {name} WHERE a = CAST(X'69742773' AS string) AND b IN (?, ':a') AND c = NULL"
    )
    assert bind_parameters(text, tokens, [2**40], {"name": 1.5}) == (
        "DELETE FROM 1.5D WHERE a = :a AND b IN (1099511627776L, ':a') AND c = :b"
    )
    with pytest.raises(StatementSyntaxError):
        bind_parameters(text, tokens, [], {})
    with pytest.raises(InvalidArgumentError):
        bind_parameters(text, tokens, [object()], {})


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
    tokens = tokenize(text)
    assert tokens is not None
    assert bind_parameters(text, tokens, [value], {}) == bound


def test_a_name_in_braces_inside_of_quotes_is_refused() -> None:
    for text in ("a = '{x}'", "a = 'b {x!s}'", "delta.`/{x}`"):
        tokens = tokenize(text)
        assert tokens is not None
        with pytest.raises(StatementSyntaxError):
            check_quoted(text, tokens, {"x": 5})
    text = "a = '{y} {{x}}' AND b = {x}"
    tokens = tokenize(text)
    assert tokens is not None
    assert bind_parameters(text, tokens, None, {"x": 5}) == "a = '{y} {{x}}' AND b = 5"
