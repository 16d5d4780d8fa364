"""The detail and the history of a table.

References
----------
PROTOCOL.md#commit-provenance-information, PROTOCOL.md#clustered-table
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.arguments import checked_count
from sparkdelta.base.protocol.results import html_rows, html_table
from sparkdelta.base.protocol.table_features import supported_features
from sparkdelta.base.schema.action_schemas import COMMIT_INFO
from sparkdelta.base.spark.driver import read_row
from sparkdelta.base.spark.local_data import arrow_frame, local_frame
from sparkdelta.base.spark.notebook_tables import drawn_in_notebooks
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.table.definition.clustering import clustering_columns, logical_columns
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import readable_commits
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.commit_times import COMMIT_TIMES, commit_times
from sparkdelta.table.snapshot.snapshot import Snapshot

DRAWN_OF_HISTORY = ("version", "timestamp", "operation", "operationParameters", "operationMetrics")
"""The columns of a history that are drawn; the others are seldom set."""


def table_history(spark: SparkSession, snapshot: Snapshot, limit: int | None = None) -> DataFrame:
    """Return the commits of a table, newest first, with delta-spark's columns; all without a limit.

    Commits without a commitInfo have only a version and a timestamp. The log is listed immediately;
    everything else is lazy.

    Returns
    -------
    DataFrame
        version LONG, timestamp TIMESTAMP, userId STRING, userName STRING, operation STRING,
        operationParameters MAP<STRING, STRING>, job STRUCT, notebook STRUCT, clusterId STRING,
        readVersion LONG, isolationLevel STRING, isBlindAppend BOOLEAN, operationMetrics MAP<STRING,
        STRING>, userMetadata STRING, engineInfo STRING.
    """
    checked_count(limit, "limit", least=0)
    log = snapshot.log
    files = [file for file in list_log_files(log.store) if file.version <= snapshot.version]
    commits = readable_commits(files, path=snapshot.path)
    times = commit_times(commits, snapshot.configuration.in_commit_timestamps)
    shown = commits if limit is None else commits[len(commits) - min(limit, len(commits)) :]
    table = times.slice(times.num_rows - len(shown))
    infos = CommitRange.read(log.reader, shown).commit_infos()
    infos = grouped(infos, ["version"], F.any_value("commitInfo").alias("commitInfo"))
    milliseconds = F.when(
        F.col("in_commit"), F.coalesce("commitInfo.inCommitTimestamp", "file_time")
    ).otherwise(F.col("file_time"))
    shown_fields = [
        name for name in COMMIT_INFO.names if name not in ("timestamp", "inCommitTimestamp")
    ]
    history = (
        local_frame(spark, table, COMMIT_TIMES)
        .join(infos, "version", "left")
        .select(
            "version",
            F.timestamp_millis(milliseconds).alias("timestamp"),
            *(f"commitInfo.{name}" for name in shown_fields),
        )
        .orderBy(F.desc("version"))
    )
    return drawn_in_notebooks(history, html_rows, *DRAWN_OF_HISTORY)


def table_detail(spark: SparkSession, snapshot: Snapshot, name: str | None = None) -> DataFrame:
    """Return one row about the table's latest version, with delta-spark's columns.

    Parameters
    ----------
    name
        Of the table in the session catalog; by default the one in its metadata is shown.

    Returns
    -------
    DataFrame
        format STRING, id STRING, name STRING, description STRING, location STRING, createdAt
        TIMESTAMP, lastModified TIMESTAMP, partitionColumns ARRAY<STRING>, clusteringColumns
        ARRAY<STRING>, numFiles LONG, sizeInBytes LONG, properties MAP<STRING, STRING>,
        minReaderVersion INT, minWriterVersion INT, tableFeatures ARRAY<STRING>.
    """
    metadata, protocol = snapshot.metadata, snapshot.protocol
    files, size = _totals(snapshot)
    physical = clustering_columns(snapshot) or ()
    clustering = [".".join(path) for path in logical_columns(snapshot.configuration, physical)]
    listed = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    features = sorted(listed or {feature.value for feature in supported_features(protocol)})
    milliseconds = pa.timestamp("ms", "UTC")
    strings = pa.list_(pa.string())
    row = {
        "format": pa.array(["delta"], pa.string()),
        "id": pa.array([metadata.id], pa.string()),
        "name": pa.array([metadata.name if name is None else name], pa.string()),
        "description": pa.array([metadata.description], pa.string()),
        "location": pa.array([snapshot.path], pa.string()),
        "createdAt": pa.array([metadata.created_time], pa.int64()).cast(milliseconds),
        "lastModified": pa.array([snapshot.timestamp_ms], pa.int64()).cast(milliseconds),
        "partitionColumns": pa.array([list(metadata.partition_columns)], strings),
        "clusteringColumns": pa.array([clustering], strings),
        "numFiles": pa.array([files], pa.int64()),
        "sizeInBytes": pa.array([size], pa.int64()),
        "properties": pa.array(
            [list(metadata.configuration.items())], pa.map_(pa.string(), pa.string())
        ),
        "minReaderVersion": pa.array([protocol.min_reader_version], pa.int32()),
        "minWriterVersion": pa.array([protocol.min_writer_version], pa.int32()),
        "tableFeatures": pa.array([features], strings),
    }
    detail = arrow_frame(spark, pa.table(row))
    return drawn_in_notebooks(detail, lambda rows: html_table(rows[0]), "*")


def _totals(snapshot: Snapshot) -> tuple[int, int]:
    """Return the number and size in bytes of live files, from the version checksum if available."""
    checksum = snapshot.version_checksum
    if checksum and checksum.num_files is not None and checksum.table_size_bytes is not None:
        return checksum.num_files, checksum.table_size_bytes
    totals = snapshot.live_file_totals()
    row = read_row(totals, what="totals of the live files")
    return row["num_files"], row["size_in_bytes"]
