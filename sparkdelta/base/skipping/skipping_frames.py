"""Rules of data skipping: conditions that are true of all files with a matching row.

A predicate without `Not` is translated to a condition on a file's partition values and statistics.
If the condition is false or null, no row of the file matches. A condition of `None` is always true:
the predicate cannot exclude files.

A file is kept if a bound is missing or a rule does not apply. For partition values,
`base.predicates.partition_matching_rules` implements the same rules in Python;
`tests/base/skipping/test_pruning_contracts.py` compares the two.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import pairwise
from typing import Any, TypeAlias

from pyspark.sql.types import ArrayType, MapType, StringType, StructType

from sparkdelta.base.predicates import predicate_rules
from sparkdelta.base.predicates.ordered_casts import (
    Ordered,
    compares_each,
    compares_exactly,
    family,
    is_comparable,
    ordered,
    type_of,
)
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Truth,
    columns,
    flipped,
    is_usable,
)
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.sql_text import simple_type_text, text_literal
from sparkdelta.base.schema.table_schema import type_of_path
from sparkdelta.base.skipping.failing_values import failing_parts
from sparkdelta.base.skipping.predicate_value_frames import literal, to_sql, value
from sparkdelta.base.skipping.rounded_bounds import ends_around, limit_of_bigint
from sparkdelta.base.skipping.text_prefixes import prefix_range

Condition: TypeAlias = str | None
"""A condition or value in Spark SQL; None if there is none."""

_MILLISECOND = "INTERVAL '999' MICROSECOND"
_SECONDS_OF_OFFSETS = "if({moment} < DATE '1972-02-01', 59, 0)"
"""SQL of the seconds by which a bound near a moment may be wrong. delta-spark 3.2 and 3.3 write the
local time and the offset without its seconds, such as `+00:53` for `+00:53:28`; the last time zone
whose offset had seconds gave them up in January 1972."""
_MAX_ALTERNATIVES = 8
"""The maximum number of IN values that are compared one by one, which can be pushed down. Longer
lists are compared by ranges, then as arrays."""
_RUNS, _PUSHED_RUNS = 16, 4
"""About half of the maximum number of ranges into which the values of a list are divided, in
general and for conditions that are pushed down."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """SQL expressions for the partition values and statistics of a file; None if not available.

    Attributes
    ----------
    partition
        The value of a partition column, by its logical path.
    minimum, maximum, null_count
        The statistics of a data column, by its logical path.
    num_records
        The number of records in the file, including deleted rows.
    is_pushed
        True if conditions must be simple comparisons that Spark pushes down to a Parquet scan. A
        null partition value may then be a missing one.
    is_combined
        True if each bound covers several files.
    """

    partition: Callable[[ColumnPath], Condition]
    minimum: Callable[[ColumnPath], Condition]
    maximum: Callable[[ColumnPath], Condition]
    null_count: Callable[[ColumnPath], Condition]
    num_records: Condition
    is_pushed: bool = False
    is_combined: bool = False


@dataclass(frozen=True, slots=True)
class SkippingRules:
    """Data skipping rules over one source of partition values and statistics.

    Attributes
    ----------
    bounded
        Float columns with an upper bound in another term of the same conjunction, so that NaN
        cannot match.
    """

    schema: StructType
    partition_columns: frozenset[str]
    facts: FileFacts
    bounded: frozenset[ColumnPath] = frozenset()

    def condition(self, predicate: Predicate) -> Condition:
        """Return the condition that a file may have rows that match a predicate without `Not`."""
        if isinstance(predicate, And):
            terms = predicate_rules.conjuncts(predicate)
            inner = self.within(terms)
            return _all([inner.condition(term) for term in terms])
        if isinstance(predicate, Or):
            return _any([self.condition(term) for term in predicate.terms])
        if not is_usable(predicate):
            return None
        if self._is_constant(predicate):
            return self._partition_condition(predicate)
        return self._statistics_condition(predicate)

    def within(self, terms: Sequence[Predicate]) -> SkippingRules:
        """Return the rules for a term of a conjunction of `terms`."""
        return replace(self, bounded=self.bounded | self._bounded_above(terms))

    def _is_constant(self, node: Predicate | Expression) -> bool:
        """Return True if all rows of a file have the same value: it has only partition columns."""
        return all(path[0] in self.partition_columns for path in columns(node))

    def _partition_condition(self, predicate: Predicate) -> Condition:
        """Return the predicate itself, evaluated on the partition values."""
        known = self._partition_values(predicate)
        if known is None:
            return None
        exact = self._or_failed(to_sql(predicate, known.__getitem__), predicate)
        if exact is None:
            return None
        if not self.facts.is_pushed or not known:
            return exact
        (leaf, *_) = known.values()
        if _is_null_column(predicate):
            (path,) = known
            is_text = isinstance(type_of_path(self.schema, path), StringType)
            return _any([exact, f"{leaf} = ''"]) if is_text else exact  # delta-spark leaves these
        return _any([_is_null(leaf), exact]) if _is_simple(predicate) else None

    def _or_failed(self, condition: str, node: Predicate | Expression) -> Condition:
        """Return SQL that is true if a condition is, or if evaluating part of `node` fails."""
        parts = failing_parts(node, self.schema)
        if parts is None or (parts and self.facts.is_pushed):
            return None
        failed = []
        for part in parts:
            known = self._partition_values(part)
            if known is None:
                return None
            given = [f"{leaf} IS NOT NULL" for leaf in known.values()]
            failed.append(_all([_is_null(value(part, known.__getitem__)), *given]))
        return _any([condition, *failed])

    def _partition_values(self, node: Predicate | Expression) -> dict[ColumnPath, str] | None:
        """Return SQL for the partition columns of a node; None if one is not available."""
        found = {path: self.facts.partition(path) for path in columns(node)}
        known = {path: column for path, column in found.items() if column is not None}
        return known if len(known) == len(found) else None

    def _statistics_condition(self, predicate: Predicate) -> Condition:
        if isinstance(predicate, Comparison):
            if self._is_constant(predicate.left):
                predicate = flipped(predicate)
            return self._comparison(predicate)
        if isinstance(predicate, In):
            return self._in(predicate)
        if isinstance(predicate, IsNull):
            return self._has_nulls(predicate.child)
        if isinstance(predicate, Truth):
            matched = prefix_range(predicate.child, self.schema, exact_only=False)
            return None if matched is None else self.condition(matched)
        if isinstance(predicate, Not):
            return self._negated(predicate.term)
        return None

    def _negated(self, term: Predicate) -> Condition:
        if isinstance(term, IsNull) and isinstance(term.child, predicate_rules.Column):
            return self._has_values(term.child.path)
        if isinstance(term, In):
            return self._not_in(term)
        if isinstance(term, Truth):
            matched = prefix_range(term.child, self.schema, exact_only=True)
            return (
                None
                if matched is None
                else self.condition(predicate_rules.without_not(Not(matched)))
            )
        return None

    def _has_nulls(self, child: Expression) -> Condition:
        if not isinstance(child, predicate_rules.Column):
            return None
        null_count = self._null_count(child.path)
        return None if null_count is None else _or_unknown(f"{null_count} > 0", null_count)

    def _null_count(self, path: ColumnPath) -> Condition:
        """Return SQL for the null count of a column; None for arrays and maps.

        delta-rs before 1.6.2 counts their elements.
        """
        data_type = type_of_path(self.schema, path)
        return None if isinstance(data_type, ArrayType | MapType) else self.facts.null_count(path)

    def _has_values(self, path: ColumnPath) -> Condition:
        """Return SQL that is true if a row may be not null; valid with wide bounds, too."""
        null_count, records = self._null_count(path), self.facts.num_records
        if null_count is None or records is None or self.facts.is_pushed:
            return None
        return _or_unknown(f"{null_count} < {records}", null_count, records)

    def _comparison(self, comparison: Comparison) -> Condition:
        operator, constant = comparison.operator, comparison.right
        bound = ordered(comparison.left, self.schema)
        if bound is None or not self._is_constant(constant):
            return None
        if not is_comparable(bound, type_of(constant, self.schema)):
            return None
        if operator == "<=>":
            if not isinstance(constant, Literal):
                return None
            if constant.value is None:
                return self._has_nulls(comparison.left)
            if family(constant.data_type) != bound.family or not compares_exactly(
                bound.data_type, constant.data_type
            ):
                return None  # a constant that Spark cannot convert would be null, and equal null
            operator = "="
        against = self._constant(constant)
        may_be_nan = bound.is_float and not _is_number(constant)
        if against is None or (operator == "=" and may_be_nan):
            return None
        limit = None
        if (
            bound.family == "string"
            and isinstance(constant, Literal)
            and constant.value is not None
        ):
            limit = literal(replace(constant, value=_before_cut(str(constant.value))))
        if bound.is_rounded:
            in_range = self._rounded_range(operator, bound, constant)
        else:
            in_range = self._range(operator, bound, against, limit)
        found = _all([in_range, self._has_values(bound.path)])
        return None if found is None else self._or_failed(found, comparison)

    def _constant(self, expression: Expression) -> Condition:
        known = self._partition_values(expression)
        if known is None or (known and self.facts.is_pushed):
            return None
        return value(expression, known.__getitem__)

    def _range(
        self, operator: str, bound: Ordered, against: str, limit: str | None = None
    ) -> Condition:
        """Return the condition that a value of the column may satisfy a comparison.

        `against` is SQL for the constant, and `limit` for its `_before_cut`; None to compute it.
        """
        least, greatest = self._bounds(bound)
        at_most = at_least = against
        if bound.family in ("timestamp", "timestamp_ntz"):
            moment = _cast(against, bound.data_type)
            seconds = f"make_dt_interval(0, 0, 0, {_SECONDS_OF_OFFSETS.format(moment=moment)})"
            at_most = f"({moment} + {seconds})"
            at_least = f"({moment} - {seconds} - {_MILLISECOND})"  # of cut maxima
        if bound.is_float and operator in (">", ">=", "<>") and bound.path not in self.bounded:
            return None  # NaN is greater than any number, and a finite maximum does not exclude it
        if operator == "<>":
            if bound.is_inexact or least is None or greatest is None or self.facts.is_pushed:
                return None
            other = f"{least} <> {against} OR {greatest} <> {against}"
            return _or_unknown(other, least, greatest)
        low = high = None
        if operator in ("<", "<=", "=") and least is not None:
            below = f"{least} {'<' if operator == '<' else '<='} {at_most}"
            low = _or_unknown(_or_nan(below, least, bound), least)
        if operator in (">", ">=", "=") and greatest is not None:
            sign = ">" if operator == ">" else ">="
            if bound.family == "string":
                above = self._may_reach_text(
                    greatest, sign, against, limit or _before_cut_text(against)
                )
            else:
                above = f"{greatest} {sign} {at_least}"
            high = _or_unknown(above, greatest)
        return _all([low, high])

    def _rounded_range(self, operator: str, bound: Ordered, constant: Expression) -> Condition:
        """Return the condition of `_range` on bounds of a DECIMAL.

        delta-rs rounds them to DOUBLE or limits them to BIGINT.
        """
        if bound.casts or operator == "<>":
            return None
        least, greatest = self._bounds(bound)
        at_least, at_most = ends_around(constant, bound.data_type)
        low = high = None
        if operator in ("<", "<=", "=") and least is not None and at_most is not None:
            low = _or_limit(least, "<=", at_most, -(2**63), bound)
        if operator in (">", ">=", "=") and greatest is not None and at_least is not None:
            high = _or_limit(greatest, ">=", at_least, 2**63 - 1, bound)
        return _all([low, high])

    def _may_reach_text(self, greatest: str, sign: str, against: str, limit: str) -> str:
        """Return SQL that is true if a text may be greater than or equal to a constant.

        delta-spark before 3.3 truncated maxima and appended U+FFFD, which is less than any
        character outside the BMP. Half of a surrogate pair before it became '?'. The true maximum
        therefore starts with the part before U+FFFD, and any string may follow. `limit` is SQL for
        `_before_cut` of the constant.
        """
        if self.facts.is_pushed or self.facts.is_combined:
            # Truncated maxima cannot be recognized here, but are not less than the limit.
            return f"{greatest} {sign if limit == against else '>='} {limit}"
        cut, cut_in_half = map(text_literal, ("\ufffd", "?\ufffd"))
        length = f"char_length({greatest}) - if(endswith({greatest}, {cut_in_half}), 2, 1)"
        may_follow = f"left({against}, {length}) <= left({greatest}, {length})"
        is_cut = f"endswith({greatest}, {cut})"
        return f"{greatest} {sign} {against} OR ({is_cut} AND {may_follow})"

    def _bounds(self, bound: Ordered) -> tuple[Condition, Condition]:
        """Return SQL for minimum and maximum in the type of the comparison."""
        least, greatest = self.facts.minimum(bound.path), self.facts.maximum(bound.path)
        if self.facts.is_pushed and (bound.is_float or bound.casts):
            return None, None
        for data_type in bound.casts:
            least = None if least is None else _cast(least, data_type)
            greatest = None if greatest is None else _cast(greatest, data_type)
        if bound.may_be_a_day_off:
            least = None if least is None else f"date_sub({least}, 1)"
            greatest = None if greatest is None else f"date_add({greatest}, 1)"
        return least, greatest

    def _in(self, predicate: In) -> Condition:
        bound = ordered(predicate.child, self.schema)
        values = self._values(predicate, bound, negated=False)
        if bound is None or values is None:
            return None
        if not values:
            return "FALSE"
        if len(values) <= _MAX_ALTERNATIVES:
            equals = [Comparison("=", predicate.child, constant) for constant in values]
            return _any([self.condition(equal) for equal in equals])
        if any(family(constant.data_type) != bound.family for constant in values):
            return None  # Spark would convert one to the other, which has another order
        if bound.family == "number" and not all(map(_is_number, values)):
            return None
        runs = _runs(values, _PUSHED_RUNS if self.facts.is_pushed else _RUNS)
        return _all(
            [_any([self._in_run(run, bound) for run in runs]), self._has_values(bound.path)]
        )

    def _in_run(self, run: Sequence[Literal], bound: Ordered) -> Condition:
        """Return the condition that the column may have one of some values, given in order."""
        low, high = run[0], run[-1]
        if bound.is_rounded:
            of_ends = (
                self._rounded_range(*end) for end in (("<=", bound, high), (">=", bound, low))
            )
            return _all(list(of_ends))
        cut = low.value if isinstance(low.value, str) else None
        limit = None if cut is None else literal(replace(low, value=_before_cut(cut)))
        ends = _all(
            [
                self._range("<=", bound, literal(high)),
                self._range(">=", replace(bound, is_float=False), literal(low), limit),
            ]
        )
        least, greatest = self._bounds(bound)
        is_exact = low.value == high.value
        if (
            is_exact
            or self.facts.is_pushed
            or bound.is_inexact
            or least is None
            or greatest is None
        ):
            return ends
        below = f"one <= {greatest}"
        if bound.family == "string":
            below = f"({self._may_reach_text(greatest, '>=', 'one', _before_cut_text('one'))})"
        inside = f"`exists`({_array(run)}, one -> {least} <= one AND {below})"
        return _all([ends, _or_unknown(_or_nan(inside, least, bound), least, greatest)])

    def _values(
        self, predicate: In, bound: Ordered | None, *, negated: bool
    ) -> tuple[Literal, ...] | None:
        """Return the non-null values of a list; None if they cannot be compared one by one."""
        literals = predicate.literals
        if bound is None or literals is None:
            return None
        kinds = [literal.data_type for literal in literals]
        if not compares_each(bound.data_type, kinds, negated=negated):
            return None
        return tuple(literal for literal in literals if literal.value is not None)

    def _not_in(self, predicate: In) -> Condition:
        bound = ordered(predicate.child, self.schema)
        values = self._values(predicate, bound, negated=True)
        if not values or bound is None:
            return None
        if len(values) <= _MAX_ALTERNATIVES:
            return self.condition(And(tuple(Comparison("<>", predicate.child, v) for v in values)))
        if bound.is_inexact or bound.is_float or self.facts.is_pushed:
            return None
        least, greatest = self._bounds(bound)
        if least is None or greatest is None:
            return None
        excluded = f"{least} = {greatest} AND `exists`({_array(values)}, one -> one = {least})"
        return _all([f"(NOT coalesce({excluded}, FALSE))", self._has_values(bound.path)])

    def _bounded_above(self, terms: Sequence[Predicate]) -> frozenset[ColumnPath]:
        found = set()
        for term in terms:
            if isinstance(term, Comparison) and isinstance(term.left, Literal):
                term = flipped(term)
            if isinstance(term, Comparison) and term.operator in ("<", "<=", "=", "<=>"):
                limits: Sequence[Expression] = [term.right]
            elif isinstance(term, In):
                limits = term.values
            else:
                continue
            bound = ordered(term.left if isinstance(term, Comparison) else term.child, self.schema)
            if bound is not None and all(_is_number(limit) for limit in limits):
                found.add(bound.path)
        return frozenset(found)


def _is_null_column(predicate: Predicate) -> bool:
    """Return True for IS NULL of a bare column."""
    return isinstance(predicate, IsNull) and isinstance(predicate.child, predicate_rules.Column)


def _is_simple(predicate: Predicate) -> bool:
    """Return True if a predicate compares one bare column with literals, as Parquet filters do."""
    if isinstance(predicate, In):
        is_listed = predicate.literals is not None
        return is_listed and isinstance(predicate.child, predicate_rules.Column)
    if not isinstance(predicate, Comparison):
        return False
    sides = (predicate.left, predicate.right)
    return predicate.operator != "<=>" and (
        sum(isinstance(side, predicate_rules.Column) for side in sides) == 1
        and all(not columns(side) for side in sides if not isinstance(side, predicate_rules.Column))
    )


def _all(conditions: Sequence[Condition]) -> Condition:
    known = [condition for condition in conditions if condition is not None]
    return f"({' AND '.join(known)})" if known else None


def _any(conditions: Sequence[Condition]) -> Condition:
    known = [condition for condition in conditions if condition is not None]
    return f"({' OR '.join(known)})" if len(known) == len(conditions) else None


def _or_nan(condition: str, least: str, bound: Ordered) -> str:
    """Return a condition that also holds if a minimum is NaN, which does not bound values."""
    return f"{condition} OR isnan({least})" if bound.is_float else condition


def _or_limit(fact: str, sign: str, against: str, limit: int, bound: Ordered) -> str:
    """Return SQL of a comparison that is also true if a bound is unknown or at the limit of BIGINT.

    The bound of several files may be beyond the limit.
    """
    beyond = limit_of_bigint(limit, bound.data_type)
    ends = [against] if beyond is None else [against, beyond]
    return _or_unknown(" OR ".join(f"{fact} {sign} {end}" for end in ends), fact)


def _or_unknown(condition: str, *facts: str) -> str:
    return f"({' OR '.join([*map(_is_null, facts), condition])})"


def _is_null(fact: str) -> str:
    return f"{fact} IS NULL"


def _cast(child: str, simple_type: str) -> str:
    return f"CAST({child} AS {simple_type_text(simple_type)})"


def _is_number(expression: Expression) -> bool:
    if not isinstance(expression, Literal) or isinstance(expression.value, bool | str | None):
        return False
    return not (isinstance(expression.value, float) and math.isnan(expression.value))


def _runs(values: Sequence[Literal], parts: int) -> list[list[Literal]]:
    """Return many constants in order, cut into runs of similar length and at the widest gaps."""
    listed: list[Any] = sorted(values, key=_value)
    cuts = {len(listed) * part // parts for part in range(parts)}
    kinds = {each.data_type for each in values}
    if len(kinds) == 1 and kinds != {"string"}:
        gaps = [_value(after) - _value(before) for before, after in pairwise(listed)]
        cuts.update(1 + at for at in nlargest(parts - 1, range(len(gaps)), key=gaps.__getitem__))
    return [listed[start:end] for start, end in pairwise((*sorted(cuts), len(listed)))]


def _value(constant: Literal) -> Any:
    return constant.value


_SHORTEST_CUT = 31
_UNCUT = "^[^\ufffd-\U0010ffff]*"


def _before_cut(text: str) -> str:
    """Return a prefix of a string that is not greater than the maximum of any file with the string.

    The prefix ends before the first character that is not less than U+FFFD, and before the 32nd
    UTF-16 unit, where a truncated maximum may have half of a surrogate pair.
    """
    found = re.match(_UNCUT, text[:_SHORTEST_CUT])
    assert found is not None
    return found[0]


def _before_cut_text(text: str) -> str:
    """Return SQL for `_before_cut` of a string expression."""
    return f"regexp_extract(left({text}, {_SHORTEST_CUT}), {text_literal(_UNCUT)}, 0)"


def _array(values: Sequence[Literal]) -> str:
    """Return SQL for an array of constants, as one JSON literal if their type allows it."""
    kinds = {v.data_type for v in values}
    if len(kinds) == 1 and kinds <= {"int", "bigint", "smallint", "tinyint", "string"}:
        texts = [v.value for v in values]
        return f"from_json({text_literal(json.dumps(texts))}, 'array<{kinds.pop()}>')"
    return f"array({', '.join(map(literal, values))})"
