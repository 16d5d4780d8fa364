"""Commits against a store that fails, crashes and is shared; no Spark."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from sparkdelta.base.protocol.actions import DomainMetadata, Protocol, TransactionIdentifier
from sparkdelta.base.protocol.file_actions import AddCDCFile, RemoveFile
from sparkdelta.base.protocol.log_files import commit_name
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.base.storage.log_store import FileEntry
from sparkdelta.exceptions import (
    CommitOutcomeUnknownError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MalformedLogFileError,
    MaxCommitRetriesExceededError,
    MetadataChangedException,
    ProtocolChangedException,
    StorageError,
)
from sparkdelta.table.commit.committer import Committer, PreparedCommit, ReadState
from sparkdelta.table.commit.conflict_detection import DriverConflictDetector, parse_commit
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation, StagedActions
from tests.support.commits import APPEND, add, append, commit, create, latest, metadata
from tests.support.errors import raises
from tests.support.memory_log import Crash, MemoryLog

ROOT = Path(__file__).parents[3]


def actions(data: bytes) -> list[dict]:
    return [json.loads(line) for line in data.splitlines()]


def added(log: MemoryLog) -> list[str]:
    return [a["add"]["path"] for data in log.commits() for a in actions(data) if "add" in a]


def fast(**options: object) -> dict:
    return {"pause": lambda seconds: None, **options}


def test_a_commit_is_lines_of_actions() -> None:
    log = MemoryLog()
    read_state = create(log, clock=lambda: 5)
    staged = StagedActions(
        transactions=(TransactionIdentifier("app", 1),),
        adds=(add("a"),),
        removes=(RemoveFile("b", 1, True),),
    )
    done = commit(
        log,
        PreparedCommit(
            replace(APPEND, metrics={"numFiles": "1"}), staged, user_metadata="why\nnot"
        ),
        read_state,
        clock=lambda: 7,
    )
    assert (done.version, done.attempts) == (1, 1)
    info, *others = actions(log.commits()[1])
    assert info["commitInfo"] == {
        "timestamp": 7,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {"numFiles": "1"},
        "userMetadata": "why\nnot",
        "engineInfo": info["commitInfo"]["engineInfo"],
        "txnId": done.txn_id,
    }
    assert [next(iter(action)) for action in others] == ["txn", "remove", "add"]
    assert [next(iter(a)) for a in actions(log.commits()[0])] == [
        "commitInfo", "protocol", "metaData",
    ]  # fmt: skip


def test_a_commit_is_rebased() -> None:
    log = MemoryLog()
    read_state = create(log)
    for name in "abc":
        append(log, read_state, name)
    last = append(log, read_state, "d", **fast())
    assert (last.version, last.attempts) == (4, 2)
    assert added(log) == list("abcd")
    assert actions(log.commits()[4])[0]["commitInfo"]["readVersion"] == 0


@pytest.mark.parametrize("known", [3, 9])  # 9: of a table that was there before
def test_a_commit_follows_known_commits_at_the_first_attempt(known: int) -> None:
    log = MemoryLog()
    read_state, prepared = create(log), PreparedCommit(APPEND, StagedActions(adds=(add("d"),)))
    for name in "abc":
        append(log, read_state, name)
    done = Committer(log, **fast()).commit(
        prepared,
        read_state,
        lambda: DriverConflictDetector(log, ReadSet()),
        known_version=known,
    )
    assert (done.version, done.attempts) == (4, 1)
    assert added(log) == list("abcd")


def test_known_commits_may_conflict() -> None:
    log = MemoryLog()
    read_state = create(log)
    removal = PreparedCommit(
        Operation("DELETE"), StagedActions(removes=(RemoveFile("a", 1, True),))
    )
    commit(log, removal, read_state)
    with pytest.raises(ConcurrentDeleteDeleteException):
        Committer(log, **fast()).commit(
            removal,
            read_state,
            lambda: DriverConflictDetector(log, ReadSet()),
            known_version=1,
        )
    assert len(log.commits()) == 2


def test_winning_commits_are_read_at_once() -> None:
    """A remote store then asks for all of them in parallel."""
    log, reads = MemoryLog(), []
    read_state = create(log)
    for name in "abc":
        append(log, read_state, name)
    append(log.with_hook(lambda *call: reads.append(call)), read_state, "d", **fast())
    assert reads.count(("before", "read")) == 1
    assert added(log) == list("abcd")


def test_the_file_of_the_first_attempt_is_shown_before_it_is_written() -> None:
    log = MemoryLog()
    read_state, shown = create(log), []
    for name in "ab":
        prepared = PreparedCommit(APPEND, StagedActions(adds=(add(name),)))
        Committer(log, **fast()).commit(
            prepared,
            read_state,
            lambda: DriverConflictDetector(log, ReadSet()),
            lambda version, lines: shown.append((version, lines, len(log.commits()))),
        )
    assert [(version, commits) for version, _, commits in shown] == [(1, 1), (1, 2)]
    assert shown[0][1] == log.commits()[1]
    assert added(log) == ["a", "b"]


@pytest.mark.parametrize(
    ("first", "second", "read", "error"),
    [
        ({"protocols": (Protocol(1, 3),)}, {"adds": (add("x"),)}, {}, ProtocolChangedException),
        ({"metadata": (metadata(),)}, {"adds": (add("x"),)}, {}, MetadataChangedException),
        (
            {"adds": (add("a"),)},
            {"adds": (add("x"),)},
            {"whole_table": True},
            ConcurrentAppendException,
        ),
        (
            {"removes": (RemoveFile("f", 1, True),)},
            {"removes": (RemoveFile("f", 2, True),)},
            {},
            ConcurrentDeleteDeleteException,
        ),
        (
            {"transactions": (TransactionIdentifier("a", 1),)},
            {"transactions": (TransactionIdentifier("a", 1),)},
            {"app_ids": frozenset("a")},
            ConcurrentTransactionException,
        ),
        (
            {"domains": (DomainMetadata("d", "1"),)},
            {"domains": (DomainMetadata("d", "2"),)},
            {},
            ConcurrentTransactionException,
        ),
    ],
)
def test_a_conflict_commits_nothing(first, second, read, error) -> None:  # type: ignore[no-untyped-def]
    log = MemoryLog()
    read_state = create(log, protocol=Protocol(1, 7, None, ("domainMetadata",)))
    if error is ProtocolChangedException:
        first = {"protocols": (Protocol(1, 7, None, ("domainMetadata", "invariants")),)}
    commit(log, PreparedCommit(Operation("FIRST"), StagedActions(**first)), read_state)
    append(log, latest(log), "between")
    before = dict(log.files)
    with pytest.raises(error) as raised:
        commit(
            log,
            PreparedCommit(Operation("SECOND"), StagedActions(**second)),
            read_state,
            ReadSet(**read),
            **fast(),
        )
    assert (raised.value.version, raised.value.operation) == (1, "FIRST")
    assert log.files == before


def test_two_creators_of_a_table() -> None:
    log = MemoryLog()
    create(log)
    with pytest.raises(ProtocolChangedException):
        create(log)
    assert len(log.commits()) == 1


def test_the_first_commit_needs_protocol_and_metadata() -> None:
    log = MemoryLog()
    with raises("DELTA_INVALID_COMMIT"):
        append(log, ReadState(), "a")
    assert not log.files


def test_change_files() -> None:
    """PROTOCOL.md#add-cdc-file: they may name files that are added, and are no conflict."""
    log = MemoryLog()
    read_state = create(log, protocol=Protocol(1, 4))
    change = AddCDCFile("_change_data/c", {"p": None}, 3)
    staged = StagedActions(adds=(add("a"),), change_files=(change, replace(change, path="a")))
    assert commit(log, PreparedCommit(Operation("UPDATE"), staged), read_state).version == 1
    assert [a["cdc"] for a in actions(log.commits()[1]) if "cdc" in a] == [
        {"path": path, "partitionValues": {"p": None}, "size": 3, "dataChange": False}
        for path in ("_change_data/c", "a")
    ]
    changes = StagedActions(change_files=(change,))
    commit(log, PreparedCommit(Operation("UPDATE"), changes), latest(log))
    reader = ReadSet(whole_table=True)
    late = PreparedCommit(Operation("DELETE"), StagedActions(removes=(RemoveFile("a", 1, True),)))
    assert commit(log, late, replace(read_state, version=1), reader).version == 3


