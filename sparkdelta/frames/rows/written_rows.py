"""Rows in the layout of data files, with serialized partition values.

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
from sparkdelta.frames.rows.selected_rows import selected_rows
from sparkdelta.protocol.partition_values import NO_VALUE
from sparkdelta.schema.table_schema import quoted


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

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    stored = [field for field in fields if field.name not in directories]
    partitions = [field for field in fields if field.name in directories]
    if with_partitions:
        stored += partitions
    return selected_rows(
        rows,
        [
            *(quoted(name) for name in (*(field.name for field in stored), *file_columns)),
            *(_serialized(field).alias(directories[field.name]) for field in partitions),
        ],
    )


def _serialized(field: StructField) -> Column:
    """Serialize a partition value as in the log; null for null.

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    name = field.name
    text = _text(F.col(quoted(name)), field.dataType)
    problem = F.lit(
        f"[{InvalidPartitionValueError.error_class}] Partition column {name} has the value "
        f"{NO_VALUE}, which is reserved for null."
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
