"""Rows without the fields of type `void`, which data files do not hold.

References
----------
PROTOCOL.md#void-type
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.base.schema.table_schema import quoted, without_void


def without_void_columns(
    rows: DataFrame, schema: StructType, others: Sequence[str] = ()
) -> DataFrame:
    """Return the rows as data files hold them.

    Parameters
    ----------
    rows
        The columns of `schema`, which has `void` in structs alone, and the columns `others`.
    """
    if without_void(schema) == schema:
        return rows
    columns = []
    for field in schema.fields:
        if without_void(field.dataType) is None:
            continue
        column = F.col(quoted(field.name))
        dropped = _void_paths(field.dataType) if isinstance(field.dataType, StructType) else ()
        names = list(dropped)
        columns.append(column.dropFields(*names).alias(field.name) if names else column)
    return rows.select(*columns, *(F.col(quoted(name)) for name in others))


def _void_paths(struct: StructType, path: str = "") -> Iterator[str]:
    """Yield the outermost fields that files do not hold, as Spark writes paths of fields."""
    for field in struct.fields:
        inner = f"{path}{quoted(field.name)}"
        if without_void(field.dataType) is None:
            yield inner
        elif isinstance(field.dataType, StructType):
            yield from _void_paths(field.dataType, f"{inner}.")
