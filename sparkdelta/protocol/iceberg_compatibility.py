"""What a table that can be converted to Iceberg asks of its protocol and properties.

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
"""The properties that make the versions of Iceberg compatibility active."""

NESTED_IDS_VERSION = 2
"""The version in which elements, keys and values have field ids; the first has none of them."""

_ENABLE_DELETION_VECTORS = "delta.enableDeletionVectors"
_INTEGERS = frozenset(("byte", "short", "integer", "long"))
_SCALE = re.compile(r"decimal\(\s*\d+\s*,\s*(\d+)\s*\)")


def is_for_iceberg(configuration: Mapping[str, str]) -> bool:
    """Whether properties ask for a table that can be converted to Iceberg."""
    return any(is_on(configuration, name) for name in ENABLE_ICEBERG.values())


def iceberg_version(protocol: Protocol, configuration: Mapping[str, str]) -> int | None:
    """The version of Iceberg compatibility that is active; None if there is none.

    Raises
    ------
    IcebergCompatError
        Both are, or the table has what they exclude.

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
        raise _violated(version, "VERSION_MUTUAL_EXCLUSIVE", "another version is active as well")
    if column_mapping_mode(protocol, configuration) is ColumnMappingMode.NONE:
        problem = f"{COLUMN_MAPPING_MODE} must be name or id"
        raise _violated(version, "WRONG_REQUIRED_TABLE_PROPERTY", problem)
    if is_supported(protocol, TableFeature.DELETION_VECTORS):
        if version == 1:
            problem = "the table supports deletion vectors"
            raise _violated(version, "INCOMPATIBLE_TABLE_FEATURE", problem)
        if is_on(configuration, _ENABLE_DELETION_VECTORS):
            problem = "deletion vectors are enabled"
            raise _violated(version, "DELETION_VECTORS_SHOULD_BE_DISABLED", problem)
    return version


def check_iceberg_partitioning(
    version: int | None, before: Sequence[str], after: Sequence[str]
) -> None:
    """Refuse other partition columns than those of the table that is replaced, if it had any.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-icebergcompatv1,
    PROTOCOL.md#writer-requirements-for-icebergcompatv2
    """
    names = [[name.lower() for name in columns] for columns in (before, after)]
    if version is not None and before and names[0] != names[1]:
        problem = f"the table is partitioned by ({', '.join(before)}), not by ({', '.join(after)})"
        raise _violated(version, "REPLACE_TABLE_CHANGE_PARTITION_NAMES", problem)


def is_iceberg_type_change(from_type: str, to_type: str) -> bool:
    """Whether Iceberg, too, can read values of one type as the other.

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


def _violated(version: int, violation: str, problem: str) -> IcebergCompatError:
    return IcebergCompatError(version=version, violation=violation, problem=problem)
