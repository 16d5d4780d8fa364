"""Public functions to write streams to tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from sparkdelta.commands.write import write
from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.exceptions import (
    InvalidArgumentError,
    StreamNotSupportedError,
    UnsupportedOutputModeError,
)
from sparkdelta.protocol.arguments import checked_path, checked_text, named_arguments
from sparkdelta.table.write.options import OUTPUT_MODES, WriteOptions


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
        A streaming DataFrame of a classic session.
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
        With ``complete``: replaces the table's schema and partitioning by those of the rows.
    partition_by, merge_schema, user_metadata, properties
        As of `write_delta`.
    max_records_per_file, target_file_size, compression
        As of `write_delta`.

    Returns
    -------
    StreamingQuery
        The running query. An error of a batch ends it; its text has the error class.

    Raises
    ------
    UnsupportedOutputModeError
        The output mode is neither ``append`` nor ``complete``.
    StreamNotSupportedError
        The session is a Spark Connect client.
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
    if not isinstance(df, DataFrame) or not df.isStreaming:
        problem = "it must be a streaming DataFrame; write other rows with write_delta"
        raise InvalidArgumentError(argument="df", problem=problem)
    mode = output_mode.lower() if isinstance(output_mode, str) else output_mode
    if mode not in OUTPUT_MODES:
        raise UnsupportedOutputModeError(mode=output_mode)
    options = WriteOptions.spelled(
        mode=OUTPUT_MODES[mode],
        partition_by=partition_by,
        partition_overwrite_mode="static",
        merge_schema=merge_schema,
        overwrite_schema=overwrite_schema,
        user_metadata=user_metadata,
        properties=properties or {},
        max_records_per_file=max_records_per_file,
        target_file_size=target_file_size,
        compression=compression,
        output_mode=mode,
    )
    engine, root = engine_of(df.sparkSession), checked_path(path)
    checkpoint = checked_path(checkpoint_location, "checkpoint_location")
    if not engine.runs_streams:
        raise StreamNotSupportedError(verb="write_stream")

    def write_batch(batch: DataFrame, number: int) -> None:
        with engine.micro_batch(batch) as (rows, query_id):
            write(rows, root, replace(options, txn_app_id=query_id, txn_version=number))

    writer = df.writeStream.foreachBatch(write_batch).outputMode(mode)
    writer = writer.option("checkpointLocation", checkpoint)
    if trigger is not None:
        writer = writer.trigger(**trigger)  # type: ignore[arg-type]
    if checked_text(query_name, "query_name") is not None:
        writer = writer.queryName(str(query_name))
    return writer.start()
