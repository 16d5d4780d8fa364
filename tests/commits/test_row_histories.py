"""Histories of appends, DELETE, UPDATE, MERGE and OPTIMIZE by racing writers, without Spark.

Files are lists of rows; commits, conflicts and deletion vectors are those of the package. What was
committed, applied to a list once each in the order of versions, must give the rows of the table.
PROTOCOL.md#delta-log-entries, PROTOCOL.md#deletion-vectors, PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from sparkdelta.exceptions import DeltaConcurrentModificationException
from sparkdelta.protocol.actions import Protocol
from sparkdelta.protocol.conflicts import ReadSet, WinningCommit
from sparkdelta.protocol.deletion_vectors import cardinality
from sparkdelta.protocol.file_actions import AddFile, RemoveFile, file_key
from sparkdelta.protocol.log_files import parse_log_file
from sparkdelta.protocol.predicates import And, Column, Comparison, Literal
from sparkdelta.protocol.roaring_bitmaps import chunks_of_rows, deleted_rows, encode_chunks
from sparkdelta.protocol.staged_commit import Operation, StagedActions
from sparkdelta.table.commit.committer import Committer, PreparedCommit, ReadState
from sparkdelta.table.commit.conflict_detection import DriverConflictDetector, parse_commit
from sparkdelta.table.commit.vector_rebase import VectorRebase
from sparkdelta.workers.deletion_vector_writer import write_vector_file
from sparkdelta.workers.deletion_vectors import read_deletion_vector
from tests.support.commits import create
from tests.support.memory_files import MemoryFiles
from tests.support.memory_log import MemoryLog

PROTOCOL = Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))
IDS = 30

Row = tuple[int, int]
"""An id, not unique, and a value."""


@dataclass(frozen=True)
class Change:
    """What a writer does to the rows whose ids are in a range.

    Attributes
    ----------
    new
        The rows that it appends, or merges.
    """

    kind: str
    low: int = 0
    high: int = -1
    new: tuple[Row, ...] = ()

    def matches(self, row: Row) -> bool:
        return self.low <= row[0] <= self.high

    def applied(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of the table afterwards."""
        known = {row[0] for row in rows}
        inserted = [row for row in self.new if self.kind == "append" or row[0] not in known]
        if self.kind == "delete":
            return [row for row in rows if not self.matches(row)]
        return [self.updated(row) for row in rows] + inserted

    def updated(self, row: Row) -> Row:
        if self.kind == "update" and self.matches(row):
            return row[0], row[1] * 2 + 1
        if self.kind == "upsert":
            return row[0], row[1] + sum(value for key, value in self.new if key == row[0])
        return row


@dataclass
class Begun:
    """A change whose writer has read the table and written its files, and commits now."""

    change: Change
    read_state: ReadState
    staged: StagedActions
    read: ReadSet


