"""Write rows into a table: create, append, overwrite, or replace some partitions.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata, PROTOCOL.md#add-cdc-file
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.protocol.actions import TransactionIdentifier
from sparkdelta.base.protocol.change_types import ChangeType
from sparkdelta.base.protocol.commit_info import Parameter
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.protocol.table_features import check_managed
from sparkdelta.base.protocol.table_properties import target_file_size
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.session_settings import follows_settings
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import (
    ColumnNotFoundError,
    DeltaConcurrentModificationException,
    DeltaError,
    MetadataChangedException,
)
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.application_transactions import (
    application_transactions,
    are_committed,
)
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.self_references import are_of_table
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.definition.alteration import shown_definition, shown_json
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.definition.rule_expressions import check_expressions
from sparkdelta.table.definition.schema_changes import written_table
from sparkdelta.table.definition.write_options import MODES, WriteOptions
from sparkdelta.table.listing.catalog_log import has_catalog
from sparkdelta.table.listing.listing import open_log_for_writing
from sparkdelta.table.rows.change_data_files import with_change_type
from sparkdelta.table.rows.column_binding import (
    ColumnBinding,
    cast_and_validate,
    converted_rows,
    match_rows,
    require,
)
from sparkdelta.table.rows.conformed_row_frames import retyped_rows
from sparkdelta.table.rows.identity_columns import generated_identities, with_used_identities
from sparkdelta.table.rows.modified_files import NO_FILES, ModifiedFiles, whole_files
from sparkdelta.table.rows.needed_settings import needed_settings
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.orphans import warn_of_other_files
from sparkdelta.table.rows.removed_files import commit_tags, files_of_same_partitions
from sparkdelta.table.rows.row_changes import RowChangeWriter, row_change_writer
from sparkdelta.table.rows.row_delta import RowDelta, commit_delta
from sparkdelta.table.rows.row_selection import RowSelection, find_matching_rows
from sparkdelta.table.rows.staged_rows import computed_once, rows_in_session, staged_rows
from sparkdelta.table.scan.conditions import parse_deterministic_where
from sparkdelta.table.scan.read_provenance import TablesRead, tables_read
from sparkdelta.table.snapshot.snapshot import Snapshot, find_snapshot
from sparkdelta.table.snapshot.staging import Staging, staging

_MAX_REWRITES = 10
_REPLACE_WHERE = "replace_where"


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
    with tables_read(rows) as read:
        return _write(rows, read, store, options)


def _write(
    rows: DataFrame, read: TablesRead, store: LogStore, options: WriteOptions
) -> WriteResult:
    start = time.monotonic_ns()
    root, spark = store.table_root, rows.sparkSession
    reads_table, snapshot = False, find_snapshot(spark, store)
    for rewrites in range(_MAX_REWRITES + 1):
        if snapshot is None:
            if not rewrites:
                warn_of_other_files(store)
        elif options.mode == "ignore" or are_committed(snapshot, _transactions(options)):
            return WriteResult(None)
        elif options.mode == "error":
            raise DeltaError.of("DELTA_TABLE_ALREADY_EXISTS", path=root)
        else:
            reads_table = are_of_table(read, snapshot)
        attempt = _Attempt.of(rows, spark, store, snapshot, options, reads_table=reads_table)
        with engine_of(spark).write_session(partial(attempt.needed_settings, rows)) as session:
            try:
                with jobs_of(root, None if snapshot is None else snapshot.version):
                    files, done = attempt.in_session(session).commit(rows)
            except DeltaConcurrentModificationException as error:
                if rewrites == _MAX_REWRITES or reads_table:
                    raise
                if error.only_moved_rows and snapshot is not None:
                    # Not the latest version: a commit after this may conflict in another way.
                    snapshot = snapshot.advanced_to(error.version)
                elif isinstance(error, MetadataChangedException) and attempt.matched.identities:
                    # Another write may have used the same identity values, which the files have.
                    snapshot = find_snapshot(spark, store)
                else:
                    raise
                continue
            run_commit_hooks(done, compacts=True)
        return WriteResult(
            version=done.version,
            num_files=files.count,
            num_rows=files.num_rows,
            num_bytes=files.size_bytes,
            retries=done.attempts - 1 + rewrites,
            milliseconds=(time.monotonic_ns() - start) // 1_000_000,
        )
    raise AssertionError


def _transactions(options: WriteOptions) -> tuple[TransactionIdentifier, ...]:
    return application_transactions(options.txn_app_id, options.txn_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """An attempt to write rows and commit them.

    Attributes
    ----------
    snapshot
        The table as it was read; None if there is none.
    reads_table
        True if the rows are made from rows of the table.
    """

    spark: SparkSession
    store: LogStore
    snapshot: Snapshot | None
    change: DefinitionChange
    matched: ColumnBinding
    options: WriteOptions
    reads_table: bool

    @classmethod
    def of(
        cls,
        rows: DataFrame,
        spark: SparkSession,
        store: LogStore,
        snapshot: Snapshot | None,
        options: WriteOptions,
        *,
        reads_table: bool,
    ) -> _Attempt:
        """Check that the rows can be written as the options say."""
        root, where = store.table_root, options.replace_where
        change = written_table(rows.schema, options, snapshot, path=root)
        check_managed(change.after.protocol, path=root, has_catalog=has_catalog(store))
        matched = match_rows(rows.schema, change.after, path=root, converts=options.converts)
        if snapshot is None and where is not None:  # there is nothing to replace
            ignored = (ColumnNotFoundError,) if follows_settings() else ()
            with suppress(*ignored):
                parse_deterministic_where(
                    rows.sparkSession, where, change.after, operation=_REPLACE_WHERE
                )
        if not options.data_change and (change.changes_metadata or matched.identities):
            raise DeltaError.of(
                "DELTA_DATA_CHANGE_FALSE", path=root, what="it also changes the table metadata"
            )
        return cls(
            spark=spark,
            store=store,
            snapshot=snapshot,
            change=change,
            matched=matched,
            options=options,
            reads_table=reads_table,
        )

    def needed_settings(self, rows: DataFrame) -> Mapping[str, str]:
        """Return the settings that the write of the rows depends on."""
        table = self.change.after
        size = self.options.target_file_size or target_file_size(table.properties)
        return needed_settings(
            table, [rows.schema], path=self.store.table_root, target_file_size=size
        )

    def in_session(self, spark: SparkSession) -> _Attempt:
        """Return this attempt in the session of the write, in which the table's rules are valid."""
        check_expressions(spark, self.change.after.schema, self.matched.rules)
        snapshot = self.snapshot
        own = None if snapshot is None else snapshot.in_session(spark)
        return replace(self, spark=spark, snapshot=own)

    def commit(self, rows: DataFrame) -> tuple[NewFiles, CommittedTransaction]:
        """Write the rows, and commit them in place of those that they replace."""
        where, user = self.options.replace_where, rows.sparkSession
        with nullcontext() if where is None else staging(user, self.store) as stage:
            replaced = None
            if self.snapshot is not None and where is not None:
                assert stage is not None
                replaced = find_matching_rows(
                    self.snapshot.in_session(user),
                    where,
                    stage,
                    operation=_REPLACE_WHERE,
                    data_change=self.options.data_change,
                    is_counted=False,
                )
            converted = converted_rows(rows, self.matched, time_zone=self.options.time_zone)
            with staged_rows(converted, self.spark, self.store) as staged:
                delta = self._written(self._conformed(staged, stage), replaced, stage)
            assert delta.new is not None
            operation, metadata = self._operation(delta, delta.new), self.options.user_metadata
            return delta.new, commit_delta(delta, operation, user_metadata=metadata)

    def _conformed(self, rows: DataFrame, stage: Staging | None) -> DataFrame:
        spark, where, path = rows.sparkSession, self.options.replace_where, self.store.table_root
        conformed = cast_and_validate(rows, self.matched, self.change.after, spark=spark, path=path)
        # delta-spark lets the first rows of a table be any.
        if where is None or (self.snapshot is None and follows_settings()):
            return conformed
        assert stage is not None
        return require(conformed, where, spark=spark, stage=stage)

    def _written(
        self, new: DataFrame, replaced: RowSelection | None, stage: Staging | None
    ) -> RowDelta:
        """Write the new rows and those that stay of rewritten files; and the change data, if the
        table has any and files of it change.
        """
        change, root = self.change, self.store.table_root
        modified = NO_FILES if replaced is None else replaced.modified
        with row_change_writer(
            self.spark, self.snapshot, change, modified, store=self.store
        ) as with_defaults:
            writer, changes = self._with_options(with_defaults), None
            if replaced is not None and modified.deleted is not None and writer.writes_change_data:
                assert stage is not None
                new = computed_once(new, stage, "replacing")
                old = rows_in_session(replaced.rows(), self.spark, stage)
                deletes = retyped_rows(old, change.after.schema.fields, ())
                inserts = with_change_type(new, ChangeType.INSERT)
                changes = inserts.unionByName(with_change_type(deletes, ChangeType.DELETE))
            files = writer.write(new, modified, has_row_ids=False)
            modified, read = self._overwritten(files, replaced)
            return RowDelta(
                spark=self.spark,
                store=self.store,
                snapshot=self.snapshot,
                change=with_used_identities(change, self.matched, files, path=root),
                read=replace(
                    read,
                    whole_table=read.whole_table or self.reads_table,
                    only_rows=read.only_rows and not self.reads_table,
                ),
                modified=modified,
                new=files,
                change_files=None if changes is None else writer.write_changes(changes),
                transactions=_transactions(self.options),
                tags=commit_tags(change.after) if modified.rewritten is None else writer.tags,
                stage=stage,
            )

    def _with_options(self, writer: RowChangeWriter) -> RowChangeWriter:
        options, table = self.options, self.change.after
        parquet = {
            "compression": options.compression,
            "maxRecordsPerFile": options.max_records_per_file,
        }
        return replace(
            writer,
            identities=tuple(generated_identities(self.matched, table).values()),
            data_change=options.data_change,
            target_file_size=options.target_file_size or target_file_size(table.properties),
            parquet_options={
                name: str(value) for name, value in parquet.items() if value is not None
            },
        )

    def _overwritten(
        self, files: NewFiles, replaced: RowSelection | None
    ) -> tuple[ModifiedFiles, ReadSet]:
        """Return the files of the table that the new ones replace, and the data that this depends
        on.
        """
        snapshot = self.snapshot
        if replaced is not None:
            return replaced.modified, replaced.read
        if snapshot is None or not self.overwrites:
            return NO_FILES, ReadSet()
        adds, read = snapshot.add_files(), ReadSet(whole_table=True, only_rows=True)
        if self.options.is_dynamic and snapshot.configuration.partition_fields:
            adds, read = files_of_same_partitions(snapshot, files.adds)
        data_change = self.options.data_change
        return whole_files(snapshot, adds, data_change=data_change, is_counted=False), read

    @property
    def overwrites(self) -> bool:
        """True if rows of the table are replaced."""
        return self.snapshot is not None and self.options.mode == "overwrite"

    @property
    def is_blind_append(self) -> bool:
        return not self.overwrites and not self.reads_table

    def _operation(self, delta: RowDelta, files: NewFiles) -> Operation:
        options, snapshot = self.options, self.snapshot
        parameters: dict[str, Parameter]
        metrics = {"numOutputRows": files.num_rows, "numOutputBytes": files.size_bytes}
        if options.output_mode is not None:
            parameters = {
                "outputMode": options.output_mode.capitalize(),
                "queryId": str(options.txn_app_id),
                "epochId": str(options.txn_version),
            }
            metrics["numAddedFiles"] = files.count
            if self.is_blind_append:
                metrics["numRemovedFiles"] = 0
            return Operation("STREAMING UPDATE", parameters, self.is_blind_append, metrics=metrics)
        metrics["numFiles"] = files.count
        if delta.modified.deleted is not None:  # a file that gets a deletion vector stays
            removed = ("numRemovedFiles", "numRemovedBytes")
            metrics |= {name: delta.file_metrics[name] for name in removed}
        name, table = "WRITE", self.change.after
        into_named = options.defines_table and options.mode == "append"
        parameters = {
            "mode": MODES[options.mode],
            "partitionBy": shown_json([] if into_named else options.partition_by or []),
        }
        overwrites_all = options.mode == "overwrite" and options.replace_where is None
        if options.defines_table and (overwrites_all or snapshot is None):
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
        return Operation(name, parameters, self.is_blind_append, metrics=metrics)
