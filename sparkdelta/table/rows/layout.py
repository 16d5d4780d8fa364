"""The layout of rows in data files: partition values, physical names, how tasks share them, and the
places of the files.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#partition-value-serialization,
PROTOCOL.md#writer-requirements-for-column-mapping
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.iceberg_compatibility import row_tracking_ids
from sparkdelta.base.protocol.partition_values import escaped_name
from sparkdelta.base.schema.column_mapping import physical_name
from sparkdelta.base.schema.table_schema import quoted, stored_schema
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.written_row_frames import physical_rows, written_rows
from sparkdelta.table.scan.stored_row_frames import without_void_columns

_SHUFFLED_BYTES_PER_BYTE = 2  # rows that are shuffled are larger than in columns, by about so much
FIELD_ID_SETTING = "spark.sql.parquet.fieldId.write.enabled"
_SHUFFLE_SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1",
    "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
}
"""Settings with which Spark measures what was shuffled, and splits and joins tasks to the wanted
size."""

CHANGE_DATA_DIRECTORY = "_change_data"
"""The directory of the change data files, below the table's root."""

_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@dataclass(frozen=True, slots=True)
class LaidOutRows:
    """Rows as data files will hold them.

    Attributes
    ----------
    rows
        The columns of the files, then a STRING column for each level of directories.
    directories
        The names of these columns.
    settings
        Spark's settings for the write.
    """

    rows: DataFrame
    directories: tuple[str, ...]
    settings: Mapping[str, str]


def lay_out(
    rows: DataFrame,
    table: TableConfiguration,
    *,
    spark: SparkSession,
    file_columns: Sequence[str] = (),
    target_file_size: int | None = None,
    is_shuffled: bool = True,
) -> LaidOutRows:
    """Group conformed rows so that each partition is written to its own directory.

    Parameters
    ----------
    rows
        The table's columns and `file_columns`.
    file_columns
        Columns that the files hold beside the table's columns.
    target_file_size
        The approximate size in bytes: rows are shuffled so that a partition gets one file for each
        such amount; None to write them where they are.
    is_shuffled
        False to leave the rows where they are in any case.
    """
    names, stored = directory_names(table), stored_schema(table.schema)
    rows = without_void_columns(rows, table.schema, file_columns)
    directories = tuple(names.values())
    has_partitions = table.stores_partition_columns
    laid_out = written_rows(
        rows, stored.fields, names, file_columns, with_partitions=has_partitions
    )
    if target_file_size is not None and is_shuffled:
        with engine_of(spark).in_table_session(laid_out) as ours:
            shuffled = ours.hint("rebalance", *(F.col(quoted(name)) for name in directories))
        laid_out = engine_of(spark).rebind_to_session(shuffled)
    if table.is_mapped:
        fields = [field for field in stored.fields if field.name not in names]
        if has_partitions:  # after the others, as the first version asks for
            fields += [field for field in stored.fields if field.name in names]
        ids = row_tracking_ids(table.iceberg_version, table.row_tracking)
        laid_out = physical_rows(laid_out, fields, [*file_columns, *directories], ids)
    return LaidOutRows(laid_out, directories, write_settings(table, target_file_size))


def directory_names(table: TableConfiguration) -> dict[str, str]:
    """Return the name of each partition column in the directories that Spark writes: its key in
    `partitionValues`, unless Spark would hide the directory, or another column of the rows or files
    has this name.
    """
    data = table.schema.fields if table.stores_partition_columns else table.data_fields
    taken = {name_key(field.name) for field in data}
    taken |= {name_key(physical_name(field, table.column_mapping)) for field in data}
    names: dict[str, str] = {}
    for index, (name, field) in enumerate(table.partition_keys):
        if name[0] not in _PLAIN:
            name = f"p{index}"
        while name_key(name) in taken:
            name += "_"
        taken.add(name_key(name))
        names[field.name] = name
    return names


def placed_file(written: str, table: TableConfiguration, *, is_change_data: bool) -> str:
    """Return the place of a file below the table's root, given its path below the directory that
    Spark wrote it to.

    Its directories are named by the keys of `partitionValues`. Names of files have a UUID of the
    write, so that no two writes choose one.
    """
    *directories, name = written.split("/")
    keys = (key for key, _ in table.partition_keys)
    values = (directory.partition("=")[2] for directory in directories)
    names = [f"{escaped_name(key)}={value}" for key, value in zip(keys, values, strict=True)]
    if is_change_data:
        return "/".join([CHANGE_DATA_DIRECTORY, *names, f"cdc-{name.removeprefix('part-')}"])
    return "/".join([*names, name])


def write_settings(table: TableConfiguration, target_file_size: int | None) -> Mapping[str, str]:
    """Return Spark's settings for a write, see `LaidOutRows`."""
    ids = {FIELD_ID_SETTING: str(table.is_mapped).lower()}
    if target_file_size is None:
        return ids
    size = target_file_size * _SHUFFLED_BYTES_PER_BYTE
    return {
        **ids,
        **_SHUFFLE_SETTINGS,
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(size),
    }
