"""Rewrite small files, and files with many deleted rows, as fewer larger ones.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, SparkSession

from sparkdelta.engine.job_names import jobs_of
from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.exceptions import WriteNotImplementedError
from sparkdelta.protocol.staged_commit import Operation
from sparkdelta.protocol.table_properties import declared_file_size
from sparkdelta.table.maintenance.commit_hooks import run_commit_hooks
from sparkdelta.table.maintenance.optimization import (
    TARGET_FILE_SIZE,
    OptimizeResult,
    Rewriter,
    nothing_done,
)
from sparkdelta.table.write.compaction import MAX_COMMIT_BYTES, candidates, plan_batches
from sparkdelta.table.write.matching_rows import condition_parameter
from sparkdelta.table.write.rewriting import chosen_partitions
from sparkdelta.table.write.row_changes import open_changeable, unchanged_table

_OPERATION = "OPTIMIZE"


def optimize(
    spark: SparkSession,
    path: str,
    where: str | Column | None = None,
    *,
    target_file_size: int | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
) -> OptimizeResult:
    """Compact the files of a table.

    See `sparkdelta.maintenance.optimize`.
    """
    snapshot = open_changeable(spark, path, options, only_inserts=True)
    adds = chosen_partitions(snapshot, where, operation=_OPERATION)
    size = target_file_size or declared_file_size(snapshot.properties) or TARGET_FILE_SIZE
    with (
        engine_of(spark).write_session() as session,
        jobs_of(snapshot.path, snapshot.version),
    ):
        change = unchanged_table(snapshot)
        if change.clustering_columns:
            missing = ("OPTIMIZE of a table that is clustered by columns",)
            raise WriteNotImplementedError(path=snapshot.path, missing=missing)
        operation = Operation(
            _OPERATION,
            {
                "predicate": condition_parameter(where),
                "zOrderBy": "[]",
                "clusterBy": "[]",
                "auto": "false",
            },
            changes_data=False,
        )
        files = candidates(snapshot, adds, target_file_size=size)
        batches = plan_batches(
            snapshot, files, target_file_size=size, max_bytes=max_bytes or MAX_COMMIT_BYTES
        )
        return Rewriter(
            session=session, change=change, operation=operation, after_commit=run_commit_hooks
        ).run(
            batches, nothing_done(snapshot, change, adds, is_whole=where is None), dry_run=dry_run
        )
