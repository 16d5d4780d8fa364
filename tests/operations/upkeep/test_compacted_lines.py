"""The lines that a log compaction file keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from sparkdelta.exceptions import MalformedLogFileError
from sparkdelta.operations.upkeep.log_compaction import compacted_lines
from tests.support.frame_inputs import ROOT, Commits
from tests.support.log_writer import Action, json_lines
from tests.support.snapshots import raised_by
from tests.support.table_builder import add, metadata, protocol, remove


def compacted(spark: SparkSession, commits: Commits) -> list[Action]:
    rows = [
        (version, line)
        for version, commit in commits.items()
        for line in json_lines(commit).splitlines()
    ]
    lines = spark.createDataFrame(rows, "version LONG, line STRING")
    found = compacted_lines(lines, table_root=ROOT, is_local=False).collect()
    return sorted((json.loads(row["line"]) for row in found), key=json.dumps)


def sorted_actions(actions: Sequence[Action]) -> list[Action]:
    return sorted(actions, key=json.dumps)


def txn(app: str, version: int) -> Action:
    return {"txn": {"appId": app, "version": version}}


def domain(name: str, *, removed: bool) -> Action:
    return {"domainMetadata": {"domain": name, "configuration": "", "removed": removed}}


INFO = {"commitInfo": {"timestamp": 1, "operation": "WRITE"}}


@pytest.mark.usefixtures("hostile")
def test_the_protocols_example(spark: SparkSession) -> None:
    """PROTOCOL.md#log-compaction-files"""
    app = "3ae45b72-24e1-865a-a211-34987ae02f2a"
    commits = {
        4: [INFO, add("f2"), remove("f1")],
        5: [INFO, add("f3"), add("f4"), txn(app, 4389)],
        6: [INFO, remove("f3"), txn(app, 4390)],
    }
    expected = [add("f2"), add("f4"), remove("f1"), remove("f3"), txn(app, 4390)]
    assert compacted(spark, commits) == sorted_actions(expected)


def test_compaction_keeps_actions_that_the_state_needs(spark: SparkSession) -> None:
    """Tombstones of any age, removed domains, transactions; and fields that are not known here."""
    old = remove("old", deletionTimestamp=1, stats='{"numRecords":1}', future={"a": [1, None]})
    kept = [old, domain("d", removed=True), txn("a", 1), metadata(), protocol()]
    dropped = [INFO, {"cdc": {"path": "c", "size": 1}}, {"unheard": {"of": 1}}]
    commits = {1: [*kept, *dropped, domain("e", removed=True)], 2: [domain("e", removed=False)]}
    expected = [*kept, domain("e", removed=False)]
    assert compacted(spark, commits) == sorted_actions(expected)


def test_newest_protocol_and_metadata(spark: SparkSession) -> None:
    first = [protocol(1, 2), metadata(table_id="1")]
    second = [protocol(1, 3), metadata(table_id="2")]
    assert compacted(spark, {0: first, 1: second}) == sorted_actions(second)


def test_spellings_and_deletion_vectors(spark: SparkSession) -> None:
    """PROTOCOL.md#action-reconciliation"""
    v, w = ({"storageType": "u", "pathOrInlineDv": n, "sizeInBytes": 1, "cardinality": 1}
            for n in "vw")  # fmt: skip
    commits = {
        1: [add("a%20b"), add("c"), add("file:/t/x")],
        2: [remove("a b"), remove("c"), add("c", deletionVector=v)],
        3: [remove("c", deletionVector=v), add("c", deletionVector=w), remove("file:///t/x")],
    }
    expected = [remove("a b"), remove("c"), *commits[3]]
    assert compacted(spark, commits) == sorted_actions(expected)


def test_a_name_of_one_kind_is_not_one_of_another(spark: SparkSession) -> None:
    actions = [add("a"), txn("a", 1), domain("a", removed=False)]
    assert compacted(spark, {0: actions, 1: [INFO]}) == sorted_actions(actions)


def test_a_line_of_two_actions_is_refused(spark: SparkSession) -> None:
    double = {**add("a"), **txn("a", 1)}
    error = raised_by(lambda: compacted(spark, {0: [double]}))
    assert isinstance(error, MalformedLogFileError)
