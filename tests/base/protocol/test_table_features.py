"""The registry, and who is refused."""

import pytest

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.table_features import (
    FEATURES,
    TableFeature,
    Writing,
    allows,
    check_data_writable,
    check_readable,
    check_writable,
    is_supported,
    known_feature,
    supported_features,
)
from tests.support.errors import raises

# "Valid Feature Names in Table Features"
NAMES_IN_PROTOCOL = {
    "appendOnly": "Writers only",
    "invariants": "Writers only",
    "checkConstraints": "Writers only",
    "generatedColumns": "Writers only",
    "allowColumnDefaults": "Writers only",
    "changeDataFeed": "Writers only",
    "columnMapping": "Readers and writers",
    "identityColumns": "Writers only",
    "deletionVectors": "Readers and writers",
    "rowTracking": "Writers only",
    "timestampNtz": "Readers and writers",
    "domainMetadata": "Writers only",
    "v2Checkpoint": "Readers and writers",
    "catalogManaged": "Readers and writers",
    "icebergCompatV1": "Writers only",
    "icebergCompatV2": "Writers only",
    "clustering": "Writers only",
    "vacuumProtocolCheck": "Readers and writers",
    "inCommitTimestamp": "Writers only",
}
READABLE = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "timestampWithoutTimezone",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "typeWidening",
    "typeWidening-preview",
    "variantType",
    "variantType-preview",
    "variantShredding",
    "variantShredding-preview",
]


def tables(*features, writer=7):
    return Protocol(3, writer, features, features)


@pytest.mark.parametrize(("name", "who"), NAMES_IN_PROTOCOL.items())
def test_every_feature_of_the_protocol_is_known(name, who):
    assert FEATURES[TableFeature(name)].reader_writer == (who == "Readers and writers")


def test_the_registry_is_consistent():
    names = [name for f, rules in FEATURES.items() for name in (f.value, *rules.aliases)]
    assert len(names) == len(set(names))
    assert list(FEATURES) == list(TableFeature)
    for rules in FEATURES.values():
        assert rules.reason
        assert rules.readable or rules.reader_writer
        assert rules.readable or not rules.writable


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("typeWidening-preview", "typeWidening"),
        ("variantType-preview", "variantType"),
        ("variantShredding-preview", "variantShredding"),
        ("catalogOwned-preview", "catalogManaged"),
        ("catalogOwned", "catalogManaged"),
        ("timestampWithoutTimezone", "timestampNtz"),
        ("deletionVectors", "deletionVectors"),
    ],
)
def test_canonical_names(name, canonical):
    assert TableFeature(name).value == canonical
    assert known_feature(name) is TableFeature(canonical)


@pytest.mark.parametrize("name", ["DeletionVectors", "deletionVectors-preview", "neverHeardOf", ""])
def test_names_of_no_feature(name):
    assert known_feature(name) is None
    with pytest.raises(ValueError):
        TableFeature(name)


@pytest.mark.parametrize("name", READABLE)
def test_readable_features(name):
    check_readable(tables(name), path="/t")
    assert is_supported(tables(name), TableFeature(name))
    assert TableFeature(name) in supported_features(tables(name))


@pytest.mark.parametrize(("reader", "writer"), [(1, 1), (1, 7), (2, 5), (2, 7), (1, 99)])
def test_old_reader_versions_are_readable_whatever_the_writer_needs(reader, writer):
    check_readable(Protocol(reader, writer, None, ("unknown",)), path="/t")


def test_writer_features_never_block_reading():
    check_readable(Protocol(3, 7, (), ("appendOnly", "unknownWriterFeature")), path="/t")


def test_a_feature_of_the_readers_list_alone_is_tolerated():
    protocol = Protocol(3, 7, ("deletionVectors",), ())
    check_readable(protocol, path="/t")
    assert is_supported(protocol, TableFeature.DELETION_VECTORS)


def test_all_missing_features_are_named():
    preview = "adaptiveMetadata-preview"
    protocol = tables("deletionVectors", "newThing", "DeletionVectors", preview, "newThing")
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_READ") as caught:
        check_readable(protocol, path="/t")
    assert caught.value.features == ("newThing", "DeletionVectors", preview)
    assert caught.value.path == "/t"


@pytest.mark.parametrize(
    "name", ["catalogManaged", "catalogManaged-preview", "catalogOwned", "catalogOwned-preview"]
)
def test_catalog_managed(name):
    with raises("DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"):
        check_readable(tables("deletionVectors", name, "vacuumProtocolCheck"), path="/t")
    managed = tables(name, "inCommitTimestamp")
    check_readable(managed, path="/t", has_catalog=True)
    check_writable(managed, path="/t")
    for writing in (Writing.CLEANUP, Writing.MAINTENANCE):
        assert not allows(managed, writing)
        with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"):
            check_writable(managed, path="/t", writing=writing)


@pytest.mark.parametrize("version", [-1, 0, 4, 5, 2147483647])
def test_unknown_reader_versions(version):
    with raises("DELTA_INVALID_PROTOCOL_VERSION") as caught:
        check_readable(Protocol(version, 7, (), ()), path="/t")
    assert (caught.value.reader_version, caught.value.writer_version) == (version, 7)


