"""What new data must respect in a table, and which of it is implemented.

`table_features` tells whose log can be written at all; this is about rows and their files.

References
----------
PROTOCOL.md#writer-version-requirements, PROTOCOL.md#active-features
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkdelta.exceptions import UnknownConfigurationError, WriteNotImplementedError
from sparkdelta.protocol.actions import Protocol
from sparkdelta.protocol.table_features import (
    FEATURES,
    READER_FEATURES_VERSION,
    WRITER_FEATURES_VERSION,
    canonical_feature,
    check_writable,
    is_supported,
)

_NEVER_WRITTEN = (
    "rowTracking", "clustering", "collations", "materializePartitionColumns", "icebergCompatV1",
    "icebergCompatV2", "icebergCompatV3", "icebergWriterCompatV1", "icebergWriterCompatV3",
    "variantType", "variantShredding",
)  # fmt: skip
"""Whoever writes data into a table with one of these must do something for it."""

_COLUMN_MAPPING = "delta.columnMapping.mode"

_PROPERTY_FEATURES = {
    ("delta.enableInCommitTimestamps", "true"): "inCommitTimestamp",
    ("delta.enableDeletionVectors", "true"): "deletionVectors",
    ("delta.checkpointPolicy", "v2"): "v2Checkpoint",
}
_PROPERTIES = frozenset(
    (
        "delta.appendOnly", "delta.checkpointInterval", "delta.checkpointPolicy",
        "delta.checkpointRetentionDuration", "delta.checkpoint.writeStatsAsJson",
        "delta.checkpoint.writeStatsAsStruct", "delta.dataSkippingNumIndexedCols",
        "delta.deletedFileRetentionDuration", "delta.enableDeletionVectors",
        "delta.enableExpiredLogCleanup", "delta.enableInCommitTimestamps", "delta.isolationLevel",
        "delta.logRetentionDuration", "delta.setTransactionRetentionDuration",
    )
)  # fmt: skip


def check_data_writable(
    protocol: Protocol,
    configuration: Mapping[str, str],
    *,
    path: str,
) -> None:
    """Refuse a table that asks more of new data than is implemented.

    Raises
    ------
    WriteNotImplementedError
        Naming everything that is missing.
    DeltaError
        What `check_writable` raises.

    References
    ----------
    PROTOCOL.md#writer-version-requirements
    """
    check_writable(protocol, path=path)
    missing = [name for name in _NEVER_WRITTEN if is_supported(protocol, name)]
    mode = configuration.get(_COLUMN_MAPPING, "none").lower()
    if mode != "none" and is_supported(protocol, "columnMapping"):
        missing.append(f"columnMapping ({mode})")
    if missing:
        raise WriteNotImplementedError(path=path, missing=tuple(missing))


def new_protocol(properties: Mapping[str, str], features: frozenset[str]) -> Protocol:
    """The lowest protocol that a new table's properties and types need.

    Parameters
    ----------
    features
        What its types need.

    Raises
    ------
    UnknownConfigurationError
        A property of ours is not known, or what it asks for is not implemented.

    References
    ----------
    PROTOCOL.md#table-features, PROTOCOL.md#writer-version-requirements
    """
    for name in properties:
        if name.startswith("delta.") and name not in _PROPERTIES:
            raise UnknownConfigurationError(property=name)
    needed = set(features)
    for (name, value), feature in _PROPERTY_FEATURES.items():
        if properties.get(name, "").lower() == value:
            needed.add(feature)
    if not needed:
        return Protocol(1, 2)
    writers = tuple(sorted({*needed, "appendOnly", "invariants"}))
    readers = tuple(f for f in writers if FEATURES[canonical_feature(f)].reader_writer)
    if not readers:
        return Protocol(1, WRITER_FEATURES_VERSION, None, writers)
    return Protocol(READER_FEATURES_VERSION, WRITER_FEATURES_VERSION, readers, writers)
