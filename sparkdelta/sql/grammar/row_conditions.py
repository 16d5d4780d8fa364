"""The terms of WHERE that are conditions on the rows of one table.

They choose files only; the query keeps its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sparkdelta.sql.grammar.relations import ENDS_FROM, NO_ALIAS, Relation
from sparkdelta.sql.grammar.tokens import Fragment, Kind, Token

_CHANGES_ROWS = (
    "LEFT", "RIGHT", "FULL", "OUTER", "ANTI", "SEMI", "LATERAL", "PIVOT", "UNPIVOT", "TABLESAMPLE",
    "MATCH_RECOGNIZE",
)  # fmt: skip
"""Keywords between FROM and WHERE after which conditions are not on the rows of each table."""


def row_conditions(query: Fragment, relation: Relation) -> list[str]:
    """Return the terms of a query's WHERE that have only columns of a table, without its alias.

    A name that is not qualified may be a column of another table. Terms with queries are left out.
    """
    tokens = [token for token in query.tokens if token.kind is not Kind.END]
    before = [token for token in tokens if token.end <= relation.start]
    after = [token for token in tokens if token.start >= relation.end]
    level = list(_level(after))
    place = next((n for n, token in enumerate(level) if token.is_word(*ENDS_FROM)), len(level))
    joins = [*_since_from(before), *level[:place]]
    if any(token.is_word(*_CHANGES_ROWS) for token in joins):
        return []
    condition = level[place:]
    if not condition or not condition[0].is_word("WHERE"):
        return []
    alias = _alias(level) or relation.name[-1]
    ends = (n for n, token in enumerate(condition[1:], 1) if token.is_word(*ENDS_FROM))
    start, end = condition[0].end, next((condition[n].start for n in ends), level[-1].end)
    within = [token for token in after if start <= token.start < end]
    texts = (_own_text(query.whole, term, alias) for term in _terms(within))
    return [text for text in texts if text is not None]


def _level(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens up to the end of a query that are not in parentheses."""
    depth = 0
    for token in tokens:
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth < 0 or token.is_symbol("|>"):
            return
        if not depth:
            yield token


def _since_from(tokens: Sequence[Token]) -> list[Token]:
    """Return the last tokens since FROM."""
    places = [n for n, token in enumerate(tokens) if token.is_word("FROM")]
    return list(tokens[places[-1] :]) if places else []


def _alias(tokens: Sequence[Token]) -> str | None:
    """Return the alias that tokens after a table begin with; None if they begin with none."""
    if tokens and tokens[0].is_word("AS"):
        tokens = tokens[1:]
    is_alias = bool(tokens) and tokens[0].is_name and not tokens[0].is_word(*NO_ALIAS)
    return tokens[0].text if is_alias else None


def _terms(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the terms between the ANDs of a condition; the whole of one with other operators."""
    terms, depth, between = [list[Token]()], 0, 0
    for token in tokens:
        depth += token.is_symbol("(") or token.is_word("CASE")
        depth -= token.is_symbol(")") or token.is_word("END")
        if not depth and token.is_word("OR"):
            return [list(tokens)]
        between += not depth and token.is_word("BETWEEN")
        if not depth and token.is_word("AND"):
            if not between:
                terms.append([])
                continue
            between -= 1
        terms[-1].append(token)
    return [term for term in terms if term]


def _own_text(text: str, term: Sequence[Token], alias: str) -> str | None:
    """Return the text of a term without the alias of the table; None if it has other qualifiers."""
    if not term or any(token.is_word("SELECT") or token.is_symbol("{", "}") for token in term):
        return None
    parts, place = list[str](), term[0].start
    for number, (token, after) in enumerate(pairwise(term)):
        is_qualifier = token.is_name and after.is_symbol(".")
        if not is_qualifier or (number and term[number - 1].is_symbol(".")):
            continue
        if token.text.lower() != alias.lower():
            return None
        parts.append(text[place : token.start])
        place = after.end
    return "".join([*parts, text[place : term[-1].end]])
