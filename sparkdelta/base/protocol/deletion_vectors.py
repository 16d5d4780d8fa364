"""Deletion vectors: descriptors, and the encoding of files and inline vectors.

Functions of this module run in Spark's Python workers, which may not have this package installed.

References
----------
PROTOCOL.md#deletion-vectors, PROTOCOL.md#deletion-vector-format,
PROTOCOL.md#deletion-vector-descriptor-schema, PROTOCOL.md#deletion-vector-file-storage-format,
PROTOCOL.md#derived-fields
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from sparkdelta.base.protocol.file_paths import resolve
from sparkdelta.base.protocol.roaring_bitmaps import Bytes, Chunks, cardinality, decode_chunks
from sparkdelta.base.protocol.wire_values import WireForm
from sparkdelta.exceptions import DeltaError

_FILE_VERSION = 1
ENCODED_UUID_LENGTH = 20

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
"""The digits of Base85 (Z85), in their order."""

_Z85 = Z85.encode("ascii")
_Z85_DIGITS = np.full(256, 255, np.uint64)
_Z85_DIGITS[np.frombuffer(_Z85, np.uint8)] = np.arange(85)
_Z85_PLACES = 85 ** np.arange(4, -1, -1, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class DeletionVectorDescriptor(WireForm):
    """The location of a deletion vector, its size in bytes, and the number of rows it deletes."""

    storage_type: str
    path_or_inline_dv: str
    offset: int | None
    size_in_bytes: int
    cardinality: int

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> DeletionVectorDescriptor:
        """Parse the wire form."""
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
        """The identifier that distinguishes the deletion vectors of one data file."""
        name = f"{self.storage_type}{self.path_or_inline_dv}"
        return name if self.offset is None else f"{name}@{self.offset}"

    @property
    def prefix(self) -> str:
        """The directory of the file, if it is relative to the table's root; else empty."""
        return self.path_or_inline_dv[:-ENCODED_UUID_LENGTH] if self.storage_type == "u" else ""

    @property
    def is_inline(self) -> bool:
        """True if the descriptor itself contains the deletion vector."""
        return self.storage_type == "i"

    def absolute_path(self, table_root: str) -> str | None:
        """Return the decoded absolute path of the file, or None for an inline deletion vector."""
        if self.is_inline:
            return None
        if self.storage_type == "p":
            return resolve(table_root, self.path_or_inline_dv)
        if self.storage_type == "u":
            return f"{table_root.rstrip('/')}/{dv_file_name(self.path_or_inline_dv)}"
        raise DeltaError.of(
            "DELTA_DELETION_VECTOR_INVALID_FORMAT",
            deletion_vector=self.unique_id,
            problem=f"storage type {self.storage_type!r} is unknown",
        )


def decode(
    descriptor: DeletionVectorDescriptor,
    content: Bytes | None = None,
    *,
    offset: int | None = None,
) -> Chunks:
    """Decode a deletion vector and verify it against its descriptor.

    Parameters
    ----------
    content
        The content of the deletion vector file; None for an inline deletion vector.
    offset
        The offset within `content`, if it differs from the descriptor's: `content` may consist of
        the file's first byte and this deletion vector only.
    """
    name, size = descriptor.unique_id, descriptor.size_in_bytes
    if descriptor.is_inline:
        data = z85_decode(descriptor.path_or_inline_dv)
        if len(data) < size:
            raise DeltaError.of(
                "DELTA_DELETION_VECTOR_SIZE_MISMATCH",
                deletion_vector=name,
                problem=f"{len(data)} bytes instead of {size}",
            )
        data = data[:size]
    elif content is None:
        raise DeltaError.of(
            "DELTA_DELETION_VECTOR_SIZE_MISMATCH",
            deletion_vector=name,
            problem="the content of its file is missing",
        )
    else:
        place = descriptor.offset if offset is None else offset
        data = read_stored(content, place, size, name=name)
    chunks = decode_chunks(data, name=name)
    found = cardinality(chunks)
    if found != descriptor.cardinality:
        raise DeltaError.of(
            "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH",
            deletion_vector=name,
            problem=f"it deletes {found} rows instead of {descriptor.cardinality}",
        )
    return chunks


