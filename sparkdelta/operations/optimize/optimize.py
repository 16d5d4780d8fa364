"""Rewrite files as fewer larger ones, in Z-order or clustered by the table's columns.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors, PROTOCOL.md#clustered-table
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, SparkSession

from sparkdelta.base.protocol.table_features import (
    TableFeature,
    Writing,
    check_writable,
    is_supported,
)
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.exceptions import ClusteredTablePredicateError
from sparkdelta.operations.compaction.optimization import (
    OPERATION,
    OptimizeRequest,
    OptimizeResult,
    optimize_files,
)
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.rows.rewriting import chosen_partitions
from sparkdelta.table.rows.row_changes import open_changeable
from sparkdelta.table.rows.row_selection import condition_parameter


def optimize(
    spark: SparkSession,
    path: str,
    where: str | Column | None = None,
    request: OptimizeRequest | None = None,
    *,
    options: Mapping[str, str] | None = None,
) -> OptimizeResult:
    """Optimize the files of a table, or of the partitions that a condition selects.

    See `sparkdelta.api.maintenance.optimize`.
    """
    snapshot = open_changeable(spark, path, options, only_inserts=True)
    check_writable(snapshot.protocol, path=snapshot.path, writing=Writing.MAINTENANCE)
    if where is not None and is_supported(snapshot.protocol, TableFeature.CLUSTERING):
        raise ClusteredTablePredicateError(path=snapshot.path)
    adds = chosen_partitions(snapshot, where, operation=OPERATION)
    request = replace(request or OptimizeRequest(), predicate=condition_parameter(where))
    with jobs_of(snapshot.path, snapshot.version):
        return optimize_files(snapshot, adds, request, run_commit_hooks)
