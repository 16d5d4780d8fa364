"""Metadata cleanup: the log files that no version within the retention period requires.

References
----------
PROTOCOL.md#metadata-cleanup, PROTOCOL.md#commit-protocol
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkdelta.base.protocol.log_files import LogFile, LogFileKind, Version, staged_commit_version
from sparkdelta.table.listing.log_segment_rules import Checkpoint, complete_checkpoints

DAY_MS = 24 * 60 * 60 * 1000
_MINUTE_MS = 60 * 1000

_ORDER = (
    LogFileKind.COMMIT,
    LogFileKind.VERSION_CHECKSUM,
    LogFileKind.CLASSIC_CHECKPOINT,
    LogFileKind.MULTI_PART_CHECKPOINT,
    LogFileKind.UUID_CHECKPOINT,
)


def cutoff_time(now_ms: int, retention_ms: int) -> int:
    """Return the cutOffTimestamp: the end of the retention period, rounded down to midnight UTC.

    All times are in milliseconds since the epoch.

    Examples
    --------
    >>> cutoff_time(10 * DAY_MS + 5, 2 * DAY_MS) == 8 * DAY_MS
    True
    """
    return _midnight(now_ms - retention_ms)


def short_cutoff_time(now_ms: int, retention_ms: int) -> int:
    """Return the end of a retention period of less than some days, rounded down to the minute.

    Examples
    --------
    >>> short_cutoff_time(10 * DAY_MS + 70_000, DAY_MS) == 9 * DAY_MS + 60_000
    True
    """
    cutoff = now_ms - retention_ms
    return cutoff - cutoff % _MINUTE_MS


def is_abandoned(modification_time_ms: int, now_ms: int) -> bool:
    """Return True if a file was at least a day old at the last midnight UTC.

    By then, no write in progress can still refer to it. PROTOCOL.md defines the rule for sidecars;
    it is also applied to temporary files.

    Examples
    --------
    >>> is_abandoned(9 * DAY_MS, 10 * DAY_MS + 5), is_abandoned(9 * DAY_MS + 1, 11 * DAY_MS - 1)
    (True, False)
    """
    return modification_time_ms <= _midnight(now_ms) - DAY_MS


def _midnight(time_ms: int) -> int:
    return time_ms - time_ms % DAY_MS


def cutoff_checkpoints(files: Iterable[LogFile], cutoff: Version) -> list[Checkpoint]:
    """Return the complete checkpoints that are not newer than the cutoffCommit, newest first.

    Multi-part checkpoints with a missing part are left out. The existence of sidecars cannot be
    checked by names.

    Parameters
    ----------
    files
        A listing of the log.
    cutoff
        The version of the cutoffCommit.
    """
    checkpoints = complete_checkpoints(file for file in files if file.kind.is_checkpoint)
    return [checkpoints[v] for v in sorted(checkpoints, reverse=True) if v <= cutoff]


def expired_files(files: Iterable[LogFile], checkpoint: Version) -> list[LogFile]:
    """Return the files that may be deleted, in the order of deletion.

    These are the commits, version checksums and checkpoints before the cutOffCheckpoint, and the
    compactions that begin at its version or before. The commit of its version is kept, because
    checkpoints do not contain the in-commit timestamp.

    The order leaves a readable log if deletion stops at any point: first the compactions, because
    readers may prefer them to commits; then version by version, each commit before the checkpoint
    of its version.

    Parameters
    ----------
    files
        A listing of the log.
    checkpoint
        The version of the cutOffCheckpoint.
    """
    expired = [file for file in files if _is_expired(file, checkpoint)]
    return sorted(expired, key=_deletion_order)


def _is_expired(file: LogFile, checkpoint: Version) -> bool:
    if file.kind is LogFileKind.COMPACTION:
        return file.version <= checkpoint
    return file.version < checkpoint


def _deletion_order(file: LogFile) -> tuple[int, Version, int, str]:
    if file.kind is LogFileKind.COMPACTION:
        return 0, file.version, 0, file.name
    return 1, file.version, _ORDER.index(file.kind), file.name


def expired_staged_commits(names: Iterable[str], checkpoint: Version) -> list[str]:
    """Return the staged commits whose version is not newer than the cutOffCheckpoint.

    Parameters
    ----------
    names
        The names of the files in `_staged_commits`.
    checkpoint
        The version of the cutOffCheckpoint.

    Examples
    --------
    >>> names = ["00000000000000000003.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json", "notes.txt"]
    >>> expired_staged_commits(names, 3) == names[:1], expired_staged_commits(names, 2)
    (True, [])
    """
    versions = ((name, staged_commit_version(name)) for name in names)
    return [name for name, version in versions if version is not None and version <= checkpoint]
