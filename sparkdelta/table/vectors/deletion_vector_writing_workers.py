"""Writing of deletion vectors, on executors or on the driver.

References
----------
PROTOCOL.md#deletion-vectors, PROTOCOL.md#writer-requirement-for-deletion-vectors,
PROTOCOL.md#deletion-vector-files
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from sparkdelta.base.protocol.deletion_vectors import (
    DeletionVectorDescriptor,
    dv_file_name,
    file_content,
    z85_encode,
)
from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.base.protocol.file_paths import resolve
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.roaring_bitmaps import (
    Chunks,
    cardinality,
    chunks_of_words,
    encode_chunks,
    last_row,
    union,
)
from sparkdelta.base.protocol.wide_statistics import num_records, wide_statistics
from sparkdelta.base.schema.action_schemas import DELETION_VECTOR
from sparkdelta.base.storage.worker_files import StoredFiles
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.vectors.deletion_vector_workers import read_deletion_vector

FILE_KEY, ADD, WORD, BITS = "file_key", "add", "word", "bits"
VECTOR, STATS, OUTCOME = "vector", "stats", "outcome"
SIZE, NUM_RECORDS, NUM_DELETED, NUM_LEFT, HAD_VECTOR = (
    "size", "numRecords", "num_deleted", "num_left", "had_vector",
)  # fmt: skip

TOUCHED = StructType(
    [
        StructField(ADD, StringType()),
        StructField(VECTOR, DELETION_VECTOR),
        StructField(STATS, StringType()),
        StructField(OUTCOME, StringType()),
        StructField(SIZE, LongType()),
        StructField(NUM_RECORDS, LongType()),
        StructField(NUM_DELETED, LongType()),
        StructField(NUM_LEFT, LongType()),
        StructField(HAD_VECTOR, BooleanType()),
    ]
)
"""One row per data file whose rows are deleted.

add: its add action as JSON, without a wrapper; vector: all its deleted rows, null if no row is
left; stats: its statistics with that vector, null unless it keeps it; outcome: an `Outcome`; size:
in bytes; numRecords: its rows, deleted ones included; num_deleted: the rows that no earlier vector
deletes; num_left: the rows that are left; had_vector: True if it had a vector before.
"""

VECTOR_ARROW, TOUCHED_ARROW = to_arrow_type(DELETION_VECTOR), to_arrow_schema(TOUCHED)

VECTOR_FILE_BYTES = 2 * 1024 * 1024
"""A deletion vector file is complete when it has this size."""

_BATCH_ROWS = 1000

JsonText: TypeAlias = str


class Outcome(str, Enum):
    """The treatment of a data file: no row is left, it keeps a vector, or it is rewritten."""

    REMOVED = "removed"
    VECTOR = "vector"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorWriter:
    """A writer of the deletion vectors of data files whose rows are deleted.

    Each call writes files with new names: a task that runs twice leaves files to which nothing
    refers.

    Attributes
    ----------
    table_root
        The absolute, decoded path of the table.
    directory
        The directory for vectors that files keep, relative to the table's root.
    scratch
        The same for vectors that are needed only to read the rows of a file to be rewritten.
    max_deleted_share
        The share of a file's rows that a vector may delete; else the file is rewritten.
    version
        The table's version, for error messages.
    """

    files: StoredFiles
    table_root: str
    directory: str
    scratch: str
    max_deleted_share: float
    version: Version

    def write(self, touched: Iterable[tuple[JsonText, Chunks]]) -> Iterator[dict[str, Any]]:
        """Write the vectors of files and yield the rows of `TOUCHED`.

        `touched` has the add action of each file as JSON, and the bitmap of the rows to delete. A
        row that the file does not have is a DELTA_DELETION_VECTOR_INVALID_ROW_INDEX.
        """
        kept, scratch = _Pack(self, self.directory), _Pack(self, self.scratch)
        for text, rows in touched:
            row, chunks = self._decided(text, rows)
            if not row[NUM_DELETED]:
                continue
            if row[OUTCOME] == Outcome.REMOVED:
                yield row
                continue
            pack = kept if row[OUTCOME] == Outcome.VECTOR else scratch
            pack.append(row, encode_chunks(chunks))
            if pack.num_bytes >= VECTOR_FILE_BYTES:
                yield from pack.written()
        yield from kept.written()
        yield from scratch.written()

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Convert batches of FILE_KEY, ADD, WORD and BITS, see `write_deletion_vectors`."""
        rows: list[dict[str, Any]] = []
        for row in self.write(self._by_file(batches)):
            rows.append(row)
            if len(rows) == _BATCH_ROWS:
                yield pa.RecordBatch.from_pylist(rows, schema=TOUCHED_ARROW)
                rows = []
        yield pa.RecordBatch.from_pylist(rows, schema=TOUCHED_ARROW)

    def _decided(self, text: JsonText, rows: Chunks) -> tuple[dict[str, Any], Chunks]:
        add = AddFile.from_dict(json.loads(text))
        old = add.deletion_vector
        chunks, before = rows, 0
        if old is not None:
            chunks = union(
                read_deletion_vector(old, files=self.files, table_root=self.table_root), rows
            )
            before = old.cardinality
        file = resolve(self.table_root, add.path)
        total = num_records(add.stats)
        if total is None:
            with self.files.open(file) as source:
                total = int(pq.read_metadata(source).num_rows)
        last = last_row(chunks)
        if last is not None and last >= total:
            raise DeltaError.of(
                "DELTA_DELETION_VECTOR_INVALID_ROW_INDEX",
                file=file,
                row_index=last,
                num_records=total,
            )
        deleted = cardinality(chunks)
        outcome = self._outcome(deleted, total)
        stats = None
        if outcome is Outcome.VECTOR:
            stats = wide_statistics(add.stats, num_records=total, cardinality=before)
        row = {
            ADD: text,
            VECTOR: None,
            STATS: stats,
            OUTCOME: outcome.value,
            SIZE: add.size,
            NUM_RECORDS: total,
            NUM_DELETED: deleted - before,
            NUM_LEFT: total - deleted,
            HAD_VECTOR: old is not None,
        }
        return row, chunks

    def _outcome(self, deleted: int, total: int) -> Outcome:
        if deleted == total:
            return Outcome.REMOVED
        is_kept = deleted <= self.max_deleted_share * total
        return Outcome.VECTOR if is_kept else Outcome.REWRITTEN

    def _by_file(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[JsonText, Chunks]]:
        for pieces in _by_key(batches):
            group = pa.Table.from_batches(pieces)
            adds = group[ADD].drop_null().to_pylist()
            if len(adds) != 1:
                files = [AddFile.from_dict(json.loads(add)).path for add in adds]
                raise DeltaError.of("DELTA_DATA_FILE_NOT_READ", files=files, version=self.version)
            words = group.filter(group[WORD].is_valid())
            yield adds[0], chunks_of_words(words[WORD].to_numpy(), words[BITS].to_numpy())


