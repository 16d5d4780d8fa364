"""Commits that replace the files of bins by new ones, also where others changed some meanwhile.

A commit that follows another one leaves out the bins of which the other removed or rewrote a file.
If it only deleted rows by deletion vectors, the new file gets a vector with the same rows.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors,
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from sparkdelta.base.protocol.file_actions import AddFile, file_key
from sparkdelta.base.protocol.file_paths import resolve
from sparkdelta.base.protocol.wide_statistics import num_records
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.exceptions import (
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    DeltaError,
)
from sparkdelta.operations.compaction.compaction_batches import Batch, described_files
from sparkdelta.operations.compaction.moved_vectors import VECTOR, CopiedBin, with_moved_vectors
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.rows.modified_files import ModifiedFiles
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.orphans import delete_places, report_orphans
from sparkdelta.table.rows.row_changes import check_row_count, row_change_writer
from sparkdelta.table.rows.row_delta import RowDelta, commit_delta
from sparkdelta.table.scan.scan_request import BASE_ROW_ID, DEFAULT_ROW_COMMIT_VERSION
from sparkdelta.table.snapshot.snapshot import Snapshot

MAX_COMMITS = 20
"""The most attempts to commit a batch after commits that changed its files."""

_BIN_SETTINGS = {
    "spark.sql.unionOutputPartitioning": "false",
    "spark.sql.maxConcurrentOutputFileWriters": "1",
}
"""Spark's settings to write bins: it must neither join their tasks into one nor sort the rows of a
task by partition, as all of them are in one."""

_SAME_ROW_IDS = {BASE_ROW_ID: True, DEFAULT_ROW_COMMIT_VERSION: True}
_OF_FILE = (VECTOR, *_SAME_ROW_IDS)
_TASK = re.compile(r"part-(\d+)-")
_LOGGER = logging.getLogger(__name__)

OperationOf = Callable[[Batch, NewFiles], Operation]
"""Returns the operation of a commit, given what it replaces and the new files."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RewrittenBatch:
    """A batch whose new files are written and not committed.

    Attributes
    ----------
    change
        The table, which the commit leaves as it is.
    tags
        Of the commit.
    """

    batch: Batch
    change: DefinitionChange
    new: NewFiles
    tags: dict[str, str]

    @property
    def delta(self) -> RowDelta:
        """The changes to commit: rows keep their ids, and other commits conflict only if they
        changed a file of the batch.
        """
        snapshot, removes = self.batch.snapshot, self.batch.removes()
        return RowDelta(
            spark=snapshot.log.spark,
            store=snapshot.log.store,
            snapshot=snapshot,
            change=self.change,
            modified=ModifiedFiles(removes=removes),
            new=self.new,
            read=ReadSet(files=frozenset(file_key(each, snapshot.path) for each in removes)),
            tags=self.tags,
        )


@dataclass(frozen=True, eq=False)
class BatchOutcome:
    """The outcome of committing the bins of a batch.

    Attributes
    ----------
    committed
        The committed bins; None if there are none.
    left
        The other bins, with the files of them that a later version still has; None if none is worth
        rewriting.
    conflict
        The error of the last commit that came first, if any did.
    """

    committed: tuple[RewrittenBatch, CommittedTransaction] | None = None
    left: Batch | None = None
    conflict: DeltaError | None = None


def rewrite_batch(
    batch: Batch, session: SparkSession, change: DefinitionChange, *, operation: str
) -> RewrittenBatch:
    """Write the rows of a batch to new files.

    Parameters
    ----------
    session
        See `SparkEngine.write_session`.
    change
        The table, which the commit leaves as it is.
    operation
        The name of the operation, for errors.

    Raises
    ------
    DELTA_NUM_RECORDS_MISMATCH
        The number of written rows differs from the statistics of the files.
    """
    snapshot = batch.snapshot
    with row_change_writer(session, snapshot.in_session(session), change) as compared:
        writer = replace(compared, data_change=False, settings=_BIN_SETTINGS)
        new = writer.write(batch.rows(writer))
        new = new if batch.cube is None else new.in_cube(batch.cube)
        if batch.num_rows is not None:
            check_row_count(new, batch.num_rows, path=snapshot.path, operation=operation)
    return RewrittenBatch(batch=batch, change=change, new=new, tags=writer.tags)


