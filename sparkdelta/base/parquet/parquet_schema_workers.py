"""The schema of a Parquet file as a tree of fields and leaf columns.

References
----------
PROTOCOL.md#delta-data-type-to-parquet-type-mappings
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq

from sparkdelta.base.parquet.legacy_calendar_workers import NotConvertibleError

FIELD_ID = b"PARQUET:field_id"  # among the metadata of Arrow's fields
LEAF, STRUCT, LIST, MAP = "leaf", "struct", "list", "map"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf column of a Parquet file.

    Attributes
    ----------
    number
        The index among the file's leaf columns.
    physical
        The physical type: BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY or
        FIXED_LEN_BYTE_ARRAY.
    logical
        The logical type: NONE, INT, DECIMAL, STRING, DATE, TIMESTAMP, ...
    bits, signed, precision, scale, unit
        The parameters of an INT, a DECIMAL or a TIMESTAMP.
    is_adjusted
        True if a TIMESTAMP is adjusted to UTC; otherwise it has no time zone.
    is_repeated
        True inside a list or map.
    """

    number: int
    physical: str
    logical: str
    bits: int = 0
    signed: bool = True
    precision: int = 0
    scale: int = 0
    unit: str = ""
    is_adjusted: bool = True
    is_repeated: bool = False

    def __str__(self) -> str:
        return self.physical if self.logical == "NONE" else f"{self.physical} ({self.logical})"


@dataclass(frozen=True, slots=True)
class Node:
    """A field of a file's schema, at any level.

    Attributes
    ----------
    kind
        LEAF, STRUCT, LIST (its child is the element) or MAP (its children are key and value).
    children
        The fields below; empty for a leaf.
    leaf
        The leaf column; None for other kinds.
    """

    name: str
    field_id: int | None
    kind: str
    children: tuple[Node, ...] = ()
    leaf: Leaf | None = None

    def leaves(self) -> Iterator[Leaf]:
        """Yield the leaves of the field, in the file's order."""
        if self.leaf is not None:
            yield self.leaf
        for child in self.children:
            yield from child.leaves()

    def has_ids(self) -> bool:
        """Return True if the field or a field below it has a field id."""
        return self.field_id is not None or any(child.has_ids() for child in self.children)


def file_schema(file: pq.ParquetFile) -> Node:
    """Return the schema of a file; the children of the root are its columns.

    Lists and maps are recognized by the rules of the Parquet format, including legacy forms.
    """
    numbers = count()
    children = tuple(_node(field, file.schema, numbers) for field in file.schema_arrow)
    leaves = next(numbers)
    if leaves != file.metadata.num_columns:
        raise NotConvertibleError(
            f"its schema has {leaves} columns instead of {file.metadata.num_columns}"
        )
    return Node("", None, STRUCT, children)


def _node(field: pa.Field, schema: pq.ParquetSchema, numbers: Iterator[int]) -> Node:
    text = (field.metadata or {}).get(FIELD_ID)
    field_id = None if text is None else int(text)
    data_type = field.type
    if isinstance(data_type, pa.BaseExtensionType):
        data_type = data_type.storage_type
    children = _children(data_type)
    if not children:
        return Node(field.name, field_id, LEAF, (), _leaf(next(numbers), schema))
    kind = STRUCT if pa.types.is_struct(data_type) else MAP if len(children) == 2 else LIST
    return Node(field.name, field_id, kind, tuple(_node(c, schema, numbers) for c in children))


def _children(data_type: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    if pa.types.is_nested(data_type):
        return [data_type.field(index) for index in range(data_type.num_fields)]
    return []


def _leaf(number: int, schema: pq.ParquetSchema) -> Leaf:
    column = schema.column(number)
    details = json.loads(column.logical_type.to_json())
    return Leaf(
        number,
        column.physical_type,
        column.logical_type.type,
        bits=details.get("bitWidth", 0),
        signed=details.get("isSigned", True),
        precision=details.get("precision", 0),
        scale=details.get("scale", 0),
        unit=details.get("timeUnit", ""),
        is_adjusted=details.get("isAdjustedToUTC", True),
        is_repeated=column.max_repetition_level > 0,
    )