def write_deletion_vectors(rows: DataFrame, writer: DeletionVectorWriter) -> DataFrame:
    """Write the deletion vectors of data files whenever the DataFrame, of `TOUCHED`, is computed.

    Parameters
    ----------
    rows
        file_key LONG, add STRING, word LONG, bits LONG: for each file a row with its add action as
        JSON, and rows of `table.vectors.row_position_frames.position_words`, in which it is null.
        The rows of one file follow one another in one partition.
    """
    return rows.select(FILE_KEY, ADD, WORD, BITS).mapInArrow(writer.read, TOUCHED)


def write_vector_file(
    vectors: Sequence[tuple[bytes, int]],
    files: StoredFiles,
    table_root: str,
    directory: str,
) -> list[DeletionVectorDescriptor]:
    """Write deletion vectors, each with its number of rows, to one new file.

    The directory is relative to the table's root, and may be empty.
    """
    name = directory + z85_encode(uuid4().bytes)
    content, offsets = file_content(data for data, _ in vectors)
    with files.create(f"{table_root}/{dv_file_name(name)}") as file:
        file.write(content)
    return [
        DeletionVectorDescriptor("u", name, offset, len(data), count)
        for (data, count), offset in zip(vectors, offsets, strict=True)
    ]


def _by_key(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield the rows of each file as slices of batches, which may hold several files or a part."""
    pieces: list[pa.RecordBatch] = []
    for batch in batches:
        keys = batch.column(FILE_KEY).to_numpy()
        ends = [*(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
        start = 0
        for end in ends:
            if pieces and end > start and pieces[0].column(FILE_KEY)[0].as_py() != keys[start]:
                yield pieces
                pieces = []
            if end > start:
                pieces.append(batch.slice(start, end - start))
            start = end
    if pieces:
        yield pieces


@dataclass(slots=True)
class _Pack:
    """Vectors for one file of a directory."""

    writer: DeletionVectorWriter
    directory: str
    rows: list[tuple[dict[str, Any], bytes]] = field(default_factory=list)
    num_bytes: int = 0

    def append(self, row: dict[str, Any], data: bytes) -> None:
        self.rows.append((row, data))
        self.num_bytes += len(data)

    def written(self) -> list[dict[str, Any]]:
        """Write the file and return the rows with their descriptors."""
        rows, self.rows, self.num_bytes = self.rows, [], 0
        if not rows:
            return []
        vectors = [(data, row[NUM_RECORDS] - row[NUM_LEFT]) for row, data in rows]
        descriptors = write_vector_file(
            vectors, self.writer.files, self.writer.table_root, self.directory
        )
        return [
            {**row, VECTOR: descriptor.to_dict()}
            for (row, _), descriptor in zip(rows, descriptors, strict=True)
        ]
