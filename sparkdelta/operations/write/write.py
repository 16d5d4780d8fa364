"""Write rows into a table: create, append, overwrite, or replace some partitions.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata, PROTOCOL.md#add-cdc-file
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.protocol.actions import TransactionIdentifier
from sparkdelta.base.protocol.change_types import ChangeType
from sparkdelta.base.protocol.commit_info import Parameter
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.protocol.table_features import check_managed
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import (
    DataChangeFalseError,
    InvalidArgumentError,
    MetadataChangedException,
    TableAlreadyExistsError,
)
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.self_references import are_of_table
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import Transaction, last_transaction_version
from sparkdelta.table.definition.alteration import shown_definition, shown_json
from sparkdelta.table.definition.rule_expressions import check_expressions
from sparkdelta.table.definition.schema_changes import written_table
from sparkdelta.table.definition.table_change import TableChange
from sparkdelta.table.definition.write_options import MODES, WriteOptions
from sparkdelta.table.listing.catalog_log import has_catalog
from sparkdelta.table.listing.listing import open_log_for_writing
from sparkdelta.table.rows.change_files import ChangeFiles, with_change_type
from sparkdelta.table.rows.column_binding import (
    ColumnBinding,
    cast_and_validate,
    converted_rows,
    match_rows,
    require,
    with_survivors,
)
from sparkdelta.table.rows.conformed_row_frames import retyped_rows
from sparkdelta.table.rows.data_files import write_rows
from sparkdelta.table.rows.identity_columns import generated_identities, with_used_identities
from sparkdelta.table.rows.modified_files import ModifiedFiles
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.orphans import report_orphans, warn_of_other_files
from sparkdelta.table.rows.rewriting import (
    Rewrite,
    commit_tags,
    file_actions,
    rewrite_all,
    rewrite_matching,
    rewrite_partitions,
)
from sparkdelta.table.rows.row_changes import change_writer
from sparkdelta.table.rows.staged_rows import computed_once, staged_rows
from sparkdelta.table.scan.conditions import parse_deterministic_where
from sparkdelta.table.snapshot.snapshot import Snapshot, find_snapshot
from sparkdelta.table.snapshot.staging import staging

_MAX_REWRITES = 10


@dataclass(frozen=True, slots=True)
class WriteResult(Result):
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
    if options.replace_where is not None and not engine_of(spark).can("move frames"):
        problem = (
            "on Spark Connect the condition would be evaluated with different session settings; "
            "write from a classic session"
        )
        raise InvalidArgumentError(argument="replace_where", problem=problem)
    reads_table = False
    for rewrites in range(_MAX_REWRITES + 1):
        snapshot = find_snapshot(spark, store)
        if snapshot is None:
            if not rewrites:
                warn_of_other_files(store)
        elif options.mode == "ignore" or _is_repeated(snapshot, options):
            return WriteResult(None)
        elif options.mode == "error":
            raise TableAlreadyExistsError(path=root)
        else:
            reads_table = are_of_table(rows, snapshot)
        change = written_table(rows.schema, options, snapshot, path=root)
        check_managed(change.after.protocol, path=root, has_catalog=has_catalog(store))
        matched = match_rows(rows.schema, change.after, path=root, rounds=options.rounds)
        check_expressions(spark, change.after.schema, matched.rules)
        if snapshot is None and options.replace_where is not None:  # there is nothing to rewrite
            parse_deterministic_where(
                spark, options.replace_where, change.after, operation="replace_where"
            )
        if not options.data_change and (change.changes_metadata or matched.identities):
            raise DataChangeFalseError(path=root, what="it also changes the table metadata")
        with jobs_of(root, None if snapshot is None else snapshot.version):
            rewrite = _rewrite(snapshot, options)
            converted = converted_rows(rows, matched, time_zone=options.time_zone)
            with staged_rows(converted, spark, store) as staged:
                new = _conformed(staged, matched, change, store, options)
                files, changed = _written(new, snapshot, change, matched, rewrite, store, options)
        directories = [each.directory for each in (files, changed) if each is not None]
        try:
            with report_orphans(root, directories):
                if snapshot is not None and _replaces_partitions(snapshot, options):
                    with jobs_of(root, snapshot.version):
                        rewrite = rewrite_partitions(
                            snapshot, files.adds, data_change=options.data_change
                        )
                change = with_used_identities(change, matched, files, path=root)
                done = _transaction(
                    spark, store, snapshot, change, files, changed, rewrite, options,
                    reads_table=reads_table,
                ).commit()  # fmt: skip
        except MetadataChangedException:
            # Another write may have used the same identity values; these are in the files already.
            if not matched.identities or rewrites == _MAX_REWRITES or reads_table:
                raise
            continue
        run_commit_hooks(done, compacts=True)
        return WriteResult(
            done.version,
            files.count,
            files.num_rows,
            files.size_bytes,
            done.attempts - 1 + rewrites,
            (time.monotonic_ns() - start) // 1_000_000,
        )
    raise AssertionError


def _is_repeated(snapshot: Snapshot, options: WriteOptions) -> bool:
    """True if the application's transaction was committed before."""
    if options.txn_app_id is None or options.txn_version is None:
        return False
    last = last_transaction_version(snapshot, options.txn_app_id)
    return last is not None and last >= options.txn_version


def _replaces_partitions(snapshot: Snapshot, options: WriteOptions) -> bool:
    """True if the write replaces exactly the partitions that get new files."""
    return options.is_dynamic and bool(snapshot.configuration.partition_fields)


