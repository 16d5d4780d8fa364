"""Mapping of a table's columns to a Parquet file: the leaves to read, and their conversion.

References
----------
PROTOCOL.md#reader-requirements-for-column-mapping,
PROTOCOL.md#reader-requirements-for-type-widening, PROTOCOL.md#variant-data-in-parquet
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

from sparkdelta.base.parquet.legacy_calendar_workers import Calendars, NotConvertibleError
from sparkdelta.base.parquet.parquet_schema_workers import LIST, MAP, STRUCT, Node
from sparkdelta.base.parquet.parquet_value_workers import (
    VARIANT,
    Convert,
    arrow_field,
    value_converter,
)
from sparkdelta.base.parquet.shredded_variant_workers import (
    METADATA,
    TYPED,
    VALUE,
    check_shredding,
    variant_values,
)
from sparkdelta.base.protocol.column_names import stored_name_key
from sparkdelta.base.schema.column_mapping import PARQUET_FIELD_ID


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The requested columns in a file.

    Attributes
    ----------
    leaves
        The numbers of the leaves to read, in the file's order.
    _columns
        For each requested column: its name, its position among the columns read, and its
        conversion; None if the file does not have it.
    """

    leaves: tuple[int, ...]
    _columns: tuple[tuple[str, int, Convert] | None, ...]

    def arrays(self, stored: pa.RecordBatch) -> list[pa.Array | None]:
        """Convert a batch of the leaves to the requested columns; None for missing columns."""
        arrays: list[pa.Array | None] = []
        for column in self._columns:
            if column is None:
                arrays.append(None)
                continue
            name, place, convert = column
            with _column_errors(name):
                arrays.append(convert(stored.column(place)))
        return arrays


def find_columns(
    root: Node, columns: Sequence[tuple[StructField, StructField] | None], calendars: Calendars
) -> FileColumns:
    """Find the columns of a table in a file with the schema `root`.

    Parameters
    ----------
    columns
        For each column: its logical field, without `void`, and its physical field, see
        `base.schema.column_mapping.physical_field`; None for a column that is not stored in files.
    """
    nodes: list[Node | None] = []
    found: list[Found | None] = []
    for pair in columns:
        wanted, stored = pair or (None, None)
        node = None
        if wanted is not None and stored is not None:
            with _column_errors(wanted.name):
                _expect_ids(root, stored)
                node = find_node(root.children, stored)
                if node is not None:
                    found.append(find_column(node, stored.dataType, wanted.dataType, calendars))
        nodes.append(node)
        if node is None:
            found.append(None)
    places = _places(root, nodes)
    read = [
        None
        if pair is None or part is None or place is None
        else (pair[0].name, place, part.convert)
        for pair, part, place in zip(columns, found, places, strict=True)
    ]
    leaves = {leaf for part in found if part is not None for leaf in part.leaves}
    return FileColumns(tuple(sorted(leaves)), tuple(read))


def _expect_ids(root: Node, stored: StructField) -> None:
    # In a file without field ids, columns could only be matched by name, which may be wrong.
    if PARQUET_FIELD_ID in (stored.metadata or {}) and not root.has_ids():
        raise NotConvertibleError(
            "the file has no field ids, but the table uses column mapping in id mode"
        )


