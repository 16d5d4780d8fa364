"""What is believed of a `.crc` file."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.protocol.actions import Format, Metadata, Protocol
from sparkdelta.protocol.version_checksum import VersionChecksum, parse_version_checksum

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
    )


@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", b"[]", b"\xff", b'{"numFiles":1', b"[" * 99_999]
)
def test_what_does_not_parse_is_none(data):
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
