"""Deletion vectors: where one is, and what its bytes say.

A decoded deletion vector is a dictionary from chunk number (row index divided by 65,536) to 1,024
words of 64 bits, in which bit i of word w stands for row 64 w + i of the chunk: the shape in which
Spark tests rows against it, and the shape of a roaring bitmap's own containers.

Functions of this module run on Spark's workers, which need not have this package.

References
----------
PROTOCOL.md#deletion-vectors, PROTOCOL.md#deletion-vector-format
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sparkdelta.exceptions import (
    DeletionVectorCardinalityError,
    DeletionVectorChecksumError,
    DeletionVectorFormatError,
    DeletionVectorSizeError,
)
from sparkdelta.protocol.file_paths import resolve

Words: TypeAlias = npt.NDArray[np.int64]
Chunks: TypeAlias = dict[int, Words]
Bytes: TypeAlias = bytes | bytearray | memoryview

_MAGIC = 1681511377
_FILE_VERSION = 1
_ENCODED_UUID_LENGTH = 20
_CHUNK_ROWS = 1 << 16
_CHUNK_BYTES = _CHUNK_ROWS // 8

# https://github.com/RoaringBitmap/RoaringFormatSpec
_COOKIE_WITH_RUNS = 12347
_COOKIE_WITHOUT_RUNS = 12346
_OFFSETS_FROM = 4
_LARGEST_ARRAY = 4096

_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_DIGITS = np.full(256, 255, np.uint64)
_Z85_DIGITS[np.frombuffer(_Z85, np.uint8)] = np.arange(85)
_Z85_PLACES = 85 ** np.arange(4, -1, -1, dtype=np.uint64)
_BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1)


@dataclass(frozen=True, slots=True)
class DeletionVectorDescriptor:
    """Where a deletion vector is, how long it is, and how many rows it deletes.

    References
    ----------
    PROTOCOL.md#deletion-vector-descriptor-schema
    """

    storage_type: str
    path_or_inline_dv: str
    offset: int | None
    size_in_bytes: int
    cardinality: int

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> DeletionVectorDescriptor:
        """From the wire form."""
        offset = document.get("offset")
        return cls(
            storage_type=str(document["storageType"]),
            path_or_inline_dv=str(document["pathOrInlineDv"]),
            offset=None if offset is None else int(str(offset)),
            size_in_bytes=int(str(document["sizeInBytes"])),
            cardinality=int(str(document["cardinality"])),
        )

    @property
    def unique_id(self) -> str:
        """What tells the deletion vectors of one data file apart.

        References
        ----------
        PROTOCOL.md#derived-fields
        """
        name = f"{self.storage_type}{self.path_or_inline_dv}"
        return name if self.offset is None else f"{name}@{self.offset}"

    @property
    def is_inline(self) -> bool:
        """Whether the log itself holds the bytes."""
        return self.storage_type == "i"

    def absolute_path(self, table_root: str) -> str | None:
        """Where the file is, decoded; None for an inline deletion vector.

        References
        ----------
        PROTOCOL.md#derived-fields
        """
        if self.is_inline:
            return None
        if self.storage_type == "p":
            return resolve(table_root, self.path_or_inline_dv)
        if self.storage_type == "u":
            return f"{table_root.rstrip('/')}/{dv_file_name(self.path_or_inline_dv)}"
        raise DeletionVectorFormatError(
            deletion_vector=self.unique_id, problem=f"storage type {self.storage_type!r} is unknown"
        )


def decode(descriptor: DeletionVectorDescriptor, content: Bytes | None = None) -> Chunks:
    """The chunks of a deletion vector, verified against its descriptor.

    Parameters
    ----------
    content
        All bytes of the deletion vector's file; None for an inline one.

    Raises
    ------
    DeletionVectorFormatError, DeletionVectorSizeError, DeletionVectorChecksumError
        If the bytes are damaged.
    DeletionVectorCardinalityError
        If they delete another number of rows than the descriptor says.

    References
    ----------
    PROTOCOL.md#deletion-vector-format
    """
    name, size = descriptor.unique_id, descriptor.size_in_bytes
    if descriptor.is_inline:
        data = z85_decode(descriptor.path_or_inline_dv)
        if len(data) < size:
            raise DeletionVectorSizeError(
                deletion_vector=name, problem=f"{len(data)} bytes instead of {size}"
            )
        data = data[:size]
    elif content is None:
        raise DeletionVectorSizeError(deletion_vector=name, problem="there is no file content")
    else:
        data = read_stored(content, descriptor.offset, size, name=name)
    chunks = decode_chunks(data, name=name)
    found = cardinality(chunks)
    if found != descriptor.cardinality:
        raise DeletionVectorCardinalityError(
            deletion_vector=name,
            problem=f"it deletes {found} rows instead of {descriptor.cardinality}",
        )
    return chunks


def read_stored(
    content: Bytes, offset: int | None, size_in_bytes: int, *, name: str = "in a file"
) -> bytes:
    """The serialized bitmap at an offset of a deletion vector file, its checksum verified.

    References
    ----------
    PROTOCOL.md#deletion-vector-file-storage-format
    """
    view = memoryview(content)
    if not view or view[0] != _FILE_VERSION:
        version = view[0] if view else "missing"
        raise DeletionVectorFormatError(
            deletion_vector=name, problem=f"the file's format version is {version}, not 1"
        )
    # The file begins with its version, so that no offset at all means the first vector in it.
    start = (offset or 1) + 4
    end = start + size_in_bytes
    if start < 5 or size_in_bytes < 0 or end + 4 > len(view):
        raise DeletionVectorSizeError(
            deletion_vector=name,
            problem=f"{size_in_bytes} bytes at {offset} go beyond a file of {len(view)} bytes",
        )
    (stored_size,) = struct.unpack(">i", view[start - 4 : start])
    if stored_size != size_in_bytes:
        raise DeletionVectorSizeError(
            deletion_vector=name, problem=f"{stored_size} bytes instead of {size_in_bytes}"
        )
    data = bytes(view[start:end])
    (stored_checksum,) = struct.unpack(">I", view[end : end + 4])
    if zlib.crc32(data) != stored_checksum:
        raise DeletionVectorChecksumError(
            deletion_vector=name,
            problem=f"its CRC-32 is {zlib.crc32(data):08x} instead of {stored_checksum:08x}",
        )
    return data


def decode_chunks(data: Bytes, *, name: str = "inline") -> Chunks:
    """The chunks of a serialized 64-bit roaring bitmap with Delta's magic number before it.

    References
    ----------
    PROTOCOL.md#deletion-vector-format
    """
    chunks: Chunks = {}
    try:
        (magic,) = struct.unpack_from("<I", data, 0)
        if magic != _MAGIC:
            raise ValueError(f"its magic number is {magic} instead of {_MAGIC}")
        (count,) = struct.unpack_from("<Q", data, 4)
        position = 12
        for _ in range(count):
            (key,) = struct.unpack_from("<I", data, position)
            if key >> 31:
                raise ValueError(f"bucket {key:#x} has its most significant bit set")
            position = _decode_bucket(data, position + 4, key << 16, chunks)
    except (struct.error, ValueError) as error:
        raise DeletionVectorFormatError(deletion_vector=name, problem=str(error)) from error
    return chunks


def _decode_bucket(data: Bytes, position: int, first_chunk: int, chunks: Chunks) -> int:
    """Decode a 32-bit roaring bitmap and return where it ends."""
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
        if end.max(initial=0) > _CHUNK_ROWS:
            raise ValueError("a run goes beyond its container")
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
    # numpy takes an empty range at the very end for an error.
    return np.frombuffer(data, "<u2", count, position) if count else np.zeros(0, np.uint16)


def _pack(bits: npt.NDArray[np.bool_]) -> Words:
    return np.packbits(bits, bitorder="little").view("<i8").astype(np.int64, copy=False)


def cardinality(chunks: Mapping[int, Words]) -> int:
    """How many rows are deleted."""
    return sum(int(_BITS_OF_BYTE[words.view(np.uint8)].sum()) for words in chunks.values())


def encode(positions: Iterable[int] | npt.NDArray[np.int64]) -> bytes:
    """The serialized bitmap of row indexes; each container takes the form that is smallest.

    References
    ----------
    PROTOCOL.md#deletion-vector-format
    """
    rows = positions if isinstance(positions, np.ndarray) else np.array([*positions], np.int64)
    rows = np.unique(rows.astype(np.int64))
    if rows.size and rows[0] < 0:
        raise ValueError("a row index is negative")
    buckets = _split(rows, 32)
    parts = [struct.pack("<IQ", _MAGIC, len(buckets))]
    for key, bucket in buckets:
        parts += [struct.pack("<I", key), _encode_bucket(bucket)]
    return b"".join(parts)


def _split(values: npt.NDArray[np.int64], bits: int) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """Sorted values by what is above their lower bits, and these."""
    keys, starts = np.unique(values >> bits, return_index=True)
    groups = np.split(values & ((1 << bits) - 1), starts[1:])
    return list(zip(keys.tolist(), groups, strict=False))


def _encode_bucket(values: npt.NDArray[np.int64]) -> bytes:
    header, containers, run_flags = [], [], []
    for key, rows in _split(values, 16):
        body, is_run = _encode_container(rows)
        header.append(struct.pack("<HH", key, len(rows) - 1))
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


def dv_file_name(path_or_inline_dv: str) -> str:
    """The name, below the table's root, of a deletion vector file that is known by its UUID.

    Examples
    --------
    >>> dv_file_name("ab^-aqEH.-t@S}K{vb[*k^")
    'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'

    References
    ----------
    PROTOCOL.md#derived-fields
    """
    prefix = path_or_inline_dv[:-_ENCODED_UUID_LENGTH]
    encoded = path_or_inline_dv[-_ENCODED_UUID_LENGTH:]
    if len(encoded) != _ENCODED_UUID_LENGTH:
        raise DeletionVectorFormatError(
            deletion_vector=path_or_inline_dv, problem="its UUID has less than 20 characters"
        )
    name = f"deletion_vector_{uuid.UUID(bytes=z85_decode(encoded))}.bin"
    return f"{prefix}/{name}" if prefix else name


def z85_encode(data: bytes) -> str:
    """The Base85 text of bytes, filled up with zeros to a multiple of four.

    References
    ----------
    PROTOCOL.md#deletion-vector-descriptor-schema
    """
    padded = data + bytes(-len(data) % 4)
    numbers = np.frombuffer(padded, ">u4").astype(np.uint64)
    digits = numbers[:, None] // _Z85_PLACES % np.uint64(85)
    encoded: bytes = np.frombuffer(_Z85, np.uint8)[digits.astype(np.intp)].tobytes()
    return encoded.decode("ascii")


def z85_decode(text: str) -> bytes:
    """The bytes of a Base85 text, a multiple of four of them.

    References
    ----------
    PROTOCOL.md#deletion-vector-descriptor-schema
    """
    encoded = text.encode("utf-8")
    digits = _Z85_DIGITS[np.frombuffer(encoded, np.uint8)]
    if len(encoded) % 5 or digits.max(initial=0) > 84:
        raise DeletionVectorFormatError(deletion_vector=text, problem="it is not Base85 (Z85)")
    numbers = digits.reshape(-1, 5) @ _Z85_PLACES
    if numbers.max(initial=0) >> np.uint64(32):
        raise DeletionVectorFormatError(deletion_vector=text, problem="it is not Base85 (Z85)")
    return numbers.astype(">u4").tobytes()
