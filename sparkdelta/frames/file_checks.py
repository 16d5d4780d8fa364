"""Whether the files that a version needs are there, looked at by Python workers.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-files
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.exceptions import DeletionVectorError
from sparkdelta.protocol.deletion_vectors import DeletionVectorDescriptor, decode

FINDINGS = StructType(
    [StructField(name, StringType(), False) for name in ("check", "path", "problem")]
)
"""What a verification finds: which check, about what, and what is wrong."""

LOOKED_AT = ("file", "size", "numRecords", "deletionVector")
"""What is known of a file, see `file_findings`."""

Finding: TypeAlias = tuple[str, str, str]

DATA_FILE, DELETION_VECTOR, FOOTER = "data file", "deletion vector", "footer"

_THREADS = 16
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
    """

    files: StoredFiles
    table_root: str
    with_footers: bool = False


def file_findings(files: DataFrame, checker: FileChecker) -> DataFrame:
    """What is wrong with data files and deletion vectors: `FINDINGS`.

    A file must be there with the logged size; a deletion vector must be what its descriptor says;
    with footers, a file must have one, and `numRecords` be the number of its rows.

    Parameters
    ----------
    files
        file STRING (absolute, decoded), size LONG, numRecords LONG (null where unknown),
        deletionVector STRUCT, in as many partitions as tasks are wanted.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vector-file-storage-format
    """

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = findings_of(batch.to_pylist(), checker)
            columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
            if columns:
                yield pa.RecordBatch.from_arrays(columns, schema=_ARROW)

    return files.select(*LOOKED_AT).mapInArrow(check, FINDINGS)


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
            rows = pq.ParquetFile(file).metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        return f"cannot be read: {error}"
    expected = row["numRecords"]
    is_right = expected is None or rows == expected
    return None if is_right else f"has {rows} rows instead of {expected}"


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
