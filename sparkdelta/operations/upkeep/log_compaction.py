"""Log compaction: the commits of a range reconciled into one file, by one distributed job.

References
----------
PROTOCOL.md#log-compaction-files
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.protocol.arguments import checked_version
from sparkdelta.base.protocol.log_files import Version, compaction_name
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.operations.upkeep.log_compaction_frames import compacted_lines
from sparkdelta.table.definition.writable import open_writable
from sparkdelta.table.listing.listing import list_log_files, open_log_for_writing
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


def compact_log(
    spark: SparkSession, path: str, *, start: int | None = None, end: int | None = None
) -> CompactionResult:
    """Write a log compaction file for the commits from `start` to `end`, both inclusive.

    Takes one Spark job; on the driver, only the actions needed to load a version are collected. An
    existing file is not replaced.

    Parameters
    ----------
    start
        The first version; by default the one after the newest checkpoint at or before `end`. With
        the default, nothing is written for fewer than two commits.
    end
        The last version; by default the latest.

    Raises
    ------
    DeltaError
        The range is empty, a commit is missing, or this engine cannot write the log; nothing was
        written.

    References
    ----------
    PROTOCOL.md#log-compaction-files
    """
    first, last = checked_version(start, "start"), checked_version(end, "end")
    store = open_log_for_writing(spark, path)
    with jobs_of(store.table_root, last), engine_of(spark).log_session() as session:
        return compact(open_writable(session, path, version=last), first)


def compact(snapshot: Snapshot, start: Version | None) -> CompactionResult:
    """Write the compaction of the commits up to a version, unless it is there.

    Parameters
    ----------
    snapshot
        The last version, in a `log_session`, of a table whose log is known to be writable.
    start
        See `compact_log`.

    Raises
    ------
    InvalidArgumentError
        The range has less than two commits.
    VersionsNotContiguousError
        A commit of the range is not there.
    """
    end, checkpoint = snapshot.version, snapshot.segment.checkpoint
    if start is None:
        start = 0 if checkpoint is None else checkpoint.version + 1
        if start >= end:
            return CompactionResult(start, end)
    if not 0 <= start < end:
        problem = f"{start} must be smaller than {end}, the end of the range"
        raise InvalidArgumentError(argument="start", problem=problem)
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
