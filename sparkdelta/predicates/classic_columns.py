"""A condition as Spark's analyzer reads it: in a classic session, where plans can be looked into.

Beside `storage` the only module that looks behind a DataFrame into the JVM.
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
    """The predicate of the condition of a filter.

    Parameters
    ----------
    filtered
        A filter of an empty DataFrame of the table's schema, under the alias
        `analyzed_text.qualifier_of(schema)`.
    schema
        The table's columns.
    time_zone
        The session's, for texts that stand for timestamps.
    """
    frame: Any = filtered
    plan = frame._jdf.queryExecution().analyzed()
    if plan.nodeName() != "Filter":
        raise ValueError(f"a filter's plan begins with {plan.nodeName()}")
    text, shown_zone = str(plan.condition().sql()), None
    if "TIMESTAMP '" in text:  # written in the zone of the thread's session, which may be another
        shown_zone = str(plan.conf().sessionLocalTimeZone())
    predicate = parse_analyzed(text, schema, time_zone=time_zone, shown_zone=shown_zone)
    if not functions(predicate) <= _OPERATORS:
        _, nodes = plan_nodes(filtered)
        if not _USER_FUNCTIONS.isdisjoint(node.rpartition(".")[2] for node in nodes):
            return Unusable(text, "a function of the user may have the name of one of Spark's")
    return predicate


def plan_nodes(frame: DataFrame) -> tuple[bool, frozenset[str]]:
    """Whether a frame is the same each time it is computed, and the classes of its plan's
    operators and expressions.
    """
    own: Any = frame
    plan = own._jdf.queryExecution().analyzed()
    return bool(plan.deterministic()), frozenset(_CLASS.findall(str(plan.toJSON())))
