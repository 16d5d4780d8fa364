"""The session catalog of a Spark Connect server, through SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from sparkdelta.engine.driver import read_rows

SESSION_CATALOG = "spark_catalog"
_PROVIDER = re.compile(r"^Provider: (.*)$", re.MULTILINE)
_LOCATION = re.compile(r"^Location: (.*)$", re.MULTILINE)


def table_location(spark: SparkSession, name: Sequence[str], provider: str) -> str | None:
    """Return the location of a table of a provider; None for others, views, and what is not there.

    Parameters
    ----------
    name
        Of the table alone, or after a database, or after catalog and database.
    """
    if len(name) == 3 and name[0].lower() == SESSION_CATALOG:
        name = name[1:]
    if len(name) > 2 or not re.fullmatch(r"[\w ]+", name[-1]):
        return None  # LIKE has patterns
    database = f" IN `{name[0].replace('`', '``')}`" if len(name) == 2 else ""
    try:
        listed = spark.sql(f"SHOW TABLE EXTENDED{database} LIKE '{name[-1]}'")
    except AnalysisException:  # there is no such database
        return None
    found = listed.select("isTemporary", "information")  # at most a view and a table
    rows = read_rows(found, what="location of a named table", bound=2)
    if len(rows) != 1 or rows[0]["isTemporary"]:
        return None
    text = rows[0]["information"]
    its_provider, location = _PROVIDER.search(text), _LOCATION.search(text)
    if its_provider is None or location is None or its_provider[1].lower() != provider:
        return None
    return location[1].removeprefix("file:") if location[1].startswith("file:/") else location[1]
