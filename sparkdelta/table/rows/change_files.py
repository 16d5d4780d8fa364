"""Change data files: the rows that a commit deletes, inserts or updates, each with its kind.

References
----------
PROTOCOL.md#add-cdc-file, PROTOCOL.md#change-data-files
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.change_types import CHANGE_TYPE, ChangeType
from sparkdelta.base.protocol.file_actions import AddCDCFile
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.table.rows.data_files import write_data_files
from sparkdelta.table.rows.file_descriptions import FileDescriber
from sparkdelta.table.rows.layout import lay_out
from sparkdelta.table.rows.new_files import NewFiles


@dataclass(frozen=True, slots=True)
class ChangeFiles:
    """Change data files that are written and not committed.

    Attributes
    ----------
    values
        Their cdc actions; none if they are many.
    actions
        The same in a column `cdc` if they are many.
    """

    count: int
    num_rows: int
    size_bytes: int
    directory: str
    values: tuple[AddCDCFile, ...] = ()
    actions: DataFrame | None = None


def with_change_type(rows: DataFrame, change_type: ChangeType) -> DataFrame:
    """Rows of the table with the column that tells what happened to them."""
    return rows.withColumn(CHANGE_TYPE, F.lit(change_type.value))


def write_change_files(
    rows: DataFrame, store: LogStore, describer: FileDescriber, options: Mapping[str, str]
) -> ChangeFiles:
    """Write change data files below `_change_data`.

    Parameters
    ----------
    rows
        The table's columns and `CHANGE_TYPE`.
    options
        Of Spark's Parquet writer, and Hadoop's settings.

    Raises
    ------
    WriteFailedError
        The likely cause of a failed job.
    """
    describer = replace(describer, statistics_columns=(), data_change=False)
    laid_out = lay_out(rows, describer.table, spark=describer.spark, file_columns=[CHANGE_TYPE])
    written = write_data_files(laid_out, store, describer, options, is_change_data=True)
    return _as_change_files(written)


def _as_change_files(written: NewFiles) -> ChangeFiles:
    if written.values is not None:
        values = tuple(
            AddCDCFile(add.path, add.partition_values, add.size) for add in written.values
        )
        return ChangeFiles(
            written.count, written.num_rows, written.size_bytes, written.directory, values
        )
    fields = (F.col(f"add.{name}") for name in ("path", "partitionValues", "size"))
    cdc = F.struct(*fields, F.lit(False).alias("dataChange")).alias("cdc")
    return ChangeFiles(
        written.count,
        written.num_rows,
        written.size_bytes,
        written.directory,
        actions=written.adds.select(cdc),
    )
