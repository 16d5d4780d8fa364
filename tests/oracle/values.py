"""Random columns and SQL literals for random histories."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

TEXTS = (
    "plain", "", " lead and trail ", "100%", "%20", "a/b=c", "12:30", "#&+?", "snow 雪 ü", "😀",
    "it's", "back\\slash", "line\nbreak", "null", "__HIVE_DEFAULT_PARTITION__", ".", "{}[]*<>|",
)  # fmt: skip
DATES = ("0001-01-01", "1582-10-04", "1582-10-15", "1969-12-31", "2024-02-29", "9999-12-31")
TIMES = ("00:00:00", "23:59:59.999999", "01:02:03.456789", "12:00:00.5")
LIMITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
DOUBLES = ("'NaN'", "'Infinity'", "'-Infinity'", "'-0.0'", "0", "1.5", "-2.5E-10", "1E30")

PRIMITIVES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,2)",
    "DECIMAL(20,4)", "STRING", "BINARY", "DATE", "TIMESTAMP",
)  # fmt: skip
NESTED = (
    "STRUCT<a: INT, `b.C`: STRING>",
    "ARRAY<INT>",
    "MAP<STRING, DOUBLE>",
    "ARRAY<STRUCT<x: DATE, y: ARRAY<STRING>>>",
    "STRUCT<m: MAP<INT, STRUCT<z: DECIMAL(5,2)>>>",
)
WIDER = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT", "DOUBLE"),
    "SMALLINT": ("INT", "BIGINT", "DECIMAL(12,1)"),
    "INT": ("BIGINT", "DOUBLE", "DECIMAL(14,3)"),
    "BIGINT": ("DECIMAL(22,1)",),
    "FLOAT": ("DOUBLE",),
    "DECIMAL(5,2)": ("DECIMAL(10,3)", "DECIMAL(20,4)"),
}
PLAIN_NAMES = ("name", "MixedCase", "ünï", "a.b", "it's", "100%", "_under", "select", "name2")
MAPPED_NAMES = ("with space", "a, b; c", "{brace}", "eq=ual", "tab\tname", "(paren)", "雪 / %")


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the history's author knows it; ``type`` is SQL."""

    name: str
    type: str
    partition: bool = False

    @property
    def quoted(self) -> str:
        """The name between backticks."""
        return f"`{self.name}`"


def literal(random: Random, data_type: str, *, nullable: bool = True) -> str:
    """Make an SQL expression of the type, now and then a null."""
    if nullable and random.random() < 0.15:
        return f"CAST(NULL AS {data_type})"
    return f"CAST({_expression(random, data_type)} AS {data_type})"


def _expression(random: Random, data_type: str) -> str:
    if data_type in LIMITS:
        least = -(2 ** LIMITS[data_type])
        return f"'{random.choice((least, -least - 1, 0, random.randint(-100, 100)))}'"
    if data_type.startswith("DECIMAL"):
        return random.choice(("0", "-0.5", "123.25", "-99.99"))
    if data_type in ("FLOAT", "DOUBLE"):
        return random.choice(DOUBLES)
    if data_type == "BOOLEAN":
        return random.choice(("true", "false"))
    if data_type == "STRING":
        return _quoted(random.choice(TEXTS))
    if data_type == "BINARY":
        return random.choice(("'abc'", "'ü'", "'snow 雪'", "'x'"))
    if data_type == "DATE":
        return f"'{random.choice(DATES)}'"
    if data_type.startswith("TIMESTAMP"):
        return f"'{random.choice(DATES)} {random.choice(TIMES)}'"
    return _nested(random, data_type)


def _nested(random: Random, data_type: str) -> str:
    kind, inner = data_type.split("<", 1)
    parts = _split(inner[:-1])
    if kind == "ARRAY":
        items = ", ".join(literal(random, parts[0]) for _ in range(random.randint(0, 3)))
        return f"array({items})"
    if kind == "MAP":
        keys = range(random.randint(0, 2))
        entries = ", ".join(
            f"CAST('{key}' AS {parts[0]}), {literal(random, parts[1])}" for key in keys
        )
        return f"map({entries})"
    fields = []
    for part in parts:
        name, field_type = part.split(":", 1)
        fields.append(f"{_quoted(name.strip('` '))}, {literal(random, field_type.strip())}")
    return f"named_struct({', '.join(fields)})"


def _split(text: str) -> list[str]:
    """Split at the commas that are in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
