"""Action Reconciliation, rule by rule, and the shape of its plan."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.table.log.reconciliation_frames import (
    contradicting_commits,
    keyed_file_actions,
    newest_adds,
    newest_by_key,
    newest_file_actions,
    newest_removes,
    superseding_files,
    superseding_keys,
    surviving_actions,
    surviving_actions_by_path,
)
from tests.support.frame_inputs import ROOT, Commits
from tests.support.settings import settings
from tests.support.spark_jobs import no_jobs, plan
from tests.support.table_builder import add, remove

Actions = Callable[[Commits], DataFrame]


def vector(name: str, offset: int | None = None) -> dict[str, Any]:
    """A deletion vector, by name only."""
    known = {} if offset is None else {"offset": offset}
    return {
        "storageType": "u", "pathOrInlineDv": name, "sizeInBytes": 1, "cardinality": 1, **known,
    }  # fmt: skip


def shown(frame: DataFrame) -> list[str]:
    """path, or path#vector@offset."""
    found = []
    for row in frame.select("path", "deletionVector").collect():
        dv = row["deletionVector"]
        offset = "" if dv is None or dv["offset"] is None else f"@{dv['offset']}"
        found.append(row["path"] + ("" if dv is None else f"#{dv['pathOrInlineDv']}{offset}"))
    return sorted(found)


def keyed(frame: DataFrame) -> DataFrame:
    return keyed_file_actions(frame, table_root=ROOT, is_local=False)


def live(frame: DataFrame) -> list[str]:
    return shown(newest_adds(newest_file_actions(keyed(frame))))


def tombstones(frame: DataFrame) -> list[str]:
    return shown(newest_removes(newest_file_actions(keyed(frame))))


V, W = vector("v"), vector("w")

COMMITS: dict[str, tuple[Commits, list[str], list[str]]] = {
    "an add is live": ({0: [add("a")]}, ["a"], []),
    "a remove is a tombstone": ({0: [add("a")], 1: [remove("a")]}, [], ["a"]),
    "a file may come back": ({0: [add("a")], 1: [remove("a")], 2: [add("a")]}, ["a"], []),
    "a remove of what was never added": ({0: [remove("a")]}, [], ["a"]),
    "the key is path and vector": (
        {0: [add("a")], 1: [remove("a"), add("a", deletionVector=V)]}, ["a#v"], ["a"],
    ),
    "one vector replaces another": (
        {0: [add("a", deletionVector=V)],
         1: [remove("a", deletionVector=V), add("a", deletionVector=W)]}, ["a#w"], ["a#v"],
    ),
    "a vector may go": (
        {0: [add("a", deletionVector=V)], 1: [remove("a", deletionVector=V), add("a")]},
        ["a"], ["a#v"],
    ),
    "the offset is part of the key": (
        {0: [add("a", deletionVector=vector("v", 1))],
         1: [remove("a", deletionVector=vector("v", 1)), add("a", deletionVector=vector("v", 9))]},
        ["a#v@9"], ["a#v@1"],
    ),
    "a remove of another vector removes nothing": (
        {0: [add("a", deletionVector=V)], 1: [remove("a", deletionVector=W)]}, ["a#v"], ["a#w"],
    ),
    "the newest add of a path wins": (
        {0: [add("a")], 1: [add("a", deletionVector=V)]}, ["a#v"], [],
    ),
    "and what it replaced does not come back with its end": (
        {0: [add("a")], 1: [add("a", deletionVector=V)], 2: [remove("a", deletionVector=V)]},
        [], ["a#v"],
    ),
    "the add wins in one commit": ({0: [remove("a"), add("a")]}, ["a"], []),
    "in any order": ({0: [add("a"), remove("a")]}, ["a"], []),
    "equal adds of one commit count once": ({0: [add("a"), add("a")]}, ["a"], []),
    "equal adds of two commits count once": ({0: [add("a")], 1: [add("a")]}, ["a"], []),
    "spellings of one path are one file": (
        {0: [add("/t/x%20y")], 1: [remove("file:///t/x%20y")]}, [], ["file:///t/x%20y"],
    ),
    "of relative paths too": ({0: [add("x%3Dy")], 1: [remove("x=y")]}, [], ["x=y"]),
    "a plus is a plus": (
        {0: [add("x+y"), add("x%20y")], 1: [remove("x%2By")]}, ["x%20y"], ["x%2By"],
    ),
    "case matters": ({0: [add("a")], 1: [remove("A")]}, ["a"], ["A"]),
}  # fmt: skip


