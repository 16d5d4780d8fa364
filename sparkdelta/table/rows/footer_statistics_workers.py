"""Add actions of new data files, with statistics that executors read from their footers.

References
----------
PROTOCOL.md#per-file-statistics, PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from sparkdelta.base.parquet.parquet_schema_workers import Leaf, Node, file_schema
from sparkdelta.base.protocol.exact_json import json_text
from sparkdelta.base.protocol.partition_values import NO_VALUE
from sparkdelta.base.schema.statistics_columns import DEFAULT_PREFIX_LENGTH
from sparkdelta.base.storage.worker_files import StoredFiles

NUM_RECORDS = "numRecords"

ADDED = StructType(
    [
        StructField("path", StringType()),
        StructField("partitionValues", MapType(StringType(), StringType())),
        StructField("size", LongType()),
        StructField("modificationTime", LongType()),
        StructField("dataChange", BooleanType()),
        StructField("stats", StringType()),
        StructField(NUM_RECORDS, LongType()),
    ]
)
"""The fields of the add action of a new file, and its number of rows."""

_ARROW = pa.schema(
    [
        ("path", pa.string()),
        ("partitionValues", pa.map_(pa.string(), pa.string())),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        (NUM_RECORDS, pa.int64()),
    ]
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
URI_CHARACTERS = "/!$&'()*+,;=:@-._~"
"""The characters of a path that Java's URIs do not escape."""

_LAST_CHARACTER = "\U0010ffff"

_FLOATS = ("FLOAT", "DOUBLE")
_KEEPS_NAN = "parquet-mr version "
"""The start of `created_by` of Spark's Parquet writer, whose maximum is NaN if a value is.

Others leave NaN out, and Spark orders it above all numbers: it may be beyond their maximum.
"""

JsonText: TypeAlias = str
Tree: TypeAlias = dict[str, Any]


LISTED = pa.schema(
    [("path", pa.string()), ("length", pa.int64()), ("modificationTime", pa.int64())]
)
"""The input of a `FooterReader`."""


