"""A writer on a local disk that dies at any call of the system leaves a log that all can use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sparkdelta.base.storage import local_log
from sparkdelta.base.storage.local_log import LocalLogStore
from tests.support.commits import append, create, latest
from tests.support.memory_log import Crash, MemoryLog

CALLS = ("fsync", "link", "unlink", "open")


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", CALLS)
def test_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, when: str, nth: int
) -> None:
    store = LocalLogStore(f"file:{tmp_path}/t")
    read_state = create(store)
    original, seen = getattr(os, call), [0]

    def crashing(*arguments: object, **options: object) -> object:
        seen[0] += 1
        if seen[0] == nth and when == "before":
            raise Crash
        result = original(*arguments, **options)
        if seen[0] == nth:
            raise Crash
        return result

    acknowledged = False
    with monkeypatch.context() as patched:
        patched.setattr(local_log.os, call, crashing)
        try:
            append(store, read_state, "dying")
            acknowledged = True
        except Crash:
            pass
    append(store, read_state, "next")
    log = MemoryLog(
        files={e.name: store.read([e.name])[0] for e in store.list_from() if e.name[0] != "."}
    )
    commits = log.commits()
    assert latest(store).version == len(commits) - 1
    dying = [data for data in commits if b'"dying"' in data]
    assert len(dying) <= 1
    assert dying or not acknowledged
    assert all(data.endswith(b"}\n") for data in commits)
    assert b'"next"' in commits[-1]
