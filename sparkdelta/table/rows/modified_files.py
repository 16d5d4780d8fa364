"""The data files whose rows an operation deletes, and their treatment.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors,
PROTOCOL.md#writer-requirement-for-deletion-vectors
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.base.parquet.parquet_options import WRITE_OPTIONS
from sparkdelta.base.protocol.deletion_vectors import (
    ENCODED_UUID_LENGTH,
    DeletionVectorDescriptor,
    dv_file_name,
)
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile
from sparkdelta.base.protocol.file_paths import resolve
from sparkdelta.base.protocol.log_files import LOG_DIRECTORY, data_directory
from sparkdelta.base.protocol.roaring_bitmaps import chunks_of_rows
from sparkdelta.base.protocol.table_properties import max_deleted_share as table_share
from sparkdelta.base.schema.checkpoint_schema import STATS_PARSED
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_row, read_rows, read_table
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import (
    driver_files,
    is_like_workers,
    table_of,
    worker_files,
)
from sparkdelta.base.storage.table_files import TableFiles
from sparkdelta.base.storage.worker_files import StoredFiles, WorkerFiles
from sparkdelta.exceptions import DeltaError, DriverReadTooLargeError
from sparkdelta.table.log.local_add_files import LocalAddFiles, keyed_adds
from sparkdelta.table.rows.modified_file_actions import action_rows, adds_before, new_actions
from sparkdelta.table.rows.modified_file_rows import rewritten_files
from sparkdelta.table.rows.orphans import delete_emptied, report_orphans
from sparkdelta.table.rows.removed_files import remove_actions
from sparkdelta.table.scan.scan_request import FileList, MetadataColumn
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import Staging
from sparkdelta.table.vectors.deletion_vector_writing_workers import (
    ADD,
    BITS,
    FILE_KEY,
    HAD_VECTOR,
    NUM_DELETED,
    NUM_LEFT,
    NUM_RECORDS,
    OUTCOME,
    SIZE,
    TOUCHED,
    TOUCHED_ARROW,
    VECTOR,
    VECTOR_ARROW,
    WORD,
    DeletionVectorWriter,
    Outcome,
    write_deletion_vectors,
)
from sparkdelta.table.vectors.row_position_frames import ROW_INDEX, file_key, position_words

MAX_READ_POSITIONS = 1_000_000
"""Up to this many positions of rows, in up to MAX_READ_FILES files, come to the driver, which
writes the vectors by itself: executors would take longer to start."""

MAX_READ_FILES = 1_000
MAX_READ_VECTORS = 100
"""Up to this many earlier vectors are read by the driver, one after the other."""

MAX_TOUCHED_FILES = 10_000
"""Up to this many touched files are known to the driver one by one."""

_POSITION_BYTES = 8  # of a position in a staged file, at most, apart from its header and footer
_TASK_BYTES = 4 << 20  # of staged positions
_PART = "positions"

_POSITIONS = StructType([StructField(FILE_KEY, LongType()), StructField(ROW_INDEX, LongType())])


class _Limits(NamedTuple):
    """Limits of what the driver reads and writes by itself."""

    positions: int
    files: int
    vectors: int


_FAR = _Limits(10_000_000, MAX_TOUCHED_FILES, MAX_TOUCHED_FILES)
"""The limits on storages that workers may not reach, such as HDFS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifiedFiles:
    """Data files with rows that an operation deletes.

    Attributes
    ----------
    adds, removes
        A remove of each file, and an add of each file that gets a deletion vector, if the driver
        holds them. The commit sets the time of the removes.
    actions
        The actions of the files that the driver does not know, in columns `remove` and `add`, one
        of them in each row. May be evaluated repeatedly, and differs in the time of removes alone;
        None without such files.
    deleted
        `TOUCHED` of the files, for `table.rows.modified_file_rows`; None if whole files are
        removed. Of use as long as the staging directory.
    rewritten
        The files whose other rows are to be written again, see
        `modified_file_rows.rewritten_files`; None if there are none. Of use as long as the staging
        directory.
    paths
        The absolute, decoded paths of all touched files; None if they are too many for the driver.
    num_rows
        The rows to delete; None if it is not known.
    num_file_rows
        The rows that these files have before; 0 if whole files are removed.
    num_removed_files, num_removed_bytes
        Of the files that leave the table, those that are rewritten among them.
    num_copied_rows
        The rows that are left of the rewritten files.
    places
        Of the new deletion vectors, see `orphans.report_orphans`.
    num_vectors_added, num_vectors_removed, num_vectors_updated
        The numbers of new, dropped and replaced deletion vectors.
    """

    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    actions: DataFrame | None = None
    deleted: pa.Table | DataFrame | None = None
    rewritten: FileList | None = None
    paths: tuple[str, ...] | None = ()
    num_files: int = 0
    num_rows: int | None = 0
    num_file_rows: int = 0
    num_removed_files: int = 0
    num_removed_bytes: int = 0
    num_copied_rows: int = 0
    num_vectors_added: int = 0
    num_vectors_removed: int = 0
    num_vectors_updated: int = 0
    places: tuple[str, ...] = ()


