"""Log compaction: the commits of a range reconciled into one file, by one distributed job."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame

from sparkdelta.exceptions import VersionsNotContiguousError
from sparkdelta.frames.log.log_compaction import compacted_lines
from sparkdelta.protocol.log_files import LogFile, LogFileKind, Version, compaction_name
from sparkdelta.table.log.line_reader import fits_the_driver
from sparkdelta.table.log.listing import list_log_files
from sparkdelta.table.snapshot import Snapshot
from sparkdelta.table.staging import staging

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What came of `sparkdelta.compact_log`.

    Attributes
    ----------
    name
        The compaction file; None where there was nothing to compact.
    written
        Whether it is new; one that was there is never touched.
    """

    start: Version
    end: Version
    name: str | None = None
    written: bool = False
    size_bytes: int = 0

    def as_dict(self) -> dict[str, object]:
        """As plain values, for JSON."""
        return asdict(self)


def compact(snapshot: Snapshot, start: Version, end: Version) -> CompactionResult:
    """Write the compaction of a range of commits, unless it is there.

    Parameters
    ----------
    snapshot
        Of a version not before `end`, in a session of `engine.sessions.writing_session`, of a table
        whose log is known to be writable.

    Raises
    ------
    VersionsNotContiguousError
        A commit of the range is not there.

    References
    ----------
    PROTOCOL.md#log-compaction-files
    """
    store = snapshot.log.store
    files = list_log_files(store)
    name = compaction_name(start, end)
    if any(file.name == name for file in files):
        return CompactionResult(start, end, name)
    commits = _commits(files, start, end, snapshot.path)
    compacted = compacted_commits(snapshot.log.lines_of(commits), commits, snapshot.path)
    with staging(snapshot.log.spark, store) as directory:
        (file,) = directory.write_lines(compacted.repartition(1), "compacted")
        try:
            directory.publish("compacted", file.name, name, is_new_name=False)
        except FileExistsError:
            return CompactionResult(start, end, name)
    _LOGGER.info("%s: wrote %s, %d bytes", snapshot.path, name, file.size_bytes)
    return CompactionResult(start, end, name, written=True, size_bytes=file.size_bytes)


def compacted_commits(lines: DataFrame, commits: Sequence[LogFile], table_root: str) -> DataFrame:
    """line STRING: what a compaction of the commits keeps of their lines."""
    is_local = fits_the_driver(commits)
    lines = lines.coalesce(1) if is_local else lines
    return compacted_lines(lines, table_root=table_root, is_local=is_local)


def _commits(files: list[LogFile], start: Version, end: Version, path: str) -> list[LogFile]:
    found = [f for f in files if f.kind is LogFileKind.COMMIT and start <= f.version <= end]
    versions = sorted(file.version for file in found)
    if len(versions) != end - start + 1:
        first_missing = next(v for v in range(start, end + 1) if v not in set(versions))
        raise VersionsNotContiguousError(
            versions=versions,
            start=first_missing - 1,
            end=next((v for v in versions if v > first_missing), end),
            version_to_load=end,
            path=path,
        )
    return sorted(found, key=lambda file: file.version)
