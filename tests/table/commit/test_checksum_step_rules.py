"""Version checksums from the one before and a commit, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from sparkdelta.base.protocol.actions import (
    DomainMetadata,
    Metadata,
    Protocol,
    TransactionIdentifier,
)
from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile
from sparkdelta.base.protocol.file_totals import SIZE_BOUNDARIES
from sparkdelta.base.protocol.wire_values import wire_form
from sparkdelta.table.checksum.version_checksum_rules import MAX_FILES, VersionChecksum
from sparkdelta.table.commit.checksum_step_rules import BEFORE_THE_FIRST, checksum_after
from sparkdelta.table.commit.conflict_rules import WinningCommit

PROTOCOL = Protocol(3, 7, ("deletionVectors",), ("deletionVectors", "domainMetadata"))
INFO: Mapping[str, object] = {"operation": "WRITE", "txnId": "t"}


def add(name: str, size: int = 10, vector: DeletionVectorDescriptor | None = None) -> AddFile:
    return AddFile(name, {}, size, 1, True, deletion_vector=vector)


def remove(file: AddFile, size: int | None = -1) -> RemoveFile:
    size = file.size if size == -1 else size
    return RemoveFile(file.path, 1, True, size=size, deletion_vector=file.deletion_vector)


def vector(name: str, cardinality: int = 1) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor("u", name, 1, cardinality, 1)


def create(**what: object) -> WinningCommit:
    metadata = Metadata("id", schema_string="{}")
    return WinningCommit(0, PROTOCOL, metadata, commit_info=INFO, **what)  # type: ignore[arg-type]


def after(before: VersionChecksum | None, commit: WinningCommit) -> VersionChecksum | None:
    assert before is not None
    return checksum_after(before, commit, table_root="file:/t")


def changed(version: int = 1, **what: object) -> WinningCommit:
    return WinningCommit(version, **{"commit_info": INFO, **what})  # type: ignore[arg-type]


def test_a_history_of_everything() -> None:
    """PROTOCOL.md#version-checksum-file-schema: as if all live files were counted."""
    random, live = Random(3), dict[str, AddFile]()
    checksum = after(BEFORE_THE_FIRST, create())
    for version in range(1, 60):
        gone = random.sample(sorted(live), k=min(len(live), random.randint(0, 3)))
        marked = [path for path in gone if random.random() < 0.5]
        size = random.choice([0, *SIZE_BOUNDARIES, 5])
        new = [add(f"f{version}-{n}", size) for n in range(random.randint(0, 4))]
        new += [replace(live[p], deletion_vector=vector(f"{version}", version)) for p in marked]
        removes = tuple(remove(live.pop(path)) for path in gone)
        live |= {file.path: file for file in new}
        checksum = after(checksum, changed(version, adds=tuple(new), removes=removes))
        assert checksum is not None
        assert checksum.num_files == len(live)
        assert checksum.table_size_bytes == sum(f.size for f in live.values())
        vectors = [f.deletion_vector for f in live.values() if f.deletion_vector]
        assert checksum.num_deletion_vectors == len(vectors)
        assert checksum.num_deleted_records == sum(v.cardinality for v in vectors)
        if checksum.all_files is not None:
            wanted = [wire_form(replace(f, data_change=False)) for f in live.values()]
            assert list(checksum.all_files) == sorted(wanted, key=lambda f: f["path"])
        assert (checksum.all_files is None) or len(live) <= MAX_FILES


def test_transactions_and_domains() -> None:
    first = after(
        BEFORE_THE_FIRST,
        create(
            transactions=(TransactionIdentifier("a", 1),),
            domains=(DomainMetadata("d", "1"), DomainMetadata("e", "1")),
        ),
    )
    second = after(
        first,
        changed(
            transactions=(TransactionIdentifier("a", 2), TransactionIdentifier("b", 1)),
            domains=(DomainMetadata("d", "", removed=True),),
        ),
    )
    assert second is not None
    assert second.txn_id == "t"
    assert [(t["appId"], t["version"]) for t in second.transactions or ()] == [("a", 2), ("b", 1)]
    assert [d["domain"] for d in second.domain_metadata or ()] == ["e"]


A = add("a")


@pytest.mark.parametrize(
    "commit",
    [
        changed(removes=(remove(A, None),)),
        changed(adds=(A, A)),
        changed(adds=(A,), removes=(remove(A),)),
        changed(adds=(add("b"),), commit_info={"operation": "RESTORE"}),
        changed(adds=(add("b"),), commit_info={}),
        changed(removes=(remove(add("b", 10**6)),)),
        changed(
            metadata=Metadata(
                "id", schema_string="{}", configuration={"delta.enableInCommitTimestamps": "true"}
            ),
            protocol=Protocol(1, 7, None, ("inCommitTimestamp",)),
        ),
    ],
    ids=["no size", "twice", "both", "operation", "no operation", "not live", "no timestamp"],
)
def test_no_checksum_follows_an_incomplete_commit(commit: WinningCommit) -> None:
    """ "State Validation": no checksum is better than one that may be wrong."""
    assert after(after(BEFORE_THE_FIRST, create(adds=(A,))), commit) is None


def test_an_incomplete_checksum_has_no_successor() -> None:
    assert after(VersionChecksum(PROTOCOL, Metadata("id"), num_files=1), changed()) is None
