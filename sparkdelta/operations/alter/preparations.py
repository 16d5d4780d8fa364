"""Commits of files that must precede a statement of `ALTER TABLE`.

References
----------
PROTOCOL.md#writer-requirements-for-row-tracking, PROTOCOL.md#column-mapping
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparkdelta.base.protocol.feature_rules import TableFeature
from sparkdelta.base.protocol.protocol_upgrades import upgraded_protocol
from sparkdelta.base.protocol.table_properties import SUSPEND_ROW_TRACKING, assigns_row_ids
from sparkdelta.operations.alter.alteration_commits import commit_alteration
from sparkdelta.operations.alter.altered_properties import files_without_row_ids
from sparkdelta.operations.alter.recommits import recommit
from sparkdelta.operations.alter.unmapped_table import remove_mapping
from sparkdelta.table.commit.conflict_rules import BACKFILL
from sparkdelta.table.commit.transaction import CommittedTransaction
from sparkdelta.table.definition.alteration import Preparation, alteration, with_schema
from sparkdelta.table.definition.table_change import TableChange
from sparkdelta.table.snapshot.snapshot import Snapshot


def prepare(snapshot: Snapshot, preparation: Preparation) -> Iterator[CommittedTransaction]:
    """Prepare a table for a statement; steps that another call has done are not repeated.

    Yields
    ------
    CommittedTransaction
        Each commit.

    Raises
    ------
    DeltaConcurrentModificationException
        Another commit altered the table, or others removed files again and again.
    """
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
        change = TableChange(table, after)
        shown = {"newProtocol": after.protocol.to_dict()}
        done = commit_alteration(snapshot, alteration(change, "UPGRADE PROTOCOL", shown))
        snapshot = done.snapshot
        yield done
    yield from recommit(snapshot, files_without_row_ids, {}, BACKFILL)
