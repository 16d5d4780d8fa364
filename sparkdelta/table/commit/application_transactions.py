"""The transactions of applications, by which a change that is repeated is committed once.

References
----------
PROTOCOL.md#transaction-identifiers
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sparkdelta.base.protocol.actions import TransactionIdentifier
from sparkdelta.base.spark.session_settings import transaction
from sparkdelta.table.snapshot.listed_actions import last_transaction_version
from sparkdelta.table.snapshot.snapshot import Snapshot


def session_transactions() -> tuple[TransactionIdentifier, ...]:
    """Return the transaction that the settings of a followed session give to a change of rows."""
    named = transaction()
    return () if named is None else application_transactions(*named)


def application_transactions(
    app_id: str | None, version: int | None
) -> tuple[TransactionIdentifier, ...]:
    """Return the transaction of an application as a commit has it; none without a version."""
    if app_id is None or version is None:
        return ()
    return (TransactionIdentifier(app_id, version, time.time_ns() // 1_000_000),)


def are_committed(snapshot: Snapshot, transactions: Sequence[TransactionIdentifier]) -> bool:
    """Return True if a transaction, or a later one of its application, was committed before."""
    for each in transactions:
        last = last_transaction_version(snapshot, each.app_id)
        if last is not None and last >= each.version:
            return True
    return False
