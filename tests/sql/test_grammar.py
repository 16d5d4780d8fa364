"""Delta's statements and the tables of queries, without Spark."""

from __future__ import annotations

import pytest

from sparkdelta.exceptions import InvalidArgumentError, StatementSyntaxError
from sparkdelta.sql import statements as s
from sparkdelta.sql.grammar import Parser
from sparkdelta.sql.parameters import bound_text
from sparkdelta.sql.relations import common_names, relations
from sparkdelta.sql.tokens import tokenize
from sparkdelta.table.write.merge_clauses import Clause

P = ("delta", "/p q")


def parsed(text: str) -> s.Statement | None:
    tokens = tokenize(text)
    assert tokens is not None
    return Parser(text, tokens).parse()


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
        ("UPDATE t AS u SET u.a = DEFAULT", s.Update(("t",), "u", {"u.a": "DEFAULT"}, None)),
        ("INSERT INTO TABLE t (a, b) VALUES (1, 'x')", s.Insert(target=("t",), query="VALUES (1, 'x')", columns=("a", "b"))),
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
        ("VACUUM t RETAIN 0 HOURS DRY RUN", s.Unsupported(("t",), "VACUUM")),
        ("SHOW TABLES", None),
        ("DESCRIBE TABLE t", None),
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
        "s w": "w", "(SELECT 1)": None,
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
        ("DESCRIBE HISTORY t LIMIT x", (1, 26)),
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
    ],
)  # fmt: skip
def test_tables_of_queries(text: str, found: list[tuple[str, bool]]) -> None:
    tokens = tokenize(text)
    assert tokens is not None
    assert [(".".join(r.name), r.needs_alias) for r in relations(text, tokens)] == found


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


def test_names_of_common_table_expressions() -> None:
    text = "WITH a AS (SELECT 1), B (x, y) AS (SELECT 1, 2) SELECT * FROM a JOIN b"
    tokens = tokenize(text)
    assert tokens is not None
    assert common_names(tokens) == {"a", "b"}


def test_parameters() -> None:
    text = "DELETE FROM {name} WHERE a = :a AND b IN (?, ':a') AND c = :b"
    tokens = tokenize(text)
    assert tokens is not None
    assert bound_text(text, tokens, {"a": "it's", "b": None}, {}) == (
        "DELETE FROM {name} WHERE a = CAST(X'69742773' AS string) AND b IN (?, ':a') AND c = NULL"
    )
    assert bound_text(text, tokens, [2**40], {"name": 1.5}) == (
        "DELETE FROM 1.5D WHERE a = :a AND b IN (1099511627776L, ':a') AND c = :b"
    )
    with pytest.raises(StatementSyntaxError):
        bound_text(text, tokens, [], {})
    with pytest.raises(InvalidArgumentError):
        bound_text(text, tokens, [object()], {})
