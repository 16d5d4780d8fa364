"""Rows as data files hold them, with partition values as texts.

References
----------
PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StructField, TimestampNTZType, TimestampType

from sparkdelta.exceptions import InvalidPartitionValueError
from sparkdelta.schema.table_schema import quoted
from sparkdelta.workers.footer_statistics import NO_VALUE


def written_rows(
    rows: DataFrame,
    fields: Sequence[StructField],
    directories: Mapping[str, str],
    file_columns: Sequence[str] = (),
    *,
    with_partitions: bool = False,
) -> DataFrame:
    """The rows with partition columns last and as texts.

    Parameters
    ----------
    rows
        The columns `fields`, of the table's schema, and `file_columns`.
    directories
        The name of the directories of each partition column.
    with_partitions
        True if files hold the partition columns, too.

    Returns
    -------
    DataFrame
        The data columns, the partition columns if files hold them, `file_columns`, then a STRING
        column for each partition column, named as its directories.

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    held = [field for field in fields if field.name not in directories]
    partitions = [field for field in fields if field.name in directories]
    if with_partitions:
        held += partitions
    return rows.select(
        *(F.col(quoted(name)) for name in (*(field.name for field in held), *file_columns)),
        *(_serialized(field).alias(directories[field.name]) for field in partitions),
    )


def _serialized(field: StructField) -> Column:
    """The text that stands for a value in the log; null for null.

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    name = field.name
    text = _text(F.col(quoted(name)), field.dataType)
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
