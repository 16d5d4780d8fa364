"""`DeltaOptimizeBuilder` with the method names of delta-spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.protocol.arguments import checked_names, checked_text
from sparkdelta.base.spark.local_data import rows_frame
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.operations.compaction.compaction_batches import FileSizes
from sparkdelta.operations.compaction.optimize_run import OptimizeRequest, OptimizeResult

_FILES = "STRUCT<min: LONG, max: LONG, avg: DOUBLE, totalFiles: LONG, totalSize: LONG>"
_PAIR = "STRUCT<num: LONG, size: LONG>"
_CUBE_FILES = "STRUCT<numFiles: LONG, size: LONG>"
_SCHEMA = f"""path STRING, metrics STRUCT<
    numFilesAdded: LONG, numFilesRemoved: LONG, filesAdded: {_FILES}, filesRemoved: {_FILES},
    partitionsOptimized: LONG,
    zOrderStats: STRUCT<strategyName: STRING, inputCubeFiles: {_PAIR}, inputOtherFiles: {_PAIR},
        inputNumCubes: LONG, mergedFiles: {_PAIR}, numOutputCubes: LONG, mergedNumCubes: LONG>,
    clusteringStats: STRUCT<inputZCubeFiles: {_CUBE_FILES}, inputOtherFiles: {_CUBE_FILES},
        inputNumZCubes: LONG, mergedFiles: {_CUBE_FILES}, numOutputZCubes: LONG>,
    numBins: LONG, numBatches: LONG, totalConsideredFiles: LONG, totalFilesSkipped: LONG,
    preserveInsertionOrder: BOOLEAN, numFilesSkippedToReduceWriteAmplification: LONG,
    numBytesSkippedToReduceWriteAmplification: LONG, startTimeMs: LONG, endTimeMs: LONG,
    totalClusterParallelism: LONG, totalScheduledTasks: LONG,
    autoCompactParallelismStats: STRUCT<maxClusterActiveParallelism: LONG,
        minClusterActiveParallelism: LONG, maxSessionActiveParallelism: LONG,
        minSessionActiveParallelism: LONG>,
    deletionVectorStats: STRUCT<numDeletionVectorsRemoved: LONG,
        numDeletionVectorRowsRemoved: LONG>,
    numTableColumns: LONG, numTableColumnsWithStats: LONG>"""
"""The columns of delta-spark's result."""


class DeltaOptimizeBuilder:
    """The builder of an OPTIMIZE of a table; nothing is executed before ``execute...``.

    Created by `DeltaTable.optimize`.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """

    def __init__(
        self,
        spark: SparkSession,
        executed: Callable[[str | None, OptimizeRequest], OptimizeResult],
    ) -> None:
        self._spark = spark
        self._executed = executed
        self._filters: tuple[str, ...] = ()

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Restrict the optimization to partitions that match a condition.

        Repeated calls combine their conditions with AND.

        Parameters
        ----------
        partitionFilter
            SQL text on partition columns.
        """
        checked_text(partitionFilter, "partitionFilter")
        self._filters = (*self._filters, partitionFilter)
        return self

    def executeCompaction(self) -> DataFrame:
        """Rewrite small files, and files with many deleted rows, as fewer larger ones; cluster the
        files of a clustered table, as far as they are not.

        See `sparkdelta.optimize`.

        Returns
        -------
        DataFrame
            One row: path STRING, metrics STRUCT with delta-spark's names; sizes are in bytes, times
            in milliseconds since the epoch.
        """
        return self._execute(OptimizeRequest())

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Rewrite all files, with their rows in Z-order.

        See `sparkdelta.optimize`.

        Parameters
        ----------
        cols
            Names of data columns.

        Returns
        -------
        DataFrame
            As `executeCompaction`.
        """
        names = [name for each in cols for name in ([each] if isinstance(each, str) else each)]
        if not names:
            raise InvalidArgumentError(argument="cols", problem="it names no column")
        return self._execute(OptimizeRequest(zorder_by=checked_names(names, "cols") or ()))

    def _execute(self, request: OptimizeRequest) -> DataFrame:
        condition = " AND ".join(f"({text})" for text in self._filters)
        only = self._filters[0] if len(self._filters) == 1 else condition or None
        return optimize_metrics(self._spark, self._executed(only, request))


def optimize_metrics(spark: SparkSession, result: OptimizeResult) -> DataFrame:
    """Return the result of delta-spark's OPTIMIZE: one row, path and metrics."""
    metrics: dict[str, Any] = {
        "numFilesAdded": result.added.count,
        "numFilesRemoved": result.removed.count,
        "filesAdded": _files(result.added),
        "filesRemoved": _files(result.removed),
        "partitionsOptimized": result.num_partitions,
        "numBins": result.num_bins,
        "numBatches": max(len(result.versions), 1),
        "totalConsideredFiles": result.num_considered_files,
        "totalFilesSkipped": result.num_considered_files - result.removed.count,
        "preserveInsertionOrder": False,
        "numFilesSkippedToReduceWriteAmplification": 0,
        "numBytesSkippedToReduceWriteAmplification": 0,
        "startTimeMs": result.start_ms,
        "endTimeMs": result.start_ms + result.milliseconds,
        "totalClusterParallelism": 0,
        "totalScheduledTasks": 0,
        "numTableColumns": result.num_columns,
        "numTableColumnsWithStats": result.num_columns_with_statistics,
    }
    removed = {"num": result.removed.count, "size": result.removed.total}
    if result.zorder_by:
        nothing = {"num": 0, "size": 0}
        metrics["zOrderStats"] = {
            "strategyName": "all",
            "inputCubeFiles": nothing,
            "inputOtherFiles": removed,
            "inputNumCubes": 0,
            "mergedFiles": removed,
            "numOutputCubes": result.num_partitions,
        }
    if result.clustered_files is not None:
        before = result.clustered_files
        metrics["clusteringStats"] = {
            "inputZCubeFiles": {"numFiles": before.cube_files, "size": before.cube_bytes},
            "inputOtherFiles": {"numFiles": before.other_files, "size": before.other_bytes},
            "inputNumZCubes": before.num_cubes,
            "mergedFiles": {"numFiles": result.removed.count, "size": result.removed.total},
            "numOutputZCubes": result.num_bins,
        }
    if result.num_deletion_vectors:
        metrics["deletionVectorStats"] = {
            "numDeletionVectorsRemoved": result.num_deletion_vectors,
            "numDeletionVectorRowsRemoved": result.num_deleted_rows,
        }
    schema = StructType.fromDDL(_SCHEMA)
    assert isinstance(schema, StructType)
    return rows_frame(spark, [(result.path, metrics)], schema)


def _files(sizes: FileSizes) -> dict[str, float | None]:
    return {
        "min": sizes.smallest,
        "max": sizes.largest,
        "avg": sizes.total / sizes.count if sizes.count else 0.0,
        "totalFiles": sizes.count,
        "totalSize": sizes.total,
    }
