"""Rows as data files hold them: the table's types, checked, with partition values as texts.

References
----------
PROTOCOL.md#partition-value-serialization, PROTOCOL.md#column-invariants
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StructField, TimestampNTZType, TimestampType

from sparkdelta.exceptions import (
    InvalidPartitionValueError,
    NotNullViolatedError,
    ReplaceWhereMismatchError,
)
from sparkdelta.frames.footer_statistics import NO_VALUE
from sparkdelta.schema.table_schema import quoted


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """A column of the table and where its values come from.

    Attributes
    ----------
    source
        The column of the rows to write; None for nulls.
    directory
        The name of its directories if it is a partition column, else None.
    """

    field: StructField
    source: str | None
    directory: str | None = None


def written_rows(
    rows: DataFrame, columns: Sequence[WrittenColumn], *, where: str | Column | None = None
) -> DataFrame:
    """The rows in the table's columns, partition columns last and as texts.

    A row that breaks a rule fails the query; rules are checked where the rows are written, in no
    pass of their own.

    Parameters
    ----------
    where
        What every row must fulfil, in the table's columns.

    Returns
    -------
    DataFrame
        The data columns, then a STRING column named `directory` for each partition column.

    References
    ----------
    PROTOCOL.md#column-invariants, PROTOCOL.md#partition-value-serialization
    """
    typed = rows.select(*(_typed(column) for column in columns))
    if where is not None:
        condition = F.expr(where) if isinstance(where, str) else where
        text = f"[{ReplaceWhereMismatchError.error_class}] A row does not fulfil the condition."
        name = columns[0].field.name
        checked = F.when(condition, F.col(quoted(name))).when(
            F.coalesce(~condition, F.lit(True)), F.raise_error(F.lit(text))
        )
        typed = typed.withColumn(name, checked)
    data = [F.col(quoted(c.field.name)) for c in columns if c.directory is None]
    partitions = [_serialized(c).alias(c.directory) for c in columns if c.directory is not None]
    return typed.select(*data, *partitions)


def _typed(column: WrittenColumn) -> Column:
    field = column.field
    source = F.lit(None) if column.source is None else F.col(quoted(column.source))
    value = source.cast(field.dataType)
    if not field.nullable:
        text = (
            f"[{NotNullViolatedError.error_class}] Column {field.name}, which is NOT NULL, has no "
            "value in a row."
        )
        value = F.when(value.isNull(), F.raise_error(F.lit(text))).otherwise(value)
    return value.alias(field.name)


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
