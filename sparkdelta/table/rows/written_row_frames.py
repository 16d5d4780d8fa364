"""Rows in the layout of data files, with serialized partition values.

References
----------
PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    DataType,
    DateType,
    StringType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.protocol.partition_values import NO_VALUE
from sparkdelta.base.schema.moment_texts import date_text, in_utc, time_text
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.exceptions import InvalidPartitionValueError


def written_rows(
    rows: DataFrame,
    fields: Sequence[StructField],
    directories: Mapping[str, str],
    file_columns: Sequence[str] = (),
    *,
    with_partitions: bool = False,
) -> DataFrame:
    """Return the rows to write, with serialized partition values in the last columns.

    Parameters
    ----------
    rows
        The columns `fields` of the table's schema, and the columns `file_columns`.
    directories
        The name in partition directories of each partition column.
    file_columns
        Names of further columns that data files contain.
    with_partitions
        True if data files also contain the partition columns.

    Returns
    -------
    DataFrame
        The data columns, the partition columns if `with_partitions`, the columns `file_columns`,
        then a STRING column per partition column, named as in partition directories.
    """
    stored = [field for field in fields if field.name not in directories]
    partitions = [field for field in fields if field.name in directories]
    if with_partitions:
        stored += partitions
    return rows.selectExpr(
        *(quoted(name) for name in (*(field.name for field in stored), *file_columns)),
        *(f"{_serialized(field)} AS {quoted(directories[field.name])}" for field in partitions),
    )


def _serialized(field: StructField) -> str:
    """Serialize a partition value as in the log; null for null."""
    name = field.name
    text = _text(quoted(name), field.dataType)
    if not isinstance(field.dataType, StringType):
        return text
    problem = (
        f"[{InvalidPartitionValueError.error_class}] Partition column {name} has the value "
        f"{NO_VALUE}, which is reserved for null."
    )
    refused = f"CAST(raise_error({text_literal(problem)}) AS STRING)"
    return f"IF({text} = {text_literal(NO_VALUE)}, {refused}, {text})"


def _text(value: str, data_type: DataType) -> str:
    if isinstance(data_type, TimestampType):
        return f"concat(replace({time_text(in_utc(value))}, ' ', 'T'), 'Z')"
    if isinstance(data_type, TimestampNTZType):
        return time_text(value)
    return date_text(value) if isinstance(data_type, DateType) else f"CAST({value} AS STRING)"