@dataclass
class Table:
    """A table whose data files are lists of rows in memory."""

    has_vectors: bool
    log: MemoryLog = field(default_factory=MemoryLog)
    vectors: MemoryFiles = field(default_factory=MemoryFiles)
    data: dict[str, list[Row]] = field(default_factory=dict)
    state: ReadState = field(init=False)
    done: dict[int, Change] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = create(self.log, protocol=PROTOCOL)

    def live(self) -> dict[str, AddFile]:
        """The files by path; a remove must name the vector that is there."""
        found: dict[str, AddFile] = {}
        for name in sorted(self.log.files):
            file = parse_log_file(name)
            assert file is not None
            commit = parse_commit(self.log.files[name], file.version, with_files=True, path="")
            for remove in commit.removes:
                assert found.pop(remove.path).deletion_vector == remove.deletion_vector
            for add in commit.adds:
                assert add.path not in found
                found[add.path] = add
        return found

    def rows(self, add: AddFile) -> dict[int, Row]:
        """The live rows of a file by their positions."""
        rows = dict(enumerate(self.data[add.path]))
        if add.deletion_vector is None:
            return rows
        chunks = read_deletion_vector(
            add.deletion_vector, files=self.vectors, table_root=self.log.table_root
        )  # type: ignore[call-overload, unused-ignore]
        assert cardinality(chunks) == add.deletion_vector.cardinality
        mask = deleted_rows(chunks, 0, len(rows))
        gone = set() if mask is None else set(np.flatnonzero(mask).tolist())
        return {position: row for position, row in rows.items() if position not in gone}

    def begin(self, change: Change, chance: random.Random) -> Begun:
        """Read the table, and write files as the commands do."""
        live = self.live()
        if change.kind == "optimize":
            chosen = chance.sample(sorted(live), min(2, len(live)))
            rows = [row for path in chosen for row in self.rows(live[path]).values()]
            removes = [self.remove(live[path], data_change=False) for path in chosen]
            keys = frozenset(file_key(remove, self.log.table_root) for remove in removes)
            adds = [replace(self.written(rows), data_change=False)] if rows else []
            return self.begun(change, adds, removes, ReadSet(files=keys))
        if change.kind == "append":
            return self.begun(change, [self.written(change.new)], [], ReadSet())
        ids = {row[0] for row in change.new}
        matched = {
            path: {
                position: row
                for position, row in self.rows(add).items()
                if change.matches(row) or row[0] in ids
            }
            for path, add in live.items()
        }
        found = {row[0] for rows in matched.values() for row in rows.values()}
        new = [row for row in change.new if row[0] not in found]
        if change.kind in ("update", "upsert"):
            new += [change.updated(row) for rows in matched.values() for row in rows.values()]
        changes_rows = change.kind != "insert"
        adds, removes = [], []
        for path in (path for path, rows in matched.items() if rows and changes_rows):
            left = self.rows(live[path]).keys() - matched[path].keys()
            removes.append(self.remove(live[path]))
            if left and self.has_vectors and chance.random() < 0.8:
                gone = sorted(set(range(len(self.data[path]))) - left)
                data = encode_chunks(chunks_of_rows(np.array(gone, np.int64)))
                [vector] = write_vector_file(
                    [(data, len(gone))], self.vectors, self.log.table_root, "mine"
                )  # type: ignore[call-overload, unused-ignore]
                adds.append(replace(live[path], deletion_vector=vector, stats=self.stats(path)))
            else:
                new += [self.data[path][position] for position in left]
        adds += [self.written(new)] if new else []
        leaves_rows = change.kind == "insert" and bool(found)
        low, high = min((change.low, *ids)), max((change.high, *ids))
        read = ReadSet((id_between(low, high),), leaves_rows=leaves_rows)
        return self.begun(change, adds, removes, read)

    def begun(
        self, change: Change, adds: list[AddFile], removes: list[RemoveFile], read: ReadSet
    ) -> Begun:
        staged = StagedActions(adds=tuple(adds), removes=tuple(removes))
        return Begun(change, self.state, staged, read)

    def written(self, rows: Sequence[Row]) -> AddFile:
        path = f"file-{len(self.data)}"
        self.data[path] = list(rows)
        return AddFile(path, {}, 1, 1, True, self.stats(path))

    def stats(self, path: str) -> str:
        ids = [row[0] for row in self.data[path]]
        bounds = {"minValues": {"id": min(ids)}, "maxValues": {"id": max(ids)}}
        return json.dumps({"numRecords": len(ids), **bounds, "tightBounds": False})

    @staticmethod
    def remove(add: AddFile, *, data_change: bool = True) -> RemoveFile:
        return RemoveFile(add.path, 1, data_change, deletion_vector=add.deletion_vector)

    def commit(self, begun: Begun, meanwhile: Callable[[], None] = lambda: None) -> bool:
        """Commit if nothing conflicts.

        Parameters
        ----------
        meanwhile
            Runs when the first attempt is about to be put into the log.
        """
        calls = iter([meanwhile])

        def overtaken(when: str, verb: str) -> None:
            if (when, verb) == ("before", "put_if_absent"):
                next(calls, lambda: None)()

        log, root = self.log.with_hook(overtaken), self.log.table_root
        detector = DriverConflictDetector(
            log,
            begun.read,
            removes=frozenset(file_key(remove, root) for remove in begun.staged.removes),
            may_match=lambda winner: self.may_match(begun.read, winner),
            rebase=VectorRebase(root, lambda: self.vectors),  # type: ignore[arg-type, return-value]
        )
        is_append = begun.change.kind == "append"
        prepared = PreparedCommit(
            Operation(begun.change.kind.upper(), is_blind_append=is_append), begun.staged
        )
        try:
            committer = Committer(log, pause=lambda _: None)
            done = committer.commit(prepared, begun.read_state, detector)
        except DeltaConcurrentModificationException:
            return False
        assert done.version not in self.done
        self.done[done.version] = begun.change
        self.state = replace(self.state, version=max(self.done))
        return True

    @staticmethod
    def may_match(read: ReadSet, winner: WinningCommit) -> tuple[AddFile, ...]:
        """The added files whose ids may be in the range of the predicate."""
        [(low, high)] = [range_of(predicate) for predicate in read.predicates] or [(0, IDS)]
        return tuple(
            add
            for add in winner.adds
            if json.loads(add.stats or "")["minValues"]["id"] <= high
            and json.loads(add.stats or "")["maxValues"]["id"] >= low
        )


