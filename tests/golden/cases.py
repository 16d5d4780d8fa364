"""The golden tables, as tests find them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parent / "tables"


@dataclass(frozen=True, slots=True)
class GoldenRead:
    """One read of a golden table and what it must give.

    Attributes
    ----------
    version
        The version to read.
    columns
        The columns to select, None for all.
    rows_file
        Parquet file with the expected rows, None where the read must fail.
    num_rows
        Their number.
    expect_error
        Why the read must fail, None where it must not.
    """

    version: int
    columns: tuple[str, ...] | None
    rows_file: Path | None
    num_rows: int
    expect_error: str | None


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """A golden table; ``facts`` is its whole ``case.json``."""

    name: str
    table: Path
    latest: int
    features: frozenset[str]
    reads: tuple[GoldenRead, ...]
    facts: dict[str, Any]


def golden_cases() -> list[GoldenCase]:
    """Load every golden table's description, in the order of their names."""
    return [_load(file) for file in sorted(TABLES.glob("*/case.json"))]


def _load(file: Path) -> GoldenCase:
    facts = json.loads(file.read_text(encoding="utf-8"))
    reads = tuple(
        GoldenRead(
            version=read["version"],
            columns=tuple(read["columns"]) if "columns" in read else None,
            rows_file=file.parent / read["rows_file"] if "rows_file" in read else None,
            num_rows=read.get("num_rows", 0),
            expect_error=read.get("expect_error"),
        )
        for read in facts["reads"]
    )
    return GoldenCase(
        name=facts["name"],
        table=file.parent / "delta",
        latest=facts["versions"]["latest"],
        features=frozenset(facts["features"]),
        reads=reads,
        facts=facts,
    )
