"""Errors that tests expect, by their condition or their class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sparkdelta.exceptions import DeltaError


def is_error(error: BaseException | None, expected: str | type[BaseException]) -> bool:
    """Return True if an error is of a class, or a `DeltaError` of a condition."""
    if isinstance(expected, str):
        return isinstance(error, DeltaError) and error.error_class == expected
    return isinstance(error, expected)


@contextmanager
def raises(*expected: str | type[Exception], match: str | None = None) -> Iterator[Any]:
    """Assert that an error is raised: one of these classes, or a `DeltaError` of a condition."""
    classes = tuple(DeltaError if isinstance(error, str) else error for error in expected)
    with pytest.raises(classes, match=match) as raised:
        yield raised
    assert any(is_error(raised.value, error) for error in expected), raised.value
