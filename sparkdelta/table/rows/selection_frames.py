"""Selection of columns given as SQL text, which takes far fewer JVM calls than Columns."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def selected_rows(rows: DataFrame, columns: Sequence[str | Column]) -> DataFrame:
    """Return the rows with columns that are given as SQL text or as Columns."""
    texts = [column for column in columns if isinstance(column, str)]
    if len(texts) == len(columns):
        return rows.selectExpr(*texts)
    return rows.select(*(F.expr(c) if isinstance(c, str) else c for c in columns))