NO_FILES = ModifiedFiles()


def whole_files(
    snapshot: Snapshot, adds: DataFrame, *, data_change: bool = True, is_counted: bool = True
) -> ModifiedFiles:
    """Return files all of whose rows are deleted, so that the files are removed without being read.

    Parameters
    ----------
    adds
        As `Snapshot.add_files` gives them.
    is_counted
        False to start no job: all numbers are 0.
    """
    removed = ModifiedFiles(actions=remove_actions(adds, data_change=data_change), paths=None)
    if not is_counted:
        return removed
    deleted = F.coalesce(F.col("deletionVector.cardinality"), F.lit(0))
    num_rows = F.col(STATS_PARSED)[NUM_RECORDS] - deleted
    row = read_row(
        adds.agg(
            F.count("*").alias("files"),
            F.sum("size").alias("bytes"),
            F.sum(num_rows).alias("rows"),
            F.count_if(num_rows.isNull()).alias("unknown"),
            F.count("deletionVector.storageType").alias("vectors"),
        ),
        what="totals of removed files",
        version=snapshot.version,
    )
    if not row["files"]:
        return NO_FILES
    return replace(
        removed,
        num_files=row["files"],
        num_rows=None if row["unknown"] else row["rows"],
        num_removed_files=row["files"],
        num_removed_bytes=row["bytes"],
        num_vectors_removed=row["vectors"],
    )


def keyed_positions(rows: DataFrame) -> DataFrame:
    """Return the positions of rows with `MetadataColumn.FILE` and `MetadataColumn.ROW_POSITION`, in
    the columns file_key LONG and row_index LONG.
    """
    file, row_index = MetadataColumn.FILE.value, MetadataColumn.ROW_POSITION.value
    key = file_key(quoted(file))
    return rows.selectExpr(f"{key} AS {FILE_KEY}", f"{quoted(row_index)} AS {ROW_INDEX}")


def modify_files(
    snapshot: Snapshot,
    positions: pa.Table | DataFrame,
    stage: Staging,
    *,
    max_deleted_share: float | None = None,
    adds: LocalAddFiles | DataFrame | None = None,
    num_staged: int | None = None,
) -> ModifiedFiles:
    """Write the deletion vectors of rows to delete, into a directory of their own from which they
    are moved as `data_files.write_data_files` moves data files.

    A file without other rows is removed; others keep the vector, or are rewritten.

    Parameters
    ----------
    positions
        As `keyed_positions` gives them; a table if the driver has them. Rows may repeat.
    max_deleted_share
        See `base.protocol.table_properties.max_deleted_share`; by default, that of the table.
    stage
        A directory for intermediate files; needed until the commit.
    adds
        The files that may have such rows; a DataFrame as `Scan.files` gives it with `stats`. By
        default, all of the table.
    num_staged
        The number of positions, if they are staged; by default, they are evaluated once.

    Raises
    ------
    DELTA_DELETION_VECTOR_INVALID_ROW_INDEX
        A file does not have such a row.
    DeletionVectorError
        A file's earlier vector is damaged.
    DELTA_DATA_FILE_NOT_READ
        A file is not in the table.
    """
    among = snapshot.add_files() if adds is None else adds
    table = snapshot.configuration
    if max_deleted_share is None:
        max_deleted_share = table_share(table.protocol, table.properties)
    touching = _Touching(snapshot, stage, max_deleted_share, among, data_directory(str(uuid4())))
    with report_orphans(snapshot.path, touching.places, touching.files):
        return touching.result(positions, num_staged)