RULES = list(COMMITS)
States = dict[str, tuple[list[str], list[str]]]


def _of_rule(number: int, path: str) -> str:
    """The path in a place of its own, so that all rules run in one job."""
    return f"{path[: path.rindex('/') + 1]}rule{number}-{path[path.rindex('/') + 1 :]}" if (
        "/" in path
    ) else f"rule{number}-{path}"  # fmt: skip


def _everything(from_version: int = 0, to_version: int = 9) -> Commits:
    commits: dict[int, list[Any]] = {}
    for number, (rule, _, _) in enumerate(COMMITS.values()):
        for version, commit in rule.items():
            if from_version <= version <= to_version:
                for ((kind, fields),) in (action.items() for action in commit):
                    renamed = {kind: {**fields, "path": _of_rule(number, fields["path"])}}
                    commits.setdefault(version, []).append(renamed)
    return commits


def _by_rule(adds: list[str], removes: list[str]) -> States:
    return {
        rule: (
            sorted(name.replace(f"rule{n}-", "") for name in adds if f"rule{n}-" in name),
            sorted(name.replace(f"rule{n}-", "") for name in removes if f"rule{n}-" in name),
        )
        for n, rule in enumerate(RULES)
    }


EXPECTED: States = {rule: (adds, removes) for rule, (_, adds, removes) in COMMITS.items()}


def test_file_actions_of_commits(actions: Actions) -> None:
    """PROTOCOL.md#action-reconciliation"""
    newest = newest_file_actions(keyed(actions(_everything())))
    assert _by_rule(shown(newest_adds(newest)), shown(newest_removes(newest))) == EXPECTED


def test_order_and_partitioning_of_lines_do_not_matter(actions: Actions) -> None:
    frame = actions(_everything()).repartition(5).orderBy(F.rand(random.randint(0, 99)))
    newest = newest_file_actions(keyed(frame))
    assert _by_rule(shown(newest_adds(newest)), shown(newest_removes(newest))) == EXPECTED


@pytest.mark.parametrize("broadcast_keys", [True, False])
def test_a_checkpoint_in_between_changes_nothing(actions: Actions, broadcast_keys: bool) -> None:
    """The state of version 0 as a checkpoint, then the rest. PROTOCOL.md#checkpoints"""
    first = newest_file_actions(keyed(actions(_everything(0, 0))))
    later = keyed(actions(_everything(1)))
    keys, newest = superseding_keys(later), newest_file_actions(later)
    options = {"table_root": ROOT, "broadcast_keys": broadcast_keys}
    kept = surviving_actions(newest_adds(first), keys, are_adds=True, **options)
    gone = surviving_actions(newest_removes(first), keys, are_adds=False, **options)
    adds = shown(kept) + shown(newest_adds(newest))
    assert _by_rule(adds, shown(gone) + shown(newest_removes(newest))) == EXPECTED


@pytest.mark.parametrize("are_adds", [True, False])
def test_files_named_in_a_condition(spark: SparkSession, actions: Actions, are_adds: bool) -> None:
    """The condition and the join keep the same actions. PROTOCOL.md#action-reconciliation"""
    names = ["a", "b%20c", "it's", 'q"q', "p=1/ü~😀", "\\n", "%", ""]
    stored = [add(name) for name in names] + [add(name, deletionVector=V) for name in names]
    stored += [add(f"{ROOT}/a"), add("/t/b%20c", deletionVector=W), add("kept")]
    checkpoint = actions({0: stored}).select("add.*")
    for added, removed in ((["a", "b c"], ["it's", 'q"q']), (["p=1/ü~😀"], []), ([], ["a", "b c"])):
        files = [(name, True) for name in added] + [(name, False) for name in removed]
        keys = superseding_files(spark.createDataFrame(files, "path STRING, is_add BOOLEAN"))
        joined = surviving_actions(
            checkpoint, keys, are_adds=are_adds, table_root=ROOT, broadcast_keys=True
        )
        filtered = surviving_actions_by_path(
            checkpoint, added=added, removed=removed, are_adds=are_adds, table_root=ROOT
        )
        assert len(stored) > len(shown(filtered)) > 0
        assert shown(filtered) == shown(joined)


def test_the_log_is_parsed_once_for_keys_and_actions(spark: SparkSession, actions: Actions) -> None:
    later = keyed(actions({1: [add("a"), remove("b")]}))
    checkpoint = newest_adds(newest_file_actions(keyed(actions({0: [add("b")]}))))
    keys = superseding_keys(later)
    kept = surviving_actions(checkpoint, keys, are_adds=True, table_root=ROOT, broadcast_keys=True)
    with settings(spark, {"spark.sql.adaptive.enabled": "false"}):
        nodes = plan(
            kept.select("path").union(newest_adds(newest_file_actions(later)).select("path"))
        )
    assert [node for node in nodes if node.name == "ReusedExchange"]


