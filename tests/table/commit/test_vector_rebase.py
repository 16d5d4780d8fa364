"""Transactions that delete rows of the same files by deletion vectors, in random schedules.

PROTOCOL.md#deletion-vectors, PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

import random
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from sparkdelta.base.predicates.predicate_rules import Column, Comparison, Literal
from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile
from sparkdelta.base.protocol.log_files import commit_name, parse_log_file
from sparkdelta.base.protocol.roaring_bitmaps import (
    cardinality,
    chunks_of_rows,
    deleted_rows,
    encode_chunks,
)
from sparkdelta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)
from sparkdelta.table.commit import vector_rebase
from sparkdelta.table.commit.committer import Committer, PreparedCommit, ReadState
from sparkdelta.table.commit.conflict_detection import DriverConflictDetector, parse_commit
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation, StagedActions
from sparkdelta.table.commit.vector_rebase import VectorRebase
from sparkdelta.table.vectors.deletion_vector_workers import read_deletion_vector
from sparkdelta.table.vectors.deletion_vector_writing_workers import write_vector_file
from tests.support.commits import create
from tests.support.errors import raises
from tests.support.memory_files import MemoryFiles
from tests.support.memory_log import MemoryLog

PROTOCOL = Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))
ROWS = 10
CHANGE = Operation("DELETE")


@dataclass
class Change:
    """A transaction that deletes rows, and brings others back or rewrites its files."""

    read_state: ReadState
    before: dict[str, AddFile]
    gone: dict[str, frozenset[int]]
    deleted: dict[str, frozenset[int]]
    rewrites: bool = False
    name: str = ""


@dataclass
class Table:
    """Some files of a few rows."""

    log: MemoryLog = field(default_factory=MemoryLog)
    files: MemoryFiles = field(default_factory=MemoryFiles)
    state: ReadState = field(init=False)
    done: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = create(self.log, protocol=PROTOCOL)
        names = StagedActions(adds=tuple(AddFile(n, {}, 1, 1, True, STATS) for n in "ab"))
        self.commit(names, self.state)

    def commit(self, staged: StagedActions, state: ReadState, read: ReadSet | None = None) -> None:
        root = self.log.table_root
        detector = DriverConflictDetector(
            self.log,
            read or ReadSet(),
            rebase=VectorRebase(root, lambda: self.files),  # type: ignore[arg-type,return-value]
        )
        committer = Committer(self.log, pause=lambda _: None)
        done = committer.commit(PreparedCommit(CHANGE, staged), state, lambda: detector)
        self.state = replace(self.state, version=done.version)

    def live(self) -> dict[str, AddFile]:
        """The files by path, after checks that each action is of what was there."""
        found: dict[str, AddFile] = {}
        for name in sorted(self.log.files):
            file = parse_log_file(name)
            assert file is not None
            winner = parse_commit(self.log.files[name], file.version, with_files=True, path="")
            for remove in winner.removes:
                assert found.pop(remove.path).deletion_vector == remove.deletion_vector
            for add in winner.adds:
                assert add.path not in found
                found[add.path] = add
        return found

    def deleted(self, add: AddFile | None) -> frozenset[int]:
        if add is None or add.deletion_vector is None:
            return frozenset()
        root = self.log.table_root
        chunks = read_deletion_vector(add.deletion_vector, files=self.files, table_root=root)  # type: ignore[arg-type]
        assert cardinality(chunks) == add.deletion_vector.cardinality
        mask = deleted_rows(chunks, 0, ROWS)
        return frozenset(() if mask is None else np.flatnonzero(mask).tolist())

    def vector(self, rows: frozenset[int]) -> Any:
        data = encode_chunks(chunks_of_rows(np.array(sorted(rows), np.int64)))
        [found] = write_vector_file([(data, len(rows))], self.files, self.log.table_root, "mine")  # type: ignore[arg-type]
        return found

    def staged(self, change: Change) -> StagedActions:
        adds, removes = [], []
        for path, rows in change.deleted.items():
            file = change.before[path]
            removes.append(RemoveFile(path, 1, True, deletion_vector=file.deletion_vector))
            after = self.deleted(file) ^ rows
            if change.rewrites:
                adds.append(AddFile(f"{path}-{change.name}", {}, 1, 1, True, STATS))
            elif len(after) < ROWS:
                vector = self.vector(after) if after else None
                adds.append(replace(file, deletion_vector=vector, stats=WIDE))
        return StagedActions(adds=tuple(adds), removes=tuple(removes))


STATS = f'{{"numRecords":{ROWS}}}'
WIDE = f'{{"numRecords":{ROWS},"tightBounds":false}}'


def delete(table: Table, **rows: set[int]) -> Change:
    """A transaction that has read the table and not committed yet."""
    deleted = {name: frozenset(found) for name, found in rows.items()}
    live = table.live()
    gone = {path: table.deleted(add) for path, add in live.items()}
    return Change(table.state, live, gone, deleted)


def random_change(table: Table, chance: random.Random, name: str) -> Change | None:
    """Mostly one that deletes some rows; None if there are none."""
    change, kind = delete(table), chance.random()
    live, deleted = sorted(change.before), {}
    for path in chance.sample(live, min(2, len(live))):
        gone = change.gone[path]
        rows = gone if kind < 0.1 else frozenset(range(ROWS)) - gone
        chosen = chance.sample(sorted(rows), min(len(rows), chance.choice((1, 1, 2, 5))))
        if chosen:
            deleted[path] = frozenset(chosen)
    return replace(change, deleted=deleted, rewrites=kind > 0.9, name=name) if deleted else None


def conflicts(table: Table, change: Change) -> bool:
    """True if a commit since then changed a row that it changes, or must not share the file."""
    later = [other for other in table.done if other.read_state.version >= change.read_state.version]
    return any(
        rows & other.deleted[path] or not (deletes(change, path) and deletes(other, path))
        for path, rows in change.deleted.items()
        for other in later
        if path in other.deleted
    )


def deletes(change: Change, path: str) -> bool:
    """True if a change does no more than to delete some rows of a file, as far as it knew."""
    before, rows = change.gone[path], change.deleted[path]
    return not (change.rewrites or rows & before or len(before | rows) == ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [100, pytest.param(1000, marks=pytest.mark.full)])
def test_random_schedules(seeds: int) -> None:
    """A change succeeds if no row of it was changed since it read the table, and no other way; each
    is applied once. Only then do removes name the vectors that are there.
    """
    outcomes = {True: 0, False: 0}
    for seed in range(seeds):
        chance, table = random.Random(seed), Table()
        running: list[Change] = []
        for step in range(10):
            if len(running) < 3 and chance.random() < 0.7:
                begun = random_change(table, chance, f"{step}")
                running += [begun] if begun is not None else []
            elif running:
                change = running.pop(chance.randrange(len(running)))
                live, before = table.live(), table.state
                fails = conflicts(table, change)
                outcomes[fails] += change.read_state.version < before.version
                if fails:
                    with pytest.raises(ConcurrentDeleteDeleteException):
                        table.commit(table.staged(change), change.read_state)
                    continue
                table.commit(table.staged(change), change.read_state)
                table.done.append(replace(change, read_state=before))
                now = table.live()
                for path, rows in change.deleted.items():
                    expected = table.deleted(live[path]) ^ rows
                    if change.rewrites or len(expected) == ROWS:
                        assert path not in now
                    else:
                        assert table.deleted(now[path]) == expected
    assert min(outcomes.values()) > seeds / 4


def test_three_in_a_row() -> None:
    """One that is overtaken twice in one attempt and once more in the next."""
    table = Table()
    late = delete(table, a={0}, b={5})
    staged = table.staged(late)
    for rows in ({1}, {2}):
        table.commit(table.staged(delete(table, a=rows)), table.state)
    puts = iter([True])

    def overtaken(when: str, verb: str) -> None:
        if (when, verb) == ("before", "put_if_absent") and next(puts, False):
            table.commit(table.staged(delete(table, a={3})), table.state)

    table.log.hook = overtaken
    table.commit(staged, late.read_state)
    assert {path: table.deleted(add) for path, add in table.live().items()} == {
        "a": {0, 1, 2, 3},
        "b": {5},
    }
    assert {path.rpartition("/")[0] for path in table.files.files} == {"memory:/table/mine"}


@pytest.mark.parametrize(("change", "error"), [({2}, None), ({1}, ConcurrentAppendException)])
def test_a_file_that_only_lost_rows_is_no_new_file(
    change: set[int], error: type[Exception] | None
) -> None:
    """A file that only lost rows is no conflict for a transaction that may have read it and changes
    another; a file whose rows came back is one.
    """
    table = Table()
    table.commit(table.staged(delete(table, a={1})), table.state)
    late = delete(table, b={0})
    table.commit(table.staged(delete(table, a=change)), table.state)  # row 1 comes back
    read = ReadSet((Comparison("=", Column(("n",)), Literal(1, "bigint")),))
    with nullcontext() if error is None else pytest.raises(error):
        table.commit(table.staged(late), late.read_state, read)


@pytest.mark.parametrize(
    "read", [ReadSet(files=frozenset({("a", None)})), ReadSet(leaves_rows=True)]
)
def test_rows_that_were_read_beside_those_that_are_deleted(read: ReadSet) -> None:
    """A transaction that read other rows of its file fails, as the winner may have deleted some of
    them.
    """
    table = Table()
    late = delete(table, a={0})
    table.commit(table.staged(delete(table, a={1})), table.state)
    with pytest.raises(ConcurrentDeleteReadException):
        table.commit(table.staged(late), late.read_state, read)
    assert table.deleted(table.live()["a"]) == {1}


def test_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_rebase, "MAX_REBASED_FILES", 1)
    table = Table()
    one, both = (table.staged(delete(table, a={0}, **more)) for more in ({}, {"b": {0}}))
    start = table.state
    table.commit(table.staged(delete(table, a={2}, b={2})), start)
    with pytest.raises(ConcurrentDeleteDeleteException):
        table.commit(both, start)
    table.commit(one, start)


def test_a_vector_that_is_gone() -> None:
    table = Table()
    late = delete(table, a={0})
    staged = table.staged(late)
    table.commit(table.staged(delete(table, a={1})), table.state)
    table.files.files.clear()
    with raises("DELTA_FILE_NOT_FOUND"):
        table.commit(staged, late.read_state)
    assert commit_name(3) not in table.log.files
