"""Tests of the files that metadata cleanup deletes, against the five steps in the protocol's text.

PROTOCOL.md#metadata-cleanup
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.base.protocol.log_files import (
    LogFile,
    LogFileKind,
    classic_checkpoint_name,
    commit_name,
    compaction_name,
    parse_log_file,
    version_checksum_name,
)
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.upkeep.metadata_cleanup_rules import (
    DAY_MS,
    cutoff_checkpoints,
    cutoff_time,
    expired_files,
    expired_staged_commits,
    is_abandoned,
)
from sparkdelta.table.listing.log_segment_rules import select_log_segment

UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


def part(version: int, number: int, count: int) -> str:
    return f"{version:020d}.checkpoint.{number:010d}.{count:010d}.parquet"


def uuid_checkpoint(version: int) -> str:
    return f"{version:020d}.checkpoint.{UUID}.json"


def parsed(names: Sequence[str]) -> list[LogFile]:
    files = [parse_log_file(name) for name in names]
    assert None not in files
    return files  # type: ignore[return-value]


VERSIONS = range(9)
LOGS = st.builds(
    lambda first, checksums, classic, uuids, parts, compactions: [
        *(commit_name(v) for v in VERSIONS if v >= first),
        *(version_checksum_name(v) for v in checksums),
        *(classic_checkpoint_name(v) for v in {*classic, *([first - 1] if first else [])}),
        *(uuid_checkpoint(v) for v in uuids),
        *(part(v, n, 2) for v, n in parts),
        *(compaction_name(a, b) for a, b in compactions if a < b),
    ],
    first=st.integers(0, 3),
    checksums=st.sets(st.sampled_from(VERSIONS)),
    classic=st.sets(st.sampled_from(VERSIONS), max_size=3),
    uuids=st.sets(st.sampled_from(VERSIONS), max_size=2),
    parts=st.sets(st.tuples(st.sampled_from(VERSIONS), st.integers(1, 2)), max_size=5),
    compactions=st.sets(
        st.tuples(st.sampled_from(VERSIONS), st.sampled_from(VERSIONS)), max_size=3
    ),
)


def by_the_text(names: Sequence[str], cutoff: int) -> set[str]:
    """Steps 2 and 3, with names alone."""
    complete = {
        v
        for v in VERSIONS
        if classic_checkpoint_name(v) in names
        or uuid_checkpoint(v) in names
        or {part(v, 1, 2), part(v, 2, 2)} <= set(names)
    }
    candidates = [v for v in complete if v <= cutoff]
    if not candidates:
        return set()
    checkpoint = max(candidates)
    return {
        name
        for name in names
        if int(name[:20]) < checkpoint
        or (name.endswith(".compacted.json") and int(name[:20]) <= checkpoint)
    }


def plan(names: Sequence[str], cutoff: int) -> list[str]:
    checkpoints = cutoff_checkpoints(parsed(names), cutoff)
    if not checkpoints:
        return []
    return [file.name for file in expired_files(parsed(names), checkpoints[0].version)]


def readable(names: Sequence[str], version: int) -> bool:
    try:
        select_log_segment(parsed(names), path="/t", version=version)
    except DeltaError:
        return False
    return True


@given(LOGS, st.sampled_from(VERSIONS))
def test_it_is_what_the_text_says(names: list[str], cutoff: int) -> None:
    assert set(plan(names, cutoff)) == by_the_text(names, cutoff)


@given(LOGS, st.sampled_from(VERSIONS), st.data())
def test_interrupted_cleanup_keeps_all_retained_versions(
    names: list[str], cutoff: int, data: st.DataObject
) -> None:
    """The cutoffCommit and all versions after it can be read as before."""
    deleted = plan(names, cutoff)
    left = set(names) - set(deleted[: data.draw(st.integers(0, len(deleted)))])
    for version in range(cutoff, len(VERSIONS)):
        assert readable(sorted(left), version) == readable(names, version)
    assert left >= {name for name in map(commit_name, range(cutoff, 9)) if name in names}


@given(LOGS, st.sampled_from(VERSIONS))
def test_nothing_goes_without_a_complete_checkpoint(names: list[str], cutoff: int) -> None:
    kinds = [file.kind for file in parsed(names) if file.version <= cutoff]
    if not any(kind.is_checkpoint for kind in kinds):
        assert plan(names, cutoff) == []


def test_the_commit_of_the_checkpoint_stays() -> None:
    """The commit is kept because it alone has the in-commit timestamp."""
    names = [*map(commit_name, range(5)), classic_checkpoint_name(3), version_checksum_name(3)]
    assert plan(names, 4) == [commit_name(0), commit_name(1), commit_name(2)]


def test_checksums_compactions_and_older_checkpoints_go() -> None:
    names = [
        *map(commit_name, range(7)), *map(version_checksum_name, range(7)),
        classic_checkpoint_name(2), uuid_checkpoint(1), part(2, 1, 2), classic_checkpoint_name(4),
        classic_checkpoint_name(6), compaction_name(0, 3), compaction_name(4, 6),
        compaction_name(5, 6),
    ]  # fmt: skip
    kept = set(names) - set(plan(names, 5))
    assert kept == {
        *map(commit_name, range(4, 7)), *map(version_checksum_name, range(4, 7)),
        classic_checkpoint_name(4), classic_checkpoint_name(6), compaction_name(5, 6),
    }  # fmt: skip


def test_a_checkpoint_with_a_part_missing_is_none() -> None:
    names = [*map(commit_name, range(5)), part(3, 1, 2)]
    assert plan(names, 4) == []
    assert plan([*names, part(3, 2, 2)], 4)


def test_compactions_go_first_and_commits_before_checkpoints() -> None:
    names = [*map(commit_name, range(6)), classic_checkpoint_name(2), classic_checkpoint_name(5),
             compaction_name(0, 4), version_checksum_name(2)]  # fmt: skip
    order = [(file.kind, file.version) for file in parsed(plan(names, 5))]
    assert order == [
        (LogFileKind.COMPACTION, 0), (LogFileKind.COMMIT, 0), (LogFileKind.COMMIT, 1),
        (LogFileKind.COMMIT, 2), (LogFileKind.VERSION_CHECKSUM, 2),
        (LogFileKind.CLASSIC_CHECKPOINT, 2), (LogFileKind.COMMIT, 3), (LogFileKind.COMMIT, 4),
    ]  # fmt: skip


def test_staged_commits() -> None:
    names = [f"{v:020d}.{UUID}.json" for v in range(5)]
    assert expired_staged_commits([*names, "x", f"{1:020d}.json"], 3) == names[:4]


def moment(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1000)


def test_the_cutoff_is_midnight_utc() -> None:
    now = moment("2026-03-20T15:30:00")
    assert cutoff_time(now, 7 * DAY_MS) == moment("2026-03-13T00:00:00")
    assert cutoff_time(now, 16 * 3_600_000) == moment("2026-03-19T00:00:00")


@pytest.mark.parametrize(
    ("written", "is_old"),
    [
        ("2026-03-18T23:59:59", True),
        ("2026-03-19T00:00:00", True),
        ("2026-03-19T00:00:01", False),
        ("2026-03-20T12:00:00", False),
    ],
)
def test_sidecars_less_than_a_day_old_as_of_midnight_stay(written: str, is_old: bool) -> None:
    for time in ("00:00:00", "15:30:00", "23:59:59"):
        assert is_abandoned(moment(written), moment(f"2026-03-20T{time}")) == is_old
