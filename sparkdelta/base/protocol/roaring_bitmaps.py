"""Encoding and decoding of the roaring bitmaps of deletion vectors.

A decoded bitmap is a dict of chunks. The key is the chunk number, the row index divided by 65,536;
the value is an array of 1,024 words of 64 bits, in which bit i of word w is row 64 w + i of the
chunk. The bitmap containers of a roaring bitmap have the same layout, and Spark tests rows against
it.

Functions of this module run in Spark's Python workers, which may not have this package installed.

References
----------
PROTOCOL.md#deletion-vector-format
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sparkdelta.exceptions import DeltaError

Words: TypeAlias = npt.NDArray[np.int64]
Chunks: TypeAlias = dict[int, Words]
Bytes: TypeAlias = bytes | bytearray | memoryview

_MAGIC = 1681511377
# An older format that the protocol does not describe. Its example of an inline deletion vector has
# this format, in big-endian byte order.
_NATIVE_MAGIC = 1681511376

PACKED_BITS = 7
"""The most rows of a byte in a `packed` bitmap: 7 bits are the code of an ASCII character."""

# https://github.com/RoaringBitmap/RoaringFormatSpec
_CHUNK_ROWS = 1 << 16
_CHUNK_BYTES = _CHUNK_ROWS // 8
_COOKIE_WITH_RUNS = 12347
_COOKIE_WITHOUT_RUNS = 12346
_OFFSETS_FROM = 4
_LARGEST_ARRAY = 4096

_BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1)


def decode_chunks(data: Bytes, *, name: str = "inline") -> Chunks:
    """Decode a 64-bit roaring bitmap that is preceded by Delta's magic number."""
    chunks: Chunks = {}
    try:
        (magic,) = struct.unpack_from("<I", data, 0)
        (swapped,) = struct.unpack_from(">I", data, 0)
        if magic == _MAGIC:
            _decode_portable(data, chunks)
        elif _NATIVE_MAGIC in (magic, swapped):
            _decode_native(data, "<" if magic == _NATIVE_MAGIC else ">", chunks)
        else:
            raise ValueError(f"its magic number is {magic} instead of {_MAGIC}")
    except (struct.error, ValueError) as error:
        raise DeltaError.of(
            "DELTA_DELETION_VECTOR_INVALID_FORMAT", deletion_vector=name, problem=str(error)
        ) from error
    return chunks


def _decode_portable(data: Bytes, chunks: Chunks) -> None:
    (count,) = struct.unpack_from("<Q", data, 4)
    position = 12
    for _ in range(count):
        (key,) = struct.unpack_from("<I", data, position)
        if key >> 31:
            raise ValueError(f"bucket {key:#x} has its most significant bit set")
        position = _decode_bucket(data, position + 4, key << 16, chunks)


def _decode_native(data: Bytes, byte_order: str, chunks: Chunks) -> None:
    (count,) = struct.unpack_from(f"{byte_order}I", data, 4)
    position = 8
    for key in range(count):
        (size,) = struct.unpack_from(f"{byte_order}I", data, position)
        if _decode_bucket(data, position + 4, key << 16, chunks) > position + 4 + size:
            raise ValueError(f"bucket {key} is longer than {size} bytes")
        position += 4 + size


