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
    "call back",  # Spark asks Python for the files of a scan when a query runs
    "describe tables",  # in the session catalog, with columns and properties
    "find rows when sent",  # in plans that the client sends
    "match field ids",  # of data files with columns
    "move frames",  # to another session without changing their meaning
    "read hidden names",  # which begin with _ or .
    "register empty tables",  # managed ones, as long as they have no files
    "run stream functions",  # in this process
    "see plans",  # that Spark has analyzed
]
"""An ability that not every session has: `engine_of(spark).can(...)` asks for it by name."""


StreamFunction: TypeAlias = Callable[[Any, DataFrame, int], None]
"""A function of an engine, a micro-batch and its number. It may be called in another process."""


def engine_of(spark: SparkSession) -> SparkEngine:
    """Return the engine of a session."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from sparkdelta.base.spark.connect_engine import ConnectEngine

        return ConnectEngine(spark)
    from sparkdelta.base.spark.classic_engine import ClassicEngine  # needs py4j

    return ClassicEngine(spark)
