"""RESTORE: an earlier version of a table becomes the latest one.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata, PROTOCOL.md#data-files
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.write_support import check_data_writable
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import (
    DeltaError,
    TimestampEarlierThanCommitRetentionError,
    TimestampGreaterThanCommitError,
    VersionNotFoundError,
)
from sparkdelta.operations.copy.restored_table import differing_files, restored_table
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.operations.verify.file_checks import check_files, file_checker
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.log.time_travel import version_at_timestamp
from sparkdelta.table.rows.removed_files import commit_tags
from sparkdelta.table.rows.row_changes import open_changeable
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot
from sparkdelta.table.snapshot.staging import staging

MAX_SHOWN_FILES = 10
"""The most files that an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """The outcome of RESTORE; sizes are in bytes.

    Attributes
    ----------
    version
        The version that it committed.
    """

    version: Version
    table_size_after_restore: int
    num_of_files_after_restore: int
    num_removed_files: int
    num_restored_files: int
    removed_files_size: int
    restored_files_size: int

    @property
    def metrics(self) -> dict[str, int]:
        """The metrics by delta-spark's names."""
        return {name: value for name, value in asdict(self).items() if name != "version"}


def restore(
    spark: SparkSession,
    path: str,
    *,
    version: Version | None = None,
    timestamp: str | None = None,
    options: Mapping[str, str] | None = None,
) -> RestoreResult | None:
    """Restore the version of a number or a time; return None if it is the latest.

    See `sparkdelta.api.delta_table.DeltaTable.restoreToVersion`.
    """
    now = open_changeable(spark, path, options)
    target = {"version": version, "timestamp": timestamp}
    if timestamp is not None:
        version = _version_at(spark, path, timestamp)
    assert version is not None
    if version == now.version:
        return None
    then = _earlier(now, version, options)
    change = restored_table(now, then)
    check_data_writable(change.after.protocol, path=now.path)
    with (
        engine_of(spark).log_session() as session,
        jobs_of(now.path, now.version),
        staging(session, now.log.store) as stage,
    ):
        differing = differing_files(now.in_session(session), then.in_session(session))
        stage.write_parquet(differing, "restored", {})
        actions, _ = stage.read_parquet("restored", differing.schema)
        metrics = _metrics(actions, then)
        _check_restored(spark, actions, metrics["numRestoredFiles"], then)
        done = Transaction.of(
            now,
            Operation("RESTORE", target, metrics=metrics),
            staged=change.actions,
            file_actions=actions,
            read=ReadSet(whole_table=True, row_ids=True),
            tags=commit_tags(change.after) or None,
        ).commit()
    run_commit_hooks(done)
    return RestoreResult(
        version=done.version,
        table_size_after_restore=metrics["tableSizeAfterRestore"],
        num_of_files_after_restore=metrics["numOfFilesAfterRestore"],
        num_removed_files=metrics["numRemovedFiles"],
        num_restored_files=metrics["numRestoredFiles"],
        removed_files_size=metrics["removedFilesSize"],
        restored_files_size=metrics["restoredFilesSize"],
    )


def restore_metrics(spark: SparkSession, result: RestoreResult | None) -> DataFrame:
    """Return the metrics of a result as one row, or no row if nothing was restored."""
    names = [name for name in RestoreResult.__slots__ if name != "version"]
    schema = ", ".join(f"{name} LONG" for name in names)
    return spark.createDataFrame([] if result is None else [result.metrics], schema)


def _version_at(spark: SparkSession, path: str, timestamp: str) -> Version:
    try:
        return version_at_timestamp(spark, path, timestamp)
    except TimestampEarlierThanCommitRetentionError as error:
        raise DeltaError.of(
            "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
            timestamp=error.timestamp,
            earliest=error.earliest,
            path=error.path,
        ) from None
    except TimestampGreaterThanCommitError as error:
        raise DeltaError.of(
            "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
            timestamp=error.timestamp,
            latest=error.latest,
            path=error.path,
        ) from None


def _earlier(now: Snapshot, version: Version, options: Mapping[str, str] | None) -> Snapshot:
    try:
        return open_snapshot(
            now.log.spark, now.path, version=version, store=now.log.store, options=options
        )
    except VersionNotFoundError as error:
        raise DeltaError.of(
            "DELTA_CANNOT_RESTORE_TABLE_VERSION",
            version=version,
            earliest=error.earliest,
            latest=now.version,
            path=now.path,
        ) from None


def _metrics(actions: DataFrame, then: Snapshot) -> dict[str, int]:
    """Compute the metrics by their names in history."""
    [files] = read_rows(
        actions.selectExpr(
            "count_if(add.dataChange) AS numRestoredFiles",
            "coalesce(sum(add.size) FILTER (WHERE add.dataChange), 0) AS restoredFilesSize",
            "count(remove.path) AS numRemovedFiles",
            "coalesce(sum(remove.size), 0) AS removedFilesSize",
        ),
        what="totals of restored files",
        bound=1,
    )
    [table] = read_rows(then.live_file_totals(), what="totals of the live files", bound=1)
    return {
        **files.asDict(),
        "numOfFilesAfterRestore": table["num_files"],
        "tableSizeAfterRestore": table["size_in_bytes"],
    }


def _check_restored(spark: SparkSession, actions: DataFrame, count: int, then: Snapshot) -> None:
    """Check the files that the table no longer has: none may be missing or damaged."""
    if not count:
        return
    file = absolute_path("add.path", table_root=then.path)
    files = actions.filter("add.dataChange").selectExpr(
        f"{file} AS file",
        "add.size",
        "CAST(NULL AS LONG) AS numRecords",
        "CASE WHEN add.deletionVector.storageType IS NOT NULL THEN add.deletionVector END "
        "AS deletionVector",
    )
    findings = check_files(spark, files, count, file_checker(spark, then.path))
    if not isinstance(findings, list):
        rows = read_rows(
            findings.limit(MAX_SHOWN_FILES + 1),
            what="files that cannot be restored",
            bound=MAX_SHOWN_FILES + 1,
        )
        findings = [(row["check"], row["path"], row["problem"]) for row in rows]
    if findings:
        problems = [f"{path} {problem}" for _, path, problem in findings[:MAX_SHOWN_FILES]]
        if len(findings) > MAX_SHOWN_FILES:
            problems.append("and others")
        raise DeltaError.of(
            "DELTA_CANNOT_RESTORE_FILES", path=then.path, version=then.version, problems=problems
        )
