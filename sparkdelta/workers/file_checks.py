"""Whether the files that a version needs are there, looked at by Python workers.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-files
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    DataType,
    DateType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.exceptions import DeletionVectorError
from sparkdelta.protocol.deletion_vectors import DeletionVectorDescriptor, decode
from sparkdelta.schema.statistics_schema import leaves
from sparkdelta.schema.table_schema import quoted
from sparkdelta.workers.legacy_calendar import calendars

FINDINGS = StructType(
    [StructField(name, StringType(), False) for name in ("check", "path", "problem")]
)
"""What a verification finds: which check, about what, and what is wrong."""

Finding: TypeAlias = tuple[str, str, str]

DATA_FILE, DELETION_VECTOR, FOOTER = "data file", "deletion vector", "footer"

_THREADS = 16
_DAY_MICROS = 86_400_000_000
_FRAME_BYTES = 8  # the size before a deletion vector, and the checksum after it
_ARROW = pa.schema([(name, pa.string()) for name in FINDINGS.names])


class StoredFiles(Protocol):
    """What looks at files on a worker, by absolute, decoded paths."""

    def size(self, path: str) -> int | None:
        """The bytes of a file; None where there is none."""

    def open(self, path: str) -> pa.NativeFile:
        """A file; FileNotFoundError where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChecker:
    """How workers look at files.

    Attributes
    ----------
    with_footers
        Whether to open each data file and compare its number of rows.
    columns
        The physical names of the columns whose bounds are compared with the footer's.
    """

    files: StoredFiles
    table_root: str
    with_footers: bool = False
    columns: tuple[tuple[str, ...], ...] = ()


def bounded_columns(statistics: StructType) -> tuple[tuple[str, ...], ...]:
    """The physical names of the columns that have bounds, in the order of `logged_bounds`."""
    return tuple(path for path, _ in _bounded(statistics))


def logged_bounds(stats_parsed: str, statistics: StructType) -> str:
    """What the log says of the columns of a file, in SQL: STRUCT<low STRUCT, high STRUCT, nulls
    STRUCT, is_tight BOOLEAN>, with the columns by their places; moments are whole numbers.
    """
    kinds = []
    for name, kind in (("low", "minValues"), ("high", "maxValues"), ("nulls", "nullCount")):
        fields = []
        for number, (path, data_type) in enumerate(_bounded(statistics)):
            fact = ".".join((stats_parsed, kind, *map(quoted, path)))
            whole = fact if kind == "nullCount" else _whole_number(fact, data_type)
            fields.append(f"{whole} AS c{number}")
        kinds.append(f"struct({', '.join(fields)}) AS {name}")
    return f"struct({', '.join(kinds)}, {stats_parsed}.tightBounds AS is_tight)"


def _bounded(statistics: StructType) -> list[tuple[tuple[str, ...], DataType]]:
    if "minValues" not in statistics.names:
        return []
    return list(leaves(statistics["minValues"].dataType))


def _whole_number(value: str, data_type: DataType) -> str:
    """Microseconds since the epoch: Python knows no years after 9999."""
    if isinstance(data_type, DateType):
        return f"unix_date({value}) * {_DAY_MICROS}L"
    if isinstance(data_type, TimestampType):
        return f"unix_micros({value})"
    if isinstance(data_type, TimestampNTZType):
        return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {value})"
    return value


def file_findings(files: DataFrame, checker: FileChecker) -> DataFrame:
    """What is wrong with data files and deletion vectors: `FINDINGS`.

    A file must be there with the logged size; a deletion vector must be what its descriptor says;
    with footers, a file must have one, `numRecords` be the number of its rows, and the bounds
    include those of its row groups.

    Parameters
    ----------
    files
        file STRING (absolute, decoded), size LONG, numRecords LONG (null where unknown),
        deletionVector STRUCT, and `logged_bounds` as bounds where the checker has columns; in as
        many partitions as tasks are wanted.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#per-file-statistics,
    PROTOCOL.md#deletion-vector-file-storage-format
    """

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = findings_of(batch.to_pylist(), checker)
            columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
            if columns:
                yield pa.RecordBatch.from_arrays(columns, schema=_ARROW)

    return files.mapInArrow(check, FINDINGS)


