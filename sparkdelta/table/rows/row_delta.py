"""The changes of an operation to the rows of a table, and their commit.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#add-cdc-file, PROTOCOL.md#transaction-identifiers
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.protocol.actions import TransactionIdentifier
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import DeltaConcurrentModificationException
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation, StagedActions
from sparkdelta.table.commit.transaction import CommittedTransaction, Transaction
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.rows.change_data_files import change_data_action_rows, change_data_actions
from sparkdelta.table.rows.modified_files import ModifiedFiles
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.orphans import delete_places, report_orphans
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import Staging

MAX_REPETITIONS = 10
"""The most times that a change of rows is repeated because other commits moved the rows."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDelta:
    """Changes of rows whose files are written and not committed.

    Attributes
    ----------
    snapshot
        The version that was read; None where there is no table yet.
    read
        The data that the changes depend on, for conflict detection.
    modified
        Files that leave the table, or get a deletion vector.
    transactions
        The identifiers of an application's transaction, which the commit sets.
    tags
        Tags of the commit.
    stage
        A staging directory that is of no use after the commit.
    """

    spark: SparkSession
    store: LogStore
    snapshot: Snapshot | None
    change: DefinitionChange
    read: ReadSet = field(default_factory=ReadSet)
    modified: ModifiedFiles = field(default_factory=ModifiedFiles)
    new: NewFiles | None = None
    change_files: NewFiles | None = None
    transactions: tuple[TransactionIdentifier, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    stage: Staging | None = None

    @property
    def staged(self) -> StagedActions:
        """The actions that are values; removes are as of now, as the files were live while the new
        ones were written.
        """
        now = time.time_ns() // 1_000_000
        new, changed = self.new, self.change_files
        return replace(self.change.actions, transactions=self.transactions).with_files(
            (*(() if new is None else new.values or ()), *self.modified.adds),
            tuple(replace(each, deletion_timestamp=now) for each in self.modified.removes),
            () if changed is None else change_data_actions(changed),
        )

    @property
    def file_actions(self) -> DataFrame | None:
        """The file actions that are not values, in columns `add`, `remove` and `cdc`."""
        new, changed = self.new, self.change_files
        many = [] if self.modified.actions is None else [self.modified.actions]
        if new is not None and new.values is None:
            many.append(new.adds)
        if changed is not None and changed.values is None:
            many.append(change_data_action_rows(changed))
        union = partial(DataFrame.unionByName, allowMissingColumns=True)
        return reduce(union, many) if many else None

    def transaction(self, operation: Operation, *, user_metadata: str | None = None) -> Transaction:
        """Return the transaction that commits the changes."""
        app_ids = frozenset(each.app_id for each in self.transactions)
        return Transaction(
            spark=self.spark,
            store=self.store,
            snapshot=self.snapshot,
            operation=operation,
            staged=self.staged,
            file_actions=self.file_actions,
            read=replace(self.read, app_ids=app_ids),
            tags=self.tags or None,
            stage=self.stage,
            user_metadata=user_metadata,
        )

    @property
    def places(self) -> list[str]:
        """The places of all new files, see `orphans.report_orphans`."""
        written = (self.modified, self.new, self.change_files)
        return [place for files in written if files is not None for place in files.places]

    @property
    def file_metrics(self) -> dict[str, int]:
        """The metrics of DELETE and UPDATE about files, by their names in history."""
        new, changed, modified = self.new, self.change_files, self.modified
        return {
            "numRemovedFiles": modified.num_removed_files,
            "numRemovedBytes": modified.num_removed_bytes,
            "numAddedFiles": 0 if new is None else new.count,
            "numAddedBytes": 0 if new is None else new.size_bytes,
            "numAddedChangeFiles": 0 if changed is None else changed.count,
            "numDeletionVectorsAdded": modified.num_vectors_added,
            "numDeletionVectorsRemoved": modified.num_vectors_removed,
            "numDeletionVectorsUpdated": modified.num_vectors_updated,
        }


def commit_delta(
    delta: RowDelta, operation: Operation, *, user_metadata: str | None = None
) -> CommittedTransaction:
    """Commit the files that an operation wrote, and the removal of those that it modified; report
    the new files that an error leaves behind, or delete them if `repeat_after_moves` may repeat the
    operation.
    """
    places = delta.places
    with report_orphans(delta.store.table_root, places):
        try:
            return delta.transaction(operation, user_metadata=user_metadata).commit()
        except DeltaConcurrentModificationException as error:
            if error.only_moved_rows:
                places[:] = delete_places(places, delta.store.table_files())
            raise


def repeat_after_moves(snapshot: Snapshot, change: Callable[[Snapshot, int], Result]) -> Result:
    """Change rows, and again on a later version if another commit has moved them to other files.

    Parameters
    ----------
    change
        Changes the rows of a version; it is also given the number of earlier attempts.
    """
    for attempt in range(MAX_REPETITIONS):
        try:
            return change(snapshot, attempt)
        except DeltaConcurrentModificationException as error:
            if not error.only_moved_rows:
                raise
            # Not the latest one: a commit after this may conflict in another way.
            snapshot = snapshot.advanced_to(error.version)
    return change(snapshot, MAX_REPETITIONS)
