"""Isolation levels: the concurrent changes that a transaction may ignore.

References
----------
PROTOCOL.md#delta-log-entries
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from sparkdelta.exceptions import InvalidArgumentError

ISOLATION_LEVEL = "delta.isolationLevel"


class IsolationLevel(Enum):
    """The isolation level of a commit.

    `SERIALIZABLE`: as if transactions ran one after the other, in the order of their versions.
    `WRITE_SERIALIZABLE`: as if they ran one after the other in some order; blind appends may take
    effect later than their position in the log.
    `SNAPSHOT`: only changes to the same files conflict; for commits that rearrange data without
    changing it.
    """

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


def table_isolation_level(configuration: Mapping[str, str]) -> IsolationLevel:
    """Return the isolation level of the table property, `SERIALIZABLE` by default."""
    name = configuration.get(ISOLATION_LEVEL)
    for level in (IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE):
        if name is None or name.lower() == level.value.lower():
            return level
    raise InvalidArgumentError(
        argument=ISOLATION_LEVEL, problem=f"{name!r} is not one of Serializable, WriteSerializable"
    )


def commit_isolation_level(
    table: IsolationLevel, *, only_files: bool, data_changes: bool, operation_changes_data: bool
) -> IsolationLevel:
    """Return the isolation level of a commit.

    A commit that only rearranges data gets snapshot isolation, because concurrent appends do not
    affect it.

    Parameters
    ----------
    only_files
        True if the commit has file actions only.
    data_changes
        True if a file action has `dataChange`.
    operation_changes_data
        True if the operation is of a kind that changes data, regardless of `dataChange`.
    """
    if not only_files or data_changes:
        return table
    if table is IsolationLevel.WRITE_SERIALIZABLE and operation_changes_data:
        return table
    return IsolationLevel.SNAPSHOT
