"""Table features: which there are, which a table supports, and whether it can be read.

References
----------
PROTOCOL.md#table-features, PROTOCOL.md#valid-feature-names-in-table-features
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkdelta.exceptions import (
    CatalogManagedTableError,
    InvalidProtocolError,
    InvalidProtocolVersionError,
    UnsupportedReaderFeaturesError,
)
from sparkdelta.protocol.actions import Protocol

READER_FEATURES_VERSION = 3
WRITER_FEATURES_VERSION = 7


@dataclass(frozen=True, slots=True)
class TableFeature:
    """A feature of the protocol.

    Attributes
    ----------
    aliases
        Names under which the same feature was used before it was final.
    reader_writer
        Whether readers must implement it too.
    min_reader_version, min_writer_version
        The versions that imply it without feature lists; None where only the lists can name it.
    readable
        Whether a table that has it can be read here; `reason` says why not.
    """

    name: str
    aliases: tuple[str, ...] = ()
    reader_writer: bool = False
    min_reader_version: int | None = None
    min_writer_version: int | None = None
    readable: bool = True
    reason: str = ""


def _writer(name: str, *aliases: str, version: int | None = None) -> TableFeature:
    return TableFeature(
        name, aliases, min_writer_version=version, reason="readers need not know it"
    )


def _reader(name: str, *aliases: str) -> TableFeature:
    return TableFeature(name, aliases, reader_writer=True, reason="implemented")


def _unreadable(name: str, *aliases: str, reason: str) -> TableFeature:
    return TableFeature(name, aliases, reader_writer=True, readable=False, reason=reason)


_NOT_IN_PROTOCOL = "not part of the protocol's text"

FEATURES: dict[str, TableFeature] = {
    feature.name: feature
    for feature in (
        _writer("appendOnly", version=2),
        _writer("invariants", version=2),
        _writer("checkConstraints", version=3),
        _writer("changeDataFeed", version=4),
        _writer("generatedColumns", version=4),
        TableFeature(
            "columnMapping",
            reader_writer=True,
            min_reader_version=2,
            min_writer_version=5,
            reason="implemented",
        ),
        _writer("identityColumns", version=6),
        _reader("deletionVectors"),
        _reader("timestampNtz"),
        _reader("v2Checkpoint"),
        _reader("vacuumProtocolCheck"),
        _reader("typeWidening", "typeWidening-preview"),
        _reader("variantType", "variantType-preview"),
        _reader("variantShredding", "variantShredding-preview"),
        _writer("allowColumnDefaults"),
        _writer("rowTracking"),
        _writer("domainMetadata"),
        _writer("icebergCompatV1"),
        _writer("icebergCompatV2"),
        _writer("icebergCompatV3"),
        _writer("icebergWriterCompatV1"),
        _writer("icebergWriterCompatV3"),
        _writer("clustering"),
        _writer("inCommitTimestamp", "inCommitTimestamp-preview"),
        _writer("checkpointProtection"),
        _writer("coordinatedCommits-preview"),
        _writer("materializePartitionColumns"),
        _writer("redirectWriterOnly-preview"),
        _writer("collations", "collations-preview"),
        _unreadable(
            "catalogManaged",
            "catalogManaged-preview",
            "catalogOwned",
            "catalogOwned-preview",
            reason="only the catalog knows which commits are part of the table",
        ),
        _unreadable("geospatial", "geospatial-dev", reason=_NOT_IN_PROTOCOL),
        _unreadable("adaptiveMetadata-preview", reason=_NOT_IN_PROTOCOL),
        _unreadable("redirectReaderWriter-preview", reason=_NOT_IN_PROTOCOL),
    )
}
"""Every known feature by its final name."""

_CANONICAL = {
    name: feature.name for feature in FEATURES.values() for name in (feature.name, *feature.aliases)
}


def canonical_feature(name: str) -> str:
    """The final name of a feature; a name that is not known is its own. Case matters.

    Examples
    --------
    >>> canonical_feature("typeWidening-preview"), canonical_feature("DeletionVectors")
    ('typeWidening', 'DeletionVectors')
    """
    return _CANONICAL.get(name, name)


def is_supported(protocol: Protocol, name: str) -> bool:
    """Whether a table of this protocol supports the feature, by its lists or implied by a version.

    A feature of readers and writers counts by the reader's side: what readers need not respect must
    not change what they return.

    References
    ----------
    PROTOCOL.md#supported-features, PROTOCOL.md#reader-version-requirements,
    PROTOCOL.md#writer-version-requirements
    """
    canonical = canonical_feature(name)
    feature = FEATURES.get(canonical, TableFeature(canonical))
    if feature.reader_writer:
        version, implied_by = protocol.min_reader_version, feature.min_reader_version
        has_lists, listed = version >= READER_FEATURES_VERSION, protocol.reader_features
    else:
        version, implied_by = protocol.min_writer_version, feature.min_writer_version
        has_lists, listed = version >= WRITER_FEATURES_VERSION, protocol.writer_features
    if has_lists:
        return canonical in map(canonical_feature, listed or ())
    return implied_by is not None and version >= implied_by


def check_readable(protocol: Protocol, *, path: str) -> None:
    """Refuse a table that cannot be read here. Features of writers alone never stand in the way.

    Raises
    ------
    InvalidProtocolVersionError
        If the reader version is unknown.
    InvalidProtocolError
        If reader version 3 comes without its feature list or without writer version 7.
    CatalogManagedTableError
        If a catalog manages the table: its path does not tell the latest version.
    UnsupportedReaderFeaturesError
        Naming every feature that is not implemented.

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
        raise InvalidProtocolError(path=path, problem="Reader version 3 has no readerFeatures")
    if protocol.min_writer_version != WRITER_FEATURES_VERSION:
        raise InvalidProtocolError(
            path=path,
            problem=f"Reader version 3 comes with writer version {protocol.min_writer_version}",
        )
    names = tuple(dict.fromkeys(protocol.reader_features))
    if "catalogManaged" in map(canonical_feature, names):
        raise CatalogManagedTableError(path=path)
    missing = tuple(name for name in names if not _is_readable(name))
    if missing:
        raise UnsupportedReaderFeaturesError(path=path, features=missing)


def _is_readable(name: str) -> bool:
    feature = FEATURES.get(canonical_feature(name))
    return feature is not None and feature.readable
