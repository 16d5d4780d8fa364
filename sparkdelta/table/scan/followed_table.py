"""Tables whose latest version is read whenever a query runs.

Spark's plan has the columns, their types and the partition columns: a version that changed these in
another way than by adding columns cannot be read by it.

References
----------
PROTOCOL.md#column-mapping
"""

from __future__ import annotations

from typing import Protocol

from sparkdelta.base.schema.read_compatibility import is_readable_as
from sparkdelta.table.checksum.version_checksum_rules import VersionChecksum
from sparkdelta.table.log.state import TableState
from sparkdelta.table.log.table_configuration import TableConfiguration


class FollowedTable(Protocol):
    """A table in a listing session."""

    def at(self, query: str | None) -> tuple[TableState, VersionChecksum | None]:
        """Return the table as a query reads it: at the latest version, or that of its operation."""


def schema_problem(analyzed: TableConfiguration, latest: TableConfiguration) -> str | None:
    """Return the reason why a plan for one version cannot read the files of another; None if it
    can.
    """
    if analyzed.metadata.partition_columns != latest.metadata.partition_columns:
        return (
            f"it is partitioned by {list(latest.metadata.partition_columns)} and was by "
            f"{list(analyzed.metadata.partition_columns)}"
        )
    modes = analyzed.column_mapping, latest.column_mapping
    if not is_readable_as(analyzed.schema, latest.schema, *modes):
        return (
            f"its columns are {latest.schema.simpleString()} and were "
            f"{analyzed.schema.simpleString()}"
        )
    return None