def _rewrite(snapshot: Snapshot | None, options: WriteOptions) -> Rewrite | None:
    if snapshot is None or options.mode != "overwrite" or _replaces_partitions(snapshot, options):
        return None
    where, data_change = options.replace_where, options.data_change
    if where is None:
        return rewrite_all(snapshot, data_change=data_change)
    return rewrite_matching(snapshot, where, operation="replace_where", data_change=data_change)


def _conformed(
    rows: DataFrame,
    matched: ColumnBinding,
    change: TableChange,
    store: LogStore,
    options: WriteOptions,
) -> DataFrame:
    spark = rows.sparkSession
    conformed = cast_and_validate(rows, matched, change.after, spark=spark, path=store.table_root)
    if options.replace_where is not None:
        conformed = require(conformed, options.replace_where, spark=spark)
    return conformed


def _written(
    new: DataFrame,
    snapshot: Snapshot | None,
    change: TableChange,
    matched: ColumnBinding,
    rewrite: Rewrite | None,
    store: LogStore,
    options: WriteOptions,
) -> tuple[NewFiles, ChangeFiles | None]:
    """Write the new rows and those that stay, and the change data if there must be any."""
    if snapshot is None or rewrite is None or rewrite.removed_rows is None:
        return _data_files(new, change, matched, rewrite, store, options), None
    spark, fields = new.sparkSession, change.after.schema.fields
    with (
        change_writer(spark, snapshot, change, ModifiedFiles()) as writer,
        staging(spark, store) as stage,
    ):
        new = computed_once(new, stage, "replacing")
        files = _data_files(new, change, matched, rewrite, store, options)
        writer.directories.append(files.directory)
        removed = retyped_rows(rewrite.removed_rows, fields, ())
        inserts = with_change_type(new, ChangeType.INSERT)
        deletes = with_change_type(removed, ChangeType.DELETE)
        return files, writer.write_changes(inserts.unionByName(deletes))


def _data_files(
    rows: DataFrame,
    change: TableChange,
    matched: ColumnBinding,
    rewrite: Rewrite | None,
    store: LogStore,
    options: WriteOptions,
) -> NewFiles:
    table, spark = change.after, rows.sparkSession
    row_id_columns: tuple[str, ...] = ()
    if rewrite is not None and rewrite.survivors is not None:
        row_id_columns = rewrite.row_id_columns
        rows = with_survivors(rows, rewrite.survivors, table, row_id_columns)
    return write_rows(
        rows,
        change,
        store,
        spark=spark,
        row_id_columns=row_id_columns,
        identities=generated_identities(matched, table).values(),
        data_change=options.data_change,
        compression=options.compression,
        max_records_per_file=options.max_records_per_file,
        target_file_size=options.target_file_size,
    )


def _transaction(
    spark: SparkSession,
    store: LogStore,
    snapshot: Snapshot | None,
    change: TableChange,
    files: NewFiles,
    changed: ChangeFiles | None,
    rewrite: Rewrite | None,
    options: WriteOptions,
    *,
    reads_table: bool,
) -> Transaction:
    staged = replace(
        change.actions,
        adds=files.values or (),
        change_files=() if changed is None else changed.values,
    )
    app_ids = frozenset[str]()
    if options.txn_app_id is not None and options.txn_version is not None:
        now = time.time_ns() // 1_000_000
        identifier = TransactionIdentifier(options.txn_app_id, options.txn_version, now)
        staged = replace(staged, transactions=(identifier,))
        app_ids = frozenset((options.txn_app_id,))
    read = ReadSet() if rewrite is None else rewrite.read
    return Transaction(
        spark=spark,
        store=store,
        snapshot=snapshot,
        operation=_operation(
            snapshot,
            change,
            files,
            options,
            is_blind_append=rewrite is None and not reads_table,
        ),
        staged=staged,
        file_actions=file_actions(files, rewrite, changed),
        read=replace(read, app_ids=app_ids, whole_table=read.whole_table or reads_table),
        tags=commit_tags(change.after, rewrite),
        user_metadata=options.user_metadata,
    )


def _operation(
    snapshot: Snapshot | None,
    change: TableChange,
    files: NewFiles,
    options: WriteOptions,
    *,
    is_blind_append: bool,
) -> Operation:
    parameters: dict[str, Parameter]
    metrics = {"numOutputRows": files.num_rows, "numOutputBytes": files.size_bytes}
    if options.output_mode is not None:
        parameters = {
            "outputMode": options.output_mode.capitalize(),
            "queryId": str(options.txn_app_id),
            "epochId": str(options.txn_version),
        }
        metrics["numAddedFiles"] = files.count
        if is_blind_append:
            metrics["numRemovedFiles"] = 0
        return Operation("STREAMING UPDATE", parameters, is_blind_append, metrics=metrics)
    metrics["numFiles"] = files.count
    name, table = "WRITE", change.after
    parameters = {
        "mode": MODES[options.mode],
        "partitionBy": shown_json(table.partition_columns),
    }
    if options.defines_table and (options.mode == "overwrite" or snapshot is None):
        parameters = shown_definition(
            table, options.cluster_by or (), is_managed=options.is_managed
        )
        verb = "CREATE"
        if options.mode == "overwrite":
            verb = "REPLACE" if options.requires_table else "CREATE OR REPLACE"
            if not options.replaces_table:
                parameters["isV1SaveAsTableOverwrite"] = True
        name = f"{verb} TABLE AS SELECT"
    if isinstance(options.replace_where, str):
        parameters["predicate"] = options.replace_where
    chosen = {
        "canMergeSchema": options.merge_schema,
        "canOverwriteSchema": options.overwrite_schema,
        "isDynamicPartitionOverwrite": options.is_dynamic,
    }
    parameters |= {option: True for option, is_chosen in chosen.items() if is_chosen}
    return Operation(name, parameters, is_blind_append, metrics=metrics)
