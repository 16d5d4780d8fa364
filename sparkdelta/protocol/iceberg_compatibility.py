"""Requirements of Iceberg compatibility on protocol, properties and type changes.

References
----------
PROTOCOL.md#writer-requirements-for-icebergcompatv1,
PROTOCOL.md#writer-requirements-for-icebergcompatv2
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sparkdelta.exceptions import IcebergCompatError
from sparkdelta.protocol.actions import Protocol
from sparkdelta.protocol.table_features import TableFeature, is_supported
from sparkdelta.protocol.table_properties import (
    COLUMN_MAPPING_MODE,
    ColumnMappingMode,
    column_mapping_mode,
    is_on,
)
from sparkdelta.protocol.type_changes import is_supported_type_change

ENABLE_ICEBERG = {1: "delta.enableIcebergCompatV1", 2: "delta.enableIcebergCompatV2"}
"""The property that enables each version of Iceberg compatibility."""

NESTED_IDS_VERSION = 2
"""The version that requires field ids of array elements, map keys and map values."""

_ENABLE_DELETION_VECTORS = "delta.enableDeletionVectors"
_INTEGERS = frozenset(("byte", "short", "integer", "long"))
_SCALE = re.compile(r"decimal\(\s*\d+\s*,\s*(\d+)\s*\)")


def is_for_iceberg(configuration: Mapping[str, str]) -> bool:
    """True if the properties enable a version of Iceberg compatibility."""
    return any(is_on(configuration, name) for name in ENABLE_ICEBERG.values())


def iceberg_version(protocol: Protocol, configuration: Mapping[str, str]) -> int | None:
    """Return the active version of Iceberg compatibility, or None.

    Raises
    ------
    IcebergCompatError
        If both versions are active, or the table violates the requirements of the active one.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-icebergcompatv1,
    PROTOCOL.md#writer-requirements-for-icebergcompatv2
    """
    active = [
        version
        for version, name in ENABLE_ICEBERG.items()
        if is_on(configuration, name)
        and is_supported(protocol, TableFeature(f"icebergCompatV{version}"))
    ]
    if not active:
        return None
    version = active[0]
    if len(active) > 1:
        raise _violation(version, "VERSION_MUTUAL_EXCLUSIVE", "another version is active as well")
    if column_mapping_mode(protocol, configuration) is ColumnMappingMode.NONE:
        problem = f"{COLUMN_MAPPING_MODE} must be name or id"
        raise _violation(version, "WRONG_REQUIRED_TABLE_PROPERTY", problem)
    if is_supported(protocol, TableFeature.DELETION_VECTORS):
        if version == 1:
            problem = "the table supports deletion vectors"
            raise _violation(version, "INCOMPATIBLE_TABLE_FEATURE", problem)
        if is_on(configuration, _ENABLE_DELETION_VECTORS):
            problem = "deletion vectors are enabled"
            raise _violation(version, "DELETION_VECTORS_SHOULD_BE_DISABLED", problem)
    return version


def check_iceberg_partitioning(
    version: int | None, before: Sequence[str], after: Sequence[str]
) -> None:
    """Raise if a replaced table with Iceberg compatibility gets other partition columns.

    Parameters
    ----------
    version
        The active version of Iceberg compatibility, or None.
    before, after
        The partition columns of the replaced table and of the new one.

    Raises
    ------
    IcebergCompatError
        If the replaced table is partitioned and the new one is partitioned differently.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-icebergcompatv1,
    PROTOCOL.md#writer-requirements-for-icebergcompatv2
    """
    names = [[name.lower() for name in columns] for columns in (before, after)]
    if version is not None and before and names[0] != names[1]:
        problem = f"the table is partitioned by ({', '.join(before)}), not by ({', '.join(after)})"
        raise _violation(version, "REPLACE_TABLE_CHANGE_PARTITION_NAMES", problem)


def is_iceberg_type_change(from_type: str, to_type: str) -> bool:
    """True if Iceberg also supports the type change.

    Examples
    --------
    >>> is_iceberg_type_change("byte", "long"), is_iceberg_type_change("integer", "double")
    (True, False)
    >>> is_iceberg_type_change("decimal(4,2)", "decimal(6,2)")
    True
    >>> is_iceberg_type_change("decimal(4,2)", "decimal(6,3)")
    False

    References
    ----------
    PROTOCOL.md#type-widening
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


def _violation(version: int, violation: str, problem: str) -> IcebergCompatError:
    return IcebergCompatError(version=version, violation=violation, problem=problem)
