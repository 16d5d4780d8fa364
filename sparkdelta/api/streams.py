"""Public functions to read tables as streams, and to write streams to tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sparkdelta.base.protocol.arguments import checked_path, checked_text, named_arguments
from sparkdelta.base.spark.library_sessions import UTC
from sparkdelta.base.spark.session_settings import follow_settings, follows_settings
from sparkdelta.base.spark.spark_engine import SparkEngine, engine_of
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.operations.stream.read_stream import read_stream as read_stream_of
from sparkdelta.operations.stream.stream_options import StreamOptions
from sparkdelta.operations.write.write import write
from sparkdelta.table.definition.write_options import OUTPUT_MODES, WriteOptions
from sparkdelta.table.listing.missing_tables import with_not_found_hint
from sparkdelta.table.snapshot.snapshot import check_time_zone


@named_arguments
def read_stream(
    spark: SparkSession,
    path: str,
    *,
    starting_version: int | str | None = None,
    starting_timestamp: str | datetime | date | None = None,
    max_files_per_trigger: int | None = None,
    max_bytes_per_trigger: int | None = None,
    ignore_deletes: bool = False,
    ignore_changes: bool = False,
    skip_change_commits: bool = False,
    exclude_regex: str | None = None,
    read_change_feed: bool = False,
    fail_on_data_loss: bool = True,
    partition_time_zone: str = "UTC",
) -> DataFrame:
    """Return a table as a streaming DataFrame: its rows, then the rows of each new commit.

    Each batch is read by Spark's own Parquet source. Offsets have delta-spark's format: either
    engine can continue the other's query from its checkpoint. A schema change ends the query; start
    `read_stream` and the query again to go on with the new schema.

    Parameters
    ----------
    spark
        A classic or Spark Connect session.
    path
        The table's root, as any path that Spark can read.
    starting_version
        Start with the changes of this version, or with ``latest``, after the latest version; by
        default a new query first reads all rows of the table. Ignored by a query that continues
        from a checkpoint.
    starting_timestamp
        Start with the first version at or after this time, instead of `starting_version`.
    max_files_per_trigger, max_bytes_per_trigger
        The most that a batch reads, except that it reads one file at least; 1000 files by default.
    ignore_deletes
        True to pass over commits that delete whole files without adding any.
    ignore_changes
        True to read the files that commits rewrite, with rows that were read before, too.
    skip_change_commits
        True to pass over all commits that remove data.
    exclude_regex
        A regular expression of Java: files with a match in their path are not read.
    read_change_feed
        True to read the change data feed, with the columns of `read_changes`. The rows that the
        table has at the start are inserts.
    fail_on_data_loss
        False to pass over commits that log cleanup has deleted.
    partition_time_zone
        As of `read_delta`.

    Returns
    -------
    DataFrame
        A streaming DataFrame with the table's columns in schema order, all nullable. Each commit
        that removes rows ends its query, unless an option allows it.

    Raises
    ------
    DELTA_STREAM_NOT_SUPPORTED
        This version of Spark is not supported, or not with limits on Spark Connect.
    DeltaError
        The table cannot be read, or the options contradict each other; see `sparkdelta.exceptions`.

    Examples
    --------
    >>> rows = read_stream(spark, "/data/people", starting_version=3)  # doctest: +SKIP
    >>> write_stream(rows.where("age > 40"), "/data/adults", "/data/checkpoint")  # doctest: +SKIP

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    options = StreamOptions(
        starting_version=starting_version,
        starting_timestamp=starting_timestamp,
        max_files_per_trigger=max_files_per_trigger,
        max_bytes_per_trigger=max_bytes_per_trigger,
        ignore_deletes=ignore_deletes,
        ignore_changes=ignore_changes,
        skip_change_commits=skip_change_commits,
        exclude_regex=exclude_regex,
        read_change_feed=read_change_feed,
        fail_on_data_loss=fail_on_data_loss,
    )
    check_time_zone(spark, partition_time_zone)
    with with_not_found_hint(spark, path):
        return read_stream_of(spark, path, options, partition_time_zone=partition_time_zone)


