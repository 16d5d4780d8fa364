"""Version checksums, and the check that they belong to the commits in the log.

A commit is sometimes taken back by hand, and its version checksum left behind. The next commit of
that version has another `txnId`.

References
----------
PROTOCOL.md#version-checksum-file
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sparkdelta.base.protocol.commit_info import parse_commit_info
from sparkdelta.base.protocol.log_files import LogFile, Version, version_checksum_name
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.table.checksum.version_checksum_rules import VersionChecksum
from sparkdelta.table.listing.line_reader import DRIVER_LOG_BYTES
from sparkdelta.table.listing.listing import read_checksum
from sparkdelta.table.listing.log_segment_rules import LogSegment
from sparkdelta.table.log.commit_range import CommitRange

_LOGGER = logging.getLogger(__name__)

_START_BYTES = 1 << 16


def checksum_of_segment(
    store: LogStore, segment: LogSegment, commits: CommitRange
) -> VersionChecksum | None:
    """Read the checksum of a segment's version; None if it is not valid for the commit."""
    if segment.version_checksum is None:
        return None
    info = commits.commit_info_of(segment.version)
    if info is None:
        return stored_checksum(store, segment)
    checksum = read_checksum(store, segment.version)
    return _unless_foreign(store, segment.version, checksum, info)


def stored_checksum(store: LogStore, segment: LogSegment) -> VersionChecksum | None:
    """Read the checksum of a segment's version without the lines of the commits.

    A checksum that the segment leaves out is read, too.
    """
    commit = segment.commits[-1] if segment.commits else None
    if commit is None or commit.version != segment.version:
        return read_checksum(store, segment.version)
    return checksum_of_commit(store, commit)


def checksum_of_commit(store: LogStore, commit: LogFile) -> VersionChecksum | None:
    """Read the checksum of a commit's version; None if it is not valid for the commit."""
    checksum = read_checksum(store, commit.version)
    if checksum is None:
        return None
    info = stored_commit_info(store, commit.name)
    return checksum if info is None else _unless_foreign(store, commit.version, checksum, info)


def stored_commit_info(store: LogStore, commit_file: str) -> Mapping[str, object] | None:
    """Read the commitInfo of a commit file, empty if it has none.

    None if the file is gone, or so large that only its start was searched.
    """
    for size in (_START_BYTES, DRIVER_LOG_BYTES):
        try:
            start = store.read_start(commit_file, size)
        except FileNotFoundError:
            return None
        info = parse_commit_info(start.decode("utf-8", "replace").split("\n"))
        if info or len(start) < size:
            return info
    return None


def _unless_foreign(
    store: LogStore,
    version: Version,
    checksum: VersionChecksum | None,
    info: Mapping[str, object],
) -> VersionChecksum | None:
    if checksum is None or not checksum.is_of_other_commit(info):
        return checksum
    _LOGGER.warning(
        "%s: ignored %s, which is of a commit that was taken back",
        store.table_root,
        version_checksum_name(version),
    )
    return None
