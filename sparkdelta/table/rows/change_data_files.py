"""Change data files: the rows that a commit deletes, inserts or updates, each with its kind.

References
----------
PROTOCOL.md#add-cdc-file, PROTOCOL.md#change-data-files
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.change_types import CHANGE_TYPE, ChangeType
from sparkdelta.base.protocol.file_actions import AddCDCFile
from sparkdelta.table.rows.new_files import NewFiles


def with_change_type(rows: DataFrame, change_type: ChangeType) -> DataFrame:
    """Return rows of the table with their type of change."""
    return rows.withColumn(CHANGE_TYPE, F.lit(change_type.value))


def change_data_actions(files: NewFiles) -> tuple[AddCDCFile, ...]:
    """Return the cdc actions of change data files; see `change_data_action_rows` for many."""
    return tuple(AddCDCFile(add.path, add.partition_values, add.size) for add in files.values or ())


def change_data_action_rows(files: NewFiles) -> DataFrame:
    """Return the cdc actions of change data files in a column `cdc`."""
    fields = (F.col(f"add.{name}") for name in ("path", "partitionValues", "size"))
    return files.adds.select(F.struct(*fields, F.lit(False).alias("dataChange")).alias("cdc"))
