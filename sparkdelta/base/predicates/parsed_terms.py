"""The terms of a condition as Spark's parser shows them, for the history of OPTIMIZE and REORG."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from sparkdelta.base.predicates.condition_text import parsed_text
from sparkdelta.base.predicates.resolved_names import UnusableError

_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "AND",
    exp.Or: "OR",
}
_PLAIN_NAME = re.compile(r"\w+", re.ASCII)
_DEPENDS_ON_SETTINGS = {"\\", '"'}
_MOST_IN_A_ROW = 3  # Spark makes a balanced tree of more


def parsed_terms(condition: str) -> list[str]:
    """Return the terms of a condition as Spark's parser shows them, such as ``('part = a)``; the
    condition as it is if it has expressions other than comparisons, ``IN`` and ``IS NULL``.
    """
    if _DEPENDS_ON_SETTINGS & set(condition):
        return [condition]
    try:
        return [_shown(term) for term in _terms(parsed_text(condition))]
    except (UnusableError, RecursionError):
        return [condition]


def _terms(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.And):
        return [*_terms(node.this), *_terms(node.expression)]
    return [node]


def _shown(node: exp.Expr) -> str:
    node = node.unnest()
    if isinstance(node, exp.Not):
        is_not_null = _is_null(node.this)
        return f"isnotnull({_shown(node.this.this)})" if is_not_null else f"NOT {_shown(node.this)}"
    if _is_null(node):
        return f"isnull({_shown(node.this)})"
    if isinstance(node, exp.In) and node.expressions:
        return f"{_shown(node.this)} IN ({','.join(map(_shown, node.expressions))})"
    if isinstance(node, exp.NEQ):
        return f"NOT ({_shown(node.this)} = {_shown(node.expression)})"
    if type(node) in _OPERATORS:
        if len(list(node.flatten(unnest=False))) <= _MOST_IN_A_ROW:
            operator = _OPERATORS[type(node)]
            return f"({_shown(node.this)} {operator} {_shown(node.expression)})"
    elif isinstance(node, exp.Column):
        if all(_PLAIN_NAME.fullmatch(part.name) for part in node.parts):
            return f"'{'.'.join(part.name for part in node.parts)}"
    elif isinstance(node, exp.Literal) and (node.is_string or node.is_int):
        return str(node.this)
    raise UnusableError(f"{type(node).__name__} is shown as it was written")


def _is_null(node: exp.Expr) -> bool:
    return isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)
