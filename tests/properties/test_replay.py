"""Random valid histories: our frames and the reference model say the same of every one.

A Spark job costs more than a history, so each example lays many histories, each under a prefix of
its own, over the versions of one table.

References
----------
PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from sparkdelta import compact_log, load_snapshot
from sparkdelta.table.listing import line_reader as log_text
from tests.support.log_writer import (
    Action,
    write_checkpoint,
    write_commit,
    write_compaction,
    write_parts,
    write_v2_checkpoint,
)
from tests.support.reference_model import State, compaction, replay
from tests.support.snapshots import expected, replayed
from tests.support.table_builder import add, metadata, protocol, remove

_COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("dev", max_examples=4, phases=[Phase.explicit, Phase.generate], **_COMMON)
settings.register_profile("ci", max_examples=15, **_COMMON)
settings.register_profile("nightly", max_examples=500, **_COMMON)
# Not loaded: that would be for every test that is collected after this one.
PROFILE = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

VERSIONS = 6
HISTORIES = 100
SPELLINGS = {
    "f": ["f"],
    "g h": ["g%20h", "g h"],
    "i+j": ["i+j", "i%2Bj"],
    "/abs/k": ["/abs/k", "file:/abs/k", "file:///abs/k"],
}
FEATURES = ["deletionVectors", "v2Checkpoint", "domainMetadata"]


def history(random: Random, *, removes_all: bool) -> dict[int, list[Action]]:
    """A valid history: a remove is of a live logical file, and a re-add follows its remove.

    What the protocol forbids inside one commit but real tables have is in it too: an add with the
    remove of the same logical file, and equal adds.

    Parameters
    ----------
    removes_all
        Whether each commit removes what it replaces. A writer that leaves that out breaks a rule
        that readers survive, but no compaction: one of such an add and its later remove can hold
        the remove alone, which says nothing of what the add had replaced.
    """
    live: dict[str, str | None] = {}
    commits: dict[int, list[Action]] = {}
    for version in range(VERSIONS):
        commit: list[Action] = []
        for name in random.sample(sorted(SPELLINGS), random.randint(0, 3)):
            commit += _change(random, name, live, removes_all=removes_all)
        if random.random() < 0.25:
            app = random.choice(["x", "y"])
            commit.append({"txn": {"appId": app, "version": random.randint(0, 9)}})
        if random.random() < 0.25:
            removed = random.random() < 0.5
            domain = {"domain": random.choice(["d", "e"]), "removed": removed}
            domain["configuration"] = "" if removed else str(version)
            commit.append({"domainMetadata": domain})
        random.shuffle(commit)
        commits[version] = commit
    return commits


def _change(
    random: Random, name: str, live: dict[str, str | None], *, removes_all: bool
) -> list[Action]:
    def spelled() -> str:
        return random.choice(SPELLINGS[name])

    vector = random.choice([None, "v", "w"])
    if name not in live:
        live[name] = vector
        return [_file(add, spelled(), vector)] * random.randint(1, 2)
    old = live[name]
    gone = _file(remove, spelled(), old)
    how = random.choice(["remove", "replace", "again", "remove and add"])
    if how == "remove":
        del live[name]
        return [gone]
    if how == "again":  # as when statistics are computed: the same logical file, no remove
        return [_file(add, spelled(), old)]
    if how == "remove and add":
        return [gone, _file(add, spelled(), old)]
    live[name] = vector
    new = _file(add, spelled(), vector)
    return [new] if not removes_all and random.random() < 0.1 else [gone, new]


def _file(action: Any, path: str, vector: str | None) -> Action:
    if vector is None:
        return action(path)
    descriptor = {
        "storageType": "u", "pathOrInlineDv": vector, "offset": 1, "sizeInBytes": 1,
        "cardinality": 1,
    }  # fmt: skip
    return action(path, deletionVector=descriptor)


def _laid_over(many: list[dict[int, list[Action]]]) -> dict[int, list[Action]]:
    """One history of all: paths, applications and domains get the number of theirs."""
    start = [protocol(features=FEATURES), metadata()]
    commits: dict[int, list[Action]] = {version: [] for version in range(VERSIONS)}
    commits[0] += start
    for number, history in enumerate(many):
        for version, commit in history.items():
            commits[version] += [_numbered(action, number) for action in commit]
    return commits


def _numbered(action: Action, number: int) -> Action:
    ((kind, fields),) = action.items()
    for key in ("appId", "domain"):
        if key in fields:
            return {kind: {**fields, key: f"{number}-{fields[key]}"}}
    directory, slash, name = fields["path"].rpartition("/")
    return {kind: {**fields, "path": f"{directory}{slash}{number}-{name}"}}


@contextmanager
def _table_of(commits: dict[int, list[Action]]) -> Iterator[Path]:
    """Write commits to a table that is there for a block."""
    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory) / "table"
        for version, commit in commits.items():
            write_commit(table, version, commit)
        yield table


def _write_checkpoint(table: Path, version: int, kind: str, state: State) -> None:
    actions, files = state.checkpoint(), state.file_actions()
    half = len(files) // 2
    if kind == "classic":
        write_checkpoint(table, version, actions)
    elif kind == "parts":
        write_parts(table, version, [actions[:half], actions[half:]])
    else:
        sidecars = [files[:half], files[half:]]
        write_v2_checkpoint(
            table, version, state.table_actions(), sidecars=sidecars, as_json=kind == "json"
        )


def _assert_equal(many: list[dict[int, list[Action]]], found: Any, wanted: Any) -> None:
    """Show one of the histories that came out wrong, not all of them."""
    if found == wanted:
        return
    for part in ("adds", "removes", "transactions", "domains"):
        wrong = found[part] != wanted[part] and {*found[part]} ^ {*wanted[part]}
        for key, *_ in sorted(wrong or ()):
            number = re.search(r"(\d+)-[^/]*$", key)
            if number is not None:
                shown = json.dumps(many[int(number[1])], indent=1)
                raise AssertionError(f"{part} of {key} is wrong in {shown}")
    assert found == wanted


@settings(parent=PROFILE)
@given(
    seed=st.integers(0, 1 << 64),
    checkpoint=st.one_of(st.none(), st.integers(0, VERSIONS - 1)),
    kind=st.sampled_from(["classic", "parts", "json", "parquet"]),
    compacted=st.one_of(
        st.none(), st.tuples(st.integers(0, VERSIONS - 1), st.integers(0, VERSIONS - 1))
    ),
    by_us=st.booleans(),
    version=st.integers(0, VERSIONS - 1),
    on_driver=st.booleans(),
)
def test_frames_replay_as_the_model_does(
    spark: SparkSession,
    seed: int,
    checkpoint: int | None,
    kind: str,
    compacted: tuple[int, int] | None,
    by_us: bool,
    version: int,
    on_driver: bool,
) -> None:
    random = Random(seed)
    many = [history(random, removes_all=compacted is not None) for _ in range(HISTORIES)]
    commits = _laid_over(many)
    with _table_of(commits) as table:
        if checkpoint is not None:
            _write_checkpoint(table, checkpoint, kind, replay(commits, until=checkpoint))
        if compacted is not None and compacted[0] < compacted[1]:
            first, last = compacted
            if by_us:
                assert compact_log(spark, str(table), start=first, end=last).written
            else:
                merged = compaction([commits[v] for v in range(first, last + 1)])
                write_compaction(table, first, last, merged)
        with pytest.MonkeyPatch.context() as patch:
            for bound in ("DRIVER_LOG_BYTES", "DRIVER_SCAN_BYTES"):
                patch.setattr(log_text, bound, 1 << 40 if on_driver else -1)
            snapshot = load_snapshot(spark, str(table), version=version)
            _assert_equal(many, replayed(snapshot), expected(replay(commits, until=version)))


@pytest.mark.full
@settings(parent=PROFILE)
@given(
    seed=st.integers(0, 1 << 64),
    kind=st.sampled_from(["classic", "parts", "json", "parquet"]),
    on_driver=st.booleans(),
)
def test_tails_that_name_each_file_once(
    spark: SparkSession, seed: int, kind: str, on_driver: bool
) -> None:
    """The driver reads paths of such commits from their text; the state is that of the model."""
    random = Random(seed)
    many = [history(random, removes_all=False) for _ in range(HISTORIES)]
    commits = _laid_over(many)
    state = replay(commits, until=VERSIONS - 1)
    live = {fields["path"]: fields.get("deletionVector") for fields in state.adds.values()}
    for version in (VERSIONS, VERSIONS + 1):
        commits[version] = []
    for number in range(HISTORIES):
        for name in ("f", "g h", "i+j", "new"):
            path = f"{number}-{name}"
            actions = [add(path)] if live.get(path) else [add(path), remove(path)]
            tail = commits[random.choice((VERSIONS, VERSIONS + 1))]
            tail += random.sample(actions, random.randint(0, 1))
    with _table_of(commits) as table:
        _write_checkpoint(table, VERSIONS - 1, kind, state)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(log_text, "DRIVER_LOG_BYTES", 1 << 40 if on_driver else -1)
            snapshot = load_snapshot(spark, str(table))
            assert snapshot.log.commits.distinct_files is not None
            wanted = expected(replay(commits, until=VERSIONS + 1))
            _assert_equal(many, replayed(snapshot), wanted)
