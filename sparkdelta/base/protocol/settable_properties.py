"""Table properties that users may set: their names, and checks of their values.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#table-features, PROTOCOL.md#row-tracking
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from sparkdelta.base.protocol.column_lists import STATISTICS_COLUMNS, column_list
from sparkdelta.base.protocol.iceberg_compatibility import needed_properties
from sparkdelta.base.protocol.isolation_levels import ISOLATION_LEVEL, table_isolation_level
from sparkdelta.base.protocol.retention import (
    DELETED_FILE_RETENTION,
    LOG_RETENTION,
    SET_TRANSACTION_RETENTION,
    TRUNCATED_HISTORY_RETENTION,
    deleted_file_retention_ms,
    interval_ms,
    log_retention_ms,
)
from sparkdelta.base.protocol.table_features import (
    FEATURES,
    READER_FEATURES_VERSION,
    WRITER_FEATURES_VERSION,
    TableFeature,
    known_feature,
)
from sparkdelta.base.protocol.table_properties import (
    AUTO_COMPACT,
    AUTO_OPTIMIZE,
    ENABLE_IN_COMMIT_TIMESTAMPS,
    ENABLE_ROW_TRACKING,
    OPTIMIZE_WRITE,
    SUSPEND_ROW_TRACKING,
    TARGET_FILE_SIZE,
    WRITE_PARTITION_COLUMNS,
    is_on,
    target_file_size,
)
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

PREFIX, FEATURE, CONSTRAINT = "delta.", "delta.feature.", "delta.constraints."
COMMENT = "comment"
MIN_READER_VERSION, MIN_WRITER_VERSION = "delta.minReaderVersion", "delta.minWriterVersion"
_UNIFORM_FORMATS, _UNIFORM_CONFIG = (
    "delta.universalFormat.enabledFormats",
    "delta.universalformat.config.",
)
_LONGEST_INT = 2**31 - 1

Check = Callable[[str, str], object]
"""Raises `InvalidArgumentError` if a property, by name and value, is invalid."""


@dataclass(frozen=True, slots=True)
class RequestedProperties:
    """The table properties, features and protocol versions that a user requests.

    Attributes
    ----------
    configuration
        The properties to store in the metadata, with names spelled as in the protocol.
    features
        The names of the features requested with `delta.feature.<name>`.
    reader_version, writer_version
        The requested minimum protocol versions, or None.
    """

    configuration: Mapping[str, str] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    reader_version: int | None = None
    writer_version: int | None = None


def requested_properties(
    properties: Mapping[str, str], defaults: Mapping[str, str] | None = None
) -> RequestedProperties:
    """Check the properties that a user sets for a new table, and the defaults of others, of which
    delta-spark does not compare the retention periods.

    Iceberg compatibility enables column mapping by name and, in version 3, row tracking, unless
    they are set; a table that a catalog manages has in-commit timestamps. A table that ignores the
    defaults of the protocol has the lowest versions that it needs, from 1 on.
    """
    requested = changed_properties(with_defaults(properties, defaults or {}))
    configuration = dict(requested.configuration)
    configuration |= needed_properties(configuration)
    spelled = {name.lower(): value for name, value in properties.items()}
    lowest = 1 if is_on(spelled, _IGNORE_DEFAULTS.lower()) else None
    if TableFeature.CATALOG_MANAGED in map(known_feature, requested.features):
        configuration.setdefault(ENABLE_IN_COMMIT_TIMESTAMPS, "true")
    check_retention(changed_properties(properties).configuration)
    check_row_tracking(configuration)
    return replace(
        requested,
        configuration=configuration,
        reader_version=requested.reader_version or lowest,
        writer_version=requested.writer_version or lowest,
    )


def with_defaults(properties: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a new table, with the defaults of other properties.

    As in delta-spark, defaults with another name or spelling than a property's, and defaults
    of protocol versions, are ignored.
    """
    given = set(map(property_name, properties)) | {MIN_READER_VERSION, MIN_WRITER_VERSION}
    usable = set(_SPELLINGS.values()) - given
    return {**{name: text for name, text in defaults.items() if name in usable}, **properties}


