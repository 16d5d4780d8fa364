"""The data files whose rows an operation deletes, and their treatment.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.engine.driver import read_rows, read_table
from sparkdelta.engine.local_frames import local_frame
from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.engine.worker_python import worker_python
from sparkdelta.engine.worker_storage import worker_files
from sparkdelta.exceptions import DataFileNotReadError, DriverReadTooLargeError
from sparkdelta.frames.commit.commit_lines import add_fields
from sparkdelta.frames.log.file_keys import absolute_path, plain_path
from sparkdelta.frames.rows.row_positions import ROW_INDEX, file_key, position_words
from sparkdelta.protocol.file_actions import AddFile
from sparkdelta.protocol.file_paths import resolve
from sparkdelta.protocol.log_files import LOG_DIRECTORY, data_directory
from sparkdelta.protocol.roaring_bitmaps import chunks_of_rows
from sparkdelta.protocol.table_properties import max_deleted_share as table_share
from sparkdelta.schema.action_schemas import ADD as ADD_TYPE
from sparkdelta.schema.checkpoint_schema import STATS_PARSED
from sparkdelta.schema.sql_text import from_json_text
from sparkdelta.schema.table_schema import quoted
from sparkdelta.storage.parquet import WRITE_OPTIONS
from sparkdelta.table.scan.request import MetadataColumn
from sparkdelta.table.snapshot import Snapshot
from sparkdelta.table.staging import Staging
from sparkdelta.table.write.orphans import report_orphans
from sparkdelta.table.write.rewriting import remove_actions
from sparkdelta.table.write.touched_rows import rewritten_files
from sparkdelta.workers.deletion_vector_writer import (
    ADD,
    BITS,
    FILE_KEY,
    HAD_VECTOR,
    NUM_DELETED,
    NUM_LEFT,
    NUM_RECORDS,
    OUTCOME,
    SIZE,
    STATS,
    TOUCHED,
    TOUCHED_ARROW,
    VECTOR,
    WORD,
    DeletionVectorWriter,
    Outcome,
    write_deletion_vectors,
)
from sparkdelta.workers.files import StoredFiles

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


_POSITIONS = StructType([StructField(FILE_KEY, LongType()), StructField(ROW_INDEX, LongType())])


class _Limits(NamedTuple):
    """Limits of what the driver reads and writes by itself."""

    positions: int
    files: int
    vectors: int


_FAR = _Limits(10_000_000, MAX_TOUCHED_FILES, MAX_TOUCHED_FILES)
"""On storages that workers may not reach, such as HDFS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedFiles:
    """Data files with rows that an operation deletes.

    Attributes
    ----------
    actions
        Columns `remove` and `add`, one of them in each row: a remove of each file, and an add of
        those that get a deletion vector. Deterministic, and may be evaluated repeatedly; None
        without files.
    deleted
        `TOUCHED` of the files, for `table.write.touched_rows`; None if whole files are removed. Of
        use as long as the staging directory.
    rewritten
        The files whose other rows are to be written again, see `touched_rows.rewritten_files`; None
        if there are none. Of use as long as the staging directory.
    paths
        The absolute, decoded paths of all touched files; None if they are too many for the driver.
    num_rows
        The rows to delete; None if it is not known.
    num_file_rows
        The rows that these files have before; 0 if whole files are removed.
    num_removed_files, num_removed_bytes
        Of the files that leave the table, those that are rewritten among them.
    num_rewritten_files, num_copied_rows
        Of the rewritten files; the rows are the ones that are left of them.
    directory
        Holds the new deletion vectors; None if there are none.
    num_vectors_added, num_vectors_removed, num_vectors_updated
        New deletion vectors; vectors that were there before; those of them that got a new one.
    """

    actions: DataFrame | None = None
    deleted: DataFrame | None = None
    rewritten: pa.Table | DataFrame | None = None
    paths: tuple[str, ...] | None = ()
    num_files: int = 0
    num_rows: int | None = 0
    num_file_rows: int = 0
    num_removed_files: int = 0
    num_removed_bytes: int = 0
    num_rewritten_files: int = 0
    num_copied_rows: int = 0
    num_vectors_added: int = 0
    num_vectors_removed: int = 0
    num_vectors_updated: int = 0
    directory: str | None = None


