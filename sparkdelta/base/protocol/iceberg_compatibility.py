"""Requirements of Iceberg compatibility on protocol, properties and type changes.

References
----------
PROTOCOL.md#writer-requirements-for-icebergcompatv1,
PROTOCOL.md#writer-requirements-for-icebergcompatv2, protocol_rfcs/iceberg-compat-v3.md,
PROTOCOL.md#type-widening
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.table_features import FEATURES, TableFeature, is_supported
from sparkdelta.base.protocol.table_properties import (
    COLUMN_MAPPING_MODE,
    ENABLE_ROW_TRACKING,
    ColumnMappingMode,
    RowTracking,
    column_mapping_mode,
    is_on,
    row_tracking,
)
from sparkdelta.base.protocol.type_changes import is_supported_type_change
from sparkdelta.exceptions import DeltaError

ENABLE_ICEBERG = {
    1: "delta.enableIcebergCompatV1",
    2: "delta.enableIcebergCompatV2",
    3: "delta.enableIcebergCompatV3",
}
"""The property that enables each version of Iceberg compatibility."""

ROW_TRACKING_VERSION = 3
"""The version that requires row tracking, and cannot be disabled."""

_FIRST_WITH_NESTED_IDS = 2
_ROW_ID, _ROW_COMMIT_VERSION = 2_147_483_540, 2_147_483_539
_ENABLE_DELETION_VECTORS = "delta.enableDeletionVectors"
_INTEGERS = frozenset(("byte", "short", "integer", "long"))
_SCALE = re.compile(r"decimal\(\s*\d+\s*,\s*(\d+)\s*\)")


def needed_properties(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that Iceberg compatibility requires and the configuration lacks."""
    needed: dict[str, str] = {}
    if any(is_on(configuration, name) for name in ENABLE_ICEBERG.values()):
        needed[COLUMN_MAPPING_MODE] = ColumnMappingMode.NAME.value
    if is_on(configuration, ENABLE_ICEBERG[ROW_TRACKING_VERSION]):
        needed[ENABLE_ROW_TRACKING] = "true"
    return {name: value for name, value in needed.items() if name not in configuration}


def has_nested_ids(version: int | None) -> bool:
    """Return True if array elements, map keys and map values need field ids."""
    return version is not None and version >= _FIRST_WITH_NESTED_IDS


def row_tracking_ids(version: int | None, tracking: RowTracking) -> dict[str, int]:
    """Return the field ids of columns with row ids and row commit versions, by column name."""
    if version is None or version < ROW_TRACKING_VERSION:
        return {}
    ids = (
        (tracking.row_id_column, _ROW_ID),
        (tracking.row_commit_version_column, _ROW_COMMIT_VERSION),
    )
    return {name: number for name, number in ids if name is not None}


def iceberg_version(protocol: Protocol, configuration: Mapping[str, str]) -> int | None:
    """Return the active version of Iceberg compatibility, after checks of its rules, or None."""
    active = {
        TableFeature(f"icebergCompatV{version}"): version
        for version, name in ENABLE_ICEBERG.items()
        if is_on(configuration, name)
        and is_supported(protocol, TableFeature(f"icebergCompatV{version}"))
    }
    if not active:
        return None
    feature, version = next(iter(active.items()))
    forbidden = FEATURES[feature].forbids
    if active.keys() & set(forbidden):
        problem = "another version is active as well; set its property to false"
        raise _violation(version, "VERSION_MUTUAL_EXCLUSIVE", problem)
    if column_mapping_mode(protocol, configuration) is ColumnMappingMode.NONE:
        problem = f"{COLUMN_MAPPING_MODE} must be set to name or id"
        raise _violation(version, "WRONG_REQUIRED_TABLE_PROPERTY", problem)
    if version == ROW_TRACKING_VERSION and not row_tracking(protocol, configuration).enabled:
        problem = f"{ENABLE_ROW_TRACKING} must be true"
        raise _violation(version, "WRONG_REQUIRED_TABLE_PROPERTY", problem)
    vectors = TableFeature.DELETION_VECTORS
    if vectors in forbidden and is_supported(protocol, vectors):
        if version == 1:
            problem = "the table supports deletion vectors; drop the feature first"
            raise _violation(version, "INCOMPATIBLE_TABLE_FEATURE", problem)
        if is_on(configuration, _ENABLE_DELETION_VECTORS):
            problem = f"deletion vectors are enabled; set {_ENABLE_DELETION_VECTORS} to false first"
            raise _violation(version, "DELETION_VECTORS_SHOULD_BE_DISABLED", problem)
    return version


