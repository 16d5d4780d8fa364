"""Parsing of serialized partition values.

`base.schema.partition_value_frames` implements the same rule for columns;
`tests/base/schema/test_partition_value_frames.py` compares the two.

References
----------
PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone, tzinfo
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_HALF_UP,
    Context,
    Decimal,
    DecimalException,
    InvalidOperation,
)
from typing import TypeAlias
from zoneinfo import ZoneInfo

from sparkdelta.exceptions import InvalidPartitionValueError

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Stands for null in the names of directories of Hive and Spark."""

_ESCAPED = re.compile("[\x01-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")

PartitionValue: TypeAlias = str | int | float | bool | bytes | date | datetime | Decimal | None

_INTEGER_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_DECIMAL_TYPE = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
# Precise enough for every decimal type; the context of the caller's thread might round.
_DECIMALS = Context(prec=100, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation])
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_TIMESTAMP = re.compile(
    r"(?P<date>\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[ T](?P<clock>\d{1,2}:\d{1,2}(?::\d{1,2})?)(?:\.(?P<fraction>\d{1,9}))?"
    r"(?:\s*(?P<zone>Z|UTC|[+-]\d{1,2}:?\d{2}))?)?"
)
_ESCAPED_BYTES = re.compile(r"(?:\\u00[0-9A-Fa-f]{2})+")


def parse_partition_value(
    text: str | None, data_type: str, *, time_zone: str = "UTC", column: str = "unknown"
) -> PartitionValue:
    r"""Parse a serialized partition value; None for null and the empty string.

    Parameters
    ----------
    data_type
        The name of the column's primitive type, as in the JSON of the schema.
    time_zone
        The time zone of timestamps that are serialized without one.
    column
        The name of the column, for the error message.

    Returns
    -------
    PartitionValue
        For timestamps, aware datetimes in UTC; for timestamps without time zone, naive datetimes.
        For binary, the text in UTF-8, or the bytes of its ``\u0001`` escapes if it has nothing
        else. Years beyond Python's dates raise an error.
    """
    if text is None or text == "":
        return None
    try:
        return _parse(text, data_type, time_zone)
    except (ValueError, ArithmeticError) as error:
        raise InvalidPartitionValueError(column=column, value=text, data_type=data_type) from error


def escaped_name(text: str) -> str:
    """Escape a name or value for the name of a directory, as Hive and Spark do.

    Examples
    --------
    >>> escaped_name("10:30")
    '10%3A30'
    """
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def _parse(text: str, data_type: str, time_zone: str) -> PartitionValue:
    if data_type == "string":
        return text
    if data_type == "binary":
        return _bytes(text)
    if data_type == "timestamp":
        return _timestamp(text.strip(), ZoneInfo(time_zone)).astimezone(timezone.utc)
    if data_type in _INTEGER_BITS:
        return _integer(text.strip(), _INTEGER_BITS[data_type])
    if decimal_type := _DECIMAL_TYPE.fullmatch(data_type):
        return _decimal(text.strip(), int(decimal_type[1]), int(decimal_type[2]))
    if data_type in _PARSERS:
        return _PARSERS[data_type](text.strip())
    raise ValueError(f"{data_type} is no type of partition columns")


def _bytes(text: str) -> bytes:
    if _ESCAPED_BYTES.fullmatch(text):
        return bytes.fromhex(text.replace("\\u00", ""))
    return text.encode("utf-8")


def _integer(text: str, bits: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("not an integer")
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError("out of range")
    return value


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    value = Decimal(_without_underscore(text)).quantize(
        Decimal((0, (1,), -scale)), ROUND_HALF_UP, context=_DECIMALS
    )
    if not value.is_finite() or value.copy_abs() >= 10 ** (precision - scale):
        raise DecimalException("out of range")
    return value


def _double(text: str) -> float:
    return float(_without_underscore(text))


def _float(text: str) -> float:
    value = _double(text)
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _without_underscore(text: str) -> str:
    # Python accepts underscores between digits, Spark does not.
    if "_" in text:
        raise ValueError("not a number")
    return text


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text.lower() == "true"


def _date(text: str) -> date:
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError("not a date")
    year, month, day = map(int, match.groups())
    return date(year, month, day)


def _timestamp_ntz(text: str) -> datetime:
    return _timestamp(text.removesuffix("Z"), None)


def _timestamp(text: str, default_zone: tzinfo | None) -> datetime:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError("not a timestamp")
    day = _date(match["date"])
    hour, minute, second = ([int(n) for n in (match["clock"] or "0:0").split(":")] + [0])[:3]
    micros = int((match["fraction"] or "").ljust(6, "0")[:6])
    zone = default_zone if match["zone"] is None else _zone(match["zone"])
    return datetime(day.year, day.month, day.day, hour, minute, second, micros, tzinfo=zone)


def _zone(text: str) -> tzinfo:
    if text in ("Z", "UTC"):
        return timezone.utc
    hours, minutes = int(text[1:].replace(":", "")[:-2]), int(text[-2:])
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)


_PARSERS: dict[str, Callable[[str], PartitionValue]] = {
    "boolean": _boolean,
    "date": _date,
    "double": _double,
    "float": _float,
    "timestamp_ntz": _timestamp_ntz,
}
