"""What new data must respect, and the protocol of a new table."""

import pytest

from sparkdelta.exceptions import (
    UnknownConfigurationError,
    UnsupportedWriterFeaturesError,
    WriteNotImplementedError,
)
from sparkdelta.protocol.actions import Protocol
from sparkdelta.protocol.table_features import FEATURES, check_writable
from sparkdelta.protocol.write_support import check_data_writable, new_protocol

NO_OBSTACLE = [
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns",
    "identityColumns", "allowColumnDefaults", "columnMapping", "deletionVectors", "timestampNtz",
    "v2Checkpoint", "vacuumProtocolCheck", "typeWidening", "domainMetadata", "inCommitTimestamp",
    "checkpointProtection",
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_every_feature_is_thought_of(name):
    """A feature that is only supported is no obstacle, unless data must respect it anyway."""
    reader = (name,) if FEATURES[name].reader_writer else ()
    protocol = Protocol(3, 7, reader, (name,))
    if name in NO_OBSTACLE:
        check_data_writable(protocol, {}, path="/t")
    else:
        with pytest.raises(Exception):  # noqa: B017 - which one differs
            check_data_writable(protocol, {}, path="/t")


def test_everything_that_is_missing_is_named():
    protocol = Protocol(2, 7, None, ("columnMapping", "rowTracking", "icebergCompatV2"))
    with pytest.raises(WriteNotImplementedError) as raised:
        check_data_writable(protocol, {"delta.columnMapping.mode": "id"}, path="/t")
    assert raised.value.missing == ("rowTracking", "icebergCompatV2", "columnMapping (id)")


def test_what_the_protocol_does_not_support_does_not_count():
    """Active Features"""
    check_data_writable(Protocol(1, 1), {"delta.columnMapping.mode": "id"}, path="/t")


def test_unknown_features():
    with pytest.raises(UnsupportedWriterFeaturesError):
        check_data_writable(Protocol(1, 7, None, ("x",)), {}, path="/t")


@pytest.mark.parametrize(
    ("properties", "features", "wanted"),
    [
        ({}, [], Protocol(1, 2)),
        ({"delta.appendOnly": "true", "mine": "x"}, [], Protocol(1, 2)),
        (
            {"delta.enableInCommitTimestamps": "true"},
            [],
            Protocol(1, 7, None, ("appendOnly", "inCommitTimestamp", "invariants")),
        ),
        ({"delta.enableInCommitTimestamps": "false"}, [], Protocol(1, 2)),
        (
            {"delta.checkpointPolicy": "v2"},
            ["timestampNtz"],
            Protocol(
                3,
                7,
                ("timestampNtz", "v2Checkpoint"),
                ("appendOnly", "invariants", "timestampNtz", "v2Checkpoint"),
            ),
        ),
    ],
)
def test_the_lowest_protocol(properties, features, wanted):
    """A table upgraded to features lists what its old version implied."""
    protocol = new_protocol(properties, frozenset(features))
    assert protocol == wanted
    check_writable(protocol, path="/t")


@pytest.mark.parametrize(
    "name", ["delta.x", "delta.enableRowTracking", "delta.feature.rowTracking"]
)
def test_properties_that_are_not_known(name):
    with pytest.raises(UnknownConfigurationError) as raised:
        new_protocol({name: "true"}, frozenset())
    assert raised.value.property == name
