"""Predicates from conditions that the analyzer of classic Spark has resolved.

Apart from `storage`, only this module accesses the JVM objects of a DataFrame.
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from sparkdelta.predicates.analyzed_text import parse_analyzed
from sparkdelta.protocol.predicates import Predicate, Unusable, functions

_OPERATORS = frozenset(("+", "-", "*", "/", "%", "negative", "like"))
_USER_FUNCTIONS = frozenset(
    (
        "ApplyFunctionExpression", "HiveGenericUDF", "HiveSimpleUDF", "PythonUDF", "ScalaUDF",
        "SQLScalarFunction",
    )
)  # fmt: skip
_CLASS = re.compile(r'"class":"([^"]+)"')


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
    frame: Any = filtered
    plan = frame._jdf.queryExecution().analyzed()
    if plan.nodeName() != "Filter":
        raise ValueError(f"a filter's plan begins with {plan.nodeName()}")
    text, shown_zone = str(plan.condition().sql()), None
    if "TIMESTAMP '" in text:  # formatted in the time zone of the thread's active session
        shown_zone = str(plan.conf().sessionLocalTimeZone())
    predicate = parse_analyzed(text, schema, time_zone=time_zone, shown_zone=shown_zone)
    if not functions(predicate) <= _OPERATORS:
        _, nodes = plan_nodes(filtered)
        if not _USER_FUNCTIONS.isdisjoint(node.rpartition(".")[2] for node in nodes):
            return Unusable(text, "a function of the user may have the name of one of Spark's")
    return predicate


def plan_nodes(frame: DataFrame) -> tuple[bool, frozenset[str]]:
    """Return True if a plan is deterministic, and the class names of its operators and
    expressions.
    """
    own: Any = frame
    plan = own._jdf.queryExecution().analyzed()
    return bool(plan.deterministic()), frozenset(_CLASS.findall(str(plan.toJSON())))
