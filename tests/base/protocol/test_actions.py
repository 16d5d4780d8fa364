"""Actions from their wire form, with the examples of PROTOCOL.md."""

import json

import pytest

from sparkdelta.base.protocol.actions import Format, Metadata, Protocol, Sidecar
from tests.support.errors import raises


def test_the_metadata_example():
    metadata = Metadata.from_dict(
        {
            "id": "af23c9d7-fff1-4a5a-a2c8-55c59bd782aa",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": "...",
            "partitionColumns": [],
            "configuration": {"appendOnly": "true"},
        }
    )
    assert metadata == Metadata(
        id="af23c9d7-fff1-4a5a-a2c8-55c59bd782aa",
        format=Format("parquet", {}),
        schema_string="...",
        configuration={"appendOnly": "true"},
    )


def test_nulls_and_unknown_fields_of_metadata():
    names = "id name description format schemaString partitionColumns configuration createdTime"
    assert Metadata.from_dict({**dict.fromkeys(names.split()), "new": 1}) == Metadata(id="")
    assert Metadata.from_dict({}) == Metadata(id="")


def test_properties_are_text():
    found = Metadata.from_dict({"configuration": {"a": True, "b": 3, "c": None, "d": "x"}})
    assert found.configuration == {"a": "true", "b": "3", "d": "x"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"minReaderVersion": 1, "minWriterVersion": 2}, Protocol(1, 2)),
        (
            {
                "minReaderVersion": 2,
                "minWriterVersion": 7,
                "readerFeatures": None,
                "writerFeatures": ["columnMapping", "identityColumns"],
            },
            Protocol(2, 7, None, ("columnMapping", "identityColumns")),
        ),
        (
            {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["columnMapping"],
                "writerFeatures": ["columnMapping", "identityColumns"],
                "new": {},
            },
            Protocol(3, 7, ("columnMapping",), ("columnMapping", "identityColumns")),
        ),
        (
            {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": []},
            Protocol(3, 7, (), None),
        ),
    ],
)
def test_protocols(document, expected):
    assert Protocol.from_dict(document) == expected


def test_actions_print_briefly():
    names = [{"name": f"c{n}"} for n in range(12)]
    metadata = Metadata(id="7", schema_string=json.dumps({"fields": names, "type": "struct"}))
    assert "columns=[c0, " in repr(metadata)
    assert "2 more" in repr(metadata)
    assert "columns=[unknown]" in repr(Metadata(id="7"))
    protocol = Protocol(3, 7, ("deletionVectors",), ("deletionVectors", "appendOnly"))
    assert repr(protocol).count("deletionVectors") == 1
    assert repr(Protocol(1, 2)) == "Protocol(reader=1, writer=2)"


@pytest.mark.parametrize("document", [{}, {"minReaderVersion": 1}, {"minReaderVersion": "1"}])
def test_a_protocol_needs_its_versions(document):
    with raises("DELTA_INVALID_PROTOCOL") as caught:
        Protocol.from_dict(document, path="/t")
    assert caught.value.path == "/t"


def test_the_sidecar_example():
    sidecar = Sidecar.from_dict(
        {
            "path": "016ae953-37a9-438e-8683-9a9a4a79a395.parquet",
            "sizeInBytes": 2304522,
            "modificationTime": 1512909768000,
            "tags": {},
        }
    )
    assert sidecar == Sidecar(
        "016ae953-37a9-438e-8683-9a9a4a79a395.parquet", 2304522, 1512909768000
    )
