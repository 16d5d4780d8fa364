"""Arguments of another type than they should be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkdelta.base.protocol import arguments
from sparkdelta.exceptions import InvalidArgumentError


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (lambda v: arguments.checked_version(v), [None, 0, 7], ["7", 7.0, True]),
        (lambda v: arguments.checked_count(v, "n"), [None, 1], [0, -1, "1", 1.5, True]),
        (lambda v: arguments.checked_count(v, "n", least=0), [0], [-1]),
        (lambda v: arguments.checked_text(v, "t"), [None, "", "a"], [1, {"a": 1}, b"a"]),
        (lambda v: arguments.checked_flag(v, "f"), [True, False], ["false", 0, None]),
        (lambda v: arguments.checked_choice(v, "c", ("a", "b")), ["a"], ["c", "", None, 1]),
        (lambda v: arguments.checked_path(v), ["/t"], [None, "", 5]),
        (lambda v: arguments.checked_names(v, "c"), [None], ["age", [1], [["a"]]]),
    ],
)  # fmt: skip
def test_wrong_input_is_refused(
    check: Callable[[Any], Any], right: list[Any], wrong: list[Any]
) -> None:
    assert [check(value) for value in right] == right
    for value in wrong:
        with pytest.raises(InvalidArgumentError):
            check(value)


def test_arguments_become_texts_and_tuples() -> None:
    assert arguments.checked_path(Path("/t")) == "/t"
    assert arguments.checked_names(["a", "b"], "c") == ("a", "b")


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda: arguments.checked_version("0"), "version needs to be an int but got"),
        (lambda: arguments.checked_text(1, "t"), "t needs to be a string but got '<class 'int'>'"),
        (lambda: arguments.checked_flag(1, "f"), "f needs to be a boolean but got '<class 'int'>'"),
    ],
)  # fmt: skip
def test_messages_have_the_words_of_delta_spark(check: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check()