@pytest.mark.parametrize(
    ("protocol", "change"),
    [
        (Protocol(1, 3), AddCDCFile("_change_data/c", {}, 3)),
        (Protocol(1, 4), AddCDCFile("_change_data/c", {}, 3, data_change=True)),
    ],
    ids=["no feature", "dataChange"],
)
def test_change_files_that_are_refused(protocol: Protocol, change: AddCDCFile) -> None:
    """PROTOCOL.md#writer-requirements-for-addcdcfile"""
    log = MemoryLog()
    read_state = create(log, protocol=protocol)
    prepared = PreparedCommit(Operation("UPDATE"), StagedActions(change_files=(change,)))
    with raises("DELTA_INVALID_COMMIT"):
        commit(log, prepared, read_state)
    assert len(log.files) == 1


def test_invalid_commits_are_refused_before_the_put() -> None:
    log = MemoryLog()
    read_state = create(log)
    with raises("DELTA_INVALID_COMMIT"):
        append(log, read_state, "a", "a")
    unknown = ReadState(0, Protocol(1, 7, None, ("new",)), read_state.metadata)
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"):
        append(log, unknown, "a")
    assert len(log.files) == 1


def failing(verb: str, when: str, times: int = 1, error: BaseException | None = None):  # type: ignore[no-untyped-def]
    left = [times]

    def hook(moment: str, called: str) -> None:
        if (moment, called) == (when, verb) and left[0]:
            left[0] -= 1
            raise error or ConnectionResetError("lost")

    return hook


