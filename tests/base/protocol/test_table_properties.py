"""A property counts only where its feature is supported."""

import pytest

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.table_properties import (
    ColumnMappingMode,
    InCommitTimestamps,
    RowTracking,
    column_mapping_mode,
    in_commit_timestamps,
    is_off,
    is_on,
    max_deleted_share,
    row_tracking,
)
from sparkdelta.exceptions import InvalidArgumentError
from tests.support.errors import raises

MODE = "delta.columnMapping.mode"
ICT = "delta.enableInCommitTimestamps"
ICT_VERSION = "delta.inCommitTimestampEnablementVersion"
ICT_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"
ROWS = "delta.enableRowTracking"


def test_an_unset_property_is_neither_on_nor_off():
    assert is_on({"p": "TRUE"}, "p")
    assert is_off({"p": "False"}, "p")
    for configuration in ({}, {"p": "nonsense"}):
        assert not is_on(configuration, "p")
        assert not is_off(configuration, "p")


@pytest.mark.parametrize(
    ("protocol", "mode", "expected"),
    [
        (Protocol(1, 2), "name", "none"),
        (Protocol(2, 5), "name", "name"),
        (Protocol(2, 5), "ID", "id"),
        (Protocol(2, 5), None, "none"),
        (Protocol(2, 5), "none", "none"),
        (Protocol(3, 7, (), ()), "id", "none"),
        (Protocol(3, 7, ("columnMapping",), ("columnMapping",)), "id", "id"),
        (Protocol(1, 2), "nonsense", "none"),
    ],
)
def test_column_mapping(protocol, mode, expected):
    configuration = {} if mode is None else {MODE: mode}
    assert column_mapping_mode(protocol, configuration) is ColumnMappingMode(expected)


def test_an_unknown_mode():
    with raises("DELTA_INVALID_COLUMN_MAPPING"):
        column_mapping_mode(Protocol(2, 5), {MODE: "nonsense"})


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, InCommitTimestamps(enabled=False)),
        ({ICT: "false", ICT_VERSION: "3", ICT_TIMESTAMP: "9"}, InCommitTimestamps(enabled=False)),
        ({ICT: "true"}, InCommitTimestamps(enabled=True)),
        ({ICT: "True", ICT_VERSION: "3", ICT_TIMESTAMP: "9"}, InCommitTimestamps(True, 3, 9)),
        ({ICT: "true", ICT_VERSION: "3"}, InCommitTimestamps(enabled=True)),
        ({ICT: "true", ICT_VERSION: "x", ICT_TIMESTAMP: "9"}, InCommitTimestamps(enabled=True)),
    ],
)
def test_in_commit_timestamps(configuration, expected):
    supported = Protocol(1, 7, None, ("inCommitTimestamp",))
    assert in_commit_timestamps(supported, configuration) == expected
    assert not in_commit_timestamps(Protocol(1, 7, None, ()), configuration).enabled
    assert not in_commit_timestamps(Protocol(1, 6), configuration).enabled


def test_row_tracking():
    configuration = {
        ROWS: "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id-1",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version-1",
    }
    supported = Protocol(1, 7, None, ("rowTracking", "domainMetadata"))
    assert row_tracking(supported, configuration) == RowTracking(
        True, "_row-id-1", "_row-version-1"
    )
    assert row_tracking(supported, {ROWS: "true"}) == RowTracking(enabled=True)
    assert row_tracking(supported, {}) == RowTracking(enabled=False)
    assert row_tracking(Protocol(1, 2), configuration) == RowTracking(enabled=False)


@pytest.mark.parametrize("text", ["", "half", "-0.1", "1.01", "nan", "inf"])
def test_shares_of_deleted_rows_that_are_none(text):
    """PROTOCOL.md#writer-requirement-for-deletion-vectors"""
    on = {"delta.enableDeletionVectors": "true", "sparkdelta.maxDeletedShare": text}
    vectors = Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))
    with pytest.raises(InvalidArgumentError):
        max_deleted_share(vectors, on)
    assert max_deleted_share(Protocol(3, 7), on) == 0
