"""Inputs made by hypothesis, all at once: so that one Spark job evaluates them all."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def drawn(strategy: SearchStrategy[T], count: int) -> list[T]:
    """Up to so many different examples, the same in every run."""
    found: list[T] = []

    @settings(
        max_examples=count, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def note(example: T) -> None:
        found.append(example)

    note()
    return found
