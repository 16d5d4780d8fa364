"""Table features, those that a table supports, and checks that it can be read and written.

References
----------
PROTOCOL.md#table-features, PROTOCOL.md#valid-feature-names-in-table-features
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sparkdelta.exceptions import (
    CatalogManagedTableError,
    InvalidProtocolError,
    InvalidProtocolVersionError,
    UnsupportedReaderFeaturesError,
    UnsupportedWriterFeaturesError,
)
from sparkdelta.protocol.actions import Protocol

READER_FEATURES_VERSION = 3
WRITER_FEATURES_VERSION = 7


class Writing(Enum):
    """The kinds of writes to a log."""

    LOG_FILES = "checkpoints, version checksums and log compactions"
    CLEANUP = "deleting old log files"
    COMMIT = "commits"


ALL_WRITING = frozenset(Writing)


class TableFeature(Enum):
    """A table feature; its value is its final name.

    `TableFeature(name)` also accepts former names and raises ValueError for unknown ones.

    Examples
    --------
    >>> TableFeature("typeWidening-preview").value
    'typeWidening'
    """

    APPEND_ONLY = "appendOnly"
    INVARIANTS = "invariants"
    CHECK_CONSTRAINTS = "checkConstraints"
    CHANGE_DATA_FEED = "changeDataFeed"
    GENERATED_COLUMNS = "generatedColumns"
    COLUMN_MAPPING = "columnMapping"
    IDENTITY_COLUMNS = "identityColumns"
    DELETION_VECTORS = "deletionVectors"
    TIMESTAMP_NTZ = "timestampNtz"
    V2_CHECKPOINT = "v2Checkpoint"
    VACUUM_PROTOCOL_CHECK = "vacuumProtocolCheck"
    TYPE_WIDENING = "typeWidening"
    VARIANT_TYPE = "variantType"
    VARIANT_SHREDDING = "variantShredding"
    ALLOW_COLUMN_DEFAULTS = "allowColumnDefaults"
    ROW_TRACKING = "rowTracking"
    DOMAIN_METADATA = "domainMetadata"
    ICEBERG_COMPAT_V1 = "icebergCompatV1"
    ICEBERG_COMPAT_V2 = "icebergCompatV2"
    ICEBERG_COMPAT_V3 = "icebergCompatV3"
    ICEBERG_WRITER_COMPAT_V1 = "icebergWriterCompatV1"
    ICEBERG_WRITER_COMPAT_V3 = "icebergWriterCompatV3"
    CLUSTERING = "clustering"
    IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
    CHECKPOINT_PROTECTION = "checkpointProtection"
    COORDINATED_COMMITS = "coordinatedCommits-preview"
    MATERIALIZE_PARTITION_COLUMNS = "materializePartitionColumns"
    REDIRECT_WRITER_ONLY = "redirectWriterOnly-preview"
    COLLATIONS = "collations"
    CATALOG_MANAGED = "catalogManaged"
    GEOSPATIAL = "geospatial"
    ADAPTIVE_METADATA = "adaptiveMetadata-preview"
    REDIRECT_READER_WRITER = "redirectReaderWriter-preview"

    @classmethod
    def _missing_(cls, value: object) -> TableFeature | None:
        return _ALIASES.get(value)


@dataclass(frozen=True, slots=True)
class FeatureRules:
    """The protocol's rules for a feature, and the extent to which it is implemented.

    Attributes
    ----------
    aliases
        Names of the feature before it was final.
    reader_writer
        True for a reader-writer feature, False for a writer feature.
    min_reader_version, min_writer_version
        The lowest legacy versions that imply it; None if it must be listed.
    needs
        The features that a table must also support.
    readable
        True if tables with the feature can be read.
    writable
        The kinds of writes to the log that are implemented for tables with the feature. See
        `write_support` for requirements on data files and rows.
    reason
        The reason why reading or some kinds of writes are not implemented.
    """

    aliases: tuple[str, ...] = ()
    reader_writer: bool = False
    min_reader_version: int | None = None
    min_writer_version: int | None = None
    needs: tuple[TableFeature, ...] = ()
    readable: bool = True
    writable: frozenset[Writing] = ALL_WRITING
    reason: str = ""


def _writer(
    *aliases: str,
    version: int | None = None,
    needs: tuple[TableFeature, ...] = (),
    writable: frozenset[Writing] = ALL_WRITING,
    reason: str = "readers can ignore it",
) -> FeatureRules:
    return FeatureRules(
        aliases, min_writer_version=version, needs=needs, writable=writable, reason=reason
    )


def _reader(*aliases: str, needs: tuple[TableFeature, ...] = ()) -> FeatureRules:
    return FeatureRules(aliases, reader_writer=True, needs=needs, reason="implemented")


def _unreadable(*aliases: str, reason: str) -> FeatureRules:
    return FeatureRules(
        aliases, reader_writer=True, readable=False, writable=_NO_WRITING, reason=reason
    )


_NO_WRITING: frozenset[Writing] = frozenset()
_NOT_IN_PROTOCOL = "not part of the protocol specification"

FEATURES: dict[TableFeature, FeatureRules] = {
    TableFeature.APPEND_ONLY: _writer(version=2),
    TableFeature.INVARIANTS: _writer(version=2),
    TableFeature.CHECK_CONSTRAINTS: _writer(version=3),
    TableFeature.CHANGE_DATA_FEED: _writer(version=4),
    TableFeature.GENERATED_COLUMNS: _writer(version=4),
    TableFeature.COLUMN_MAPPING: FeatureRules(
        reader_writer=True,
        min_reader_version=2,
        min_writer_version=5,
        reason="implemented",
    ),
    TableFeature.IDENTITY_COLUMNS: _writer(version=6),
    TableFeature.DELETION_VECTORS: _reader(),
    TableFeature.TIMESTAMP_NTZ: _reader(),
    TableFeature.V2_CHECKPOINT: _reader(),
    TableFeature.VACUUM_PROTOCOL_CHECK: _reader(),
    TableFeature.TYPE_WIDENING: _reader("typeWidening-preview"),
    TableFeature.VARIANT_TYPE: _reader("variantType-preview"),
    TableFeature.VARIANT_SHREDDING: _reader(
        "variantShredding-preview", needs=(TableFeature.VARIANT_TYPE,)
    ),
    TableFeature.ALLOW_COLUMN_DEFAULTS: _writer(),
    TableFeature.ROW_TRACKING: _writer(needs=(TableFeature.DOMAIN_METADATA,)),
    TableFeature.DOMAIN_METADATA: _writer(),
    TableFeature.ICEBERG_COMPAT_V1: _writer(needs=(TableFeature.COLUMN_MAPPING,)),
    TableFeature.ICEBERG_COMPAT_V2: _writer(needs=(TableFeature.COLUMN_MAPPING,)),
    TableFeature.ICEBERG_COMPAT_V3: _writer(
        needs=(TableFeature.COLUMN_MAPPING, TableFeature.ROW_TRACKING)
    ),
    TableFeature.ICEBERG_WRITER_COMPAT_V1: _writer(),
    TableFeature.ICEBERG_WRITER_COMPAT_V3: _writer(),
    TableFeature.CLUSTERING: _writer(needs=(TableFeature.DOMAIN_METADATA,)),
    TableFeature.IN_COMMIT_TIMESTAMP: _writer("inCommitTimestamp-preview"),
    TableFeature.CHECKPOINT_PROTECTION: _writer(
        writable=ALL_WRITING - {Writing.CLEANUP},
        reason="old checkpoints may be the only record of the features that old versions require",
    ),
    TableFeature.COORDINATED_COMMITS: _writer(
        writable=_NO_WRITING,
        reason="only the coordinator knows which commits are part of the table",
    ),
    TableFeature.MATERIALIZE_PARTITION_COLUMNS: _writer(),
    TableFeature.REDIRECT_WRITER_ONLY: _writer(
        writable=_NO_WRITING,
        reason="writes must go to another table",
    ),
    TableFeature.COLLATIONS: _writer("collations-preview"),
    TableFeature.CATALOG_MANAGED: _unreadable(
        "catalogManaged-preview",
        "catalogOwned",
        "catalogOwned-preview",
        reason="only the catalog knows which commits are part of the table",
    ),
    TableFeature.GEOSPATIAL: _unreadable("geospatial-dev", reason=_NOT_IN_PROTOCOL),
    TableFeature.ADAPTIVE_METADATA: _unreadable(reason=_NOT_IN_PROTOCOL),
    TableFeature.REDIRECT_READER_WRITER: _unreadable(reason=_NOT_IN_PROTOCOL),
}

_ALIASES: dict[object, TableFeature] = {
    alias: feature for feature, rules in FEATURES.items() for alias in rules.aliases
}
_BY_NAME = {feature.value: feature for feature in TableFeature} | _ALIASES


def known_feature(name: str) -> TableFeature | None:
    """Return the feature with a name or alias, case-sensitively; None if it is unknown."""
    return _BY_NAME.get(name)


def is_supported(protocol: Protocol, feature: TableFeature) -> bool:
    """True if the protocol lists the feature or its version implies it.

    Only the reader's side counts for a reader-writer feature: a feature that readers may ignore
    must not affect what they return.

    References
    ----------
    PROTOCOL.md#supported-features, PROTOCOL.md#reader-version-requirements,
    PROTOCOL.md#writer-version-requirements
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


