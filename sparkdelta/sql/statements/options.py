"""delta-spark's options of reads and writes, as arguments of this library's functions."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.arguments import checked_path
from sparkdelta.base.protocol.table_properties import DEFAULT_TARGET_FILE_SIZE
from sparkdelta.base.spark.session_settings import (
    default_source,
    evolves_schemas,
    overwrites_partitions,
    transaction,
)
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

_LOGGER = logging.getLogger(__name__)
_NEAR = 0.8
_NOT_IMPLEMENTED = {
    "allowsourcecolumndrop", "allowsourcecolumnrename", "allowsourcecolumntypechange",
    "schemalocation", "schematrackinglocation", "timestampasof", "versionasof",
    "witheventtimeorder",
}  # fmt: skip
"""Options of streams that would change the result, in lower case."""

_VERSION = "versionAsOf"
_TRUTHS = {"true": True, "false": False}


def _truth(name: str, text: str) -> bool:
    truth = _TRUTHS.get(text.strip().lower())
    if truth is None:
        problem = f"{text!r} is neither true nor false"
        explained = {"input": text, "name": name, "explain": "must be 'true' or 'false'"}
        error = InvalidArgumentError(argument=name, problem=problem)
        raise error.named("DELTA_ILLEGAL_OPTION", **explained)
    return truth


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        error = InvalidArgumentError(argument=name, problem=f"{text!r} is no number")
        if name == _VERSION:
            error.named("DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", timeTravelKey=name)
        else:
            explained = "must be a non-negative integer"
            error.named("DELTA_ILLEGAL_OPTION", input=text, name=name, explain=explained)
        raise error from None


def _version(name: str, text: str) -> int | str:
    return "latest" if text.strip().lower() == "latest" else _number(name, text)


def _file_size(name: str, text: str) -> int | None:
    return DEFAULT_TARGET_FILE_SIZE if _truth(name, text) else None


def _text(name: str, text: str) -> str:  # noqa: ARG001 - one of several kinds of values
    return text


_Value = Callable[[str, str], Any]

READ: Mapping[str, tuple[str, _Value]] = {
    _VERSION: ("version", _number),
    "timestampAsOf": ("timestamp", _text),
}
"""Argument of `sparkdelta.read_delta` and kind of value, by the option's name."""

CHANGES: Mapping[str, tuple[str, _Value]] = {
    "startingVersion": ("start_version", _number),
    "endingVersion": ("end_version", _number),
    "startingTimestamp": ("start_timestamp", _text),
    "endingTimestamp": ("end_timestamp", _text),
}
"""Argument of `sparkdelta.read_changes` and kind of value, by the option's name."""

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
"""Argument of `sparkdelta.write_delta` and kind of value, by the option's name."""

READ_STREAM: Mapping[str, tuple[str, _Value]] = {
    "startingVersion": ("starting_version", _version),
    "startingTimestamp": ("starting_timestamp", _text),
    "maxFilesPerTrigger": ("max_files_per_trigger", _number),
    "maxBytesPerTrigger": ("max_bytes_per_trigger", _number),
    "ignoreDeletes": ("ignore_deletes", _truth),
    "ignoreChanges": ("ignore_changes", _truth),
    "skipChangeCommits": ("skip_change_commits", _truth),
    "excludeRegex": ("exclude_regex", _text),
    "readChangeFeed": ("read_change_feed", _truth),
    "readChangeData": ("read_change_feed", _truth),
    "failOnDataLoss": ("fail_on_data_loss", _truth),
}
"""Argument of `sparkdelta.read_stream` and kind of value, by the option's name."""

WRITE_STREAM: Mapping[str, tuple[str, _Value]] = {
    "checkpointLocation": ("checkpoint_location", _text),
    "queryName": ("query_name", _text),
    "mergeSchema": ("merge_schema", _truth),
    "overwriteSchema": ("overwrite_schema", _truth),
    "userMetadata": ("user_metadata", _text),
    "maxRecordsPerFile": ("max_records_per_file", _number),
    "optimizeWrite": ("target_file_size", _file_size),
    "compression": ("compression", _text),
}
"""Argument of `sparkdelta.write_stream` and kind of value, by the option's name."""


def is_delta(source: str | None, spark: SparkSession) -> bool:
    """Return True if a format, or the default one of a session if there is none, is Delta's."""
    return (source or default_source(spark)).lower() == "delta"


def check_format_of_table(source: str | None, spark: SparkSession, name: str) -> None:
    """Refuse to add rows in another format, or the default one of a session, to a Delta table."""
    if not is_delta(source, spark):
        problem = f"it is not the format of table {name}; add .format('delta')"
        raise InvalidArgumentError(argument="format", problem=problem)


