"""The table features that a protocol supports, and checks that a table can be read and written.

See `feature_registry` for the features.

References
----------
PROTOCOL.md#supported-features, PROTOCOL.md#reader-version-requirements,
PROTOCOL.md#writer-version-requirements, PROTOCOL.md#reader-requirements-for-catalog-managed-tables,
PROTOCOL.md#table-features
"""

from __future__ import annotations

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.feature_registry import FEATURES, TableFeature, Writing, known_feature
from sparkdelta.exceptions import DeltaError

__all__ = [
    "FEATURES",
    "READER_FEATURES_VERSION",
    "WRITER_FEATURES_VERSION",
    "TableFeature",
    "Writing",
    "allows",
    "check_data_writable",
    "check_managed",
    "check_readable",
    "check_writable",
    "is_supported",
    "known_feature",
    "supported_features",
]

READER_FEATURES_VERSION = 3
WRITER_FEATURES_VERSION = 7

_NEVER_WRITTEN = (
    TableFeature.ICEBERG_WRITER_COMPAT_V1,
    TableFeature.ICEBERG_WRITER_COMPAT_V3,
)
"""Features with requirements on new data files that are not implemented."""


def is_supported(protocol: Protocol, feature: TableFeature) -> bool:
    """Return True if the protocol lists the feature or its version implies it.

    Only the reader's side counts for a reader-writer feature: a feature that readers may ignore
    must not affect what they return.
    """
    rules = FEATURES[feature]
    if rules.reader_writer:
        version, implied_by = protocol.min_reader_version, rules.min_reader_version
        has_lists, listed = version >= READER_FEATURES_VERSION, protocol.reader_features
    else:
        version, implied_by = protocol.min_writer_version, rules.min_writer_version
        has_lists, listed = version >= WRITER_FEATURES_VERSION, protocol.writer_features
    if has_lists:
        return feature in map(known_feature, listed or ())
    return implied_by is not None and version >= implied_by


def supported_features(protocol: Protocol) -> set[TableFeature]:
    """Return all known features that the protocol supports."""
    return {feature for feature in TableFeature if is_supported(protocol, feature)}


def check_managed(protocol: Protocol, *, path: str, has_catalog: bool) -> None:
    """Raise if a catalog manages a table that is accessed by path.

    The path does not identify the latest version.
    """
    if not has_catalog and is_supported(protocol, TableFeature.CATALOG_MANAGED):
        raise DeltaError.of("DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED", path=path)


def check_readable(protocol: Protocol, *, path: str, has_catalog: bool = False) -> None:
    """Raise if the table cannot be read; writer features do not matter."""
    if not 1 <= protocol.min_reader_version <= READER_FEATURES_VERSION:
        raise DeltaError.of(
            "DELTA_INVALID_PROTOCOL_VERSION",
            path=path,
            reader_version=protocol.min_reader_version,
            writer_version=protocol.min_writer_version,
        )
    if protocol.min_reader_version < READER_FEATURES_VERSION:
        return
    if protocol.reader_features is None:
        raise DeltaError.of(
            "DELTA_INVALID_PROTOCOL", path=path, problem="reader version 3 requires readerFeatures"
        )
    if protocol.min_writer_version != WRITER_FEATURES_VERSION:
        problem = f"reader version 3 requires writer version 7, not {protocol.min_writer_version}"
        raise DeltaError.of("DELTA_INVALID_PROTOCOL", path=path, problem=problem)
    names = tuple(dict.fromkeys(protocol.reader_features))
    check_managed(protocol, path=path, has_catalog=has_catalog)
    missing = tuple(name for name in names if not _is_readable(name))
    if missing:
        raise DeltaError.of("DELTA_UNSUPPORTED_FEATURES_FOR_READ", path=path, features=missing)


def check_writable(protocol: Protocol, *, path: str, writing: Writing = Writing.COMMIT) -> None:
    """Raise if a kind of write to the log is not implemented for the table.

    Features that only restrict data files do not matter: checkpoints, for example, only repeat
    committed actions. Nor does a catalog: see `check_managed`.
    """
    check_readable(protocol, path=path, has_catalog=True)
    if not 1 <= protocol.min_writer_version <= WRITER_FEATURES_VERSION:
        raise DeltaError.of(
            "DELTA_INVALID_PROTOCOL_VERSION",
            path=path,
            reader_version=protocol.min_reader_version,
            writer_version=protocol.min_writer_version,
        )
    if protocol.min_writer_version < WRITER_FEATURES_VERSION:
        return
    if protocol.writer_features is None:
        raise DeltaError.of(
            "DELTA_INVALID_PROTOCOL", path=path, problem="writer version 7 requires writerFeatures"
        )
    names = dict.fromkeys(protocol.writer_features)
    missing = tuple(name for name in names if not _is_writable(name, writing))
    if missing:
        raise DeltaError.of(
            "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            path=path,
            features=missing,
            what=writing.value,
            reasons=_reasons(missing),
        )
    only_read = tuple(name for name in protocol.reader_features or () if name not in names)
    if only_read:
        problem = (
            f"readerFeatures contains features that writerFeatures lacks: {', '.join(only_read)}"
        )
        raise DeltaError.of("DELTA_INVALID_PROTOCOL", path=path, problem=problem)


def allows(protocol: Protocol, writing: Writing) -> bool:
    """Return True if a kind of write is implemented for a table that can be written at all."""
    names = (*(protocol.reader_features or ()), *(protocol.writer_features or ()))
    return all(_is_writable(name, writing) for name in names)


def _is_writable(name: str, writing: Writing) -> bool:
    feature = known_feature(name)
    return feature is not None and writing in FEATURES[feature].writable


def _reasons(names: tuple[str, ...]) -> str:
    """Return the reasons why features are not implemented, as far as known."""
    known = (feature for feature in map(known_feature, names) if feature)
    return "; ".join(f"{f.value}: {FEATURES[f].reason}" for f in known) or "unknown"


def _is_readable(name: str) -> bool:
    feature = known_feature(name)
    return feature is not None and FEATURES[feature].readable


def check_data_writable(protocol: Protocol, *, path: str) -> None:
    """Raise if writing data files to the table is not implemented."""
    check_writable(protocol, path=path)
    missing = tuple(f.value for f in _NEVER_WRITTEN if is_supported(protocol, f))
    if missing:
        raise DeltaError.of("DELTA_WRITE_NOT_IMPLEMENTED", path=path, missing=missing)
