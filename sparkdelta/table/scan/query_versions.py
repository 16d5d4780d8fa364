"""The version of each table that a query reads: one for all of its scans that follow the table."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from sparkdelta.base.protocol.log_files import Version

_KEPT = 10_000

_versions: OrderedDict[tuple[str, str], Version] = OrderedDict()
_lock = Lock()


def find_version(query: str, table_root: str) -> Version | None:
    """Return the version of a table that a query reads; None if it has read none yet.

    Parameters
    ----------
    query
        Its id, or that of the operation that it is a part of.
    """
    with _lock:
        return _versions.get((query, table_root))


def version_of_query(query: str, table_root: str, latest: Version) -> Version:
    """Return the version of a table that a query reads: the latest when it first reads one."""
    with _lock:
        version = _versions.setdefault((query, table_root), latest)
        while len(_versions) > _KEPT:
            _versions.popitem(last=False)
        return version


def pin_version(operation: str, table_root: str, version: Version) -> None:
    """Set the version of a table that the queries of an operation read from now on."""
    with _lock:
        _versions[operation, table_root] = version