def whole_files(snapshot: Snapshot, adds: DataFrame) -> TouchedFiles:
    """All rows of some files, which are removed without being read.

    Parameters
    ----------
    adds
        As `Snapshot.add_files` gives them.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    deleted = F.coalesce(F.col("deletionVector.cardinality"), F.lit(0))
    num_rows = F.col(STATS_PARSED)[NUM_RECORDS] - deleted
    (row,) = read_rows(
        adds.agg(
            F.count("*").alias("files"),
            F.sum("size").alias("bytes"),
            F.sum(num_rows).alias("rows"),
            F.count_if(num_rows.isNull()).alias("unknown"),
            F.count("deletionVector.storageType").alias("vectors"),
        ),
        what="totals of removed files",
        bound=1,
        version=snapshot.version,
    )
    if not row["files"]:
        return TouchedFiles()
    return TouchedFiles(
        actions=remove_actions(adds),
        paths=None,
        num_files=row["files"],
        num_rows=None if row["unknown"] else row["rows"],
        num_removed_files=row["files"],
        num_removed_bytes=row["bytes"],
        num_vectors_removed=row["vectors"],
    )


def keyed_positions(rows: DataFrame) -> DataFrame:
    """The positions of rows with `MetadataColumn.FILE` and `MetadataColumn.ROW_POSITION`, in the
    columns file_key LONG and row_index LONG.
    """
    file, row_index = MetadataColumn.FILE.value, MetadataColumn.ROW_POSITION.value
    key = file_key(quoted(file))
    return rows.selectExpr(f"{key} AS {FILE_KEY}", f"{quoted(row_index)} AS {ROW_INDEX}")


def touch_files(
    snapshot: Snapshot,
    positions: DataFrame,
    stage: Staging,
    *,
    max_deleted_share: float | None = None,
    adds: DataFrame | None = None,
    num_staged: int | None = None,
) -> TouchedFiles:
    """Write the deletion vectors of rows to delete, into a directory of their own.

    A file without other rows is removed; others keep the vector, or are rewritten.

    Parameters
    ----------
    positions
        As `keyed_positions` gives them; rows may repeat.
    max_deleted_share
        See `protocol.table_properties.max_deleted_share`; by default, that of the table.
    stage
        A directory for what is of use until the commit.
    adds
        The files that may have such rows, as `Scan.files` gives them with `stats`;
        by default, all of the table.
    num_staged
        The number of positions, if they are staged; by default, they are evaluated once.

    Raises
    ------
    DeletionVectorRowIndexError
        A file does not have such a row.
    DeletionVectorError
        A file's earlier vector is damaged.
    DataFileNotReadError
        A file is not in the table.

    References
    ----------
    PROTOCOL.md#deletion-vectors, PROTOCOL.md#writer-requirement-for-deletion-vectors
    """
    among = snapshot.add_files() if adds is None else adds
    table = snapshot.configuration
    if max_deleted_share is None:
        max_deleted_share = table_share(table.protocol, table.properties)
    touching = _Touching(snapshot, stage, max_deleted_share, among, data_directory(str(uuid4())))
    delete = snapshot.log.store.table_files().delete_directory
    with report_orphans(snapshot.path, [touching.target], delete):
        return touching.result(positions, num_staged)


@dataclass(frozen=True, slots=True)
class _Touching:
    snapshot: Snapshot
    stage: Staging
    max_deleted_share: float
    adds: DataFrame
    directory: str

    @property
    def target(self) -> str:
        """The absolute path of `directory`."""
        return f"{self.snapshot.path}/{self.directory}"

    def result(self, positions: DataFrame, num_staged: int | None) -> TouchedFiles:
        if num_staged is not None:
            num_bytes, num_files = num_staged * _POSITION_BYTES, 1
        else:
            entries = self.stage.write_parquet(positions, "positions", WRITE_OPTIONS)
            positions, _ = self.stage.read_parquet("positions", _POSITIONS)
            num_bytes, num_files = sum(entry.size_bytes for entry in entries), len(entries)
        table = self._by_driver(positions, num_bytes, num_files)
        if table is None:
            return self._by_executors(positions, num_bytes)
        return self._touched(local_frame(self.stage.spark, table, TOUCHED), table)

    def _by_driver(self, staged: DataFrame, num_bytes: int, num_files: int) -> pa.Table | None:
        """`TOUCHED`, written by the driver; None if it is too much for it."""
        files, limits = self._driver_files()
        if num_bytes > limits.positions * _POSITION_BYTES or num_files > limits.files:
            return None
        try:
            rows = read_table(
                staged, what="positions of rows to delete", bound=limits.positions,
                version=self.snapshot.version,
            )  # fmt: skip
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
        touched = (
            (adds[key], chunks_of_rows(part)) for key, part in zip(distinct, parts, strict=False)
        )
        return pa.Table.from_pylist(list(self._writer(files).write(touched)), TOUCHED_ARROW)

    def _adds_by_key(self, keys: Sequence[int]) -> dict[int, str]:
        """The add actions of files as JSON, by the keys of their paths."""
        if not keys:
            return {}
        adds = self._adds().filter(f"{FILE_KEY} IN ({', '.join(f'{key}L' for key in keys)})")
        rows = read_rows(
            adds,
            what="touched files",
            bound=2 * len(keys),
            version=self.snapshot.version,
        )
        found = {row[FILE_KEY]: row[ADD] for row in rows}
        if len(rows) != len(keys) or len(found) != len(keys):
            files = [AddFile.from_dict(json.loads(row[ADD])).path for row in rows]
            raise DataFileNotReadError(files=files, version=self.snapshot.version)
        return found

    def _by_executors(self, staged: DataFrame, num_bytes: int) -> TouchedFiles:
        nothing = F.lit(None)
        keys = staged.select(FILE_KEY).distinct()
        adds = self._adds().join(keys, FILE_KEY, "left_semi")
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
        log = self.snapshot.log
        files = worker_files(self.stage.spark, log.store.table_root, log.options)
        with worker_python(self.stage.spark):
            written = write_deletion_vectors(rows, self._writer(files))
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
            table = None
        return self._touched(frame, table)

    def _adds(self) -> DataFrame:
        """FILE_KEY and ADD of the files that may have the rows."""
        root = self.snapshot.path
        fields = add_fields(self.snapshot.configuration.statistics)
        file = absolute_path("path", table_root=root)
        adds = self.adds.selectExpr(f"{file} AS file", f"to_json({fields}) AS {ADD}")
        return adds.selectExpr(f"{file_key(plain_path('file'))} AS {FILE_KEY}", ADD)

    def _driver_files(self) -> tuple[StoredFiles, _Limits]:
        """The table's files as the driver reaches them, and how much it does by itself."""
        log = self.snapshot.log
        files = worker_files(self.stage.spark, log.store.table_root, log.options)
        if files.is_near(log.store.table_root):
            return files, _Limits(MAX_READ_POSITIONS, MAX_READ_FILES, MAX_READ_VECTORS)
        through_jvm = engine_of(self.stage.spark).driver_files(log.options)
        return through_jvm or files, _FAR

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

    def _touched(self, frame: DataFrame, table: pa.Table | None) -> TouchedFiles:
        """The result.

        Parameters
        ----------
        frame
            `TOUCHED`.
        table
            The same; None if it is too much for the driver.
        """
        if table is not None and not table.num_rows:
            return TouchedFiles()
        totals = self._totals(frame, table)
        removed, kept, rewritten = (
            totals.get(outcome.value, _NO_FILES)
            for outcome in (Outcome.REMOVED, Outcome.VECTOR, Outcome.REWRITTEN)
        )
        paths = None
        if table is not None:
            adds = (AddFile.from_dict(json.loads(text)) for text in table[ADD].to_pylist())
            paths = tuple(resolve(self.snapshot.path, add.path) for add in adds)
        return TouchedFiles(
            actions=_actions(frame),
            deleted=frame,
            rewritten=rewritten_files(self.snapshot, frame, rewritten.files),
            paths=paths,
            num_files=removed.files + kept.files + rewritten.files,
            num_rows=removed.deleted + kept.deleted + rewritten.deleted,
            num_file_rows=sum(each.deleted + each.left for each in totals.values()),
            num_removed_files=removed.files + rewritten.files,
            num_removed_bytes=removed.size + rewritten.size,
            num_rewritten_files=rewritten.files,
            num_copied_rows=rewritten.left,
            num_vectors_added=kept.files,
            num_vectors_removed=removed.vectors + kept.vectors + rewritten.vectors,
            num_vectors_updated=kept.vectors,
            directory=self.target if kept.files else None,
        )

    def _totals(self, frame: DataFrame, table: pa.Table | None) -> dict[str, _Totals]:
        """The totals of each outcome."""
        if table is not None:
            sums = [(name, "sum") for name in (SIZE, NUM_DELETED, NUM_LEFT, HAD_VECTOR)]
            grouped = table.group_by(OUTCOME).aggregate([([], "count_all"), *sums])
            rows = grouped.select([OUTCOME, "count_all", *(f"{n}_sum" for n, _ in sums)])
            return {row[OUTCOME]: _Totals(*list(row.values())[1:]) for row in rows.to_pylist()}
        totals = frame.groupBy(OUTCOME).agg(
            F.count("*"), F.sum(SIZE), F.sum(NUM_DELETED), F.sum(NUM_LEFT), F.count_if(HAD_VECTOR)
        )
        found = read_rows(
            totals, what="totals of touched files", bound=3, version=self.snapshot.version
        )
        return {row[0]: _Totals(*row[1:]) for row in found}


class _Totals(NamedTuple):
    """Totals of touched files of one outcome."""

    files: int
    size: int
    deleted: int
    left: int
    vectors: int


_NO_FILES = _Totals(0, 0, 0, 0, 0)


def _actions(touched: DataFrame) -> DataFrame:
    """The actions of `TOUCHED`, in columns `remove` and `add`.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    parsed = touched.selectExpr(
        f"{from_json_text(ADD, ADD_TYPE)} AS {ADD}", VECTOR, STATS, NUM_RECORDS
    )
    changed = {"dataChange": "TRUE", "stats": STATS, "deletionVector": VECTOR}
    fields = ", ".join(f"{changed.get(n, f'{ADD}.{n}')} AS {n}" for n in ADD_TYPE.names)
    adds = parsed.filter(f"{STATS} IS NOT NULL").selectExpr(f"struct({fields}) AS add")
    removes = remove_actions(parsed.select(f"{ADD}.*", NUM_RECORDS), num_records=NUM_RECORDS)
    return removes.unionByName(adds, allowMissingColumns=True)