def _decode_bucket(data: Bytes, position: int, first_chunk: int, chunks: Chunks) -> int:
    """Decode a 32-bit roaring bitmap into `chunks` and return its end offset."""
    (cookie,) = struct.unpack_from("<I", data, position)
    position += 4
    has_runs = cookie & 0xFFFF == _COOKIE_WITH_RUNS
    if has_runs:
        count = (cookie >> 16) + 1
        flags = np.frombuffer(data, np.uint8, (count + 7) // 8, position)
        is_run = np.unpackbits(flags, bitorder="little")[:count].tolist()
        position += len(flags)
    elif cookie == _COOKIE_WITHOUT_RUNS:
        (count,) = struct.unpack_from("<I", data, position)
        is_run = [0] * min(count, _CHUNK_ROWS)
        position += 4
    else:
        raise ValueError(f"a bucket begins with the unknown cookie {cookie}")
    if count > _CHUNK_ROWS:
        raise ValueError(f"a bucket has {count} containers")
    header = _uint16(data, 2 * count, position).reshape(count, 2).tolist()
    position += 4 * count
    if not has_runs or count >= _OFFSETS_FROM:
        position += 4 * count
    for (key, last), run in zip(header, is_run, strict=True):
        number = first_chunk + key
        if number in chunks:
            raise ValueError(f"chunk {number} occurs twice")
        chunks[number], position = _decode_container(data, position, last + 1, run=bool(run))
    return position


def _decode_container(data: Bytes, position: int, count: int, *, run: bool) -> tuple[Words, int]:
    if run:
        (run_count,) = struct.unpack_from("<H", data, position)
        runs = _uint16(data, 2 * run_count, position + 2).reshape(run_count, 2)
        first = runs[:, 0].astype(np.int64)
        end = first + runs[:, 1] + 1
        if np.max(end, initial=0) > _CHUNK_ROWS:
            raise ValueError("a run exceeds its container")
        steps = np.zeros(_CHUNK_ROWS + 1, np.int32)
        np.add.at(steps, first, 1)
        np.add.at(steps, end, -1)
        return _pack(np.cumsum(steps[:-1]) > 0), position + 2 + 4 * run_count
    if count > _LARGEST_ARRAY:
        words = np.frombuffer(data, "<i8", _CHUNK_BYTES // 8, position)
        return words.astype(np.int64), position + _CHUNK_BYTES
    bits = np.zeros(_CHUNK_ROWS, np.bool_)
    bits[_uint16(data, count, position)] = True
    return _pack(bits), position + 2 * count


def _uint16(data: Bytes, count: int, position: int) -> npt.NDArray[np.uint16]:
    # numpy refuses to read zero bytes at the end of a buffer.
    return np.frombuffer(data, "<u2", count, position) if count else np.zeros(0, np.uint16)


def _pack(bits: npt.NDArray[np.bool_]) -> Words:
    return np.packbits(bits, bitorder="little").view("<i8").astype(np.int64, copy=False)


def cardinality(chunks: Mapping[int, Words]) -> int:
    """Return the number of deleted rows."""
    return sum(int(_BITS_OF_BYTE[words.view(np.uint8)].sum()) for words in chunks.values())


def deleted_rows(
    chunks: Mapping[int, Words], first_row: int, num_rows: int
) -> npt.NDArray[np.bool_] | None:
    """Return a mask of the deleted rows in a range; None if no chunk of the range has any."""
    first, last = first_row // _CHUNK_ROWS, (first_row + num_rows - 1) // _CHUNK_ROWS
    numbers = range(first, last + 1)
    if not any(number in chunks for number in numbers):
        return None
    none = np.zeros(_CHUNK_BYTES // 8, np.int64)
    words = np.concatenate([chunks.get(number, none) for number in numbers]).astype("<i8")
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    start = first_row - first * _CHUNK_ROWS
    return bits[start : start + num_rows].view(np.bool_)


def packed(chunks: Mapping[int, Words], bits: int = PACKED_BITS) -> bytes:
    """Return the bitmap of the rows up to the last deleted one, with `bits` rows in each byte.

    Row index i is bit i % bits of byte i // bits.
    """
    num_rows = (last_row(chunks) or 0) + 1
    deleted = deleted_rows(chunks, 0, num_rows)
    if deleted is None:
        return b""
    rows = np.zeros(-(-num_rows // bits) * bits, np.uint8)
    rows[:num_rows] = deleted
    weights = (1 << np.arange(bits)).astype(np.uint8)
    return bytes(rows.reshape(-1, bits) @ weights)


def row_indexes(chunks: Mapping[int, Words]) -> npt.NDArray[np.int64]:
    """Return the row indexes, sorted."""
    parts = [_rows(chunks[number]) + number * _CHUNK_ROWS for number in sorted(chunks)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def last_row(chunks: Mapping[int, Words]) -> int | None:
    """Return the highest row index; None if the bitmap is empty."""
    for number in sorted(chunks, reverse=True):
        rows = _rows(chunks[number])
        if rows.size:
            return number * _CHUNK_ROWS + int(rows[-1])
    return None


def chunks_of_rows(rows: npt.NDArray[np.int64]) -> Chunks:
    """Return the bitmap of row indexes, in any order and with repetitions."""
    rows = np.sort(rows)
    if rows.size and rows[0] < 0:
        raise ValueError("a row index is negative")
    chunks: Chunks = {}
    for number, low in _split(rows, 16):
        bits = np.zeros(_CHUNK_ROWS, np.bool_)
        bits[low] = True
        chunks[number] = _pack(bits)
    return chunks


def chunks_of_words(numbers: npt.NDArray[np.int64], words: npt.NDArray[np.int64]) -> Chunks:
    """Return the bitmap of words of 64 rows; row index i has bit i % 64 of word i // 64.

    The word numbers may have any order, but must be distinct.
    """
    order = np.argsort(numbers)
    numbers, words = numbers[order], words[order]
    if numbers.size and numbers[0] < 0:
        raise ValueError("a row index is negative")
    chunks: Chunks = {}
    start = 0
    for number, low in _split(numbers, 10):
        chunk = np.zeros(_CHUNK_ROWS // 64, np.int64)
        chunk[low] = words[start : start + len(low)]
        chunks[number] = chunk
        start += len(low)
    return chunks


def union(first: Mapping[int, Words], second: Mapping[int, Words]) -> Chunks:
    """Return the bitmap of the rows that are in either of two bitmaps."""
    united = dict(first)
    for number, words in second.items():
        united[number] = united[number] | words if number in united else words
    return united


def difference(first: Mapping[int, Words], second: Mapping[int, Words]) -> Chunks:
    """Return the bitmap of the rows that are in the first bitmap but not in the second."""
    return {
        number: words & ~second[number] if number in second else words
        for number, words in first.items()
    }


def intersects(first: Mapping[int, Words], second: Mapping[int, Words]) -> bool:
    """Return True if two bitmaps have a row in common."""
    return any(np.any(words & second[n]) for n, words in first.items() if n in second)


def encode_chunks(chunks: Mapping[int, Words]) -> bytes:
    """Serialize a bitmap, using the smallest kind of each container."""
    containers = [(number, _rows(chunks[number])) for number in sorted(chunks)]
    return _encode_containers([(number, rows) for number, rows in containers if rows.size])


def _rows(words: Words) -> npt.NDArray[np.int64]:
    """Return the row indexes within a chunk."""
    return np.flatnonzero(np.unpackbits(words.astype("<i8").view(np.uint8), bitorder="little"))


def _encode_containers(containers: Iterable[tuple[int, npt.NDArray[np.int64]]]) -> bytes:
    """Serialize the sorted rows of chunks, in the order of their numbers."""
    buckets = [(key, list(group)) for key, group in groupby(containers, lambda c: c[0] >> 16)]
    parts = [struct.pack("<IQ", _MAGIC, len(buckets))]
    for key, bucket in buckets:
        parts += [struct.pack("<I", key), _encode_bucket(bucket)]
    return b"".join(parts)


def _split(values: npt.NDArray[np.int64], bits: int) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """Group sorted values by their higher bits; the groups contain the lower bits."""
    if not values.size:
        return []
    keys = values >> bits
    starts = np.flatnonzero(np.diff(keys)) + 1
    groups = np.split(values & ((1 << bits) - 1), starts)
    return list(zip(keys[[0, *starts]].tolist(), groups, strict=True))


def _encode_bucket(chunks: Iterable[tuple[int, npt.NDArray[np.int64]]]) -> bytes:
    header, containers, run_flags = [], [], []
    for number, rows in chunks:
        body, is_run = _encode_container(rows)
        header.append(struct.pack("<HH", number & 0xFFFF, len(rows) - 1))
        containers.append(body)
        run_flags.append(is_run)
    count = len(containers)
    if any(run_flags):
        flags = np.packbits(run_flags, bitorder="little").tobytes()
        start = struct.pack("<HH", _COOKIE_WITH_RUNS, count - 1) + flags
    else:
        start = struct.pack("<II", _COOKIE_WITHOUT_RUNS, count)
    parts = [start, *header]
    if not any(run_flags) or count >= _OFFSETS_FROM:
        sizes = [len(body) for body in containers]
        first = len(start) + 8 * count
        offsets = first + np.concatenate(([0], np.cumsum(sizes[:-1])))
        parts.append(offsets.astype("<u4").tobytes())
    return b"".join([*parts, *containers])


def _encode_container(rows: npt.NDArray[np.int64]) -> tuple[bytes, bool]:
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    first = rows[np.concatenate(([0], breaks))]
    last = rows[np.concatenate((breaks - 1, [len(rows) - 1]))]
    if 2 + 4 * len(first) < min(2 * len(rows), _CHUNK_BYTES):
        runs = np.stack((first, last - first), axis=1).astype("<u2")
        return struct.pack("<H", len(first)) + runs.tobytes(), True
    if len(rows) <= _LARGEST_ARRAY:
        return rows.astype("<u2").tobytes(), False
    bits = np.zeros(_CHUNK_ROWS, np.bool_)
    bits[rows] = True
    return np.packbits(bits, bitorder="little").tobytes(), False