def test_a_lost_response_is_recognised() -> None:
    """The commit is there once, and known as ours."""
    log = MemoryLog()
    read_state = create(log)
    done = append(log.with_hook(failing("put_if_absent", "after")), read_state, "a")
    assert (done.version, done.attempts) == (1, 1)
    assert added(log) == ["a"]


def test_a_client_that_repeats_its_own_put() -> None:
    """Object stores' clients send again what was not answered, and are told that it exists."""
    log = MemoryLog()
    read_state = create(log)
    exists = failing("put_if_absent", "after", error=FileExistsError())
    assert append(log.with_hook(exists), read_state, "a", **fast()).version == 1
    assert added(log) == ["a"]


@pytest.mark.parametrize("length", [0, 1 << 16, 1 << 20])
def test_of_who_was_first_only_a_line_is_read(length: int) -> None:
    """A commit may be larger than the driver's memory."""
    log = MemoryLog()
    read_state, sizes = create(log), []
    staged = StagedActions(adds=(add("a"),))
    prepared = PreparedCommit(APPEND, staged, user_metadata="x" * length)
    read_start = log.read_start

    class Watched(MemoryLog):
        def read_start(self, name: str, size: int) -> bytes:
            sizes.append(size)
            return read_start(name, size)

    def refused(when: str, verb: str) -> None:
        if (when, verb) == ("after", "put_if_absent"):
            log.files[f"{1:020d}.json"] += b"x" * (8 << 20)
            raise FileExistsError
        assert verb != "read"

    done = commit(Watched(log.table_root, log.files, refused), prepared, read_state)
    assert done.version == 1
    assert max(sizes) < 8 * max(length, 1 << 16)


def test_a_put_that_failed() -> None:
    log = MemoryLog()
    read_state = create(log)
    with pytest.raises(ConnectionResetError):
        append(log.with_hook(failing("put_if_absent", "before")), read_state, "a")
    assert added(log) == []


@pytest.mark.parametrize("error", [ConnectionResetError, FileExistsError])
def test_nobody_knows_what_became_of_a_put(error: type[OSError]) -> None:
    """Nor if the client sent it again, and was told that it exists."""
    log = MemoryLog()
    read_state = create(log)

    def hook(when: str, verb: str) -> None:
        if (when, verb) == ("after", "put_if_absent"):
            raise error("lost")
        if (when, verb) == ("before", "read_start"):
            raise StorageError(path="memory:/table", problem="lost")

    with pytest.raises(CommitOutcomeUnknownError) as raised:
        append(log.with_hook(hook), read_state, "a")
    assert raised.value.txn_id in log.commits()[1].decode()


def test_others_are_always_first() -> None:
    log = MemoryLog()
    read_state = create(log)
    others = iter(range(1_000))

    def overtake(when: str, verb: str) -> None:
        if (when, verb) == ("before", "put_if_absent"):
            append(log, latest(log), f"other-{next(others)}")

    pauses: list[float] = []
    with pytest.raises(MaxCommitRetriesExceededError) as raised:
        append(log.with_hook(overtake), read_state, "a", max_attempts=5, pause=pauses.append)
    assert raised.value.attempts == len(pauses) + 1 == 5
    assert "a" not in added(log)


