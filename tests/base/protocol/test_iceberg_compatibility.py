""" "Writer Requirements for IcebergCompatV1" and V2: what the table must and may not be."""

import pytest

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.iceberg_compatibility import (
    check_iceberg_partitioning,
    check_still_compatible,
    iceberg_version,
    is_iceberg_type_change,
)
from sparkdelta.base.protocol.settable_properties import requested_properties
from tests.support.errors import raises

V1, V2, V3 = (f"delta.enableIcebergCompatV{version}" for version in (1, 2, 3))
TRACKED = "delta.enableRowTracking"
MAPPED = {"delta.columnMapping.mode": "id"}
VECTORS = "delta.enableDeletionVectors"


def protocol(*features):
    readers = ("deletionVectors",) if "deletionVectors" in features else ()
    return Protocol(3, 7, ("columnMapping", *readers), ("columnMapping", *features))


@pytest.mark.parametrize(
    ("features", "configuration", "version"),
    [
        ((), {V2: "true"}, None),
        (("icebergCompatV2",), {}, None),
        (("icebergCompatV2",), {V2: "false", VECTORS: "true"}, None),
        (("icebergCompatV2",), {V1: "true"}, None),
        (("icebergCompatV2",), {V2: "TRUE", **MAPPED}, 2),
        (("icebergCompatV1", "icebergCompatV2"), {V1: "true", V2: "false", **MAPPED}, 1),
        (("icebergCompatV2", "deletionVectors"), {V2: "true", **MAPPED}, 2),
        (("icebergCompatV3", "rowTracking", "deletionVectors"),
         {V3: "true", TRACKED: "true", VECTORS: "true", **MAPPED}, 3),
    ],
)  # fmt: skip
def test_compatibility_version_follows_the_properties(features, configuration, version):
    assert iceberg_version(protocol(*features), configuration) == version


@pytest.mark.parametrize(
    ("features", "configuration", "violation"),
    [
        (("icebergCompatV1", "icebergCompatV2"), {V1: "true", V2: "true", **MAPPED},
         "VERSION_MUTUAL_EXCLUSIVE"),
        (("icebergCompatV2",), {V2: "true"}, "WRONG_REQUIRED_TABLE_PROPERTY"),
        (("icebergCompatV1",), {V1: "true", "delta.columnMapping.mode": "none"},
         "WRONG_REQUIRED_TABLE_PROPERTY"),
        (("icebergCompatV1", "deletionVectors"), {V1: "true", **MAPPED},
         "INCOMPATIBLE_TABLE_FEATURE"),
        (("icebergCompatV2", "deletionVectors"), {V2: "true", VECTORS: "true", **MAPPED},
         "DELETION_VECTORS_SHOULD_BE_DISABLED"),
        (("icebergCompatV2", "icebergCompatV3", "rowTracking"),
         {V2: "true", V3: "true", TRACKED: "true", **MAPPED}, "VERSION_MUTUAL_EXCLUSIVE"),
        (("icebergCompatV3", "rowTracking"), {V3: "true", **MAPPED},
         "WRONG_REQUIRED_TABLE_PROPERTY"),
    ],
)  # fmt: skip
def test_incompatible_features_and_types_are_refused(features, configuration, violation):
    with raises("DELTA_ICEBERG_COMPAT_VIOLATION") as raised:
        iceberg_version(protocol(*features), configuration)
    assert raised.value.violation == violation


@pytest.mark.parametrize(
    ("version", "before", "after", "is_refused"),
    [
        (None, ["a"], ["b"], False),
        (1, [], ["b"], False),
        (2, ["a"], ["A"], False),
        (1, ["a"], ["b"], True),
        (2, ["a"], [], True),
        (2, ["a", "b"], ["b", "a"], True),
    ],
)
def test_other_partition_columns(version, before, after, is_refused):
    if not is_refused:
        check_iceberg_partitioning(version, before, after)
        return
    with raises("DELTA_ICEBERG_COMPAT_VIOLATION") as raised:
        check_iceberg_partitioning(version, before, after)
    assert raised.value.violation == "REPLACE_TABLE_CHANGE_PARTITION_NAMES"


def test_version_3_stays():
    for before, after in ((None, 3), (3, 3), (2, None), (1, 2)):
        check_still_compatible(before, after)
    for after in (None, 2):
        with raises("DELTA_ICEBERG_COMPAT_VIOLATION") as raised:
            check_still_compatible(3, after)
        assert raised.value.violation == "CANNOT_BE_DISABLED"


def test_type_changes():
    """Type Widening: those of Iceberg alone."""
    for good in (("float", "double"), ("short", "integer"), ("decimal(3,1)", "decimal(9,1)"),
                 ("date", "date")):  # fmt: skip
        assert is_iceberg_type_change(*good)
    for bad in (("integer", "double"), ("date", "timestamp_ntz"), ("long", "decimal(20,0)"),
                ("decimal(3,1)", "decimal(9,2)"), ("double", "float")):  # fmt: skip
        assert not is_iceberg_type_change(*bad)


def test_such_a_table_maps_its_columns():
    """Column Mapping must be enabled: by name, if the user does not say."""
    for name in (V1, V2):
        assert requested_properties({name: "true"}).configuration == {
            name: "true", "delta.columnMapping.mode": "name",
        }  # fmt: skip
        assert requested_properties({name: "true", **MAPPED}).configuration == {
            name: "true", **MAPPED,
        }  # fmt: skip
        assert requested_properties({name: "false"}).configuration == {name: "false"}
    assert requested_properties({V3: "true", **MAPPED}).configuration == {
        V3: "true", TRACKED: "true", **MAPPED,
    }  # fmt: skip
