"""Merge rows of a DataFrame into a table.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession

from sparkdelta.base.protocol.actions import TransactionIdentifier
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.library_sessions import UTC
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.spark_errors import unlogged_errors
from sparkdelta.exceptions import DeltaError, InvalidConditionError
from sparkdelta.operations.merge.merge_clauses import (
    Clause,
    MergeClause,
    ResolvedMerge,
    resolve_clauses,
    unresolved,
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
from sparkdelta.operations.merge.merge_sides import (
    FILE,
    POSITION,
    MergeFrames,
    StagedMerge,
    empty_frames,
    stage_source,
)
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.application_transactions import (
    are_committed,
    session_transactions,
)
from sparkdelta.table.commit.self_references import are_of_table
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.rows.assigned_row_frames import expressions_of
from sparkdelta.table.rows.assignments import check_expressions
from sparkdelta.table.rows.modified_files import NO_FILES, ModifiedFiles, modify_files
from sparkdelta.table.rows.needed_settings import needed_settings
from sparkdelta.table.rows.row_changes import (
    Stopwatch,
    open_changeable,
    row_change_writer,
    unchanged_definition,
)
from sparkdelta.table.rows.row_delta import RowDelta, commit_delta, repeat_after_moves
from sparkdelta.table.rows.row_selection import condition_parameter
from sparkdelta.table.scan.conditions import (
    deterministic_filter,
    missing_column,
    problem_of,
    shown,
)
from sparkdelta.table.scan.read_provenance import tables_read
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
    watch = Stopwatch()
    only_inserts = all(clause.kind.is_not_matched for clause in request.clauses)
    snapshot = open_changeable(spark, path, options, only_inserts=only_inserts)
    transactions = session_transactions()
    if are_committed(snapshot, transactions):
        return _result(spark)

    def needed() -> Mapping[str, str]:
        schema, table = request.source.schema, snapshot.configuration
        return needed_settings(table, [schema], path=snapshot.path, has_expressions=True)

    with (
        engine_of(spark).write_session(needed) as session,
        jobs_of(snapshot.path, snapshot.version),
        staging(spark, snapshot.log.store) as stage,
    ):
        with tables_read(request.source) as read:
            reads_target = are_of_table(read, snapshot)
            staged = _stage(snapshot, request, stage, reads_target=reads_target)
        watch.lap("materializeSourceTimeMs")

        def merged(snapshot: Snapshot, repetitions: int) -> _Merged:
            # A directory for each attempt within that of the rows of the source.
            own = replace(stage, name=f"{stage.name}/{repetitions}") if repetitions else stage
            again = replace(staged, snapshot=snapshot, stage=own)
            return _merged(again, session, request, transactions, watch)

        matches, done = (
            merged(snapshot, 0) if reads_target else repeat_after_moves(snapshot, merged)
        )
    if done is not None:
        run_commit_hooks(done, compacts=True)
    return _result(spark, matches)


_Merged: TypeAlias = tuple[MergeMatches | None, CommittedTransaction | None]


def _merged(
    staged: StagedMerge,
    session: SparkSession,
    request: MergeRequest,
    transactions: tuple[TransactionIdentifier, ...],
    watch: Stopwatch,
) -> _Merged:
    """Commit the changes of a merge; None if there are none.

    Parameters
    ----------
    session
        See `SparkEngine.write_session`.
    """
    if are_committed(staged.snapshot, transactions):
        return None, None
    matches = find_matches(staged)
    change = staged.resolved.change
    if not matches.num_affected and change.actions.has_only_files:
        return matches, None
    modified = _modify_files(matches)
    watch.lap("scanTimeMs")
    own = staged.snapshot.in_session(session)
    with row_change_writer(session, own, change, modified) as writer:
        matches = _checked(matches, modified)
        delta = replace(MergeOutput(matches, modified, writer).write(), transactions=transactions)
    watch.lap("rewriteTimeMs")
    metrics = {**_row_metrics(matches, modified), **_file_metrics(delta), **watch.metrics}
    operation = Operation(OPERATION, _parameters(request), metrics=metrics)
    return matches, commit_delta(delta, operation)


def _stage(
    snapshot: Snapshot, request: MergeRequest, stage: Staging, *, reads_target: bool
) -> StagedMerge:
    """Check a merge, then compute the rows of its source once."""
    spark, names = snapshot.log.spark, request.names
    resolved = resolve_clauses(
        request.clauses,
        unchanged_definition(snapshot),
        request.source.schema,
        target_alias=names.alias,
        evolves=request.evolves,
        path=snapshot.path,
    )
    frames = empty_frames(spark, snapshot.schema, request.source, names=names)
    check_merge(resolved, request.condition, frames)
    return StagedMerge(
        snapshot=snapshot,
        condition=request.condition,
        resolved=resolved,
        names=names,
        time_zone=request.time_zone,
        frames=frames,
        source=stage_source(request.source, stage),
        stage=stage,
        reads_target=reads_target,
    )


def _modify_files(matches: MergeMatches) -> ModifiedFiles:
    """Write the deletion vectors of the rows that are updated or deleted."""
    if not matches.num_updated + matches.num_deleted:
        return NO_FILES
    modified = partial(
        modify_files, matches.merge.snapshot, stage=matches.merge.stage, adds=matches.files
    )
    known = matches.pairs.known_positions
    if known is not None and matches.unmatched is None:
        return modified(known)
    frames = [matches.pairs.rows] + ([] if matches.unmatched is None else [matches.unmatched])
    acted = reduce(
        DataFrame.unionByName, (frame.select(FILE, POSITION, CLAUSE) for frame in frames)
    ).filter(f"{quoted(CLAUSE)} IS NOT NULL")
    positions = acted.selectExpr(
        f"{quoted(FILE)} AS {quoted(FILE_KEY)}", f"{quoted(POSITION)} AS {quoted(ROW_INDEX)}"
    )
    # Several rows of the source may match the same row, if it is deleted.
    return modified(positions, num_staged=None if matches.num_deleted else matches.num_updated)


def _checked(matches: MergeMatches, modified: ModifiedFiles) -> MergeMatches:
    """Return the matches, with each row of the table counted once."""
    if modified.num_rows != matches.num_updated + matches.num_deleted:
        matches = matches.counted_by_row()
    expected = matches.num_updated + matches.num_deleted
    if modified.num_rows != expected:
        raise DeltaError.of(
            "DELTA_NUM_RECORDS_MISMATCH",
            path=matches.merge.snapshot.path,
            operation=OPERATION,
            expected=expected,
            found=modified.num_rows or 0,
        )
    return matches


def _result(spark: SparkSession, matches: MergeMatches | None = None) -> DataFrame:
    kinds = ("affected", "updated", "deleted", "inserted")
    counts = (0 if matches is None else getattr(matches, f"num_{kind}") for kind in kinds)
    columns = (f"{n}L AS num_{kind}_rows" for n, kind in zip(counts, kinds, strict=True))
    return spark.sql(f"SELECT {', '.join(columns)}")


def _row_metrics(matches: MergeMatches, modified: ModifiedFiles) -> dict[str, int]:
    """Return the metrics of MERGE about rows, by their names in history."""
    count, copied = matches.count, modified.num_copied_rows
    return {
        "numSourceRows": matches.num_source_rows,
        "numTargetRowsInserted": matches.num_inserted,
        "numTargetRowsUpdated": matches.num_updated,
        "numTargetRowsMatchedUpdated": count(Clause.MATCHED_UPDATE),
        "numTargetRowsNotMatchedBySourceUpdated": count(Clause.NOT_MATCHED_BY_SOURCE_UPDATE),
        "numTargetRowsDeleted": matches.num_deleted,
        "numTargetRowsMatchedDeleted": count(Clause.MATCHED_DELETE),
        "numTargetRowsNotMatchedBySourceDeleted": count(Clause.NOT_MATCHED_BY_SOURCE_DELETE),
        "numTargetRowsCopied": copied,
        "numOutputRows": matches.num_inserted + matches.num_updated + copied,
    }


def _file_metrics(delta: RowDelta) -> dict[str, int]:
    """Return the metrics of MERGE about files, by their names in history."""
    metrics = delta.file_metrics
    return {
        "numTargetFilesAdded": metrics["numAddedFiles"],
        "numTargetFilesRemoved": metrics["numRemovedFiles"],
        "numTargetBytesAdded": metrics["numAddedBytes"],
        "numTargetBytesRemoved": metrics["numRemovedBytes"],
        "numTargetChangeFilesAdded": metrics["numAddedChangeFiles"],
        "numTargetDeletionVectorsAdded": metrics["numDeletionVectorsAdded"],
        "numTargetDeletionVectorsRemoved": metrics["numDeletionVectorsRemoved"],
        "numTargetDeletionVectorsUpdated": metrics["numDeletionVectorsUpdated"],
    }


def _parameters(request: MergeRequest) -> dict[str, str]:
    """Return the parameters of MERGE in history."""

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
            separators=(",", ":"),
        )

    return {
        "predicate": condition_parameter(request.condition),
        "matchedPredicates": predicates(MATCHED),
        "notMatchedPredicates": predicates(NOT_MATCHED),
        "notMatchedBySourcePredicates": predicates(NOT_MATCHED_BY_SOURCE),
    }


def check_merge(merge: ResolvedMerge, condition: str | Column, frames: MergeFrames) -> None:
    """Refuse conditions and values that cannot be evaluated on the rows that they are for."""
    _check_condition(frames.both, condition, "ON")
    for clause in merge.clauses:
        rows, part = _rows_of(clause.kind, frames), str(clause.kind)
        if clause.condition is not None:
            _check_condition(rows, clause.condition, part)
        if clause.assignments is not None:
            given = list(expressions_of(clause.assignments))
            check_expressions(rows, given, unknown=partial(unresolved, part))


def _rows_of(kind: Clause, frames: MergeFrames) -> DataFrame:
    if kind.is_matched:
        return frames.both
    return frames.source if kind.is_not_matched else frames.target


@unlogged_errors()
def _check_condition(rows: DataFrame, condition: str | Column, part: str) -> None:
    try:
        deterministic_filter(rows, condition, operation=f"MERGE {part}")
    except DeltaError:
        raise
    except AnalysisException as error:
        name = missing_column(error)
        if name is not None:
            raise unresolved(part, name, rows.columns) from None
        refusal = InvalidConditionError(
            condition=shown(condition),
            problem=problem_of(error),
            spark_condition=str(error.getCondition()),
        ).named(error)
        if error.getCondition() == "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN":
            _name_as_not_boolean(refusal, error.getMessageParameters() or {}, part)
        raise refusal from None


def _name_as_not_boolean(refusal: DeltaError, parameters: Mapping[str, str], part: str) -> None:
    """Name the error of a condition that is not BOOLEAN: Spark checks it as one of a join, and
    conditions of clauses are converted.
    """
    if part == "ON":
        refusal.named(
            "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE",
            joinCondition=parameters["filter"],
            conditionType=parameters["type"],
        )
        return
    refusal.named(
        "CANNOT_UP_CAST_DATATYPE",
        expression="input",
        sourceType=parameters["type"],
        targetType='"BOOLEAN"',
        details=_NO_UP_CAST,
    )


_NO_UP_CAST = """The type path of the target object is:
- root class: "boolean"
You can either add an explicit cast to the input data or choose a higher precision type of the \
field in the target object"""
