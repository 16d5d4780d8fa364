"""Protocols of new tables, and protocol upgrades of existing ones.

References
----------
PROTOCOL.md#table-features-for-new-and-existing-tables, PROTOCOL.md#protocol-evolution,
PROTOCOL.md#active-features, PROTOCOL.md#supported-features
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.settable_properties import CONSTRAINT, MIN_READER_VERSION
from sparkdelta.base.protocol.table_features import (
    FEATURES,
    READER_FEATURES_VERSION,
    WRITER_FEATURES_VERSION,
    TableFeature,
    is_supported,
    known_feature,
    supported_features,
)
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

GENERATION_EXPRESSION = "delta.generationExpression"
INVARIANTS = "delta.invariants"
CURRENT_DEFAULT = "CURRENT_DEFAULT"
IDENTITY_START = "delta.identity.start"
FIELD_FEATURES = {
    rules.column_key: feature for feature, rules in FEATURES.items() if rules.column_key is not None
}
"""The features that keys in the metadata of columns require."""

_LEGACY = tuple(
    Protocol(*each) for each in ((1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (1, 6), (2, 6))
)
_MAPPED_WRITER_VERSION = 5
"""The first version for writers that implies `columnMapping`, as reader version 2 does."""


def metadata_features(
    configuration: Mapping[str, str], field_metadata: Mapping[str, Mapping[str, object]]
) -> set[TableFeature]:
    """Return the features that table properties and the metadata of each column require."""
    found = {
        feature
        for feature, rules in FEATURES.items()
        if any(configuration.get(name, "").lower() == value for name, value in rules.enabled_by)
    }
    if any(name.startswith(CONSTRAINT) for name in configuration):
        found.add(TableFeature.CHECK_CONSTRAINTS)
    keys = {key for metadata in field_metadata.values() for key in metadata}
    return found | {feature for key, feature in FIELD_FEATURES.items() if key in keys}


def new_protocol(
    features: Iterable[str],
    *,
    reader_version: int | None = None,
    writer_version: int | None = None,
) -> Protocol:
    """Return the lowest protocol that supports these features, given by name.

    It has feature lists only if legacy versions cannot express the features. Versions that have
    feature lists request no features by themselves: the table gets the lists of what it needs, or
    the legacy versions that imply exactly these features.

    Parameters
    ----------
    reader_version, writer_version
        The minimum versions that the user requests; 1 and 2 by default. Reader version 2 requests
        `columnMapping`, and only together with a writer version that implies it.
    """
    needed, writer = _with_required_features(features), writer_version or 2
    if writer >= WRITER_FEATURES_VERSION:
        return _lowest(_with_lists(Protocol(1, writer, None, ()), needed))
    is_mapped = (reader_version or 1) > 1 and writer >= _MAPPED_WRITER_VERSION
    start = Protocol(2 if is_mapped else 1, writer)
    rules = [FEATURES[TableFeature(name)] for name in needed]
    reader = max([start.min_reader_version, *(r.min_reader_version or 1 for r in rules)])
    writers = [start.min_writer_version, *(r.min_writer_version or 1 for r in rules)]
    if all(r.min_writer_version is not None for r in rules):
        return _lowest(_with_lists(Protocol(reader, max(writers)), set()))
    return _with_lists(start, needed)


def upgraded_protocol(protocol: Protocol, features: Iterable[str]) -> Protocol:
    """Return the protocol with additional features, or `protocol` itself if it supports them all.

    No feature is ever dropped: features that a legacy version implies are listed explicitly when
    feature lists are introduced. There are none if legacy versions imply exactly these features.
    """
    wanted = _with_required_features(features)
    missing = {name for name in wanted if not is_supported(protocol, TableFeature(name))}
    return _lowest(_with_lists(protocol, missing)) if missing else protocol


def with_versions(
    protocol: Protocol, *, reader_version: int | None, writer_version: int | None
) -> Protocol:
    """Return the protocol with all features that these versions imply, in the lowest versions.

    None keeps a version of the table. Versions that have feature lists imply nothing; reader
    version 2, of `columnMapping`, needs writer version 5 to imply it.
    """
    reader = reader_version or protocol.min_reader_version
    writer = writer_version or protocol.min_writer_version
    if writer >= WRITER_FEATURES_VERSION:
        return protocol
    if reader >= READER_FEATURES_VERSION:
        problem = f"reader version {reader} requires writer version {WRITER_FEATURES_VERSION}"
        raise InvalidArgumentError(argument=MIN_READER_VERSION, problem=problem)
    implied = {
        feature
        for feature in supported_features(Protocol(reader, writer))
        if writer >= (FEATURES[feature].min_writer_version or WRITER_FEATURES_VERSION)
    }
    missing = implied - supported_features(protocol)
    if not missing:
        return protocol
    return _lowest(_with_lists(protocol, {feature.value for feature in missing}))


def without_feature(protocol: Protocol, feature: TableFeature) -> Protocol:
    """Return the protocol without a feature, in the lowest versions for the remaining features."""
    has_lists = protocol.min_writer_version >= WRITER_FEATURES_VERSION
    listed = protocol if has_lists else _with_lists(protocol, set())
    writers = tuple(n for n in listed.writer_features or () if known_feature(n) is not feature)
    return _lowest(replace(listed, writer_features=writers))


def _lowest(listed: Protocol) -> Protocol:
    """Return the protocol with the lowest versions that support the listed writer features."""
    writers = set(listed.writer_features or ())
    features = {known_feature(name) for name in writers}
    for legacy in _LEGACY:
        if features == supported_features(legacy):
            return legacy
    unknown = tuple(n for n in listed.reader_features or () if known_feature(n) is None)
    if unknown:
        lists = Protocol(READER_FEATURES_VERSION, WRITER_FEATURES_VERSION, unknown, ())
        return _with_lists(lists, writers)
    return _with_lists(Protocol(1, WRITER_FEATURES_VERSION), writers)


def check_upgrade(
    before: Protocol, after: Protocol, *, path: str, dropped: frozenset[str] = frozenset()
) -> None:
    """Raise if a new protocol lacks features of the previous one, because data may depend on them.

    `dropped` names features that nothing in the table depends on any more.
    """
    lost = _supported_names(before) - _supported_names(after) - dropped
    if lost:
        problem = f"its protocol no longer supports {', '.join(sorted(lost))}"
        raise DeltaError.of("DELTA_INVALID_COMMIT", path=path, problem=problem)
    if set(after.reader_features or ()) - set(after.writer_features or ()):
        problem = "its readerFeatures contain features that its writerFeatures lack"
        raise DeltaError.of("DELTA_INVALID_COMMIT", path=path, problem=problem)


def _supported_names(protocol: Protocol) -> set[str]:
    """Return the names of the supported features, including unknown ones in the table's lists."""
    has_lists = protocol.min_writer_version >= WRITER_FEATURES_VERSION
    listed = protocol.writer_features or () if has_lists else ()
    unknown = {name for name in listed if known_feature(name) is None}
    return unknown | {feature.value for feature in supported_features(protocol)}


def _with_required_features(features: Iterable[str]) -> set[str]:
    found: set[str] = set()
    pending = list(features)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += (feature.value for feature in FEATURES[TableFeature(name)].needs)
    return found


def _with_lists(protocol: Protocol, features: set[str]) -> Protocol:
    listed = set(protocol.writer_features or ())
    unlisted = supported_features(protocol) - set(map(known_feature, listed))
    writers = features | listed | {feature.value for feature in unlisted}
    readers = {*filter(_is_reader_writer, writers), *(protocol.reader_features or ())}
    if protocol.min_reader_version < READER_FEATURES_VERSION:
        lowest = [FEATURES[TableFeature(name)].min_reader_version for name in readers]
        if None not in lowest:
            reader = max([protocol.min_reader_version, *filter(None, lowest)])
            return Protocol(reader, WRITER_FEATURES_VERSION, None, tuple(sorted(writers)))
    return Protocol(
        READER_FEATURES_VERSION,
        WRITER_FEATURES_VERSION,
        tuple(sorted(readers)),
        tuple(sorted(writers)),
    )


def _is_reader_writer(name: str) -> bool:
    feature = known_feature(name)
    return feature is not None and FEATURES[feature].reader_writer
