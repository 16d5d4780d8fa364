"""The types with which Parquet files store the values of columns.

References
----------
PROTOCOL.md#delta-data-type-to-parquet-type-mappings, PROTOCOL.md#type-widening
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from sparkdelta.base.parquet.parquet_schema_workers import LIST, MAP, Leaf, Node, file_schema
from sparkdelta.base.storage.worker_files import StoredFiles

ELEMENT, KEY, VALUE = "element", "key", "value"

_INTEGERS = {8: "byte", 16: "short", 32: "integer", 64: "long"}
_PLAIN = {"INT32": "integer", "INT64": "long", "FLOAT": "float", "DOUBLE": "double"}


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column and its names in files.

    Attributes
    ----------
    path
        The name, or the field id, of each field from the outermost on; `ELEMENT`, `KEY` and `VALUE`
        for the parts of arrays and maps.
    data_type
        The type that it is to be stored as, by its name in the JSON of the schema.
    """

    path: tuple[str | int, ...]
    data_type: str


@dataclass(frozen=True, slots=True)
class TypeChecker:
    """A search for files that store columns with other types than expected."""

    files: StoredFiles
    columns: tuple[StoredColumn, ...]

    def others(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Filter rows of a column `file` to files that store a column with another type."""
        for batch in batches:
            are_other = [self.is_other(file) for file in batch.column("file").to_pylist()]
            yield batch.filter(pa.array(are_other, pa.bool_()))

    def is_other(self, path: str) -> bool:
        """Return True if a file stores a column with another type; it may lack columns."""
        with self.files.open(path) as source:
            root = file_schema(pq.ParquetFile(source))
        return any(
            any(stored_type(leaf) != column.data_type for leaf in _leaves(root, column.path))
            for column in self.columns
        )


def files_of_other_types(files: DataFrame, checker: TypeChecker) -> DataFrame:
    """Filter files, in a column `file`, to files that store a column with another type."""
    return files.mapInArrow(checker.others, files.schema)


def stored_type(leaf: Leaf) -> str | None:
    """Return the type of a leaf by its name in JSON; None if no type is widened to it."""
    if leaf.logical == "INT":
        return _INTEGERS.get(leaf.bits) if leaf.signed else None
    if leaf.logical == "DECIMAL":
        return f"decimal({leaf.precision},{leaf.scale})"
    if leaf.logical == "TIMESTAMP" and not leaf.is_adjusted and leaf.physical == "INT64":
        return "timestamp_ntz"
    return _PLAIN.get(leaf.physical) if leaf.logical == "NONE" else None


def _leaves(node: Node, path: tuple[str | int, ...]) -> Iterator[Leaf]:
    """Yield the leaf at a path, if the file has it."""
    if not path:
        yield from node.leaves()
        return
    name, rest = path[0], path[1:]
    parts: Mapping[str | int, int] = {}
    if node.kind == LIST:
        parts = {ELEMENT: 0}
    elif node.kind == MAP:
        parts = {KEY: 0, VALUE: 1}
    if name in parts:
        yield from _leaves(node.children[parts[name]], rest)
        return
    for child in node.children:
        if name in (child.name, child.field_id):
            yield from _leaves(child, rest)
