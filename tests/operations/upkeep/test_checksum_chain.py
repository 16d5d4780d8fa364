"""Version checksums of commits, without Spark: by many writers, and by some that die."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count

import pytest

from sparkdelta.base.protocol.log_files import commit_name, version_checksum_name
from sparkdelta.operations.upkeep import checksum_chain
from sparkdelta.operations.upkeep.checksum_chain import add_checksum_of_commit
from sparkdelta.table.checksum.version_checksum_rules import (
    parse_version_checksum,
    serialize_version_checksum,
)
from sparkdelta.table.commit.committer import Committed
from tests.support.commits import append, create, latest
from tests.support.memory_log import Crash, MemoryLog


def with_checksum(log: MemoryLog, done: Committed) -> bool:
    assert done.lines is not None
    return add_checksum_of_commit(log, done.version, done.lines, None)


def files_at(log: MemoryLog, version: int) -> int | None:
    """The number of files in the checksum of a version; None without a usable checksum."""
    data = log.files.get(version_checksum_name(version))
    checksum = None if data is None else parse_version_checksum(data)
    return None if checksum is None else checksum.num_files


def live(log: MemoryLog, version: int) -> int:
    """The number of files that were added up to a version."""
    lines = [line for data in log.commits()[: version + 1] for line in data.splitlines()]
    return sum("add" in json.loads(line) for line in lines)


def opened(log: MemoryLog) -> None:
    """Version 0, with its checksum."""
    create(log)
    assert add_checksum_of_commit(log, 0, log.files[commit_name(0)], None)


def test_many_writers_do_not_wait_for_each_other() -> None:
    """Each finds an older checksum, and adds the commits since."""
    log = MemoryLog()
    read_state = create(log)

    def write(writer: int) -> None:
        for number in range(3):
            done = append(log, read_state, f"{writer}-{number}", pause=lambda s: time.sleep(s / 20))
            assert with_checksum(log, done)

    with ThreadPoolExecutor(10) as threads:
        list(threads.map(write, range(10)))
    found = [files_at(log, version) for version in range(1, 31)]
    assert found == [live(log, version) for version in range(1, 31)]


def test_a_gap_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads a long log after each commit."""
    monkeypatch.setattr(checksum_chain, "MAX_COMMITS", 3)
    log = MemoryLog()
    opened(log)
    read_state = latest(log)
    for name in "abc":
        append(log, read_state, name, pause=lambda s: None)
    assert not with_checksum(log, append(log, read_state, "d", pause=lambda s: None))
    assert files_at(log, 4) is None
    del log.files[version_checksum_name(0)]
    monkeypatch.setattr(checksum_chain, "MAX_COMMITS", 5)
    assert with_checksum(log, append(log, read_state, "e", pause=lambda s: None))
    assert files_at(log, 5) == 5


def test_one_that_is_damaged_is_passed_over() -> None:
    log = MemoryLog()
    opened(log)
    read_state = latest(log)
    first = append(log, read_state, "a")
    log.files[version_checksum_name(1)] = b"{"
    done = append(log, read_state, "b", pause=lambda s: None)
    assert first.version == 1
    assert with_checksum(log, done)
    assert files_at(log, 2) == 2


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", range(1, 5))
def test_a_crash_leaves_a_right_one_or_none(when: str, nth: int) -> None:
    log = MemoryLog()
    opened(log)
    read_state = latest(log)
    append(log, read_state, "a")
    done = append(log, read_state, "b", pause=lambda s: None)
    calls = count(1)

    def hook(moment: str, verb: str) -> None:
        if moment == when and next(calls) == nth:
            raise Crash

    with pytest.raises(Crash):
        with_checksum(log.with_hook(hook), done)
    assert files_at(log, 2) in (None, 2)
    assert with_checksum(log, append(log, read_state, "c", pause=lambda s: None))
    assert files_at(log, 3) == 3


def left_behind(log: MemoryLog, version: int, txn_id: str | None) -> None:
    """The checksum of a commit of this version that was taken back."""
    checksum = parse_version_checksum(log.files[version_checksum_name(0)])
    assert checksum is not None
    left = serialize_version_checksum(replace(checksum, txn_id=txn_id, num_files=70))
    log.files[version_checksum_name(version)] = left


@pytest.mark.parametrize("txn_id", ["of a commit that was taken back", None])
def test_the_checksum_of_a_commit_that_was_taken_back_is_replaced(txn_id: str | None) -> None:
    log = MemoryLog()
    opened(log)
    read_state = latest(log)
    left_behind(log, 1, txn_id)
    assert with_checksum(log, append(log, read_state, "a"))
    assert files_at(log, 1) == 1


def test_the_next_checksum_is_not_derived_from_that_of_another_commit() -> None:
    log = MemoryLog()
    opened(log)
    read_state = latest(log)
    append(log, read_state, "a")
    left_behind(log, 1, "of a commit that was taken back")
    assert with_checksum(log, append(log, read_state, "b", pause=lambda s: None))
    assert files_at(log, 2) == 2


def test_the_checksum_of_another_commit_is_deleted_where_none_can_be_derived() -> None:
    log = MemoryLog()
    opened(log)
    read_state = latest(log)
    left_behind(log, 1, "of a commit that was taken back")
    done = append(log, read_state, "a")
    assert done.lines is not None
    lines = done.lines.replace(b'"operation":"WRITE"', b'"operation":"RESTORE"')
    assert not add_checksum_of_commit(log, 1, lines, None)
    assert version_checksum_name(1) not in log.files


def test_a_writer_whose_commit_was_taken_back_replaces_no_checksum() -> None:
    log = MemoryLog()
    opened(log)
    read_state = latest(log)
    late = append(log, read_state, "a")
    del log.files[commit_name(1)]
    assert with_checksum(log, append(log, read_state, "b"))
    written = log.files[version_checksum_name(1)]
    with_checksum(log, late)
    assert log.files[version_checksum_name(1)] == written


def test_a_reader_sees_the_old_or_the_new_checksum_while_it_is_replaced() -> None:
    log = MemoryLog()
    opened(log)
    read_state = latest(log)
    left_behind(log, 1, "of a commit that was taken back")
    done = append(log, read_state, "a")
    seen: list[int | None] = []
    with_checksum(log.with_hook(lambda moment, verb: seen.append(files_at(log, 1))), done)
    assert set(seen) == {70, 1}
