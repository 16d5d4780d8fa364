"""Rows with physical column names and field ids, for tables with column mapping.

References
----------
PROTOCOL.md#writer-requirements-for-column-mapping
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.column_mapping import PARQUET_FIELD_ID, physical_field
from sparkdelta.base.schema.table_schema import quoted


def physical_rows(
    rows: DataFrame,
    fields: Sequence[StructField],
    others: Sequence[str],
    other_ids: Mapping[str, int] | None = None,
) -> DataFrame:
    """Rename the columns of a table with column mapping to their physical names.

    Parameters
    ----------
    rows
        The columns `fields` of the table's schema, and the columns named in `others`.
    other_ids
        The field ids of some of the other columns.

    Returns
    -------
    DataFrame
        The columns `fields` with physical names at every level and field ids in the metadata that
        Spark's Parquet writer reads, then the columns `others`.
    """
    ids = other_ids or {}
    return rows.select(*map(_physical, fields), *(_with_id(name, ids.get(name)) for name in others))


def _with_id(name: str, field_id: int | None) -> Column:
    column = F.col(quoted(name))
    return column if field_id is None else column.alias(name, metadata={PARQUET_FIELD_ID: field_id})


def _physical(field: StructField) -> Column:
    wanted = physical_field(field, ColumnMappingMode.ID)
    value = F.col(quoted(field.name)).cast(wanted.dataType)
    return value.alias(wanted.name, metadata=wanted.metadata)
