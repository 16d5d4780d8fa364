"""Descriptors, Z85, stored vectors and the roaring codec, with pyroaring as the oracle."""

import struct
import uuid
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from sparkdelta.base.protocol.deletion_vectors import (
    DeletionVectorDescriptor,
    decode,
    dv_file_name,
    file_content,
    read_stored,
    z85_decode,
    z85_encode,
)
from sparkdelta.base.protocol.roaring_bitmaps import (
    cardinality,
    chunks_of_rows,
    chunks_of_words,
    decode_chunks,
    difference,
    encode_chunks,
    intersects,
    last_row,
    union,
)
from sparkdelta.exceptions import DeletionVectorError
from tests.support.bitmaps import encode
from tests.support.errors import raises
from tests.support.table_builder import vector_file

ROWS = [3, 4, 7, 11, 18, 29]
MAGIC = struct.pack("<I", 1681511377)
# JSON examples 1 to 3 of the protocol.
RELATIVE = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
ABSOLUTE = {
    "storageType": "p",
    "pathOrInlineDv": "s3://mytable/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
INLINE = {
    "storageType": "i",
    "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "sizeInBytes": 40,
    "cardinality": 6,
}


def descriptor(document, **changes):
    return DeletionVectorDescriptor.from_dict({**document, **changes})


def rows_of(chunks):
    rows = []
    for number, words in sorted(chunks.items()):
        assert words.dtype == np.int64
        assert words.shape == (1024,)
        bits = np.unpackbits(words.astype("<i8").view(np.uint8), bitorder="little")
        rows += [(number << 16) + int(row) for row in np.flatnonzero(bits)]
    return rows


def portable(rows, *, run_optimize=True):
    """The bytes that pyroaring writes."""
    bitmap = BitMap64(rows)
    if run_optimize:
        bitmap.run_optimize()
    return MAGIC + bitmap.serialize()


def test_example_1():
    vector = descriptor(RELATIVE)
    expected = "s3://mytable/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector.absolute_path("s3://mytable/") == expected
    assert vector.absolute_path("s3://mytable") == expected
    assert vector.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"


def test_example_2():
    vector = descriptor(ABSOLUTE)
    assert vector.absolute_path("file:/elsewhere") == ABSOLUTE["pathOrInlineDv"]
    assert vector.unique_id == f"p{ABSOLUTE['pathOrInlineDv']}@4"


def test_example_3():
    vector = descriptor(INLINE)
    assert vector.absolute_path("file:/t") is None
    assert vector.unique_id == "i" + INLINE["pathOrInlineDv"]
    assert rows_of(decode(vector)) == ROWS


@pytest.mark.parametrize("order", "<>")
def test_the_older_format_of_example_3(order):
    first, second = BitMap(ROWS).serialize(), BitMap([1]).serialize()
    data = struct.pack(f"{order}III", 1681511376, 2, len(first)) + first
    data += struct.pack(f"{order}I", len(second)) + second
    assert rows_of(decode_chunks(data)) == [*ROWS, 2**32 + 1]
    assert decode_chunks(struct.pack(f"{order}II", 1681511376, 0)) == {}
    for damaged in (data[:-1], data[:12], struct.pack(f"{order}III", 1681511376, 1, 5) + first):
        with raises("DELTA_DELETION_VECTOR_INVALID_FORMAT"):
            decode_chunks(damaged)


def test_no_prefix():
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert dv_file_name("^-aqEH.-t@S}K{vb[*k^") == name
    assert (
        descriptor(RELATIVE, pathOrInlineDv="^-aqEH.-t@S}K{vb[*k^").absolute_path("file:/my table")
        == f"file:/my table/{name}"
    )


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("file:///a%20b/dv.bin", "file:/a b/dv.bin"),
        ("/a%20b/dv.bin", "file:/a b/dv.bin"),
        ("s3a://x/dv%2B.bin", "s3a://x/dv+.bin"),
    ],
)
def test_absolute_paths_are_decoded(path, location):
    assert descriptor(ABSOLUTE, pathOrInlineDv=path).absolute_path("file:/t") == location


def test_offset_zero_is_not_no_offset():
    assert descriptor(RELATIVE, offset=0).unique_id.endswith("@0")
    assert "@4" not in descriptor(RELATIVE, offset=None).unique_id


