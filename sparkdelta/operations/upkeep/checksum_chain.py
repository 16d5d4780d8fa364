"""The version checksum of a new commit, from the newest one before it and the commits since: a few
small files, and no Spark. A file is never replaced, unless it is of another commit.

References
----------
PROTOCOL.md#version-checksum-file
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sparkdelta.base.protocol.commit_info import parse_commit_info
from sparkdelta.base.protocol.log_files import (
    LogFile,
    LogFileKind,
    Version,
    commit_name,
    listing_prefix,
    version_checksum_name,
)
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.table.checksum.version_checksum_rules import (
    VersionChecksum,
    serialize_version_checksum,
)
from sparkdelta.table.commit.checksum_step_rules import BEFORE_THE_FIRST, checksum_after
from sparkdelta.table.commit.conflict_detection import parse_commit
from sparkdelta.table.listing.line_reader import fits_on_driver
from sparkdelta.table.listing.listing import list_log_files, read_checksum
from sparkdelta.table.log.checksums import checksum_of_commit, stored_commit_info

_LOGGER = logging.getLogger(__name__)

MAX_COMMITS = 100
"""The most commits between a checksum and the next one that is derived from it: writers that commit
at the same time do not wait for each other's checksums."""


def add_checksum_of_commit(
    store: LogStore, version: Version, lines: bytes, before: VersionChecksum | None
) -> bool:
    """Write the checksum of a version that was committed just now.

    Parameters
    ----------
    lines
        The commit.
    before
        The checksum of the version before, if it is known; else it is looked for.

    Returns
    -------
    bool
        True if there is one now; False where it cannot be derived exactly.
    """
    known = before if version else BEFORE_THE_FIRST
    checksum = _step(store, known, version, lines)
    if checksum is None:
        checksum = _step(store, _looked_up(store, version), version, lines)
    if checksum is None:
        info = parse_commit_info(lines.decode("utf-8").split("\n"))
        delete_foreign_checksum(store, version, info, is_own=True)
        return False
    put_checksum(store, version, checksum, is_own=True)
    return True


def _looked_up(store: LogStore, version: Version) -> VersionChecksum | None:
    """Return the checksum of the previous version, derived from an older one if possible."""
    first = max(0, version - MAX_COMMITS)
    files = list_log_files(store, listing_prefix(first))
    commits = {f.version: f for f in files if f.kind is LogFileKind.COMMIT}
    known, start = _newest(store, files, version)
    if known is None and first == 0:
        known, start = BEFORE_THE_FIRST, -1
    between = [commits[v] for v in range(start + 1, version) if v in commits]
    if known is None or len(between) != version - start - 1 or not fits_on_driver(between):
        return None
    for file, lines in zip(between, store.read([f.name for f in between]), strict=True):
        known = _step(store, known, file.version, lines)
    return known


def _newest(
    store: LogStore, files: list[LogFile], version: Version
) -> tuple[VersionChecksum | None, Version]:
    checksums = [
        file
        for file in files
        if file.kind is LogFileKind.VERSION_CHECKSUM and file.version < version
    ]
    commits = {file.version: file for file in files if file.kind is LogFileKind.COMMIT}
    for file in reversed(checksums):
        commit = commits.get(file.version)
        checksum = None if commit is None else checksum_of_commit(store, commit)
        if checksum is not None and checksum.totals is not None:
            return checksum, file.version
    return None, -1


def _step(
    store: LogStore, before: VersionChecksum | None, version: Version, lines: bytes
) -> VersionChecksum | None:
    if before is None:
        return None
    commit = parse_commit(lines, version, with_files=True, path=store.table_root)
    return checksum_after(before, commit, table_root=store.table_root)


def put_checksum(
    store: LogStore, version: Version, checksum: VersionChecksum, *, is_own: bool = False
) -> bool:
    """Write the checksum of a version's commit, in place of one that a commit left which was taken
    back; return False if it is there already.

    Readers see one or the other. Writers that replace it at the same time write the same values.

    Parameters
    ----------
    is_own
        True if this process has just made the commit, see `_is_foreign`.
    """
    name, data = version_checksum_name(version), serialize_version_checksum(checksum)
    info = {"txnId": checksum.txn_id, "inCommitTimestamp": checksum.in_commit_timestamp}
    try:
        store.put_if_absent(name, data)
    except FileExistsError:
        stored = read_checksum(store, version)
        if stored is not None and not _is_foreign(stored, info, is_own=is_own):
            return False
        stored_info = stored_commit_info(store, commit_name(version))
        if stored_info is None or checksum.is_of_other_commit(stored_info):
            return False  # this commit was taken back, too
        store.overwrite(name, data)
    _LOGGER.info("%s: wrote %s", store.table_root, name)
    return True


def delete_foreign_checksum(
    store: LogStore, version: Version, commit_info: Mapping[str, object], *, is_own: bool = False
) -> None:
    """Delete the checksum of a version if it is of another commit than that with a commitInfo."""
    stored = read_checksum(store, version)
    if stored is not None and _is_foreign(stored, commit_info, is_own=is_own):
        store.delete([version_checksum_name(version)])


def _is_foreign(
    stored: VersionChecksum, commit_info: Mapping[str, object], *, is_own: bool
) -> bool:
    """Return True if a checksum is of another commit than that with a commitInfo.

    One without `txnId` is not of a commit that this process has just made: nobody else can have
    written a better one.
    """
    return stored.is_of_other_commit(commit_info) or (is_own and stored.txn_id is None)
