"""Rows into a table: create, append, overwrite, or replace some partitions.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.engine.driver import read_rows
from sparkdelta.engine.job_names import jobs_of
from sparkdelta.engine.sessions import is_connect
from sparkdelta.exceptions import (
    DataChangeFalseError,
    DeltaWarning,
    InvalidArgumentError,
    InvalidCommitError,
    MetadataChangedException,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from sparkdelta.frames.rows.conformed_rows import WrittenColumn
from sparkdelta.protocol.actions import TransactionIdentifier
from sparkdelta.protocol.conflicts import ReadSet
from sparkdelta.protocol.staged_commit import Operation
from sparkdelta.protocol.table_features import TableFeature, is_supported
from sparkdelta.protocol.table_properties import compression, target_file_size
from sparkdelta.schema.column_mapping import physical_name
from sparkdelta.schema.row_rules import with_marks
from sparkdelta.schema.statistics_columns import string_prefix_length
from sparkdelta.storage.log_store import LogStore
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.log.listing import open_log_for_writing, read_options
from sparkdelta.table.maintenance.commit_hooks import run_commit_hooks
from sparkdelta.table.scan.read_provenance import version_read
from sparkdelta.table.snapshot import Snapshot, open_snapshot
from sparkdelta.table.write.data_files import DataFileWriter
from sparkdelta.table.write.new_files import NewFiles
from sparkdelta.table.write.options import MODES, WriteOptions
from sparkdelta.table.write.orphans import orphans_are_told
from sparkdelta.table.write.replacement import Replacement, replaced_partitions, replacement
from sparkdelta.table.write.row_sessions import staged_rows, writing_rows
from sparkdelta.table.write.rule_expressions import check_expressions
from sparkdelta.table.write.target import Target, existing_table, new_table

_MAX_REWRITES = 10


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did.

    Attributes
    ----------
    version
        The version that it committed; None where there was nothing to do: mode `ignore` on a table
        that is there, or a transaction of an application that was committed before.
    retries
        How often another commit came first.
    """

    version: int | None
    num_files: int = 0
    num_rows: int = 0
    num_bytes: int = 0
    retries: int = 0
    milliseconds: int = 0


def write(rows: DataFrame, path: str, options: WriteOptions) -> WriteResult:
    """Write rows and commit them as one version."""
    store = open_log_for_writing(rows.sparkSession, path)
    with writing_rows(rows.sparkSession) as spark:
        return _write(rows, spark, store, options)


def _write(
    rows: DataFrame, spark: SparkSession, store: LogStore, options: WriteOptions
) -> WriteResult:
    start = time.monotonic_ns()
    if options.replace_where is not None and is_connect(spark):
        problem = (
            "on Spark Connect the condition would be evaluated with different session settings; "
            "write from a classic session"
        )
        raise InvalidArgumentError(argument="replace_where", problem=problem)
    read = version_read(rows, store.table_root)
    for rewrites in range(_MAX_REWRITES + 1):
        snapshot = _snapshot(spark, store)
        if snapshot is None:
            target = new_table(rows.schema, options, store)
            if not rewrites and not store.is_alone():
                _warn(
                    f"Creating a new table at {store.table_root}, next to files that do not belong "
                    "to it: the table contains only the new rows, and VACUUM may delete these "
                    "files. Write to another path to keep them separate."
                )
        elif options.mode == "ignore" or _is_repeated(snapshot, options):
            return WriteResult(None)
        elif options.mode == "error":
            raise TableAlreadyExistsError(path=store.table_root)
        else:
            if read is not None and read < snapshot.version:  # what came since may be a conflict
                snapshot = open_snapshot(spark, store.table_root, version=read, store=store)
            target = existing_table(rows.schema, options, snapshot)
        check_expressions(spark, target.schema, target.rules)
        if not options.data_change and (target.staged.metadata or target.numbered):
            raise DataChangeFalseError(
                path=store.table_root, what="it also changes the table metadata"
            )
        with jobs_of(store.table_root, None if snapshot is None else snapshot.version):
            replaced = None
            if snapshot is not None and options.mode == "overwrite":
                replaced = replacement(snapshot, options)
            with staged_rows(rows, spark, store) as staged:
                files = _data_files(staged, target, options, store, replaced)
            if snapshot is not None and replaced is not None and replaced.removes is None:
                replaced = replaced_partitions(snapshot, files.adds, options)
        target = _with_marks(target, snapshot, files, path=store.table_root)
        transaction = _transaction(
            spark, store, snapshot, target, files, replaced, options, reads_table=read is not None
        )
        try:
            with orphans_are_told(store.table_root, files.directory):
                done = transaction.commit()
        except MetadataChangedException:
            # Another write may have used the same identity values, which stand in the files.
            if not target.numbered or rewrites == _MAX_REWRITES or read is not None:
                raise
            continue
        run_commit_hooks(done)
        return WriteResult(
            done.version,
            files.count,
            files.num_rows,
            files.size_bytes,
            done.attempts - 1 + rewrites,
            (time.monotonic_ns() - start) // 1_000_000,
        )
    raise AssertionError


