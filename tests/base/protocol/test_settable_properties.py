"""Tests of the table properties that users may set, and of their values."""

import pytest

from sparkdelta.base.protocol.column_lists import column_list
from sparkdelta.base.protocol.settable_properties import (
    RequestedProperties,
    requested_properties,
    with_defaults,
)
from sparkdelta.exceptions import InvalidArgumentError
from tests.support.errors import raises


def test_names_are_kept_as_the_protocol_spells_them():
    """Change Metadata: `configuration` is a map of texts."""
    found = requested_properties(
        {"DELTA.AppendOnly": "TRUE", "mine": "x", "delta.Constraints.Positive": "a > 0"}
    )
    assert found == RequestedProperties(
        {"delta.appendOnly": "TRUE", "mine": "x", "delta.constraints.Positive": "a > 0"}
    )


def test_features_and_versions_are_of_the_protocol_and_not_kept():
    """Table Features"""
    found = requested_properties(
        {
            "delta.feature.ROWTRACKING": "supported",
            "delta.feature.typeWidening-preview": "enabled",
            "delta.minReaderVersion": "3",
            "delta.minWriterVersion": "7",
            "delta.ignoreProtocolDefaults": "true",
        }
    )
    assert found == RequestedProperties(
        {}, frozenset({"rowTracking", "typeWidening-preview"}), 3, 7
    )


def test_the_defaults_of_the_protocol_are_ignored():
    found = requested_properties({"DELTA.ignoreProtocolDefaults": "TRUE"})
    assert found == RequestedProperties({}, frozenset(), 1, 1)
    assert requested_properties({"delta.ignoreProtocolDefaults": "false"}) == RequestedProperties()


def test_defaults_may_keep_log_files_for_a_shorter_time_than_data_files():
    short = {"delta.logRetentionDuration": "interval 3 days"}
    assert requested_properties({}, short).configuration == short
    with raises("DELTA_ILLEGAL_OPTION"):
        requested_properties(short)
    with raises("DELTA_ILLEGAL_OPTION"):
        requested_properties({}, {"delta.logRetentionDuration": "x"})


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("delta.appendonlyy", "delta.appendOnly"),
        ("delta.feature.rowTrackin", "delta.feature.rowTracking"),
        ("delta.feature.timestampWithoutTimezone", "delta.feature.timestampNtz"),
        ("delta.checkpointIntervall", "delta.checkpointInterval"),
        ("delta.x", ""),
        ("delta.constraints.", ""),
        ("delta.columnMapping.maxColumnId", ""),
        ("delta.rowTracking.materializedRowIdColumnName", ""),
        ("delta.inCommitTimestampEnablementVersion", ""),
    ],
)
def test_names_that_are_not_known(name, suggestion):
    is_feature = name.startswith("delta.feature.")
    kind = "UNSUPPORTED_FEATURES_IN_CONFIG" if is_feature else "UNKNOWN_CONFIGURATION"
    with raises(f"DELTA_{kind}") as raised:
        requested_properties({name: "true"})
    assert raised.value.property == name
    assert suggestion in raised.value.suggestion


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("appendOnly", ["true", "False"], ["yes", "1", ""]),
        ("checkpointInterval", ["1", "100"], ["0", "-1", "ten", "1.5", "9999999999"]),
        ("checkpointPolicy", ["v2", "classic"], ["v3"]),
        ("columnMapping.mode", ["none", "name", "ID"], ["ids"]),
        ("dataSkippingNumIndexedCols", ["-1", "0"], ["-2", "x"]),
        ("dataSkippingStatsColumns", ["a", "a,b.c"], ["a,", "`a", "a..b", ""]),
        ("deletedFileRetentionDuration", ["interval 2 days"], ["1 month", "2"]),
        ("isolationLevel", ["Serializable", "WriteSerializable"], ["SnapshotIsolation"]),
        ("logRetentionDuration", ["interval 30 days"], ["interval 1 day", "1 year"]),
        ("minReaderVersion", ["1", "3"], ["0", "4"]),
        ("minWriterVersion", ["1", "7"], ["0", "8"]),
        ("parquet.compression.codec", ["zstd"], ["lzo"]),
        (
            "parquet.format.version",
            ["1.0.0", "2.0.0", "2.7.1", "2.12.0", "2.13.0"],
            ["1.0", "1.1.0", "2", "2.x.x", "2.12", "3.0.0", "12.0.0", ""],
        ),
        ("randomPrefixLength", ["2"], ["0"]),
        ("targetFileSize", ["100mb", "1000"], ["0", "big"]),
        ("feature.clustering", ["supported", "enabled"], ["true"]),
    ],
)
def test_values(name, good, bad):
    for value in good:
        requested_properties({f"delta.{name}": value})
    for value in bad:
        with pytest.raises(InvalidArgumentError) as raised:
            requested_properties({f"delta.{name}": value})
        assert raised.value.argument == f"delta.{name}"


def test_universal_format_is_refused_and_its_settings_are_stored():
    """As delta-spark does without the libraries of these formats."""
    given = {
        "delta.universalFormat.enabledFormats": "",
        "delta.universalFormat.config.iceberg.X": "1",
    }
    assert requested_properties(given).configuration == {
        "delta.universalFormat.enabledFormats": "",
        "delta.universalformat.config.iceberg.x": "1",
    }
    for formats in ("iceberg", "hudi, iceberg"):
        with raises("DELTA_UNIVERSAL_FORMAT_VIOLATION"):
            requested_properties({"delta.universalformat.enabledFormats": formats})
    with pytest.raises(InvalidArgumentError):
        requested_properties({"delta.universalFormat.enabledFormats": "x"})
    for name in ("delta.universalFormat.other", "delta.coordinatedCommits.tableConf-preview"):
        with raises("DELTA_UNKNOWN_CONFIGURATION"):
            requested_properties({name: "1"})


def test_property_values_must_be_texts():
    with pytest.raises(InvalidArgumentError):
        requested_properties({"delta.appendOnly": True})


def test_lists_of_columns():
    assert column_list("p", " a ,b.`c d`,`x``,.y`") == [("a",), ("b", "c d"), ("x`,.y",)]


def test_defaults_count_for_properties_that_are_not_given():
    """Others, other spellings and protocol versions are ignored, as in delta-spark."""
    defaults = {
        "delta.appendOnly": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.feature.deletionVectors": "supported",
        "delta.enabledeletionvectors": "true",
        "delta.nothing": "1",
        "delta.minReaderVersion": "3",
    }
    given = {"delta.APPENDONLY": "false", "own": "x"}
    assert with_defaults(given, defaults) == {
        **given,
        "delta.enableChangeDataFeed": "true",
        "delta.feature.deletionVectors": "supported",
    }
