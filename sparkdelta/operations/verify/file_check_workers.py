"""Verification of data files and deletion vectors in Python workers.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-files, PROTOCOL.md#add-file-and-remove-file,
PROTOCOL.md#per-file-statistics, PROTOCOL.md#deletion-vector-file-storage-format
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

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

from sparkdelta.base.parquet.legacy_calendar_workers import DAY_MICROS, calendars
from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor, decode
from sparkdelta.base.schema.statistics_schema import leaves
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.storage.worker_files import StoredFiles
from sparkdelta.exceptions import DeletionVectorError

FINDINGS = StructType(
    [StructField(name, StringType(), False) for name in ("check", "path", "problem")]
)
"""The findings of a verification: the check that failed, the path, and the problem."""

Finding: TypeAlias = tuple[str, str, str]

DATA_FILE, DELETION_VECTOR, FOOTER = "data file", "deletion vector", "footer"
IS_MISSING = "is missing"
"""The problem of a file that does not exist."""

_THREADS = 16
_FRAME_BYTES = 8  # size and checksum around a deletion vector
_ARROW = pa.schema([(name, pa.string()) for name in FINDINGS.names])


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChecker:
    """Options of the verification of files.

    Attributes
    ----------
    files
        The access to files on workers.
    table_root
        The absolute, decoded path of the table.
    with_footers
        True to read the footer of each data file and compare its number of rows.
    columns
        The physical paths of the columns whose bounds are compared with the footer.
    """

    files: StoredFiles
    table_root: str
    with_footers: bool = False
    columns: tuple[tuple[str, ...], ...] = ()


def bounded_columns(statistics: StructType) -> tuple[tuple[str, ...], ...]:
    """Return the physical paths of the columns with bounds, in the order of `logged_bounds`."""
    return tuple(path for path, _ in _bounded(statistics))


def logged_bounds(stats_parsed: str, statistics: StructType) -> str:
    """Return SQL for the bounds and null counts of a file in the log.

    The type is STRUCT<low STRUCT, high STRUCT, nulls STRUCT, is_tight BOOLEAN>. The fields of the
    inner structs are named c0, c1, ... in the order of `bounded_columns`. Dates and timestamps are
    microseconds since the epoch.
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
    """Return SQL for microseconds since the epoch; Python does not support years after 9999."""
    if isinstance(data_type, DateType):
        return f"unix_date({value}) * {DAY_MICROS}L"
    if isinstance(data_type, TimestampType):
        return f"unix_micros({value})"
    if isinstance(data_type, TimestampNTZType):
        return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {value})"
    return value


def file_findings(files: DataFrame, checker: FileChecker) -> DataFrame:
    """Verify data files and deletion vectors, and return the problems.

    A data file must exist with the size in the log, and a deletion vector must match its
    descriptor. With `with_footers`, a data file must also have a valid footer and `numRecords`
    rows, and the bounds in the log must include the bounds of its row groups.

    Parameters
    ----------
    files
        file STRING (absolute, decoded), size LONG, numRecords LONG (null where unknown),
        deletionVector STRUCT, and bounds (`logged_bounds`) if the checker has columns. Each
        partition is a task.

    Returns
    -------
    DataFrame
        The columns of `FINDINGS`.
    """

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = findings_of(batch.to_pylist(), checker)
            columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
            if columns:
                yield pa.RecordBatch.from_arrays(columns, schema=_ARROW)

    return files.mapInArrow(check, FINDINGS)


def findings_of(files: list[dict[str, Any]], checker: FileChecker) -> list[Finding]:
    """Verify files given as dictionaries, see `file_findings`."""
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
        return IS_MISSING
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
    """Return the problem if the log's bounds or null counts do not match the footer."""
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
        stored = _StoredStatistics.of(column, is_old=is_old)
        footers = [chunk.statistics for chunk in chunks if chunk.statistics is not None]
        ranges = [statistics for statistics in footers if statistics.has_min_max]
        if stored and not all(stored.is_within(statistics, low, high) for statistics in ranges):
            return f"has values of {'.'.join(path)} that its bounds in the log leave out"
        if has_vector or nulls is None or len(footers) < len(chunks):
            continue
        if all(statistics.has_null_count for statistics in footers):
            count = sum(statistics.null_count for statistics in footers)
            if count != nulls:
                return f"has {count} nulls of {'.'.join(path)} instead of {nulls}"
    return None


_MICROS = {"milliseconds": 1000, "microseconds": 1}
_LONGEST_TEXT = 64
"""The length in bytes to which some writers truncate the bounds in footers."""


@dataclass(frozen=True, slots=True)
class _StoredStatistics:
    """Comparison of a Parquet column's statistics with bounds of the log.

    Attributes
    ----------
    factor
        The factor from a stored number to its value; None for strings.
    kind
        The logical type of the column.
    """

    factor: Fraction | None
    kind: str

    @classmethod
    def of(cls, column: pq.ColumnSchema, *, is_old: bool) -> _StoredStatistics | None:
        """Create the comparison for a column; None if its statistics cannot be compared."""
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
            return cls(Fraction(DAY_MICROS), kind)
        if kind == "None" or (kind == "Int" and logical["isSigned"]):
            return cls(Fraction(1), kind) if is_number else None
        return None

    def is_within(self, statistics: pq.Statistics, low: Any, high: Any) -> bool:
        """Return True if the bounds of a row group are within the bounds of the log."""
        least, greatest = statistics.min_raw, statistics.max_raw
        if self.factor is None:
            above = isinstance(low, str) and low.encode() > least and len(least) < _LONGEST_TEXT
            return not above and not (isinstance(high, str) and _is_below(high, greatest))
        return not (
            (_is_number(low) and Fraction(low) > self._value(least))
            or (
                _is_number(high) and Fraction(high) + self._truncated_micros < self._value(greatest)
            )
        )

    @property
    def _truncated_micros(self) -> int:
        """The microseconds by which a maximum may be too small: timestamps are truncated."""
        return 999 if self.kind == "Timestamp" else 0

    def _value(self, raw: Any) -> Any:
        assert self.factor is not None
        if isinstance(raw, bytes):
            return int.from_bytes(raw, "big", signed=True) * self.factor
        return raw * self.factor if isinstance(raw, int) else raw


def _is_number(bound: Any) -> bool:
    return isinstance(bound, int | Decimal) or (isinstance(bound, float) and math.isfinite(bound))


def _is_below(high: str, greatest: bytes) -> bool:
    """Return True if a string maximum of the log excludes a value of the footer.

    delta-spark before 3.3 truncated maxima and appended U+FFFD in place of the rest. Half of a
    surrogate pair before it became '?'.
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
        return IS_MISSING
    end = start + descriptor.size_in_bytes + _FRAME_BYTES
    if size < end:
        return f"has {size} bytes, but the vector ends at {end}"
    with checker.files.open(path) as file:
        file_version = file.read(1)
        file.seek(start)
        decode(descriptor, file_version + file.read(end - start), offset=1)
    return None
