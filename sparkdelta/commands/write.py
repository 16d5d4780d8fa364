"""Write rows into a table: create, append, overwrite, or replace some partitions.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.engine.driver import read_rows
from sparkdelta.engine.job_names import jobs_of
from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.exceptions import (
    AppendOnlyTableError,
    DataChangeFalseError,
    DeltaWarning,
    InvalidArgumentError,
    MetadataChangedException,
    MetadataMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from sparkdelta.protocol.actions import TransactionIdentifier
from sparkdelta.protocol.conflicts import ReadSet
from sparkdelta.protocol.staged_commit import Operation
from sparkdelta.protocol.table_properties import (
    compression,
    is_append_only,
    target_file_size,
)
from sparkdelta.protocol.write_support import check_data_writable
from sparkdelta.schema.written_schema import new_table_schema
from sparkdelta.storage.log_store import LogStore
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.log.listing import open_log_for_writing, read_options
from sparkdelta.table.maintenance.commit_hooks import run_commit_hooks
from sparkdelta.table.scan.read_provenance import version_read
from sparkdelta.table.snapshot import Snapshot, open_snapshot
from sparkdelta.table.write.clustering import clustering_columns
from sparkdelta.table.write.conforming import (
    MatchedRows,
    conform,
    match_rows,
    require,
    with_survivors,
)
from sparkdelta.table.write.data_files import write_data_files
from sparkdelta.table.write.file_descriptions import FileDescriber
from sparkdelta.table.write.identity_columns import generated_identities, with_used_identities
from sparkdelta.table.write.layout import lay_out
from sparkdelta.table.write.new_files import NewFiles
from sparkdelta.table.write.options import MODES, WriteOptions
from sparkdelta.table.write.orphans import report_orphans
from sparkdelta.table.write.rewriting import (
    Rewrite,
    commit_tags,
    file_actions,
    rewrite_all,
    rewrite_matching,
    rewrite_partitions,
)
from sparkdelta.table.write.row_sessions import staged_rows
from sparkdelta.table.write.rule_expressions import check_expressions
from sparkdelta.table.write.schema_changes import with_merged_schema, with_overwritten_schema
from sparkdelta.table.write.table_change import TableChange, TableDescription, created_table

_MAX_REWRITES = 10


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcome of a write.

    Attributes
    ----------
    version
        The version that it committed; None if there was nothing to do: mode `ignore` on a table
        that exists, or an application's transaction that was committed before.
    retries
        The number of attempts after which another commit was first.
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
    with engine_of(rows.sparkSession).write_session() as spark:
        return _write(rows, spark, store, options)


def _write(
    rows: DataFrame, spark: SparkSession, store: LogStore, options: WriteOptions
) -> WriteResult:
    start = time.monotonic_ns()
    root = store.table_root
    if options.replace_where is not None and not engine_of(spark).moves_frames:
        problem = (
            "on Spark Connect the condition would be evaluated with different session settings; "
            "write from a classic session"
        )
        raise InvalidArgumentError(argument="replace_where", problem=problem)
    read = version_read(rows, root)
    for rewrites in range(_MAX_REWRITES + 1):
        snapshot = _snapshot(spark, store)
        if snapshot is None:
            if not rewrites:
                _warn_of_other_files(store)
        elif options.mode == "ignore" or _is_repeated(snapshot, options):
            return WriteResult(None)
        elif options.mode == "error":
            raise TableAlreadyExistsError(path=root)
        elif read is not None and read < snapshot.version:  # later commits may conflict
            snapshot = open_snapshot(spark, root, version=read, store=store)
        change = _table_change(rows.schema, options, snapshot, path=root)
        matched = match_rows(rows.schema, change.after, path=root)
        check_expressions(spark, change.after.schema, matched.rules)
        if not options.data_change and (change.changes_metadata or matched.identities):
            raise DataChangeFalseError(path=root, what="it also changes the table metadata")
        with jobs_of(root, None if snapshot is None else snapshot.version):
            rewrite = _rewrite(snapshot, options)
            with staged_rows(rows, spark, store) as staged:
                files = _data_files(staged, change, matched, rewrite, store, options)
            if snapshot is not None and _replaces_partitions(snapshot, options):
                rewrite = rewrite_partitions(snapshot, files.adds, data_change=options.data_change)
        change = with_used_identities(change, matched, files, path=root)
        transaction = _transaction(
            spark, store, snapshot, change, files, rewrite, options, reads_table=read is not None
        )
        try:
            with report_orphans(root, files.directory):
                done = transaction.commit()
        except MetadataChangedException:
            # Another write may have used the same identity values; these are in the files already.
            if not matched.identities or rewrites == _MAX_REWRITES or read is not None:
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


def _warn_of_other_files(store: LogStore) -> None:
    """Warn of a new table among other files; as its place, name the caller's own code."""
    if store.is_alone():
        return
    text = (
        f"Creating a new table at {store.table_root}, next to files that do not belong "
        "to it: the table contains only the new rows, and VACUUM may delete these "
        "files. Write to another path to keep them separate."
    )
    package, level = __name__.partition(".")[0], 1
    while str(sys._getframe(level).f_globals.get("__name__")).partition(".")[0] == package:
        level += 1
    warnings.warn(text, DeltaWarning, stacklevel=level + 1)


