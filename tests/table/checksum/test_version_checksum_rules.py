"""Tests of reading and writing `.crc` files."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.base.protocol.actions import Format, Metadata, Protocol
from sparkdelta.table.checksum.version_checksum_rules import (
    VersionChecksum,
    differences,
    latest_by_key,
    parse_version_checksum,
    serialize_version_checksum,
)

METADATA = {
    "id": "af23c9d7-fff1-4a5a-a2c8-55c59bd782aa",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": '{"type":"struct","fields":[]}',
    "partitionColumns": ["p"],
    "configuration": {"a": "b"},
    "createdTime": 5,
}
PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors"],
}
CHECKSUM = {
    "txnId": "x",
    "tableSizeBytes": 100,
    "numFiles": 2,
    "numMetadata": 1,
    "numProtocol": 1,
    "inCommitTimestampOpt": 7,
    "metadata": METADATA,
    "protocol": PROTOCOL,
    "unknown": [],
}


def parse(document):
    return parse_version_checksum(json.dumps(document).encode())


def without(document, name):
    return {key: value for key, value in document.items() if key != name}


def test_a_complete_checksum():
    assert parse(CHECKSUM) == VersionChecksum(
        protocol=Protocol(3, 7, ("deletionVectors",), ("deletionVectors",)),
        metadata=Metadata(
            id=METADATA["id"],
            format=Format(),
            schema_string=METADATA["schemaString"],
            partition_columns=("p",),
            configuration={"a": "b"},
            created_time=5,
        ),
        num_files=2,
        table_size_bytes=100,
        in_commit_timestamp=7,
        txn_id="x",
    )


@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", b"[]", b"\xff", b'{"numFiles":1', b"[" * 99_999]
)
def test_invalid_json_is_none(data):
    assert parse_version_checksum(data) is None


def test_an_empty_object_says_nothing():
    assert parse({}) == VersionChecksum()


@pytest.mark.parametrize("name", ["numProtocol", "numMetadata"])
@pytest.mark.parametrize("count", [0, 2, None, "1", True])
def test_there_must_be_one_of_each(name, count):
    found = parse({**CHECKSUM, name: count})
    assert (found.protocol, found.metadata) == (None, None)
    assert found.num_files == 2


@pytest.mark.parametrize(
    "name", ["id", "schemaString", "format", "partitionColumns", "configuration"]
)
@pytest.mark.parametrize("as_null", [True, False])
def test_incomplete_metadata_is_none(name, as_null):
    metadata = {**METADATA, name: None} if as_null else without(METADATA, name)
    found = parse({**CHECKSUM, "metadata": metadata})
    assert found.metadata is None
    assert found.protocol is not None


@pytest.mark.parametrize("name", list(PROTOCOL))
def test_an_incomplete_protocol_is_none(name):
    assert parse({**CHECKSUM, "protocol": without(PROTOCOL, name)}).protocol is None
    assert parse({**CHECKSUM, "protocol": {**PROTOCOL, name: "x"}}).protocol is None


@pytest.mark.parametrize(
    ("reader", "writer", "lists", "complete"),
    [
        (1, 2, {}, True),
        (2, 6, {"readerFeatures": None, "writerFeatures": None}, True),
        (2, 7, {"writerFeatures": []}, True),
        (2, 7, {}, False),
        (3, 7, {"writerFeatures": []}, False),
    ],
)
def test_feature_lists_are_demanded_by_version(reader, writer, lists, complete):
    protocol = {"minReaderVersion": reader, "minWriterVersion": writer, **lists}
    assert (parse({**CHECKSUM, "protocol": protocol}).protocol is not None) == complete


@pytest.mark.parametrize("value", [None, "2", True, 2.0])
def test_numbers_of_another_type_are_not_believed(value):
    found = parse({**CHECKSUM, "numFiles": value, "inCommitTimestampOpt": value})
    assert (found.num_files, found.in_commit_timestamp) == (None, None)


@given(st.binary(max_size=60))
def test_bytes_never_raise(data):
    parse_version_checksum(data)


HISTOGRAM = {"sortedBinBoundaries": [0, 10], "fileCounts": [1, 1], "totalBytes": [1, 99]}
FULL = {
    **CHECKSUM,
    "numDeletedRecordsOpt": 3,
    "numDeletionVectorsOpt": 1,
    "setTransactions": [{"appId": "a", "version": 1}],
    "domainMetadata": [{"domain": "d", "configuration": "", "removed": False}],
    "fileSizeHistogram": HISTOGRAM,
    "deletedRecordCountsHistogramOpt": {"deletedRecordCounts": [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]},
    "allFiles": [{"path": "x", "partitionValues": {"p": None}, "size": 1}],
}


def test_all_of_it_comes_back():
    """PROTOCOL.md#version-checksum-file-schema"""
    written = json.loads(serialize_version_checksum(parse(FULL)))
    assert written == without(FULL, "unknown")


RARE = {"appId": "𠀀", "version": 1}


def test_text_is_not_escaped():
    """delta-rs decodes escapes of some characters to others."""
    data = serialize_version_checksum(parse({**CHECKSUM, "setTransactions": [RARE]}))
    assert RARE["appId"] in data.decode()


