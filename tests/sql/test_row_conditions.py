"""The terms of WHERE by which the files of a table are chosen."""

from __future__ import annotations

import pytest

from sparkdelta.sql.grammar.relations import relations
from sparkdelta.sql.grammar.row_conditions import row_conditions
from sparkdelta.sql.grammar.tokens import tokenize


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("SELECT * FROM t WHERE id = 5", {"t": ["id = 5"]}),
        ("SELECT * FROM t VERSION AS OF 3 WHERE t.s.f = 'a.b'", {"t": ["s.f = 'a.b'"]}),
        (
            "SELECT * FROM t x WHERE x.id = 5 AND b BETWEEN 1 AND 3 GROUP BY a",
            {"t": ["id = 5", "b BETWEEN 1 AND 3"]},
        ),
        (
            "SELECT * FROM db.t AS x JOIN u y ON x.id = y.id WHERE x.a = 1 AND y.b = 2 AND c = 3",
            {"t": ["a = 1", "c = 3"], "u": ["b = 2", "c = 3"]},
        ),
        ("SELECT * FROM t, u WHERE t.a = u.b AND t.c = 1", {"t": ["c = 1"], "u": []}),
        ("SELECT * FROM t LEFT JOIN u ON t.id = u.id WHERE u.id IS NULL", {"t": [], "u": []}),
        ("SELECT * FROM t RIGHT JOIN u USING (id) WHERE t.a = 1", {"t": [], "u": []}),
        ("SELECT * FROM t TABLESAMPLE (5 ROWS) WHERE a = 1", {"t": []}),
        ("SELECT * FROM t PIVOT (sum(v) FOR k IN (1, 2)) WHERE k = 1", {"t": []}),
        ("SELECT * FROM t WHERE a = 1 OR b = 2 AND c = 3", {"t": ["a = 1 OR b = 2 AND c = 3"]}),
        (
            "SELECT * FROM t WHERE CASE WHEN a AND b THEN c ELSE d END AND k = 1 LIMIT 5",
            {"t": ["CASE WHEN a AND b THEN c ELSE d END", "k = 1"]},
        ),
        ("SELECT * FROM t WHERE (a = 1 OR t.b = 2)", {"t": ["(a = 1 OR b = 2)"]}),
        ("SELECT a AS x FROM t HAVING a = 1", {"t": []}),
        ("SELECT * FROM t UNION ALL SELECT * FROM u WHERE a = 1", {"t": [], "u": ["a = 1"]}),
        ("SELECT * FROM (SELECT a FROM t LIMIT 1) s WHERE a = 1", {"t": []}),
        (
            "SELECT * FROM t WHERE id IN (SELECT id FROM u WHERE u.z = 1) AND k = 2",
            {"t": ["k = 2"], "u": ["z = 1"]},
        ),
        ("SELECT * FROM t o WHERE EXISTS (SELECT 1 FROM u WHERE u.a = o.b)", {"t": [], "u": []}),
        ("FROM t |> LIMIT 1 |> WHERE a = 1", {"t": []}),
        ("SELECT * FROM t WHERE", {"t": []}),
    ],
)
def test_terms_are_conditions_on_the_rows_of_a_table(
    query: str, terms: dict[str, list[str]]
) -> None:
    text = tokenize(query)
    assert text is not None
    found = {each.name[-1]: row_conditions(text, each) for each in relations(text)}
    assert found == terms
