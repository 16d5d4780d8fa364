"""Public functions that make a table of another table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from pyspark.sql import SparkSession

from sparkdelta.commands.clone import CloneOptions, CloneResult
from sparkdelta.commands.clone import clone as clone_table
from sparkdelta.exceptions import TimeTravelMultipleFormatsError
from sparkdelta.protocol.arguments import checked_flag, checked_version, named_arguments
from sparkdelta.table.log.missing_tables import advised
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
    """Clone a version of a table: commit a table with the same rows, schema, properties, features
    and clustering columns, and with no history. Rows get new row ids.

    A shallow clone names the files of the source by their absolute paths, and writes none. VACUUM
    of the source deletes files that the source no longer has, although the clone needs them. A deep
    clone has copies of the files, which executors make, each compared with the size that the log
    gives. To repeat a deep clone with `replace` copies only the files that are new in the source;
    rows that were changed in the clone become those of the source.

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
        Properties of the clone, in place of those of the source.

    Returns
    -------
    CloneResult
        version, source_version, source_table_size (bytes), source_num_of_files,
        num_removed_files, num_copied_files, removed_files_size, copied_files_size.

    Raises
    ------
    TableAlreadyExistsError, NonEmptyLocationError, CloneTargetNotEmptyError
        There is a table or other files at the target.
    ColumnMappingModeChangeError
        The column mapping mode would change.
    DataFileNotFoundError, StorageError, DeletionVectorError
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
        raise TimeTravelMultipleFormatsError()
    checked_version(version)
    checked_flag(deep, "deep")
    checked_flag(replace, "replace")
    with advised(spark, source):
        if timestamp is not None:
            version = version_at_timestamp(spark, source, timestamp)
        options = CloneOptions(
            version=version, deep=deep, replace=replace, properties=properties or {}
        )
        return clone_table(spark, source, target, options)
