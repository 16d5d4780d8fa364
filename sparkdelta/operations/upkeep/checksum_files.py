"""Version checksum files: a file is never replaced, unless it is of another commit.

References
----------
PROTOCOL.md#version-checksum-file
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sparkdelta.base.protocol.log_files import Version, commit_name, version_checksum_name
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.table.checksum.version_checksum_rules import (
    VersionChecksum,
    serialize_version_checksum,
)
from sparkdelta.table.listing.listing import read_checksum
from sparkdelta.table.log.checksums import stored_commit_info

_LOGGER = logging.getLogger(__name__)


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
    """True if a checksum is of another commit than that with a commitInfo.

    One without `txnId` is not of a commit that this process has just made: nobody else can have
    written a better one.
    """
    return stored.is_of_other_commit(commit_info) or (is_own and stored.txn_id is None)
