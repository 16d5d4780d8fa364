"""Copies of new data files with field ids that Spark's Parquet writer cannot write.

References
----------
PROTOCOL.md#writer-requirements-for-icebergcompatv2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from sparkdelta.base.parquet.footer_rules import TAIL_BYTES, footer_bytes, with_field_ids
from sparkdelta.base.storage.worker_files import WorkerFiles
from sparkdelta.table.rows.footer_statistics_workers import ADDED, LISTED, FooterReader

_CHUNK_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileCopier:
    """A job that copies files byte by byte and changes the field ids in their footers.

    Attributes
    ----------
    files
        The access to files on workers.
    source, target
        The directories of the files and of their copies, with the same subdirectories.
    field_ids
        The field id of each field, by its path of names in the file.
    """

    files: WorkerFiles
    source: str
    target: str
    field_ids: Mapping[tuple[str, ...], int]

    def copy(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copy the files of batches with a column `path`, except those without rows.

        Yields
        ------
        pa.RecordBatch
            path STRING, length LONG (bytes), modificationTime LONG (milliseconds since the epoch)
            of the copies.
        """
        for batch in batches:
            rows = [row for path in batch.column("path").to_pylist() for row in self._copies(path)]
            yield pa.RecordBatch.from_pylist(rows, schema=LISTED)

    def _copies(self, path: str) -> Iterator[dict[str, str | int]]:
        directory, _, name = path.removeprefix(self.source).rpartition("/")
        # A unique name per attempt, because an abandoned attempt may still be writing.
        copy = f"{self.target}{directory}/{uuid4()}-{name}"
        with self.files.open(path) as file:
            if pq.read_metadata(file).num_rows == 0:
                return
            with self.files.create(copy) as written:
                length = self._write(file, written)
        modified = self.files.modification_time(copy)
        yield {"path": copy, "length": length, "modificationTime": modified}

    def _write(self, file: pa.NativeFile, written: pa.NativeFile) -> int:
        end = int(file.size()) - TAIL_BYTES
        file.seek(end)
        tail = file.read(TAIL_BYTES)
        begin = end - footer_bytes(tail)
        file.seek(begin)
        footer = with_field_ids(file.read(end - begin), self.field_ids)
        file.seek(0)
        for at in range(0, begin, _CHUNK_BYTES):
            written.write(file.read(min(_CHUNK_BYTES, begin - at)))
        written.write(footer + len(footer).to_bytes(4, "little") + tail[4:])
        return begin + len(footer) + TAIL_BYTES


def copied_files(files: DataFrame, copier: FileCopier, reader: FooterReader) -> DataFrame:
    """Copy files, and return the fields of the add actions of the copies.

    The files are copied whenever the DataFrame is computed.

    Parameters
    ----------
    files
        path STRING (absolute, decoded).

    Returns
    -------
    DataFrame
        The columns of `ADDED`, one row per file that has rows.
    """

    def copy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return reader.read(copier.copy(batches))

    return files.mapInArrow(copy, ADDED)
