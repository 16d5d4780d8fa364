"""Reconstruction of shredded variants in Parquet files.

References
----------
PROTOCOL.md#reader-requirements-for-variant-shredding
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from sparkdelta.base.parquet.legacy_calendar_workers import Calendars, NotConvertibleError
from sparkdelta.base.parquet.parquet_schema_workers import LIST, STRUCT, Leaf, Node
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

VALUE, TYPED, METADATA = "value", "typed_value", "metadata"
Values = list[bytes | None]


def check_shredding(group: Node, calendars: Calendars) -> None:
    """Raise if a variant is shredded in an unsupported way."""
    parts = {child.name: child for child in group.children}
    typed = parts.get(TYPED)
    if not parts.keys() <= {VALUE, TYPED, METADATA} or (VALUE in parts and not parts[VALUE].leaf):
        raise NotConvertibleError("its schema is not that of a shredded variant")
    if typed is None:
        return
    if typed.leaf is not None:
        _encoder(typed.leaf, calendars)
    elif typed.kind in (STRUCT, LIST):
        for child in typed.children:
            check_shredding(child, calendars)
    else:
        raise NotConvertibleError("it is shredded into a map")


def variant_values(group: Node, array: pa.StructArray, calendars: Calendars) -> pa.Array:
    """Return the binary values of shredded variants, for the metadata that is stored with them.

    A value is null if the variant is null. `array` has all fields of `group`, the variant in the
    file's schema.
    """
    metadata = _child(group, array, METADATA)
    if metadata is None:
        raise NotConvertibleError("it has no metadata")
    parsed: dict[bytes, Dictionary] = {}
    try:
        dictionaries = [
            None
            if data is None
            else parsed.get(data) or parsed.setdefault(data, Dictionary.parse(data))
            for data in metadata.to_pylist()
        ]
        values = _values(group, array, dictionaries, calendars)
    except (MalformedVariantError, IndexError, KeyError) as error:
        raise NotConvertibleError(f"it contains a malformed variant: {error}") from error
    if any(d is not None and v is None for d, v in zip(dictionaries, values, strict=True)):
        raise NotConvertibleError("it contains a variant without a value")
    return pa.array(values, pa.binary())


def _values(
    group: Node,
    array: pa.StructArray,
    dictionaries: Sequence[Dictionary | None],
    calendars: Calendars,
) -> Values:
    """Return the values of a group of `value` and `typed_value`; None for a missing value."""
    typed_node = next((child for child in group.children if child.name == TYPED), None)
    plain_array, typed_array = _child(group, array, VALUE), _child(group, array, TYPED)
    plain: Values = [None] * len(array) if plain_array is None else plain_array.to_pylist()
    if typed_node is None or typed_array is None:
        return plain
    if typed_node.leaf is not None:
        encode = _encoder(typed_node.leaf, calendars)
        typed: Values = [
            None if v is None else encode(v) for v in _plain_values(typed_node.leaf, typed_array)
        ]
    elif typed_node.kind == LIST:
        typed = _arrays(typed_node, typed_array, dictionaries, calendars)
    else:
        return _objects(typed_node, typed_array, plain, dictionaries, calendars)
    if any(one is not None and other is not None for one, other in zip(plain, typed, strict=True)):
        raise MalformedVariantError("a part of it has both value and typed_value")
    return [one if one is not None else other for one, other in zip(plain, typed, strict=True)]


def _arrays(
    node: Node, array: pa.ListArray, dictionaries: Sequence[Dictionary | None], calendars: Calendars
) -> Values:
    lengths = [length or 0 for length in array.value_lengths().to_pylist()]
    of_elements = [
        d for d, length in zip(dictionaries, lengths, strict=True) for _ in range(length)
    ]
    elements = iter(_values(node.children[0], array.flatten(), of_elements, calendars))
    variants: Values = []
    for is_valid, length in zip(array.is_valid().to_pylist(), lengths, strict=True):
        part = [next(elements) for _ in range(length)]
        if any(element is None for element in part):
            raise MalformedVariantError("an element of an array has no value")
        variants.append(make_array([e for e in part if e is not None]) if is_valid else None)
    return variants


def _objects(
    node: Node,
    array: pa.StructArray,
    plain: Values,
    dictionaries: Sequence[Dictionary | None],
    calendars: Calendars,
) -> Values:
    names = [child.name.encode() for child in node.children]
    columns = [
        _values(child, part, dictionaries, calendars)
        for child, part in zip(node.children, array.flatten(), strict=True)
    ]
    variants: Values = []
    for row, is_valid in enumerate(array.is_valid().to_pylist()):
        dictionary, others = dictionaries[row], plain[row]
        if not is_valid or dictionary is None:
            variants.append(others)
            continue
        fields = {
            name: value
            for name, column in zip(names, columns, strict=True)
            if (value := column[row]) is not None
        }
        unshredded = {} if others is None else object_fields(others, dictionary)
        if unshredded.keys() & fields.keys():
            raise MalformedVariantError("a field is both shredded and unshredded")
        variants.append(make_object({**unshredded, **fields}, dictionary))
    return variants


def _child(group: Node, array: pa.StructArray, name: str) -> pa.Array | None:
    for number, child in enumerate(group.children):
        if child.name == name:
            return array.flatten()[number]  # flatten() applies the nulls of the parent
    return None


def _plain_values(leaf: Leaf, array: pa.Array) -> list[Any]:
    """Return values as numbers and bytes, because Python's types have smaller ranges."""
    if leaf.logical == "DATE":
        array = array.cast(pa.date32()).view(pa.int32())
    elif leaf.logical == "TIMESTAMP":
        array = array.cast(pa.timestamp("us", array.type.tz)).view(pa.int64())
    elif leaf.physical == "BYTE_ARRAY" and leaf.logical != "DECIMAL":
        array = array.cast(pa.binary())
    return list(array.to_pylist())


def _encoder(leaf: Leaf, calendars: Calendars) -> Callable[[Any], bytes]:
    by_type: dict[tuple[str, str], Callable[[Any], bytes]] = {
        ("BOOLEAN", "NONE"): make_boolean,
        ("FLOAT", "NONE"): partial(make_number, "float"),
        ("DOUBLE", "NONE"): partial(make_number, "double"),
        ("BYTE_ARRAY", "NONE"): make_binary,
        ("BYTE_ARRAY", "STRING"): make_text,
    }
    encode = by_type.get((leaf.physical, leaf.logical))
    if leaf.logical == "DECIMAL":
        encode = make_decimal
    elif leaf.physical in ("INT32", "INT64") and leaf.logical in ("NONE", "INT") and leaf.signed:
        encode = make_integer
    elif leaf.logical == "DATE" and not calendars.dates:
        encode = partial(make_number, "date")
    elif leaf.logical == "TIMESTAMP" and leaf.unit == "microseconds" and not calendars.dates:
        encode = partial(make_number, "timestamp" if leaf.is_adjusted else "timestamp_ntz")
    if encode is None:
        raise NotConvertibleError(f"it is shredded into {leaf}")
    return encode
