"""`_last_checkpoint` and its checksum."""

import hashlib
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.table.listing.last_checkpoint_rules import (
    canonical_json,
    checksum,
    last_checkpoint_bytes,
    parse_last_checkpoint,
)

SAMPLE = (
    '{"k0":"\'v 0\'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], '
    '{"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}'
)
CANONICAL = (
    '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,'
    '"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6",'
    '"k1"+"k3"+2+"k5"+2="v7"'
)


def test_the_sample_of_the_protocol():
    assert canonical_json(json.loads(SAMPLE)) == CANONICAL
    assert checksum(json.loads(SAMPLE)) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (42, "42"),
        (3.14, "3.14"),
        ("hello world", '"hello%20world"'),
        (
            {"a": 10, "b": {"y": None, "x": "https://delta.io"}},
            '"a"=10,"b"+"x"="https%3A%2F%2Fdelta.io","b"+"y"=null',
        ),
        ([None, "hi ho", 2.71], '0=null,1="hi%20ho",2=2.71'),
        ({"k1": "v1", "checksum": "<anything>", "k3": 23}, '"k1"="v1","k3"=23'),
        ({"a": {"checksum": 1}}, '"a"+"checksum"=1'),
        (">aZ0-._~", '"%3EaZ0-._~"'),
        ("é", '"%C3%A9"'),
        ({}, ""),
        ([[], {}], ""),
        ({"b": 1, "a+": 2, "a": 3}, '"a"=3,"a%2B"=2,"b"=1'),
    ],
)
def test_canonical_form(value, canonical):
    assert canonical_json(value) == canonical


def test_elements_are_sorted_by_path_as_bytes():
    assert canonical_json(list(range(11))).startswith("0=0,1=1,10=10,2=2")


def test_all_fields():
    data = b'{"version":3,"size":7,"parts":2,"sizeInBytes":99,"numOfAddFiles":5,"tags":{"a":"b"}}'
    assert parse_last_checkpoint(data) == 3


def test_only_the_version_is_needed():
    assert parse_last_checkpoint(b'{"version":3}\n') == 3


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"{",
        b'{"version":3',
        b"null",
        b"[1]",
        b"3",
        b"{}",
        b'{"version":null}',
        b'{"version":"3"}',
        b'{"version":-1}',
        b'{"version":3.5}',
        b'{"version":true}',
        b'{"version":3,"size":NaN}',
        b'{"version":3}{"version":4}',
        b'{"version":3,"version":3}',
        b'{"version":3,"tags":{"a":1,"a":1}}',
        b'{"version":3,"checksum":"0"}',
        b'{"version":3,"checksum":17}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_unreliable_hints_are_none(data):
    assert parse_last_checkpoint(data) is None


def test_hints_nested_about_as_deep_as_the_stack_are_none():
    """Some depths are parsed, but are too deep to compute a checksum."""
    for depth in range(sys.getrecursionlimit() - 150, sys.getrecursionlimit()):
        nested = b"[" * depth + b"]" * depth
        assert parse_last_checkpoint(b'{"version":3,"checksum":"0","a":' + nested + b"}") is None


def test_a_matching_checksum():
    document = {"version": 3, "size": 10, "checkpointSchema": {"fields": [{"name": "ä b"}]}}
    document["checksum"] = checksum(document)
    assert parse_last_checkpoint(json.dumps(document).encode()) == 3
    document["size"] = 11
    assert parse_last_checkpoint(json.dumps(document).encode()) is None


def test_numbers_count_as_written():
    # Python would write the number as 1e+20.
    canonical = '"version"=3,"x"=1.0E20'
    digest = hashlib.md5(canonical.encode()).hexdigest()
    data = f'{{"version":3,"x":1.0E20,"checksum":"{digest}"}}'
    assert parse_last_checkpoint(data.encode()) == 3


@pytest.mark.parametrize("text", [r'{"version":1,"a":"\ud800","checksum":"x"}',
                                  '{"version":9223372036854775808}'])  # fmt: skip
def test_impossible_hints_are_none(text):
    assert parse_last_checkpoint(text.encode()) is None


def test_a_checksum_as_delta_spark_sorts_is_accepted():
    document = {"version": 3, "features": [f"f{n}" for n in range(11)]}
    pairs = [f'"features"+{n}="f{n}"' for n in range(11)] + ['"version"=3']
    spark = hashlib.md5(",".join(sorted(pairs)).encode()).hexdigest()
    assert spark != checksum(document)
    data = json.dumps({**document, "checksum": spark}).encode()
    assert parse_last_checkpoint(data) == 3


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), documents, max_size=4), st.integers(0, 2**63 - 1))
def test_hints_with_a_checksum_are_read_back(document, version):
    document["version"] = version
    for optional in ("parts", "size", "sizeInBytes", "numOfAddFiles"):
        document.pop(optional, None)
    document["checksum"] = checksum(document)
    assert parse_last_checkpoint(json.dumps(document).encode()) == version


@given(st.binary(max_size=60))
def test_bytes_never_raise(data):
    parse_last_checkpoint(data)


def test_written_hints_are_read_back():
    """PROTOCOL.md#last-checkpoint-file-schema"""
    data = last_checkpoint_bytes({"version": 7, "size": 3, "numOfAddFiles": 1, "sizeInBytes": 9})
    assert parse_last_checkpoint(data) == 7
    document = json.loads(data)
    assert document.pop("checksum") == checksum(document)
    assert document == {"version": 7, "size": 3, "numOfAddFiles": 1, "sizeInBytes": 9}


def test_fields_with_another_checksum_in_delta_spark_are_left_out():
    """A field with a longer array is left out, as delta-spark, for its checksum, sorts element 10
    before element 1.
    """
    many, few = {"names": ["x"] * 11}, {"names": ["x"] * 10}
    optional = ("v2Checkpoint", "checkpointSchema")
    kept = json.loads(last_checkpoint_bytes({"version": 7, "v2Checkpoint": few}, optional=optional))
    assert kept["v2Checkpoint"] == few
    data = last_checkpoint_bytes(
        {"version": 7, "v2Checkpoint": many, "checkpointSchema": few}, optional=optional
    )
    document = json.loads(data)
    assert "v2Checkpoint" not in document
    assert document["checkpointSchema"] == few
    assert document["checksum"] == checksum(document)