def table_properties(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split options into options of the call and table properties (``delta.*``)."""
    properties = {name: text for name, text in options.items() if name.startswith("delta.")}
    return {n: text for n, text in options.items() if n not in properties}, properties


def check_no_schema(*, given: bool) -> None:
    """Refuse a schema that is given for a read."""
    if given:
        problem = "a Delta table has its own schema; remove it, and select the columns"
        raise InvalidArgumentError(argument="schema", problem=problem)


def one_path(path: Any, options: Mapping[str, str]) -> str:
    """Return the path of a read or write: an argument, or an option.

    Raises
    ------
    InvalidArgumentError
        There is none, or more than one.
    """
    if isinstance(path, list | tuple) and len(path) == 1:
        path = path[0]
    if path is None:
        path = given_location(options)
    if path is None or isinstance(path, list | tuple):
        problem = "exactly one path of a Delta table is required"
        raise InvalidArgumentError(argument="path", problem=problem)
    return checked_path(path)


def given_location(options: Mapping[str, str]) -> str | None:
    """Return the path among the options of a read or write; None if there is none."""
    return next((text for name, text in options.items() if name.lower() == "path"), None)


def asks_for_changes(options: Mapping[str, str]) -> bool:
    """Return True if the options of a read ask for changes."""
    wanted = {name.lower() for name in READS_CHANGES}
    return any(_truth(n, text) for n, text in options.items() if n.lower() in wanted)


def names_version(options: Mapping[str, str]) -> bool:
    """Return True if the options of a read have a version or time."""
    names = {name.lower() for name in READ}
    return any(name.lower() in names for name in options)


def check_no_version(options: Mapping[str, str]) -> None:
    """Refuse a version or time among the options of a read of changes."""
    if names_version(options):
        problem = "changes are read between two versions; give startingVersion"
        raise InvalidArgumentError(argument=" or ".join(READ), problem=problem)


def arguments(
    options: Mapping[str, str],
    known: Mapping[str, tuple[str, _Value]],
    *,
    function: str,
    others: Collection[str] = (),
) -> dict[str, Any]:
    """Return options as arguments of a function.

    As in delta-spark, other options are ignored: programs give the same ones to readers of every
    format. The log names them, with a warning for one that is spelled almost as an option of the
    function.

    Parameters
    ----------
    options
        Texts by names in any case.
    function
        Named in errors and in the log.
    others
        Options that the caller looks at itself, beside ``path``.

    Raises
    ------
    DELTA_UNKNOWN_ARGUMENT
        delta-spark has the option, and it is not implemented.
    InvalidArgumentError
        A value is not of the option's kind.
    """
    by_lower_case = {name.lower(): name for name in known}
    seen = {"path", *(name.lower() for name in others)}
    found: dict[str, Any] = {}
    ignored: list[str] = []
    for given, text in options.items():
        name = by_lower_case.get(given.lower())
        if name is not None:
            argument, value = known[name]
            found[argument] = value(name, text)
        elif known is READ_STREAM and given.lower() in _NOT_IMPLEMENTED:
            suggestion = f"Its options are {', '.join(known)}"
            raise DeltaError.of(
                "DELTA_UNKNOWN_ARGUMENT", function=function, argument=given, suggestion=suggestion
            )
        elif given.lower() not in seen:
            ignored.append(given)
    _log_ignored(function, ignored, [*known, *others])
    return found


def _log_ignored(function: str, names: Sequence[str], known: Collection[str]) -> None:
    lower = {name.lower(): name for name in known}
    for name in names:
        for match in difflib.get_close_matches(name.lower(), lower, n=1, cutoff=_NEAR):
            text = "%s ignores the unknown option %s. Did you mean %s?"
            _LOGGER.warning(text, function, name, lower[match])
    if names:
        _LOGGER.info("%s ignores the unknown options %s", function, ", ".join(names))


def with_settings(
    options: Mapping[str, Any], *, overwrites: bool, partition_by: Sequence[str] | None = None
) -> dict[str, Any]:
    """Add arguments of a write from the settings of a followed session.

    Parameters
    ----------
    overwrites
        True if the mode is overwrite; others ignore ``partitionOverwriteMode``.
    """
    found = dict(options)
    if "merge_schema" not in found:
        found["merge_schema"] = evolves_schemas()
    if "txn_app_id" not in found and "txn_version" not in found:
        named = transaction()
        found |= {} if named is None else {"txn_app_id": named[0], "txn_version": named[1]}
    if "partition_overwrite_mode" not in found:
        is_unpartitioned = found.get("overwrite_schema") and not partition_by
        is_whole = found.get("replace_where") is None and not is_unpartitioned
        is_dynamic = overwrites and is_whole and overwrites_partitions()
        found["partition_overwrite_mode"] = "dynamic" if is_dynamic else "static"
    return found
