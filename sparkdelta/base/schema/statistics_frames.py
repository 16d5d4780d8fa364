"""Conversion of file statistics between JSON and structs.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.types import (
    DataType,
    DateType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.schema.moment_texts import date_text, in_utc
from sparkdelta.base.schema.partition_value_frames import value_of_text
from sparkdelta.base.schema.sql_text import from_json_text, type_text
from sparkdelta.base.schema.statistics_schema import leaves, spelled
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.schema.type_folds import transformed

_JSON_OPTIONS = {"mode": "PERMISSIVE", "timeZone": "UTC"}
_TEMPORAL = (DateType, TimestampType, TimestampNTZType)


def parsed_statistics(stats: str, *, statistics: StructType) -> str:
    """Return SQL for `add.stats` (STRING) parsed into a struct; null if missing or invalid JSON."""
    if not _has_temporal_leaves(statistics):
        return from_json_text(stats, statistics, **_JSON_OPTIONS)
    # Dates and timestamps are read as strings, because their parsing in JSON depends on settings of
    # the session. The lambda ensures that the JSON is parsed once.
    texts = from_json_text(stats, transformed(statistics, leaf=_read_as_string), **_JSON_OPTIONS)
    values = _leaf_by_leaf("texts", statistics, _value)
    return f"get(transform(array({texts}), texts -> {values}), 0)"


def _read_as_string(data_type: DataType) -> DataType:
    return StringType() if isinstance(data_type, _TEMPORAL) else data_type


def _value(text: str, data_type: DataType) -> str:
    if isinstance(data_type, _TEMPORAL):
        return value_of_text(text, data_type, time_zone="UTC")
    return text


def statistics_text(column: str, *, statistics: StructType) -> str:
    """Return SQL for a statistics struct as the JSON of `add.stats`, exact to the microsecond."""
    options = "map('ignoreNullFields', 'true', 'timeZone', 'UTC')"
    if not _has_temporal_leaves(statistics):
        return f"to_json({column}, {options})"
    # Dates and timestamps are converted to strings first, independent of the session's time zone
    # and formats. The lambda ensures that the struct is computed once.
    texts = f"transform(array({column}), value -> {_leaf_by_leaf('value', statistics, _text)})"
    return f"CASE WHEN {column} IS NOT NULL THEN to_json(get({texts}, 0), {options}) END"


def _has_temporal_leaves(statistics: StructType) -> bool:
    return any(isinstance(data_type, _TEMPORAL) for _, data_type in leaves(statistics))


def _leaf_by_leaf(value: str, data_type: DataType, convert: Callable[[str, DataType], str]) -> str:
    """Return SQL for a struct with every leaf converted; null if the struct is null."""
    if not isinstance(data_type, StructType):
        return convert(value, data_type)
    fields = (
        f"{_leaf_by_leaf(f'{value}.{quoted(f.name)}', f.dataType, convert)} AS {quoted(f.name)}"
        for f in data_type.fields
    )
    return f"CASE WHEN {value} IS NOT NULL THEN struct({', '.join(fields)}) END"


def _text(value: str, data_type: DataType) -> str:
    if isinstance(data_type, DateType):
        return date_text(value)
    if isinstance(data_type, TimestampType):
        return f"concat(replace(CAST({in_utc(value)} AS string), ' ', 'T'), 'Z')"
    if isinstance(data_type, TimestampNTZType):
        return f"replace(CAST({value} AS string), ' ', 'T')"
    return value


def conformed(column: str, *, stored: DataType, wanted: DataType) -> str:
    """Return SQL for a struct column of a checkpoint with the fields of `wanted`, matched by name.

    A field that is not stored is null. A leaf of another type (stored before a type change) is cast
    and null if the cast fails, because statistics may be missing but must not be wrong.
    """
    return quoted(column) if stored == wanted else _conformed(quoted(column), stored, wanted)


def _conformed(value: str, stored: DataType | None, wanted: DataType) -> str:
    if not isinstance(wanted, StructType):
        if stored is None:
            return f"CAST(NULL AS {type_text(wanted)})"
        return value if stored == wanted else f"TRY_CAST({value} AS {type_text(wanted)})"
    fields = {f.name: f.dataType for f in stored.fields} if isinstance(stored, StructType) else {}
    parts = []
    for field in wanted.fields:
        name = field.name if stored is None else spelled(stored, field.name)
        inner = _conformed(f"{value}.{quoted(name)}", fields.get(name), field.dataType)
        parts.append(f"{inner} AS {quoted(field.name)}")
    present = f"{value} IS NOT NULL" if isinstance(stored, StructType) else "FALSE"
    return f"CASE WHEN {present} THEN struct({', '.join(parts)}) END"
