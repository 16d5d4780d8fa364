"""Partition values from the log's strings to their types."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    StringType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.exceptions import InvalidPartitionValueError

_HAS_ZONE = r":\d{2}(\.\d+)?\s*(Z|UTC|[+-]\d{1,2}(:?\d{2}){0,2})$"
_DATE_ONLY = r"^[+-]?\d{4,6}-\d{1,2}-\d{1,2}$"
_HAS_DATE = r"^\s*[+-]?\d{4,6}-"  # a time alone would be cast to that time of today
_ESCAPED_BYTES = r"^(\\u00[0-9A-Fa-f]{2})+$"


def typed_partition_values(
    partition_values: Column, fields: Sequence[tuple[str, StructField]], *, time_zone: str
) -> list[Column]:
    """A typed column for every partition column.

    Parameters
    ----------
    partition_values
        MAP<STRING, STRING> of an add or remove action.
    fields
        The key in the map (the physical name) and the table's field, whose name the column gets.
    time_zone
        The zone of timestamps written without one.

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    return [
        typed_partition_value(
            F.try_element_at(partition_values, F.lit(key)), field, time_zone=time_zone
        ).alias(field.name)
        for key, field in fields
    ]


def typed_partition_value(text: Column, field: StructField, *, time_zone: str) -> Column:
    """The value of one partition column; null for null and the empty string.

    A text that is no value of the type fails the query (`InvalidPartitionValueError`).
    """
    value = _parse(text, field.dataType, time_zone)
    problem = F.concat(
        F.lit(
            f"[{InvalidPartitionValueError.error_class}] Partition column {field.name!r} of type "
            f"{field.dataType.simpleString()} has a value in the log that is not of this type. The "
            "file was committed by a faulty writer; commit it again with a right value: "
        ),
        text,
    )
    return (
        F.when(text.isNull() | (text == ""), F.lit(None))
        .when(value.isNull(), F.raise_error(problem))
        .otherwise(value)
        .cast(field.dataType)
    )


def _parse(text: Column, data_type: DataType, time_zone: str) -> Column:
    if isinstance(data_type, StringType):
        return text
    if isinstance(data_type, BinaryType):
        hexadecimal = F.regexp_replace(text, r"\\u00", "")
        return F.when(F.rlike(text, F.lit(_ESCAPED_BYTES)), F.unhex(hexadecimal)).otherwise(
            text.cast("binary")
        )
    if isinstance(data_type, TimestampType):
        # A zone in the text makes the cast independent of the session's zone.
        midnight = F.when(F.rlike(text, F.lit(_DATE_ONLY)), F.lit(" 00:00:00")).otherwise("")
        zoned = F.concat(text, midnight, F.lit(f" {time_zone}"))
        value = F.when(F.rlike(text, F.lit(_HAS_ZONE)), text).otherwise(zoned).try_cast(data_type)
        return F.when(F.rlike(text, F.lit(_HAS_DATE)), value)
    if isinstance(data_type, TimestampNTZType):
        value = F.regexp_replace(text, "Z$", "").try_cast(data_type)
        return F.when(F.rlike(text, F.lit(_HAS_DATE)), value)
    if isinstance(data_type, BooleanType):
        return F.when(F.lower(text) == "true", True).when(F.lower(text) == "false", False)
    return text.try_cast(data_type)
