"""The frame of DELETE and UPDATE: find the matching rows, write the files, commit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import Column

from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.application_transactions import (
    are_committed,
    session_transactions,
)
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.rows.needed_settings import needed_settings
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.row_changes import (
    ChangeResult,
    RowChangeWriter,
    Stopwatch,
    row_change_writer,
    unchanged_definition,
)
from sparkdelta.table.rows.row_delta import RowDelta, commit_delta, repeat_after_moves
from sparkdelta.table.rows.row_selection import RowSelection, find_matching_rows
from sparkdelta.table.scan.row_names import RowNames
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import Staging, staging


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenChanges:
    """The files that an operation on matching rows wrote.

    Attributes
    ----------
    metrics
        Further metrics of the operation, by their names in history; None where a number is unknown.
    """

    new: NewFiles | None
    change_files: NewFiles | None
    metrics: Mapping[str, int | None]


def change_matching_rows(
    snapshot: Snapshot,
    where: str | Column | None,
    write: Callable[[RowSelection, RowChangeWriter, Staging], WrittenChanges],
    *,
    operation: str,
    predicate: str,
    names: RowNames,
    watch: Stopwatch,
    assigns: bool = False,
) -> ChangeResult:
    """Find the rows that match a condition, and commit the files written in their place.

    Parameters
    ----------
    write
        Writes the files of the operation.
    predicate
        The condition as history shows it.
    names
        Of the table's rows in the condition.
    assigns
        True if rows get values of expressions.
    """

    def changed(
        snapshot: Snapshot, repetitions: int
    ) -> tuple[ChangeResult, CommittedTransaction | None]:
        """Commit the changes of the rows of a version; None if there are none."""
        spark, store = snapshot.log.spark, snapshot.log.store
        needed = partial(
            needed_settings, snapshot.configuration, path=snapshot.path, has_expressions=assigns
        )
        with (
            engine_of(spark).write_session(needed) as session,
            jobs_of(snapshot.path, snapshot.version),
            staging(spark, store) as stage,
        ):
            transactions = session_transactions()
            if are_committed(snapshot, transactions):
                return ChangeResult(), None
            matching = find_matching_rows(snapshot, where, stage, operation=operation, names=names)
            modified = matching.modified
            if not modified.num_files:
                return ChangeResult(), None
            watch.lap("scanTimeMs")
            own, table = snapshot.in_session(session), unchanged_definition(snapshot)
            with row_change_writer(session, own, table, modified) as writer:
                written = write(matching, writer, stage)
            watch.lap("rewriteTimeMs")
            delta = RowDelta(
                spark=spark,
                store=store,
                snapshot=snapshot,
                change=table,
                read=matching.read,
                modified=modified,
                new=written.new,
                change_files=written.change_files,
                transactions=transactions,
                tags=writer.tags,
                stage=stage,
            )
            files = delta.file_metrics
            metrics = {
                **files,
                "numCopiedRows": modified.num_copied_rows,
                **{name: number for name, number in written.metrics.items() if number is not None},
                **watch.metrics,
            }
            done = commit_delta(
                delta, Operation(operation, {"predicate": predicate}, metrics=metrics)
            )
        result = ChangeResult(
            version=done.version,
            num_deleted_rows=written.metrics.get("numDeletedRows", 0),
            num_updated_rows=written.metrics.get("numUpdatedRows") or 0,
            num_copied_rows=modified.num_copied_rows,
            num_added_files=files["numAddedFiles"],
            num_removed_files=files["numRemovedFiles"],
            num_deletion_vectors=files["numDeletionVectorsAdded"],
            num_added_bytes=files["numAddedBytes"],
            num_removed_bytes=files["numRemovedBytes"],
            retries=done.attempts - 1 + repetitions,
        )
        return result, done

    result, done = repeat_after_moves(snapshot, changed)
    if done is not None:
        run_commit_hooks(done, compacts=True)
    return replace(result, milliseconds=watch.total_ms)
