"""What a transaction may overlook of others that were committed before it.

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
    """How commits of concurrent transactions relate.

    `SERIALIZABLE`: as if one ran after the other, in the order of their versions.
    `WRITE_SERIALIZABLE`: in some order; rows that were appended blindly may come later than they
    stand in the log.
    `SNAPSHOT`: only what both change counts; for commits that rearrange data without changing it.
    """

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


def table_isolation_level(configuration: Mapping[str, str]) -> IsolationLevel:
    """The level that a table asks for.

    Raises
    ------
    InvalidArgumentError
        The property names no level that a table can have.
    """
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
    """The level of one commit: nothing is lost if rearranged data overlooks what others append.

    Parameters
    ----------
    only_files
        Whether the commit has no other actions than those of files.
    data_changes
        Whether one of these says `dataChange`.
    operation_changes_data
        Whether the operation is of a kind that changes data, whatever its actions say.
    """
    if not only_files or data_changes:
        return table
    if table is IsolationLevel.WRITE_SERIALIZABLE and operation_changes_data:
        return table
    return IsolationLevel.SNAPSHOT
