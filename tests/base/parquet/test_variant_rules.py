"""The binary form of variants, against bytes that Spark wrote for the same JSON."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import pytest

from sparkdelta.base.parquet.variant_rules import (
    Dictionary,
    MalformedVariantError,
    make_array,
    make_binary,
    make_boolean,
    make_decimal,
    make_integer,
    make_number,
    make_object,
    make_text,
    object_fields,
)

METADATA = b"\x01\x03\x00\x01\x02\x03abc"
# {"a": 1, "b": [1, "two", null, {"c": 3.5}]}
VALUE = (
    b"\x02\x02\x00\x01\x00\x02\x1b\x0c\x01\x03\x04\x00\x02\x06\x07\x12\x0c\x01\rtwo\x00"
    b"\x02\x01\x02\x00\x06 \x01#\x00\x00\x00"
)
NULL = b"\x00"


def test_an_object_as_spark_writes_it() -> None:
    names = Dictionary.parse(METADATA)
    inner = make_object({b"c": make_decimal(Decimal("3.5"))}, names)
    array = make_array([make_integer(1), make_text(b"two"), NULL, inner])
    assert make_object({b"b": array, b"a": make_integer(1)}, names) == VALUE
    assert object_fields(VALUE, names) == {b"a": make_integer(1), b"b": array}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (make_boolean(True), "04"), (make_boolean(False), "08"),
        (make_integer(127), "0c7f"), (make_integer(-128), "0c80"), (make_integer(128), "108000"),
        (make_integer(2**15), "1400800000"), (make_integer(-(2**63)), "180000000000000080"),
        (make_number("double", 1.5), "1c" + struct.pack("<d", 1.5).hex()),
        (make_number("double", math.nan), "1c" + struct.pack("<d", math.nan).hex()),
        (make_number("float", 1.5), "38" + struct.pack("<f", 1.5).hex()),
        (make_decimal(Decimal("-1.50")), "20026affffff"),
        (make_decimal(Decimal("0.0000000001")), "240a0100000000000000"),
        (make_decimal(Decimal(10**37)), "2800" + (10**37).to_bytes(16, "little").hex()),
        (make_number("date", -1), "2cffffffff"),
        (make_number("timestamp", 1), "300100000000000000"),
        (make_number("timestamp_ntz", -1), "34ffffffffffffffff"),
        (make_binary(b"ab"), "3c020000006162"), (make_text(b"ab"), "096162"),
        (make_text(b"x" * 64), "4040000000" + "78" * 64),
        (make_array([]), "030000"),
    ],
)  # fmt: skip
def test_primitives(value: bytes, wanted: str) -> None:
    assert value.hex() == wanted


def test_large_objects_and_arrays() -> None:
    names = [f"field {number:03}".encode() for number in range(300)]
    offsets = b"".join(n.to_bytes(2, "little") for n in range(0, 9 * 301, 9))
    metadata = b"\x41" + (300).to_bytes(2, "little") + offsets + b"".join(names)
    dictionary = Dictionary.parse(metadata)
    assert list(dictionary.names) == names
    fields = {name: make_integer(number) for number, name in enumerate(names)}
    assert object_fields(make_object(fields, dictionary), dictionary) == fields
    array = make_array([make_integer(number) for number in range(300)])
    assert array[0] == 0b10111  # a count of four bytes, offsets of two
    assert int.from_bytes(array[1:5], "little") == 300


def test_malformed_variants_are_refused() -> None:
    names = Dictionary.parse(METADATA)
    with pytest.raises(MalformedVariantError):
        Dictionary.parse(b"\x02\x00")
    with pytest.raises(MalformedVariantError):
        Dictionary.parse(b"\x01\x03\x00")
    with pytest.raises(MalformedVariantError):
        object_fields(make_integer(1), names)
    with pytest.raises(MalformedVariantError):
        make_object({b"d": NULL}, names)
    with pytest.raises(MalformedVariantError):
        make_integer(2**63)