@dataclass(frozen=True, slots=True)
class _Touching:
    snapshot: Snapshot
    stage: Staging
    max_deleted_share: float
    adds: LocalAddFiles | DataFrame
    directory: str
    places: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.places.append(f"{self.snapshot.path}/{self.directory}/")

    @property
    def files(self) -> TableFiles:
        return self.snapshot.log.store.table_files()

    def result(self, positions: pa.Table | DataFrame, num_staged: int | None) -> ModifiedFiles:
        if isinstance(positions, DataFrame) and num_staged is None:
            positions = self._read_few(positions)
        files, limits = self._driver_files()
        read: Callable[..., pa.Table] | None = None
        if isinstance(positions, pa.Table):
            num_bytes, num_files = positions.num_rows * _POSITION_BYTES, 1
        elif num_staged is not None:
            num_bytes, num_files = num_staged * _POSITION_BYTES, 1
        else:
            entries = self.stage.write_parquet(positions, _PART, WRITE_OPTIONS)
            positions, _ = self.stage.read_parquet(_PART, _POSITIONS)
            num_bytes, num_files = sum(entry.size_bytes for entry in entries), len(entries)
            if is_like_workers(files):  # without a job
                read = partial(self.stage.read_table, _PART, what="positions of deleted rows")
        read = read or partial(self._read_positions, positions)
        is_much = num_bytes > limits.positions * _POSITION_BYTES or num_files > limits.files
        table = None if is_much else self._by_driver(read, files, limits)
        if table is None:
            if isinstance(positions, pa.Table):
                positions = local_frame(self.stage.spark, positions, _POSITIONS)
            return self._by_executors(positions, num_bytes)
        return self._touched(table)

    def _read_few(self, positions: DataFrame) -> pa.Table | DataFrame:
        """Return positions as a table if the files have so few rows that the driver may read all:
        to stage them takes longer.
        """
        most = self.adds.num_rows if isinstance(self.adds, LocalAddFiles) else None
        if most is not None and most <= MAX_READ_POSITIONS:
            with suppress(DriverReadTooLargeError):  # the statistics are wrong
                return self._read_positions(positions, MAX_READ_POSITIONS)
        return positions

    def _by_driver(
        self, read: Callable[..., pa.Table], files: StoredFiles, limits: _Limits
    ) -> pa.Table | None:
        """Write the vectors on the driver and return `TOUCHED`; None if it is too much for it.

        Parameters
        ----------
        read
            Reads the positions, up to `bound`.
        """
        try:
            rows = read(bound=limits.positions)
        except DriverReadTooLargeError:
            return None
        keys = rows[FILE_KEY].to_numpy()
        order = np.argsort(keys, kind="stable")
        keys, row_indexes = keys[order], rows[ROW_INDEX].to_numpy()[order]
        starts = np.flatnonzero(np.diff(keys)) + 1
        distinct = [*keys[:1].tolist(), *keys[starts].tolist()]
        if len(distinct) > limits.files:
            return None
        adds = self._adds_by_key(distinct)
        known = [AddFile.from_dict(json.loads(add)) for add in adds.values()]
        stored = [add for add in known if add.deletion_vector and not add.deletion_vector.is_inline]
        if len(stored) > limits.vectors:
            return None
        parts = np.split(row_indexes, starts)
        touched = [
            (adds[key], chunks_of_rows(part)) for key, part in zip(distinct, parts, strict=False)
        ]
        writer = self._writer(self._worker_files())

        def written(near: StoredFiles) -> pa.Table:
            rows = replace(writer, files=near).write(touched)
            return pa.Table.from_pylist(list(rows), TOUCHED_ARROW)

        return table_of(files, written)

    def _read_positions(self, positions: pa.Table | DataFrame, bound: int) -> pa.Table:
        if isinstance(positions, pa.Table):
            return positions
        return read_table(
            positions,
            what="positions of deleted rows",
            bound=bound,
            version=self.snapshot.version,
        )

    def _adds_by_key(self, keys: Sequence[int]) -> dict[int, str]:
        """Return the add actions of files as JSON, by the keys of their paths."""
        if not keys:
            return {}
        if isinstance(self.adds, LocalAddFiles):
            texts = self.adds.texts
        else:
            wanted = ", ".join(f"{key}L" for key in keys)
            texts = read_table(
                self._keyed_adds(self.adds).filter(f"{FILE_KEY} IN ({wanted})"),
                what="touched files",
                bound=2 * len(keys),
                version=self.snapshot.version,
            )
        texts = texts.filter(pc.is_in(texts[FILE_KEY], pa.array(keys, pa.int64())))
        found = dict(zip(texts[FILE_KEY].to_pylist(), texts[ADD].to_pylist(), strict=True))
        if texts.num_rows != len(keys) or len(found) != len(keys):
            files = [AddFile.from_dict(json.loads(add)).path for add in texts[ADD].to_pylist()]
            raise DeltaError.of(
                "DELTA_DATA_FILE_NOT_READ", files=files, version=self.snapshot.version
            )
        return found

    def _by_executors(self, staged: DataFrame, num_bytes: int) -> ModifiedFiles:
        nothing = F.lit(None)
        keys = staged.select(FILE_KEY).distinct()
        known = self.adds
        adds = known.keyed if isinstance(known, LocalAddFiles) else self._keyed_adds(known)
        adds = adds.join(keys, FILE_KEY, "left_semi")
        words = position_words(staged)
        rows = words.select(FILE_KEY, nothing.cast("string").alias(ADD), WORD, BITS).unionByName(
            adds.select(
                FILE_KEY,
                ADD,
                nothing.cast("long").alias(WORD),
                nothing.cast("long").alias(BITS),
            )
        )
        tasks = max(num_bytes // _TASK_BYTES, engine_of(self.stage.spark).parallelism)
        rows = rows.repartition(tasks, FILE_KEY).sortWithinPartitions(FILE_KEY)
        with worker_python(self.stage.spark):
            written = write_deletion_vectors(rows, self._writer(self._worker_files()))
        self.stage.write_parquet(written, "touched", WRITE_OPTIONS)
        frame, _ = self.stage.read_parquet("touched", TOUCHED)
        try:
            table = read_table(
                frame.limit(MAX_TOUCHED_FILES + 1),
                what="touched files",
                bound=MAX_TOUCHED_FILES,
                version=self.snapshot.version,
            )
        except DriverReadTooLargeError:
            return self._touched(frame)
        return self._touched(table)

    def _keyed_adds(self, adds: DataFrame) -> DataFrame:
        """Return FILE_KEY and ADD of the files that may have the rows."""
        statistics = self.snapshot.configuration.statistics
        return keyed_adds(adds, table_root=self.snapshot.path, statistics=statistics)

    def _driver_files(self) -> tuple[StoredFiles, _Limits]:
        """Return the driver's access to the table's files, and the limits of its work."""
        log = self.snapshot.log
        files = driver_files(self.stage.spark, log.store.table_root, log.options)
        near = _Limits(MAX_READ_POSITIONS, MAX_READ_FILES, MAX_READ_VECTORS)
        return files, near if is_like_workers(files) else _FAR

    def _worker_files(self) -> WorkerFiles:
        log = self.snapshot.log
        return worker_files(self.stage.spark, log.store.table_root, log.options)

    def _writer(self, files: StoredFiles) -> DeletionVectorWriter:
        root = self.snapshot.path
        return DeletionVectorWriter(
            files=files,
            table_root=root,
            directory=self.directory,
            scratch=f"{LOG_DIRECTORY}/{self.stage.name}/vectors",
            max_deleted_share=self.max_deleted_share,
            version=self.snapshot.version,
        )

    def _touched(self, found: pa.Table | DataFrame) -> ModifiedFiles:
        """Return the touched files with their actions and totals.

        Parameters
        ----------
        found
            `TOUCHED`; a DataFrame if it is too much for the driver.
        """
        if isinstance(found, pa.Table):
            if not found.num_rows:
                return NO_FILES
            found = self._moved(found)
            before = adds_before(found)
            adds, removes = new_actions(found, before)
            paths = tuple(resolve(self.snapshot.path, add.path) for add in before)
            known = ModifiedFiles(adds=adds, removes=removes, paths=paths)
        else:
            known = ModifiedFiles(actions=action_rows(found), paths=None)
        totals = self._totals(found)
        removed, kept, rewritten = (
            totals.get(outcome.value, _NOTHING)
            for outcome in (Outcome.REMOVED, Outcome.VECTOR, Outcome.REWRITTEN)
        )
        return replace(
            known,
            deleted=found,
            rewritten=rewritten_files(self.snapshot, found, rewritten.files),
            num_files=removed.files + kept.files + rewritten.files,
            num_rows=removed.deleted + kept.deleted + rewritten.deleted,
            num_file_rows=sum(each.deleted + each.left for each in totals.values()),
            num_removed_files=removed.files + rewritten.files,
            num_removed_bytes=removed.size + rewritten.size,
            num_copied_rows=rewritten.left,
            num_vectors_added=kept.files,
            num_vectors_removed=removed.vectors + kept.vectors + rewritten.vectors,
            num_vectors_updated=kept.vectors,
            places=tuple(self.places) if kept.files else (),
        )

    def _moved(self, touched: pa.Table) -> pa.Table:
        """Move the files of the vectors to the table's root, and return `TOUCHED` with their new
        names.
        """
        files = self.files
        vectors, moves = touched[VECTOR].to_pylist(), {}
        for vector in filter(None, vectors if files.can_move else ()):
            name = vector["pathOrInlineDv"]
            if DeletionVectorDescriptor.from_dict(vector).prefix == self.directory:
                vector["pathOrInlineDv"] = name[-ENCODED_UUID_LENGTH:]
                moves[dv_file_name(name)] = dv_file_name(vector["pathOrInlineDv"])
        if not moves:
            return touched
        self.places.extend(f"{self.snapshot.path}/{target}" for target in moves.values())
        files.move(moves)
        delete_emptied(self.places.pop(0).rstrip("/"), files)
        column = touched.column_names.index(VECTOR)
        return touched.set_column(column, VECTOR, pa.array(vectors, VECTOR_ARROW))

    def _totals(self, found: pa.Table | DataFrame) -> dict[str, _Totals]:
        """Return the totals of each outcome."""
        if isinstance(found, pa.Table):
            sums = [(name, "sum") for name in (SIZE, NUM_DELETED, NUM_LEFT, HAD_VECTOR)]
            by_outcome = found.group_by(OUTCOME).aggregate([([], "count_all"), *sums])
            rows = by_outcome.select([OUTCOME, "count_all", *(f"{n}_sum" for n, _ in sums)])
            return {row[OUTCOME]: _Totals(*list(row.values())[1:]) for row in rows.to_pylist()}
        totals = grouped(
            found,
            [OUTCOME],
            F.count("*"),
            *map(F.sum, (SIZE, NUM_DELETED, NUM_LEFT)),
            F.count_if(HAD_VECTOR),
        )
        rows = read_rows(
            totals, what="totals of touched files", bound=3, version=self.snapshot.version
        )
        return {row[0]: _Totals(*row[1:]) for row in rows}


class _Totals(NamedTuple):
    """Totals of touched files of one outcome."""

    files: int
    size: int
    deleted: int
    left: int
    vectors: int


_NOTHING = _Totals(0, 0, 0, 0, 0)
