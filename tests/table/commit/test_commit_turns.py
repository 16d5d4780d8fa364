"""Threads that commit to a table in turn; no Spark."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sparkdelta.table.commit.commit_turns import CommitTurns, commit_turns


def take(turns: CommitTurns) -> None:
    with turns.turn():
        pass


def test_threads_take_turns_in_the_order_in_which_they_came() -> None:
    turns, taken, inside = CommitTurns(), [], []

    def take_and_stay(number: int) -> None:
        with turns.turn():
            inside.append(number)
            taken.append(number)
            time.sleep(0.001)
            assert inside == [number]
            inside.clear()

    with ThreadPoolExecutor(10) as pool:
        with turns.turn():
            waiting = []
            for number in range(10):
                waiting.append(pool.submit(take_and_stay, number))
                deadline = time.monotonic() + 20
                while len(turns._threads) < number + 2 and time.monotonic() < deadline:
                    time.sleep(0.001)
        for one in waiting:
            one.result(timeout=20)
    assert taken == list(range(10))


def test_a_turn_within_a_turn_does_not_wait() -> None:
    """A catalog may write its own commit to the table while it handles another one."""
    turns = CommitTurns()
    with turns.turn():
        take(turns)
        assert len(turns._threads) == 1
    assert not turns._threads


def test_a_failure_ends_the_turn() -> None:
    turns = CommitTurns()
    with pytest.raises(KeyboardInterrupt), turns.turn():
        raise KeyboardInterrupt
    with ThreadPoolExecutor(1) as pool:
        pool.submit(take, turns).result(timeout=20)


def test_a_thread_that_gives_up_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that is interrupted while it waits."""
    turns = CommitTurns()

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool:
        with turns.turn():
            with monkeypatch.context() as patched:
                patched.setattr(turns._changed, "wait_for", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    pool.submit(take, turns).result(timeout=20)
            assert len(turns._threads) == 1
        pool.submit(take, turns).result(timeout=20)


def test_each_table_has_turns_of_its_own() -> None:
    assert commit_turns("file:/a") is commit_turns("file:/a")
    assert commit_turns("file:/a") is not commit_turns("file:/b")