@named_arguments
def write_stream(
    df: DataFrame,
    path: str,
    checkpoint_location: str,
    *,
    output_mode: str = "append",
    trigger: Mapping[str, str | bool] | None = None,
    query_name: str | None = None,
    partition_by: Sequence[str] | None = None,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    user_metadata: str | None = None,
    properties: Mapping[str, str] | None = None,
    max_records_per_file: int | None = None,
    target_file_size: int | None = None,
    compression: str | None = None,
) -> StreamingQuery:
    """Start a streaming query that writes its rows to a Delta table, each batch exactly once.

    Each batch is one version, committed with the id of the query and the number of the batch: a
    batch that Spark runs again, after a crash at any point, is skipped if it was committed before.

    Parameters
    ----------
    df
        A streaming DataFrame.
    path
        The table's root; the table is created if it does not exist.
    checkpoint_location
        The directory of the query's checkpoint. It identifies the query: a query started with the
        same one continues where the last one ended.
    output_mode
        ``append``, or ``complete`` to replace all rows of the table by each batch.
    trigger
        The arguments of `DataStreamWriter.trigger`, such as ``{"availableNow": True}`` or
        ``{"processingTime": "10 seconds"}``; by default, each batch follows the one before.
    query_name
        The name of the query in Spark's listeners and UI.
    overwrite_schema
        With ``complete``: replaces the table's schema and partitioning by the rows'.
    partition_by, merge_schema, user_metadata
        As of `write_delta`.
    properties
        Of the table, if the query creates it; ignored if the table exists.
    max_records_per_file, target_file_size, compression
        As of `write_delta`.

    Returns
    -------
    StreamingQuery
        The running query. An error of a batch ends it; its text has the error class.

    Raises
    ------
    DELTA_UNSUPPORTED_OUTPUT_MODE
        The output mode is neither ``append`` nor ``complete``.
    InvalidArgumentError
        An argument is invalid, or the DataFrame is not a stream.

    Examples
    --------
    >>> trigger = {"availableNow": True}
    >>> query = write_stream(df, "/data/people", "/data/checkpoint", trigger=trigger)
    ... # doctest: +SKIP

    References
    ----------
    PROTOCOL.md#transaction-identifiers
    """
    return start_stream(
        df,
        path,
        checkpoint_location,
        time_zone=UTC,
        output_mode=output_mode,
        trigger=trigger,
        query_name=query_name,
        partition_by=partition_by,
        merge_schema=merge_schema,
        overwrite_schema=overwrite_schema,
        user_metadata=user_metadata,
        properties=properties,
        max_records_per_file=max_records_per_file,
        target_file_size=target_file_size,
        compression=compression,
    )


def start_stream(
    df: DataFrame,
    path: str,
    checkpoint_location: str,
    *,
    time_zone: str,
    output_mode: str,
    trigger: Mapping[str, str | bool] | None = None,
    query_name: str | None = None,
    properties: Mapping[str, str] | None = None,
    **options: Any,
) -> StreamingQuery:
    """Start the query of `write_stream`, which converts values in a time zone.

    Parameters
    ----------
    options
        Members of `WriteOptions`.
    """
    if not isinstance(df, DataFrame) or not df.isStreaming:
        problem = "it must be a streaming DataFrame; write other rows with write_delta"
        raise InvalidArgumentError(argument="df", problem=problem)
    mode = output_mode.lower() if isinstance(output_mode, str) else output_mode
    if mode not in OUTPUT_MODES:
        raise DeltaError.of("DELTA_UNSUPPORTED_OUTPUT_MODE", mode=output_mode)
    written = WriteOptions.spelled(
        **{"compression": None, **options},
        mode=OUTPUT_MODES[mode],
        partition_overwrite_mode="static",
        properties=properties or {},
        output_mode=mode,
        time_zone=time_zone,
        converts=True,
    )
    root = checked_path(path)
    checkpoint = checked_path(checkpoint_location, "checkpoint_location")
    write_batch = _BatchWriter(root, checkpoint, written, follows=follows_settings())
    function = engine_of(df.sparkSession).stream_function(write_batch)
    writer = df.writeStream.foreachBatch(function).outputMode(mode)
    writer = writer.option("checkpointLocation", checkpoint)
    if trigger is not None:
        writer = writer.trigger(**trigger)  # type: ignore[arg-type]
    if checked_text(query_name, "query_name") is not None:
        writer = writer.queryName(str(query_name))
    return writer.start()


@dataclass(frozen=True)
class _BatchWriter:
    """A function that writes the batches of a query into a table."""

    root: str
    checkpoint: str
    options: WriteOptions
    follows: bool

    def __call__(self, engine: SparkEngine, batch: DataFrame, number: int) -> None:
        followed = follow_settings(batch.sparkSession if self.follows else None)
        with followed, engine.micro_batch(batch, self.checkpoint) as (rows, query_id):
            options = replace(self.options, txn_app_id=query_id, txn_version=number)
            if write(rows, self.root, options).version is None:
                # Committed before a crash: Spark ends a query whose batch keeps no state.
                rows.write.format("noop").mode("overwrite").save()
