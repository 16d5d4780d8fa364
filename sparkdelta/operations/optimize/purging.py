"""Files that hold rows or columns that the table no longer has.

References
----------
PROTOCOL.md#deletion-vectors, PROTOCOL.md#column-mapping,
PROTOCOL.md#writer-requirements-for-column-mapping
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.base.schema.column_mapping import physical_type
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import driver_files, task_count, worker_files
from sparkdelta.operations.compaction.compaction_batches import has_vector
from sparkdelta.operations.optimize.dropped_column_workers import (
    OTHER_COLUMNS,
    ColumnChecker,
    files_with_others,
)
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import Staging

MAX_DRIVER_FOOTERS = 100_000
"""Up to this many footers of HDFS are read by the driver, where workers have no way to them."""

_IS_DROPPED = "__sparkdelta_dropped"


def purgeable_files(snapshot: Snapshot, adds: DataFrame, count: int, stage: Staging) -> DataFrame:
    """Return the files with deleted rows, and those with columns that the table does not have; the
    footer of each file is read once.

    Parameters
    ----------
    adds
        As `Snapshot.add_files` gives them, and as the result has them.
    count
        The number of these files.
    """
    file = F.expr(absolute_path("path", table_root=snapshot.path))
    found = _with_other_columns(snapshot, adds.select(file.alias("file")), count)
    # Each look at the files to purge would read the footers again.
    stage.write_parquet(found, "dropped", {})
    dropped, _ = stage.read_parquet("dropped", OTHER_COLUMNS)
    is_dropped = F.broadcast(dropped.select("file", F.lit(True).alias(_IS_DROPPED)))
    joined = adds.withColumn("file", file).join(is_dropped, "file", "left")
    return joined.filter(has_vector() | F.col(_IS_DROPPED)).select(*adds.columns)


def _with_other_columns(snapshot: Snapshot, files: DataFrame, count: int) -> DataFrame:
    spark, options = snapshot.log.spark, snapshot.log.options
    workers = worker_files(spark, snapshot.path, options)
    checker = ColumnChecker(workers, _stored_columns(snapshot.configuration))
    if workers.is_near(snapshot.path) or count > MAX_DRIVER_FOOTERS:
        with worker_python(spark):
            return files_with_others(files.repartition(task_count(count)), checker)
    checker = replace(checker, files=driver_files(spark, snapshot.path, options))
    table = read_table(files, what="files to purge", bound=MAX_DRIVER_FOOTERS)
    found = checker.with_others(table["file"].to_pylist())
    return spark.createDataFrame([(file,) for file in found], OTHER_COLUMNS)


def _stored_columns(table: TableConfiguration) -> StructType:
    """Return the columns that data files may hold, by their physical names."""
    schema = physical_type(table.schema, table.column_mapping)
    assert isinstance(schema, StructType)
    tracking = table.row_tracking
    names = (tracking.row_id_column, tracking.row_commit_version_column)
    return StructType([*schema.fields, *(StructField(n, LongType()) for n in names if n)])