@contextmanager
def _column_errors(column: str) -> Iterator[None]:
    """Convert errors to `NotConvertibleError` with the name of the column."""
    try:
        yield
    except (NotConvertibleError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        named = NotConvertibleError(str(error).partition("\n")[0])
        named.column = column
        raise named from error


@dataclass(frozen=True, slots=True)
class Found:
    """The leaves to read for a column or field, and the conversion of the array read from them."""

    leaves: frozenset[int]
    convert: Convert


def find_node(fields: Iterable[Node], wanted: StructField) -> Node | None:
    """Find a physical field by its field id if it has one, else by its name, ignoring case."""
    field_id = (wanted.metadata or {}).get(PARQUET_FIELD_ID)
    if field_id is not None:
        found = [node for node in fields if node.field_id == field_id]
    else:
        name = stored_name_key(wanted.name)
        found = [node for node in fields if stored_name_key(node.name) == name]
    if len(found) > 1:
        names = ", ".join(node.name for node in found)
        raise NotConvertibleError(f"it matches several fields of the file: {names}")
    return found[0] if found else None


def find_column(node: Node, stored: DataType, wanted: DataType, calendars: Calendars) -> Found:
    """Return the leaves and the conversion to read a field of a file as a type.

    `stored` and `wanted` are that type with physical and with logical names.
    """
    if isinstance(wanted, StructType) and isinstance(stored, StructType):
        _expect(node, STRUCT, wanted)
        return _struct(node, stored, wanted, calendars)
    if isinstance(wanted, ArrayType) and isinstance(stored, ArrayType):
        _expect(node, LIST, wanted)
        return _list(node, stored, wanted, calendars)
    if isinstance(wanted, MapType) and isinstance(stored, MapType):
        _expect(node, MAP, wanted)
        return _map(node, stored, wanted, calendars)
    if isinstance(wanted, VariantType):
        _expect(node, STRUCT, wanted)
        return _variant(node, calendars)
    if node.leaf is None:
        raise NotConvertibleError(
            f"it is a {node.kind} in the file instead of {wanted.simpleString()}"
        )
    return Found(frozenset([node.leaf.number]), value_converter(node.leaf, wanted, calendars))


def _expect(node: Node, kind: str, wanted: DataType) -> None:
    if node.kind != kind:
        raise NotConvertibleError(
            f"it is a {node.kind} in the file instead of {wanted.simpleString()}"
        )


def _struct(node: Node, stored: StructType, wanted: StructType, calendars: Calendars) -> Found:
    nodes = [find_node(node.children, field) for field in stored.fields]
    found = [
        None if child is None else find_column(child, part.dataType, field.dataType, calendars)
        for child, part, field in zip(nodes, stored.fields, wanted.fields, strict=True)
    ]
    # If the file has none of the fields, any leaf shows which structs are null.
    leaves = frozenset().union(*(part.leaves for part in found if part)) or frozenset(
        [next(node.leaves()).number]
    )
    places = _places(node, nodes)
    fields = [arrow_field(field.name, field.dataType) for field in wanted.fields]

    def convert(array: pa.StructArray) -> pa.Array:
        children = [
            pa.nulls(len(array), field.type)
            if part is None or place is None
            else part.convert(array.field(place))
            for part, place, field in zip(found, places, fields, strict=True)
        ]
        return _structs(array, children, fields)

    return Found(leaves, convert)


def _places(parent: Node, nodes: Sequence[Node | None]) -> list[int | None]:
    """Return the positions of fields in a batch that contains only them, in the file's order."""
    wanted = [id(node) for node in nodes if node is not None]
    if len(set(wanted)) < len(wanted):
        raise NotConvertibleError(
            "two columns or fields of the table map to the same field of the file"
        )
    read = [id(child) for child in parent.children if id(child) in wanted]
    return [None if node is None else read.index(id(node)) for node in nodes]


def _structs(array: pa.Array, children: Sequence[pa.Array], fields: list[pa.Field]) -> pa.Array:
    """Return structs of `children` with the nulls of `array`."""
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _list(node: Node, stored: ArrayType, wanted: ArrayType, calendars: Calendars) -> Found:
    element = find_column(node.children[0], stored.elementType, wanted.elementType, calendars)
    target = pa.list_(arrow_field("element", wanted.elementType))

    def convert(array: pa.Array) -> pa.Array:
        if not pa.types.is_list(array.type):  # by the Arrow schema in the footer
            array = array.cast(pa.list_(array.type.value_field))
        return _rebuilt(array, target, element.convert(array.values))

    return Found(element.leaves, convert)


def _map(node: Node, stored: MapType, wanted: MapType, calendars: Calendars) -> Found:
    keys = find_column(node.children[0], stored.keyType, wanted.keyType, calendars)
    values = find_column(node.children[1], stored.valueType, wanted.valueType, calendars)
    key = arrow_field("key", wanted.keyType).with_nullable(False)
    value = arrow_field("value", wanted.valueType)
    target = pa.map_(key, value)

    def convert(array: pa.MapArray) -> pa.Array:
        pairs = [keys.convert(array.keys), values.convert(array.items)]
        return _rebuilt(array, target, pa.StructArray.from_arrays(pairs, fields=[key, value]))

    return Found(keys.leaves | values.leaves, convert)


def _rebuilt(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """Return an array of lists or maps with the same offsets and other values."""
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, [values]
    )


def _variant(node: Node, calendars: Calendars) -> Found:
    """Return the leaves and the conversion of a variant."""
    names = [child.name for child in node.children]
    if METADATA not in names:
        raise NotConvertibleError("it is not a variant in the file")
    check_shredding(node, calendars)

    def convert(array: pa.StructArray) -> pa.Array:
        parts = array.flatten()  # flatten() applies the nulls of the structs
        metadata = parts[names.index(METADATA)]
        if TYPED in names:
            values = variant_values(node, array, calendars)
        else:
            values = parts[names.index(VALUE)]
        children = [values.cast(pa.binary()), metadata.cast(pa.binary())]
        if any(child.null_count > array.null_count for child in children):
            raise NotConvertibleError("it contains a variant without a value")
        return _structs(array, children, list(VARIANT))

    return Found(frozenset(leaf.number for leaf in node.leaves()), convert)