def test_the_newest_action_brings_its_own_fields(actions: Actions) -> None:
    frame = actions({3: [add("a", size=3)], 10: [add("a", size=10)], 9: [add("a", size=9)]})
    (row,) = newest_adds(newest_file_actions(keyed(frame))).collect()
    assert row["size"] == 10


def test_versions_with_an_add_and_a_remove_of_one_file(actions: Actions) -> None:
    """PROTOCOL.md#log-compaction-files"""
    frame = actions(
        {
            1: [add("a"), remove("b")],
            2: [add("a"), remove("a")],
            3: [add("a", deletionVector=V), remove("a")],
            4: [add("/t/a"), remove("file:/t/a")],
        }
    )
    doubled = contradicting_commits(frame, table_root=ROOT).collect()
    assert sorted(row["version"] for row in doubled) == [2, 4]


def test_newest_transaction_of_each_application(actions: Actions) -> None:
    """PROTOCOL.md#transaction-identifiers"""
    frame = actions(
        {
            0: [{"txn": {"appId": "a", "version": 9}}, {"txn": {"appId": "b", "version": 1}}],
            1: [{"txn": {"appId": "a", "version": 2, "lastUpdated": 5}}],
            2: [{"txn": {"appId": "A", "version": 3}}],
        }
    )
    found = newest_by_key(frame, action="txn", key="appId").collect()
    assert sorted(map(tuple, found)) == [("A", 3, None), ("a", 2, 5), ("b", 1, None)]


def test_newest_configuration_of_each_domain(actions: Actions) -> None:
    """PROTOCOL.md#domain-metadata"""
    frame = actions(
        {
            0: [{"domainMetadata": {"domain": "d", "configuration": "1", "removed": False}}],
            1: [{"domainMetadata": {"domain": "d", "configuration": "", "removed": True}}],
            2: [{"domainMetadata": {"domain": "e", "configuration": "2", "removed": False}}],
        }
    )
    found = newest_by_key(frame, action="domainMetadata", key="domain").collect()
    assert sorted(map(tuple, found)) == [("d", "", True), ("e", "2", False)]


def test_nothing_runs_when_frames_are_made(spark: SparkSession, actions: Actions) -> None:
    frame = actions({0: [add("a")]})
    with no_jobs(spark):
        newest = newest_file_actions(keyed(frame))
        newest_adds(newest)
        newest_removes(newest)
        keys = superseding_keys(keyed(frame))
        adds = newest_adds(newest)
        surviving_actions(adds, keys, are_adds=True, table_root=ROOT, broadcast_keys=True)
        contradicting_commits(frame, table_root=ROOT)
        newest_by_key(frame, action="txn", key="appId")


@pytest.mark.parametrize("are_adds", [True, False])
def test_the_checkpoint_is_only_filtered(
    spark: SparkSession, actions: Actions, tmp_path: Any, are_adds: bool
) -> None:
    """Never shuffled, sorted, grouped: the keys are broadcast to it."""
    columns = "path STRING, deletionVector STRUCT<storageType: STRING, pathOrInlineDv: STRING, "
    columns += "offset: INT, sizeInBytes: INT, cardinality: LONG>"
    path = str(tmp_path / "checkpoint")
    spark.createDataFrame([("a", None)], columns).write.parquet(path)
    checkpoint = spark.read.schema(columns).parquet(path)
    keys = superseding_keys(keyed(actions({1: [remove("a")]})))
    with settings(
        spark,
        {"spark.sql.adaptive.enabled": "false", "spark.sql.autoBroadcastJoinThreshold": "-1"},
    ):
        frame = surviving_actions(
            checkpoint, keys, are_adds=are_adds, table_root=ROOT, broadcast_keys=True
        )
        nodes = plan(frame)
    (scan,) = [node for node in nodes if node.name == "FileScan"]
    assert any("Join" in name for name in scan.above), "the plan was not understood"
    assert not [n for n in scan.above if n in _COSTLY or n.endswith("Aggregate")]
    assert [n for n in nodes if n.name == "BroadcastExchange"]
    assert shown(frame) == []


_COSTLY = {"Exchange", "BroadcastExchange", "Sort", "Window", "WindowGroupLimit", "SortMergeJoin"}
