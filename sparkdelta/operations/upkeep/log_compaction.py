"""Log compaction: the commits of a range reconciled into one file, by one distributed job.

References
----------
PROTOCOL.md#log-compaction-files
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyspark.sql import DataFrame

from sparkdelta.base.protocol.log_files import Version, compaction_name
from sparkdelta.base.protocol.results import Result
from sparkdelta.operations.upkeep.log_compaction_frames import compacted_lines
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import commits_between
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import staging

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompactionResult(Result):
    """The result of `sparkdelta.compact_log`.

    Attributes
    ----------
    name
        The compaction file; None where there was nothing to compact.
    written
        True if it is new; an existing file is never changed.
    """

    start: Version
    end: Version
    name: str | None = None
    written: bool = False
    size_bytes: int = 0


def compact(snapshot: Snapshot, start: Version, end: Version) -> CompactionResult:
    """Write the compaction of a range of commits, unless it is there.

    Parameters
    ----------
    snapshot
        Of a version not before `end`, in a `log_session`, of a table
        whose log is known to be writable.

    Raises
    ------
    VersionsNotContiguousError
        A commit of the range is not there.
    """
    store = snapshot.log.store
    files = list_log_files(store)
    name = compaction_name(start, end)
    if any(file.name == name for file in files):
        return CompactionResult(start, end, name)
    commits = commits_between(files, start, end, path=snapshot.path)
    compacted = compacted_commits(CommitRange.read(snapshot.log.reader, commits))
    with staging(snapshot.log.spark, store) as directory:
        (file,) = directory.write_lines(compacted.repartition(1), "compacted")
        try:
            directory.publish("compacted", file.name, name, is_new_name=False)
        except FileExistsError:
            return CompactionResult(start, end, name)
    _LOGGER.info("%s: wrote %s, %d bytes", snapshot.path, name, file.size_bytes)
    return CompactionResult(start, end, name, written=True, size_bytes=file.size_bytes)


def compacted_commits(commits: CommitRange) -> DataFrame:
    """The lines of a compaction of these commits: line STRING."""
    lines = commits.lines.coalesce(1) if commits.is_local else commits.lines
    root = commits.reader.store.table_root
    return compacted_lines(lines, table_root=root, is_local=commits.is_local)
