"""Subqueries in the values of UPDATE and MERGE: each is run once, and its value takes its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from pyspark.errors import AnalysisException
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType

from sparkdelta.base.schema.spatial_types import UNORDERED_TYPES
from sparkdelta.base.schema.sql_text import text_literal, type_text
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.exceptions import DeltaError
from sparkdelta.sql.grammar.tokens import Fragment, tokenize, with_ends
from sparkdelta.sql.statements.inserted_rows import unzoned_text
from sparkdelta.sql.statements.statement_table import StatementTable

_NO_LITERALS = (ArrayType, MapType, StructType, *UNORDERED_TYPES)


def with_subquery_values(
    table: StatementTable, values: Mapping[str, str], operation: str
) -> dict[str, str]:
    """Return the values of columns with a literal in the place of each scalar subquery.

    Parameters
    ----------
    operation
        UPDATE or MERGE, for errors.

    Raises
    ------
    DELTA_UNSUPPORTED_SUBQUERY
        A subquery depends on the row that is changed, or its value has no literal.
    """
    return {name: _constant(table, text, operation) for name, text in values.items()}


def _constant(table: StatementTable, value: str, operation: str) -> str:
    text = tokenize(value)
    if text is None or not any(token.is_word("SELECT") for token in text.tokens):
        return value
    subqueries = list(_scalar_subqueries(text))
    for opening, inner in pairwise(text.tokens):
        is_query = opening.is_symbol("(") and inner.is_word("SELECT")
        if is_query and not any(opening.start in range(q.start, q.end) for q in subqueries):
            raise _unsupported(value, operation)
    parts, place = [], 0
    for subquery in subqueries:
        parts += [value[place : subquery.start], _literal(table, subquery, value, operation)]
        place = subquery.end
    return "".join([*parts, value[place:]])


def _unsupported(value: str, operation: str) -> DeltaError:
    return DeltaError.of("DELTA_UNSUPPORTED_SUBQUERY", operation=operation, condition=value)


def _scalar_subqueries(text: Fragment) -> Iterator[Fragment]:
    """Yield the queries in parentheses that are not within others, nor after IN or EXISTS."""
    depth, start = 0, None
    for number, token in enumerate(text.tokens):
        if token.is_symbol("("):
            depth += 1
            is_query = text.tokens[number + 1].is_word("SELECT", "WITH")
            is_value = not number or not text.tokens[number - 1].is_word("IN", "EXISTS")
            if start is None and is_query and is_value:
                start, outside = number, depth
        elif token.is_symbol(")"):
            if start is not None and depth == outside:
                tokens = with_ends(text.tokens[start : number + 1])
                yield Fragment(text.whole, tokens, tokens[0].start, token.end)
                start = None
            depth -= 1


def _literal(table: StatementTable, subquery: Fragment, value: str, operation: str) -> str:
    """Return the value of a subquery as SQL text."""
    try:
        rows = table.sql.query("SELECT", subquery, "AS value")
    except DeltaError:
        raise
    except AnalysisException as error:
        if (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            raise _unsupported(value, operation) from error
        raise
    data_type = rows.schema["value"].dataType
    if isinstance(data_type, _NO_LITERALS):
        raise _unsupported(value, operation)
    shown = rows.selectExpr(f"CAST({_text(data_type)} AS string) AS value")
    [(constant,)] = read_rows(shown, what="value of a subquery", bound=1)
    if constant is None:
        return f"CAST(NULL AS {type_text(data_type)})"
    if isinstance(data_type, BinaryType):
        return f"X'{constant}'"
    return f"CAST({text_literal(constant)} AS {type_text(data_type)})"


def _text(data_type: DataType) -> str:
    return "hex(value)" if isinstance(data_type, BinaryType) else unzoned_text("value", data_type)
