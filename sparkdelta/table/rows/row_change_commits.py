"""Commits of changed rows.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#add-cdc-file
"""

from __future__ import annotations

import time
from dataclasses import replace

from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction, Transaction
from sparkdelta.table.rows.orphans import report_orphans
from sparkdelta.table.rows.row_changes import RowChanges


def commit_changes(changes: RowChanges, operation: Operation) -> CommittedTransaction:
    """Commit the files that an operation wrote, and the removal of those that it touched.

    Raises
    ------
    CommitError
        See `Committer.commit`.
    """
    snapshot, new, changed = changes.snapshot, changes.new, changes.change_files
    now = time.time_ns() // 1_000_000  # the files were live while the new ones were written
    removes = tuple(replace(each, deletion_timestamp=now) for each in changes.touched.removes)
    with report_orphans(snapshot.path, changes.directories):
        staged = changes.change.actions.with_files(
            (*(() if new is None else new.values or ()), *changes.touched.adds),
            removes,
            () if changed is None else changed.values,
        )
        return Transaction.of(
            snapshot,
            operation,
            staged=staged,
            file_actions=changes.actions,
            read=changes.read,
            tags=changes.tags or None,
        ).commit()
