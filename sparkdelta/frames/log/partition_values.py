"""Partition values from the log's strings to their types.

`protocol.partition_values` is the same rule for values; `tests/contracts/test_partition_values.py`
compares the two.
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

from sparkdelta.exceptions import InvalidPartitionValueError
from sparkdelta.schema.sql_text import text_literal, type_text
from sparkdelta.schema.table_schema import as_nullable, quoted

_HAS_ZONE = r":\d{2}(\.\d+)?\s*(Z|UTC|[+-]\d{1,2}(:?\d{2}){0,2})$"
_DATE_ONLY = r"^[+-]?\d{4,6}-\d{1,2}-\d{1,2}$"
_HAS_DATE = r"^\s*[+-]?\d{4,6}-"  # a time alone would be cast to that time of today
_ESCAPE = r"\u00"
_ESCAPED_BYTES = r"^(\\u00[0-9A-Fa-f]{2})+$"


def partition_value(partition_values: str, key: str) -> str:
    """The text of one partition column, in SQL.

    Parameters
    ----------
    partition_values
        MAP<STRING, STRING> of an add or remove action, in SQL.
    key
        The column's physical name.
    """
    return f"try_element_at({partition_values}, {text_literal(key)})"


def typed_partition_values(
    partition_values: str, fields: Sequence[tuple[str, StructField]], *, time_zone: str
) -> str:
    """A struct with a typed field for every partition column, in SQL.

    Parameters
    ----------
    partition_values
        MAP<STRING, STRING> of an add or remove action, in SQL.
    fields
        The key in the map (the physical name) and the table's field, whose name the field gets.
    time_zone
        The zone of timestamps written without one.

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    typed = (
        typed_partition_value(partition_value(partition_values, key), field, time_zone=time_zone)
        + f" AS {quoted(field.name)}"
        for key, field in fields
    )
    return f"struct({', '.join(typed)})"


def typed_partition_value(text: str, field: StructField, *, time_zone: str) -> str:
    """The value of one partition column, in SQL; null for null and the empty string.

    A text that is no value of the type fails the query (`InvalidPartitionValueError`). A collation
    is left out, as it is where rows are read.

    Parameters
    ----------
    text
        STRING, in SQL.
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
    """As `typed_partition_value`, but null for a text that is no value: for files that may be dead,
    which are nobody's problem.
    """
    value = value_of_text(text, field.dataType, time_zone=time_zone)
    typed = f"CASE WHEN {text} <> '' THEN {value} END"
    return f"CAST({typed} AS {type_text(as_nullable(field.dataType))})"


def is_no_partition_value(text: str, field: StructField, *, time_zone: str) -> str:
    """Whether a text is no value of a partition column, in SQL; null for null."""
    value = value_of_text(text, field.dataType, time_zone=time_zone)
    return f"({text} <> '' AND {value} IS NULL)"


def value_of_text(text: str, data_type: DataType, *, time_zone: str) -> str:
    """A text of the log as a value of a type, in SQL; null where it is none.

    Parameters
    ----------
    text
        STRING, in SQL.
    time_zone
        The zone of timestamps written without one.

    References
    ----------
    PROTOCOL.md#partition-value-serialization
    """
    if isinstance(data_type, StringType):
        return text
    if isinstance(data_type, BinaryType):
        hexadecimal = f"replace({text}, {text_literal(_ESCAPE)}, '')"
        return (
            f"CASE WHEN {_matches(text, _ESCAPED_BYTES)} THEN unhex({hexadecimal}) "
            f"ELSE CAST({text} AS binary) END"
        )
    if isinstance(data_type, TimestampType):
        # A zone in the text makes the cast independent of the session's zone.
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
    """Whether Spark knows a time zone, in SQL."""
    moment = text_literal("2000-01-01 00:00:00")
    return f"({value_of_text(moment, TimestampType(), time_zone=zone)}) IS NOT NULL"


def _matches(text: str, pattern: str) -> str:
    return f"regexp_like({text}, {text_literal(pattern)})"
