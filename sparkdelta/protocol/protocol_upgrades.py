"""The protocol of a new table, and of one whose metadata comes to need more.

References
----------
PROTOCOL.md#table-features-for-new-and-existing-tables, PROTOCOL.md#protocol-evolution
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sparkdelta.exceptions import InvalidCommitError
from sparkdelta.protocol.actions import Protocol
from sparkdelta.protocol.property_rules import CONSTRAINT
from sparkdelta.protocol.table_features import (
    FEATURES,
    READER_FEATURES_VERSION,
    WRITER_FEATURES_VERSION,
    canonical_feature,
    is_supported,
)

GENERATION_EXPRESSION = "delta.generationExpression"
INVARIANTS = "delta.invariants"
CURRENT_DEFAULT = "CURRENT_DEFAULT"
IDENTITY_START = "delta.identity.start"
FIELD_FEATURES = {
    INVARIANTS: "invariants",
    GENERATION_EXPRESSION: "generatedColumns",
    IDENTITY_START: "identityColumns",
    CURRENT_DEFAULT: "allowColumnDefaults",
}
"""The features of columns that have these keys in their metadata."""

_OF_EVERY_TABLE = ("appendOnly", "invariants")
_ON = "true"
_PROPERTY_FEATURES = {
    ("delta.checkpointPolicy", "v2"): "v2Checkpoint",
    ("delta.columnMapping.mode", "id"): "columnMapping",
    ("delta.columnMapping.mode", "name"): "columnMapping",
    ("delta.enableChangeDataFeed", _ON): "changeDataFeed",
    ("delta.enableDeletionVectors", _ON): "deletionVectors",
    ("delta.enableIcebergCompatV1", _ON): "icebergCompatV1",
    ("delta.enableIcebergCompatV2", _ON): "icebergCompatV2",
    ("delta.enableIcebergCompatV3", _ON): "icebergCompatV3",
    ("delta.enableInCommitTimestamps", _ON): "inCommitTimestamp",
    ("delta.enableMaterializePartitionColumnsFeature", _ON): "materializePartitionColumns",
    ("delta.enableRowTracking", _ON): "rowTracking",
    ("delta.enableTypeWidening", _ON): "typeWidening",
    ("delta.enableVariantShredding", _ON): "variantShredding",
}
_NEEDS = {
    "clustering": ("domainMetadata",),
    "rowTracking": ("domainMetadata",),
    "variantShredding": ("variantType",),
    "icebergCompatV1": ("columnMapping",),
    "icebergCompatV2": ("columnMapping",),
    "icebergCompatV3": ("columnMapping", "rowTracking"),
}


def metadata_features(
    configuration: Mapping[str, str], field_metadata: Mapping[str, Mapping[str, object]]
) -> set[str]:
    """The features that properties and the metadata of columns ask for.

    References
    ----------
    PROTOCOL.md#active-features
    """
    found = {
        feature
        for (name, value), feature in _PROPERTY_FEATURES.items()
        if configuration.get(name, "").lower() == value
    }
    if any(name.startswith(CONSTRAINT) for name in configuration):
        found.add("checkConstraints")
    keys = {key for metadata in field_metadata.values() for key in metadata}
    return found | {feature for key, feature in FIELD_FEATURES.items() if key in keys}


def new_protocol(
    features: Iterable[str],
    *,
    reader_version: int | None = None,
    writer_version: int | None = None,
) -> Protocol:
    """The lowest protocol that has these features: versions where these say it all, else lists.

    Parameters
    ----------
    reader_version, writer_version
        The lowest to have, if the user asks for it; 1 and 2 otherwise.

    References
    ----------
    PROTOCOL.md#table-features-for-new-and-existing-tables
    """
    start = Protocol(reader_version or 1, writer_version or 2)
    needed = _with_needs(features)
    versions = [
        (FEATURES[f].min_reader_version or 1, FEATURES[f].min_writer_version)
        if f in FEATURES else (1, None)
        for f in map(canonical_feature, needed)
    ]  # fmt: skip
    reader = max([start.min_reader_version, *(version for version, _ in versions)])
    writers = [start.min_writer_version, *(v for _, v in versions if v is not None)]
    if (
        all(version is not None for _, version in versions)
        and reader < READER_FEATURES_VERSION
        and max(writers) < WRITER_FEATURES_VERSION
    ):
        return Protocol(reader, max(writers))
    return _with_lists(start, {*needed, *_OF_EVERY_TABLE})


def upgraded_protocol(protocol: Protocol, features: Iterable[str]) -> Protocol:
    """The protocol with these features too: itself if it has them all. None is ever dropped, and
    what a version implied is listed where lists replace it.

    References
    ----------
    PROTOCOL.md#table-features-for-new-and-existing-tables, PROTOCOL.md#supported-features
    """
    missing = {name for name in _with_needs(features) if not is_supported(protocol, name)}
    return _with_lists(protocol, missing) if missing else protocol


def check_upgrade(before: Protocol, after: Protocol, *, path: str) -> None:
    """Refuse a protocol that has less than the one before: data may already need it.

    Raises
    ------
    InvalidCommitError

    References
    ----------
    PROTOCOL.md#protocol-evolution, PROTOCOL.md#supported-features
    """
    known = {*FEATURES, *map(canonical_feature, _listed(before))}
    lost = [f for f in sorted(known) if is_supported(before, f) and not is_supported(after, f)]
    if lost:
        problem = f"its protocol no longer supports {', '.join(lost)}"
        raise InvalidCommitError(path=path, problem=problem)
    if set(after.reader_features or ()) - set(after.writer_features or ()):
        problem = "its protocol has features of readers that are not among those of writers"
        raise InvalidCommitError(path=path, problem=problem)


def _listed(protocol: Protocol) -> tuple[str, ...]:
    return *(protocol.reader_features or ()), *(protocol.writer_features or ())


def _with_needs(features: Iterable[str]) -> set[str]:
    found: set[str] = set()
    left = list(features)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _NEEDS.get(canonical_feature(name), ())
    return found


def _with_lists(protocol: Protocol, features: set[str]) -> Protocol:
    listed = set(protocol.writer_features or ())
    named = set(map(canonical_feature, listed))
    supported = {name for name in FEATURES if is_supported(protocol, name)} - named
    writers = features | listed | supported
    readers = {f for f in writers if _is_of_readers(f)} | set(protocol.reader_features or ())
    by_version = {f for f in readers if FEATURES[canonical_feature(f)].min_reader_version}
    if protocol.min_reader_version < READER_FEATURES_VERSION and readers == by_version:
        lowest = [FEATURES[canonical_feature(f)].min_reader_version or 1 for f in readers]
        reader = max([protocol.min_reader_version, *lowest])
        return Protocol(reader, WRITER_FEATURES_VERSION, None, tuple(sorted(writers)))
    return Protocol(
        READER_FEATURES_VERSION,
        WRITER_FEATURES_VERSION,
        tuple(sorted(readers)),
        tuple(sorted(writers)),
    )


def _is_of_readers(name: str) -> bool:
    feature = FEATURES.get(canonical_feature(name))
    return feature is not None and feature.reader_writer
