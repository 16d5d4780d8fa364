"""Commits of alterations.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#protocol-evolution
"""

from __future__ import annotations

from sparkdelta.table.commit.committer import Committer
from sparkdelta.table.commit.transaction import CommittedTransaction, Transaction
from sparkdelta.table.definition.alteration import Alteration
from sparkdelta.table.snapshot.snapshot import Snapshot


def commit_alteration(
    snapshot: Snapshot, alteration: Alteration, committer: Committer | None = None
) -> CommittedTransaction:
    """Commit the change that a statement makes to a table.

    Parameters
    ----------
    snapshot
        The version that the statement was carried out on.

    Raises
    ------
    CommitError
        See `Committer.commit`.
    """
    return Transaction.of(
        snapshot,
        alteration.operation,
        staged=alteration.change.actions,
        read=alteration.read,
        dropped_features=alteration.dropped_features,
    ).commit(committer)
