"""Validation of the arguments of public functions.

Each `checked_*` function returns a valid argument unchanged, or in its normal form, and raises
`InvalidArgumentError` otherwise.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import os
import re
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_OPTIONS = {
    "versionAsOf": "version",
    "timestampAsOf": "timestamp",
    "optimizeWrite": "target_file_size",
    "startingVersion": "start_version",
    "startingTimestamp": "start_timestamp",
    "endingVersion": "end_version",
    "endingTimestamp": "end_timestamp",
}
"""Options of delta-spark whose argument here is not simply the snake_case spelling."""


def named_arguments(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function so that an unknown keyword argument raises an error with a suggestion."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        for name in kwargs:
            if name not in known:
                raise DeltaError.of(
                    "DELTA_UNKNOWN_ARGUMENT",
                    function=function.__name__,
                    argument=name,
                    suggestion=_suggestion(name, [*known]),
                )
        return function(*args, **kwargs)

    return checked


def _suggestion(name: str, known: Sequence[str]) -> str:
    argument = _OPTIONS.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    matches = [argument] if argument in known else difflib.get_close_matches(argument, known, n=1)
    return f"Use {matches[0]}" if matches else f"Its arguments are {', '.join(known)}"


def _of_type(argument: str, kind: str, value: object) -> InvalidArgumentError:
    problem = f"{argument} needs to be {kind} but got '{type(value)}': {value!r}"
    return InvalidArgumentError(argument=argument, problem=problem)


def checked_version(version: int | None, argument: str = "version") -> Version | None:
    """Return a table version, or None."""
    if version is not None and type(version) is not int:
        raise _of_type(argument, "an int", version)
    return version


def checked_count(count: int | None, argument: str, *, least: int = 1) -> int | None:
    """Return an integer of at least `least`, or None."""
    if count is not None and (type(count) is not int or count < least):
        problem = f"it must be an integer of at least {least}, not {count!r}"
        raise InvalidArgumentError(argument=argument, problem=problem)
    return count


def checked_number(
    number: float | None, argument: str, *, above: float | None = None
) -> float | None:
    """Return a number, greater than `above` if it is set, or None."""
    if number is None:
        return None
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    if not is_number or math.isnan(number) or (above is not None and number <= above):
        wanted = "a number" if above is None else f"a number greater than {above:g}"
        raise InvalidArgumentError(
            argument=argument, problem=f"it must be {wanted}, not {number!r}"
        )
    return number


def checked_text(text: str | None, argument: str) -> str | None:
    """Return a string, or None."""
    if text is not None and not isinstance(text, str):
        raise _of_type(argument, "a string", text)
    return text


def checked_flag(flag: bool, argument: str) -> bool:  # noqa: FBT001 - the value to check
    """Return a boolean. Strings are refused, because "false" would be truthy."""
    if not isinstance(flag, bool):
        raise _of_type(argument, "a boolean", flag)
    return flag


def checked_choice(choice: str, argument: str, choices: Sequence[str]) -> str:
    """Return a string that is one of `choices`."""
    if choice not in choices:
        problem = f"{choice!r} is not one of {', '.join(choices)}"
        raise InvalidArgumentError(argument=argument, problem=problem)
    return choice


def checked_path(path: str | os.PathLike[str], argument: str = "path") -> str:
    """Return a path as a string."""
    found = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(found, str) or not found or "\0" in found:
        raise InvalidArgumentError(argument=argument, problem=f"{path!r} is not a path")
    return found


def checked_names(names: Sequence[str] | None, argument: str) -> tuple[str, ...] | None:
    """Return column names as a tuple, or None; a single string is refused."""
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        problem = f"{names!r} is not a list of names; pass ['name'] even for a single name"
        raise InvalidArgumentError(argument=argument, problem=problem)
    return tuple(names)