def findings_of(files: list[dict[str, Any]], checker: FileChecker) -> list[Finding]:
    """As `file_findings`, of files that are values."""
    with ThreadPoolExecutor(_THREADS) as threads:
        found = threads.map(lambda row: _findings(row, checker), files)
        return [finding for findings in found for finding in findings]


def _findings(row: dict[str, Any], checker: FileChecker) -> list[Finding]:
    found, path = [], row["file"]
    if problem := _file_problem(row, checker):
        found.append((DATA_FILE, path, problem))
    elif checker.with_footers and (problem := _footer_problem(row, checker)):
        found.append((FOOTER, path, problem))
    if row["deletionVector"] is not None:
        vector, problem = _vector_problem(row["deletionVector"], checker)
        if problem:
            found.append((DELETION_VECTOR, vector, f"{problem} (of {path})"))
    return found


def _file_problem(row: dict[str, Any], checker: FileChecker) -> str | None:
    try:
        size = checker.files.size(row["file"])
    except OSError as error:
        return f"cannot be accessed: {error}"
    if size is None:
        return "is missing"
    return None if size == row["size"] else f"has {size} bytes instead of {row['size']}"


def _footer_problem(row: dict[str, Any], checker: FileChecker) -> str | None:
    try:
        with checker.files.open(row["file"]) as file:
            metadata = pq.ParquetFile(file).metadata
    except (OSError, pa.ArrowException) as error:
        return f"cannot be read: {error}"
    expected = row["numRecords"]
    if expected is not None and metadata.num_rows != expected:
        return f"has {metadata.num_rows} rows instead of {expected}"
    return _bounds_problem(row, metadata, checker.columns) if checker.columns else None


def _bounds_problem(
    row: Mapping[str, Any], metadata: pq.FileMetaData, columns: tuple[tuple[str, ...], ...]
) -> str | None:
    """PROTOCOL.md#per-file-statistics"""
    bounds, has_vector = row["bounds"], row["deletionVector"] is not None
    if bounds is None or (has_vector and bounds["is_tight"] is not False):
        return None  # the footer counts deleted rows
    is_old = calendars(metadata.metadata).dates
    numbers: dict[str, list[int]] = {}
    for number in range(metadata.num_columns):
        numbers.setdefault(metadata.schema.column(number).path, []).append(number)
    for place, path in enumerate(columns):
        found = numbers.get(".".join(path), [])
        column = metadata.schema.column(found[0]) if len(found) == 1 else None
        if column is None or column.max_repetition_level:
            continue
        chunks = [metadata.row_group(n).column(found[0]) for n in range(metadata.num_row_groups)]
        low, high, nulls = (bounds[kind][f"c{place}"] for kind in ("low", "high", "nulls"))
        stored = _StoredOrder.of(column, is_old=is_old)
        known = [chunk.statistics for chunk in chunks if chunk.statistics is not None]
        ranges = [statistics for statistics in known if statistics.has_min_max]
        if stored and not all(stored.is_within(statistics, low, high) for statistics in ranges):
            return f"has values of {'.'.join(path)} that its bounds in the log leave out"
        if has_vector or nulls is None or len(known) < len(chunks):
            continue
        if all(statistics.has_null_count for statistics in known):
            count = sum(statistics.null_count for statistics in known)
            if count != nulls:
                return f"has {count} nulls of {'.'.join(path)} instead of {nulls}"
    return None


_MICROS = {"milliseconds": 1000, "microseconds": 1}
_LONGEST_TEXT = 64
"""Some writers cut the bounds of footers to so many bytes."""