@pytest.mark.parametrize("unlisted", [1, 2])
def test_a_winner_that_a_listing_lacks(unlisted: int) -> None:
    """A listing while others write may show a later one: the next listing has both."""
    log = MemoryLog()
    read_state, listings = create(log), []
    for name in "abc":
        append(log, read_state, name)

    class Lacking(MemoryLog):
        def list_from(self, start: str = "") -> list[FileEntry]:
            listings.append(start)
            entries = super().list_from(start)
            return [e for e in entries if len(listings) > 1 or e.name != commit_name(unlisted)]

    assert append(Lacking(log.table_root, log.files), read_state, "d", **fast()).version == 4
    assert (added(log), len(listings)) == (list("abcd"), 2)


@pytest.mark.parametrize("gone", [1, 2])
def test_a_winner_that_is_gone(gone: int) -> None:
    """Nothing is assumed of a commit that nobody can read, and none takes its place."""
    log = MemoryLog()
    read_state = create(log)
    for name in "abc":
        append(log, read_state, name)

    def clean_up(when: str, verb: str) -> None:
        if (when, verb) == ("before", "list_from"):
            log.files.pop(commit_name(gone), None)

    with pytest.raises(ConcurrentWriteException):
        append(log.with_hook(clean_up), read_state, "d", **fast())
    assert commit_name(gone) not in log.files


@pytest.mark.parametrize("line", ["{", "[]", '{"add":{"path":"x"', '"x"', '{"txn":{}}'])
def test_a_winner_that_is_broken(line: str) -> None:
    log = MemoryLog()
    read_state = create(log)
    log.files[f"{1:020d}.json"] = line.encode()
    with pytest.raises(MalformedLogFileError):
        append(log, read_state, "c", **fast())


def test_a_winner_whose_protocol_lacks_a_version() -> None:
    """The error names the table."""
    line = b'{"protocol":{"minReaderVersion":1}}'
    with raises("DELTA_INVALID_PROTOCOL") as caught:
        parse_commit(line, 1, with_files=False, path="/t")
    assert caught.value.path == "/t"


def test_file_lines_are_passed_over_only_if_they_are_nothing_else() -> None:
    lines = [
        '{"add":{"path":"a"}}',
        '{ "add" : {"path":"b"}, "txn":{"appId":"x","version":1}}',
        '{"add":{"path":"c"},"metaData":{"id":"i"}}',
    ]
    found = parse_commit("\n".join(lines).encode(), 1, with_files=False, path="/t")
    assert found.metadata is not None
    assert [t.app_id for t in found.transactions] == ["x"]
    whole = parse_commit("\n".join(lines).encode(), 1, with_files=True, path="/t")
    assert [a.path for a in whole.adds] == ["a", "b", "c"]


# --- in-commit timestamps and row ids ---

ICT = Protocol(1, 7, None, ("inCommitTimestamp",))
ENABLED = {"delta.enableInCommitTimestamps": "true"}


def timestamps(log: MemoryLog) -> list[int | None]:
    return [actions(d)[0]["commitInfo"].get("inCommitTimestamp") for d in log.commits()]


def test_in_commit_timestamps_increase_through_retries() -> None:
    """ "Writer Requirements for In-Commit Timestamps", whatever the clocks say."""
    log = MemoryLog()
    read_state = create(log, ENABLED, ICT, clock=lambda: 100)
    append(log, read_state, "a", clock=lambda: 50)
    append(log, read_state, "b", clock=lambda: 500)
    append(log, read_state, "c", **fast(clock=lambda: 60))
    assert timestamps(log) == [100, 101, 500, 501]
    assert next(iter(actions(log.commits()[3])[0]["commitInfo"])) == "inCommitTimestamp"


def test_where_in_commit_timestamps_begin_is_written_down() -> None:
    """At the version that the commit gets in the end; later than the file before it."""
    log = MemoryLog()
    read_state = create(log, protocol=ICT)
    append(log, read_state, "a")
    enable = PreparedCommit(
        Operation("SET TBLPROPERTIES"), StagedActions(metadata=(metadata(ENABLED),))
    )
    commit(log, enable, read_state, **fast(clock=lambda: 10))
    [found] = [a["metaData"] for a in actions(log.commits()[2]) if "metaData" in a]
    assert found["configuration"] == {
        **ENABLED,
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "1001",
    }
    assert timestamps(log) == [None, None, 1001]


