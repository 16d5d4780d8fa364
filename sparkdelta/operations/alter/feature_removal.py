"""Removal of the traces of a table feature, before the feature is dropped.

References
----------
PROTOCOL.md#supported-features, PROTOCOL.md#deletion-vectors, PROTOCOL.md#type-widening,
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from sparkdelta.base.protocol.feature_registry import TableFeature
from sparkdelta.base.protocol.retention import deleted_file_retention_ms
from sparkdelta.base.protocol.table_properties import ColumnMappingMode, declared_file_size
from sparkdelta.base.schema.column_mapping import COLUMN_ID, physical_name
from sparkdelta.base.schema.type_folds import fields_within, parts, with_fields
from sparkdelta.base.schema.type_widening import TYPE_CHANGES
from sparkdelta.base.spark.driver import has_rows
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.exceptions import DeltaConcurrentModificationException
from sparkdelta.operations.alter.altered_columns import shown_field
from sparkdelta.operations.alter.dropped_features import files_with_traces, stopped_use
from sparkdelta.operations.alter.recommits import MAX_ROUNDS, recommit
from sparkdelta.operations.alter.stored_type_workers import (
    StoredColumn,
    TypeChecker,
    files_of_other_types,
)
from sparkdelta.operations.alter.unmapped_table import remove_mapping
from sparkdelta.operations.compaction.batch_commits import commit_batch, rewrite_batch
from sparkdelta.operations.compaction.compaction_batches import (
    Batch,
    described_files,
    plan_batches,
)
from sparkdelta.table.commit.conflict_rules import UNBACKFILL
from sparkdelta.table.commit.staged_commit_rules import Operation, StagedActions
from sparkdelta.table.commit.transaction import CommittedTransaction, Transaction
from sparkdelta.table.definition.alteration import Alteration, alteration, with_schema
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.log.absolute_file_frames import vector_uri
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.row_changes import unchanged_definition
from sparkdelta.table.snapshot.listed_actions import live_domains
from sparkdelta.table.snapshot.snapshot import Snapshot

Commits = Iterator[CommittedTransaction]

_REORG = "REORG"
_FILE_SIZE = 1 << 30
_BATCH_BYTES = 100 << 30
_FILES_PER_TASK = 1_000
_WIDER = ("short", "integer", "long", "double", "timestamp_ntz", "decimal")


def remove_traces(snapshot: Snapshot, feature: TableFeature) -> Commits:
    """Remove the traces of a feature from the latest version, and yield the commits.

    The first commit keeps writers from using it again. If this stops half-way, the next call goes
    on.
    """
    stopped = stopped_use(snapshot, feature)
    if stopped is not None:
        done = stopped.commit(snapshot)
        snapshot = done.snapshot
        yield done
    steps: dict[TableFeature, Callable[[Snapshot], Commits]] = {
        TableFeature.COLUMN_MAPPING: _without_mapping,
        TableFeature.DELETION_VECTORS: _without_vectors,
        TableFeature.DOMAIN_METADATA: _without_domains,
        TableFeature.ROW_TRACKING: _without_row_ids,
        TableFeature.TYPE_WIDENING: _without_type_changes,
    }
    if feature in steps:
        yield from steps[feature](snapshot)


def _without_mapping(snapshot: Snapshot) -> Commits:
    if snapshot.configuration.is_mapped:
        yield remove_mapping(snapshot, keeps_property=False)


def _without_vectors(snapshot: Snapshot) -> Commits:
    def with_vectors(of: Snapshot) -> DataFrame:
        files = files_with_traces(of, TableFeature.DELETION_VECTORS)
        assert files is not None
        return described_files(of, files)

    for done in _rewritten(snapshot, with_vectors):
        yield done
        snapshot = done.snapshot
    yield from _tombstones(snapshot)


def _tombstones(snapshot: Snapshot) -> Commits:
    """Commit tombstones for the files of deletion vectors.

    Writers without the feature would delete these files while earlier versions that can be restored
    need them.
    """
    now = time.time_ns() // 1_000_000
    with engine_of(snapshot.log.spark).log_session() as session:
        read = snapshot.in_session(session)
        kept = now - deleted_file_retention_ms(snapshot.properties)
        tombstones = read.remove_files().filter(f"deletionTimestamp > {kept}L")
        vectors = tombstones.selectExpr(f"{vector_uri('deletionVector')} AS path").distinct()
        others = tombstones.filter("deletionVector.storageType IS NULL").select("path")
        new = vectors.filter("path IS NOT NULL").join(others, "path", "left_anti")
        removes = new.select(
            F.struct(
                "path", F.lit(now).alias("deletionTimestamp"), F.lit(False).alias("dataChange")
            ).alias("remove")
        )
        if has_rows(removes, what="file that uses a feature"):
            operation = Operation("Deletion Vector Tombstones", {}, changes_data=False)
            yield Transaction.of(snapshot, operation, file_actions=removes).commit()


def _without_row_ids(snapshot: Snapshot) -> Commits:
    def with_row_ids(of: Snapshot) -> DataFrame:
        files = files_with_traces(of, TableFeature.ROW_TRACKING)
        assert files is not None
        return files

    none = "CAST(NULL AS BIGINT)"
    facts = {"baseRowId": none, "defaultRowCommitVersion": none}
    yield from recommit(snapshot, with_row_ids, facts, UNBACKFILL)


def _without_domains(snapshot: Snapshot) -> Commits:
    domains = live_domains(snapshot).values()
    if domains:
        removed = [replace(domain, removed=True) for domain in domains]
        yield Transaction.of(
            snapshot,
            Operation("DOMAIN METADATA CLEANUP", {"domainMetadataRemovedCount": len(removed)}),
            staged=StagedActions(domains=tuple(removed)),
        ).commit()


def _without_type_changes(snapshot: Snapshot) -> Commits:
    columns = _stored_columns(snapshot.configuration)

    def of_other_types(of: Snapshot) -> DataFrame:
        spark = of.log.spark
        checker = TypeChecker(worker_files(spark, of.path, of.log.options), columns)
        files = described_files(of, of.add_files())
        with worker_python(spark):
            tasks = max((of.state.num_files or 0) // _FILES_PER_TASK, 1)
            return files_of_other_types(files.repartition(tasks), checker)

    if columns:
        for done in _rewritten(snapshot, of_other_types):
            yield done
            snapshot = done.snapshot
    unrecorded = _unrecorded_type_changes(snapshot)
    if unrecorded is not None:
        yield unrecorded.commit(snapshot)


def _rewritten(snapshot: Snapshot, select_files: Callable[[Snapshot], DataFrame]) -> Commits:
    """Rewrite the files, as of `described_files`, that a function selects, until none remain."""
    size = declared_file_size(snapshot.properties) or _FILE_SIZE
    for round_ in range(1, MAX_ROUNDS + 1):
        failure = None
        with engine_of(snapshot.log.spark).write_session() as session:
            batches = plan_batches(
                snapshot,
                select_files(snapshot),
                target_file_size=size,
                max_bytes=_BATCH_BYTES,
                takes_all=True,
            )
            change = unchanged_definition(snapshot)
            for batch in batches:
                try:
                    rewritten = rewrite_batch(batch, session, change, operation=_REORG)
                    done = commit_batch(rewritten, _reorg)
                except DeltaConcurrentModificationException as error:
                    failure = error
                    break
                yield done
                snapshot = done.snapshot
        if failure is None:
            return
        before, snapshot = snapshot, snapshot.refresh()
        if snapshot.is_altered_since(before) or round_ == MAX_ROUNDS:
            raise failure


def _reorg(_replaced: Batch, _new: NewFiles) -> Operation:
    return Operation(_REORG, {"predicate": "[]", "applyPurge": True}, changes_data=False)


def _stored_columns(table: TableConfiguration) -> tuple[StoredColumn, ...]:
    """Return the columns that old files may store as narrower types, by their names in files."""

    def within(
        data_type: DataType, path: tuple[str | int, ...], *, is_changed: bool
    ) -> Iterator[StoredColumn]:
        if isinstance(data_type, StructType):
            for field in data_type.fields:
                changed = TYPE_CHANGES in (field.metadata or {})
                yield from within(field.dataType, (*path, name(field)), is_changed=changed)
            return
        for part, inner in parts(data_type):
            yield from within(inner, (*path, part), is_changed=is_changed)
        text = data_type.jsonValue()
        if is_changed and isinstance(text, str) and text.startswith(_WIDER):
            yield StoredColumn(path, text)

    def name(field: StructField) -> str | int:
        if table.column_mapping is ColumnMappingMode.ID:
            return int(field.metadata[COLUMN_ID])
        return physical_name(field, table.column_mapping)

    return tuple(within(StructType(table.data_fields), (), is_changed=False))


def _unrecorded_type_changes(snapshot: Snapshot) -> Alteration | None:
    """Return the removal of the record of type changes; None if the table has none."""

    def plain(field: StructField) -> StructField:
        metadata = {k: v for k, v in (field.metadata or {}).items() if k != TYPE_CHANGES}
        return StructField(field.name, field.dataType, field.nullable, metadata)

    table = snapshot.configuration
    changed = [
        shown_field(path, field)
        for path, field, _ in fields_within(table.schema)
        if TYPE_CHANGES in (field.metadata or {})
    ]
    if not changed:
        return None
    after = with_schema(table, with_fields(table.schema, plain))
    return alteration(DefinitionChange(table, after), "DROP FEATURE", {"columns": changed})
