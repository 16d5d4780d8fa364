"""The thread that works on tables after their commits."""

from threading import Event, get_ident

import pytest

from sparkdelta.operations.upkeep.background_thread import BackgroundThread


def test_tables_take_turns_and_later_work_joins_what_waits() -> None:
    begun, free, done = Event(), Event(), []

    def work(numbers: tuple[int, ...]) -> None:
        begun.set()
        assert free.wait(60)
        done.append((numbers, get_ident()))

    thread: BackgroundThread[tuple[int, ...]] = BackgroundThread(
        "test", work, lambda earlier, later: earlier + later
    )
    thread.add("a", (1,))
    assert begun.wait(60)
    for table, number in (("a", 2), ("b", 3), ("a", 4)):
        thread.add(table, (number,))
    assert not done  # nobody waited
    free.set()
    thread.wait()
    assert [numbers for numbers, _ in done] == [(1,), (2, 4), (3,)]
    assert {ident for _, ident in done} != {get_ident()}
    thread.add("a", (5,))  # the thread has ended; another one begins
    thread.wait()
    assert done[-1][0] == (5,)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_after_one_that_raised() -> None:
    done: list[int] = []

    def work(number: int) -> None:
        if not number:
            raise SystemExit
        done.append(number)

    thread = BackgroundThread("test", work, max)
    thread.add("a", 0)
    thread.wait()
    thread.add("a", 1)
    thread.wait()
    assert done == [1]
