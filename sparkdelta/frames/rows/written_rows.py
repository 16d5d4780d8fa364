"""Rows as data files hold them, with partition values as texts.

References
----------
PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, TimestampNTZType, TimestampType

from sparkdelta.exceptions import InvalidPartitionValueError
from sparkdelta.frames.rows.conformed_rows import WrittenColumn
from sparkdelta.schema.table_schema import quoted
from sparkdelta.workers.footer_statistics import NO_VALUE


def written_rows(
    rows: DataFrame,
    columns: Sequence[WrittenColumn],
    kept: Sequence[str] = (),
    *,
    with_partitions: bool = False,
) -> DataFrame:
    """The rows with partition columns last and as texts.

    Parameters
    ----------
    rows
        In the table's columns and types, and `kept`.
    with_partitions
        Whether files hold the partition columns, too.

    Returns
    -------
    DataFrame
        The data columns, the partition columns if files hold them, those of `kept`, then a STRING
        column named `directory` for each partition column.

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    held = [c for c in columns if c.directory is None]
    if with_partitions:
        held += [c for c in columns if c.directory is not None]
    data = [F.col(quoted(c.field.name)) for c in held]
    partitions = [_serialized(c).alias(c.directory) for c in columns if c.directory is not None]
    return rows.select(*data, *(F.col(quoted(name)) for name in kept), *partitions)


def _serialized(column: WrittenColumn) -> Column:
    """The text that stands for a value in the log; null for null.

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    name = column.field.name
    text = _text(F.col(quoted(name)), column.field.dataType)
    problem = F.lit(
        f"[{InvalidPartitionValueError.error_class}] Partition column {name} has the value "
        f"{NO_VALUE}, which stands for no value."
    )
    return F.when(text == NO_VALUE, F.raise_error(problem)).otherwise(text)


def _text(value: Column, data_type: DataType) -> Column:
    formats: dict[type[DataType], tuple[str, str]] = {
        TimestampType: ("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"),
        TimestampNTZType: ("timestampNTZFormat", "yyyy-MM-dd HH:mm:ss.SSSSSS"),
        DateType: ("dateFormat", "yyyy-MM-dd"),
    }
    if type(data_type) not in formats:
        return value.cast("string")
    option, form = formats[type(data_type)]
    text = F.to_csv(F.struct(value), {option: form, "timeZone": "UTC"})
    return F.when(value.isNotNull(), text)
