"""Version checksums that are written: from the state, and from the one before and a commit."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, write_version_checksum
from sparkdelta.operations.upkeep.checksum_writing import checksum_after_commit, checksum_of_state
from tests.support.errors import raises
from tests.support.log_writer import Action, write_checksum, write_commit
from tests.support.reference_model import replay
from tests.support.spark_jobs import counted_jobs
from tests.support.table_builder import add, metadata, protocol, removal_of, remove

FEATURES = ["deletionVectors", "domainMetadata"]
STATS = json.dumps({"numRecords": 9, "minValues": {"id": 1}})


def info(operation: str = "WRITE", **fields: Any) -> Action:
    return {"commitInfo": {"operation": operation, **fields}}


def vector(name: str, cardinality: int) -> dict[str, Any]:
    return {
        "storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 1,
        "cardinality": cardinality,
    }  # fmt: skip


def crc(table: Path, version: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((table / f"_delta_log/{version:020d}.crc").read_text())
    return found


@pytest.fixture
def small(table: Path) -> Path:
    """Three versions with some of everything."""
    first = add("a%20b", size=10, partitionValues={"p": None}, stats=STATS)
    write_commit(table, 0, [info("CREATE TABLE AS SELECT"), protocol(features=FEATURES),
                            metadata(), first])  # fmt: skip
    write_commit(table, 1, [
        info(txnId="one"), add("c", size=9000, deletionVector=vector("v", 12)),
        {"txn": {"appId": "app", "version": 1}},
        {"domainMetadata": {"domain": "d", "configuration": "é\n", "removed": False}},
        {"domainMetadata": {"domain": "e", "configuration": "", "removed": False}},
    ])  # fmt: skip
    write_commit(table, 2, [
        info("DELETE", txnId="two"), removal_of(first, size=10), add("f", size=1),
        {"txn": {"appId": "app", "version": 2, "lastUpdated": 5}},
        {"domainMetadata": {"domain": "e", "configuration": "", "removed": True}},
    ])  # fmt: skip
    return table


def test_the_whole_file(spark: SparkSession, small: Path) -> None:
    """PROTOCOL.md#version-checksum-file-schema"""
    result = write_version_checksum(spark, str(small))
    assert (result.version, result.written, result.incremental) == (2, True, False)
    found = crc(small, 2)
    histogram = found.pop("fileSizeHistogram")
    state = replay(commits(small))
    assert found == {
        "txnId": "two",
        "tableSizeBytes": 9001,
        "numFiles": 2,
        "numDeletedRecordsOpt": 12,
        "numDeletionVectorsOpt": 1,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [{"appId": "app", "version": 2, "lastUpdated": 5}],
        "domainMetadata": [{"domain": "d", "configuration": "é\n", "removed": False}],
        "metadata": state.metadata["metaData"],  # type: ignore[index]
        "protocol": state.protocol["protocol"],  # type: ignore[index]
        "deletedRecordCountsHistogramOpt": {"deletedRecordCounts": [1, 0, 1, *[0] * 7]},
        "allFiles": [
            {**add("c", size=9000, deletionVector=vector("v", 12))["add"], "dataChange": False},
            {**add("f")["add"], "dataChange": False},
        ],
    }
    assert [(n, size) for n, size in enumerate(histogram["totalBytes"]) if size] == [
        (0, 1), (1, 9000),
    ]  # fmt: skip


def commits(table: Path) -> dict[int, list[Action]]:
    return {
        int(file.stem): [json.loads(line) for line in file.read_text().splitlines()]
        for file in (table / "_delta_log").glob("*.json")
    }


def test_null_partition_values_and_statistics_stay(spark: SparkSession, small: Path) -> None:
    write_version_checksum(spark, str(small), version=0)
    (file,) = crc(small, 0)["allFiles"]
    assert (file["partitionValues"], file["stats"]) == ({"p": None}, STATS)
    assert "inCommitTimestampOpt" not in crc(small, 0)


@pytest.mark.full
def test_the_one_before_and_the_commit_are_enough(spark: SparkSession, small: Path) -> None:
    results = [write_version_checksum(spark, str(small), version=v) for v in range(3)]
    assert [result.incremental for result in results] == [False, True, True]
    incremental = crc(small, 2)
    for version in (1, 2):
        (small / f"_delta_log/{version:020d}.crc").unlink()
    assert not write_version_checksum(spark, str(small)).incremental
    assert crc(small, 2) == incremental


@pytest.mark.classic("counts Spark's jobs")
def test_a_commit_costs_one_job(spark: SparkSession, small: Path) -> None:
    """Whatever the size of the table: the state is not read."""
    write_version_checksum(spark, str(small), version=1)
    snapshot = load_snapshot(spark, str(small))
    with counted_jobs(spark) as jobs:
        assert checksum_after_commit(snapshot) is not None
    assert jobs.count == 1


def test_it_is_never_overwritten(spark: SparkSession, small: Path) -> None:
    """PROTOCOL.md#writer-requirements"""
    file = write_checksum(small, 2, {"numFiles": 77})
    assert not write_version_checksum(spark, str(small)).written
    assert json.loads(file.read_text()) == {"numFiles": 77}


