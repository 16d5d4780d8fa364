"""The log segment: the log files from which one version of a table is reconstructed.

References
----------
PROTOCOL.md#checkpoints, PROTOCOL.md#log-compaction-files, PROTOCOL.md#action-reconciliation,
PROTOCOL.md#delta-log-entries, PROTOCOL.md#delta-log-entries-1, PROTOCOL.md#metadata-cleanup
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sparkdelta.base.protocol.log_files import LogFile, LogFileKind, Version
from sparkdelta.exceptions import (
    DeltaError,
    MalformedLogFileError,
    TableNotFoundError,
    TruncatedTransactionLogError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)

# In ascending order, for versions with several checkpoints: parts may be of different attempts, a
# classic checkpoint is one file but may be overwritten, a UUID-named one is never overwritten.
_PREFERENCE = (
    LogFileKind.MULTI_PART_CHECKPOINT,
    LogFileKind.CLASSIC_CHECKPOINT,
    LogFileKind.UUID_CHECKPOINT,
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint.

    Invariants: there is at least one file; all files are checkpoint files of one version and one
    kind; there is either one file or the parts 1 to n of n, in this order.
    """

    version: Version
    files: tuple[LogFile, ...]

    def __post_init__(self) -> None:
        kinds = {file.kind for file in self.files}
        _require("a checkpoint has files of one kind", len(kinds) == 1 and self.kind.is_checkpoint)
        _require("and of one version", {file.version for file in self.files} == {self.version})
        count = len(self.files)
        if self.kind is LogFileKind.MULTI_PART_CHECKPOINT:
            places = [(file.part, file.num_parts) for file in self.files]
            _require("and all of its parts", places == [(n, count) for n in range(1, count + 1)])
        else:
            _require("and one file", count == 1)

    @property
    def kind(self) -> LogFileKind:
        """The kind of its files, which is its naming scheme."""
        return self.files[0].kind

    @property
    def is_json(self) -> bool:
        """True if it is a UUID-named checkpoint in JSON; all others are Parquet."""
        return self.files[0].extension == "json"


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The files from which one version of a table is reconstructed.

    Invariants
    ----------
    - `checkpoint`, if any, is not newer than `version`.
    - `deltas` are commits and compactions in replay order. They cover each version after the
      checkpoint's (from 0 without a checkpoint) up to `version` exactly once.
    - There is a checkpoint or a delta.
    - `commits` are the listed commits up to `version`, in order, one per version. They include all
      commits of `deltas`; timestamps and history come from them, never from a compaction.
    - `version_checksum`, if any, has exactly `version`.
    """

    version: Version
    checkpoint: Checkpoint | None
    deltas: tuple[LogFile, ...]
    commits: tuple[LogFile, ...] = ()
    version_checksum: LogFile | None = None

    def __post_init__(self) -> None:
        _require("a segment has files", self.checkpoint is not None or bool(self.deltas))
        covered = -1 if self.checkpoint is None else self.checkpoint.version
        _require("the checkpoint is not newer than the segment", covered <= self.version)
        for file in self.deltas:
            _require(f"{file.name} is a commit or compaction", file.kind in _DELTAS)
            _require(f"{file.name} follows version {covered}", file.version == covered + 1)
            covered = file.last_version
        _require(f"the files end with version {self.version}", covered == self.version)
        self._require_commits()
        crc = self.version_checksum
        _require(
            "the version checksum is of the segment's version",
            crc is None or (crc.kind is LogFileKind.VERSION_CHECKSUM and crc.version == covered),
        )

    def __repr__(self) -> str:
        checkpoint = self.checkpoint
        shown = [f"version={self.version}"]
        if checkpoint is not None:
            files = [file.name for file in checkpoint.files[:1]]
            more = len(checkpoint.files) - len(files)
            shown.append(f"checkpoint={files[0]}" + (f" and {more} more parts" if more else ""))
        shown.append(f"deltas={_shown_files(self.deltas)}")
        shown.append(f"commits={_shown_files(self.commits)}")
        if self.version_checksum is not None:
            shown.append(f"version_checksum={self.version_checksum.name}")
        return f"LogSegment({', '.join(shown)})"

    def _require_commits(self) -> None:
        _require("commits only", all(file.kind is LogFileKind.COMMIT for file in self.commits))
        versions = [file.version for file in self.commits]
        in_order = all(a < b for a, b in pairwise(versions))
        _require("commits are in order, one per version", in_order)
        _require("no commit is newer", not versions or versions[-1] <= self.version)
        replayed = {file.name for file in self.deltas if file.kind is LogFileKind.COMMIT}
        listed = {file.name for file in self.commits}
        _require("commits has all commits of deltas", replayed <= listed)


def _shown_files(files: Sequence[LogFile]) -> str:
    """Return the number of files and the versions that they cover."""
    if not files:
        return "none"
    first, last = files[0].version, files[-1].last_version
    versions = f"version {first}" if first == last else f"versions {first} to {last}"
    return f"{len(files)} ({versions})"


_DELTAS = (LogFileKind.COMMIT, LogFileKind.COMPACTION)


def _require(invariant: str, holds: bool) -> None:  # noqa: FBT001 - the condition
    if not holds:
        raise ValueError(f"not a log segment: {invariant}")


def select_log_segment(
    files: Iterable[LogFile],
    *,
    path: str,
    version: Version | None = None,
    without: Collection[str] = (),
) -> LogSegment:
    """Select the segment of a version, the latest by default, with as few files as possible.

    Parameters
    ----------
    files
        A listing of the log, in any order.
    path
        The path of the table, for error messages.
    without
        Names of checkpoint files, compactions and version checksums that must not be used because
        they are corrupt or are about to be verified. Empty files are never used.
    """
    listing = _Listing.of(files, without=set(without))
    latest = listing.latest(path, version)
    end = latest if version is None else version
    earliest = listing.earliest()
    if earliest is None:
        raise TruncatedTransactionLogError(path=path, version=end)
    if not earliest <= end <= latest:
        raise VersionNotFoundError(version=end, earliest=earliest, latest=latest, path=path)
    checkpoint = listing.newest_checkpoint(end)
    start = 0 if checkpoint is None else checkpoint.version + 1
    deltas = _fewest_files(listing.commits, listing.compactions, start, end)
    if deltas is None:
        raise _gap(sorted(v for v in listing.commits if v >= start), start, end, path)
    refuse_empty(deltas, path=path)
    commits = sorted(v for v in listing.commits if v <= end)
    return LogSegment(
        version=end,
        checkpoint=checkpoint,
        deltas=deltas,
        commits=tuple(listing.commits[v] for v in commits),
        version_checksum=listing.checksums.get(end),
    )


def extend_log_segment(segment: LogSegment, files: Iterable[LogFile], *, path: str) -> LogSegment:
    """Extend a segment by newer commits, keeping its checkpoint.

    The deltas of the result begin with the segment's. `files` are a listing that includes all files
    after the segment's version; without a newer commit, the segment itself is returned.
    """
    listing = _Listing.of((file for file in files if file.version > segment.version), without=())
    if not listing.commits:
        return segment
    start, latest = segment.version + 1, max(listing.commits)
    new = _fewest_files(listing.commits, (), start, latest)
    if new is None:
        raise _gap(sorted(listing.commits), start, latest, path)
    refuse_empty(new, path=path)
    return replace(
        segment,
        version=latest,
        deltas=segment.deltas + new,
        commits=segment.commits + new,
        version_checksum=listing.checksums.get(latest),
    )


def refuse_empty(commits: Iterable[LogFile], *, path: str) -> None:
    """Refuse empty commit files; each has at least a commitInfo."""
    for file in commits:
        if file.is_empty:
            problem = f"{file.name} has no bytes"
            raise MalformedLogFileError(path=path, version=file.version, problem=problem)


def readable_commits(files: Iterable[LogFile], *, path: str) -> list[LogFile]:
    """Return the commits, in order and without gaps, from the earliest readable version.

    A cleanup in progress may have deleted later commits than some that are still there.
    """
    listing = _Listing.of(files, without=())
    latest = listing.latest(path, None)
    if not listing.commits:
        return []
    first = last = max(listing.commits)
    while first - 1 in listing.commits:
        first -= 1
    checkpoint = listing.newest_checkpoint(first)
    start = 0 if checkpoint is None else checkpoint.version + 1
    if start <= first and _fewest_files(listing.commits, listing.compactions, start, first) is None:
        later = [version for version in listing.checkpoints if version > first]
        if not later:
            raise TruncatedTransactionLogError(path=path, version=latest)
        first = min(later)
    return [listing.commits[version] for version in range(first, last + 1)]


def commits_between(
    files: Iterable[LogFile], start: Version, end: Version, *, path: str
) -> list[LogFile]:
    """Return the commits of all versions from `start` to `end`, in order."""
    commits = {f.version: f for f in files if f.kind is LogFileKind.COMMIT}
    present = [commits[version] for version in range(start, end + 1) if version in commits]
    if len(present) != end - start + 1:
        raise _gap([file.version for file in present], start, end, path)
    return present


def missing_commits(files: Iterable[LogFile]) -> list[tuple[Version, Version]]:
    """Return the gaps among the commits, as the first and last missing version of each.

    A log should have all commits from version 0, or from the version after its oldest complete
    checkpoint, to the latest. Older commits that metadata cleanup left behind are ignored.
    """
    listing = _Listing.of(files, without=())
    start = 0 if 0 in listing.commits else min(listing.checkpoints, default=-1) + 1
    commits = [start - 1, *sorted(v for v in listing.commits if v >= start)]
    latest = max((v for v in listing.checkpoints if v > commits[-1]), default=commits[-1])
    gaps = [(a + 1, b - 1) for a, b in pairwise([*commits, latest + 1])]
    return [gap for gap in gaps if gap[0] <= gap[1]]


@dataclass(frozen=True, slots=True)
class _Listing:
    commits: Mapping[Version, LogFile]
    compactions: Sequence[LogFile]
    checkpoints: Mapping[Version, Checkpoint]
    checkpoint_files: Sequence[LogFile]
    checksums: Mapping[Version, LogFile]
    left_out: bool

    @classmethod
    def of(cls, files: Iterable[LogFile], *, without: Collection[str]) -> _Listing:
        commits, checksums = {}, {}
        compactions, checkpoint_files = [], []
        left_out = False
        for file in files:
            if file.kind is LogFileKind.COMMIT:
                commits[file.version] = file
            elif file.kind is LogFileKind.VERSION_CHECKSUM:
                if file.name not in without:
                    checksums[file.version] = file
            elif file.name in without or file.is_empty:
                left_out = True
            elif file.kind is LogFileKind.COMPACTION:
                compactions.append(file)
            else:
                checkpoint_files.append(file)
        return cls(
            commits=commits,
            compactions=compactions,
            checkpoints=complete_checkpoints(checkpoint_files),
            checkpoint_files=checkpoint_files,
            checksums=checksums,
            left_out=left_out,
        )

    def latest(self, path: str, version: Version | None) -> Version:
        versions = [*self.commits, *self.checkpoints]
        if versions:
            return max(versions)
        if self.checkpoint_files:
            raise DeltaError.of(
                "DELTA_MISSING_PART_FILES",
                version=max(file.version for file in self.checkpoint_files),
            )
        if self.compactions or self.left_out:
            raise TruncatedTransactionLogError(path=path, version=version or 0)
        raise TableNotFoundError(path=path)

    def earliest(self) -> Version | None:
        """Return the first version that can be reconstructed if no later commit is missing."""
        if 0 in self.commits:
            return 0
        ends = (file.last_version for file in self.compactions if file.version == 0)
        return min([*self.checkpoints, *ends], default=None)

    def newest_checkpoint(self, version: Version) -> Checkpoint | None:
        newest = max((v for v in self.checkpoints if v <= version), default=None)
        return None if newest is None else self.checkpoints[newest]


def complete_checkpoints(files: Iterable[LogFile]) -> dict[Version, Checkpoint]:
    """Return the preferred checkpoint of each version that has a complete one.

    `files` are checkpoint files, in any order; empty files count as missing.
    """
    candidates: dict[tuple[Version, str | int | None], list[LogFile]] = {}
    for file in files:
        if file.is_empty:
            continue
        # Parts of one attempt have the same number of parts; any other checkpoint is a single file.
        candidates.setdefault((file.version, file.num_parts or file.name), []).append(file)
    checkpoints: dict[Version, Checkpoint] = {}
    for group in candidates.values():
        if len(group) != (group[0].num_parts or 1):
            continue
        parts = sorted(group, key=lambda file: file.part or 0)
        candidate = Checkpoint(version=group[0].version, files=tuple(parts))
        other = checkpoints.get(candidate.version)
        if other is None or _preference(other) < _preference(candidate):
            checkpoints[candidate.version] = candidate
    return checkpoints


def _preference(checkpoint: Checkpoint) -> tuple[int, int, str]:
    # The number of parts and the name make the choice independent of the order of the listing.
    return _PREFERENCE.index(checkpoint.kind), len(checkpoint.files), checkpoint.files[0].name


def _fewest_files(
    commits: Mapping[Version, LogFile], compactions: Iterable[LogFile], start: Version, end: Version
) -> tuple[LogFile, ...] | None:
    """Return the shortest sequence of files that covers the versions from start to end, or None."""
    starting: dict[Version, list[LogFile]] = {}
    for file in compactions:
        if start <= file.version and file.last_version <= end:
            starting.setdefault(file.version, []).append(file)
    if not starting:
        only_commits = tuple(commits[v] for v in range(start, end + 1) if v in commits)
        return only_commits if len(only_commits) == end - start + 1 else None
    count: dict[Version, int] = {end + 1: 0}
    choice: dict[Version, LogFile] = {}
    for v in range(end, start - 1, -1):
        options = starting.get(v, []) + ([commits[v]] if v in commits else [])
        usable = [file for file in options if file.last_version + 1 in count]
        if usable:
            # Of equally short sequences, prefer the one whose first file covers the most versions.
            best = min(usable, key=lambda f: (count[f.last_version + 1], -f.last_version))
            choice[v], count[v] = best, count[best.last_version + 1] + 1
    if start <= end and start not in choice:
        return None
    sequence: list[LogFile] = []
    while start <= end:
        sequence.append(choice[start])
        start = choice[start].last_version + 1
    return tuple(sequence)


def _gap(
    versions: list[Version], start: Version, end: Version, path: str
) -> VersionsNotContiguousError:
    listed = set(versions)
    first_missing = next(v for v in range(start, end + 1) if v not in listed)
    after = [v for v in versions if v > first_missing]
    return VersionsNotContiguousError(
        versions=versions,
        start=first_missing - 1,
        end=after[0] if after else end,
        version_to_load=end,
        path=path,
    )
