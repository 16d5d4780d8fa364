"""RESTORE: an earlier version of a table becomes the latest one.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#action-reconciliation,
PROTOCOL.md#domain-metadata, PROTOCOL.md#identity-columns, PROTOCOL.md#row-ids,
PROTOCOL.md#writer-requirements-for-in-commit-timestamps, PROTOCOL.md#change-metadata,
PROTOCOL.md#data-files
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.base.protocol.actions import DomainMetadata
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.protocol_upgrades import upgraded_protocol
from sparkdelta.base.protocol.row_ids import ROW_TRACKING_DOMAIN, high_water_mark
from sparkdelta.base.protocol.table_features import check_data_writable, supported_features
from sparkdelta.base.protocol.table_properties import (
    ENABLE_IN_COMMIT_TIMESTAMPS,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
    PROTECTED_VERSION,
)
from sparkdelta.base.schema.column_ids import MAX_COLUMN_ID
from sparkdelta.base.schema.file_key_frames import absolute_path, canonical_path, deletion_vector_id
from sparkdelta.base.schema.table_constraints import with_marks
from sparkdelta.base.schema.table_schema import parse_table_schema
from sparkdelta.base.skipping.path_filter_frames import PathFilter
from sparkdelta.base.spark.driver import read_row, read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.local_data import rows_frame
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import (
    DeltaError,
    TimestampEarlierThanCommitRetentionError,
    TimestampGreaterThanCommitError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.operations.verify.file_checks import check_files, file_checker
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import Transaction, row_id_high_watermark
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import commits_between
from sparkdelta.table.log.commit_line_frames import add_fields
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.log.time_travel import version_at_timestamp
from sparkdelta.table.rows.identity_columns import identity_marks
from sparkdelta.table.rows.removed_files import commit_tags, remove_fields
from sparkdelta.table.rows.row_changes import open_changeable
from sparkdelta.table.snapshot.listed_actions import live_domains
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot
from sparkdelta.table.snapshot.staging import staging

MAX_SHOWN_FILES = 10
"""The most files that an error names."""

_PATH, _VECTOR = "__sparkdelta_path", "__sparkdelta_vector"
_KEYS = (f"`{_PATH}`", f"`{_VECTOR}`")
_OF_THE_LOG = (
    ENABLE_IN_COMMIT_TIMESTAMPS,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    PROTECTED_VERSION,
)


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
        actions = stage.compute_once(differing, "restored")
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
    schema = StructType([StructField(name, LongType()) for name in names])
    rows = [] if result is None else [[result.metrics[name] for name in names]]
    return rows_frame(spark, rows, schema)


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
    files = read_row(
        actions.selectExpr(
            "count_if(add.dataChange) AS numRestoredFiles",
            "coalesce(sum(add.size) FILTER (WHERE add.dataChange), 0) AS restoredFilesSize",
            "count(remove.path) AS numRemovedFiles",
            "coalesce(sum(remove.size), 0) AS removedFilesSize",
        ),
        what="totals of restored files",
    )
    table = read_row(then.live_file_totals(), what="totals of the live files")
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


def restored_table(now: Snapshot, then: Snapshot) -> DefinitionChange:
    """Return the change to the metadata and domains of an earlier version.

    The protocol keeps all features and gets the earlier version's. Row ids, column ids and identity
    values are never assigned twice, commits keep the kind of their timestamps, and protected
    checkpoints stay protected.
    """
    before, earlier = now.configuration, then.configuration
    features = {feature.value for feature in supported_features(earlier.protocol)}
    properties = {k: v for k, v in earlier.properties.items() if k not in _OF_THE_LOG}
    properties |= {k: before.properties[k] for k in _OF_THE_LOG if k in before.properties}
    ids = [int(table.properties.get(MAX_COLUMN_ID, "0")) for table in (before, earlier)]
    if MAX_COLUMN_ID in properties:
        properties[MAX_COLUMN_ID] = str(max(ids))
    text = earlier.metadata.schema_string or ""
    if marks := identity_marks(before, earlier):
        text = with_marks(text, marks)
    metadata = replace(
        earlier.metadata, id=before.metadata.id, schema_string=text, configuration=properties
    )
    after = TableConfiguration.of(
        upgraded_protocol(before.protocol, features),
        metadata,
        parse_table_schema(text, path=now.path),
    )
    return DefinitionChange(before, after, _restored_domains(now, then))


def differing_files(now: Snapshot, then: Snapshot) -> DataFrame:
    """Return the actions that turn the table's files into the files of an earlier version.

    add STRUCT, remove STRUCT; one of them is null in each row. A file with another deletion vector
    is both removed and added. A file whose row ids differ, for example because row tracking was
    dropped since, gets the earlier ids, without `dataChange`. Both snapshots are in one session.
    """
    between = _files_between(then, now)
    of_then, of_now = _keyed(then, between), _keyed(now, between)
    add = add_fields(then.configuration.statistics, dataChange="TRUE")
    both = of_then.selectExpr(*_KEYS, f"{add} AS add").join(
        of_now.selectExpr(*_KEYS, f"{remove_fields()} AS remove"), [_PATH, _VECTOR], "full"
    )
    # An id that a file without one has got since is unique, unless ids began anew in between.
    has_other_ids = (
        "NOT add.baseRowId <=> remove.baseRowId AND "
        f"(add.baseRowId IS NOT NULL OR remove.baseRowId <= {row_id_high_watermark(then)}L)"
    )
    return both.filter(f"add IS NULL OR remove IS NULL OR {has_other_ids}").select(
        F.col("add").withField("dataChange", F.expr("remove IS NULL")).alias("add"),
        F.expr("CASE WHEN add IS NULL THEN remove END AS remove"),
    )


def _files_between(then: Snapshot, now: Snapshot) -> PathFilter | None:
    """Return the files in which two versions can differ; None if commits between them are gone.

    With these, each version is read once, and only differing files are shuffled.
    """
    log = now.log
    try:
        commits = commits_between(
            list_log_files(log.store), then.version + 1, now.version, path=now.path
        )
    except VersionsNotContiguousError:
        return None
    between = CommitRange.read(log.reader, commits)
    paths = between.changes("add", "remove").selectExpr("coalesce(add.path, remove.path) AS path")
    return PathFilter(paths, now.path, is_broadcast=between.broadcasts_keys)


def _keyed(snapshot: Snapshot, chosen: PathFilter | None) -> DataFrame:
    path = canonical_path("path", table_root=snapshot.path)
    vector = deletion_vector_id("deletionVector")
    adds = snapshot.state.adds(skipping=chosen)
    return adds.selectExpr("*", f"{path} AS `{_PATH}`", f"{vector} AS `{_VECTOR}`")


def _restored_domains(now: Snapshot, then: Snapshot) -> tuple[DomainMetadata, ...]:
    """Return the domains in which two versions differ.

    The greater high-water mark of row ids is kept: the earlier version may have it if row tracking
    was dropped since.
    """
    of_now, of_then = live_domains(now), live_domains(then)
    marks = [of[ROW_TRACKING_DOMAIN] for of in (of_now, of_then) if ROW_TRACKING_DOMAIN in of]
    if marks:
        of_then[ROW_TRACKING_DOMAIN] = max(
            marks, key=lambda mark: high_water_mark(mark, path=now.path, version=now.version)
        )
    changed = [domain for name, domain in of_then.items() if of_now.get(name) != domain]
    gone = [replace(d, removed=True) for name, d in of_now.items() if name not in of_then]
    return (*changed, *gone)
