"""Merge rows of a DataFrame into a table.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession

from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.library_sessions import UTC
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError, NumRecordsMismatchError
from sparkdelta.operations.merge.merge_checks import check_merge
from sparkdelta.operations.merge.merge_clauses import (
    Clause,
    MergeClause,
    ResolvedMerge,
    resolve_clauses,
)
from sparkdelta.operations.merge.merge_matching import (
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    OPERATION,
    MergeMatches,
    find_matches,
)
from sparkdelta.operations.merge.merge_output import MergeOutput
from sparkdelta.operations.merge.merge_pairs import CLAUSE
from sparkdelta.operations.merge.merge_sides import FILE, POSITION, empty_frames, stage_source
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.self_references import are_of_table
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.rows.modified_files import ModifiedFiles, modify_files
from sparkdelta.table.rows.row_change_commits import commit_changes
from sparkdelta.table.rows.row_changes import (
    RowChanges,
    Stopwatch,
    change_writer,
    check_row_count,
    open_changeable,
    unchanged_table,
)
from sparkdelta.table.rows.row_selection import condition_parameter
from sparkdelta.table.scan.conditions import shown
from sparkdelta.table.scan.row_names import NO_NAMES, RowNames
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import Staging, staging
from sparkdelta.table.vectors.deletion_vector_writing_workers import FILE_KEY
from sparkdelta.table.vectors.row_position_frames import ROW_INDEX


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A merge as the user asks for it.

    Attributes
    ----------
    source
        May have an alias.
    names
        Of the table's rows in conditions and values.
    evolves
        True if the schema of the table may get the columns of the source.
    time_zone
        In which values are converted to the types of their columns.
    """

    source: DataFrame
    condition: str | Column
    clauses: tuple[MergeClause, ...]
    names: RowNames = NO_NAMES
    evolves: bool = False
    time_zone: str = UTC