@dataclass(frozen=True, slots=True)
class FooterReader:
    """Reader of footers of new files, for their add actions.

    Attributes
    ----------
    files
        The access to files on workers.
    table_root
        The absolute, decoded path of the table.
    partition_keys
        The keys of `partitionValues`, in the order of the partition directories.
    columns
        The physical paths of the columns with statistics.
    data_change
        The value of `dataChange`.
    prefix_length
        The maximum length of string bounds, in characters.
    """

    files: StoredFiles
    table_root: str
    partition_keys: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    data_change: bool = True
    prefix_length: int = DEFAULT_PREFIX_LENGTH

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Convert batches of `LISTED` to batches of `ADDED`, without files that have no rows."""
        for batch in batches:
            rows = [row for file in batch.to_pylist() if (row := self._row(**file))[NUM_RECORDS]]
            yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    def _row(self, path: str, length: int, modificationTime: int) -> Mapping[str, Any]:  # noqa: N803
        with self.files.open(path) as source:
            file = pq.ParquetFile(source)
            statistics = file_statistics(
                file.metadata, file_schema(file), self.columns, self.prefix_length
            )
            num_rows = file.metadata.num_rows
        relative = path.removeprefix(f"{self.table_root}/")
        assert relative != path
        return {
            "path": quote(relative, safe=URI_CHARACTERS),
            "partitionValues": list(self._partition_values(relative).items()),
            "size": length,
            "modificationTime": modificationTime,
            "dataChange": self.data_change,
            "stats": statistics,
            NUM_RECORDS: num_rows,
        }

    def _partition_values(self, path: str) -> dict[str, str | None]:
        """Return the serialized partition values, from the escaped names of the directories."""
        if not self.partition_keys:
            return {}
        directories = path.split("/")[-1 - len(self.partition_keys) : -1]
        values = [unquote(directory.partition("=")[2]) for directory in directories]
        return {
            key: None if value == NO_VALUE else value
            for key, value in zip(self.partition_keys, values, strict=True)
        }


def describe_files(files: DataFrame, reader: FooterReader) -> DataFrame:
    """Return the fields of the add actions of new files.

    Parameters
    ----------
    files
        path STRING (absolute, decoded), length LONG (bytes), modificationTime LONG (milliseconds
        since the epoch).

    Returns
    -------
    DataFrame
        The columns of `ADDED`, one row per file that has rows.
    """
    return files.mapInArrow(reader.read, ADDED)


def file_statistics(
    metadata: pq.FileMetaData,
    schema: Node,
    columns: tuple[tuple[str, ...], ...],
    prefix_length: int = DEFAULT_PREFIX_LENGTH,
) -> JsonText:
    """Return `stats` of a file without a deletion vector.

    A bound is omitted if the footer does not have it, if JSON cannot represent it, or if the column
    is FLOAT or DOUBLE and the footer's writer does not report NaN.

    Parameters
    ----------
    metadata, schema
        The footer of the file and its schema.
    columns
        The physical paths of the columns with statistics.
    prefix_length
        The maximum length of string bounds, in characters.
    """
    bounds: dict[str, Tree] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for path in columns:
        leaf = _find(schema, path)
        if leaf is None or leaf.is_repeated:
            continue
        low, high, nulls = _facts(metadata, leaf, prefix_length)
        if leaf.physical in _FLOATS and not metadata.created_by.startswith(_KEEPS_NAN):
            low = high = None
        for kind, text in (("minValues", low), ("maxValues", high), ("nullCount", nulls)):
            if text is not None:
                _put(bounds[kind], path, text)
    members = [f'"{NUM_RECORDS}":{metadata.num_rows}']
    members += [f'"{kind}":{_text(tree)}' for kind, tree in bounds.items()]
    return "{" + ",".join([*members, '"tightBounds":true']) + "}"


def _find(schema: Node, path: tuple[str, ...]) -> Leaf | None:
    node = schema
    for name in path:
        found = [child for child in node.children if child.name == name]
        if len(found) != 1:
            return None
        node = found[0]
    return node.leaf


def _facts(
    metadata: pq.FileMetaData, leaf: Leaf, prefix_length: int
) -> tuple[JsonText | None, JsonText | None, JsonText | None]:
    chunks = [
        metadata.row_group(number).column(leaf.number) for number in range(metadata.num_row_groups)
    ]
    nulls: int | None = 0
    lows: list[Any] = []
    highs: list[Any] = []
    is_complete = True
    for chunk in chunks:
        statistics = chunk.statistics
        has_count = statistics is not None and statistics.has_null_count
        nulls = nulls + statistics.null_count if has_count and nulls is not None else None
        if has_count and statistics.null_count == chunk.num_values:
            continue
        if statistics is None or not statistics.has_min_max:
            is_complete = False
            continue
        lows.append(_comparable(statistics.min_raw, leaf))
        highs.append(_comparable(statistics.max_raw, leaf))
    count = None if nulls is None else str(nulls)
    if not is_complete or not lows or None in lows or None in highs:
        return None, None, count
    low = _bound(min(lows), leaf, prefix_length, is_upper=False)
    return low, _bound(max(highs), leaf, prefix_length, is_upper=True), count


def _comparable(raw: Any, leaf: Leaf) -> Any:
    """Convert a value of the footer so that it is ordered like its column; None if unreliable."""
    if leaf.physical in ("BOOLEAN", "INT96") or not leaf.signed:  # the raw value is signed
        return None
    if leaf.logical == "DECIMAL":
        return raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
    if leaf.physical in _FLOATS:
        return raw if math.isfinite(raw) else None
    if leaf.physical in ("INT32", "INT64"):
        return raw
    if leaf.logical != "STRING":
        return None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _bound(value: Any, leaf: Leaf, prefix_length: int, *, is_upper: bool) -> JsonText | None:
    if leaf.logical == "DECIMAL":
        return _decimal_text(value, leaf.scale)
    if leaf.logical == "STRING":
        return json_text(_upper_prefix(value, prefix_length) if is_upper else value[:prefix_length])
    try:
        if leaf.logical == "DATE":
            return f'"{date(1970, 1, 1) + timedelta(days=value)}"'
        if leaf.logical == "TIMESTAMP":
            return _timestamp(value, leaf, is_upper=is_upper)
    except (OverflowError, ValueError):  # not a four-digit year
        return None
    return repr(value)


def _decimal_text(unscaled: int, scale: int) -> JsonText:
    """Return a DECIMAL with all digits; Python's Decimal would round to the context's precision."""
    digits = str(abs(unscaled)).zfill(scale + 1)
    sign, point = "-" if unscaled < 0 else "", len(digits) - scale
    return f"{sign}{digits[:point]}.{digits[point:]}" if scale else f"{sign}{digits}"


def _timestamp(value: int, leaf: Leaf, *, is_upper: bool) -> JsonText | None:
    """Return a timestamp in milliseconds, rounded down for a minimum and up for a maximum."""
    if leaf.unit != "microseconds":
        return None
    millis = -(-value // 1000) if is_upper else value // 1000
    moment = _EPOCH + timedelta(milliseconds=millis)
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f'"{text}Z"' if leaf.is_adjusted else f'"{text}"'


def _upper_prefix(text: str, length: int = DEFAULT_PREFIX_LENGTH) -> str:
    """Return a short string that is not less than the given one, in the order of UTF-8 bytes.

    Examples
    --------
    >>> _upper_prefix("x"), _upper_prefix("a" * 40) > "a" * 40
    ('x', True)
    """
    end = length
    if len(text) <= end:
        return text
    while text[end : end + 1] == _LAST_CHARACTER:
        end += 1
    return text if end >= len(text) else text[:end] + _LAST_CHARACTER


def _put(tree: Tree, path: tuple[str, ...], text: JsonText) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = text


def _text(tree: Tree | JsonText) -> JsonText:
    if isinstance(tree, str):
        return tree
    return "{" + ",".join(f"{json_text(k)}:{_text(v)}" for k, v in tree.items()) + "}"
