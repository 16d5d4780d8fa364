"""SQL that converts partition values from the strings of the log to their types.

`base.protocol.partition_values` implements the same rules in Python;
`tests/base/schema/test_partition_value_frames.py` compares the two.

References
----------
PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    StringType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.schema.sql_text import text_literal, type_text
from sparkdelta.base.schema.table_schema import as_nullable, quoted
from sparkdelta.exceptions import InvalidPartitionValueError

_HAS_ZONE = r":\d{2}(\.\d+)?\s*(Z|UTC|[+-]\d{1,2}(:?\d{2}){0,2})$"
_DATE_ONLY = r"^[+-]?\d{4,6}-\d{1,2}-\d{1,2}$"
_HAS_DATE = r"^\s*[+-]?\d{4,6}-"  # Spark casts a time without a date to today's date
_ESCAPE = r"\u00"
_ESCAPED_BYTES = r"^(\\u00[0-9A-Fa-f]{2})+$"


def partition_value(partition_values: str, key: str) -> str:
    """Return SQL for the serialized value (STRING) of the partition column with a physical name."""
    return f"try_element_at({partition_values}, {text_literal(key)})"


def typed_partition_values(
    partition_values: str, fields: Sequence[tuple[str, StructField]], *, time_zone: str
) -> str:
    """Return SQL for a struct with a typed field per partition column.

    Parameters
    ----------
    partition_values
        SQL for the MAP<STRING, STRING> of an add or remove action.
    fields
        The key in the map (the physical name) and the table's field. Fields of the struct have the
        names of the table's fields.
    time_zone
        The time zone of timestamps written without one.
    """
    typed = (
        typed_partition_value(partition_value(partition_values, key), field, time_zone=time_zone)
        + f" AS {quoted(field.name)}"
        for key, field in fields
    )
    return f"struct({', '.join(typed)})"


def typed_partition_value(text: str, field: StructField, *, time_zone: str) -> str:
    """Return SQL for the typed value of a partition column; null for null and the empty string.

    A string that is not a value of the type fails the query (`InvalidPartitionValueError`). The
    type of a collated column is a plain STRING, as in the rows of a scan.
    """
    value = value_of_text(text, field.dataType, time_zone=time_zone)
    problem = text_literal(
        f"[{InvalidPartitionValueError.error_class}] Partition column {field.name!r} of type "
        f"{field.dataType.simpleString()} has a value in the log that is not of this type. The "
        "file was committed by a faulty writer; commit it again with a correct value: "
    )
    typed = (
        f"CASE WHEN {text} IS NULL OR {text} = '' THEN NULL "
        f"WHEN {value} IS NULL THEN raise_error(concat({problem}, {text})) ELSE {value} END"
    )
    return f"CAST({typed} AS {type_text(as_nullable(field.dataType))})"


def partition_value_or_null(text: str, field: StructField, *, time_zone: str) -> str:
    """Return SQL for the typed value of a partition column; null if it is not of the type.

    Unlike `typed_partition_value`, this does not fail: the file may no longer be live.
    """
    value = value_of_text(text, field.dataType, time_zone=time_zone)
    typed = f"CASE WHEN {text} <> '' THEN {value} END"
    return f"CAST({typed} AS {type_text(as_nullable(field.dataType))})"


def is_invalid_partition_value(text: str, field: StructField, *, time_zone: str) -> str:
    """Return SQL that is true if a string is not a value of a partition column; null for null."""
    value = value_of_text(text, field.dataType, time_zone=time_zone)
    return f"({text} <> '' AND {value} IS NULL)"


def value_of_text(text: str, data_type: DataType, *, time_zone: str) -> str:
    """Return SQL that converts a string of the log to a type; null if it is not of the type."""
    if isinstance(data_type, StringType):
        return text
    if isinstance(data_type, BinaryType):
        hexadecimal = f"replace({text}, {text_literal(_ESCAPE)}, '')"
        return (
            f"CASE WHEN {_matches(text, _ESCAPED_BYTES)} THEN unhex({hexadecimal}) "
            f"ELSE CAST({text} AS binary) END"
        )
    if isinstance(data_type, TimestampType):
        # With an explicit time zone, the cast does not depend on the session's.
        midnight = f"CASE WHEN {_matches(text, _DATE_ONLY)} THEN ' 00:00:00' ELSE '' END"
        zoned = f"concat({text}, {midnight}, {text_literal(f' {time_zone}')})"
        whole = f"CASE WHEN {_matches(text, _HAS_ZONE)} THEN {text} ELSE {zoned} END"
        value = f"TRY_CAST({whole} AS timestamp_ltz)"
        return f"CASE WHEN {_matches(text, _HAS_DATE)} THEN {value} END"
    if isinstance(data_type, TimestampNTZType):
        value = f"TRY_CAST(regexp_replace({text}, 'Z$', '') AS timestamp_ntz)"
        return f"CASE WHEN {_matches(text, _HAS_DATE)} THEN {value} END"
    if isinstance(data_type, BooleanType):
        return f"CASE lower({text}) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"
    return f"TRY_CAST({text} AS {type_text(data_type)})"


def is_time_zone(zone: str) -> str:
    """Return SQL that is true if Spark supports a time zone."""
    moment = text_literal("2000-01-01 00:00:00")
    return f"({value_of_text(moment, TimestampType(), time_zone=zone)}) IS NOT NULL"


def _matches(text: str, pattern: str) -> str:
    return f"regexp_like({text}, {text_literal(pattern)})"
