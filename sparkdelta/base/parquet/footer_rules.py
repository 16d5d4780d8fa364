"""Setting field ids in the footer of a Parquet file, which is in Thrift's compact protocol.

The footer contains the file's schema as a list of elements in depth-first order. All other bytes
are copied unchanged.

References
----------
PROTOCOL.md#writer-requirements-for-icebergcompatv2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAGIC = b"PAR1"
TAIL_BYTES = 8
"""Number of bytes after the footer: its length in 4 bytes, and `MAGIC`."""

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_SCHEMA = 2
_NAME, _NUM_CHILDREN, _FIELD_ID = 4, 5, 9


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a Thrift struct; its value is in the bytes from start to end."""

    number: int
    kind: int
    start: int
    end: int


def with_field_ids(footer: bytes, ids: Mapping[tuple[str, ...], int]) -> bytes:
    """Return the footer with field ids set, by path of names below the root.

    Other fields keep their ids; a path that the schema lacks is a ValueError.
    """
    schema = next((field for field in _fields(footer, 0) if field.number == _SCHEMA), None)
    if schema is None or schema.kind != _LIST:
        raise ValueError("a Parquet footer without a schema")
    kind, count, at = _list_header(footer, schema.start)
    if kind != _STRUCT:
        raise ValueError("a Parquet schema that is no list of structs")
    start, missing = at, set(ids)
    open_groups: list[tuple[str, int]] = []  # names, and numbers of remaining children
    elements = []
    for _ in range(count):
        fields = list(_fields(footer, at))
        end = fields[-1].end + 1 if fields else at + 1
        name, children = _name_and_children(footer, fields)
        path = (*(group for group, _ in open_groups), name)[1:]  # without the root
        if path in missing:
            missing.discard(path)
            elements.append(_element_with_id(footer, fields, ids[path]))
        else:
            elements.append(footer[at:end])
        open_groups = _next_open_groups(open_groups, name, children)
        at = end
    if missing:
        raise ValueError(f"a Parquet file without {sorted(missing)}")
    return footer[:start] + b"".join(elements) + footer[at:]


def footer_bytes(tail: bytes) -> int:
    """Return the length of a footer in bytes, given the end of the file."""
    if len(tail) < TAIL_BYTES or tail[-4:] != MAGIC:
        raise ValueError("not a Parquet file, or an encrypted one")
    return int.from_bytes(tail[-8:-4], "little")


def _next_open_groups(
    open_groups: list[tuple[str, int]], name: str, children: int
) -> list[tuple[str, int]]:
    """Return the groups that contain the next element, with their numbers of remaining children."""
    groups = [*open_groups]
    if groups:
        groups[-1] = (groups[-1][0], groups[-1][1] - 1)
    groups.append((name, children))
    while groups and groups[-1][1] == 0:
        groups.pop()
    return groups


def _name_and_children(data: bytes, fields: list[_Field]) -> tuple[str, int]:
    name, children = "", 0
    for field in fields:
        if field.number == _NAME:
            length, at = _varint(data, field.start)
            name = data[at : at + length].decode()
        elif field.number == _NUM_CHILDREN:
            children = _zigzag(_varint(data, field.start)[0])
    return name, children


def _element_with_id(data: bytes, fields: list[_Field], field_id: int) -> bytes:
    """Return a schema element with its field id replaced."""
    parts = [(f.number, f.kind, data[f.start : f.end]) for f in fields if f.number != _FIELD_ID]
    parts.append((_FIELD_ID, _I32, _encoded_varint(field_id << 1)))  # zigzag encoding
    written, last = b"", 0
    for number, kind, value in sorted(parts):
        written += bytes([(number - last) << 4 | kind]) + value  # deltas below 16 fit into one byte
        last = number
    return written + b"\0"


def _fields(data: bytes, at: int) -> Iterator[_Field]:
    """Yield the fields of the struct at an offset, up to its stop byte."""
    number = 0
    while data[at] != 0:
        kind, step = data[at] & 0x0F, data[at] >> 4
        at += 1
        if step:
            number += step
        else:
            number, at = _varint(data, at)
            number = _zigzag(number)
        end = at if kind in (_TRUE, _FALSE) else _value_end(data, at, kind)
        yield _Field(number, kind, at, end)
        at = end


def _value_end(data: bytes, at: int, kind: int) -> int:
    """Return the end offset of a value of a kind."""
    if kind in (_TRUE, _FALSE, _BYTE):  # booleans in collections take a byte
        return at + 1
    if kind in (_I16, _I32, _I64):
        return _varint(data, at)[1]
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind in (_LIST, _SET):
        inner, count, at = _list_header(data, at)
        for _ in range(count):
            at = _value_end(data, at, inner)
        return at
    if kind == _MAP:
        count, at = _varint(data, at)
        if count:
            kinds, at = data[at], at + 1
            for _ in range(count):
                at = _value_end(data, _value_end(data, at, kinds >> 4), kinds & 0x0F)
        return at
    if kind == _STRUCT:
        for field in _fields(data, at):
            at = field.end
        return at + 1
    raise ValueError(f"a value of kind {kind} in a Parquet footer")


def _list_header(data: bytes, at: int) -> tuple[int, int, int]:
    kind, count = data[at] & 0x0F, data[at] >> 4
    return (kind, count, at + 1) if count < 15 else (kind, *_varint(data, at + 1))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7


def _encoded_varint(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _zigzag(value: int) -> int:
    return value >> 1 ^ -(value & 1)
