"""Reading of splits of data files in Python workers, from Parquet to batches of Arrow.

References
----------
PROTOCOL.md#deletion-vectors, PROTOCOL.md#reader-requirements-for-row-tracking
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.parquet.legacy_calendar_workers import NotConvertibleError, calendars
from sparkdelta.base.parquet.parquet_column_workers import FileColumns, find_columns
from sparkdelta.base.parquet.parquet_schema_workers import file_schema
from sparkdelta.base.parquet.parquet_value_workers import arrow_field
from sparkdelta.base.parquet.row_group_workers import (
    RowGroup,
    RowGroupBound,
    leaf_bounds,
    row_groups,
)
from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_paths import plain_path
from sparkdelta.base.protocol.roaring_bitmaps import Chunks, deleted_rows
from sparkdelta.base.storage.worker_files import StoredFiles
from sparkdelta.exceptions import DeltaError, StorageError
from sparkdelta.table.scan.file_split_workers import END, START
from sparkdelta.table.vectors.deletion_vector_workers import read_deletion_vector

BATCH_ROWS = 32 * 1024
BATCH_BYTES = 16 * 1024 * 1024
"""The limits of a decoded batch; its bytes are estimated by the footer."""

FILE, VECTOR = "file", "deletionVector"
ONLY = "__sparkdelta_only"
"""The column of the splits with the vector of the only rows to read; null for all rows."""


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of the rows.

    Attributes
    ----------
    field
        Its name, and its type without `void`.
    stored
        The field in data files, see `base.schema.column_mapping.physical_field`; None if they do
        not have it.
    default
        The column of the splits whose value stands where the file has none; None for null. Of
        FILE, the path in the spelling of `base.protocol.file_paths.plain_path`.
    adds_position
        True if the row's position in its file is added to the default; it is the value itself
        where there is no default.
    """

    field: StructField
    stored: StructField | None = None
    default: str | None = None
    adds_position: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitReader:
    """A reader of splits on a worker.

    Attributes
    ----------
    bounds
        Bounds of the rows that are needed; other rows may be returned, too.
    version
        The table's version, for messages.
    """

    files: StoredFiles
    columns: tuple[RowColumn, ...]
    table_root: str
    version: int | None
    bounds: tuple[RowGroupBound, ...] = ()
    batch_rows: int = BATCH_ROWS
    batch_bytes: int = BATCH_BYTES

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the rows of splits, see `split_rows`."""
        schema = pa.schema([arrow_field(c.field.name, c.field.dataType) for c in self.columns])
        splits = (batch.slice(n, 1) for batch in batches for n in range(batch.num_rows))
        rows = (part for split in splits for part in _Split(self, schema, split).rows())
        return _joined(rows, self.batch_rows // 8, self.batch_bytes // 8)


def _joined(
    batches: Iterator[pa.RecordBatch], enough_rows: int, enough_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in fewer batches, as each batch costs Spark some time."""
    small: list[pa.RecordBatch] = []
    num_rows = num_bytes = 0
    for batch in batches:
        small.append(batch)
        num_rows += batch.num_rows
        num_bytes += batch.nbytes
        if num_rows >= enough_rows or num_bytes >= enough_bytes:
            yield from _as_one(small)
            small, num_rows, num_bytes = [], 0, 0
    yield from _as_one(small)


def _as_one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    return list(pa.Table.from_batches(batches).combine_chunks().to_batches())


def split_rows(splits: DataFrame, reader: SplitReader) -> DataFrame:
    """Read the rows of splits, without deleted rows.

    Parameters
    ----------
    splits
        file STRING (absolute, decoded), deletionVector STRUCT and ONLY STRUCT (if files may have
        them), START LONG and END LONG (see `file_splits`), and the columns with defaults.

    Returns
    -------
    DataFrame
        The columns of the reader, in their order.

    Raises
    ------
    DELTA_FILE_NOT_FOUND, StorageError, DELTA_DATA_FILE_UNSUPPORTED, DeletionVectorError
        A file cannot be read. Raised when the query runs.
    """
    schema = StructType([column.field for column in reader.columns])
    return splits.mapInArrow(reader.read, schema)