def _warn(text: str) -> None:
    """Warn where the caller's own code, not this package's, is told as the place."""
    package, level = __name__.partition(".")[0], 1
    while str(sys._getframe(level).f_globals.get("__name__")).partition(".")[0] == package:
        level += 1
    warnings.warn(text, DeltaWarning, stacklevel=level + 1)


def _snapshot(spark: SparkSession, store: LogStore) -> Snapshot | None:
    try:
        return open_snapshot(spark, store.table_root, store=store)
    except TableNotFoundError:
        return None


def _with_marks(target: Target, snapshot: Snapshot | None, files: NewFiles, *, path: str) -> Target:
    """The target with metadata that tells which identity values are used up.

    References
    ----------
    PROTOCOL.md#identity-columns
    """
    marks = {}
    for name, identity in target.numbered.items():
        physical = physical_name(target.schema[name], target.column_mapping)
        last = files.last_value(physical, is_highest=identity.step > 0)
        if last is not None:
            marks[name] = last
        elif files.num_rows:
            problem = f"the files have no statistics for identity column {name}"
            raise InvalidCommitError(path=path, problem=problem)
    if not marks:
        return target
    (metadata,) = target.staged.metadata or ((snapshot.metadata,) if snapshot else ())
    raised = replace(metadata, schema_string=with_marks(metadata.schema_string or "", marks))
    return replace(target, staged=replace(target.staged, metadata=(raised,)))


def _is_repeated(snapshot: Snapshot, options: WriteOptions) -> bool:
    """Whether the application's transaction was committed before.

    References
    ----------
    PROTOCOL.md#transaction-identifiers
    """
    if options.txn_app_id is None or options.txn_version is None:
        return False
    rows = read_rows(
        snapshot.transactions().filter(F.col("appId") == options.txn_app_id),
        what="transaction of an application",
        bound=1,
        version=snapshot.version,
    )
    return bool(rows) and rows[0]["version"] >= options.txn_version


def _data_files(
    rows: DataFrame,
    target: Target,
    options: WriteOptions,
    store: LogStore,
    replaced: Replacement | None,
) -> NewFiles:
    writer_options = {"compression": options.compression or compression(target.configuration)}
    if options.max_records_per_file is not None:
        writer_options["maxRecordsPerFile"] = str(options.max_records_per_file)
    writer = DataFileWriter(
        spark=rows.sparkSession,
        store=store,
        columns=[WrittenColumn(field, source) for field, source in target.columns],
        partition_columns=target.partition_columns,
        statistics_columns=target.statistics_columns,
        column_mapping=target.column_mapping,
        prefix_length=string_prefix_length(target.configuration),
        rules=target.rules,
        data_change=options.data_change,
        target_file_size=options.target_file_size or target_file_size(target.configuration),
        options={**read_options(store, {}), **writer_options},
        iceberg=target.iceberg,
    )
    where = options.replace_where
    if replaced is None:
        return writer.write(rows, where=where)
    return writer.write(rows, where=where, copied=replaced.copied, kept=replaced.kept)


def _transaction(
    spark: SparkSession,
    store: LogStore,
    snapshot: Snapshot | None,
    target: Target,
    files: NewFiles,
    replaced: Replacement | None,
    options: WriteOptions,
    *,
    reads_table: bool,
) -> Transaction:
    staged = replace(target.staged, adds=files.values or ())
    app_ids = frozenset[str]()
    if options.txn_app_id is not None and options.txn_version is not None:
        now = time.time_ns() // 1_000_000
        identifier = TransactionIdentifier(options.txn_app_id, options.txn_version, now)
        staged = replace(staged, transactions=(identifier,))
        app_ids = frozenset((options.txn_app_id,))
    read = ReadSet() if replaced is None else replaced.read
    reads_table = reads_table and snapshot is not None
    parameters = {
        "mode": MODES[options.mode],
        "partitionBy": json.dumps(list(target.partition_columns), separators=(",", ":")),
    }
    if isinstance(options.replace_where, str):
        parameters["predicate"] = options.replace_where
    return Transaction(
        spark=spark,
        store=store,
        snapshot=snapshot,
        operation=Operation(
            "WRITE",
            parameters,
            is_blind_append=replaced is None and not reads_table,
            metrics={
                "numFiles": str(files.count),
                "numOutputRows": str(files.num_rows),
                "numOutputBytes": str(files.size_bytes),
            },
        ),
        staged=staged,
        file_actions=_file_actions(files, replaced),
        read=replace(read, app_ids=app_ids, whole_table=read.whole_table or reads_table),
        tags=_tags(target, replaced),
        user_metadata=options.user_metadata,
    )


def _tags(target: Target, replaced: Replacement | None) -> Mapping[str, str] | None:
    """What the commit says of itself: rows that are not copied keep their ids.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-row-tracking
    """
    tags = {} if replaced is None else replaced.tags
    if not is_supported(target.protocol, TableFeature.ROW_TRACKING):
        return tags or None
    return {"delta.rowTracking.preserved": "true", **tags}


def _file_actions(files: NewFiles, replaced: Replacement | None) -> DataFrame | None:
    """Those that are not staged as values."""
    if files.values is not None:
        return None if replaced is None else replaced.removes
    if replaced is None or replaced.removes is None:
        return files.adds
    return files.adds.unionByName(replaced.removes, allowMissingColumns=True)
