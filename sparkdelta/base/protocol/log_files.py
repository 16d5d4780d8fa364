"""The names of the files in `_delta_log`.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#checkpoint-naming-scheme,
PROTOCOL.md#log-compaction-files, PROTOCOL.md#version-checksum-file-schema,
PROTOCOL.md#terminology-commits, PROTOCOL.md#sidecar-file-information
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

Version: TypeAlias = int
"""A version of a table, starting with 0."""

LOG_DIRECTORY = "_delta_log"
SIDECAR_DIRECTORY = "_sidecars"
STAGED_COMMIT_DIRECTORY = "_staged_commits"
LAST_CHECKPOINT = "_last_checkpoint"
_STAGING = ".sparkdelta-"
_DATA = "data-"
_STAGED_DATA = "_sparkdelta-"

MAX_VERSION = 2**63 - 1
"""The last version that a table can have: LONG in the log, and files of later ones are ignored."""


class LogFileKind(Enum):
    """The kind of a log file."""

    COMMIT = "commit"
    CLASSIC_CHECKPOINT = "classic checkpoint"
    MULTI_PART_CHECKPOINT = "multi-part checkpoint"
    UUID_CHECKPOINT = "UUID-named checkpoint"
    COMPACTION = "log compaction"
    VERSION_CHECKSUM = "version checksum"

    @property
    def is_checkpoint(self) -> bool:
        """True if the file is a checkpoint or a part of one."""
        return self in _CHECKPOINTS


_CHECKPOINTS = (
    LogFileKind.CLASSIC_CHECKPOINT,
    LogFileKind.MULTI_PART_CHECKPOINT,
    LogFileKind.UUID_CHECKPOINT,
)


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file, described by its name and listing entry.

    Attributes
    ----------
    version
        The version of the commit, checkpoint or checksum; the first version of a compaction.
    size_bytes, modification_time_ms
        As listed; 0 if not known. The time is in milliseconds since the epoch.
    is_empty
        True if the file is listed with a size of 0 bytes, as a crash can leave it in a store
        without atomic writes. Spark skips such a file without an error.
    end_version
        The last version of a compaction, else None.
    part, num_parts
        The number of a part, from 1, and the number of parts of a multi-part checkpoint, else None.
    uuid
        The UUID of a UUID-named checkpoint, else None.
    extension
        ``json``, ``parquet`` or ``crc``.
    """

    name: str
    kind: LogFileKind
    version: Version
    size_bytes: int = 0
    modification_time_ms: int = 0
    is_empty: bool = False
    end_version: Version | None = None
    part: int | None = None
    num_parts: int | None = None
    uuid: str | None = None
    extension: str = "json"

    @property
    def last_version(self) -> Version:
        """The last version that the file covers."""
        return self.version if self.end_version is None else self.end_version


_VERSION = r"(?P<version>[0-9]{20})"
_UUID = r"(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
_NAMES = {
    LogFileKind.COMMIT: rf"{_VERSION}\.(?P<extension>json)",
    LogFileKind.VERSION_CHECKSUM: rf"{_VERSION}\.(?P<extension>crc)",
    LogFileKind.CLASSIC_CHECKPOINT: rf"{_VERSION}\.checkpoint\.(?P<extension>parquet)",
    LogFileKind.MULTI_PART_CHECKPOINT: (
        rf"{_VERSION}\.checkpoint\.(?P<part>[0-9]{{10}})\.(?P<num_parts>[0-9]{{10}})"
        r"\.(?P<extension>parquet)"
    ),
    LogFileKind.UUID_CHECKPOINT: rf"{_VERSION}\.checkpoint\.{_UUID}\.(?P<extension>json|parquet)",
    LogFileKind.COMPACTION: (
        rf"{_VERSION}\.(?P<end_version>[0-9]{{20}})\.compacted\.(?P<extension>json)"
    ),
}
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _NAMES.items())