def read_stored(
    content: Bytes, offset: int | None, size_in_bytes: int, *, name: str = "in a file"
) -> bytes:
    """Return the serialized bitmap at an offset of a file, verifying its checksum."""
    view = memoryview(content)
    if not view or view[0] != _FILE_VERSION:
        version = view[0] if view else "missing"
        raise DeltaError.of(
            "DELTA_DELETION_VECTOR_INVALID_FORMAT",
            deletion_vector=name,
            problem=f"the file's format version is {version}, not 1",
        )
    # Byte 0 is the format version; without an offset, the first deletion vector is meant.
    start = (offset or 1) + 4
    end = start + size_in_bytes
    if start < 5 or size_in_bytes < 0 or end + 4 > len(view):
        raise DeltaError.of(
            "DELTA_DELETION_VECTOR_SIZE_MISMATCH",
            deletion_vector=name,
            problem=f"{size_in_bytes} bytes at offset {offset} exceed the file's {len(view)} bytes",
        )
    (stored_size,) = struct.unpack(">i", view[start - 4 : start])
    if stored_size != size_in_bytes:
        raise DeltaError.of(
            "DELTA_DELETION_VECTOR_SIZE_MISMATCH",
            deletion_vector=name,
            problem=f"{stored_size} bytes instead of {size_in_bytes}",
        )
    data = bytes(view[start:end])
    (stored_checksum,) = struct.unpack(">I", view[end : end + 4])
    if zlib.crc32(data) != stored_checksum:
        raise DeltaError.of(
            "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH",
            deletion_vector=name,
            problem=f"its CRC-32 is {zlib.crc32(data):08x} instead of {stored_checksum:08x}",
        )
    return data


def file_content(bitmaps: Iterable[bytes]) -> tuple[bytes, list[int]]:
    """Return the content of a file of serialized bitmaps, and the offset of each in it."""
    content, offsets = bytearray([_FILE_VERSION]), []
    for data in bitmaps:
        offsets.append(len(content))
        content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    return bytes(content), offsets


def dv_file_name(path_or_inline_dv: str) -> str:
    """Return the path of a deletion vector file, relative to the table's root.

    `path_or_inline_dv` is an optional directory followed by a UUID in Base85 (Z85).

    Examples
    --------
    >>> dv_file_name("ab^-aqEH.-t@S}K{vb[*k^")
    'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'
    """
    prefix = path_or_inline_dv[:-ENCODED_UUID_LENGTH]
    encoded = path_or_inline_dv[-ENCODED_UUID_LENGTH:]
    if len(encoded) != ENCODED_UUID_LENGTH:
        raise DeltaError.of(
            "DELTA_DELETION_VECTOR_INVALID_FORMAT",
            deletion_vector=path_or_inline_dv,
            problem="its UUID has fewer than 20 characters",
        )
    name = f"deletion_vector_{uuid.UUID(bytes=z85_decode(encoded))}.bin"
    return f"{prefix}/{name}" if prefix else name


def z85_encode(data: bytes) -> str:
    """Encode bytes in Base85 (Z85), padded with zeros to a multiple of four bytes."""
    padded = data + bytes(-len(data) % 4)
    numbers = np.frombuffer(padded, ">u4").astype(np.uint64)
    digits = numbers[:, None] // _Z85_PLACES % np.uint64(85)
    encoded: bytes = np.frombuffer(_Z85, np.uint8)[digits.astype(np.intp)].tobytes()
    return encoded.decode("ascii")


def z85_decode(text: str) -> bytes:
    """Decode Base85 (Z85) text to bytes, whose number is a multiple of four."""
    encoded = text.encode("utf-8")
    digits = _Z85_DIGITS[np.frombuffer(encoded, np.uint8)]
    if len(encoded) % 5 or np.max(digits, initial=0) > 84:
        raise DeltaError.of(
            "DELTA_DELETION_VECTOR_INVALID_FORMAT",
            deletion_vector=text,
            problem="it is not Base85 (Z85)",
        )
    numbers = digits.reshape(-1, 5) @ _Z85_PLACES
    if np.max(numbers, initial=0) >> np.uint64(32):
        raise DeltaError.of(
            "DELTA_DELETION_VECTOR_INVALID_FORMAT",
            deletion_vector=text,
            problem="it is not Base85 (Z85)",
        )
    return numbers.astype(">u4").tobytes()
