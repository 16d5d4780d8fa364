"""Public functions that make a table of another table, or of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.protocol.arguments import checked_flag, checked_version, named_arguments
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.copy.clone import CloneOptions, CloneResult
from sparkdelta.operations.copy.clone import clone as clone_table
from sparkdelta.operations.copy.convert import ConvertResult, convert
from sparkdelta.operations.copy.converted_table import ConvertOptions, checked_partition_schema
from sparkdelta.table.listing.missing_tables import with_not_found_hint
from sparkdelta.table.log.time_travel import version_at_timestamp


@named_arguments
def clone(
    spark: SparkSession,
    source: str,
    target: str,
    *,
    deep: bool = False,
    version: int | None = None,
    timestamp: str | datetime | date | None = None,
    replace: bool = False,
    properties: Mapping[str, str] | None = None,
) -> CloneResult:
    """Clone a version of a table.

    The clone has the same rows, schema, properties, features and clustering columns, and no
    history. Rows get new row ids, except for copies that a repeated deep clone keeps.

    A shallow clone names the files of the source by their absolute paths, and writes none. VACUUM
    of the source deletes files that the source no longer has, although the clone needs them. A deep
    clone has copies of the files, which executors make, each compared with the size that the log
    gives. To repeat a deep clone with `replace` copies only the files that are new in the source;
    rows that were changed in the clone are replaced by the source's.

    Parameters
    ----------
    source, target
        The roots of the tables, as any paths that Spark can read and write; neither within the
        other.
    deep
        True to copy the files.
    version, timestamp
        The version of the source, or the latest at this time; the latest by default.
    replace
        True if there may be a table at the target. It keeps its id, its history and its features;
        a shallow clone can replace it only while it has no files.
    properties
        Properties of the clone, in place of the source's.

    Returns
    -------
    CloneResult
        version, source_version, source_table_size (bytes), source_num_of_files,
        num_removed_files, num_copied_files, removed_files_size, copied_files_size.

    Raises
    ------
    DELTA_TABLE_ALREADY_EXISTS, DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION,
    DELTA_UNSUPPORTED_NON_EMPTY_CLONE
        There is a table or other files at the target.
    DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE
        The column mapping mode would change.
    DELTA_FILE_NOT_FOUND, StorageError, DeletionVectorError
        A file of the source is missing, is not as the log describes it, or cannot be copied.
    DeltaError
        The source cannot be read, or this engine cannot write tables of its features; nothing was
        committed.

    Examples
    --------
    >>> clone(spark, "/data/people", "/backup/people", deep=True).num_copied_files  # doctest: +SKIP
    3

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata
    """
    if version is not None and timestamp is not None:
        raise DeltaError.of("DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS")
    checked_version(version)
    checked_flag(deep, "deep")
    checked_flag(replace, "replace")
    with with_not_found_hint(spark, source):
        if timestamp is not None:
            version = version_at_timestamp(spark, source, timestamp)
        options = CloneOptions(
            version=version, deep=deep, replace=replace, properties=properties or {}
        )
        return clone_table(spark, source, target, options)


@named_arguments
def convert_to_delta(
    spark: SparkSession,
    path: str,
    *,
    partition_schema: StructType | str | None = None,
    infer_partitions: bool = False,
    collect_statistics: bool = True,
    properties: Mapping[str, str] | None = None,
) -> ConvertResult:
    """Convert a directory of Parquet files to a Delta table: commit a version with all of them.

    The files stay where and as they are. Executors list them and read their footers, whose
    schemas are merged into the table's; a column keeps its field id. Files and directories whose
    names begin with ``_`` or ``.`` are left out, but for directories of partition columns; all
    other files must be Parquet files.

    Parameters
    ----------
    path
        The directory, as any path that Spark can read and write. Nobody may write to it meanwhile.
    partition_schema
        The columns whose values are in the names of directories, such as ``"date DATE, id INT"``,
        in the order of the directories; none by default.
    infer_partitions
        True to take them from the names of the directories: INT, BIGINT or DATE if all values are,
        else STRING.
    collect_statistics
        True to store statistics of the files, from their footers.
    properties
        Properties of the table.

    Returns
    -------
    ConvertResult
        version (None if there was a Delta table already), num_converted_files, num_bytes.

    Raises
    ------
    DELTA_EMPTY_DIRECTORY, DELTA_FAILED_READ_FILE_FOOTER, DELTA_CONVERT_NON_PARQUET_TABLE,
    DELTA_FAILED_MERGE_SCHEMA_FILE
        There are no files, other files, or files that do not fit together.
    DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME,
    DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME, DELTA_FAILED_CAST_PARTITION_VALUE
        The names of directories do not fit the partition columns.
    DeltaError
        No table can have this schema; nothing was committed.

    Examples
    --------
    >>> convert_to_delta(spark, "/data/events", partition_schema="day DATE")  # doctest: +SKIP

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#per-file-statistics
    """
    options = ConvertOptions(
        partition_schema=checked_partition_schema(partition_schema, "partition_schema"),
        infers_partitions=checked_flag(infer_partitions, "infer_partitions"),
        collects_statistics=checked_flag(collect_statistics, "collect_statistics"),
        properties=properties or {},
    )
    return convert(spark, path, options)
