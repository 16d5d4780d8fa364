"""Rewrite the files that hold rows or columns that the table no longer has.

References
----------
PROTOCOL.md#deletion-vectors, PROTOCOL.md#column-mapping
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, SparkSession

from sparkdelta.base.protocol.table_features import Writing, check_writable
from sparkdelta.base.protocol.table_properties import declared_file_size
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.operations.compaction.compaction import (
    MAX_COMMIT_BYTES,
    described_files,
    plan_batches,
)
from sparkdelta.operations.compaction.optimization import (
    TARGET_FILE_SIZE,
    OptimizeResult,
    Rewriter,
    nothing_done,
)
from sparkdelta.operations.optimize.purging import purgeable_files
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.rows.rewriting import chosen_partitions
from sparkdelta.table.rows.row_changes import open_changeable, unchanged_table
from sparkdelta.table.rows.row_selection import condition_parameter
from sparkdelta.table.snapshot.staging import staging

_OPERATION = "REORG"


def reorg(
    spark: SparkSession,
    path: str,
    where: str | Column | None = None,
    *,
    target_file_size: int | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
) -> OptimizeResult:
    """Purge the files of a table.

    See `sparkdelta.api.maintenance.reorg`.
    """
    snapshot = open_changeable(spark, path, options, only_inserts=True)
    check_writable(snapshot.protocol, path=snapshot.path, writing=Writing.MAINTENANCE)
    adds = chosen_partitions(snapshot, where, operation=_OPERATION)
    size = target_file_size or declared_file_size(snapshot.properties) or TARGET_FILE_SIZE
    with (
        engine_of(spark).write_session() as session,
        jobs_of(snapshot.path, snapshot.version),
        staging(session, snapshot.log.store) as stage,
    ):
        change = unchanged_table(snapshot)
        result = nothing_done(snapshot, change, adds, is_whole=where is None)
        files = purgeable_files(snapshot, adds, result.num_considered_files, stage)
        batches = plan_batches(
            snapshot,
            described_files(snapshot, files),
            target_file_size=size,
            max_bytes=max_bytes or MAX_COMMIT_BYTES,
            takes_all=True,
        )
        return Rewriter(
            session=session,
            change=change,
            operation=Operation(
                _OPERATION,
                {"predicate": condition_parameter(where), "applyPurge": True},
                changes_data=False,
            ),
            after_commit=run_commit_hooks,
        ).run(batches, result, dry_run=dry_run)