@dataclass(frozen=True, slots=True)
class _Split:
    """One split, and its reader."""

    reader: SplitReader
    schema: pa.Schema
    split: pa.RecordBatch

    def rows(self) -> Iterator[pa.RecordBatch]:
        path = self._value(FILE)
        with self._errors(path), self.reader.files.open(path) as source:
            # Fewer, larger requests to remote storage.
            is_remote = not path.startswith("file:")
            file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=is_remote)
            columns, groups = self._plan(file)
            if not groups:
                return
            deleted, only = self._rows_of(VECTOR) or {}, self._rows_of(ONLY)
            for group in groups:
                position = group.first_row
                for stored in self._batches(file, group, columns.leaves):
                    yield from self._converted(stored, position, columns, deleted, only)
                    position += stored.num_rows

    def _plan(self, file: pq.ParquetFile) -> tuple[FileColumns, list[RowGroup]]:
        root, old = file_schema(file), calendars(file.metadata.metadata)
        pairs = [None if c.stored is None else (c.field, c.stored) for c in self.reader.columns]
        bounds = leaf_bounds(root, [pair for pair in pairs if pair], self.reader.bounds, old)
        groups = row_groups(file.metadata, self._value(START), self._value(END), bounds)
        return find_columns(root, pairs, old), list(groups)

    def _batches(
        self, file: pq.ParquetFile, group: RowGroup, leaves: tuple[int, ...]
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of a row group, in batches of limited size."""
        if not leaves:
            for start in range(0, group.num_rows, self.reader.batch_rows):
                count = min(self.reader.batch_rows, group.num_rows - start)
                yield pa.RecordBatch.from_arrays([pa.nulls(count)], [""])
            return
        metadata = file.metadata.row_group(group.number)
        num_bytes = sum(metadata.column(leaf).total_uncompressed_size for leaf in leaves)
        rows = self.reader.batch_bytes * group.num_rows // max(num_bytes, 1)
        rows = max(1, min(rows, self.reader.batch_rows))
        wanted = [group.number], list(leaves)
        if group.num_rows <= rows:
            yield from file.reader.read_row_groups(*wanted, use_threads=False).to_batches()
        else:
            yield from file.reader.iter_batches(rows, *wanted, use_threads=False)

    def _converted(
        self,
        stored: pa.RecordBatch,
        position: int,
        columns: FileColumns,
        deleted: Chunks,
        only: Chunks | None,
    ) -> Iterator[pa.RecordBatch]:
        kept = _kept(deleted, only, position, stored.num_rows)
        if kept is not None:
            stored = stored.filter(kept)
        if not stored.num_rows:
            return
        arrays = []
        for column, array, target in zip(
            self.reader.columns, columns.arrays(stored), self.schema, strict=True
        ):
            if array is None or column.default is not None or column.adds_position:
                default = self._default(column, target.type, stored.num_rows, position, kept)
                array = default if array is None else pc.coalesce(array, default)
            arrays.append(array)
        yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _default(
        self,
        column: RowColumn,
        target: pa.DataType,
        count: int,
        position: int,
        kept: pa.Array | None,
    ) -> pa.Array:
        if column.default == FILE:
            value = pa.scalar(plain_path(self._value(FILE)), target)
        elif column.default is not None:
            value = self.split.column(column.default).cast(target)[0]
        else:
            value = pa.scalar(0 if column.adds_position else None, target)
        if not value.is_valid or not column.adds_position:
            return pa.repeat(value, count)
        positions = np.arange(position, position + (count if kept is None else len(kept)))
        return pc.add(pa.array(positions if kept is None else positions[kept]), value)

    def _rows_of(self, vector: str) -> Chunks | None:
        fields = self._value(vector) if vector in self.split.schema.names else None
        if fields is None:
            return None
        descriptor = DeletionVectorDescriptor.from_dict(fields)
        path = descriptor.absolute_path(self.reader.table_root) or "inline"
        with self._errors(path):
            return read_deletion_vector(
                descriptor, files=self.reader.files, table_root=self.reader.table_root
            )

    def _value(self, name: str) -> Any:
        return self.split.column(name)[0].as_py()

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise DeltaError.of(
                "DELTA_FILE_NOT_FOUND", file=path, version=self.reader.version
            ) from error
        except NotConvertibleError as error:
            problem = str(error)
            raise DeltaError.of(
                "DELTA_DATA_FILE_UNSUPPORTED", file=path, column=error.column, problem=problem
            ) from error
        except (pa.ArrowException, OSError) as error:
            raise StorageError(path=path, problem=str(error).partition("\n")[0]) from error


def _kept(deleted: Chunks, only: Chunks | None, position: int, count: int) -> pa.Array | None:
    """Return a mask of the rows to keep in a range of the file; None for all of them."""
    if not count:
        return None
    flags = deleted_rows(deleted, position, count)
    kept = None if flags is None else ~flags
    if only is not None:
        chosen = deleted_rows(only, position, count)
        if chosen is None:
            chosen = np.zeros(count, np.bool_)
        kept = chosen if kept is None else kept & chosen
    return None if kept is None else pa.array(kept)
