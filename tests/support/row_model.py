"""The rows of a table as a list, and what DELETE and UPDATE make of it.

Many histories share a table, each with rows of its own, so that one operation of the package under
test carries out an operation of every history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

COLUMNS = "history INT, key INT, n INT, s STRING, part INT"


class Row(NamedTuple):
    history: int
    key: int
    n: int | None
    s: str | None
    part: int


class Change(NamedTuple):
    """A row as `_change_type` of change data has it."""

    kind: str
    row: Row


@dataclass(frozen=True)
class Expression:
    """SQL text, and the value that it has for a row; None is null."""

    sql: str
    of: Callable[[Row], Any]


@dataclass(frozen=True)
class Delete:
    """Deletes the rows for which the condition is true, and not null."""

    condition: Expression

    def changed(self, row: Row) -> Row | None:
        return None


@dataclass(frozen=True)
class Update:
    """Gives these rows new values, all of them computed from the old row."""

    condition: Expression
    values: Mapping[str, Expression]

    def changed(self, row: Row) -> Row | None:
        return row._replace(**{name: value.of(row) for name, value in self.values.items()})


Operation = Delete | Update


def applied(operation: Operation, rows: Sequence[Row]) -> tuple[list[Row], list[Change]]:
    """The rows after an operation, and its changes."""
    after: list[Row] = []
    changes: list[Change] = []
    for row in rows:
        if operation.condition.of(row) is not True:
            after.append(row)
            continue
        new = operation.changed(row)
        if new is None:
            changes.append(Change("delete", row))
        else:
            after.append(new)
            changes += [Change("update_preimage", row), Change("update_postimage", new)]
    return after, changes


def rows_of(random: Random, history: int, count: int) -> list[Row]:
    return [
        Row(
            history,
            key,
            random.choice([None, 0, 1, 2, 3]),
            random.choice([None, "", "a", "b"]),
            random.randint(0, 1),
        )
        for key in range(count)
    ]


def condition(random: Random, depth: int = 2) -> Expression:
    """A condition in SQL's three-valued logic."""
    kind = random.choice(["leaf", "not", "and", "or"]) if depth else "leaf"
    if kind == "leaf":
        return _leaf(random)
    left, right = condition(random, depth - 1), condition(random, depth - 1)
    if kind == "not":
        return Expression(f"NOT ({left.sql})", lambda row: _not(left.of(row)))
    if kind == "and":
        text = f"({left.sql}) AND ({right.sql})"
        return Expression(text, lambda row: _and(left.of(row), right.of(row)))
    text = f"({left.sql}) OR ({right.sql})"
    return Expression(text, lambda row: _not(_and(_not(left.of(row)), _not(right.of(row)))))


def update(random: Random) -> Update:
    number, text = random.randint(0, 3), random.choice(["a", "b"])
    values = {
        "n": [
            Expression(f"n + {number}", lambda row: None if row.n is None else row.n + number),
            Expression("key", lambda row: row.key),
            Expression("CAST(NULL AS INT)", lambda row: None),
        ],
        "s": [
            Expression(f"concat(s, '{text}')", lambda row: None if row.s is None else row.s + text),
            Expression("CAST(n AS STRING)", lambda row: None if row.n is None else str(row.n)),
        ],
        "part": [Expression("1 - part", lambda row: 1 - row.part)],
    }
    chosen = random.sample(sorted(values), random.randint(1, 3))
    return Update(condition(random), {name: random.choice(values[name]) for name in chosen})


def all_conditions(operations: Sequence[Operation]) -> str:
    """One condition for the operations of all histories."""
    return " OR ".join(
        f"(history = {number} AND ({operation.condition.sql}))"
        for number, operation in enumerate(operations)
    )


def all_values(updates: Sequence[Update]) -> dict[str, str]:
    """The assignments of all histories."""
    found: dict[str, str] = {}
    for name in ("n", "s", "part"):
        cases = [
            f"WHEN {number} THEN {update.values[name].sql}"
            for number, update in enumerate(updates)
            if name in update.values
        ]
        if cases:
            found[name] = f"CASE history {' '.join(cases)} ELSE {name} END"
    return found


def _leaf(random: Random) -> Expression:
    number, text = random.randint(0, 4), random.choice(["", "a", "b"])
    return random.choice(
        [
            Expression(f"n = {number}", lambda row: None if row.n is None else row.n == number),
            Expression(f"n < {number}", lambda row: None if row.n is None else row.n < number),
            Expression("n IS NULL", lambda row: row.n is None),
            Expression(f"n <=> {number}", lambda row: row.n == number),
            Expression(f"s >= '{text}'", lambda row: None if row.s is None else row.s >= text),
            Expression(
                f"n IN ({number}, NULL)",
                lambda row: True if row.n == number and row.n is not None else None,
            ),
            Expression(f"key % 3 = {number % 3}", lambda row: row.key % 3 == number % 3),
            Expression(f"part = {number % 2}", lambda row: row.part == number % 2),
        ]
    )


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True
