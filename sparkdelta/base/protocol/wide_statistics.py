"""Statistics of a data file whose rows a deletion vector deletes in part.

References
----------
PROTOCOL.md#per-file-statistics, PROTOCOL.md#writer-requirement-for-deletion-vectors
"""

from __future__ import annotations

from typing import Any, TypeAlias

from sparkdelta.base.protocol.exact_json import ExactNumber, exact_text, parse_exact

JsonText: TypeAlias = str


def num_records(stats: JsonText | None) -> int | None:
    """Return `numRecords` of the statistics of a file; None if they do not have it."""
    value = _parsed(stats).get("numRecords")
    return int(value) if isinstance(value, ExactNumber) and value.isdecimal() else None


def wide_statistics(stats: JsonText | None, *, num_records: int, cardinality: int) -> JsonText:
    """Return statistics with wide bounds, which stay valid when a deletion vector deletes rows.

    Bounds and unknown members are unchanged. A null count that says that all rows are null becomes
    `numRecords`: other counts than that and zero say nothing in wide statistics.

    Parameters
    ----------
    stats
        The statistics of the file so far; None if it has none.
    num_records
        The number of rows in the data file, deleted ones included.
    cardinality
        The number of rows that the deletion vector of `stats` deletes.
    """
    known = _parsed(stats)
    if known.get("tightBounds") is not False and "nullCount" in known:
        all_null = str(num_records - cardinality)
        known["nullCount"] = _with_number(known["nullCount"], all_null, str(num_records))
    first = {"numRecords": ExactNumber(num_records)}
    return exact_text({**first, **known, **first, "tightBounds": False})


def _parsed(stats: JsonText | None) -> dict[str, Any]:
    try:
        document = parse_exact(stats or "{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _with_number(value: Any, old: str, new: str) -> Any:
    """Return JSON in which every number that is `old` is replaced."""
    if isinstance(value, dict):
        return {name: _with_number(member, old, new) for name, member in value.items()}
    return ExactNumber(new) if isinstance(value, ExactNumber) and value == old else value
