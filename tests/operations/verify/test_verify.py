"""Tables that are not what their logs say. PROTOCOL.md#state-validation"""

from __future__ import annotations

import json
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import read_delta, verify, write_version_checksum
from sparkdelta import write_checkpoint as checkpoint
from sparkdelta.base.storage.worker_files import ArrowFiles
from sparkdelta.exceptions import TableNotFoundError
from sparkdelta.operations.verify import verification as command
from tests.support.log_writer import (
    Action,
    write_checkpoint,
    write_checksum,
    write_commit,
    write_compaction,
    write_last_checkpoint,
    write_v2_checkpoint,
)
from tests.support.reference_model import compaction, replay
from tests.support.table_builder import (
    add,
    field,
    ids,
    metadata,
    protocol,
    removal_of,
    struct_of,
    write_data,
    write_vectors,
)

FEATURES = ["deletionVectors", "v2Checkpoint", "domainMetadata"]


@pytest.fixture
def commits(table: Path) -> dict[int, list[Action]]:
    """A sound table: partitions, odd names, a deletion vector, a checkpoint, a checksum."""
    first = write_data(table, "a b.parquet", ids(0, 10))
    (vector,) = write_vectors(table, [1, 2])
    second = write_data(table, "p=1%2F2/b.parquet", ids(10, 15), {"p": "1/2"})
    made = {
        0: [protocol(features=FEATURES), metadata(), first],
        1: [second, {"txn": {"appId": "app", "version": 1}}],
        2: [removal_of(first, size=first["add"]["size"]),
            {"add": {**first["add"], "deletionVector": vector}}],
        3: [write_data(table, "c.parquet", ids(15, 16))],
    }  # fmt: skip
    for version, actions in made.items():
        write_commit(table, version, actions)
    write_checkpoint(table, 2, replay(made, until=2).checkpoint())
    return made


def found(spark: SparkSession, table: Path, **options: Any) -> list[tuple[str, str, str]]:
    """The findings; the report, the JSON and the DataFrame must say the same of them."""
    result = verify(spark, str(table), **options)
    rows = [tuple(row) for row in result.findings.collect()]
    listed = [tuple(item.values()) for item in result.as_dict()["findings"]]  # type: ignore[attr-defined]
    assert sorted(rows) == sorted(listed)
    assert result.is_clean == (not rows)
    assert all(problem in str(result) for _, _, problem in rows)
    json.dumps(result.as_dict())
    return [(check, path.rpartition("/")[2], problem) for check, path, problem in rows]


@pytest.mark.full
@pytest.mark.usefixtures("commits")
def test_a_sound_table_is_clean(spark: SparkSession, table: Path) -> None:
    write_version_checksum(spark, str(table))
    result = verify(spark, str(table), footers=True)
    assert result.is_clean, str(result)
    assert {check.name: check.num_checked for check in result.checks} == {
        "log": 4, "checkpoint": 1, "log compaction": 0, "version checksum": 1, "files": 3,
    }  # fmt: skip
    assert str(result).startswith(f"file:{table}, version 3: clean")


@pytest.fixture(
    params=[pytest.param(True, id="workers"),
            pytest.param(False, id="driver", marks=pytest.mark.slow)]
)  # fmt: skip
def looking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parameter says who looks at files: workers, or the driver through Hadoop, as on HDFS."""
    monkeypatch.setattr(ArrowFiles, "is_near", lambda *_, near=request.param: near)


@pytest.mark.usefixtures("commits", "looking")
@pytest.mark.slow
def test_files_and_deletion_vectors(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-files"""
    (table / "c.parquet").unlink()
    with (table / "p=1%2F2/b.parquet").open("ab") as file:
        file.write(b"more")
    (vector,) = table.rglob("*.bin")
    data = vector.read_bytes()
    vector.write_bytes(data[:-1])
    wrong = {(check, path) for check, path, _ in found(spark, table)}
    assert wrong == {
        ("data file", "c.parquet"), ("data file", "b.parquet"), ("deletion vector", vector.name),
    }  # fmt: skip
    vector.write_bytes(data[:1] + b"\1" + data[2:])
    assert any("instead of" in p for c, _, p in found(spark, table) if c == "deletion vector")
    vector.write_bytes(data[:-6] + b"!" + data[-5:])
    assert any("CRC-32" in p for c, _, p in found(spark, table) if c == "deletion vector")
    vector.unlink()
    problems = [p for check, _, p in found(spark, table) if check == "deletion vector"]
    assert [p.startswith("is missing") for p in problems] == [True]