def test_nor_is_one_that_comes_meanwhile(
    spark: SparkSession, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sparkdelta.operations.upkeep import checksum_writing

    def late(snapshot: Any) -> Any:
        write_checksum(small, 2, {"numFiles": 77})
        return checksum_of_state(snapshot)

    monkeypatch.setattr(checksum_writing, "checksum_of_state", late)
    assert not write_version_checksum(spark, str(small)).written
    assert crc(small, 2) == {"numFiles": 77}


LIVE = add("c", size=9000, deletionVector=vector("v", 12))
INEXACT = {
    "an unknown operation": [info("ANALYZE"), add("new")],
    "no operation": [add("new")],
    "no size": [info(), remove("f")],
    "not what was there": [info(), remove("f", size=9_999_999)],
}


@pytest.mark.full
@pytest.mark.parametrize("commit", INEXACT.values(), ids=INEXACT.keys())
def test_where_the_commit_does_not_tell_the_state_does(
    spark: SparkSession, small: Path, commit: list[Action]
) -> None:
    write_version_checksum(spark, str(small))
    write_commit(small, 3, commit)
    result = write_version_checksum(spark, str(small))
    assert (result.written, result.incremental) == (True, False)
    assert crc(small, 3)["numFiles"] == len(replay(commits(small)).adds)


def test_a_commit_without_files_may_be_of_any_operation(spark: SparkSession, small: Path) -> None:
    write_version_checksum(spark, str(small))
    write_commit(small, 3, [info("SET TBLPROPERTIES"), metadata(configuration={"a": "b"})])
    assert write_version_checksum(spark, str(small)).incremental
    found = crc(small, 3)
    assert (found["numFiles"], found["metadata"]["configuration"]) == (2, {"a": "b"})


@pytest.mark.full
def test_the_one_before_may_have_other_boundaries(spark: SparkSession, small: Path) -> None:
    write_version_checksum(spark, str(small))
    known = crc(small, 2)
    histogram = {"sortedBinBoundaries": [0, 7], "fileCounts": [1, 1], "totalBytes": [1, 9000]}
    (small / f"_delta_log/{2:020d}.crc").unlink()
    write_checksum(small, 2, {**known, "fileSizeHistogram": None, "histogramOpt": histogram})
    write_commit(small, 3, [info(), add("new", size=8)])
    assert not write_version_checksum(spark, str(small)).incremental
    del known["fileSizeHistogram"]
    (small / f"_delta_log/{3:020d}.crc").unlink()
    write_checksum(small, 2, {**known, "histogramOpt": histogram})
    assert write_version_checksum(spark, str(small)).incremental
    assert crc(small, 3)["fileSizeHistogram"] == {
        **histogram, "fileCounts": [1, 2], "totalBytes": [1, 9008],
    }  # fmt: skip


def test_lists_beyond_their_limits_are_absent(spark: SparkSession, table: Path) -> None:
    domains = [{"domainMetadata": {"domain": str(n), "configuration": "", "removed": False}}
               for n in range(11)]  # fmt: skip
    transactions = [{"txn": {"appId": str(n), "version": 1}} for n in range(101)]
    files = [add(str(n)) for n in range(51)]
    write_commit(
        table, 0, [protocol(features=FEATURES), metadata(), *domains, *transactions, *files]
    )
    write_version_checksum(spark, str(table))
    found = crc(table, 0)
    assert found["numFiles"] == 51
    assert not {"setTransactions", "domainMetadata", "allFiles"} & found.keys()


def test_the_in_commit_timestamp(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#writer-requirements-for-in-commit-timestamps"""
    enabled = metadata(configuration={"delta.enableInCommitTimestamps": "true"})
    write_commit(table, 0, [info(inCommitTimestamp=42), protocol(features=["inCommitTimestamp"]),
                            enabled])  # fmt: skip
    write_commit(table, 1, [info(inCommitTimestamp=43), add("a")])
    for version in (0, 1):
        write_version_checksum(spark, str(table), version=version)
    assert [crc(table, v)["inCommitTimestampOpt"] for v in (0, 1)] == [42, 43]


def test_a_table_with_an_unknown_writer_feature_is_refused(
    spark: SparkSession, table: Path
) -> None:
    write_commit(table, 0, [protocol(features=["domainMetadata", "rowTracking"]), metadata()])
    unknown = protocol(features=["domainMetadata"])
    unknown["protocol"]["writerFeatures"].append("futureFeature")
    write_commit(table, 1, [unknown])
    with raises("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE") as refused:
        write_version_checksum(spark, str(table), version=0)
    assert refused.value.features == ("futureFeature",)
    assert not list((table / "_delta_log").glob("*.crc"))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_incremental_equals_the_state(spark: SparkSession, table: Path, seed: int) -> None:
    """Random commits of operations that tell what they change: both ways give one checksum."""
    random, live, number = Random(seed), {}, 0
    write_commit(table, 0, [info(), protocol(features=FEATURES), metadata()])
    write_version_checksum(spark, str(table))
    for version in range(1, 6):
        commit = [info(random.choice(["WRITE", "MERGE", "OPTIMIZE"]))]
        for path in random.sample(sorted(live), len(live) // 2):
            old = live.pop(path)
            commit.append(removal_of(old, size=old["add"]["size"]))
            if random.random() < 0.5:
                deleted = vector(f"{version}", random.choice([1, 50, 10**7]))
                live[path] = add(path, size=old["add"]["size"], deletionVector=deleted)
                commit.append(live[path])
        for _ in range(random.randint(0, 4)):
            number += 1
            path = random.choice(["", "p=1%20/"]) + str(number)
            live[path] = add(path, size=random.choice([0, 8191, 8192, 10**7]))
            commit.append(live[path])
        write_commit(table, version, commit)
        assert write_version_checksum(spark, str(table)).incremental
        snapshot = load_snapshot(spark, str(table))
        computed = checksum_of_state(snapshot)
        assert snapshot.version_checksum == computed
        assert computed.num_files == len(live)
