"""Incremental checkpoints hold what full ones hold, over random histories."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.operations.checkpoint.checkpoint_options import CheckpointOptions
from sparkdelta.operations.checkpoint.checkpoint_writing import checkpoint_table
from tests.support.log_writer import Action, log_directory, write_commit
from tests.support.reference_model import FileKey, replay
from tests.support.snapshots import expected, replayed
from tests.support.table_builder import add, field, metadata, protocol, removal_of

VERSIONS = 13
EVERY = 4
NOW = 1_700_000_000_000
DAY = 24 * 3_600_000
DAYS = ["2024-01-01", "2024-01-02", "2024-01-03", None]
COLUMNS = [field("id", "integer"), field("day", "date")]


def history(random: Random) -> dict[int, list[Action]]:
    """Files of a few days: added, removed, given deletion vectors, added again; statistics that
    come and go; removes with partition values and without.
    """
    opening = [
        protocol(features=["v2Checkpoint", "deletionVectors", "domainMetadata"]),
        metadata(*COLUMNS, partitioned_by=["day"]),
    ]
    live: dict[str, Action] = {}
    gone: list[Action] = []
    commits = {0: [*opening, *(_added(random, live) for _ in range(60))]}
    for version in range(1, VERSIONS):
        commit = [_added(random, live) for _ in range(random.choice([0, 1, 3, 12]))]
        for path in random.sample(sorted(live), random.choice([0, 0, 1, 2])):
            if _speaks_of(commit, path):
                continue
            commit += _changed(random, live, gone, path)
        if gone and random.random() < 0.5:  # a file comes back
            back = gone.pop(random.randrange(len(gone)))
            if back["add"]["path"] not in live and not _speaks_of(commit, back["add"]["path"]):
                live[back["add"]["path"]] = back
                commit.append(back)
        if random.random() < 0.3:
            commit.append({"txn": {"appId": random.choice("xy"), "version": version}})
        if random.random() < 0.3:
            domain = {"domain": random.choice("de"), "configuration": "", "removed": True}
            if random.random() < 0.5:
                domain |= {"configuration": str(version), "removed": False}
            commit.append({"domainMetadata": domain})
        commits[version] = commit or [{"commitInfo": {"operation": "nothing"}}]
    return commits


def _speaks_of(commit: list[Action], path: str) -> bool:
    return any((a.get("add") or a.get("remove") or {}).get("path") == path for a in commit)


def _added(random: Random, live: dict[str, Action]) -> Action:
    path = f"f{random.getrandbits(40)}"
    number = random.randrange(100)
    stats = {"numRecords": 1, "minValues": {"id": number}, "maxValues": {"id": number + 9}}
    live[path] = add(
        path,
        partitionValues={"day": random.choice(DAYS)},
        **({"stats": json.dumps(stats)} if random.random() < 0.9 else {}),
    )
    return live[path]


def _changed(
    random: Random, live: dict[str, Action], gone: list[Action], path: str
) -> list[Action]:
    old = live.pop(path)
    told = {"partitionValues": old["add"]["partitionValues"]} if random.random() < 0.7 else {}
    time = NOW - random.choice([0, 3, 8]) * DAY + random.randrange(1_000)
    removed = removal_of(old, deletionTimestamp=time, **told)
    if random.random() < 0.6:
        gone.append(old)
        return [removed]
    vector = {
        "storageType": "u", "pathOrInlineDv": f"v{random.getrandbits(20)}", "offset": 1,
        "sizeInBytes": 1, "cardinality": 1,
    }  # fmt: skip
    live[path] = {"add": {**old["add"], "deletionVector": vector}}
    return [removed, live[path]]


def actions(spark: SparkSession, table: Path) -> tuple[set[str], set[str], list[str]]:
    """The adds and removes of the checkpoint in use, as text, and what its state is otherwise."""
    snapshot = load_snapshot(spark, str(table))
    kinds: dict[str, list[str]] = {"add": [], "remove": []}
    for sidecar in snapshot.log.sidecars:
        file = log_directory(table) / "_sidecars" / sidecar.path
        for row in pq.read_table(file).to_pylist():
            ((kind, fields),) = ((k, v) for k, v in row.items() if v is not None)
            kinds[kind].append(json.dumps(fields, default=str, sort_keys=True))
    assert all(len(found) == len(set(found)) for found in kinds.values())
    state = replayed(snapshot)
    others = [str(state[name]) for name in ("transactions", "domains", "id", "reader")]
    return set(kinds["add"]), set(kinds["remove"]), others


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_incremental_checkpoints_are_full_ones(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """An incremental checkpoint is the same set of actions as a full one, except for partly expired
    sidecars of tombstones.
    """
    random = Random(seed)
    commits = history(random)
    table, other = tmp_path / "incremental", tmp_path / "full"
    reused = expired = cancelled = 0
    last: set[FileKey] = set()
    for version, commit in commits.items():
        for path in (table, other):
            write_commit(path, version, commit)
        if version % EVERY:
            continue
        now_ms = NOW + version * DAY // 2
        options = CheckpointOptions(kind="v2-json", adds_per_sidecar=6)
        with engine_of(spark).log_session() as session:
            written = checkpoint_table(session, str(table), options, now_ms=now_ms)
        reused += written.num_reused_sidecars
        full = CheckpointOptions(kind="v2-parquet", incremental=False, adds_per_sidecar=6)
        with engine_of(spark).log_session() as session:
            checkpoint_table(session, str(other), full, now_ms=now_ms)
        found, wanted = actions(spark, table), actions(spark, other)
        assert found[0] == wanted[0]
        assert wanted[1] <= found[1], "no tombstone is lost"
        carried = [json.loads(text) for text in found[1] - wanted[1]]
        assert all(one["deletionTimestamp"] <= now_ms - 7 * DAY for one in carried)
        assert found[2] == wanted[2]
        state = expected(replay(commits, until=version))
        files = replayed(load_snapshot(spark, str(table)))
        assert files["adds"] == state["adds"]
        known, removes = set(state["removes"]), set(files["removes"])
        assert removes <= known, "no add has cancelled one"
        expired += len(carried)
        cancelled += len(last - known)
        last = removes
    assert min(reused, expired, cancelled) > 0, "the test would show nothing"
    shutil.rmtree(table)
