"""Rows into a table: create, append, overwrite, or replace some partitions.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.exceptions import (
    TableAlreadyExistsError,
    TableNotFoundError,
    WriteNotImplementedError,
)
from sparkdelta.frames.written_rows import WrittenColumn
from sparkdelta.protocol.actions import TransactionIdentifier
from sparkdelta.protocol.conflicts import ReadSet
from sparkdelta.protocol.predicates import Predicate, columns, is_usable
from sparkdelta.protocol.staged_commit import Operation, StagedActions
from sparkdelta.protocol.table_properties import num_indexed_columns
from sparkdelta.schema.table_schema import quoted
from sparkdelta.schema.written_schema import (
    indexed_columns,
)
from sparkdelta.storage.log_store import LogStore
from sparkdelta.table.conditions import understand
from sparkdelta.table.data_file_writer import DataFileWriter, NewFiles
from sparkdelta.table.driver import read_rows
from sparkdelta.table.log_listing import open_log_for_writing, read_options
from sparkdelta.table.snapshot import Snapshot, open_snapshot
from sparkdelta.table.transaction import Transaction
from sparkdelta.table.write_options import MODES, WriteOptions
from sparkdelta.table.write_target import Target, existing_table, new_table


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
    start = time.monotonic_ns()
    spark = rows.sparkSession
    store = open_log_for_writing(spark, path)
    try:
        snapshot = open_snapshot(spark, path)
    except TableNotFoundError:
        snapshot = None
    if snapshot is None:
        target = new_table(rows.schema, options, store)
    elif options.mode == "ignore" or (snapshot is not None and _is_repeated(snapshot, options)):
        return WriteResult(None)
    elif options.mode == "error":
        raise TableAlreadyExistsError(path=store.table_root)
    else:
        target = existing_table(rows.schema, options, snapshot)
    replaced = _replaced(snapshot, options)
    files = _data_files(rows, target, options, store)
    done = _transaction(store, snapshot, target, files, replaced, options).commit()
    return WriteResult(
        done.version,
        files.count,
        files.num_rows,
        files.size_bytes,
        done.attempts - 1,
        (time.monotonic_ns() - start) // 1_000_000,
    )


@dataclass(frozen=True, slots=True)
class _Replaced:
    """The files that a write takes out.

    Attributes
    ----------
    removes
        A column `remove`.
    predicate
        What of the table they are; None for all of it.
    """

    removes: DataFrame
    predicate: Predicate | None


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


def _replaced(snapshot: Snapshot | None, options: WriteOptions) -> _Replaced | None:
    if snapshot is None or options.mode != "overwrite":
        return None
    adds, predicate = snapshot.add_files(), None
    if options.replace_where is not None:
        configuration = snapshot.configuration
        predicate = understand(snapshot.log.spark, options.replace_where, configuration)
        partitions = {field.name for field in configuration.partition_fields}
        if not is_usable(predicate) or {path[0] for path in columns(predicate)} - partitions:
            missing = "replace_where that is not on partition columns alone"
            raise WriteNotImplementedError(path=snapshot.path, missing=(missing,))
        # The condition as it was written, on the typed values, in columns of their own.
        values = [F.col("partitionValues_parsed")[name].alias(name) for name in sorted(partitions)]
        adds = adds.select(*values, F.struct("*").alias("sparkdelta:add"))
        adds = adds.filter(options.replace_where).select(quoted("sparkdelta:add") + ".*")
    removes = adds.select(
        F.struct(
            "path",
            F.lit(time.time_ns() // 1_000_000).alias("deletionTimestamp"),
            F.lit(True).alias("dataChange"),
            F.lit(True).alias("extendedFileMetadata"),
            "partitionValues",
            "size",
            "deletionVector",
        ).alias("remove")
    )
    return _Replaced(removes, predicate)


def _data_files(
    rows: DataFrame, target: Target, options: WriteOptions, store: LogStore
) -> NewFiles:
    writer_options = {"compression": options.compression}
    if options.max_records_per_file is not None:
        writer_options["maxRecordsPerFile"] = str(options.max_records_per_file)
    writer = DataFileWriter(
        spark=rows.sparkSession,
        table_root=store.table_root,
        columns=[WrittenColumn(field, source) for field, source in target.columns],
        partition_columns=target.partition_columns,
        statistics_columns=indexed_columns(
            target.schema, target.partition_columns, num_indexed_columns(target.configuration)
        ),
        options={**read_options(store, {}), **writer_options},
    )
    return writer.write(rows, where=options.replace_where)


def _transaction(
    store: LogStore,
    snapshot: Snapshot | None,
    target: Target,
    files: NewFiles,
    replaced: _Replaced | None,
    options: WriteOptions,
) -> Transaction:
    staged, app_ids = target.staged, frozenset[str]()
    if options.txn_app_id is not None and options.txn_version is not None:
        now = time.time_ns() // 1_000_000
        identifier = TransactionIdentifier(options.txn_app_id, options.txn_version, now)
        staged = StagedActions(staged.protocols, staged.metadata, (identifier,))
        app_ids = frozenset((options.txn_app_id,))
    predicate = None if replaced is None else replaced.predicate
    parameters = {
        "mode": MODES[options.mode],
        "partitionBy": json.dumps(list(target.partition_columns), separators=(",", ":")),
    }
    if isinstance(options.replace_where, str):
        parameters["predicate"] = options.replace_where
    return Transaction(
        store=store,
        snapshot=snapshot,
        operation=Operation("WRITE", parameters, is_blind_append=replaced is None),
        staged=staged,
        file_actions=_file_actions(files.adds, replaced),
        read=ReadSet(
            predicates=() if predicate is None else (predicate,),
            whole_table=replaced is not None and predicate is None,
            app_ids=app_ids,
        ),
        metrics={
            "numFiles": str(files.count),
            "numOutputRows": str(files.num_rows),
            "numOutputBytes": str(files.size_bytes),
        },
        user_metadata=options.user_metadata,
    )


def _file_actions(adds: DataFrame, replaced: _Replaced | None) -> DataFrame:
    if replaced is None:
        return adds
    return adds.unionByName(replaced.removes, allowMissingColumns=True)
