"""Actions from lines in the driver's memory, without Spark.

References
----------
PROTOCOL.md#delta-log-entries
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from sparkdelta.table.listing.log_line_frames import BLANKS

ActionsOfLine: TypeAlias = dict[str, Any]
"""The version of a line, and its requested actions by name: their fields, or None."""

_BITS = {IntegerType: 31, LongType: 63}


def plain_actions(lines: pa.Table, actions: StructType) -> list[ActionsOfLine] | None:
    """Parse lines as `table.listing.log_line_frames.parse_log_lines` does. None if one of them is
    not a JSON object whose values have exactly the types of the actions: Spark decides about it.
    """
    versions, texts = lines["version"].to_pylist(), lines["line"].to_pylist()
    try:
        return [
            {"version": version, **_parsed(text, actions)}
            for version, text in zip(versions, texts, strict=True)
            if text.strip(BLANKS)
        ]
    except (ValueError, RecursionError):
        return None


def _parsed(text: str, actions: StructType) -> dict[str, Any]:
    if "\\u" in text:
        raise ValueError("escapes can make text that is not UTF-8")
    document = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    fields: dict[str, Any] = _typed(document, actions)
    return fields


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name is repeated")
    return fields


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _typed(value: Any, data_type: DataType) -> Any:
    """Return a value with the fields of a type, or raise a ValueError if it has another type."""
    if value is None and not isinstance(data_type, StructType):
        return None
    match value, data_type:
        case dict(), StructType():
            return {field.name: _field(value, field.name, field.dataType) for field in data_type}
        case dict(), MapType(valueType=kind):
            return {key: _typed(each, kind) for key, each in value.items()}
        case list(), ArrayType(elementType=kind):
            return [_typed(each, kind) for each in value]
        case (str(), StringType()) | (bool(), BooleanType()):
            return value
        case bool(), _:
            pass
        case int(), IntegerType() | LongType():
            bits = _BITS[type(data_type)]
            if -(2**bits) <= value < 2**bits:
                return value
    raise ValueError(f"{value!r} is not of type {data_type.simpleString()}")


def _field(fields: dict[str, Any], name: str, data_type: DataType) -> Any:
    value = fields.get(name)
    return None if value is None else _typed(value, data_type)
