"""Deletion vectors of compacted files, for rows that were deleted in the old files meanwhile.

Spark copies the files of a bin in the order of their sizes, but no interface of it says so, and it
may split large files. So a vector is used only if the rows that it deletes are equal to those that
were deleted in the old files, with their row ids where the table has any.

References
----------
PROTOCOL.md#deletion-vectors, PROTOCOL.md#writer-requirement-for-deletion-vectors
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from sparkdelta.base.parquet.parquet_options import is_hidden
from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.base.protocol.file_paths import plain_path, resolve
from sparkdelta.base.protocol.roaring_bitmaps import Chunks, cardinality, encode_chunks
from sparkdelta.base.protocol.table_properties import max_deleted_share
from sparkdelta.base.protocol.wide_statistics import num_records, wide_statistics
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.worker_storage import driver_files
from sparkdelta.base.storage.worker_files import StoredFiles
from sparkdelta.operations.compaction.moved_row_rules import CopiedFile, deleted_since
from sparkdelta.table.log.state import NUM_RECORDS
from sparkdelta.table.rows.removed_files import row_id_columns
from sparkdelta.table.rows.row_changes import ROW_IDS
from sparkdelta.table.scan.scan_request import (
    BASE_ROW_ID,
    CHANGE_KIND,
    DEFAULT_ROW_COMMIT_VERSION,
    MetadataColumn,
)
from sparkdelta.table.scan.split_workers import ONLY
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.vectors.deletion_vector_workers import read_deletion_vector
from sparkdelta.table.vectors.deletion_vector_writing_workers import write_vector_file

MAX_MOVED_FILES = 100
"""The most files whose new vectors are moved at once, as they are read one after the other."""

MAX_MOVED_ROWS = 10_000
"""The most rows whose deletion is moved at once, as the driver compares them."""

VECTOR = "deletionVector"

_FILE = MetadataColumn.FILE


@dataclass(frozen=True, slots=True, eq=False)
class CopiedBin:
    """The files of a bin whose live rows were copied to one new file.

    Attributes
    ----------
    before, now
        The files as they were read, and as a later version has them, in the same order and as
        `described_files` gives them.
    added
        The new file.
    """

    before: pa.Table
    now: pa.Table
    added: AddFile

    @property
    def files(self) -> list[dict[str, Any]]:
        """The files as they were read, with the later vector in `ONLY`."""
        later = self.now[VECTOR].to_pylist()
        return [
            {**file, ONLY: vector}
            for file, vector in zip(self.before.to_pylist(), later, strict=True)
        ]

    @property
    def changed(self) -> list[dict[str, Any]]:
        """The files whose vector is another one now."""
        return [file for file in self.files if file[VECTOR] != file[ONLY]]

    def deleted_rows(self, vectors: _Vectors) -> Chunks | None:
        """Return the rows of the new file that were deleted meanwhile; None if they are not
        known.
        """
        files = self.files
        if any(file[NUM_RECORDS] is None or is_hidden(file["file"]) for file in files):
            return None
        copied = []
        # `NativeScan` reads files without a vector first; Spark sorts each group by size.
        for file in sorted(files, key=lambda file: (file[VECTOR] is not None, -file["size"])):
            before, num_rows = file[VECTOR], file[NUM_RECORDS]
            num_rows -= 0 if before is None else before["cardinality"]
            is_same = before == file[ONLY]
            rows = () if is_same else (vectors.rows(before), vectors.rows(file[ONLY]))
            copied.append(CopiedFile(num_rows, *rows))
        is_whole = sum(each.num_rows for each in copied) == num_records(self.added.stats)
        return deleted_since(copied) if is_whole else None


@dataclass(slots=True, eq=False)
class _Vectors:
    """The deletion vectors of a table, each of which is read once."""

    table_root: str
    files: StoredFiles
    read: dict[str, Chunks] = field(default_factory=dict)

    def rows(self, described: dict[str, Any] | None) -> Chunks:
        if described is None:
            return {}
        vector = DeletionVectorDescriptor.from_dict(described)
        key = vector.unique_id
        if key not in self.read:
            self.read[key] = read_deletion_vector(
                vector, files=self.files, table_root=self.table_root
            )
        return self.read[key]

    def write(self, bitmaps: Sequence[Chunks]) -> list[DeletionVectorDescriptor]:
        """Write bitmaps to one file."""
        encoded = [(encode_chunks(rows), cardinality(rows)) for rows in bitmaps]
        return write_vector_file(encoded, self.files, self.table_root, "")


def with_moved_vectors(
    bins: Sequence[CopiedBin], snapshot: Snapshot, places: list[str]
) -> list[tuple[AddFile, ...] | None]:
    """Return the new file of each bin with a deletion vector of the rows that were deleted
    meanwhile: no file if none of its rows is left, None if it is not known which rows these are.

    Parameters
    ----------
    snapshot
        The later version.
    places
        Gets the absolute path of the file with the vectors.
    """
    found: list[tuple[AddFile, ...] | None] = [None] * len(bins)
    has_vectors = max_deleted_share(snapshot.protocol, snapshot.properties) > 0
    if not has_vectors or sum(len(each.changed) for each in bins) > MAX_MOVED_FILES:
        return found
    log = snapshot.log
    vectors = _Vectors(snapshot.path, driver_files(log.spark, snapshot.path, log.options))
    partly: dict[int, Chunks] = {}
    for number, each in enumerate(bins):
        rows = each.deleted_rows(vectors)
        if rows is None:
            continue
        if cardinality(rows) == num_records(each.added.stats):
            found[number] = ()
        elif cardinality(rows):
            partly[number] = rows
        else:
            found[number] = (each.added,)
    if not partly or sum(map(cardinality, partly.values())) > MAX_MOVED_ROWS:
        return found
    written = vectors.write([*partly.values()])
    places.append(str(written[0].absolute_path(snapshot.path)))
    new = {n: _with_vector(bins[n].added, v) for n, v in zip(partly, written, strict=True)}
    for number in _of_equal_rows(bins, new, snapshot):
        found[number] = (new[number],)
    return found


def _with_vector(add: AddFile, vector: DeletionVectorDescriptor) -> AddFile:
    records = num_records(add.stats)
    assert records is not None
    stats = wide_statistics(add.stats, num_records=records, cardinality=0)
    return replace(add, deletion_vector=vector, stats=stats)


def _of_equal_rows(
    bins: Sequence[CopiedBin], new: Mapping[int, AddFile], snapshot: Snapshot
) -> list[int]:
    """Return the numbers of the bins whose new file has equal rows where its vector deletes them as
    the old files have where they were deleted.
    """
    files, places = [], {}
    for number, add in new.items():
        copied, vector = bins[number], add.deletion_vector
        assert vector is not None
        added = {
            **copied.files[0],
            "file": resolve(snapshot.path, add.path),
            "size": add.size,
            VECTOR: None,
            ONLY: vector.to_dict(),
            NUM_RECORDS: num_records(add.stats),
            BASE_ROW_ID: None,
            DEFAULT_ROW_COMMIT_VERSION: None,
        }
        for file in (*copied.changed, added):
            files.append(file)
            places[plain_path(file["file"])] = number, file is added
    described = bins[0].before.schema
    schema = pa.schema([*described, (ONLY, described.field(VECTOR).type), (CHANGE_KIND, "string")])
    row_ids = ROW_IDS if row_id_columns(snapshot) else ()
    scan = snapshot.scan().with_changes()
    rows = scan.rows_of(pa.Table.from_pylist(files, schema), _FILE, *row_ids)
    wanted = (*snapshot.schema.names, *(column.value for column in (_FILE, *row_ids)))
    table = read_table(
        rows.select(*map(quoted, wanted)),
        what="rows whose deletion is moved",
        bound=2 * MAX_MOVED_ROWS,
        version=snapshot.version,
    )
    deleted: dict[tuple[int, bool], Counter[str]] = {}
    for row in _values(table):
        place = places[plain_path(row.pop(_FILE.value))]
        deleted.setdefault(place, Counter())[repr(row)] += 1  # 0.0 and -0.0 differ, NaN does not
    return [n for n in new if deleted.get((n, False)) == deleted.get((n, True), Counter())]


def _values(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows as values; none if Python has no such values, as dates after the year 9999."""
    try:
        return list(rows.to_pylist())
    except (ValueError, OverflowError):
        return []
