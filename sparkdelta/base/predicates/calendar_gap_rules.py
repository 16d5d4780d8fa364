"""The days that `java.sql.Date` and `java.sql.Timestamp` do not have: 5 to 14 October 1582.

Spark's constants pass through these classes on their way into the filters of its Parquet reader,
which take such a day for 15 October. A filter on a column of these days then excludes their rows.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone

from sparkdelta.base.predicates.predicate_rules import (
    And,
    Column,
    Comparison,
    Expression,
    Literal,
    Predicate,
    children,
    parts,
)
from sparkdelta.base.protocol.column_names import ColumnPath

FIRST_DAY, LAST_DAY = date(1582, 10, 4), date(1582, 10, 15)
"""The days around the gap: a timestamp of them may be in it, depending on the time zone."""


def has_day_of_gap(predicate: Predicate) -> bool:
    """Return True if a constant of a predicate may be in the gap."""
    return any(_may_be_in_gap(constant) for part in parts(predicate) for constant in children(part))


def may_name_day_of_gap(text: str) -> bool:
    """Return True if a constant in the text of a condition may be in the gap."""
    return "1582-10-" in text


def within_gap(column: ColumnPath, *, is_date: bool) -> Predicate:
    """Return the condition that a DATE or TIMESTAMP is in the gap, or on a day beside it."""
    ends = []
    for operator, day in ((">=", FIRST_DAY), ("<=", LAST_DAY if is_date else _DAY_AFTER)):
        moment = datetime.combine(day, time(), timezone.utc)
        end = Literal(day, "date") if is_date else Literal(moment, "timestamp")
        ends.append(Comparison(operator, Column(column), end))
    return And(tuple(ends))


_DAY_AFTER = LAST_DAY + timedelta(days=1)


def _may_be_in_gap(node: Predicate | Expression) -> bool:
    if not isinstance(node, Literal):
        return False
    value = node.value
    if isinstance(value, str):  # Spark casts it
        return "1582" in value
    day = value.date() if isinstance(value, datetime) else value
    return isinstance(day, date) and FIRST_DAY <= day <= LAST_DAY