def id_between(low: int, high: int) -> And:
    column = Column(("id",))
    bounds = ((">=", low), ("<=", high))
    return And(tuple(Comparison(sign, column, Literal(n, "bigint")) for sign, n in bounds))


def range_of(predicate: object) -> tuple[int, int]:
    assert isinstance(predicate, And)
    low, high = (child.right.value for child in predicate.terms)  # type: ignore[union-attr]
    return low, high  # type: ignore[return-value]


def random_change(chance: random.Random, number: int) -> Change:
    kind = chance.choice(("append", "delete", "update", "update", "upsert", "insert", "optimize"))
    if kind == "optimize":
        return Change(kind)
    low = chance.randrange(IDS)
    if kind in ("delete", "update"):
        return Change(kind, low, low + chance.choice((0, 0, 1, 5)))
    ids = sorted({low, chance.randrange(IDS)})
    return Change(kind, IDS, -1, tuple((key, number) for key in ids))


@pytest.mark.parametrize("seeds", [100, pytest.param(range(100, 1500), marks=pytest.mark.full)])
def test_histories(seeds: int | range) -> None:
    """At every point up to three writers have read the table; one commits, while another may be
    first.
    """
    outcomes = {"committed": 0, "overtaken": 0, "refused": 0}
    for seed in range(seeds) if isinstance(seeds, int) else seeds:
        chance = random.Random(seed)
        table = Table(has_vectors=chance.random() < 0.8)
        for start in (0, 12):
            rows = tuple((key, 1) for key in range(start, start + 12))
            table.commit(table.begin(Change("append", new=rows), chance))
        running: list[Begun] = []

        def end(table: Table, running: list[Begun], chance: random.Random) -> None:
            if not running:
                return
            begun = running.pop(chance.randrange(len(running)))
            version = table.state.version
            is_overtaken = chance.random() < 0.2
            meanwhile = (lambda: end(table, running, chance)) if is_overtaken else lambda: None
            is_done = table.commit(begun, meanwhile)
            is_late = begun.read_state.version < version
            outcomes["refused" if not is_done else "overtaken" if is_late else "committed"] += 1

        for number in range(2, 16):
            if len(running) < 3 and chance.random() < 0.6:
                begun = table.begin(random_change(chance, number), chance)
                running += [begun] if begun.staged.adds or begun.staged.removes else []
            else:
                end(table, running, chance)
        expected: list[Row] = []
        for _, change in sorted(table.done.items()):
            expected = change.applied(expected)
        found = [row for add in table.live().values() for row in table.rows(add).values()]
        assert sorted(found) == sorted(expected), seed
    assert min(outcomes.values()) > 50, outcomes
