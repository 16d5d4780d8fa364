"""Tests of the features that new data must respect."""

import pytest

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.table_features import FEATURES, TableFeature
from sparkdelta.base.protocol.write_support import check_data_writable
from tests.support.errors import raises

NO_OBSTACLE = [
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns",
    "identityColumns", "allowColumnDefaults", "columnMapping", "deletionVectors", "timestampNtz",
    "v2Checkpoint", "vacuumProtocolCheck", "typeWidening", "domainMetadata", "inCommitTimestamp",
    "checkpointProtection", "clustering", "rowTracking", "variantType", "variantShredding",
    "icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "materializePartitionColumns",
    "collations", "catalogManaged",
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(f.value for f in TableFeature))
def test_every_feature_is_thought_of(name):
    """A feature that is only supported is no obstacle, unless data must respect it anyway."""
    reader = (name,) if FEATURES[TableFeature(name)].reader_writer else ()
    protocol = Protocol(3, 7, reader, (name,))
    if name in NO_OBSTACLE:
        check_data_writable(protocol, path="/t")
    else:
        with pytest.raises(Exception):  # noqa: B017 - which one differs
            check_data_writable(protocol, path="/t")


def test_everything_that_is_missing_is_named():
    protocol = Protocol(2, 7, None, ("icebergWriterCompatV3", "icebergWriterCompatV1"))
    with raises("DELTA_WRITE_NOT_IMPLEMENTED") as raised:
        check_data_writable(protocol, path="/t")
    assert raised.value.missing == ("icebergWriterCompatV1", "icebergWriterCompatV3")


def test_unknown_features():
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"):
        check_data_writable(Protocol(1, 7, None, ("x",)), path="/t")