def test_versions_end_where_readers_stop() -> None:
    """Readers ignore a file whose version is not a LONG: its rows would be lost."""
    log = MemoryLog()
    state = replace(create(log), version=2**63 - 2)
    assert append(log, state, "a", **fast()).version == 2**63 - 1
    with raises("DELTA_INVALID_COMMIT"):
        append(log, replace(state, version=2**63 - 1), "b", **fast())
    assert sorted(log.files) == [commit_name(0), commit_name(2**63 - 1)]


def test_row_ids_end_with_the_largest_long() -> None:
    log = MemoryLog()
    protocol = Protocol(1, 7, None, ("rowTracking", "domainMetadata"))
    state = replace(create(log, protocol=protocol), row_id_high_watermark=2**63 - 3)
    with raises("DELTA_INVALID_COMMIT"):
        append(log, state, "a", "b", "c", **fast())
    append(log, state, "d", "e", **fast())
    assert added(log) == ["d", "e"]


def test_row_ids_are_assigned_anew() -> None:
    log = MemoryLog()
    protocol = Protocol(1, 7, None, ("rowTracking", "domainMetadata"))
    read_state = create(log, protocol=protocol)
    for names in ("ab", "c"):
        append(log, read_state, *names, **fast())
    rows = [
        (a["add"]["baseRowId"], a["add"]["defaultRowCommitVersion"])
        for data in log.commits()
        for a in actions(data)
        if "add" in a
    ]
    assert rows == [(0, 1), (1, 1), (2, 2)]
    marks = [
        a["domainMetadata"] for d in log.commits() for a in actions(d) if "domainMetadata" in a
    ]
    assert [json.loads(m["configuration"]) for m in marks] == [
        {"rowIdHighWaterMark": 1},
        {"rowIdHighWaterMark": 2},
    ]


# --- many writers, and writers that die ---


def test_twenty_threads() -> None:
    log = MemoryLog()
    read_state = create(log, ENABLED, ICT)
    start = threading.Barrier(20)

    def write(writer: int) -> None:
        start.wait()
        for number in range(3):
            append(log, read_state, f"{writer}-{number}", pause=lambda s: time.sleep(s / 20))

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(write, range(20)))
    assert sorted(added(log)) == sorted(f"{w}-{n}" for w in range(20) for n in range(3))
    stamps = timestamps(log)
    assert stamps == sorted(set(stamps))  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("writers", "count"), [(4, 10), pytest.param(20, 20, marks=pytest.mark.slow)]
)
@pytest.mark.full
def test_processes_without_spark(tmp_path: Path, writers: int, count: int) -> None:
    root = f"file:{tmp_path}/a b"
    store = LocalLogStore(root)
    create(store)
    command = [sys.executable, "-m", "tests.support.commits", root]
    running = [
        subprocess.Popen([*command, str(writer), str(count)], cwd=ROOT, stderr=subprocess.PIPE)
        for writer in range(writers)
    ]
    for process in running:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors.decode()
    log = MemoryLog(files={e.name: store.read([e.name])[0] for e in store.list_from()})
    assert sorted(added(log)) == sorted(f"{w}-{n}" for w in range(writers) for n in range(count))
    assert len(log.commits()) == writers * count + 1


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", ["list_from", "read", "put_if_absent"])
def test_a_crash_leaves_a_serial_history(verb: str, when: str, nth: int) -> None:
    """After a crash, an acknowledged commit is there once, and that of the dead writer once or
    never; others go on.
    """
    log = MemoryLog()
    read_state = create(log)
    append(log, read_state, "a")
    seen = [0]

    def hook(moment: str, called: str) -> None:
        seen[0] += (moment, called) == (when, verb)
        if seen[0] == nth:
            seen[0] += 1
            raise Crash

    acknowledged = ["a"]
    try:
        append(log.with_hook(hook), read_state, "b", **fast())
        acknowledged.append("b")
    except Crash:
        pass
    append(log, read_state, "c", **fast())
    acknowledged.append("c")
    files = added(log)
    assert len(files) == len(set(files))
    assert set(acknowledged) <= set(files) <= {"a", "b", "c"}
    put = [verb == "put_if_absent" and when == "after" and nth == 1]
    assert ("b" in files) == ("b" in acknowledged or any(put))