@pytest.mark.usefixtures("looking")
@pytest.mark.slow
def test_footers_when_asked(
    spark: SparkSession, table: Path, commits: dict[int, list[Action]]
) -> None:
    wrong = {"add": {**commits[3][0]["add"], "path": "c.parquet", "stats": '{"numRecords":7}'}}
    write_commit(table, 4, [wrong])
    assert found(spark, table) == []
    assert found(spark, table, footers=True) == [
        ("footer", "c.parquet", "has 1 rows instead of 7")
    ]  # fmt: skip
    data = table / "c.parquet"
    data.write_bytes(bytes(data.stat().st_size))
    write_commit(table, 4, [{"add": {**wrong["add"], "stats": None}}])
    ((check, _, problem),) = found(spark, table, footers=True)
    assert check == "footer"
    assert problem.startswith("cannot be read")


def test_bounds_that_are_not_those_of_the_footers(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#per-file-statistics: as a writer leaves them that rounds to 28 digits."""
    table.mkdir()
    value = "12345678901234567890.123456789012345678"
    rounded = "12345678901234567890.12345679"
    moment = datetime(2024, 2, 29, 1, 2, 3, 4567)
    rows = pa.table({
        "c": pa.array([Decimal(value), None], pa.decimal128(38, 18)),
        "s": [{"d": date(1, 1, 1), "n": moment}, None],
    })  # fmt: skip
    inner = struct_of(field("d", "date"), field("n", "timestamp_ntz"))
    actions = [protocol(features=["timestampNtz"]),
               metadata(field("c", "decimal(38,18)"), field("s", inner))]  # fmt: skip
    write_commit(table, 0, actions)
    made = {
        "right": (value, "0001-01-01", 1),
        "rounded": (rounded, "0001-01-01", 1),
        "late": (value, "0001-01-02", 1),
        "without nulls": (value, "0001-01-01", 0),
    }
    adds = []
    for name, (number, day, nulls) in made.items():
        pq.write_table(rows, table / name)
        bounds = f'{{"c":{number},"s":{{"d":"{day}","n":"2024-02-29T01:02:03.004"}}}}'
        stats = (
            f'{{"numRecords":2,"minValues":{bounds},"maxValues":{bounds},'
            f'"nullCount":{{"c":1,"s":{{"d":{nulls},"n":1}}}}}}'
        )
        path = name.replace(" ", "%20")
        adds.append(add(path, size=(table / name).stat().st_size, stats=stats))
    write_commit(table, 1, adds)
    wrong = [(check, path) for check, path, _ in found(spark, table, footers=True)]
    assert sorted(wrong) == [("footer", name) for name in sorted(made) if name != "right"]


@pytest.mark.usefixtures("commits")
@pytest.mark.slow
def test_a_version_checksum_that_disagrees(spark: SparkSession, table: Path) -> None:
    write_version_checksum(spark, str(table))
    file = table / f"_delta_log/{3:020d}.crc"
    said = json.loads(file.read_text())
    said["metadata"]["configuration"] = {"a": "b"}
    write_checksum(table, 3, {**said, "numFiles": 9, "setTransactions": []})
    fields = {problem.split()[0] for check, _, problem in found(spark, table)}
    assert fields == {"numFiles", "metadata", "setTransactions"}
    settings = metadata(configuration={"delta.setTransactionRetentionDuration": "1 day"})
    write_commit(table, 4, [settings])
    file.unlink()
    write_version_checksum(spark, str(table))
    said = json.loads((table / f"_delta_log/{4:020d}.crc").read_text())
    write_checksum(table, 4, {**said, "setTransactions": []})  # it may have expired
    assert found(spark, table) == []
    write_checksum(table, 4, "{")
    assert [check for check, _, _ in found(spark, table)] == ["version checksum"]


@pytest.mark.slow
@pytest.mark.usefixtures("commits")
@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({"numFiles": "99", "numMetadata": 2}, {"numFiles", "protocol", "metadata"}),
        pytest.param({"tableSizeBytes": None}, {"tableSizeBytes"}, marks=pytest.mark.slow),
    ],
)
def test_a_version_checksum_that_lacks_something(
    spark: SparkSession, table: Path, changed: dict[str, Any], fields: set[str]
) -> None:
    """PROTOCOL.md#version-checksum-file-schema"""
    write_version_checksum(spark, str(table))
    said = json.loads((table / f"_delta_log/{3:020d}.crc").read_text())
    write_checksum(table, 3, {**said, **changed})
    assert {problem.split()[0] for _, _, problem in found(spark, table)} == fields


