"""The rows of a table as a list, and what DELETE, UPDATE and MERGE make of it.

Many histories share a table, each with rows of its own, so that one statement of the package under
test carries out a statement of every history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

COLUMNS = "history INT, key INT, n INT, s STRING, part INT"
CLAUSES = [
    ("Matched", "Update"),
    ("Matched", "Delete"),
    ("NotMatched", "Insert"),
    ("NotMatched", "InsertAll"),
    ("NotMatchedBySource", "Update"),
    ("NotMatchedBySource", "Delete"),
]


class Row(NamedTuple):
    """A row; no other row of its history ever has the same key."""

    history: int
    key: int
    n: int | None = None
    s: str | None = None
    part: int | None = None


class SourceRow(NamedTuple):
    """A row of the source of a MERGE, and what a column of the table must be to match it."""

    row: Row
    match: int | None


class Change(NamedTuple):
    """A row as `_change_type` of change data has it."""

    kind: str
    row: Row


Rows = Mapping[str, Row]
"""The rows that an expression is about, by the prefix of their columns in SQL text."""


@dataclass(frozen=True)
class Expression:
    """SQL text, and the value that it has; None is null."""

    sql: str
    of: Callable[[Rows], Any]


@dataclass(frozen=True)
class Clause:
    """A clause of a MERGE, for rows for which a condition is true, and not null.

    `rows` and `action` are parts of the name of a method, as `whenMatchedUpdate`. `prefix` stands
    before the columns of a row that the clause is about.
    """

    rows: str
    action: str
    prefix: str
    condition: Expression | None
    values: Mapping[str, Expression]

    def new_values(self, rows: Rows) -> dict[str, Any]:
        return {name: value.of(rows) for name, value in self.values.items()}


@dataclass(frozen=True)
class Statement:
    """A MERGE; DELETE and UPDATE are a MERGE of no rows with one clause.

    A row of the source matches those of the table whose `column` has its value, if `condition`,
    where there is one, is true of both.
    """

    clauses: tuple[Clause, ...]
    source: tuple[SourceRow, ...] = ()
    column: str = "key"
    condition: Expression | None = None

    def matches(self, row: Row, source: SourceRow) -> bool:
        if source.match is None or getattr(row, self.column) != source.match:
            return False
        return _is_true(self.condition, {"t.": row, "s.": source.row})

    def first_clause(self, rows: str, given: Rows) -> Clause | None:
        same = (clause for clause in self.clauses if clause.rows == rows)
        return next((clause for clause in same if _is_true(clause.condition, given)), None)


def applied(statement: Statement, rows: Sequence[Row]) -> tuple[list[Row], list[Change]]:
    """The rows after a statement, and its changes."""
    after: list[Row] = []
    changes: list[Change] = []
    matched: set[SourceRow] = set()
    for row in rows:
        found = [source for source in statement.source if statement.matches(row, source)]
        matched.update(found)
        given = {"t.": row, "s.": found[0].row} if found else {"t.": row, "": row}
        clause = statement.first_clause("Matched" if found else "NotMatchedBySource", given)
        if clause is None:
            after.append(row)
        elif clause.action == "Delete":
            changes.append(Change("delete", row))
        else:
            new = row._replace(**clause.new_values(given))
            after.append(new)
            changes += [Change("update_preimage", row), Change("update_postimage", new)]
    for source in statement.source:
        given = {"s.": source.row, "": source.row}
        clause = statement.first_clause("NotMatched", given)
        if source in matched or clause is None:
            continue
        new = source.row
        if clause.action != "InsertAll":
            new = Row(new.history, new.key, **clause.new_values(given))
        after.append(new)
        changes.append(Change("insert", new))
    return after, changes


def rows_of(random: Random, history: int, count: int, first_key: int = 0) -> list[Row]:
    return [
        Row(
            history,
            key,
            random.choice([None, 0, 1, 2, 3]),
            random.choice([None, "", "a", "b"]),
            random.choice([None, 0, 0, 1, 1]),
        )
        for key in range(first_key, first_key + count)
    ]


def statements(
    random: Random, kind: str, histories: Sequence[Sequence[Row]], first_key: int
) -> list[Statement]:
    """A statement for each history: the same clauses with conditions and values of its own.

    No row has yet a key from `first_key` on.
    """
    if kind == "MERGE":
        return _merges(random, histories, first_key)
    shape = _Shape("NotMatchedBySource", kind.title(), [""], _some_columns(random))
    return [Statement((shape.clause(random),)) for _ in histories]


def all_conditions(conditions: Sequence[Expression | None], prefix: str) -> str | None:
    """One condition for all histories; None if they have none."""
    given = [
        f"({prefix}history = {number} AND ({condition.sql}))"
        for number, condition in enumerate(conditions)
        if condition is not None
    ]
    return " OR ".join(given) or None


def all_values(clauses: Sequence[Clause]) -> dict[str, str]:
    """The assignments of all histories."""
    found = {}
    for name in clauses[0].values:
        cases = (f"WHEN {n} THEN {clause.values[name].sql}" for n, clause in enumerate(clauses))
        found[name] = f"CASE {clauses[0].prefix}history {' '.join(cases)} END"
    return found


@dataclass(frozen=True)
class _Shape:
    """The parts of a clause that are the same for all histories."""

    rows: str
    action: str
    prefixes: Sequence[str]
    columns: Sequence[str]
    has_condition: bool = True

    def clause(self, random: Random) -> Clause:
        condition = _condition(random, self.prefixes) if self.has_condition else None
        values = _values(random, self.prefixes)
        chosen = {name: values[name] for name in self.columns}
        return Clause(self.rows, self.action, self.prefixes[0], condition, chosen)


def _merges(random: Random, histories: Sequence[Sequence[Row]], first_key: int) -> list[Statement]:
    shapes = _merge_shapes(random)
    column, has_condition = random.choice(["key", "key", "n"]), random.random() < 0.3
    num_known, num_others = random.choice([0, 4, 4, 4]), random.choice([0, 3, 3])
    allows_repeated = _allows_repeated(shapes) and random.random() < 0.5
    found = []
    for history, rows in enumerate(histories):
        values = {getattr(row, column) for row in rows} - {None}
        others = [number for number in range(-9, 20) if number not in values]
        matches = [
            *random.sample(sorted(values), random.randint(0, min(num_known, len(values)))),
            *random.sample([None, *others], random.randint(0, num_others)),
        ]
        if allows_repeated:
            matches += random.choices(matches, k=2) if matches else []
        given = rows_of(random, history, len(matches), first_key)
        found.append(
            Statement(
                tuple(shape.clause(random) for shape in shapes),
                tuple(map(SourceRow, given, matches)),
                column,
                _condition(random, ["t.", "s."]) if has_condition else None,
            )
        )
    return found


def _merge_shapes(random: Random) -> list[_Shape]:
    """One to four clauses; only the last ones for the same rows may have no condition."""
    chosen = random.choices(CLAUSES, k=random.randint(1, 4))
    prefixes = {
        "Matched": ["t.", "s."],
        "NotMatched": ["s.", random.choice(["s.", ""])],
        "NotMatchedBySource": ["t.", random.choice(["t.", ""])],
    }
    return [
        _Shape(
            rows,
            action,
            prefixes[rows],
            _some_columns(random),
            has_condition=rows in dict(chosen[n + 1 :]) or random.random() < 0.7,
        )
        for n, (rows, action) in enumerate(chosen)
    ]


def _allows_repeated(shapes: Sequence[_Shape]) -> bool:
    """True if several rows of the source may match the same row of the table."""
    matched = [shape for shape in shapes if shape.rows == "Matched"]
    deletes = [not shape.has_condition and shape.action == "Delete" for shape in matched]
    return deletes == [True] or all(shape.rows == "NotMatched" for shape in shapes)


def _some_columns(random: Random) -> list[str]:
    return random.sample(["n", "s", "part"], random.randint(1, 3))


def _condition(random: Random, prefixes: Sequence[str], depth: int = 2) -> Expression:
    """A condition in SQL's three-valued logic."""
    kind = random.choice(["leaf", "not", "and", "or"]) if depth else "leaf"
    if kind == "leaf":
        return _leaf(random, random.choice(prefixes), random.choice(prefixes))
    left, right = (_condition(random, prefixes, depth - 1) for _ in range(2))
    if kind == "not":
        return Expression(f"NOT ({left.sql})", lambda rows: _not(left.of(rows)))
    if kind == "and":
        text = f"({left.sql}) AND ({right.sql})"
        return Expression(text, lambda rows: _and(left.of(rows), right.of(rows)))
    text = f"({left.sql}) OR ({right.sql})"
    return Expression(text, lambda rows: _not(_and(_not(left.of(rows)), _not(right.of(rows)))))