def check_iceberg_partitioning(
    version: int | None, before: Sequence[str], after: Sequence[str]
) -> None:
    """Raise if the replacement of a partitioned table for Iceberg has other partition columns."""
    names = [[name_key(name) for name in columns] for columns in (before, after)]
    if version is not None and before and names[0] != names[1]:
        problem = f"the table is partitioned by ({', '.join(before)}), not by ({', '.join(after)})"
        raise _violation(version, "REPLACE_TABLE_CHANGE_PARTITION_NAMES", problem)


def check_still_compatible(before: int | None, after: int | None) -> None:
    """Raise if a table loses an Iceberg compatibility that cannot be disabled."""
    if before == ROW_TRACKING_VERSION != after:
        problem = f"{ENABLE_ICEBERG[ROW_TRACKING_VERSION]} cannot be disabled"
        raise _violation(ROW_TRACKING_VERSION, "CANNOT_BE_DISABLED", problem)


def check_enabled_later(version: int, *, tracks_rows: bool) -> None:
    """Raise if an existing table cannot enable this version, regardless of its files.

    Parameters
    ----------
    version
        The version that the table does not have yet.
    tracks_rows
        True if the table has row ids, perhaps in columns without field ids.
    """
    if version == ROW_TRACKING_VERSION and tracks_rows:
        problem = (
            "files may have row ids in columns without field ids; set "
            f"{ENABLE_ROW_TRACKING} to false first"
        )
        raise _violation(version, "CHANGE_VERSION_NEED_REWRITE", problem)


def check_same_version(before: int | None, after: int | None) -> None:
    """Raise if a clone has a version of Iceberg compatibility that its source lacks."""
    if after is not None and after != before:
        problem = "the cloned files are those of a table without it; set its property afterwards"
        raise _violation(after, "CHANGE_VERSION_NEED_REWRITE", problem)


def check_files(version: int, *, has_vectors: bool, lacks_partition_columns: bool) -> None:
    """Raise if existing files do not satisfy this version of Iceberg compatibility."""
    if version < ROW_TRACKING_VERSION and has_vectors:
        problem = "files have deletion vectors; run REORG TABLE ... APPLY (PURGE) first"
        raise _violation(version, "DELETION_VECTORS_NOT_PURGED", problem)
    if version == 1 and lacks_partition_columns:
        problem = f"files lack the partition columns; set {ENABLE_ICEBERG[2]} instead"
        raise _violation(version, "CHANGE_VERSION_NEED_REWRITE", problem)


def is_iceberg_type_change(from_type: str, to_type: str) -> bool:
    """Return True if Iceberg also supports a type change of the schema's JSON names.

    Iceberg widens decimals only in precision, with the same scale.
    """
    if from_type == to_type:
        return True
    if not is_supported_type_change(from_type, to_type):
        return False
    if from_type in _INTEGERS:
        return to_type in _INTEGERS
    source, target = _SCALE.fullmatch(from_type), _SCALE.fullmatch(to_type)
    if source is not None and target is not None:
        return source[1] == target[1]
    return (from_type, to_type) == ("float", "double")


def _violation(version: int, violation: str, problem: str) -> DeltaError:
    return DeltaError.of(
        "DELTA_ICEBERG_COMPAT_VIOLATION", version=version, violation=violation, problem=problem
    )