@pytest.mark.slow
def test_log_compactions_that_disagree_with_their_commits(
    spark: SparkSession, table: Path, commits: dict[int, list[Action]]
) -> None:
    """PROTOCOL.md#log-compaction-files: replay would use them, and verification does not."""
    actions = compaction([commits[1], commits[2], commits[3]])
    write_compaction(table, 1, 3, actions)
    assert found(spark, table) == []
    write_compaction(table, 1, 3, actions[:-1])
    ((check, _, problem),) = found(spark, table)
    assert check == "log compaction"
    assert "only in the log" in problem
    write_compaction(table, 1, 3, [])
    assert {check for check, _, _ in found(spark, table)} == {"log compaction"}


@pytest.mark.slow
def test_statistics_of_checkpoints_agree_with_the_commits(
    spark: SparkSession, table: Path, commits: dict[int, list[Action]]
) -> None:
    """PROTOCOL.md#per-file-statistics, PROTOCOL.md#checkpoint-schema"""
    stats = json.dumps({"numRecords": 10, "minValues": {"id": 0}, "maxValues": {"id": 9},
                        "nullCount": {"id": 0}})  # fmt: skip
    changed = {**commits[3][0]["add"], "stats": stats}
    write_commit(table, 4, [{"add": changed}])
    state = replay({**commits, 4: [{"add": changed}]})
    actions = [a for a in state.checkpoint() if a.get("add", {}).get("path") != "c.parquet"]
    for low, high, nulls, is_clean in ((-1, None, 0, True), (1, 9, 0, False), (0, 8, 1, False)):
        document = {"numRecords": 10, "minValues": {"id": low}, "maxValues": {"id": high},
                    "nullCount": {"id": nulls}}  # fmt: skip
        add = {"add": {**changed, "stats": json.dumps(document)}}
        write_checkpoint(table, 4, [*actions, add])
        problems = [problem for *_, problem in found(spark, table)]
        assert (problems == []) == is_clean
        assert all("does not match the log" in problem for problem in problems)


@pytest.mark.slow
def test_tombstones_that_have_not_expired(
    spark: SparkSession, table: Path, commits: dict[int, list[Action]]
) -> None:
    """PROTOCOL.md#checkpoints"""
    now_ms = time.time_ns() // 1_000_000
    gone = removal_of(commits[3][0], size=commits[3][0]["add"]["size"], deletionTimestamp=now_ms)
    write_commit(table, 4, [gone])
    state = replay({**commits, 4: [gone]})
    write_checkpoint(table, 4, state.checkpoint())
    assert found(spark, table) == []
    kept = [a for a in state.checkpoint() if a.get("remove", {}).get("path") != "c.parquet"]
    write_checkpoint(table, 4, kept)
    assert ["only in the log" in problem for *_, problem in found(spark, table)] == [True]


