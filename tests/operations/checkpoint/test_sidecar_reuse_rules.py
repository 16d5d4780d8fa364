"""Tests of the choice of sidecars that a checkpoint takes over; their number stays bounded."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from random import Random

import pytest

from sparkdelta.base.protocol.actions import Sidecar
from sparkdelta.operations.checkpoint.sidecar_reuse_rules import MAX_SMALL, KnownSidecars, Reuse
from sparkdelta.table.checkpoint.sidecar_tag_rules import SidecarTags

USUAL = 100
NOW = 1_000


def adds(name: str, count: int, *, removes: int = 0, fingerprint: str = "f") -> Sidecar:
    tags = SidecarTags(
        num_adds=count,
        num_removes=removes,
        fingerprint=fingerprint,
        first_deletion=NOW if removes else None,
        last_deletion=NOW if removes else None,
    )
    return Sidecar(name, tags=tags.as_tags())


def removes(name: str, first: int, last: int, count: int = USUAL) -> Sidecar:
    tags = SidecarTags(
        num_adds=0, num_removes=count, fingerprint="f", first_deletion=first, last_deletion=last
    )
    return Sidecar(name, tags=tags.as_tags())


def plan(sidecars: Iterable[Sidecar], *touched: str, expired_at: int = 0) -> Reuse | None:
    known = KnownSidecars.of(tuple(sidecars), fingerprint="f", expired_at_ms=expired_at)
    return known.reuse(touched, adds_per_sidecar=USUAL, removes_per_sidecar=USUAL)


def names(sidecars: Iterable[Sidecar]) -> list[str]:
    return sorted(one.path for one in sidecars)


def test_untouched_sidecars_are_kept() -> None:
    found = plan([adds("a", 100), adds("b", 90), adds("c", 100)], "b")
    assert found is not None
    assert names(found.reused) == ["a", "c"]
    assert names(found.rewritten) == ["b"]
    assert found.num_adds == 200


@pytest.mark.parametrize(
    "other",
    [
        Sidecar("x"),
        adds("x", 5, fingerprint="of another schema"),
        adds("x", 5, removes=5),
        Sidecar("x", tags={"sparkdelta.numAdds": "5"}),
    ],
)
def test_sidecars_of_other_writers_are_rewritten(other: Sidecar) -> None:
    found = plan([adds("a", 100), other])
    assert found is not None
    assert names(found.reused) == ["a"]
    assert names(found.rewritten) == ["x"]


def test_expired_tombstones_are_dropped_without_a_look() -> None:
    """PROTOCOL.md#checkpoints"""
    sidecars = [
        adds("a", 100),
        removes("old", 1, 500),
        removes("partly", 400, 501),
        removes("new", 600, 700),
    ]
    found = plan(sidecars, expired_at=500)
    assert found is not None
    assert names(found.reused) == ["a", "new", "partly"]
    assert found.rewritten == ()
    assert found.num_removes == 2 * USUAL
    found = plan(sidecars, "partly", expired_at=500)
    assert found is not None
    assert names(found.rewritten) == ["partly"]


def test_a_few_small_ones_are_kept_and_many_are_merged() -> None:
    large, small = [adds("a", 1_000)], [adds(f"s{n}", 49) for n in range(MAX_SMALL)]
    found = plan([*large, *small])
    assert found is not None
    assert found.rewritten == ()
    found = plan([*large, *small, adds("t", 49), adds("half", 50)])
    assert found is not None
    assert names(found.reused) == ["a", "half"]
    assert len(found.rewritten) == MAX_SMALL + 1


def test_a_full_checkpoint_where_most_would_be_rewritten() -> None:
    sidecars = [adds("a", 100), adds("b", 100), adds("c", 100)]
    assert plan(sidecars, "a") is not None
    assert plan(sidecars, "a", "b") is None
    assert plan(sidecars, "a", "b", "c") is None
    assert plan([]) is None
    assert plan([Sidecar("x")]) is None


@pytest.mark.parametrize("seed", range(3))
def test_five_hundred_checkpoints(seed: int) -> None:
    """Commits that add, that remove anywhere, that remove a range; sidecars of whole ranges."""
    random = Random(seed)
    live = set(range(5_000))
    held = _written(sorted(live))
    bytes_written = 0
    for number in range(500):
        new = {10_000 * (number + 1) + n for n in range(random.choice([0, 1, 10, 150]))}
        gone = set(random.sample(sorted(live), random.choice([0, 1, 2, 5])))
        if random.random() < 0.1:
            first = random.randrange(len(live))
            gone |= set(sorted(live)[first : first + 300])
        if random.random() < 0.02:  # most of the table is deleted
            gone |= set(random.sample(sorted(live), len(live) * 2 // 3))
        sidecars = [adds(name, len(files)) for name, files in held.items()]
        touched = [name for name, files in held.items() if files & gone]
        reuse = plan(sidecars, *touched)
        kept = {} if reuse is None else {one.path: held[one.path] for one in reuse.reused}
        live = (live - gone) | new
        again = sorted(live - {file for files in kept.values() for file in files})
        just_written = _written(again)
        bytes_written += len(again)
        held = {**kept, **just_written}
        assert sum(len(files) for files in held.values()) == len(live)
        assert {file for files in held.values() for file in files} == live
        assert len(held) <= 2 * len(live) / USUAL + MAX_SMALL + len(just_written)
        small = [files for name, files in held.items() if 2 * len(files) < USUAL]
        assert len([files for files in small if files not in just_written.values()]) <= MAX_SMALL
    assert bytes_written > 0


def _written(files: list[int]) -> dict[str, set[int]]:
    count = -(-len(files) // USUAL)
    size = -(-len(files) // count) if count else 0
    parts = [set(files[n * size : (n + 1) * size]) for n in range(count)]
    return {str(uuid.uuid4()): part for part in parts if part}
