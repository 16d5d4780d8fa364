"""Table properties that affect reads and commits.

A property of a table feature has an effect only if the table supports the feature.

References
----------
PROTOCOL.md#table-properties, PROTOCOL.md#active-features, PROTOCOL.md#column-mapping,
PROTOCOL.md#in-commit-timestamps,
PROTOCOL.md#recommendations-for-readers-of-tables-with-in-commit-timestamps,
PROTOCOL.md#writer-requirements-for-in-commit-timestamps, PROTOCOL.md#row-tracking,
PROTOCOL.md#writer-requirements-for-row-tracking, PROTOCOL.md#valid-feature-names-in-table-features,
PROTOCOL.md#per-file-statistics, PROTOCOL.md#change-data-files, PROTOCOL.md#checkpoints,
PROTOCOL.md#log-compaction-files, PROTOCOL.md#writer-requirement-for-deletion-vectors,
PROTOCOL.md#append-only-tables, PROTOCOL.md#type-widening
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from sparkdelta.base.protocol.actions import Metadata, Protocol
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
ENABLE_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION = "delta.inCommitTimestampEnablementVersion"
IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"
NUM_INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"
DEFAULT_INDEXED_COLUMNS = 32
CHECKPOINT_INTERVAL = "delta.checkpointInterval"
DEFAULT_CHECKPOINT_INTERVAL = 10
COMPACTION_INTERVAL = "sparkdelta.logCompactionInterval"
COMPACTION_IN_BACKGROUND = "sparkdelta.autoCompactInBackground"
CHECKPOINT_IN_BACKGROUND = "sparkdelta.checkpointInBackground"
MAX_DELETED_SHARE = "sparkdelta.maxDeletedShare"
DEFAULT_MAX_DELETED_SHARE = 0.5
COMPRESSION = "delta.parquet.compression.codec"
APPEND_ONLY = "delta.appendOnly"
ENABLE_DELETION_VECTORS = "delta.enableDeletionVectors"
ENABLE_CHANGE_DATA_FEED = "delta.enableChangeDataFeed"
OPTIMIZE_WRITE = "delta.autoOptimize.optimizeWrite"
AUTO_OPTIMIZE = "delta.autoOptimize"
AUTO_COMPACT = "delta.autoOptimize.autoCompact"
TARGET_FILE_SIZE = "delta.targetFileSize"
DEFAULT_TARGET_FILE_SIZE = 128 * 1024 * 1024
_SIZE = re.compile(r"(?P<number>\d{1,15})(?P<unit>[kmgt])?b?")
ENABLE_TYPE_WIDENING = "delta.enableTypeWidening"
ENABLE_ROW_TRACKING = "delta.enableRowTracking"
SUSPEND_ROW_TRACKING = "delta.rowTrackingSuspended"
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
ROW_COMMIT_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
WRITE_PARTITION_COLUMNS = "delta.writePartitionColumnsToParquet"
PROTECTED_VERSION = "delta.requireCheckpointProtectionBeforeVersion"


def is_on(configuration: Mapping[str, str], name: str) -> bool:
    """Return True if a property that is false by default is set to true."""
    return configuration.get(name, "").lower() == "true"


def is_off(configuration: Mapping[str, str], name: str) -> bool:
    """Return True if a property that is true by default is set to false."""
    return configuration.get(name, "").lower() == "false"


class ColumnMappingMode(Enum):
    """The column mapping mode, which relates columns of the schema to columns of data files."""

    NONE = "none"
    NAME = "name"
    ID = "id"


def column_mapping_mode(protocol: Protocol, configuration: Mapping[str, str]) -> ColumnMappingMode:
    """Return the active column mapping mode."""
    if not is_supported(protocol, TableFeature.COLUMN_MAPPING):
        return ColumnMappingMode.NONE
    return named_column_mapping_mode(configuration)


def named_column_mapping_mode(configuration: Mapping[str, str]) -> ColumnMappingMode:
    """Return the column mapping mode that the property names, of a table that supports it."""
    mode = configuration.get(COLUMN_MAPPING_MODE, ColumnMappingMode.NONE.value)
    try:
        return ColumnMappingMode(mode.lower())
    except ValueError:
        raise DeltaError.of(
            "DELTA_INVALID_COLUMN_MAPPING", problem=f"{COLUMN_MAPPING_MODE} is {mode!r}"
        ) from None


@dataclass(frozen=True, slots=True)
class InCommitTimestamps:
    """The state of in-commit timestamps of a table.

    If they are enabled without an enablement version, all commits have them.

    Attributes
    ----------
    enablement_version
        The first version with an in-commit timestamp, or None.
    enablement_timestamp
        The in-commit timestamp of that version in milliseconds since the epoch, or None.
    """

    enabled: bool
    enablement_version: Version | None = None
    enablement_timestamp: int | None = None


def in_commit_timestamps(
    protocol: Protocol, configuration: Mapping[str, str]
) -> InCommitTimestamps:
    """Return the state of in-commit timestamps."""
    if not _is_active(
        protocol, TableFeature.IN_COMMIT_TIMESTAMP, configuration, ENABLE_IN_COMMIT_TIMESTAMPS
    ):
        return InCommitTimestamps(enabled=False)
    version = _integer(configuration.get(IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION))
    timestamp = _integer(configuration.get(IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP))
    if version is None or timestamp is None:
        return InCommitTimestamps(enabled=True)
    return InCommitTimestamps(
        enabled=True, enablement_version=version, enablement_timestamp=timestamp
    )


def has_in_commit_timestamp(in_commit: InCommitTimestamps, version: Version) -> bool:
    """Return True if the commit of a version has an in-commit timestamp."""
    return in_commit.enabled and version >= (in_commit.enablement_version or 0)


def with_enablement(metadata: Metadata, *, version: Version, timestamp: int) -> Metadata:
    """Add the version and timestamp at which in-commit timestamps are enabled to the metadata.

    Required for tables that have commits without in-commit timestamps.
    """
    provenance = {
        IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION: str(version),
        IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP: str(timestamp),
    }
    return replace(metadata, configuration={**metadata.configuration, **provenance})


@dataclass(frozen=True, slots=True)
class RowTracking:
    """The state of row tracking, with the columns of data files that store row ids and versions."""

    enabled: bool
    row_id_column: str | None = None
    row_commit_version_column: str | None = None


def row_tracking(protocol: Protocol, configuration: Mapping[str, str]) -> RowTracking:
    """Return the state of row tracking."""
    if not _is_active(protocol, TableFeature.ROW_TRACKING, configuration, ENABLE_ROW_TRACKING):
        return RowTracking(enabled=False)
    return RowTracking(
        enabled=True,
        row_id_column=configuration.get(ROW_ID_COLUMN),
        row_commit_version_column=configuration.get(ROW_COMMIT_VERSION_COLUMN),
    )


def assigns_row_ids(protocol: Protocol, configuration: Mapping[str, str]) -> bool:
    """Return True if new files get row ids: row tracking is supported, and not suspended."""
    return is_supported(protocol, TableFeature.ROW_TRACKING) and not is_on(
        configuration, SUSPEND_ROW_TRACKING
    )


def protected_version(protocol: Protocol, configuration: Mapping[str, str]) -> Version:
    """Return the version before which checkpoints are protected; 0 if none are.

    They can only be deleted with all of the history before this version.
    """
    if not is_supported(protocol, TableFeature.CHECKPOINT_PROTECTION):
        return 0
    return _integer(configuration.get(PROTECTED_VERSION)) or 0


def num_indexed_columns(configuration: Mapping[str, str]) -> int:
    """Return the number of leaf columns with statistics; -1 for all."""
    text = configuration.get(NUM_INDEXED_COLUMNS)
    count = DEFAULT_INDEXED_COLUMNS if text is None else _integer(text)
    if count is None or count < -1:
        raise InvalidArgumentError(
            argument=NUM_INDEXED_COLUMNS, problem=f"{text!r} is not a number"
        )
    return count


def has_change_data_feed(protocol: Protocol, configuration: Mapping[str, str]) -> bool:
    """Return True if the change data feed is enabled."""
    return _is_active(
        protocol, TableFeature.CHANGE_DATA_FEED, configuration, ENABLE_CHANGE_DATA_FEED
    )


def checkpoint_interval(configuration: Mapping[str, str]) -> int:
    """Return the number of commits between automatic checkpoints."""
    interval = _interval(configuration, CHECKPOINT_INTERVAL)
    return DEFAULT_CHECKPOINT_INTERVAL if interval is None else interval


def compaction_interval(configuration: Mapping[str, str]) -> int | None:
    """Return the number of commits per automatic log compaction; None if disabled."""
    return _interval(configuration, COMPACTION_INTERVAL)


def _interval(configuration: Mapping[str, str], name: str) -> int | None:
    text = configuration.get(name)
    count = _integer(text)
    if text is not None and (count is None or count < 1):
        raise InvalidArgumentError(
            argument=name, problem=f"it must be an integer of at least 1, not {text!r}"
        )
    return count


def max_deleted_share(protocol: Protocol, configuration: Mapping[str, str]) -> float:
    """Return the greatest share of a file's rows that a deletion vector may delete.

    A file of which more is deleted is rewritten: 0 for no deletion vectors, 1 for no rewrites. The
    default keeps readers from reading more rows to skip than to return.
    """
    is_active = is_supported(protocol, TableFeature.DELETION_VECTORS) and is_on(
        configuration, ENABLE_DELETION_VECTORS
    )
    if not is_active:
        return 0.0
    text = configuration.get(MAX_DELETED_SHARE, str(DEFAULT_MAX_DELETED_SHARE))
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        problem = f"it must be a number from 0 to 1, not {text!r}"
        raise InvalidArgumentError(argument=MAX_DELETED_SHARE, problem=problem)
    return share


def is_append_only(protocol: Protocol, configuration: Mapping[str, str]) -> bool:
    """Return True if data must not be changed or removed."""
    return _is_active(protocol, TableFeature.APPEND_ONLY, configuration, APPEND_ONLY)


def compression(configuration: Mapping[str, str]) -> str:
    """Return the compression codec of new data files.

    It is zstd by default, as the protocol recommends: files are about a third smaller than with
    snappy, which saves more for readers of remote storage than it costs writers.
    """
    return configuration.get(COMPRESSION, "zstd").lower()


def target_file_size(configuration: Mapping[str, str]) -> int | None:
    """Return the target size of new files in bytes; None unless optimized writes are enabled."""
    if not is_on(configuration, OPTIMIZE_WRITE):
        return None
    size = declared_file_size(configuration)
    return DEFAULT_TARGET_FILE_SIZE if size is None else size


def compacts_after_commits(configuration: Mapping[str, str]) -> bool:
    """Return True if small files are compacted after a commit.

    ``auto`` and ``legacy`` are values of Databricks, and `AUTO_OPTIMIZE` is an older name.
    """
    value = configuration.get(AUTO_COMPACT, "").lower()
    return value in ("true", "auto", "legacy") or is_on(configuration, AUTO_OPTIMIZE)


def declared_file_size(configuration: Mapping[str, str]) -> int | None:
    """Return `delta.targetFileSize` in bytes; None if the table does not have it."""
    text = configuration.get(TARGET_FILE_SIZE)
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or int(match["number"]) == 0:
        raise InvalidArgumentError(argument=TARGET_FILE_SIZE, problem=f"{text!r} is not a size")
    return int(match["number"]) << 10 * " kmgt".index(match["unit"] or " ")


def is_type_widening_enabled(protocol: Protocol, configuration: Mapping[str, str]) -> bool:
    """Return True if type widening is enabled."""
    return _is_active(protocol, TableFeature.TYPE_WIDENING, configuration, ENABLE_TYPE_WIDENING)


def _is_active(
    protocol: Protocol, feature: TableFeature, configuration: Mapping[str, str], name: str
) -> bool:
    return is_on(configuration, name) and is_supported(protocol, feature)


def _integer(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