@dataclass(frozen=True, slots=True)
class _StoredOrder:
    """The order of a Parquet column's values, for bounds of the log.

    Attributes
    ----------
    factor
        What a stored number is multiplied with to be a value; None for texts.
    kind
        The logical type.
    """

    factor: Fraction | None
    kind: str

    @classmethod
    def of(cls, column: pq.ColumnSchema, *, is_old: bool) -> _StoredOrder | None:
        """None where the bounds of the footer are not those of the column's values."""
        logical = json.loads(column.logical_type.to_json())
        kind, physical = logical["Type"], column.physical_type
        is_number = physical in ("INT32", "INT64", "FLOAT", "DOUBLE")
        if kind == "Decimal":
            return cls(Fraction(1, 10 ** logical["scale"]), kind)
        if kind == "String":
            return cls(None, kind)
        if kind == "Timestamp" and not is_old and logical["timeUnit"] in _MICROS:
            return cls(Fraction(_MICROS[logical["timeUnit"]]), kind)
        if kind == "Date" and not is_old:
            return cls(Fraction(_DAY_MICROS), kind)
        if kind == "None" or (kind == "Int" and logical["isSigned"]):
            return cls(Fraction(1), kind) if is_number else None
        return None

    def is_within(self, statistics: pq.Statistics, low: Any, high: Any) -> bool:
        """Whether the bounds of a row group are within those of the log."""
        least, greatest = statistics.min_raw, statistics.max_raw
        if self.factor is None:
            above = isinstance(low, str) and low.encode() > least and len(least) < _LONGEST_TEXT
            return not above and not (isinstance(high, str) and _is_below(high, greatest))
        return not (
            (_is_number(low) and Fraction(low) > self._value(least))
            or (_is_number(high) and Fraction(high) + self._missing < self._value(greatest))
        )

    @property
    def _missing(self) -> int:
        """Maxima of timestamps are cut to milliseconds."""
        return 999 if self.kind == "Timestamp" else 0

    def _value(self, raw: Any) -> Any:
        assert self.factor is not None
        if isinstance(raw, bytes):
            return int.from_bytes(raw, "big", signed=True) * self.factor
        return raw * self.factor if isinstance(raw, int) else raw


def _is_number(bound: Any) -> bool:
    return isinstance(bound, int | Decimal) or (isinstance(bound, float) and math.isfinite(bound))


def _is_below(high: str, greatest: bytes) -> bool:
    """Whether a text is a maximum that leaves out another text.

    delta-spark before 3.3 cut maxima and appended U+FFFD, which stands for all that follows; a half
    of a surrogate pair before it became '?'.
    """
    if len(greatest) >= _LONGEST_TEXT or high.encode() >= greatest:
        return False
    prefix = high.removesuffix("\ufffd")
    is_cut = prefix != high and greatest.startswith(
        (prefix.encode(), prefix.removesuffix("?").encode())
    )
    return not is_cut


def _vector_problem(fields: dict[str, Any], checker: FileChecker) -> tuple[str, str | None]:
    descriptor = DeletionVectorDescriptor.from_dict(fields)
    shown = str(fields["pathOrInlineDv"])
    try:
        path = descriptor.absolute_path(checker.table_root)
        if path is None:
            decode(descriptor)
            return shown, None
        shown = path
        return path, _stored_vector_problem(path, descriptor, checker)
    except DeletionVectorError as error:
        return shown, error.message
    except OSError as error:
        return shown, f"cannot be accessed: {error}"


def _stored_vector_problem(
    path: str, descriptor: DeletionVectorDescriptor, checker: FileChecker
) -> str | None:
    size, start = checker.files.size(path), descriptor.offset or 1
    if size is None:
        return "is missing"
    end = start + descriptor.size_in_bytes + _FRAME_BYTES
    if size < end:
        return f"has {size} bytes, but the vector ends at {end}"
    with checker.files.open(path) as file:
        file_version = file.read(1)
        file.seek(start)
        decode(descriptor, file_version + file.read(end - start), offset=1)
    return None
