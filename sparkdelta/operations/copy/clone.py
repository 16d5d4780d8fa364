"""CLONE: a new table with the same rows, which shares the source's files or copies them.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#add-file-and-remove-file,
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.file_paths import plain_path
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.protocol.table_features import TableFeature, check_data_writable, is_supported
from sparkdelta.base.schema.checkpoint_schema import STATS_PARSED
from sparkdelta.base.schema.file_key_frames import is_absolute
from sparkdelta.base.spark.driver import read_row, read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.operations.copy.cloned_table import cloned_table, shallow_files
from sparkdelta.operations.copy.copied_files import copy_files
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.staged_lines import DistinctAdds
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.listing.listing import open_log_for_writing
from sparkdelta.table.rows.footer_statistics_workers import NUM_RECORDS
from sparkdelta.table.rows.orphans import report_orphans
from sparkdelta.table.snapshot.snapshot import Snapshot, find_snapshot, open_snapshot
from sparkdelta.table.snapshot.staging import staging


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneOptions:
    """The options of a clone.

    Attributes
    ----------
    version
        The source's version; the latest by default.
    deep
        True to copy the files.
    replace
        True if the target may exist.
    properties
        Properties of the target that override the source's.
    """

    version: Version | None = None
    deep: bool = False
    replace: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneResult(Result):
    """The outcome of a clone; sizes are in bytes.

    Attributes
    ----------
    version
        The version of the target that it committed.
    num_copied_files
        Data files that were copied: none by a shallow clone, and only new ones by a deep clone that
        is repeated.
    num_removed_files
        Files that the target had and the source does not have.
    """

    source: str
    target: str
    version: Version
    source_version: Version
    source_table_size: int
    source_num_of_files: int
    num_removed_files: int
    num_copied_files: int
    removed_files_size: int
    copied_files_size: int
    milliseconds: int

    def __str__(self) -> str:
        return (
            f"Cloned version {self.source_version} of {self.source} "
            f"({self.source_num_of_files} files, {self.source_table_size} bytes) to version "
            f"{self.version} of {self.target}: {self.num_copied_files} files "
            f"({self.copied_files_size} bytes) copied, {self.num_removed_files} removed"
        )


def clone(
    spark: SparkSession,
    source: str,
    target: str,
    clone_options: CloneOptions,
    options: Mapping[str, str] | None = None,
) -> CloneResult:
    """Commit a clone of a table, see `sparkdelta.clone`."""
    start_ms = time.time_ns() // 1_000_000
    snapshot = open_snapshot(spark, source, version=clone_options.version, options=options)
    store = open_log_for_writing(spark, target, options)
    before = _replaced(spark, snapshot, store, clone_options)
    change = cloned_table(snapshot, before, clone_options.properties)
    check_data_writable(change.after.protocol, path=store.table_root)
    with _files(spark, snapshot, before, store, clone_options) as (actions, metrics, distinct):
        if is_supported(change.after.protocol, TableFeature.ROW_TRACKING):
            _check_counted(snapshot)
        transaction = Transaction(
            spark=spark,
            store=store,
            snapshot=before,
            operation=Operation(
                "CLONE",
                {"source": f"delta.`{snapshot.path}`", "sourceVersion": snapshot.version},
                metrics=metrics,
            ),
            staged=change.actions,
            file_actions=actions,
            distinct_adds=distinct,
            read=ReadSet() if before is None else ReadSet(whole_table=True),
        )
        done = transaction.commit()
    run_commit_hooks(done)
    return CloneResult(
        source=snapshot.path,
        target=store.table_root,
        version=done.version,
        source_version=snapshot.version,
        source_table_size=metrics["sourceTableSize"],
        source_num_of_files=metrics["sourceNumOfFiles"],
        num_removed_files=metrics["numRemovedFiles"],
        num_copied_files=metrics["numCopiedFiles"],
        removed_files_size=metrics["removedFilesSize"],
        copied_files_size=metrics["copiedFilesSize"],
        milliseconds=time.time_ns() // 1_000_000 - start_ms,
    )


def _replaced(
    spark: SparkSession, source: Snapshot, store: LogStore, options: CloneOptions
) -> Snapshot | None:
    """Check the target, and return the table that the clone replaces; None if there is none."""
    roots = [f"{plain_path(root).rstrip('/')}/" for root in (source.path, store.table_root)]
    if roots[0].startswith(roots[1]) or roots[1].startswith(roots[0]):
        problem = "it must be neither the source nor a directory within it or around it"
        raise InvalidArgumentError(argument="target", problem=problem)
    before = find_snapshot(spark, store)
    if before is None:
        if not store.is_alone():
            raise DeltaError.of("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", path=store.table_root)
        return None
    if not options.replace:
        raise DeltaError.of("DELTA_TABLE_ALREADY_EXISTS", path=store.table_root)
    if not options.deep and _totals(before)["files"]:
        raise DeltaError.of("DELTA_UNSUPPORTED_NON_EMPTY_CLONE", path=store.table_root)
    return before


@contextmanager
def _files(
    spark: SparkSession,
    source: Snapshot,
    before: Snapshot | None,
    store: LogStore,
    options: CloneOptions,
) -> Iterator[tuple[DataFrame, dict[str, int], DistinctAdds | None]]:
    """Yield the file actions of the clone, its metrics and its distinct adds, for use in the
    block.
    """
    totals = _totals(source)
    metrics = {
        "sourceTableSize": totals["bytes"], "sourceNumOfFiles": totals["files"],
        "numRemovedFiles": 0, "numCopiedFiles": 0, "removedFilesSize": 0, "copiedFilesSize": 0,
    }  # fmt: skip
    with engine_of(spark).log_session() as session, jobs_of(source.path, source.version):
        if not options.deep:
            # An absolute path may name a file that the source has by a relative one, too.
            distinct = DistinctAdds(totals["files"], have_vectors=totals["have_vectors"])
            actions = shallow_files(source.in_session(session))
            yield actions, metrics, None if totals["have_absolute"] else distinct
            return
        with staging(session, store) as stage:
            target = None if before is None else before.in_session(session)
            copied = copy_files(source.in_session(session), target, store, stage)
            with report_orphans(store.table_root, copied.places):
                if before is not None:
                    removed = read_row(
                        copied.actions.agg(
                            F.count("remove.path").alias("files"),
                            F.coalesce(F.sum("remove.size"), F.lit(0)).alias("bytes"),
                        ),
                        what="totals of removed files",
                    )
                    metrics |= {
                        "numRemovedFiles": removed["files"], "removedFilesSize": removed["bytes"],
                    }  # fmt: skip
                metrics |= {"numCopiedFiles": copied.num_files, "copiedFilesSize": copied.num_bytes}
                yield copied.actions, metrics, None


def _totals(snapshot: Snapshot) -> Row:
    """Read one row of totals of the live files.

    files LONG, bytes LONG, have_vectors BOOLEAN, have_absolute BOOLEAN (an absolute path).
    """
    totals = snapshot.add_files().selectExpr(
        "count(*) AS files",
        "coalesce(sum(size), 0) AS bytes",
        "count(deletionVector.storageType) > 0 AS have_vectors",
        f"count_if({is_absolute('path')}) > 0 AS have_absolute",
    )
    return read_row(totals, what="totals of the live files")


def _check_counted(source: Snapshot) -> None:
    """Check that every file has a number of rows, without which its rows cannot have ids."""
    uncounted = source.add_files().filter(F.isnull(F.col(STATS_PARSED)[NUM_RECORDS]))
    rows = read_rows(uncounted.select("path").limit(1), what="file without statistics", bound=1)
    if rows:
        raise DeltaError.of(
            "DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS", path=source.path, file=rows[0]["path"]
        )