def test_reader_version_3_needs_its_list():
    with raises("DELTA_INVALID_PROTOCOL"):
        check_readable(Protocol(3, 7, None, ()), path="/t")
    check_readable(Protocol(3, 7, (), ()), path="/t")


@pytest.mark.parametrize("writer", [1, 2, 6, 8])
def test_reader_version_3_needs_writer_version_7(writer):
    with raises("DELTA_INVALID_PROTOCOL"):
        check_readable(tables("deletionVectors", writer=writer), path="/t")


@pytest.mark.parametrize(
    ("name", "first_writer"),
    [
        ("appendOnly", 2),
        ("invariants", 2),
        ("checkConstraints", 3),
        ("changeDataFeed", 4),
        ("generatedColumns", 4),
        ("identityColumns", 6),
    ],
)
def test_writer_versions_imply_features(name, first_writer):
    for writer in range(1, 7):
        assert is_supported(Protocol(1, writer), TableFeature(name)) == (writer >= first_writer)
    assert not is_supported(Protocol(1, 7, None, ()), TableFeature(name))
    assert is_supported(Protocol(1, 7, None, (name,)), TableFeature(name))


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        (Protocol(1, 5), False),
        (Protocol(2, 5), True),
        (Protocol(2, 7, None, ("columnMapping",)), True),
        (Protocol(3, 7, ("columnMapping",), ("columnMapping",)), True),
        (Protocol(3, 7, (), ("columnMapping",)), False),
        (Protocol(1, 7, None, ("columnMapping",)), False),
    ],
)
def test_column_mapping_counts_by_the_readers_side(protocol, expected):
    assert is_supported(protocol, TableFeature.COLUMN_MAPPING) == expected


def test_features_without_a_version_need_a_list():
    vectors = TableFeature.DELETION_VECTORS
    assert not is_supported(Protocol(2, 6), TableFeature.ROW_TRACKING)
    assert not is_supported(Protocol(2, 6, ("deletionVectors",)), vectors)
    assert supported_features(tables("deletionVectors", "neverHeardOf")) == {vectors}


BINDING_DATA_ONLY = [
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "identityColumns",
    "allowColumnDefaults",
    "rowTracking",
    "icebergCompatV1",
    "icebergCompatV2",
    "clustering",
    "collations",
]


def writes(*features):
    return Protocol(1, 7, None, features)


@pytest.mark.parametrize("name", [*BINDING_DATA_ONLY, "domainMetadata", "inCommitTimestamp"])
@pytest.mark.parametrize("writing", Writing)
def test_rules_of_data_files_do_not_stop_log_maintenance(name, writing):
    check_writable(writes(name), path="/t", writing=writing)


@pytest.mark.parametrize("name", READABLE)
def test_readable_tables_can_be_maintained(name):
    check_writable(tables(name), path="/t", writing=Writing.LOG_FILES)


@pytest.mark.parametrize("writer", range(1, 7))
def test_old_writer_versions_are_writable(writer):
    """Writer Version Requirements"""
    check_writable(Protocol(1, writer), path="/t")


@pytest.mark.parametrize("writer", [0, 8, 99, -1])
def test_unknown_writer_versions(writer):
    with raises("DELTA_INVALID_PROTOCOL_VERSION") as raised:
        check_writable(Protocol(1, writer, None, ()), path="/t")
    assert raised.value.writer_version == writer


def test_every_feature_that_cannot_be_written_is_named():
    names = ("new1", "appendOnly", "coordinatedCommits-preview", "AppendOnly", "new1")
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE") as raised:
        check_writable(writes(*names), path="/t")
    assert raised.value.features == ("new1", "coordinatedCommits-preview", "AppendOnly")
    assert "only the coordinator" in raised.value.reasons
    assert raised.value.error_class == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


@pytest.mark.parametrize("name", ["redirectReaderWriter-preview", "adaptiveMetadata-preview", "x"])
def test_unreadable_tables_cannot_be_written(name):
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_READ"):
        check_writable(tables(name), path="/t")


@pytest.mark.parametrize("name", ["coordinatedCommits-preview", "redirectWriterOnly-preview"])
@pytest.mark.parametrize("writing", Writing)
def test_tables_that_others_write(name, writing):
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"):
        check_writable(writes(name), path="/t", writing=writing)


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(1, 7, None, None),
        Protocol(3, 7, ("deletionVectors",), ()),
        Protocol(3, 7, ("deletionVectors",), ("v2Checkpoint",)),
        Protocol(3, 6, (), ()),
    ],
)
def test_feature_lists_must_agree(protocol):
    """A reader-writer feature is in both lists."""
    with raises("DELTA_INVALID_PROTOCOL"):
        check_writable(protocol, path="/t")


def test_names_may_differ_between_preview_and_final():
    check_writable(Protocol(2, 7, None, ("columnMapping", "typeWidening-preview")), path="/t")


NO_OBSTACLE = [
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns",
    "identityColumns", "allowColumnDefaults", "columnMapping", "deletionVectors", "timestampNtz",
    "v2Checkpoint", "vacuumProtocolCheck", "typeWidening", "domainMetadata", "inCommitTimestamp",
    "checkpointProtection", "clustering", "rowTracking", "variantType", "variantShredding",
    "icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "materializePartitionColumns",
    "collations", "catalogManaged", "geospatial",
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
