"""Groups of rows, with the columns that they are grouped by."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def grouped(frame: DataFrame, keys: list[str] | list[Column], *aggregates: Column) -> DataFrame:
    """Return the keys and some aggregates of each group, under their names.

    ``groupBy(...).agg(...)`` leaves the keys out if ``spark.sql.retainGroupColumns`` is false.
    """
    row = F.struct(*keys, *aggregates)
    return frame.groupBy(*keys).agg(row.alias("row")).select("row.*")