def _snapshot(spark: SparkSession, store: LogStore) -> Snapshot | None:
    try:
        return open_snapshot(spark, store.table_root, store=store)
    except TableNotFoundError:
        return None


def _table_change(
    rows: StructType, options: WriteOptions, snapshot: Snapshot | None, *, path: str
) -> TableChange:
    """The table that the write creates, or the one that is there with the changes that it makes."""
    partition_by = options.partition_by
    if snapshot is None:
        if options.replace_where is not None:
            raise TableNotFoundError(path=path)
        return created_table(
            TableDescription(
                columns=tuple(new_table_schema(rows, any_names=True)),
                partition_by=tuple(partition_by or ()),
                properties=options.properties,
            )
        )
    table = snapshot.configuration
    if options.mode == "overwrite" and is_append_only(table.protocol, table.properties):
        raise AppendOnlyTableError(path=path)
    if options.properties:
        problem = "they can only be set when the table is created, and it already exists"
        raise InvalidArgumentError(argument="properties", problem=problem)
    check_data_writable(table.protocol, path=path)
    change = TableChange(table, table, clustering_columns=clustering_columns(snapshot) or ())
    if options.overwrite_schema:
        return with_overwritten_schema(change, rows, partition_by or ())
    own = table.partition_columns
    if partition_by is not None and [n.lower() for n in partition_by] != [n.lower() for n in own]:
        problem = (
            f"the table is partitioned by ({', '.join(own)}), not by ({', '.join(partition_by)}); "
            "to change this, use mode overwrite with overwrite_schema"
        )
        raise MetadataMismatchError(path=path, problem=problem)
    return with_merged_schema(change, rows, path=path) if options.merge_schema else change


def _replaces_partitions(snapshot: Snapshot, options: WriteOptions) -> bool:
    """True if the partitions that get new files are replaced, which these files tell."""
    return options.is_dynamic and bool(snapshot.configuration.partition_fields)


def _rewrite(snapshot: Snapshot | None, options: WriteOptions) -> Rewrite | None:
    if snapshot is None or options.mode != "overwrite" or _replaces_partitions(snapshot, options):
        return None
    where, data_change = options.replace_where, options.data_change
    if where is None:
        return rewrite_all(snapshot, data_change=data_change)
    return rewrite_matching(snapshot, where, operation="replace_where", data_change=data_change)


def _is_repeated(snapshot: Snapshot, options: WriteOptions) -> bool:
    """True if the application's transaction was committed before.

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
    change: TableChange,
    matched: MatchedRows,
    rewrite: Rewrite | None,
    store: LogStore,
    options: WriteOptions,
) -> NewFiles:
    table, root, spark = change.after, store.table_root, rows.sparkSession
    parquet = {"compression": options.compression or compression(table.properties)}
    if options.max_records_per_file is not None:
        parquet["maxRecordsPerFile"] = str(options.max_records_per_file)
    hadoop = read_options(store, {})
    conformed = conform(rows, matched, table, spark=spark, path=root)
    if options.replace_where is not None:
        conformed = require(conformed, options.replace_where, spark=spark)
    row_id_columns: tuple[str, ...] = ()
    if rewrite is not None and rewrite.survivors is not None:
        row_id_columns = rewrite.row_id_columns
        conformed = with_survivors(conformed, rewrite.survivors, table, row_id_columns)
    laid_out = lay_out(
        conformed,
        table,
        spark=spark,
        file_columns=row_id_columns,
        target_file_size=options.target_file_size or target_file_size(table.properties),
        # A task that is run again could number its rows otherwise, which a shuffle would mix with
        # those that the first run had sent.
        is_shuffled=not matched.identities,
    )
    identities = generated_identities(matched, table).values()
    describer = FileDescriber(
        spark=spark,
        table_root=root,
        table=table,
        statistics_columns=tuple(dict.fromkeys((*change.statistics_columns, *identities))),
        data_change=options.data_change,
        options=hadoop,
    )
    return write_data_files(laid_out, store, describer, {**hadoop, **parquet})


def _transaction(
    spark: SparkSession,
    store: LogStore,
    snapshot: Snapshot | None,
    change: TableChange,
    files: NewFiles,
    rewrite: Rewrite | None,
    options: WriteOptions,
    *,
    reads_table: bool,
) -> Transaction:
    staged = replace(change.actions, adds=files.values or ())
    app_ids = frozenset[str]()
    if options.txn_app_id is not None and options.txn_version is not None:
        now = time.time_ns() // 1_000_000
        identifier = TransactionIdentifier(options.txn_app_id, options.txn_version, now)
        staged = replace(staged, transactions=(identifier,))
        app_ids = frozenset((options.txn_app_id,))
    read = ReadSet() if rewrite is None else rewrite.read
    reads_table = reads_table and snapshot is not None
    parameters = {
        "mode": MODES[options.mode],
        "partitionBy": json.dumps(list(change.after.partition_columns), separators=(",", ":")),
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
            is_blind_append=rewrite is None and not reads_table,
            metrics={
                "numFiles": str(files.count),
                "numOutputRows": str(files.num_rows),
                "numOutputBytes": str(files.size_bytes),
            },
        ),
        staged=staged,
        file_actions=file_actions(files, rewrite),
        read=replace(read, app_ids=app_ids, whole_table=read.whole_table or reads_table),
        tags=commit_tags(change.after, rewrite),
        user_metadata=options.user_metadata,
    )
