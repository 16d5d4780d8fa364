"""Predicates from conditions that the analyzer of classic Spark has resolved."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from sparkdelta.base.jvm.jvm import analyzed
from sparkdelta.base.jvm.jvm_plans import (
    calls_sql_functions,
    calls_user_functions,
    condition_terms,
    filter_condition,
)
from sparkdelta.base.predicates.analyzed_text import has_call, of_user_functions, parse_analyzed
from sparkdelta.base.predicates.predicate_rules import IsNull, Predicate, without_not
from sparkdelta.base.spark.match_terms import EqualKey, MatchTerms


def parse_classic_filter(
    filtered: DataFrame, schema: StructType, *, time_zone: str, alias: str | None = None
) -> Predicate:
    """Return the predicate of a filter's condition.

    Parameters
    ----------
    filtered
        A filter on an empty DataFrame with the table's schema and the alias.
    schema
        The table's columns.
    time_zone
        The session time zone, for strings that are cast to timestamps.
    alias
        `analyzed_text.qualifier_of(schema)` by default.
    """
    text, shown_zone = filter_condition(filtered)
    if calls_sql_functions(filtered):
        return of_user_functions(text)
    if has_call(text) and calls_user_functions(analyzed(filtered).condition()):
        return of_user_functions(text)
    return parse_analyzed(text, schema, time_zone=time_zone, shown_zone=shown_zone, alias=alias)


def parse_match_terms(
    filtered: DataFrame,
    target: DataFrame,
    source: DataFrame,
    schema: StructType,
    *,
    alias: str,
    time_zone: str,
) -> MatchTerms:
    """Return what a filter's condition on rows of a target and a source says about the target.

    Parameters
    ----------
    target
        With the columns of `schema`, under the alias.
    """
    if calls_sql_functions(filtered):
        return MatchTerms()
    _, shown_zone = filter_condition(filtered)
    has_user_functions = calls_user_functions(analyzed(filtered).condition())

    def parsed(text: str) -> Predicate:
        if has_user_functions and has_call(text):
            return of_user_functions(text)
        return without_not(
            parse_analyzed(text, schema, time_zone=time_zone, shown_zone=shown_zone, alias=alias)
        )

    on_target, on_source, keys = [], [], []
    for text, column, number in condition_terms(filtered, target, source):
        if column is None:
            on_target.append(parsed(str(text)))
        elif text is None:
            on_source.append(column)
        else:
            is_null = parsed(f"({text} IS NULL)")
            if isinstance(is_null, IsNull):
                keys.append(EqualKey(is_null.child, column, number))
    return MatchTerms(tuple(on_target), tuple(on_source), tuple(keys))
