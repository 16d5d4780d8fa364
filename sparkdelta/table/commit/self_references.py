"""Rows to be written to a table that are made from its own rows.

References
----------
PROTOCOL.md#commit-provenance-information
"""

from __future__ import annotations

from sparkdelta.base.protocol.isolation_levels import IsolationLevel
from sparkdelta.base.protocol.log_files import listing_prefix
from sparkdelta.table.commit.conflict_detection import DriverConflictDetector
from sparkdelta.table.commit.conflict_rules import ReadSet, check_conflicts
from sparkdelta.table.commit.spark_conflict_detection import SparkConflictDetector
from sparkdelta.table.commit.staged_commit_rules import StagedActions
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import commits_between
from sparkdelta.table.scan.read_provenance import TablesRead
from sparkdelta.table.snapshot.snapshot import Snapshot


def are_of_table(read: TablesRead, snapshot: Snapshot) -> bool:
    """Return True if rows are made from rows of a table, as far as `TablesRead` finds. Rows that
    follow the table are read at the snapshot's version from now on.

    Raises
    ------
    DeltaConcurrentModificationException
        They are made from an earlier version than the snapshot's, and later commits changed it: the
        isolation level does not matter, as these commits precede the write.
    VersionsNotContiguousError
        The log no longer has these commits.
    """
    version, path = read.version_of(snapshot.path, snapshot.version), snapshot.path
    if version is None:
        return False
    if version >= snapshot.version:
        return True
    log = snapshot.log
    small = DriverConflictDetector(log.store, ReadSet(whole_table=True))
    detector = SparkConflictDetector(small, log)
    files = list_log_files(log.store, listing_prefix(version + 1))
    for commit in commits_between(files, version + 1, snapshot.version, path=path):
        compared = detector(commit, StagedActions())
        check_conflicts(
            compared.conflicts,
            IsolationLevel.SERIALIZABLE,
            winner=compared.winner,
            changes_metadata=False,
            path=path,
        )
    return True