def merge(
    spark: SparkSession,
    path: str,
    request: MergeRequest,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Update, delete and insert rows of a table by the rows of a DataFrame that match them.

    See `sparkdelta.api.delta_table.DeltaTable.merge`.

    Returns
    -------
    DataFrame
        One row: num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows, all LONG.
    """
    if not engine_of(spark).can("see plans"):
        problem = "rows can only be merged from a classic session"
        raise InvalidArgumentError(argument="source", problem=problem)
    watch = Stopwatch()
    only_inserts = all(clause.kind.is_not_matched for clause in request.clauses)
    snapshot = open_changeable(spark, path, options, only_inserts=only_inserts)
    reads_target = are_of_table(request.source, snapshot)
    resolved = resolve_clauses(
        request.clauses,
        unchanged_table(snapshot),
        request.source.schema,
        target_alias=request.names.alias,
        evolves=request.evolves,
        path=snapshot.path,
    )
    with (
        jobs_of(snapshot.path, snapshot.version),
        staging(spark, snapshot.log.store) as stage,
    ):
        frames = empty_frames(spark, snapshot.schema, request.source, names=request.names)
        check_merge(resolved, request.condition, frames)
        source = stage_source(request.source, stage)
        watch.lap("materializeSourceTimeMs")
        matches = find_matches(
            snapshot,
            source,
            request.condition,
            resolved.clauses,
            stage,
            frames=frames,
            names=request.names,
        )
        rows = _RowCounts(resolved, matches)
        actions = resolved.change.actions
        if not rows.affected and actions.has_only_files:
            return rows.to_df(spark)
        touched = _touched_files(snapshot, matches, rows, stage)
        watch.lap("scanTimeMs")
        with change_writer(spark, snapshot, resolved.change, touched) as writer:
            if touched.num_rows != rows.updated + rows.deleted:
                matches = matches.counted_by_row()
                rows = _RowCounts(resolved, matches)
            if touched.num_rows != rows.updated + rows.deleted:
                raise NumRecordsMismatchError(
                    path=snapshot.path,
                    operation=OPERATION,
                    expected=rows.updated + rows.deleted,
                    found=touched.num_rows or 0,
                )
            merged = MergeOutput(
                writer=writer,
                merge=resolved,
                matches=matches,
                source=source,
                touched=touched,
                stage=stage,
                names=request.names,
                time_zone=request.time_zone,
            ).write()
            expected = touched.num_copied_rows + rows.updated + rows.inserted
            check_row_count(merged.new, expected, path=snapshot.path, operation=OPERATION)
        watch.lap("rewriteTimeMs")
        changes = RowChanges(
            snapshot=snapshot,
            change=merged.change,
            touched=touched,
            read=replace(matches.read, whole_table=True) if reads_target else matches.read,
            new=merged.new,
            change_files=merged.change_files,
            tags=writer.tags,
        )
        metrics = {
            **rows.metrics(touched.num_copied_rows),
            **_file_metrics(changes),
            **watch.metrics,
        }
        operation = Operation(OPERATION, _parameters(request), metrics=metrics)
        done = commit_changes(changes, operation)
    run_commit_hooks(done, compacts=True)
    return rows.to_df(spark)


def _touched_files(
    snapshot: Snapshot, matches: MergeMatches, rows: _RowCounts, stage: Staging
) -> ModifiedFiles:
    """The files whose rows are updated or deleted."""
    if not rows.updated + rows.deleted:
        return ModifiedFiles()
    known = matches.pairs.known_positions
    if known is not None and matches.unmatched is None:
        return modify_files(snapshot, known, stage, adds=matches.files)
    frames = [matches.pairs.rows] + ([] if matches.unmatched is None else [matches.unmatched])
    acted = reduce(
        DataFrame.unionByName, (frame.select(FILE, POSITION, CLAUSE) for frame in frames)
    ).filter(f"{quoted(CLAUSE)} IS NOT NULL")
    positions = acted.selectExpr(
        f"{quoted(FILE)} AS {quoted(FILE_KEY)}", f"{quoted(POSITION)} AS {quoted(ROW_INDEX)}"
    )
    # Several rows of the source may match the same row, if it is deleted.
    num_staged = None if rows.deleted else rows.updated
    return modify_files(snapshot, positions, stage, adds=matches.files, num_staged=num_staged)


@dataclass(frozen=True, slots=True)
class _RowCounts:
    """The numbers of rows that the clauses of a merge act on."""

    merge: ResolvedMerge
    matches: MergeMatches

    def of(self, *kinds: Clause) -> int:
        """The rows that clauses of these kinds act on."""
        return self.matches.num_rows_of(self.merge.of_kinds(*kinds))

    @property
    def updated(self) -> int:
        return self.of(Clause.MATCHED_UPDATE, Clause.NOT_MATCHED_BY_SOURCE_UPDATE)

    @property
    def deleted(self) -> int:
        return self.of(Clause.MATCHED_DELETE, Clause.NOT_MATCHED_BY_SOURCE_DELETE)

    @property
    def inserted(self) -> int:
        return self.of(Clause.NOT_MATCHED_INSERT)

    @property
    def affected(self) -> int:
        return self.updated + self.deleted + self.inserted

    def metrics(self, num_copied_rows: int) -> dict[str, int]:
        """The metrics of MERGE about rows, by their names in history."""
        return {
            "numSourceRows": self.matches.num_source_rows,
            "numTargetRowsInserted": self.inserted,
            "numTargetRowsUpdated": self.updated,
            "numTargetRowsMatchedUpdated": self.of(Clause.MATCHED_UPDATE),
            "numTargetRowsNotMatchedBySourceUpdated": self.of(Clause.NOT_MATCHED_BY_SOURCE_UPDATE),
            "numTargetRowsDeleted": self.deleted,
            "numTargetRowsMatchedDeleted": self.of(Clause.MATCHED_DELETE),
            "numTargetRowsNotMatchedBySourceDeleted": self.of(Clause.NOT_MATCHED_BY_SOURCE_DELETE),
            "numTargetRowsCopied": num_copied_rows,
            "numOutputRows": self.inserted + self.updated + num_copied_rows,
        }

    def to_df(self, spark: SparkSession) -> DataFrame:
        """The result of the merge."""
        return spark.sql(
            f"SELECT {self.affected}L AS num_affected_rows, {self.updated}L AS num_updated_rows, "
            f"{self.deleted}L AS num_deleted_rows, {self.inserted}L AS num_inserted_rows"
        )


def _file_metrics(changes: RowChanges) -> dict[str, int]:
    """The metrics of MERGE about files, by their names in history."""
    found = changes.file_metrics
    return {
        "numTargetFilesAdded": found["numAddedFiles"],
        "numTargetFilesRemoved": found["numRemovedFiles"],
        "numTargetBytesAdded": found["numAddedBytes"],
        "numTargetBytesRemoved": found["numRemovedBytes"],
        "numTargetChangeFilesAdded": found["numAddedChangeFiles"],
        "numTargetDeletionVectorsAdded": found["numDeletionVectorsAdded"],
        "numTargetDeletionVectorsRemoved": found["numDeletionVectorsRemoved"],
        "numTargetDeletionVectorsUpdated": found["numDeletionVectorsUpdated"],
    }


def _parameters(request: MergeRequest) -> dict[str, str]:
    """The parameters of MERGE in history."""

    def predicates(rows: str) -> str:
        return json.dumps(
            [
                {
                    **({} if each.condition is None else {"predicate": shown(each.condition)}),
                    "actionType": each.kind.action.lower(),
                }
                for each in request.clauses
                if each.kind.rows == rows
            ],
            ensure_ascii=False,
        )

    return {
        "predicate": condition_parameter(request.condition),
        "matchedPredicates": predicates(MATCHED),
        "notMatchedPredicates": predicates(NOT_MATCHED),
        "notMatchedBySourcePredicates": predicates(NOT_MATCHED_BY_SOURCE),
    }