def without_comment(properties: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    """Return the properties without `comment`, and its value: the table's description, or None."""
    others = {name: value for name, value in properties.items() if name.lower() != COMMENT}
    comments = (value for name, value in properties.items() if name not in others)
    return others, next(comments, None)


def changed_properties(properties: Mapping[str, str]) -> RequestedProperties:
    """Check the properties that a user sets, regardless of the table's other properties.

    Names that do not begin with `delta.` are user-defined and accepted with any string.
    """
    configuration: dict[str, str] = {}
    features: set[str] = set()
    versions: dict[str, int] = {}
    for spelling, value in properties.items():
        if not isinstance(value, str):
            raise InvalidArgumentError(argument=spelling, problem=f"{value!r} is not a string")
        name = property_name(spelling)
        if name.startswith(FEATURE):
            if value.lower() not in ("supported", "enabled"):
                problem, feature = f"{value!r} is not 'supported'", name.removeprefix(FEATURE)
                raise InvalidArgumentError(argument=name, problem=problem).named(
                    "DELTA_UNSUPPORTED_FEATURE_STATUS", feature=feature.lower(), status=value
                )
            features.add(name.removeprefix(FEATURE))
            continue
        if name in _RULES:
            _RULES[name](name, value)
        if name in (MIN_READER_VERSION, MIN_WRITER_VERSION):
            versions[name] = int(value)
        elif name != _IGNORE_DEFAULTS:
            configuration[name] = value
    return RequestedProperties(
        configuration,
        frozenset(features),
        versions.get(MIN_READER_VERSION),
        versions.get(MIN_WRITER_VERSION),
    )


def check_retention(configuration: Mapping[str, str]) -> None:
    """Raise if log files would be deleted before data files."""
    if log_retention_ms(configuration) < deleted_file_retention_ms(configuration):
        problem = f"it is shorter than {DELETED_FILE_RETENTION}"
        raise InvalidArgumentError(argument=LOG_RETENTION, problem=problem)


def check_row_tracking(configuration: Mapping[str, str]) -> None:
    """Raise if row tracking is both enabled and suspended."""
    if is_on(configuration, ENABLE_ROW_TRACKING) and is_on(configuration, SUSPEND_ROW_TRACKING):
        raise DeltaError.of(
            "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            enabled=ENABLE_ROW_TRACKING,
            suspended=SUSPEND_ROW_TRACKING,
        )


def property_name(name: str) -> str:
    """Return the protocol's spelling of a property that users may set, given any case."""
    lower = name.lower()
    if not lower.startswith(PREFIX):
        return name
    if lower.startswith(CONSTRAINT) and lower != CONSTRAINT:
        return CONSTRAINT + name[len(CONSTRAINT) :]
    if lower.startswith(_UNIFORM_CONFIG):  # stored for other writers, as delta-spark spells it
        return lower
    found = _SPELLINGS.get(lower)
    if found is None:
        near = [_SPELLINGS[match] for match in get_close_matches(lower, _SPELLINGS, cutoff=0.75)]
        suggestion = f" Did you mean {' or '.join(near)}?" if near else ""
        is_feature = lower.startswith(FEATURE.lower())
        raise DeltaError.of(
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG" if is_feature else "DELTA_UNKNOWN_CONFIGURATION",
            property=name,
            suggestion=suggestion,
        )
    return found


def _boolean(name: str, value: str) -> None:
    if value.lower() not in ("true", "false"):
        raise InvalidArgumentError(
            argument=name, problem=f"it must be true or false, not {value!r}"
        )


def _integer(low: int, high: int = _LONGEST_INT) -> Check:
    def check(name: str, value: str) -> None:
        if not re.fullmatch(r"[+-]?\d+", value) or not low <= int(value) <= high:
            problem = f"it must be an integer from {low} to {high}, not {value!r}"
            raise InvalidArgumentError(argument=name, problem=problem)

    return check


def _one_of(*values: str) -> Check:
    def check(name: str, value: str) -> None:
        if value.lower() not in values:
            problem = f"{value!r} is not one of {', '.join(values)}"
            raise InvalidArgumentError(argument=name, problem=problem)

    return check


def _parquet_version(name: str, value: str) -> None:
    if not re.fullmatch(r"1\.0\.0|2\.[0-9]+\.[0-9]+", value):
        problem = f"it must be 1.0.0, or a version of Parquet 2 such as 2.12.0, not {value!r}"
        raise InvalidArgumentError(argument=name, problem=problem)


def _isolation_level(name: str, value: str) -> None:
    table_isolation_level({name: value})


def _no_formats(name: str, value: str) -> None:
    formats = [each.strip() for each in value.lower().split(",")] if value.strip() else []
    for each in formats:
        if each not in ("iceberg", "hudi"):
            raise InvalidArgumentError(argument=name, problem=f"{each!r} is not iceberg or hudi")
    if formats:
        raise DeltaError.of("DELTA_UNIVERSAL_FORMAT_VIOLATION", formats=formats)


def _size(name: str, value: str) -> None:
    target_file_size({OPTIMIZE_WRITE: "true", name: value})


_IGNORE_DEFAULTS = "delta.ignoreProtocolDefaults"
_RULES: dict[str, Check] = {
    **dict.fromkeys(
        (
            "delta.appendOnly", AUTO_OPTIMIZE, AUTO_COMPACT,
            "delta.autoOptimize.optimizeWrite", "delta.checkpoint.writeStatsAsJson",
            "delta.compatibility.symlinkFormatManifest.enabled",
            "delta.checkpoint.writeStatsAsStruct", "delta.enableChangeDataFeed",
            "delta.enableDeletionVectors", "delta.enableExpiredLogCleanup",
            "delta.enableFullRetentionRollback", "delta.enableIcebergCompatV1",
            "delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3",
            "delta.enableInCommitTimestamps", "delta.enableMaterializePartitionColumnsFeature",
            "delta.enableRowTracking", "delta.enableTypeWidening", SUSPEND_ROW_TRACKING,
            "delta.enableVariantShredding", _IGNORE_DEFAULTS, "delta.randomizeFilePrefixes",
            WRITE_PARTITION_COLUMNS,
        ),
        _boolean,
    ),
    **dict.fromkeys(
        (
            "delta.checkpointRetentionDuration", DELETED_FILE_RETENTION,
            TRUNCATED_HISTORY_RETENTION, LOG_RETENTION,
            "delta.sampleRetentionDuration", SET_TRANSACTION_RETENTION,
        ),
        interval_ms,
    ),
    "delta.checkpointInterval": _integer(1),
    "delta.checkpointPolicy": _one_of("classic", "v2"),
    "delta.columnMapping.mode": _one_of("none", "name", "id"),
    "delta.dataSkippingNumIndexedCols": _integer(-1),
    STATISTICS_COLUMNS: column_list,
    "delta.dataSkippingStringPrefixLength": _integer(0),
    ISOLATION_LEVEL: _isolation_level,
    MIN_READER_VERSION: _integer(1, READER_FEATURES_VERSION),
    MIN_WRITER_VERSION: _integer(1, WRITER_FEATURES_VERSION),
    "delta.parquet.compression.codec": _one_of(
        "uncompressed", "none", "snappy", "gzip", "lz4", "lz4_raw", "brotli", "zstd"
    ),
    "delta.parquet.format.version": _parquet_version,
    "delta.randomPrefixLength": _integer(1),
    TARGET_FILE_SIZE: _size,
    _UNIFORM_FORMATS: _no_formats,
}  # fmt: skip
_SETTABLE_FEATURES = {n for f, rules in FEATURES.items() for n in (f.value, *rules.aliases)} - {
    "timestampWithoutTimezone"  # only read: other readers may not know it
}
_SPELLINGS = {
    name.lower(): name for name in (*_RULES, *(f"{FEATURE}{n}" for n in _SETTABLE_FEATURES))
}
