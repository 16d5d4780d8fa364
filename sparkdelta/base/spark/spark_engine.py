"""The engine of a Spark session, which hides the differences between classic Spark and Spark
Connect.

Only this room distinguishes the two kinds of sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pyspark.sql import DataFrame, SparkSession

if TYPE_CHECKING:
    from sparkdelta.base.spark.classic_engine import ClassicEngine
    from sparkdelta.base.spark.connect_engine import ConnectEngine

SparkEngine: TypeAlias = "ClassicEngine | ConnectEngine"
"""A Spark session, either classic or a Spark Connect client, with the same methods. `ClassicEngine`
describes both; some methods require an ability."""

Ability: TypeAlias = Literal[
    "attach partition values",  # by directory to scans, at no cost per row
    "describe tables",  # in the session catalog, with columns and properties
    "match field ids",  # of data files with columns
    "move frames",  # to another session without changing their meaning
    "see plans",  # that Spark has analyzed
]
"""An ability that only classic sessions have: `engine_of(spark).can(...)` asks for it by name."""


Lateness: TypeAlias = Literal["late", "sent", "never"]
"""When all conditions of a query can choose the files of a scan: when the query runs and Spark asks
for the files, when a client sends its plan, or never."""

StreamFunction: TypeAlias = Callable[[Any, DataFrame, int], None]
"""A function of an engine, a micro-batch and its number. It may be called in another process."""


def engine_of(spark: SparkSession) -> SparkEngine:
    """Return the engine of a session."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from sparkdelta.base.spark.connect_engine import ConnectEngine

        return ConnectEngine(spark)
    from sparkdelta.base.spark.classic_engine import ClassicEngine  # needs py4j

    return ClassicEngine(spark)
