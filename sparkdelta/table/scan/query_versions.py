"""The version of each table that a query reads: one for all of its scans that follow the table."""

from __future__ import annotations

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.storage.recent_values import RecentValues

_versions: RecentValues[tuple[str, str], Version] = RecentValues(10_000)


def find_version(query: str, table_root: str) -> Version | None:
    """Return the version of a table that a query reads; None if it has read none yet.

    Parameters
    ----------
    query
        Its id, or that of the operation that it is a part of.
    """
    return _versions.find((query, table_root))


def version_of_query(query: str, table_root: str, latest: Version) -> Version:
    """Return the version of a table that a query reads: the latest when it first reads one."""
    return _versions.find_or_make((query, table_root), lambda: latest)


def pin_version(operation: str, table_root: str, version: Version) -> None:
    """Set the version of a table that the queries of an operation read from now on."""
    _versions.keep((operation, table_root), version)
