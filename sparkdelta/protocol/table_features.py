"""Table features: which there are, which a table supports, whether it can be read and written.

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
    """What is written to a log."""

    LOG_FILES = "checkpoints, version checksums and log compactions"
    CLEANUP = "the deletion of old log files"
    COMMIT = "commits"


ALL_WRITING = frozenset(Writing)


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
    writable
        What a table that has it can be written here; `reason` says why not all. What data files and
        their rows must respect is no matter of the log, see `write_support`.
    """

    name: str
    aliases: tuple[str, ...] = ()
    reader_writer: bool = False
    min_reader_version: int | None = None
    min_writer_version: int | None = None
    readable: bool = True
    writable: frozenset[Writing] = ALL_WRITING
    reason: str = ""


def _writer(
    name: str,
    *aliases: str,
    version: int | None = None,
    writable: frozenset[Writing] = ALL_WRITING,
    reason: str = "readers need not know it",
) -> TableFeature:
    return TableFeature(name, aliases, min_writer_version=version, writable=writable, reason=reason)


def _reader(name: str, *aliases: str) -> TableFeature:
    return TableFeature(name, aliases, reader_writer=True, reason="implemented")


def _unreadable(name: str, *aliases: str, reason: str) -> TableFeature:
    return TableFeature(
        name, aliases, reader_writer=True, readable=False, writable=_NOTHING, reason=reason
    )


_NOTHING: frozenset[Writing] = frozenset()
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
        _writer(
            "checkpointProtection",
            writable=ALL_WRITING - {Writing.CLEANUP},
            reason="old checkpoints may be all that tells which features old versions need",
        ),
        _writer(
            "coordinatedCommits-preview",
            writable=_NOTHING,
            reason="only the coordinator knows which commits are part of the table",
        ),
        _writer("materializePartitionColumns"),
        _writer(
            "redirectWriterOnly-preview",
            writable=_NOTHING,
            reason="writers must write to another table",
        ),
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


def check_writable(protocol: Protocol, *, path: str, writing: Writing = Writing.COMMIT) -> None:
    """Refuse a table whose log cannot be written here.

    Features that only bind data writes are no obstacle: a checkpoint repeats what was committed.

    Raises
    ------
    InvalidProtocolVersionError, InvalidProtocolError, CatalogManagedTableError,
    UnsupportedReaderFeaturesError
        As of `check_readable`, and for the writer's side: who writes a table must also read it.
    UnsupportedWriterFeaturesError
        Naming every feature that is not implemented.

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
        raise InvalidProtocolError(path=path, problem="Writer version 7 has no writerFeatures")
    names = dict.fromkeys(protocol.writer_features)
    missing = tuple(name for name in names if not _is_writable(name, writing))
    if missing:
        raise UnsupportedWriterFeaturesError(
            path=path, features=missing, what=writing.value, reasons=_reasons(missing)
        )
    only_read = tuple(name for name in protocol.reader_features or () if name not in names)
    if only_read:
        problem = f"readerFeatures names what writerFeatures does not: {', '.join(only_read)}"
        raise InvalidProtocolError(path=path, problem=problem)


def _is_writable(name: str, writing: Writing) -> bool:
    feature = FEATURES.get(canonical_feature(name))
    return feature is not None and writing in feature.writable


def _reasons(names: tuple[str, ...]) -> str:
    """Why each feature is refused, as far as it is known."""
    known = (FEATURES.get(canonical_feature(name)) for name in names)
    return "; ".join(f"{f.name}: {f.reason}" for f in known if f) or "they are unknown"


def _is_readable(name: str) -> bool:
    feature = FEATURES.get(canonical_feature(name))
    return feature is not None and feature.readable
