"""Which files of the log may be deleted: everything that no version within retention needs.

References
----------
PROTOCOL.md#metadata-cleanup
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkdelta.protocol.log_files import LogFile, LogFileKind, Version, staged_commit_version
from sparkdelta.protocol.log_segment import Checkpoint, complete_checkpoints

DAY_MS = 24 * 60 * 60 * 1000

_ORDER = (
    LogFileKind.COMMIT,
    LogFileKind.VERSION_CHECKSUM,
    LogFileKind.CLASSIC_CHECKPOINT,
    LogFileKind.MULTI_PART_CHECKPOINT,
    LogFileKind.UUID_CHECKPOINT,
)


def cutoff_time(now_ms: int, retention_ms: int) -> int:
    """The cutOffTimestamp: midnight UTC of the day before which nothing need be kept.

    Examples
    --------
    >>> cutoff_time(10 * DAY_MS + 5, 2 * DAY_MS) == 8 * DAY_MS
    True
    """
    return _midnight(now_ms - retention_ms)


def is_abandoned(modification_time_ms: int, now_ms: int) -> bool:
    """Whether nothing in progress can still be about to name a file: at midnight UTC it was a day
    old. So it is for sidecars, and here for files that got no name in the log.

    Examples
    --------
    >>> is_abandoned(9 * DAY_MS, 10 * DAY_MS + 5), is_abandoned(9 * DAY_MS + 1, 11 * DAY_MS - 1)
    (True, False)
    """
    return modification_time_ms <= _midnight(now_ms) - DAY_MS


def _midnight(moment_ms: int) -> int:
    return moment_ms - moment_ms % DAY_MS


def cutoff_checkpoints(files: Iterable[LogFile], cutoff: Version) -> list[Checkpoint]:
    """The complete checkpoints not newer than the cutoffCommit, the newest first.

    A multi-part checkpoint with a part missing is none. Whether the sidecars of one are there, its
    name does not tell.

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
    """What may be deleted given the version of the cutOffCheckpoint, in the order of deletion.

    Commits, version checksums and checkpoints before it; compactions that begin with it or before.
    The commit of its own version stays: no checkpoint holds the in-commit timestamp.

    Wherever deletion stops, what is left is a log: compactions go first, since a reader may prefer
    them to commits that are still there; then version by version, each commit before the
    checkpoint that could stand in for it.
    """
    expired = [file for file in files if _is_expired(file, checkpoint)]
    return sorted(expired, key=_place)


def _is_expired(file: LogFile, checkpoint: Version) -> bool:
    if file.kind is LogFileKind.COMPACTION:
        return file.version <= checkpoint
    return file.version < checkpoint


def _place(file: LogFile) -> tuple[int, Version, int, str]:
    if file.kind is LogFileKind.COMPACTION:
        return 0, file.version, 0, file.name
    return 1, file.version, _ORDER.index(file.kind), file.name


def expired_staged_commits(names: Iterable[str], checkpoint: Version) -> list[str]:
    """Those of the files in `_staged_commits` whose version is not above the cutOffCheckpoint's.

    Examples
    --------
    >>> names = ["00000000000000000003.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json", "notes.txt"]
    >>> expired_staged_commits(names, 3) == names[:1], expired_staged_commits(names, 2)
    (True, [])

    References
    ----------
    PROTOCOL.md#metadata-cleanup, PROTOCOL.md#commit-protocol
    """
    versions = ((name, staged_commit_version(name)) for name in names)
    return [name for name, version in versions if version is not None and version <= checkpoint]
