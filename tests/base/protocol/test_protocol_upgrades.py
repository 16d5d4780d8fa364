""" "Table Features for New and Existing Tables": the lowest protocol, and upgrades that drop
nothing.
"""

import pytest

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.protocol_upgrades import (
    check_upgrade,
    metadata_features,
    new_protocol,
    upgraded_protocol,
    with_versions,
    without_feature,
)
from sparkdelta.base.protocol.table_features import (
    FEATURES,
    TableFeature,
    check_writable,
    is_supported,
    supported_features,
)
from sparkdelta.exceptions import InvalidArgumentError
from tests.support.errors import raises


@pytest.mark.parametrize(
    ("features", "wanted"),
    [
        ([], Protocol(1, 2)),
        (["invariants"], Protocol(1, 2)),
        (["checkConstraints"], Protocol(1, 3)),
        (["changeDataFeed", "generatedColumns"], Protocol(1, 4)),
        (["columnMapping"], Protocol(2, 5)),
        (["identityColumns", "columnMapping"], Protocol(2, 6)),
        (["inCommitTimestamp"],
         Protocol(1, 7, None, ("appendOnly", "inCommitTimestamp", "invariants"))),
        (["inCommitTimestamp", "columnMapping"],
         Protocol(2, 7, None, ("appendOnly", "columnMapping", "inCommitTimestamp", "invariants"))),
        (["timestampNtz", "columnMapping"],
         Protocol(3, 7, ("columnMapping", "timestampNtz"),
                  ("appendOnly", "columnMapping", "invariants", "timestampNtz"))),
        (["clustering"],
         Protocol(1, 7, None, ("appendOnly", "clustering", "domainMetadata", "invariants"))),
    ],
)  # fmt: skip
def test_the_lowest_protocol(features, wanted):
    protocol = new_protocol(features)
    assert protocol == wanted
    check_writable(protocol, path="/t")


def test_versions_that_are_asked_for():
    assert new_protocol([], reader_version=1, writer_version=1) == Protocol(1, 1)
    assert new_protocol([], writer_version=4) == Protocol(1, 4)
    assert new_protocol([], writer_version=5) == Protocol(1, 4)  # the fifth is columnMapping
    # Reader version 2 means `columnMapping`, which no writer version below 5 implies.
    assert new_protocol([], reader_version=2) == Protocol(1, 2)
    assert new_protocol([], reader_version=3) == Protocol(1, 2)
    assert new_protocol([], reader_version=3, writer_version=5) == Protocol(2, 5)
    # Versions that have feature lists imply nothing.
    vectors = Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))
    for reader in (1, 2, 3):
        versions = {"reader_version": reader, "writer_version": 7}
        assert new_protocol([], **versions) == Protocol(1, 1)
        assert new_protocol(["invariants", "appendOnly"], **versions) == Protocol(1, 2)
        changes = new_protocol(["changeDataFeed"], **versions)
        assert changes == Protocol(1, 7, None, ("changeDataFeed",))
        assert new_protocol(["deletionVectors"], **versions) == vectors
    assert new_protocol(["deletionVectors"], reader_version=1, writer_version=1) == vectors
    # What the version implied is kept where lists are needed after all.
    protocol = new_protocol(["rowTracking"], writer_version=3)
    assert protocol.writer_features == (
        "appendOnly", "checkConstraints", "domainMetadata", "invariants", "rowTracking",
    )  # fmt: skip


@pytest.mark.parametrize("reader", [1, 2, 3])
@pytest.mark.parametrize("writer", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize(
    "feature", ["changeDataFeed", "columnMapping", "typeWidening", "clustering"]
)
def test_upgrades(reader, writer, feature):
    if reader == 3 and writer < 7:
        pytest.skip("no such protocol")
    old = Protocol(
        reader,
        writer,
        ("v2Checkpoint",) if reader == 3 else None,
        ("v2Checkpoint", "x") if reader == 3 else ("x",) if writer == 7 else None,
    )
    new = upgraded_protocol(old, [feature])
    assert is_supported(new, TableFeature(feature))
    before = {f.value for f in supported_features(old)}
    assert before <= {f.value for f in supported_features(new)}
    assert set(old.writer_features or ()) <= set(new.writer_features or old.writer_features or ())
    if new.min_writer_version < 7:  # legacy versions imply this and nothing else
        wanted = supported_features(old) | {TableFeature(feature)}
        assert new == old or supported_features(new) == wanted
    elif new != old:
        assert new.min_reader_version >= reader
        listed = set(new.writer_features)
        assert before <= listed
        assert set(new.reader_features or ()) <= listed
        if new.min_reader_version == 3:
            of_readers = {f.value for f in supported_features(new) if FEATURES[f].reader_writer}
            assert set(new.reader_features) == of_readers
    assert upgraded_protocol(new, [feature]) is new


def test_upgrades_to_legacy_versions():
    assert upgraded_protocol(Protocol(1, 2), ["checkConstraints"]) == Protocol(1, 3)
    assert upgraded_protocol(Protocol(1, 4), ["columnMapping"]) == Protocol(2, 5)
    listed = Protocol(1, 7, None, ("appendOnly", "changeDataFeed", "invariants"))
    assert upgraded_protocol(Protocol(1, 2), ["changeDataFeed"]) == listed
    both = upgraded_protocol(listed, ["checkConstraints"])
    assert both.writer_features == (
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "invariants",
    )
    assert upgraded_protocol(both, ["generatedColumns"]) == Protocol(1, 4)


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (Protocol(1, 2), Protocol(1, 1), "appendOnly, invariants"),
        (Protocol(2, 5), Protocol(3, 7, (), ("appendOnly", "invariants")), "columnMapping"),
        (Protocol(1, 7, None, ("x",)), Protocol(1, 7, None, ()), "x"),
        (Protocol(1, 7, None, ()), Protocol(3, 7, ("v2Checkpoint",), ()), "readerFeatures"),
    ],
)
def test_no_commit_drops_a_feature(before, after, lost):
    """Protocol Evolution"""
    with raises("DELTA_INVALID_COMMIT") as raised:
        check_upgrade(before, after, path="/t")
    assert lost in raised.value.problem
    check_upgrade(before, before, path="/t")
    check_upgrade(before, upgraded_protocol(before, ["clustering", "typeWidening"]), path="/t")