def check_readable(protocol: Protocol, *, path: str) -> None:
    """Raise if the table cannot be read; writer features do not matter.

    Raises
    ------
    InvalidProtocolVersionError
        If the reader version is unknown.
    InvalidProtocolError
        If reader version 3 has no feature list or not writer version 7.
    CatalogManagedTableError
        If a catalog manages the table, so that its path does not identify the latest version.
    UnsupportedReaderFeaturesError
        If reader features are not implemented; it names all of them.

    References
    ----------
    PROTOCOL.md#reader-version-requirements
    """
    if not 1 <= protocol.min_reader_version <= READER_FEATURES_VERSION:
        raise InvalidProtocolVersionError(
            path=path,
            reader_version=protocol.min_reader_version,
            writer_version=protocol.min_writer_version,
        )
    if protocol.min_reader_version < READER_FEATURES_VERSION:
        return
    if protocol.reader_features is None:
        raise InvalidProtocolError(path=path, problem="reader version 3 requires readerFeatures")
    if protocol.min_writer_version != WRITER_FEATURES_VERSION:
        problem = f"reader version 3 requires writer version 7, not {protocol.min_writer_version}"
        raise InvalidProtocolError(path=path, problem=problem)
    names = tuple(dict.fromkeys(protocol.reader_features))
    if TableFeature.CATALOG_MANAGED in map(known_feature, names):
        raise CatalogManagedTableError(path=path)
    missing = tuple(name for name in names if not _is_readable(name))
    if missing:
        raise UnsupportedReaderFeaturesError(path=path, features=missing)


