"""`DeltaOptimizeBuilder` with the method names of delta-spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.exceptions import WriteNotImplementedError
from sparkdelta.protocol.arguments import checked_text
from sparkdelta.table.maintenance.optimization import OptimizeResult
from sparkdelta.table.write.compaction import FileSizes

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
    """Builds an OPTIMIZE of a table; nothing is executed before ``execute...``.

    Created by `DeltaTable.optimize`.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """

    def __init__(
        self, spark: SparkSession, path: str, executed: Callable[[str | None], OptimizeResult]
    ) -> None:
        self._spark = spark
        self._path = path
        self._executed = executed
        self._filters: tuple[str, ...] = ()

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Only optimize the partitions that a condition is true of; with several, all of them.

        Parameters
        ----------
        partitionFilter
            SQL text on partition columns.
        """
        checked_text(partitionFilter, "partitionFilter")
        self._filters = (*self._filters, partitionFilter)
        return self

    def executeCompaction(self) -> DataFrame:
        """Rewrite small files, and files with many deleted rows, as fewer larger ones.

        See `sparkdelta.optimize`.

        Returns
        -------
        DataFrame
            One row: path STRING, metrics STRUCT with delta-spark's names; sizes are in bytes, times
            in milliseconds since the epoch.
        """
        condition = " AND ".join(f"({text})" for text in self._filters)
        only = self._filters[0] if len(self._filters) == 1 else condition or None
        return _frame(self._spark, self._executed(only))

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Not implemented.

        Raises
        ------
        WriteNotImplementedError
            Always.
        """
        missing = (f"OPTIMIZE with ZORDER BY {cols}",)
        raise WriteNotImplementedError(path=self._path, missing=missing)


def _frame(spark: SparkSession, result: OptimizeResult) -> DataFrame:
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
    if result.num_deletion_vectors:
        metrics["deletionVectorStats"] = {
            "numDeletionVectorsRemoved": result.num_deletion_vectors,
            "numDeletionVectorRowsRemoved": result.num_deleted_rows,
        }
    return spark.createDataFrame([{"path": result.path, "metrics": metrics}], _SCHEMA)


def _files(sizes: FileSizes) -> dict[str, float | None]:
    return {
        "min": sizes.smallest,
        "max": sizes.largest,
        "avg": sizes.total / sizes.count if sizes.count else 0.0,
        "totalFiles": sizes.count,
        "totalSize": sizes.total,
    }