@pytest.mark.parametrize(
    ("before", "versions", "after"),
    [
        (Protocol(1, 2), (1, 4), Protocol(1, 4)),
        (Protocol(1, 4), (1, 2), Protocol(1, 4)),
        (Protocol(1, 2), (2, 4), Protocol(1, 4)),  # reader version 2 is that of column mapping
        (Protocol(1, 2), (2, 5), Protocol(2, 5)),
        (Protocol(1, 2), (None, 5), Protocol(1, 4)),
        (Protocol(1, 2), (1, 6), Protocol(1, 6)),
        (Protocol(1, 2), (3, 7), Protocol(1, 2)),  # it implies nothing
        (Protocol(1, 7, None, ("checkConstraints",)), (1, 2), Protocol(1, 3)),
        (Protocol(2, 7, None, ("columnMapping",)), (None, 2),
         Protocol(2, 7, None, ("appendOnly", "columnMapping", "invariants"))),
        (Protocol(1, 7, None, ("domainMetadata",)), (2, None),
         Protocol(1, 7, None, ("domainMetadata",))),
        (Protocol(1, 7, None, ("domainMetadata",)), (1, 2),
         Protocol(1, 7, None, ("appendOnly", "domainMetadata", "invariants"))),
        (Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",)), (3, 7),
         Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))),
    ],
)  # fmt: skip
def test_versions_that_are_raised(before, versions, after):
    """Protocol Evolution: with the features that the versions imply, and none is lost."""
    reader, writer = versions
    assert with_versions(before, reader_version=reader, writer_version=writer) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Protocol(1, 3), Protocol(1, 2)),
        (Protocol(1, 4), Protocol(1, 7, None, ("appendOnly", "changeDataFeed",
                                               "generatedColumns", "invariants"))),
        (Protocol(3, 7, (), ("appendOnly", "invariants", "checkConstraints")), Protocol(1, 2)),
        (Protocol(3, 7, ("x",), ("checkConstraints", "x")), Protocol(3, 7, ("x",), ("x",))),
    ],
)  # fmt: skip
def test_a_feature_is_dropped(before, after):
    """Supported Features: a legacy version that implies it goes, too."""
    found = without_feature(before, TableFeature.CHECK_CONSTRAINTS)
    assert found == after
    check_upgrade(before, found, path="/t", dropped=frozenset(("checkConstraints",)))
    with raises("DELTA_INVALID_COMMIT"):
        check_upgrade(before, found, path="/t")


@pytest.mark.parametrize(
    ("feature", "before", "after"),
    [
        ("deletionVectors", Protocol(3, 7, ("deletionVectors",), ("deletionVectors", "appendOnly",
                                                                  "invariants")), Protocol(1, 2)),
        ("deletionVectors", Protocol(3, 7, ("columnMapping", "deletionVectors"),
                                     ("columnMapping", "deletionVectors")),
         Protocol(2, 7, None, ("columnMapping",))),
        ("typeWidening", Protocol(3, 7, ("typeWidening-preview", "v2Checkpoint"),
                                  ("typeWidening-preview", "v2Checkpoint")),
         Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))),
        ("columnMapping", Protocol(2, 5), Protocol(1, 4)),
    ],
)  # fmt: skip
def test_a_reader_feature_is_dropped(feature, before, after):
    """Supported Features: from both lists, and readers need no higher version than before."""
    assert without_feature(before, TableFeature(feature)) == after


@pytest.mark.parametrize(
    ("before", "versions"),
    [
        (Protocol(1, 2), (3, 6)),
        (Protocol(1, 2), (3, None)),
        (Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",)), (None, 4)),
    ],
)
def test_reader_features_need_writer_features(before, versions):
    """Reader features without writer features are refused, also if one of the versions is the
    table's own.
    """
    reader, writer = versions
    with pytest.raises(InvalidArgumentError):
        with_versions(before, reader_version=reader, writer_version=writer)


def test_nothing_is_missing():
    old = Protocol(3, 7, ("typeWidening-preview",), ("typeWidening-preview",))
    assert upgraded_protocol(old, ["typeWidening"]) is old


def test_properties_and_fields_require_features():
    """Active Features"""
    assert metadata_features({"delta.enableRowTracking": "false", "mine": "true"}, {}) == set()
    found = metadata_features(
        {"delta.enableRowTracking": "True", "delta.columnMapping.mode": "id",
         "delta.constraints.a": "x"},
        {"c": {"delta.generationExpression": "1"}, "d": {"CURRENT_DEFAULT": "1"}},
    )  # fmt: skip
    assert {feature.value for feature in found} == {
        "rowTracking", "columnMapping", "checkConstraints", "generatedColumns",
        "allowColumnDefaults",
    }  # fmt: skip
