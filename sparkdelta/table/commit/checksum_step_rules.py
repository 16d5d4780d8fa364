"""Incremental version checksums: the next one from the previous one and a commit's actions.

`table.checksum.version_checksum_frames.changed_bins` implements the same rule for the totals of
commits with too many files for the driver;
`tests/table/checksum/test_version_checksum_contracts.py` compares the two.

References
----------
PROTOCOL.md#version-checksum-file-schema, PROTOCOL.md#state-validation
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile, file_key
from sparkdelta.base.protocol.file_totals import (
    DELETED_BOUNDARIES,
    SIZE_BOUNDARIES,
    FileBin,
    FileTotals,
)
from sparkdelta.base.protocol.table_properties import has_in_commit_timestamp, in_commit_timestamps
from sparkdelta.base.protocol.wire_values import wire_form
from sparkdelta.table.checksum.version_checksum_rules import (
    FILE_PRESERVING_OPERATIONS,
    MAX_FILES,
    VersionChecksum,
    WireAction,
    latest_by_key,
)
from sparkdelta.table.commit.conflict_rules import WinningCommit

BEFORE_THE_FIRST = VersionChecksum(transactions=(), domain_metadata=(), all_files=()).with_totals(
    FileTotals.of((), SIZE_BOUNDARIES)
)
"""The checksum of an empty log, before version 0."""


def checksum_after(
    before: VersionChecksum, commit: WinningCommit, *, table_root: str
) -> VersionChecksum | None:
    """Return the checksum of a commit's version, or None if it cannot be derived exactly.

    Parameters
    ----------
    before
        The checksum of the previous version.
    commit
        The commit with all its file actions.
    """
    protocol, metadata = commit.protocol or before.protocol, commit.metadata or before.metadata
    files: tuple[AddFile | RemoveFile, ...] = (*commit.adds, *commit.removes)
    is_derivable = not files or commit.commit_info.get("operation") in FILE_PRESERVING_OPERATIONS
    totals = before.totals
    if protocol is None or metadata is None or totals is None or not is_derivable:
        return None
    boundaries = totals.sizes.boundaries
    after = totals.plus(FileTotals.of((_bin(file, boundaries) for file in files), boundaries))
    if after is None or not _is_plain(files, table_root):
        return None
    in_commit = in_commit_timestamps(protocol, metadata.configuration)
    has_timestamp = has_in_commit_timestamp(in_commit, commit.version)
    timestamp = commit.commit_info.get("inCommitTimestamp")
    if has_timestamp and not isinstance(timestamp, int):
        return None
    txn_id = commit.commit_info.get("txnId")
    checksum = VersionChecksum(
        protocol=protocol,
        metadata=metadata,
        in_commit_timestamp=(timestamp if has_timestamp and isinstance(timestamp, int) else None),
        txn_id=txn_id if isinstance(txn_id, str) else None,
    )
    transactions, domains = map(wire_form, commit.transactions), map(wire_form, commit.domains)
    return checksum.with_totals(after).with_actions(
        transactions=latest_by_key(before.transactions, transactions, key="appId"),
        domain_metadata=latest_by_key(before.domain_metadata, domains, key="domain"),
        all_files=(
            _files_after(before.all_files, commit, table_root)
            if before.all_files is not None and after.num_files <= MAX_FILES
            else None
        ),
    )


def _bin(file: AddFile | RemoveFile, boundaries: Sequence[int]) -> FileBin:
    vector, size = file.deletion_vector, file.size or 0
    sign = 1 if isinstance(file, AddFile) else -1
    deleted = 0 if vector is None else vector.cardinality
    return FileBin(
        size_bin=bisect_right(boundaries, size) - 1,
        deleted_bin=bisect_right(DELETED_BOUNDARIES, deleted) - 1,
        files=sign,
        size_bytes=sign * size,
        deletion_vectors=0 if vector is None else sign,
        deleted_records=sign * deleted,
    )


def _is_plain(files: Iterable[AddFile | RemoveFile], table_root: str) -> bool:
    """Return True if every action has a size and no path has contradictory actions.

    A path may have one action, or one remove and one add with different deletion vectors.
    """
    actions_by_path = defaultdict(list)
    for file in files:
        path, vector = file_key(file, table_root)
        actions_by_path[path].append((vector, isinstance(file, AddFile)))
        if file.size is None:
            return False
    return all(
        len(actions) == 1
        or (len(actions) == 2 and actions[0][0] != actions[1][0] and actions[0][1] != actions[1][1])
        for actions in actions_by_path.values()
    )


def _files_after(
    before: Sequence[WireAction], commit: WinningCommit, table_root: str
) -> list[WireAction]:
    removed = {file_key(remove, table_root)[0] for remove in commit.removes}
    kept = [
        file for file in before if file_key(AddFile.from_dict(file), table_root)[0] not in removed
    ]
    return kept + [wire_form(replace(add, data_change=False)) for add in commit.adds]
