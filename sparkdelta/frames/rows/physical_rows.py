"""Rows with physical column names and field ids, for tables with column mapping.

References
----------
PROTOCOL.md#writer-requirements-for-column-mapping
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from sparkdelta.protocol.table_properties import ColumnMappingMode
from sparkdelta.schema.column_mapping import physical_field
from sparkdelta.schema.table_schema import quoted


def physical_rows(
    rows: DataFrame, fields: Sequence[StructField], directories: Sequence[str]
) -> DataFrame:
    """Rename the columns of a table with column mapping to their physical names.

    Parameters
    ----------
    rows
        The columns `fields` of the table's schema, and the columns named in `directories`.

    Returns
    -------
    DataFrame
        The columns `fields` with physical names at every level and field ids in the metadata that
        Spark's Parquet writer reads, then the columns `directories`.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-column-mapping
    """
    return rows.select(*map(_physical, fields), *(F.col(quoted(name)) for name in directories))


def _physical(field: StructField) -> Column:
    wanted = physical_field(field, ColumnMappingMode.ID)
    value = F.col(quoted(field.name)).cast(wanted.dataType)
    return value.alias(wanted.name, metadata=wanted.metadata)
