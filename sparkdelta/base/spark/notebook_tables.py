"""DataFrames that notebooks draw as tables."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from sparkdelta.base.spark.driver import read_rows

MAX_DRAWN_ROWS = 20


def drawn_in_notebooks(
    frame: DataFrame, draw: Callable[[Sequence[Mapping[str, object]]], str], *columns: str
) -> DataFrame:
    """Return the same DataFrame, whose first `MAX_DRAWN_ROWS` rows a notebook draws where a cell
    ends with it. Its query runs then.

    Parameters
    ----------
    draw
        Returns HTML of rows.
    columns
        Those to draw.
    """
    drawn = weakref.ref(frame)  # a DataFrame that held itself would keep Spark's until a collection

    def html() -> str | None:
        rows = drawn()
        if rows is None:
            return None
        found = read_rows(
            rows.select(*columns).limit(MAX_DRAWN_ROWS),
            what="rows that a notebook draws",
            bound=MAX_DRAWN_ROWS,
        )
        return draw([row.asDict(recursive=True) for row in found])

    vars(frame)["_repr_html_"] = html
    return frame