def test_only_what_is_known_is_written():
    written = json.loads(serialize_version_checksum(parse(CHECKSUM)))
    assert written == without(CHECKSUM, "unknown")


@pytest.mark.parametrize("name", ["protocol", "metadata", "numFiles", "tableSizeBytes"])
def test_required_fields_cannot_be_left_out(name):
    with pytest.raises(ValueError, match=name[:4]):
        serialize_version_checksum(parse(without(FULL, name)))


def test_the_histogram_by_its_old_name():
    document = {**without(FULL, "fileSizeHistogram"), "histogramOpt": HISTOGRAM}
    assert parse(document).file_sizes == parse(FULL).file_sizes is not None


@pytest.mark.parametrize("name", ["setTransactions", "domainMetadata", "allFiles"])
@pytest.mark.parametrize("value", [None, {}, [{}], [7], [{"path": 1}]])
def test_a_list_is_complete_or_not_believed(name, value):
    found = parse({**FULL, name: value})
    lists = found.transactions, found.domain_metadata, found.all_files
    assert [item is None for item in lists].count(True) == 1


def test_lists_have_limits():
    checksum = VersionChecksum()
    many = checksum.with_actions(
        transactions=[{"appId": str(n)} for n in range(101)],
        domain_metadata=[{"domain": str(n)} for n in range(11)],
        all_files=[{"path": str(n)} for n in range(51)],
    )
    assert many == checksum
    most = checksum.with_actions(
        transactions=[{"appId": str(n)} for n in range(100)],
        domain_metadata=[{"domain": str(n)} for n in range(10)],
        all_files=[{"path": str(n)} for n in range(50)],
    )
    assert (len(most.transactions), len(most.domain_metadata), len(most.all_files)) == (100, 10, 50)


def test_totals_are_all_there_or_none():
    assert parse(FULL).totals.deleted_counts == (1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
    for name in ("numFiles", "fileSizeHistogram", "numDeletedRecordsOpt", "numDeletionVectorsOpt"):
        assert parse(without(FULL, name)).totals is None
    assert checksum_with(parse(FULL).totals) == parse(FULL)


def checksum_with(totals):
    return parse(FULL).with_totals(totals)


def test_without_deletion_vectors_in_the_protocol_there_are_none():
    plain = {"minReaderVersion": 1, "minWriterVersion": 2}
    document = {**CHECKSUM, "fileSizeHistogram": HISTOGRAM, "protocol": plain}
    totals = parse(document).totals
    assert (totals.num_deletion_vectors, totals.deleted_counts[0]) == (0, 2)
    assert parse({**document, "protocol": PROTOCOL}).totals is None


def test_the_latest_action_of_a_key_counts():
    """PROTOCOL.md#action-reconciliation"""
    known = [{"appId": "a", "version": 1}, {"appId": "b", "version": 1}]
    new = [{"appId": "a", "version": 2}]
    assert latest_by_key(known, new, key="appId") == [new[0], known[1]]
    assert latest_by_key(None, new, key="appId") is None


def test_a_removed_domain_is_not_live():
    known = [{"domain": "d", "removed": False}, {"domain": "e", "removed": False}]
    removed = [{"domain": "d", "removed": True}]
    assert latest_by_key(known, removed, key="domain") == [known[1]]


def differing(**changes):
    return differences(parse({**FULL, **changes}), parse(FULL), table_root="file:/t")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("txnId", "y"),
        ("tableSizeBytes", 1),
        ("numFiles", 1),
        ("numDeletedRecordsOpt", 1),
        ("numDeletionVectorsOpt", 2),
        ("inCommitTimestampOpt", 1),
        ("setTransactions", [{"appId": "a", "version": 2}]),
        ("domainMetadata", []),
        ("metadata", {**METADATA, "name": "x"}),
        ("protocol", {**PROTOCOL, "writerFeatures": ["deletionVectors", "appendOnly"]}),
        ("fileSizeHistogram", {**HISTOGRAM, "fileCounts": [2, 0]}),
        ("deletedRecordCountsHistogramOpt", {"deletedRecordCounts": [2, *[0] * 9]}),
        ("allFiles", [{"path": "y", "size": 1}]),
    ],
)
def test_a_difference_is_told_by_its_field(field, value):
    """PROTOCOL.md#state-validation"""
    assert set(differing(**{field: value})) == {field}


def test_order_and_missing_fields_make_no_difference():
    """Order, spelling, fields that one of the two leaves out."""
    features = {name: ["b", "a"] for name in ("readerFeatures", "writerFeatures")}
    ordered = {name: ["a", "b"] for name in features}
    files = [{"path": "a%20b", "size": 1}, {"path": "c", "size": 2}]
    left = parse({**FULL, "protocol": {**PROTOCOL, **features}, "allFiles": files})
    other = [{"path": "c", "size": 2, "tags": None}, {"path": "a b", "size": 1}]
    right = parse({**FULL, "protocol": {**PROTOCOL, **ordered}, "allFiles": other})
    assert differences(left, right, table_root="file:/t") == {}
    assert differing(setTransactions=None, numDeletedRecordsOpt=None, txnId=None) == {}
    assert differing() == {}
