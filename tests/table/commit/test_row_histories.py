"""Histories of appends, DELETE, UPDATE, MERGE and OPTIMIZE by racing writers, without Spark.

Files are lists of rows; commits, conflicts and deletion vectors are those of the package. What was
committed, applied to a list once each in the order of versions, must give the rows of the table.
Writers are simulated, or threads, or processes that share a local disk.
PROTOCOL.md#delta-log-entries, PROTOCOL.md#deletion-vectors, PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

import json
import multiprocessing
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparkdelta.base.predicates.predicate_rules import And, Column, Comparison, Literal
from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile, file_key
from sparkdelta.base.protocol.log_files import LogFileKind, parse_log_file
from sparkdelta.base.protocol.roaring_bitmaps import (
    cardinality,
    chunks_of_rows,
    deleted_rows,
    encode_chunks,
)
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.base.storage.worker_files import ArrowFiles
from sparkdelta.exceptions import DeltaConcurrentModificationException
from sparkdelta.table.commit.committer import Committer, PreparedCommit, ReadState
from sparkdelta.table.commit.conflict_detection import DriverConflictDetector, parse_commit
from sparkdelta.table.commit.conflict_rules import ReadSet, WinningCommit
from sparkdelta.table.commit.staged_commit_rules import Operation, StagedActions
from sparkdelta.table.commit.vector_rebase import VectorRebase
from sparkdelta.table.vectors.deletion_vector_workers import read_deletion_vector
from sparkdelta.table.vectors.deletion_vector_writing_workers import write_vector_file
from tests.support.commits import create
from tests.support.memory_files import MemoryFiles
from tests.support.memory_log import MemoryLog

PROTOCOL = Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))
IDS = 30
WRITERS, CHANGES = 4, 3
"""The writers that are threads or processes, and the changes of each."""

Row = tuple[int, int]
"""An id, not unique, and a value."""


@dataclass(frozen=True)
class Change:
    """A change that a writer makes to the rows whose ids are in a range.

    Attributes
    ----------
    new
        The rows that it appends, or merges.
    """

    kind: str
    low: int = 0
    high: int = -1
    new: tuple[Row, ...] = ()

    @classmethod
    def parsed(cls, text: str) -> Change:
        fields = json.loads(text)
        return cls(**{**fields, "new": tuple(map(tuple, fields["new"]))})

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


@dataclass(frozen=True)
class State:
    """A version of a table.

    Attributes
    ----------
    live
        The files by path.
    rows
        What the committed changes give, in the order of versions.
    """

    read: ReadState
    live: dict[str, AddFile]
    rows: list[Row]


@dataclass(frozen=True)
class DiskRows:
    """Lists of rows in files."""

    directory: str

    def __getitem__(self, name: str) -> list[Row]:
        return [(key, value) for key, value in json.loads(Path(self.directory, name).read_text())]

    def __setitem__(self, name: str, rows: list[Row]) -> None:
        Path(self.directory, name).write_text(json.dumps(rows))


@dataclass
class Table:
    """A table whose data files are lists of rows."""

    has_vectors: bool
    log: LogStore = field(default_factory=MemoryLog)
    vectors: Any = field(default_factory=MemoryFiles)
    data: Any = field(default_factory=dict)

    @classmethod
    def on_disk(cls, path: str, *, has_vectors: bool) -> Table:
        return cls(has_vectors, LocalLogStore(f"file:{path}"), ArrowFiles(), DiskRows(path))

    def created(self, chance: random.Random) -> Table:
        """Create the table with two files."""
        create(self.log, protocol=PROTOCOL)
        for start in (0, 12):
            rows = tuple((key, 1) for key in range(start, start + 12))
            assert self.commit(self.begin(Change("append", new=rows), chance))
        return self

    def latest(self) -> State:
        """The latest version; a remove must name the vector that is there."""
        live: dict[str, AddFile] = {}
        rows: list[Row] = []
        state = ReadState()
        for entry in self.log.list_from("0"):
            file = parse_log_file(entry.name)
            if file is None or file.kind is not LogFileKind.COMMIT:
                continue
            assert file.version == state.version + 1
            [data] = self.log.read([entry.name])
            commit = parse_commit(data, file.version, with_files=True, path="")
            for remove in commit.removes:
                assert live.pop(remove.path).deletion_vector == remove.deletion_vector
            for add in commit.adds:
                assert add.path not in live
                live[add.path] = add
            metadata = commit.metadata or state.metadata
            state = ReadState(file.version, PROTOCOL, metadata, entry.modification_time_ms)
            change = commit.commit_info.get("userMetadata")
            rows = Change.parsed(change).applied(rows) if isinstance(change, str) else rows
        return State(state, live, rows)

    def check(self) -> int:
        """Compare the rows of the files with those of the committed changes; return the version."""
        state = self.latest()
        found = [row for add in state.live.values() for row in self.rows(add).values()]
        assert sorted(found) == sorted(state.rows)
        return state.read.version

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
        state = self.latest()
        live, begun = state.live, partial(Begun, change, state.read)
        if change.kind == "optimize":
            chosen = chance.sample(sorted(live), min(2, len(live)))
            rows = [row for path in chosen for row in self.rows(live[path]).values()]
            removes = [self.remove(live[path], data_change=False) for path in chosen]
            keys = frozenset(file_key(remove, self.log.table_root) for remove in removes)
            adds = [replace(self.written(rows, chance), data_change=False)] if rows else []
            return begun(staged(adds, removes), ReadSet(files=keys))
        if change.kind == "append":
            return begun(staged([self.written(change.new, chance)], []), ReadSet())
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
        adds += [self.written(new, chance)] if new else []
        leaves_rows = change.kind == "insert" and bool(found)
        low, high = min((change.low, *ids)), max((change.high, *ids))
        read = ReadSet((id_between(low, high),), leaves_rows=leaves_rows, only_rows=True)
        return begun(staged(adds, removes), read)

    def written(self, rows: Sequence[Row], chance: random.Random) -> AddFile:
        path = f"file-{chance.getrandbits(64):x}"
        self.data[path] = list(rows)
        return AddFile(path, {}, 1, 1, True, self.stats(path))

    def stats(self, path: str) -> str:
        ids = [row[0] for row in self.data[path]]
        bounds = {"minValues": {"id": min(ids)}, "maxValues": {"id": max(ids)}}
        return json.dumps({"numRecords": len(ids), **bounds, "tightBounds": False})

    @staticmethod
    def remove(add: AddFile, *, data_change: bool = True) -> RemoveFile:
        return RemoveFile(add.path, 1, data_change, deletion_vector=add.deletion_vector)

    def commit(self, begun: Begun, meanwhile: Callable[[], None] | None = None) -> bool:
        """Commit if nothing conflicts.

        Parameters
        ----------
        meanwhile
            Runs when the first attempt is about to be put into the log, which is in memory.
        """
        log, root = self.log, self.log.table_root
        if meanwhile is not None:
            calls = iter([meanwhile])

            def overtaken(when: str, verb: str) -> None:
                if (when, verb) == ("before", "put_if_absent"):
                    next(calls, lambda: None)()

            assert isinstance(log, MemoryLog)
            log = log.with_hook(overtaken)
        detector = DriverConflictDetector(
            log,
            begun.read,
            may_match=lambda winner: self.may_match(begun.read, winner),
            rebase=VectorRebase(root, lambda: self.vectors),  # type: ignore[arg-type, return-value]
        )
        is_append = begun.change.kind == "append"
        prepared = PreparedCommit(
            Operation(begun.change.kind.upper(), is_blind_append=is_append),
            begun.staged,
            user_metadata=json.dumps(asdict(begun.change)),
        )
        try:
            committer = Committer(log, pause=lambda _: None)
            committer.commit(prepared, begun.read_state, lambda: detector)
        except DeltaConcurrentModificationException:
            return False
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


def staged(adds: list[AddFile], removes: list[RemoveFile]) -> StagedActions:
    return StagedActions(adds=tuple(adds), removes=tuple(removes))


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


@pytest.mark.parametrize("seeds", [100, pytest.param(range(100, 1500), marks=pytest.mark.slow)])
def test_histories(seeds: int | range) -> None:
    """At every point up to three writers have read the table; one commits, while another may be
    first.
    """
    outcomes = {"committed": 0, "overtaken": 0, "refused": 0}
    for seed in range(seeds) if isinstance(seeds, int) else seeds:
        chance = random.Random(seed)
        table = Table(has_vectors=chance.random() < 0.8).created(chance)
        running: list[Begun] = []

        def end(table: Table, running: list[Begun], chance: random.Random) -> None:
            if not running:
                return
            begun = running.pop(chance.randrange(len(running)))
            version = table.latest().read.version
            is_overtaken = chance.random() < 0.2
            meanwhile = (lambda: end(table, running, chance)) if is_overtaken else None
            is_done = table.commit(begun, meanwhile)
            is_late = begun.read_state.version < version
            outcomes["refused" if not is_done else "overtaken" if is_late else "committed"] += 1

        for number in range(2, 16):
            if len(running) < 3 and chance.random() < 0.6:
                begun = table.begin(random_change(chance, number), chance)
                running += [begun] if begun.staged.adds or begun.staged.removes else []
            else:
                end(table, running, chance)
        table.check()
    assert min(outcomes.values()) > 50, outcomes


def race(table: Table, seed: int, writer: int, start: Callable[[], object]) -> None:
    """Change a table as one of its writers."""
    chance = random.Random(f"{seed} {writer}")
    start()
    for number in range(CHANGES):
        begun = table.begin(random_change(chance, writer * CHANGES + number + 2), chance)
        time.sleep(chance.choice((0, 0, 0.001, 0.003)))
        if begun.staged.adds or begun.staged.removes:
            table.commit(begun)


def has_vectors(seed: int) -> bool:
    return seed % 5 > 0


@pytest.mark.parametrize("schedules", [5, pytest.param(1_000, marks=pytest.mark.slow)])
def test_threads(schedules: int) -> None:
    committed = 0
    with ThreadPoolExecutor(WRITERS) as threads:
        for seed in range(schedules):
            table = Table(has_vectors(seed)).created(random.Random(seed))
            together = threading.Barrier(WRITERS)
            writers = [
                threads.submit(race, table, seed, writer, together.wait)
                for writer in range(WRITERS)
            ]
            for running in writers:
                running.result()
            committed += table.check() - 2
    assert committed > schedules * WRITERS * CHANGES / 3


def race_all(
    directory: str, seeds: Iterable[int], writer: int, start: Callable[[], object]
) -> None:
    """Be one of the writers of all tables, in a process of its own."""
    for seed in seeds:
        table = Table.on_disk(f"{directory}/{seed}", has_vectors=has_vectors(seed))
        race(table, seed, writer, start)


@pytest.mark.slow
@pytest.mark.parametrize("schedules", [1_000])
def test_processes(tmp_path: Path, schedules: int) -> None:
    tables = [
        Table.on_disk(f"{tmp_path}/{seed}", has_vectors=has_vectors(seed))
        for seed in range(schedules)
    ]
    for seed, table in enumerate(tables):
        Path(tmp_path, f"{seed}").mkdir()
        table.created(random.Random(seed))
    spawned = multiprocessing.get_context("spawn")
    together = spawned.Barrier(WRITERS)
    arguments = str(tmp_path), range(schedules)
    writers = [
        spawned.Process(target=race_all, args=(*arguments, writer, together.wait))
        for writer in range(WRITERS)
    ]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
        assert process.exitcode == 0
    committed = sum(table.check() - 2 for table in tables)
    assert committed > schedules * WRITERS * CHANGES / 3
