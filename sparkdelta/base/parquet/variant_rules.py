"""Encoding of variant values in binary, as required to reassemble shredded variants.

Functions of this module run in Spark's Python workers, which may not have this package installed.

References
----------
PROTOCOL.md#shredded-variant-data-in-parquet
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

# https://github.com/apache/parquet-format/blob/master/VariantEncoding.md
_SHORT_TEXT, _OBJECT = 1, 2
_TRUE, _FALSE = b"\x04", b"\x08"
_INTEGERS = ((3, "<b", 1), (4, "<h", 2), (5, "<i", 4), (6, "<q", 8))
_DECIMALS = ((8, 9, 4), (9, 18, 8), (10, 38, 16))
_BINARY, _TEXT = 15, 16
_NUMBERS = {
    "double": (7, "<d"),
    "date": (11, "<i"),
    "timestamp": (12, "<q"),
    "timestamp_ntz": (13, "<q"),
    "float": (14, "<f"),
}
_LONGEST_SHORT_TEXT = 63
_LARGEST_SMALL_COUNT = 255


class MalformedVariantError(ValueError):
    """The error for invalid variants, or shredded parts that cannot be combined."""


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The dictionary of field names in the metadata of a variant."""

    names: Sequence[bytes]
    ids: Mapping[bytes, int]

    @classmethod
    def parse(cls, metadata: bytes) -> Dictionary:
        """Parse the binary metadata."""
        if not metadata or metadata[0] & 0x0F != 1:
            raise MalformedVariantError("its metadata does not have version 1")
        width = (metadata[0] >> 6) + 1
        size = _number(metadata, 1, width)
        first = 1 + width * (size + 2)
        ends = [first + _number(metadata, 1 + width * (n + 1), width) for n in range(size + 1)]
        names = [metadata[start:end] for start, end in pairwise(ends)]
        return cls(names, {name: number for number, name in enumerate(names)})


def object_fields(value: bytes, dictionary: Dictionary) -> dict[bytes, bytes]:
    """Return the fields of an object by name, each an encoded value."""
    if not value or value[0] & 3 != _OBJECT:
        raise MalformedVariantError("a part of it should be an object but is not")
    header = value[0] >> 2
    offset_width, id_width = (header & 3) + 1, (header >> 2 & 3) + 1
    count_width = 4 if header >> 4 & 1 else 1
    count = _number(value, 1, count_width)
    ids_at = 1 + count_width
    offsets_at = ids_at + id_width * count
    values_at = offsets_at + offset_width * (count + 1)
    starts = [_number(value, offsets_at + offset_width * n, offset_width) for n in range(count + 1)]
    # The order of the values can differ from that of the fields.
    ends = dict(pairwise(sorted(starts)))
    fields = {}
    for number in range(count):
        name = dictionary.names[_number(value, ids_at + id_width * number, id_width)]
        start = starts[number]
        fields[name] = value[values_at + start : values_at + ends[start]]
    return fields


def make_object(fields: Mapping[bytes, bytes], dictionary: Dictionary) -> bytes:
    """Encode an object, given its fields by name as encoded values."""
    names = sorted(fields)
    unknown = [name for name in names if name not in dictionary.ids]
    if unknown:
        raise MalformedVariantError(f"its metadata does not name field {unknown[0]!r}")
    ids = [dictionary.ids[name] for name in names]
    id_width = _width(max(ids, default=0))
    offsets, offset_width = _offsets([fields[name] for name in names])
    is_large = len(names) > _LARGEST_SMALL_COUNT
    header = is_large << 6 | (id_width - 1) << 4 | (offset_width - 1) << 2 | _OBJECT
    parts = [bytes([header]), len(names).to_bytes(4 if is_large else 1, "little")]
    parts += [number.to_bytes(id_width, "little") for number in ids]
    return b"".join([*parts, offsets, *(fields[name] for name in names)])


def make_array(elements: Sequence[bytes]) -> bytes:
    """Encode an array of encoded values."""
    offsets, offset_width = _offsets(elements)
    is_large = len(elements) > _LARGEST_SMALL_COUNT
    header = is_large << 4 | (offset_width - 1) << 2 | 3
    count = len(elements).to_bytes(4 if is_large else 1, "little")
    return b"".join([bytes([header]), count, offsets, *elements])


def _offsets(values: Sequence[bytes]) -> tuple[bytes, int]:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    width = _width(offsets[-1])
    return b"".join(offset.to_bytes(width, "little") for offset in offsets), width


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _number(data: bytes, position: int, width: int) -> int:
    if position + width > len(data):
        raise MalformedVariantError("it ends too early")
    return int.from_bytes(data[position : position + width], "little")


def make_boolean(value: bool) -> bytes:  # noqa: FBT001 - the value itself
    """Encode a boolean."""
    return _TRUE if value else _FALSE


def make_integer(value: int) -> bytes:
    """Encode an integer in the smallest type that can hold it."""
    for type_id, form, width in _INTEGERS:
        if -(1 << 8 * width - 1) <= value < 1 << 8 * width - 1:
            return _primitive(type_id, struct.pack(form, value))
    raise MalformedVariantError("an integer has more than 64 bits")


def make_number(data_type: str, value: float) -> bytes:
    """Encode a FLOAT, a DOUBLE, a date in days or a timestamp in microseconds since 1970."""
    type_id, form = _NUMBERS[data_type]
    return _primitive(type_id, struct.pack(form, value))


def make_decimal(value: Decimal) -> bytes:
    """Encode a decimal with its scale."""
    sign, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    for type_id, precision, width in _DECIMALS:
        if max(len(digits), scale) <= precision:
            number = unscaled.to_bytes(width, "little", signed=True)
            return _primitive(type_id, bytes([scale]) + number)
    raise MalformedVariantError("a decimal has more than 38 digits")


def make_binary(value: bytes) -> bytes:
    """Encode a binary value."""
    return _primitive(_BINARY, struct.pack("<I", len(value)) + value)


def make_text(value: bytes) -> bytes:
    """Encode a string, given in UTF-8."""
    if len(value) <= _LONGEST_SHORT_TEXT:
        return bytes([len(value) << 2 | _SHORT_TEXT]) + value
    return _primitive(_TEXT, struct.pack("<I", len(value)) + value)


def _primitive(type_id: int, data: bytes) -> bytes:
    return bytes([type_id << 2]) + data