def check_writable(protocol: Protocol, *, path: str, writing: Writing = Writing.COMMIT) -> None:
    """Raise if a kind of write to the log is not implemented for the table.

    Features that only restrict data files do not matter: checkpoints, for example, only repeat
    committed actions.

    Raises
    ------
    InvalidProtocolVersionError, InvalidProtocolError, CatalogManagedTableError,
    UnsupportedReaderFeaturesError
        As `check_readable`, since writers must also read, and likewise for the writer version.
    UnsupportedWriterFeaturesError
        If writer features are not implemented; it names all of them.

    References
    ----------
    PROTOCOL.md#writer-version-requirements, PROTOCOL.md#table-features
    """
    check_readable(protocol, path=path)
    if not 1 <= protocol.min_writer_version <= WRITER_FEATURES_VERSION:
        raise InvalidProtocolVersionError(
            path=path,
            reader_version=protocol.min_reader_version,
            writer_version=protocol.min_writer_version,
        )
    if protocol.min_writer_version < WRITER_FEATURES_VERSION:
        return
    if protocol.writer_features is None:
        raise InvalidProtocolError(path=path, problem="writer version 7 requires writerFeatures")
    names = dict.fromkeys(protocol.writer_features)
    missing = tuple(name for name in names if not _is_writable(name, writing))
    if missing:
        raise UnsupportedWriterFeaturesError(
            path=path, features=missing, what=writing.value, reasons=_reasons(missing)
        )
    only_read = tuple(name for name in protocol.reader_features or () if name not in names)
    if only_read:
        problem = (
            f"readerFeatures contains features that writerFeatures lacks: {', '.join(only_read)}"
        )
        raise InvalidProtocolError(path=path, problem=problem)


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