def test_unknown_storage():
    with raises("DELTA_DELETION_VECTOR_INVALID_FORMAT"):
        descriptor(RELATIVE, storageType="x").absolute_path("file:/t")


@pytest.mark.parametrize("path", ["not-a-uuid", "", "\u00e9" * 20, "ab" + '"' * 20])
def test_malformed_uuid(path):
    with raises("DELTA_DELETION_VECTOR_INVALID_FORMAT"):
        dv_file_name(path)


# The test vector of the Z85 specification.
def test_z85_of_its_specification():
    data = bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])
    assert z85_encode(data) == "HelloWorld"
    assert z85_decode("HelloWorld") == data


@given(st.binary())
def test_z85_round_trip(data):
    text = z85_encode(data)
    assert z85_decode(text) == data + bytes(-len(data) % 4)
    assert len(text) == -(-len(data) // 4) * 5


@given(st.uuids(), st.text("abc", max_size=3))
def test_file_names_round_trip(identifier, prefix):
    name = dv_file_name(prefix + z85_encode(identifier.bytes))
    assert name.startswith(prefix)
    assert uuid.UUID(name[-40:-4]) == identifier


@pytest.mark.parametrize("text", ["Hello", "#####", "HelloWorl", "Hell\\", "Hell\u0420", "a b c"])
def test_z85_errors(text):
    if text == "Hello":
        assert z85_decode(text) == bytes([0x86, 0x4F, 0xD2, 0x6F])
        return
    with raises("DELTA_DELETION_VECTOR_INVALID_FORMAT"):
        z85_decode(text)


SETS = {
    "empty": [],
    "zero": [0],
    "ends of chunks": [65535, 65536, 131071, 131072],
    "array": list(range(0, 8192, 2)),
    "largest array": list(range(0, 4096 * 3, 3)),
    "smallest bitmap": list(range(0, 4097 * 3, 3)),
    "bitmap": list(range(0, 65536, 2)),
    "full chunk": list(range(65536)),
    "one run": list(range(1000, 60000)),
    "runs": [row for start in range(0, 65536, 1000) for row in range(start, start + 900)],
    "run to the very end": list(range(65000, 65536)),
    "three chunks, one of runs": [*range(10000), 70000, *range(131072, 190000, 2)],
    "five chunks, one of runs": [*range(10000), *(c << 16 for c in range(1, 5))],
    "five chunks without runs": [c << 16 for c in range(5)],
    "far chunk": [2**31 - 1, 2**31, 2**32 - 1],
    "buckets": [1, 2**32, 2**32 + 5, 2**33 + 7, (2**31 - 1) << 32],
    "mixed": [
        *range(5000),
        *range(100_000, 140_000, 2),
        *range(2**32, 2**32 + 70_000),
        2**40,
        2**40 + 65_536,
    ],
}


@pytest.mark.parametrize("rows", SETS.values(), ids=SETS.keys())
@pytest.mark.parametrize("run_optimize", [True, False])
def test_bytes_of_the_oracle_are_decoded(rows, run_optimize):
    chunks = decode_chunks(portable(rows, run_optimize=run_optimize))
    assert rows_of(chunks) == rows
    assert cardinality(chunks) == len(rows)


@pytest.mark.parametrize("rows", SETS.values(), ids=SETS.keys())
def test_the_oracle_decodes_our_bytes(rows):
    data = encode(rows)
    assert data[:4] == MAGIC
    assert list(BitMap64.deserialize(data[4:])) == rows
    assert data == portable(rows)


row_indexes = st.integers(0, 2**18) | st.integers(0, 2**63 - 1)
row_ranges = st.builds(
    lambda start, length, step: range(start, start + length * step, step),
    st.integers(0, 2**34),
    st.integers(0, 20_000),
    st.integers(1, 3),
)


@settings(max_examples=50)
@given(st.sets(row_indexes, max_size=50), st.lists(row_ranges, max_size=3), st.booleans())
def test_round_trips(scattered, ranges, run_optimize):
    rows = sorted(scattered.union(*ranges))
    assert rows_of(decode_chunks(encode(rows))) == rows
    assert rows_of(decode_chunks(portable(rows, run_optimize=run_optimize))) == rows
    assert list(BitMap64.deserialize(encode(rows)[4:])) == rows


def test_empty_buckets_as_delta_spark_writes_them():
    empty = BitMap().serialize()
    bucket = BitMap([5]).serialize()
    data = MAGIC + struct.pack("<QI", 2, 0) + empty + struct.pack("<I", 1) + bucket
    assert rows_of(decode_chunks(data)) == [2**32 + 5]


def test_rows_are_a_set():
    assert encode([5, 3, 5, 3]) == encode([3, 5])


def test_every_way_of_holding_bytes():
    data = encode(ROWS)
    for form in (bytes, bytearray, memoryview):
        assert rows_of(decode_chunks(form(data))) == ROWS


def bucket(cookie, rest=b"", key=0):
    return MAGIC + struct.pack("<QII", 1, key, cookie) + rest


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"abc",
        struct.pack("<IQ", 1681511378, 0),
        struct.pack(">IQ", 1681511377, 0),
        MAGIC,
        MAGIC + struct.pack("<Q", 1),
        MAGIC + struct.pack("<Q", 2**63),
        bucket(12345),
        bucket(12346, struct.pack("<I", 2**32 - 1)),
        bucket(12346, struct.pack("<I", 1), key=2**31),
        bucket(12346, struct.pack("<IHHI", 1, 0, 3, 16) + b"\0\0"),
        bucket(12347, b"\x01" + struct.pack("<HH", 0, 9) + struct.pack("<HHH", 1, 65530, 10)),
        bucket(12346, struct.pack("<IHHHHIIHH", 2, 0, 0, 0, 0, 24, 26, 1, 2)),
    ],
)
def test_damaged_bytes(data):
    with raises("DELTA_DELETION_VECTOR_INVALID_FORMAT") as caught:
        decode_chunks(data, name="u123")
    assert caught.value.deletion_vector == "u123"