def _leaf(random: Random, own: str, other: str) -> Expression:
    """A comparison of columns of one row, or of two, by their prefixes."""
    number, text = random.randint(0, 4), random.choice(["", "a", "b"])
    return random.choice(
        [
            Expression(f"{own}n = {number}", lambda rows: _equal(rows[own].n, number)),
            Expression(f"{own}n < {number}", lambda rows: _less(rows[own].n, number)),
            Expression(f"{own}n < {other}key", lambda rows: _less(rows[own].n, rows[other].key)),
            Expression(f"{own}n IS NULL", lambda rows: rows[own].n is None),
            Expression(f"{own}n <=> {number}", lambda rows: rows[own].n == number),
            Expression(f"{own}s >= '{text}'", lambda rows: _not(_less(rows[own].s, text))),
            Expression(f"{own}s = {other}s", lambda rows: _equal(rows[own].s, rows[other].s)),
            Expression(
                f"{own}n IN ({number}, NULL)",
                lambda rows: True if rows[own].n == number else None,
            ),
            Expression(
                f"{own}key % 3 = {number % 3}", lambda rows: rows[own].key % 3 == number % 3
            ),
            Expression(
                f"{own}part = {number % 2}", lambda rows: _equal(rows[own].part, number % 2)
            ),
        ]
    )


