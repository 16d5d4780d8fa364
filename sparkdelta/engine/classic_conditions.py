"""Predicates from conditions that the analyzer of classic Spark has resolved."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from sparkdelta.predicates.analyzed_text import parse_analyzed
from sparkdelta.protocol.predicates import Predicate, Unusable, functions
from sparkdelta.storage.hadoop import filter_condition, plan_nodes

_OPERATORS = frozenset(("+", "-", "*", "/", "%", "negative", "like"))
_USER_FUNCTIONS = frozenset(
    (
        "ApplyFunctionExpression", "HiveGenericUDF", "HiveSimpleUDF", "PythonUDF", "ScalaUDF",
        "SQLScalarFunction",
    )
)  # fmt: skip


def parse_classic_filter(filtered: DataFrame, schema: StructType, *, time_zone: str) -> Predicate:
    """Return the predicate of a filter's condition.

    Parameters
    ----------
    filtered
        A filter on an empty DataFrame with the table's schema and the alias
        `analyzed_text.qualifier_of(schema)`.
    schema
        The table's columns.
    time_zone
        The session time zone, for strings that are cast to timestamps.
    """
    text, shown_zone = filter_condition(filtered)
    predicate = parse_analyzed(text, schema, time_zone=time_zone, shown_zone=shown_zone)
    if not functions(predicate) <= _OPERATORS:
        _, nodes = plan_nodes(filtered)
        if not _USER_FUNCTIONS.isdisjoint(node.rpartition(".")[2] for node in nodes):
            return Unusable(text, "a function of the user may have the name of one of Spark's")
    return predicate