def commit_batch(rewritten: RewrittenBatch, operation: OperationOf) -> CommittedTransaction:
    """Commit all bins of a batch.

    Raises
    ------
    DeltaConcurrentModificationException
        Another commit changed one of the files.
    """
    return commit_delta(rewritten.delta, operation(rewritten.batch, rewritten.new))


def commit_bins(rewritten: RewrittenBatch, operation: OperationOf) -> BatchOutcome:
    """Commit the bins of a batch. Left out are bins of which other commits changed files so that
    the new ones cannot replace them; their new files are deleted.

    Raises
    ------
    DeltaConcurrentModificationException
        Another commit changed the schema, the properties or the protocol.
    """
    batch, places = rewritten.batch, _places(rewritten)
    current: RewrittenBatch | None = rewritten
    followed = conflict = None
    with report_orphans(batch.snapshot.path, places):
        for retries in range(MAX_COMMITS):
            if current is None:
                break
            try:
                delta = current.delta
                done = delta.transaction(operation(current.batch, current.new)).commit()
            except (ConcurrentDeleteReadException, ConcurrentDeleteDeleteException) as error:
                later = batch.snapshot if followed is None else followed.snapshot
                later = later.refresh()
                if later.is_altered_since(batch.snapshot):
                    raise
                _LOGGER.info("Bins of %s follow another commit: %s", batch.snapshot.path, error)
                followed, conflict = _Followed.of(rewritten, later, places), error
                current = followed.rewritten
            else:
                done = replace(done, attempts=done.attempts + retries)
                _delete_unused(places, batch.snapshot, current)
                left = None if followed is None else followed.left(followed.kept)
                return BatchOutcome((current, done), left, conflict)
        _delete_unused(places, batch.snapshot, None)
    return BatchOutcome(None, None if followed is None else followed.left({}), conflict)


@dataclass(frozen=True, eq=False)
class _Followed:
    """The bins of a batch after other commits.

    Attributes
    ----------
    batch
        As it was read.
    snapshot
        The later version.
    files
        The files of each bin as that version has them, without those that it lacks.
    kept
        The new files of the bins, by their numbers, that can replace these.
    rewritten
        These bins; None if there are none.
    """

    batch: Batch
    snapshot: Snapshot
    files: Sequence[pa.Table]
    kept: Mapping[int, tuple[AddFile, ...]]
    rewritten: RewrittenBatch | None

    @classmethod
    def of(cls, rewritten: RewrittenBatch, later: Snapshot, places: list[str]) -> _Followed:
        """Compare each bin with the version in which it was read: the vector of its new file has
        the rows that all commits since then deleted.

        Parameters
        ----------
        places
            Gets the absolute path of new deletion vectors.
        """
        batch, files = rewritten.batch, _bins_in(rewritten.batch, later)
        kept, copied = dict[int, tuple[AddFile, ...]](), dict[int, CopiedBin]()
        for number, added in added_by_bin(batch, rewritten.new.values).items():
            before, now = batch.bins[number], files[number]
            if now.num_rows < before.num_rows:
                continue
            is_same = {name: before[name].equals(now[name]) for name in _OF_FILE}
            if all(is_same.values()):
                kept[number] = added
            elif batch.order is None and added and is_same == {**is_same, **_SAME_ROW_IDS}:
                copied[number] = CopiedBin(before, now, added[0])
        moved = with_moved_vectors([*copied.values()], later, places)
        for number, adds in zip(copied, moved, strict=True):
            if adds is not None:
                kept[number] = adds
        numbers = sorted(kept)
        following = replace(
            rewritten,
            batch=batch.of_bins(numbers, later, [files[number] for number in numbers]),
            new=rewritten.new.only([add for number in numbers for add in kept[number]]),
        )
        return cls(batch, later, files, kept, following if numbers else None)

    def left(self, committed: Container[int]) -> Batch | None:
        """Return the other bins, if there are any that are worth rewriting."""
        numbers = [
            number
            for number, files in enumerate(self.files)
            if number not in committed and _is_worth_it(self.batch, files)
        ]
        files = [self.files[number] for number in numbers]
        return self.batch.of_bins(numbers, self.snapshot, files) if numbers else None