def parse_log_file(
    name: str, *, size_bytes: int | None = None, modification_time_ms: int = 0
) -> LogFile | None:
    """Parse the name of a log file; None for any other file, which is not an error.

    The name of a staged commit begins with its directory; only the catalog knows whether a staged
    commit is part of the log.
    """
    directory, _, file = name.rpartition("/")
    version = staged_commit_version(file) if directory == STAGED_COMMIT_DIRECTORY else None
    if version is not None:
        is_empty = size_bytes == 0
        kind = LogFileKind.COMMIT
        return LogFile(name, kind, version, size_bytes or 0, modification_time_ms, is_empty)
    matches = ((kind, pattern.fullmatch(name)) for kind, pattern in _PATTERNS)
    found = next(((kind, match) for kind, match in matches if match is not None), None)
    if found is None:
        return None
    kind, match = found
    groups = match.groupdict()
    numbers = {
        key: int(groups[key])
        for key in ("version", "end_version", "part", "num_parts")
        if key in groups
    }
    if not _is_possible(kind, **numbers):
        return None
    return LogFile(
        name=name,
        kind=kind,
        version=numbers["version"],
        size_bytes=size_bytes or 0,
        is_empty=size_bytes == 0,
        modification_time_ms=modification_time_ms,
        end_version=numbers.get("end_version"),
        part=numbers.get("part"),
        num_parts=numbers.get("num_parts"),
        uuid=groups.get("uuid"),
        extension=groups["extension"],
    )


def staged_commit_version(name: str) -> Version | None:
    """Return the version of a staged commit by its file name; None for any other file."""
    match = re.fullmatch(rf"{_VERSION}\.{_UUID}\.json", name)
    return None if match is None else int(match["version"])


def _is_possible(
    kind: LogFileKind, version: int, end_version: int = 0, part: int = 1, num_parts: int = 1
) -> bool:
    if max(version, end_version) > MAX_VERSION or not 1 <= part <= num_parts:
        return False
    return kind is not LogFileKind.COMPACTION or version < end_version


def commit_name(version: Version) -> str:
    """Return the name of a commit file."""
    return f"{version:020d}.json"


def classic_checkpoint_name(version: Version) -> str:
    """Return the name of a classic checkpoint."""
    return f"{version:020d}.checkpoint.parquet"


def version_checksum_name(version: Version) -> str:
    """Return the name of a version checksum."""
    return f"{version:020d}.crc"


def compaction_name(start: Version, end: Version) -> str:
    """Return the name of the log compaction of the commits from `start` to `end`."""
    return f"{start:020d}.{end:020d}.compacted.json"


def sidecar_name(path: str) -> str:
    """Return the name of a sidecar in the log, given its `path`, which has no directory."""
    return f"{SIDECAR_DIRECTORY}/{path}"


def staging_directory(uuid: str) -> str:
    """Return the name of a directory in `_delta_log` where log files are prepared.

    Engines and Spark's listings ignore names that begin with a dot.
    """
    name = f"{_STAGING}{uuid}"
    assert is_staging_directory(name)
    return name


def is_staging_directory(name: str) -> bool:
    """Return True for names from `staging_directory`; they may be deleted with their content."""
    return re.fullmatch(re.escape(_STAGING) + _UUID, name) is not None


def data_directory(uuid: str) -> str:
    """Return the name of a directory, below the table's root, that keeps the new files of one
    write where they cannot be moved.
    """
    name = f"{_DATA}{uuid}"
    assert is_write_directory(name)
    return name


def staged_data_directory(uuid: str) -> str:
    """Return the name of a directory, below the table's root, for the new files of one write until
    they are moved.

    Readers of Parquet files and VACUUM of other engines ignore names that begin with ``_``.
    """
    name = f"{_STAGED_DATA}{uuid}"
    assert is_write_directory(name)
    return name


WRITE_DIRECTORY = (
    rf"(?:{_DATA}|{_STAGED_DATA})[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}"
)
"""Regular expression of `data_directory` and `staged_data_directory`, for any write."""


def is_write_directory(name: str) -> bool:
    """Return True for names from `data_directory` and `staged_data_directory`, for any write."""
    return re.fullmatch(WRITE_DIRECTORY, name) is not None


def is_temporary_file(name: str) -> bool:
    """Return True for temporary files of a store, written before the final log file."""
    return re.fullmatch(re.escape(_STAGING) + _UUID + r"\.tmp", name) is not None


def listing_prefix(version: Version) -> str:
    """Return the prefix at which a listing in name order starts with the files of `version`."""
    return f"{version:020d}"