def _values(random: Random, prefixes: Sequence[str]) -> dict[str, Expression]:
    """A value for each column, computed from one row or from two, by their prefixes."""
    number, text = random.randint(0, 3), random.choice(["a", "b"])
    own, other = random.choice(prefixes), random.choice(prefixes)
    values = {
        "n": [
            Expression(f"{own}n + {number}", lambda rows: _plus(rows[own].n, number)),
            Expression(f"{own}n + {other}n", lambda rows: _plus(rows[own].n, rows[other].n)),
            Expression(f"{own}key", lambda rows: rows[own].key),
            Expression("CAST(NULL AS INT)", lambda rows: None),
        ],
        "s": [
            Expression(f"concat({own}s, '{text}')", lambda rows: _plus(rows[own].s, text)),
            Expression(f"concat({own}s, {other}s)", lambda rows: _plus(rows[own].s, rows[other].s)),
            Expression(
                f"CAST({own}n AS STRING)",
                lambda rows: None if rows[own].n is None else str(rows[own].n),
            ),
        ],
        "part": [
            Expression(
                f"1 - {own}part",
                lambda rows: None if rows[own].part is None else 1 - rows[own].part,
            ),
            Expression(f"{own}part", lambda rows: rows[own].part),
        ],
    }
    return {name: random.choice(choices) for name, choices in values.items()}


def _is_true(condition: Expression | None, rows: Rows) -> bool:
    return condition is None or condition.of(rows) is True


def _equal(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else left == right


def _less(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else left < right


def _plus(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left + right


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True