def _places(rewritten: RewrittenBatch) -> list[str]:
    """Return the absolute paths of new files and vectors, see `report_orphans`."""
    new, root = rewritten.new, rewritten.batch.snapshot.path
    if new.values is None:
        return [*new.places]
    vectors = (add.deletion_vector for add in new.values)
    of_vectors = (vector.absolute_path(root) for vector in vectors if vector is not None)
    return [*(resolve(root, add.path) for add in new.values), *filter(None, of_vectors)]


def _delete_unused(
    places: Iterable[str], snapshot: Snapshot, committed: RewrittenBatch | None
) -> None:
    """Delete the new files that were not committed."""
    unused = {*places} - {*([] if committed is None else _places(committed))}
    left = delete_places(unused, snapshot.log.store.table_files()) if unused else []
    if left:
        _LOGGER.warning("Cannot delete new files of %s: %s", snapshot.path, ", ".join(left))


def _bins_in(batch: Batch, later: Snapshot) -> list[pa.Table]:
    """Return the files of each bin that are live in a later version, as it describes them."""
    paths = batch.files.select(["path"])
    adds = later.add_files().join(arrow_frame(later.log.spark, paths), "path", "left_semi")
    table = read_table(
        described_files(later, adds),
        what="files of bins",
        bound=paths.num_rows,
        version=later.version,
    )
    by_path = {file["path"]: file for file in table.to_pylist()}
    return [
        pa.Table.from_pylist(
            [by_path[path] for path in bin_["path"].to_pylist() if path in by_path], table.schema
        )
        for bin_ in batch.bins
    ]


def _is_worth_it(batch: Batch, files: pa.Table) -> bool:
    """Return True if the files that are left of a bin are worth rewriting."""
    has_vectors: bool = files[VECTOR].null_count < files.num_rows
    return files.num_rows > (0 if batch.takes_all else 1) or has_vectors


def added_by_bin(batch: Batch, adds: Sequence[AddFile] | None) -> dict[int, tuple[AddFile, ...]]:
    """Return the new files by the numbers of their bins; nothing if it is not certain which they
    are.

    A task writes the file of a bin, and Spark names the file by the number of the task. Ordered
    rows are of all files of a partition of the table, or of one bin.
    """
    if adds is None:
        return {}
    keys = [key for key, _ in batch.snapshot.configuration.partition_keys]
    partitions = batch.partition_of_bin
    found: dict[int, tuple[AddFile, ...]] = dict.fromkeys(range(len(partitions)), ())
    for add in adds:
        task = _TASK.match(add.path.rpartition("/")[2])
        values = tuple(add.partition_values.get(key) for key in keys)
        if len(partitions) == 1:
            number = 0
        elif batch.order is not None and values in partitions:
            number = partitions.index(values)
        elif batch.order is None and task is not None and int(task[1]) < len(partitions):
            number = int(task[1])
        else:
            return {}
        found[number] += (add,)
    # Two spellings of a partition value are two bins, whose new files have the same value.
    for number, added in found.items():
        num_rows = batch.of_bins([number], batch.snapshot, [batch.bins[number]]).num_rows
        is_one = batch.order is not None or len(added) <= 1
        if not is_one or num_rows != sum(num_records(add.stats) or 0 for add in added):
            return {}
    return found
