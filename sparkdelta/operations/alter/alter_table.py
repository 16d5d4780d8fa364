"""Execution of `ALTER TABLE` statements, and the commits that must precede some of them.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#protocol-evolution, PROTOCOL.md#column-mapping,
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.feature_registry import TableFeature
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.protocol_upgrades import upgraded_protocol
from sparkdelta.base.protocol.table_features import check_data_writable
from sparkdelta.base.protocol.table_properties import SUSPEND_ROW_TRACKING, assigns_row_ids
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.operations.alter.altered_properties import files_without_row_ids
from sparkdelta.operations.alter.recommits import recommit
from sparkdelta.operations.alter.unmapped_table import remove_mapping
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.conflict_rules import BACKFILL
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.definition.alteration import Alteration, Preparation, alteration, with_schema
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.definition.writable import check_table_writable
from sparkdelta.table.listing.listing import open_log_for_writing
from sparkdelta.table.listing.missing_tables import with_not_found_hint
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot

Statement = Callable[[Snapshot], Alteration]


def alter(
    spark: SparkSession,
    path: str,
    statement: Statement,
    options: Mapping[str, str] | None = None,
) -> Version | None:
    """Commit the changes of a statement to a table; return None if it changes nothing.

    Each preparation of the statement is a commit of its own, made first.
    """
    with with_not_found_hint(spark, path):
        store = open_log_for_writing(spark, path, options)
        snapshot = open_snapshot(spark, path, store=store, options=options or {})
    check_data_writable(snapshot.protocol, path=snapshot.path)
    with jobs_of(snapshot.path, snapshot.version):
        altered = statement(snapshot)
        while altered.preparation is not None:
            for prepared in _prepare(snapshot, altered.preparation):
                run_commit_hooks(prepared)
                snapshot = prepared.snapshot
            snapshot = snapshot.refresh()
            altered = statement(snapshot)
        change = altered.change
        # The commit must follow the features that it enables.
        check_table_writable(change.after, path=snapshot.path)
        if not (change.changes_protocol or change.changes_metadata or change.domains):
            return None
        done = altered.commit(snapshot)
    run_commit_hooks(done)
    return done.version


def _prepare(snapshot: Snapshot, preparation: Preparation) -> Iterator[CommittedTransaction]:
    """Commit a preparation; steps that an earlier call has committed are not repeated."""
    if preparation is Preparation.ROW_IDS:
        yield from _with_row_ids(snapshot)
        return
    yield remove_mapping(snapshot, keeps_property=preparation is Preparation.NO_MAPPING)


def _with_row_ids(snapshot: Snapshot) -> Iterator[CommittedTransaction]:
    """Enable row ids for new files, then assign them to existing files."""
    table = snapshot.configuration
    if not assigns_row_ids(table.protocol, table.properties):
        protocol = upgraded_protocol(table.protocol, (TableFeature.ROW_TRACKING.value,))
        rest = {k: v for k, v in table.properties.items() if k != SUSPEND_ROW_TRACKING}
        after = with_schema(replace(table, protocol=protocol), table.schema, properties=rest)
        change = DefinitionChange(table, after)
        shown = {"newProtocol": after.protocol.to_dict()}
        done = alteration(change, "UPGRADE PROTOCOL", shown).commit(snapshot)
        snapshot = done.snapshot
        yield done
    yield from recommit(snapshot, files_without_row_ids, {}, BACKFILL)
