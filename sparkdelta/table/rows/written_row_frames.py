"""Rows in the layout of data files: serialized partition values, physical column names.

References
----------
PROTOCOL.md#partition-value-serialization,
PROTOCOL.md#writer-requirements-for-column-mapping
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    StringType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.protocol.partition_values import NO_VALUE
from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.column_mapping import PARQUET_FIELD_ID, physical_field
from sparkdelta.base.schema.moment_texts import date_text, in_utc, time_text
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.schema.table_schema import RESERVED_PREFIX, quoted
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
    written = [*(field.name for field in stored), *file_columns]
    targets = [directories[field.name] for field in partitions]
    names = [*written, *(field.name for field in partitions)]
    if all(map(_PLAIN.fullmatch, names)):
        texts = _serialized_as(partitions, names[len(written) :], targets)
        return rows.selectExpr(*map(quoted, written), *texts)
    plain = {name: f"{RESERVED_PREFIX}{number}" for number, name in enumerate(names)}
    renamed = rows.select(*(F.col(quoted(name)).alias(alias) for name, alias in plain.items()))
    aliases = [plain[name] for name in names]
    texts = _serialized_as(partitions, aliases[len(written) :], targets)
    return renamed.selectExpr(*aliases[: len(written)], *texts).toDF(*written, *targets)


_PLAIN = re.compile(r"\w+")
"""Names that SQL text in backticks names even if backticks are around patterns."""


def _serialized_as(
    partitions: Sequence[StructField], names: Sequence[str], targets: Sequence[str]
) -> list[str]:
    """Return SQL of serialized partition values, from columns under names that are given."""
    return [
        f"{_serialized(field, quoted(name))} AS {quoted(target)}"
        for field, name, target in zip(partitions, names, targets, strict=True)
    ]


def _serialized(field: StructField, value: str) -> str:
    """Serialize a partition value, given as SQL, as in the log; null for null."""
    name = field.name
    text = _text(value, field.dataType)
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
