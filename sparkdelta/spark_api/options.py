"""delta-spark's options of reads and writes, as arguments of this library's functions."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from sparkdelta.exceptions import InvalidArgumentError, UnknownArgumentError
from sparkdelta.protocol.table_properties import DEFAULT_TARGET_FILE_SIZE

_TRUTHS = {"true": True, "false": False}


def _truth(name: str, text: str) -> bool:
    truth = _TRUTHS.get(text.strip().lower())
    if truth is None:
        problem = f"{text!r} is neither true nor false"
        raise InvalidArgumentError(argument=name, problem=problem)
    return truth


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(argument=name, problem=f"{text!r} is no number") from None


def _file_size(name: str, text: str) -> int | None:
    return DEFAULT_TARGET_FILE_SIZE if _truth(name, text) else None


def _text(name: str, text: str) -> str:  # noqa: ARG001 - one of several kinds of values
    return text


_Value = Callable[[str, str], Any]

READ: Mapping[str, tuple[str, _Value]] = {
    "versionAsOf": ("version", _number),
    "timestampAsOf": ("timestamp", _text),
}
"""Argument of `sparkdelta.read_delta` and kind of value, by the option's name."""

CHANGES: Mapping[str, tuple[str, _Value]] = {
    "startingVersion": ("start_version", _number),
    "endingVersion": ("end_version", _number),
    "startingTimestamp": ("start_timestamp", _text),
    "endingTimestamp": ("end_timestamp", _text),
}
"""The same of `sparkdelta.read_changes`."""

READS_CHANGES = ("readChangeFeed", "readChangeData")
"""The options that ask for changes."""

WRITE: Mapping[str, tuple[str, _Value]] = {
    "mergeSchema": ("merge_schema", _truth),
    "overwriteSchema": ("overwrite_schema", _truth),
    "replaceWhere": ("replace_where", _text),
    "partitionOverwriteMode": ("partition_overwrite_mode", _text),
    "txnAppId": ("txn_app_id", _text),
    "txnVersion": ("txn_version", _number),
    "userMetadata": ("user_metadata", _text),
    "dataChange": ("data_change", _truth),
    "maxRecordsPerFile": ("max_records_per_file", _number),
    "compression": ("compression", _text),
    "optimizeWrite": ("target_file_size", _file_size),
}
"""The same of `sparkdelta.write_delta`."""

PROPERTY_PREFIX = "delta."
"""Options that begin with it are table properties."""


def asks_for_changes(options: Mapping[str, str]) -> bool:
    """True if the options of a read ask for changes."""
    wanted = {name.lower() for name in READS_CHANGES}
    return any(_truth(n, text) for n, text in options.items() if n.lower() in wanted)


def arguments(
    options: Mapping[str, str],
    known: Mapping[str, tuple[str, _Value]],
    *,
    function: str,
    others: Collection[str] = (),
) -> dict[str, Any]:
    """Return options as arguments of a function.

    Parameters
    ----------
    options
        Texts by names in any case.
    function
        Named in errors.
    others
        Options that the caller looks at itself, beside ``path``.

    Raises
    ------
    UnknownArgumentError
        There is no such option.
    InvalidArgumentError
        A value is not of the option's kind.
    """
    by_lower_case = {name.lower(): name for name in known}
    ignored = {"path", *(name.lower() for name in others)}
    found: dict[str, Any] = {}
    for given, text in options.items():
        name = by_lower_case.get(given.lower())
        if name is not None:
            argument, value = known[name]
            found[argument] = value(name, text)
        elif given.lower() not in ignored:
            raise UnknownArgumentError(
                function=function,
                argument=given,
                suggestion=_suggestion(given, [*known, *others]),
            )
    return found


def _suggestion(given: str, known: Collection[str]) -> str:
    lower = {name.lower(): name for name in known}
    nearest = difflib.get_close_matches(given.lower(), lower, n=1)
    return f"Use {lower[nearest[0]]}" if nearest else f"Its options are {', '.join(known)}"
