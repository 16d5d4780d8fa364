"""The session catalog of classic Spark, ``spark_catalog``, in the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

SESSION_CATALOG = "spark_catalog"


def table_location(spark: SparkSession, name: Sequence[str], provider: str) -> str | None:
    """Return the location of a table of a provider; None for others, views, and what is not there.

    Parameters
    ----------
    name
        Of the table alone, or after a database, or after catalog and database.
    """
    state = spark._jsparkSession.sessionState()
    if len(name) == 3 and name[0].lower() == SESSION_CATALOG:
        name = name[1:]
    elif len(name) > 2 or state.catalogManager().currentCatalog().name() != SESSION_CATALOG:
        return None
    catalog, identifier = state.catalog(), _identifier(spark, name)
    if len(name) == 1 and catalog.isTempView(identifier):
        return None
    try:
        if not catalog.tableExists(identifier):
            return None
        table = catalog.getTableMetadata(identifier)
    except (AnalysisException, Py4JJavaError):  # there is no such database
        return None
    its_provider = table.provider()
    if not its_provider.isDefined() or str(its_provider.get()).lower() != provider:
        return None
    jvm: Any = spark._jvm
    return str(jvm.org.apache.hadoop.fs.Path(table.location()).toString())


def _identifier(spark: SparkSession, name: Sequence[str]) -> Any:
    jvm: Any = spark._jvm
    database = jvm.scala.Option.apply(name[0] if len(name) == 2 else None)
    return jvm.org.apache.spark.sql.catalyst.TableIdentifier(name[-1], database)