@pytest.mark.usefixtures("commits")
@pytest.mark.slow
def test_a_lost_end_of_the_log(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#last-checkpoint-file"""
    write_version_checksum(spark, str(table))
    write_last_checkpoint(table, {"version": 3})
    assert found(spark, table) == []
    (table / f"_delta_log/{3:020d}.json").unlink()
    assert {path for check, path, _ in found(spark, table) if check == "log"} == {
        f"{3:020d}.crc", "_last_checkpoint",
    }  # fmt: skip
    assert not [check for check, _, _ in found(spark, table, version=2) if check == "log"]


@pytest.mark.slow
def test_nothing_is_replayed_from_a_broken_checkpoint(
    spark: SparkSession, table: Path, commits: dict[int, list[Action]]
) -> None:
    for version in (2, 3):
        actions = replay(commits, until=version).checkpoint()
        wrong = [
            action
            for action in actions
            if action.get("add", {}).get("partitionValues") != {"p": "1/2"}
        ]
        assert len(wrong) == len(actions) - 1
        write_checkpoint(table, version, wrong)
    files = {path for check, path, _ in found(spark, table)}
    assert files == {f"{version:020d}.checkpoint.parquet" for version in (2, 3)}


@pytest.mark.usefixtures("commits")
@pytest.mark.slow
def test_an_order_of_features_is_no_difference(
    spark: SparkSession, table: Path, commits: dict[int, list[Action]]
) -> None:
    turned = protocol(features=FEATURES)
    for name in ("readerFeatures", "writerFeatures"):
        turned["protocol"][name] = turned["protocol"][name][::-1]
    actions = [a for a in replay(commits).checkpoint() if "protocol" not in a]
    write_checkpoint(table, 3, [turned, *actions])
    assert found(spark, table) == []


@pytest.mark.slow
def test_a_checkpoint_without_statistics(spark: SparkSession, table: Path) -> None:
    """A checkpoint has no statistics where the table asks for none."""
    none = {f"delta.checkpoint.writeStatsAs{form}": "false" for form in ("Json", "Struct")}
    file = write_data(table, "f", ids(0, 2))
    assert "numRecords" in file["add"]["stats"]
    write_commit(table, 0, [protocol(), metadata(configuration=none), file])
    checkpoint(spark, str(table))
    assert found(spark, table) == []


@pytest.mark.slow
def test_empty_partition_values_in_a_checkpoint_of_delta_spark(
    spark: SparkSession, table: Path
) -> None:
    """PROTOCOL.md#partition-value-serialization: they stand for null."""
    file = write_data(table, "f", ids(0, 2), {"p": ""})
    fields = (field("id", "long"), field("p", "string"))
    write_commit(table, 0, [protocol(), metadata(*fields, partitioned_by=["p"]), file])
    checkpoint(spark, str(table), kind="classic")
    [path] = Path(table, "_delta_log").glob("*.checkpoint.parquet")
    stored = pq.read_table(path)
    rows = stored.to_pylist()
    [typed] = [row["add"]["partitionValues_parsed"] for row in rows if row["add"]]
    assert typed["p"] is None
    typed["p"] = ""
    pq.write_table(pa.Table.from_pylist(rows, schema=stored.schema), path)
    assert found(spark, table) == []
    assert read_delta(spark, str(table), where="p IS NULL").count() == 2
    assert read_delta(spark, str(table)).filter("p IS NULL").count() == 2


@pytest.mark.slow
def test_checkpoints_that_disagree_with_replay(
    spark: SparkSession, table: Path, commits: dict[int, list[Action]]
) -> None:
    """PROTOCOL.md#checkpoints: tombstones may have expired, nothing else may be left out."""
    state = replay(commits, until=3)
    changed = dict(state.adds["c.parquet"], size=1)
    actions = [
        *state.table_actions(), *({"add": a} for a in state.adds.values() if a != changed),
    ]  # fmt: skip
    write_v2_checkpoint(table, 3, actions[:3], sidecars=[actions[3:]])
    assert found(spark, table) == []
    files = [{"add": changed}, {"add": add("never")["add"]}, *actions[3:-1]]
    write_v2_checkpoint(table, 3, actions[:2], sidecars=[files])
    problems = [problem for check, _, problem in found(spark, table) if check == "checkpoint"]
    assert {problem.split(":")[0] for problem in problems} == {
        "add c.parquet", "add never", "txn app",
    }  # fmt: skip


@pytest.mark.parametrize("as_json", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_sidecars_that_are_not_as_their_checkpoint_says(
    spark: SparkSession, table: Path, commits: dict[int, list[Action]], as_json: bool
) -> None:
    """PROTOCOL.md#sidecar-file-information"""
    state = replay(commits, until=3)
    adds: list[Action] = [{"add": action} for action in state.adds.values()]
    parts = [adds[:1], adds[1:], [{"remove": action} for action in state.removes.values()]]
    top = write_v2_checkpoint(table, 3, state.table_actions(), sidecars=parts, as_json=as_json)
    assert found(spark, table) == []
    lost, longer, _ = sorted(table.rglob("_sidecars/*"))
    size = longer.stat().st_size
    with longer.open("r+b") as file:  # and it can be read as before
        content = file.read()
        file.write(content)
    assert found(spark, table) == [
        ("checkpoint", longer.name, f"has {2 * size} bytes instead of {size} (of {top.name})")
    ]
    lost.unlink()
    ((name, problem),) = {(path, why) for kind, path, why in found(spark, table)
                          if kind == "checkpoint"}  # fmt: skip
    assert name == top.name
    assert lost.name in problem


@pytest.mark.usefixtures("commits")
def test_sidecars_of_a_checkpoint_that_cannot_be_replayed(
    spark: SparkSession, table: Path, commits: dict[int, list[Action]]
) -> None:
    """Cleanup has taken the commits before it."""
    state = replay(commits, until=3)
    adds = [{"add": action} for action in state.adds.values()]
    write_v2_checkpoint(table, 3, state.table_actions(), sidecars=[adds])
    for file in [*table.rglob("*.json"), *table.glob("_delta_log/*.checkpoint.parquet")]:
        file.unlink()
    write_commit(table, 3, commits[3])
    assert found(spark, table) == []
    (sidecar,) = table.rglob("_sidecars/*")
    sidecar.unlink()
    problems = found(spark, table)
    assert {kind for kind, *_ in problems} == {"checkpoint", "state"}
    assert all(sidecar.name in problem for *_, problem in problems)


@pytest.mark.usefixtures("commits")
def test_a_gap_in_the_log(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#delta-log-entries-1"""
    (table / f"_delta_log/{1:020d}.json").unlink()
    assert [row[:2] for row in found(spark, table)] == [("log", f"{1:020d}.json")]
    (table / f"_delta_log/{3:020d}.json").unlink()
    write_commit(table, 4, [])
    assert {row[0] for row in found(spark, table)} == {"log", "state"}


@pytest.mark.usefixtures("commits")
def test_a_cleaned_up_log_has_no_gap(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#metadata-cleanup"""
    for version in (0, 1):
        (table / f"_delta_log/{version:020d}.json").unlink()
    assert found(spark, table) == []


@pytest.mark.slow
@pytest.mark.usefixtures("commits")
def test_a_torn_line_is_a_finding(spark: SparkSession, table: Path) -> None:
    write_commit(table, 4, '{"add":{"path":"x"')
    assert {row[0] for row in found(spark, table)} == {"state"}
    assert found(spark, table, version=3) == []


@pytest.mark.usefixtures("commits")
@pytest.mark.slow
def test_more_findings_than_the_driver_takes(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "MAX_FINDINGS", 2)
    write_commit(table, 4, [add(f"missing-{n}") for n in range(5)])
    result = verify(spark, str(table))
    (check,) = [check for check in result.checks if check.name == "files"]
    assert (check.num_findings, len(check.shown), result.findings.count()) == (5, 2, 5)
    assert "and 3 more" in str(result)


def test_no_table_is_an_error(spark: SparkSession, table: Path) -> None:
    with pytest.raises(TableNotFoundError):
        verify(spark, str(table))