@pytest.mark.parametrize("name", ["runs", "bitmap", "mixed", "five chunks without runs"])
def test_bytes_that_were_cut_off(name):
    data = encode(SETS[name])
    for length in (1, 4, 11, 12, 16, 20, len(data) // 2, len(data) - 1):
        with raises("DELTA_DELETION_VECTOR_INVALID_FORMAT"):
            decode_chunks(data[:length])


@given(st.binary(max_size=80))
def test_random_bytes_never_fail_otherwise(tail):
    conditions = []
    try:
        decode_chunks(MAGIC + struct.pack("<QI", 1, 0) + tail)
    except DeletionVectorError as error:
        conditions.append(error.getCondition())
    assert set(conditions) <= {"DELTA_DELETION_VECTOR_INVALID_FORMAT"}


def stored(*vectors):
    content, offsets = b"\x01", []
    for data in vectors:
        offsets.append(len(content))
        content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    return content, offsets


def test_several_vectors_in_one_file():
    sets = [ROWS, [], SETS["runs"], SETS["buckets"]]
    vectors = [encode(rows) for rows in sets]
    content, offsets = stored(*vectors)
    for rows, data, offset in zip(sets, vectors, offsets, strict=True):
        assert read_stored(content, offset, len(data)) == data
        vector = descriptor(RELATIVE, offset=offset, sizeInBytes=len(data), cardinality=len(rows))
        for form in (bytes, bytearray, memoryview):
            assert rows_of(decode(vector, form(content))) == rows


def test_no_offset_is_the_first_vector():
    data = encode(ROWS)
    assert read_stored(stored(data)[0], None, len(data)) == data


def test_checksum():
    data = encode(ROWS)
    content = bytearray(stored(data)[0])
    content[-6] ^= 1
    with raises("DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"):
        read_stored(bytes(content), 1, len(data))


@pytest.mark.parametrize(
    ("offset", "change"), [(1, 1), (1, -1), (2, 0), (-4, 0), (10**6, 0), (1, 10**6)]
)
def test_size(offset, change):
    data = encode(ROWS)
    with raises("DELTA_DELETION_VECTOR_SIZE_MISMATCH"):
        read_stored(stored(data)[0] + bytes(20), offset, len(data) + change)


@pytest.mark.parametrize("content", [b"", b"\x02" + bytes(100), b"\x00" + bytes(100)])
def test_format_version(content):
    with raises("DELTA_DELETION_VECTOR_INVALID_FORMAT"):
        read_stored(content, 1, 40)


def test_cut_off_file():
    data = encode(ROWS)
    content, _ = stored(data)
    for length in (1, 4, 10, len(content) - 1):
        with raises("DELTA_DELETION_VECTOR_SIZE_MISMATCH"):
            read_stored(content[:length], 1, len(data))


@pytest.mark.parametrize("wrong", [0, 5, 7])
def test_cardinality_is_verified(wrong):
    with raises("DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH") as caught:
        decode(descriptor(INLINE, cardinality=wrong))
    assert caught.value.deletion_vector == "i" + INLINE["pathOrInlineDv"]


def test_inline_size_is_verified():
    with raises("DELTA_DELETION_VECTOR_SIZE_MISMATCH"):
        decode(descriptor(INLINE, sizeInBytes=41))
    with raises("DELTA_DELETION_VECTOR_INVALID_FORMAT"):
        decode(descriptor(INLINE, sizeInBytes=30))


def test_inline_padding_is_dropped():
    data = encode(SETS["ends of chunks"]) + b""
    vector = descriptor(
        INLINE, pathOrInlineDv=z85_encode(data), sizeInBytes=len(data), cardinality=4
    )
    assert rows_of(decode(vector)) == SETS["ends of chunks"]


def test_an_empty_vector():
    data = encode([])
    vector = descriptor(
        INLINE, pathOrInlineDv=z85_encode(data), sizeInBytes=len(data), cardinality=0
    )
    assert decode(vector) == {}


def test_a_stored_vector_needs_its_file():
    with raises("DELTA_DELETION_VECTOR_SIZE_MISMATCH"):
        decode(descriptor(RELATIVE))


def drawn_rows(scattered, ranges):
    return sorted(scattered.union(*ranges))


bitmaps = st.builds(drawn_rows, st.sets(row_indexes, max_size=20), st.lists(row_ranges, max_size=2))


@settings(max_examples=50)
@given(bitmaps, bitmaps, bitmaps)
def test_set_operations(first, second, shared):
    """Against pyroaring's."""
    first, second = [*first, *shared], [*second, *shared]
    a, b = chunks_of_rows(np.array(first, np.int64)), decode_chunks(encode(second))
    expected = BitMap64(first), BitMap64(second)
    assert rows_of(union(a, b)) == list(expected[0] | expected[1])
    assert rows_of(difference(a, b)) == list(expected[0] - expected[1])
    assert intersects(a, b) == bool(expected[0] & expected[1])
    assert last_row(union(a, b)) == max([*first, *second], default=None)
    assert last_row(difference(a, a)) is None
    for chunks in (a, b, union(a, b), difference(a, b)):
        assert encode_chunks(chunks) == portable(rows_of(chunks))


@settings(max_examples=50)
@given(bitmaps)
def test_bitmaps_of_words(rows):
    words = {}
    for row in rows:
        words[row >> 6] = words.get(row >> 6, 0) | 1 << (row & 63)
    bits = np.array([words[n] for n in sorted(words)], np.uint64).view(np.int64)
    assert rows_of(chunks_of_words(np.array(sorted(words), np.int64), bits)) == rows


def test_negative_rows_are_in_no_bitmap():
    with pytest.raises(ValueError, match="negative"):
        chunks_of_rows(np.array([3, -1]))
    with pytest.raises(ValueError, match="negative"):
        chunks_of_words(np.array([-1, 3]), np.array([1, 1]))


@pytest.mark.parametrize("sets", [[], [ROWS], [ROWS, [], [2**32 + 1]]])
def test_files_of_several_vectors(sets):
    """PROTOCOL.md#deletion-vector-file-storage-format"""
    data = [encode(rows) for rows in sets]
    content, offsets = file_content(data)
    assert (content, offsets) == vector_file(*data)
    found = [read_stored(content, at, len(d)) for at, d in zip(offsets, data, strict=True)]
    assert found == data


@pytest.mark.parametrize("document", [RELATIVE, INLINE])
def test_the_wire_form_of_descriptors(document):
    assert descriptor(document).to_dict() == document
