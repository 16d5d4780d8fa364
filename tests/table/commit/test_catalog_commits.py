"""Commits through a catalog that ratifies them; no Spark.

PROTOCOL.md#catalog-managed-tables
"""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.log_files import (
    STAGED_COMMIT_DIRECTORY,
    classic_checkpoint_name,
    commit_name,
    compaction_name,
    version_checksum_name,
)
from sparkdelta.exceptions import CommitOutcomeUnknownError, StorageError
from sparkdelta.table.listing import catalog_log
from sparkdelta.table.listing.catalog_log import CatalogLogStore, RatifiedCommits, StagedCommit
from tests.support.commits import append, create, latest
from tests.support.errors import raises
from tests.support.memory_catalog import MemoryCatalog
from tests.support.memory_log import Crash, MemoryLog

MANAGED = Protocol(3, 7, ("catalogManaged",), ("catalogManaged", "inCommitTimestamp"))
TIMED = {"delta.enableInCommitTimestamps": "true"}


def made(**options: Any) -> tuple[MemoryLog, MemoryCatalog, CatalogLogStore]:
    """A table of one version."""
    log, catalog = MemoryLog(), MemoryCatalog(**options)
    store = CatalogLogStore(log, catalog)
    create(store, TIMED, MANAGED)
    return log, catalog, store


def added(store: CatalogLogStore) -> list[str]:
    """The files that the visible commits add, in order."""
    names = [entry.name for entry in store.list_from("0") if entry.name.endswith(".json")]
    lines = [line for data in store.read(names) for line in data.splitlines()]
    return [a["add"]["path"] for a in map(json.loads, lines) if "add" in a]


def test_a_commit_is_staged_ratified_and_published() -> None:
    log, catalog, store = made(forgets=False)
    append(store, latest(store), "a")
    assert [entry.name for entry in log.list_from("0")] == [commit_name(0), commit_name(1)]
    staged = catalog.ratified[log.table_root][1]
    assert log.files[f"{STAGED_COMMIT_DIRECTORY}/{staged.name}"] == log.files[commit_name(1)]
    assert staged.size_bytes == len(log.files[commit_name(1)])
    # A commit that the catalog stores is read from there, even once it is published.
    assert [entry.name for entry in store.list_from(commit_name(1))] == [
        f"{STAGED_COMMIT_DIRECTORY}/{staged.name}"
    ]
    catalog.published(log.table_root, 1)
    assert '"txnId"' in log.files[commit_name(1)].decode()


def test_commits_that_are_not_ratified_are_not_read() -> None:
    """Reading Catalog-managed Tables: neither staged commits, nor files of later versions."""
    log, catalog, store = made()
    append(store, latest(store), "a")
    later = (
        commit_name(2), version_checksum_name(2), classic_checkpoint_name(2), compaction_name(1, 2),
        f"{STAGED_COMMIT_DIRECTORY}/{2:020d}.0f707846-cd18-4e01-b40e-84ee0ae987b0.json",
    )  # fmt: skip
    log.files |= dict.fromkeys(later, b"{}")
    log.files[version_checksum_name(1)] = b"{}"
    assert [entry.name for entry in store.list_from()] == [
        commit_name(0), version_checksum_name(1), commit_name(1),
    ]  # fmt: skip
    with pytest.raises(FileNotFoundError):
        store.read_start(commit_name(3), 1)
    catalog.latest["memory:/other"] = 3
    for found in (RatifiedCommits(1, (StagedCommit(0, later[-1][16:], 1, 1),)), RatifiedCommits(
        1, (StagedCommit(1, f"../{commit_name(1)}", 1, 1),)
    )):  # fmt: skip
        wrong = CatalogLogStore(log, _Answering(found))
        with pytest.raises(StorageError):
            wrong.list_from()


class _Answering(MemoryCatalog):
    def __init__(self, answer: RatifiedCommits) -> None:
        super().__init__()
        self.answer = answer

    def get_commits(self, table: str) -> RatifiedCommits:
        return self.answer


