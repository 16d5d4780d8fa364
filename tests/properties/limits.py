"""Rows with the first and last values of every type that has an order, as Spark SQL, and conditions
on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product
from random import Random

_NINES = "9" * 38
_LONG = "a" * 31
_TEXTS = [
    "", "?", "a", "z", "\u00fc", "\ufffd", "\uffff", "\U0001f600", _LONG, _LONG + "z",
    _LONG + "\U0001f600b", _LONG + "a\U0001f600", _LONG + "a\uffffz", "\U0001f600" * 40,
    "\U0010ffff" * 40,
]  # fmt: skip
_DAYS = ["0001-01-01", "1582-10-04", "1582-10-15", "1969-12-31", "2024-02-29", "9999-12-31"]
_MOMENTS = [
    "0001-01-01 00:00:00", "0001-01-01 00:00:00.000001", "1582-10-10 00:00:00.5",
    "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "9999-12-31 23:59:59.999",
    "9999-12-31 23:59:59.999999",
]  # fmt: skip


def _decimals(precision: int, scale: int, *texts: str) -> list[str]:
    return [f"CAST('{text}' AS DECIMAL({precision},{scale}))" for text in texts]


VALUES: Mapping[str, Sequence[str]] = {
    "d0": _decimals(
        38, 0, f"-{_NINES}", f"-{_NINES[1:]}8", "-1", "0", "1",
        "12345678901234567890123456789012345678", "12345678901234567890123456789012345679",
        f"{_NINES[1:]}8", _NINES,
    ),
    "d18": _decimals(
        38, 18, "-12345678901234567890.123456789012345678", "0", "0.000000000000000001",
        "12345678901234567890.123456789012345678", "12345678901234567890.123456789012345679",
    ),
    "d38": _decimals(
        38, 38, f"-0.{_NINES}", f"-0.{_NINES[1:]}8", "0", f"0.{'0' * 37}1", f"0.{_NINES}"
    ),
    "l": ["-9223372036854775808L", "-9007199254740993L", "0L", "9007199254740992L",
          "9007199254740993L", "9223372036854775806L", "9223372036854775807L"],
    "f": [f"CAST('{text}' AS DOUBLE)" for text in
          ("-Infinity", "-1.7976931348623157E308", "-0.0", "0.0", "4.9E-324", "1.5",
           "1.7976931348623157E308", "Infinity", "NaN")],
    "r": [f"CAST('{text}' AS FLOAT)" for text in
          ("-Infinity", "-3.4028235E38", "-0.0", "0.1", "1.4E-45", "3.4028235E38", "NaN")],
    "day": [f"DATE'{text}'" for text in _DAYS],
    "ts": [f"TIMESTAMP'{text}Z'" for text in _MOMENTS],
    "n": [f"TIMESTAMP_NTZ'{text}'" for text in _MOMENTS],
    "s": [f"'{text}'" for text in _TEXTS],
}  # fmt: skip
"""The values of each column, in order."""

FILES = 24
_OPERATORS = ("=", "<", "<=", ">", ">=", "<>", "<=>")


def rows(random: Random) -> str:
    """The rows of the files, two each: neighbours in the order of one column, or a null."""
    lines = []
    for number in range(FILES):
        pair: list[list[str]] = [[], []]
        for values in VALUES.values():
            first = random.randrange(len(values))
            second = min(len(values) - 1, first + random.randrange(2))
            pair[0].append(values[first])
            pair[1].append(random.choice([values[second], values[second], "NULL"]))
        lines += [f"({number}, {', '.join(row)})" for row in pair]
    return f"SELECT * FROM VALUES {', '.join(lines)} AS t(file, {', '.join(VALUES)})"


def conditions(random: Random, per_column: int) -> list[str]:
    """So many on each column, of its own values."""
    found = []
    for name, values in VALUES.items():
        pairs = list(product(_OPERATORS, values))
        random.shuffle(pairs)
        found += [f"{name} {sign} {value}" for sign, value in islice(pairs, per_column)]
        listed = random.choices(values, k=10)
        found.append(" OR ".join(f"{name} = {value}" for value in listed))
        found.append(f"{name} NOT IN ({', '.join(listed)})")
    return found