def test_commits_are_published_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits that another writer could not publish are published first; large ones are left to the
    catalog.
    """
    log, catalog, store = made()
    fail = _failing("before", "published")
    other = CatalogLogStore(log, catalog.with_hook(fail))
    append(other, latest(other), "a")
    monkeypatch.setattr(catalog_log, "MAX_PUBLISHED_BYTES", 0)
    append(other, latest(other), "b")
    assert commit_name(2) not in log.files
    # No checkpoint, and no compaction, of what is not published; a checksum is allowed.
    store.put_if_absent(version_checksum_name(2), b"{}")
    log.files["stage"] = b"x"
    for name in (classic_checkpoint_name(2), compaction_name(1, 2)):
        with pytest.raises(StorageError):
            store.publish("stage", name)
    monkeypatch.undo()
    store.publish("stage", classic_checkpoint_name(2))
    assert commit_name(2) in log.files
    assert catalog.ratified[log.table_root] == {}
    assert added(store) == ["a", "b"]


def _failing(when: str, verb: str, error: type[BaseException] = OSError) -> Any:
    def hook(moment: str, called: str) -> None:
        if (moment, called) == (when, verb):
            raise error(5, "not now")

    return hook


CALLS = ["put_if_absent", "ratify", "get_commits", "read", "published", "read_start"]


@pytest.mark.parametrize("forgets", [True, False])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", CALLS)
def test_a_crash_anywhere(verb: str, when: str, forgets: bool) -> None:
    """The commit is there or not, and others go on; nothing is there twice."""
    for nth in range(1, 9):
        log, catalog, store = made(forgets=forgets)
        append(store, latest(store), "a")
        calls = []

        def hook(moment: str, called: str) -> None:
            if called == verb and moment == when:
                calls.append(called)  # noqa: B023 - of this round
                if len(calls) == nth:  # noqa: B023
                    raise Crash

        dying = CatalogLogStore(log.with_hook(hook), catalog.with_hook(hook))
        state = latest(store)
        try:
            append(dying, state, "b")
            is_dead = False
        except Crash:
            is_dead = True
        seen = added(store)
        assert seen in (["a"], ["a", "b"])
        assert is_dead or seen == ["a", "b"]
        append(store, latest(store), "c")
        assert added(store) == [*seen, "c"]
        assert added(CatalogLogStore(log, MemoryCatalog(latest=catalog.latest))) == [*seen, "c"]
        if not is_dead:
            return
    raise AssertionError


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_of_the_catalog(when: str) -> None:
    """The writer looks whether its commit was ratified."""
    log, catalog, store = made()
    failing = CatalogLogStore(log, catalog.with_hook(_failing(when, "ratify")))
    if when == "after":
        assert append(failing, latest(store), "a").version == 1
        assert added(store) == ["a"]
        return
    with pytest.raises(OSError, match="not now"):
        append(failing, latest(store), "a")
    assert added(store) == []


@pytest.mark.parametrize("forgets", [True, False])
@pytest.mark.parametrize("fails", [False, True])
def test_a_client_that_repeats_its_own_request(fails: bool, forgets: bool) -> None:
    """The catalog answers that the version is ratified: its staged file must not be deleted."""
    log, catalog, store = made(forgets=forgets)
    refused = _failing("after", "ratify", FileExistsError)

    def hook(when: str, verb: str) -> None:
        refused(when, verb)
        if fails and (when, verb) == ("before", "get_commits"):
            raise OSError(5, "not now")

    repeating = CatalogLogStore(log, catalog.with_hook(hook))
    if fails:
        with pytest.raises(CommitOutcomeUnknownError):
            append(repeating, latest(store), "a")
    else:
        assert append(repeating, latest(store), "a").version == 1
    assert added(store) == ["a"]


@pytest.mark.parametrize("forgets", [True, False])
def test_racing_writers(forgets: bool) -> None:
    log, catalog, store = made(forgets=forgets)
    state, writers, each = latest(store), 4, 5

    def write(writer: int) -> None:
        for number in range(each):
            append(CatalogLogStore(log, catalog), state, f"{writer}-{number}")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = {f"{writer}-{number}" for writer in range(writers) for number in range(each)}
    found = added(store)
    assert (len(found), set(found)) == (len(wanted), wanted)
    names = [entry.name for entry in log.list_from("0")]
    assert names == [commit_name(v) for v in range(len(wanted) + 1)]
    # The staged files of commits that lost are gone.
    assert len(log.list_directory(STAGED_COMMIT_DIRECTORY)) == len(wanted) + 1


def test_who_may_commit() -> None:
    """A managed table is committed to only through its catalog, and no other table through one."""
    log, _, store = made()
    with raises("DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"):
        append(log, latest(store), "a")
    other = CatalogLogStore(MemoryLog(), MemoryCatalog())
    with raises("DELTA_INVALID_COMMIT"):
        create(other)
    with raises("DELTA_INVALID_COMMIT"):
        create(other, protocol=MANAGED)
    assert other.list_from() == []
