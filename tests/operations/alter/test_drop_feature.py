"""Table features that are dropped: their traces, the history, and drops that stop half-way.

PROTOCOL.md#supported-features
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, clean_log, load_snapshot, read_delta, write_delta
from sparkdelta.base.protocol.feature_registry import FEATURES, TableFeature
from sparkdelta.base.protocol.table_features import is_supported, supported_features
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.alter import drop_feature as command
from sparkdelta.operations.alter.drop_feature import drop_feature
from sparkdelta.operations.upkeep.metadata_cleanup_rules import DAY_MS
from tests.operations.write.test_write import commit
from tests.support.crashing_store import dying_writer
from tests.support.errors import raises
from tests.support.memory_log import Crash

PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"
ROWS = "SELECT id, CAST(id AS INT) AS n, id % 2 AS p FROM range(0, 8, 1, 2)"


def supported(name: str) -> dict[str, str]:
    return {f"delta.feature.{name}": "supported"}


def use_vectors(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).delete("id IN (2, 3)")


def use_wider_types(spark: SparkSession, path: str) -> None:
    alter_table(spark, path).change_column("n", "BIGINT")
    new = spark.sql("SELECT 8L AS id, 8000000000L AS n, 0L AS p")
    write_delta(new, path, mode="append")


def use_names(spark: SparkSession, path: str) -> None:
    alter_table(spark, path).rename_column("n", "m").rename_column("p", "q")


def use_constraint(spark: SparkSession, path: str) -> None:
    alter_table(spark, path).add_constraint("c", "id >= 0").drop_constraint("c")


def use_domain(spark: SparkSession, path: str) -> None:
    domain = {"domain": "own", "configuration": "{}", "removed": False}
    line = json.dumps({"domainMetadata": domain})
    Path(path, "_delta_log", f"{1:020}.json").write_text(f'{{"commitInfo":{{}}}}\n{line}\n')


def use_nothing(spark: SparkSession, path: str) -> None:
    pass


Use = Callable[[SparkSession, str], None]
USES: dict[str, tuple[dict[str, str], Use]] = {
    "v2Checkpoint": ({"delta.checkpointPolicy": "v2"}, use_nothing),
    "checkConstraints": (supported("checkConstraints"), use_constraint),
    "columnMapping": ({"delta.columnMapping.mode": "name"}, use_names),
    "deletionVectors": ({"delta.enableDeletionVectors": "true"}, use_vectors),
    "vacuumProtocolCheck": (supported("vacuumProtocolCheck"), use_nothing),
    "domainMetadata": (supported("domainMetadata"), use_domain),
    "inCommitTimestamp": ({"delta.enableInCommitTimestamps": "true"}, use_nothing),
    "materializePartitionColumns": (
        {"delta.enableMaterializePartitionColumnsFeature": "true"},
        use_nothing,
    ),
    "rowTracking": ({"delta.enableRowTracking": "true"}, use_nothing),
    "typeWidening": ({"delta.enableTypeWidening": "true"}, use_wider_types),
}
"""A table with each feature that can be dropped, and how it comes to use it."""


def make(spark: SparkSession, path: str, name: str) -> list[tuple[object, ...]]:
    """A table that uses a feature; its rows."""
    properties, use = USES[name]
    write_delta(spark.sql(ROWS), path, partition_by=["p"], properties=properties)
    use(spark, path)
    return rows(spark, path)


def rows(spark: SparkSession, path: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, read_delta(spark, path).collect()))


def operations(path: str) -> list[str]:
    files = sorted(Path(path, "_delta_log").glob("*.json"))
    found = [json.loads(file.read_text().splitlines()[0])["commitInfo"] for file in files]
    return [info["operation"] for info in found if "operation" in info]


def checkpoints(path: str) -> list[int]:
    return sorted(int(f.name[:20]) for f in Path(path, "_delta_log").glob("*.checkpoint*"))


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(USES))
def test_a_feature_that_is_used_is_dropped(spark: SparkSession, table_path: str, name: str) -> None:
    """Supported Features: the latest version needs nothing of it, and has the same rows."""
    feature = TableFeature(name)
    before = make(spark, table_path, name)
    DeltaTable.forPath(spark, table_path).dropFeatureSupport(name)
    found = load_snapshot(spark, table_path)
    assert not is_supported(found.protocol, feature)
    assert rows(spark, table_path) == before
    drop = FEATURES[feature].drop
    assert drop is not None
    assert not {*drop.unsets} & found.properties.keys()
    left = {f.value for f in supported_features(found.protocol)}
    if drop.hides_history:
        # The barriers are behind the last trace, and the commit names its own version.
        assert found.properties[PROTECTED] == str(found.version)
        assert checkpoints(table_path)[-4:] == [*range(found.version - 3, found.version + 1)]
        assert operations(table_path)[-4:] == [*["Empty Commit"] * 3, "DROP FEATURE"]
        assert "checkpointProtection" in left
    else:
        assert "checkpointProtection" not in left
        assert PROTECTED not in found.properties
    assert found.protocol.min_reader_version == 1
    write_delta(read_delta(spark, table_path).limit(1), table_path, mode="append")


@pytest.mark.slow
def test_vectors_are_purged(spark: SparkSession, table_path: str) -> None:
    """Deletion Vectors: no file has one, and their files have tombstones until these expire."""
    make(spark, table_path, "deletionVectors")
    DeltaTable.forPath(spark, table_path).dropFeatureSupport("deletionVectors")
    found = load_snapshot(spark, table_path)
    assert not found.add_files().filter("deletionVector.storageType IS NOT NULL").count()
    assert "delta.enableDeletionVectors" not in found.properties
    [vectors] = Path(table_path).glob("**/deletion_vector_*.bin")
    [tombstone] = commit(table_path, 4)["remove"]
    assert tombstone["path"] == str(vectors.relative_to(table_path))
    assert not tombstone["dataChange"]
    assert not any(file["dataChange"] for file in commit(table_path, 3)["add"])


@pytest.mark.slow
def test_files_of_narrower_types_alone_are_rewritten(spark: SparkSession, table_path: str) -> None:
    """Type Widening: by the types in their footers, at any level."""
    on = {"delta.enableTypeWidening": "true", "delta.columnMapping.mode": "id"}
    nested = "SELECT {0} AS a, map('k', array(named_struct('x', {0}))) AS m, CAST(1 AS {1}) AS d"
    write_delta(spark.sql(nested.format("1", "DECIMAL(4,1)")), table_path, properties=on)
    table = alter_table(spark, table_path).change_column("m.value.element.x", "BIGINT")
    write_delta(spark.sql(nested.format("2", "DECIMAL(4,1)")), table_path, mode="append")
    table.change_column("d", "DECIMAL(6,2)").rename_column("a", "b")
    write_delta(spark.sql(nested.format("3", "DECIMAL(6,2)").replace(" a,", " b,")), table_path,
                mode="append")  # fmt: skip
    before = rows(spark, table_path)
    assert drop_feature(spark, table_path, "typeWidening") > 6
    assert rows(spark, table_path) == before
    removed = [r["path"] for v in range(6, 20) for r in _commit(table_path, v).get("remove", [])]
    assert len(removed) == 2
    found = load_snapshot(spark, table_path)
    assert "typeChanges" not in str(found.metadata.schema_string)
    files = [Path(table_path, row.path) for row in found.add_files().collect()]
    assert {str(pq.read_schema(file).types[2]) for file in files} == {"decimal128(6, 2)"}


def _commit(path: str, version: int) -> dict[str, list[dict[str, object]]]:
    there = Path(path, "_delta_log", f"{version:020}.json").exists()
    return commit(path, version) if there else {}


@pytest.mark.slow
def test_rows_keep_their_ids_without_column_mapping(spark: SparkSession, table_path: str) -> None:
    """Column Mapping: files get the names of the columns, and nothing else changes."""
    on = {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"}
    write_delta(spark.sql(ROWS), table_path, properties=on)
    table = alter_table(spark, table_path).rename_column("n", "a b")
    with raises("DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING") as raised:
        drop_feature(spark, table_path, "columnMapping")
    assert raised.value.column == "a b"
    table.rename_column("`a b`", "m").cluster_by()
    columns = ["id", "m", "_metadata.row_id", "_metadata.row_commit_version"]
    before = sorted(map(tuple, read_delta(spark, table_path, columns=columns).collect()))
    drop_feature(spark, table_path, "columnMapping")
    assert sorted(map(tuple, read_delta(spark, table_path, columns=columns).collect())) == before
    found = load_snapshot(spark, table_path)
    assert "columnMapping" not in str(found.metadata)
    [file, *_] = found.add_files().collect()
    assert {"id", "m", "p"} < set(pq.read_schema(Path(table_path, file.path)).names)


@pytest.mark.parametrize(
    ("name", "truncates", "error"),
    [
        ("delta.enableDeletionVectors", False, "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY"),
        ("nope", False, "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("typeWidening", False, "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        ("appendOnly", False, "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        ("rowTracking", True, "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"),
        (
            "checkpointProtection",
            False,
            "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
        ),
        ("domainMetadata", False, "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"),
        ("checkConstraints", False, "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE"),
    ],
)
@pytest.mark.every_case
def test_drops_that_are_refused(
    spark: SparkSession, refusing: str, name: str, truncates: bool, error: str | type[DeltaError]
) -> None:
    """Before anything is done."""
    with raises(error):
        DeltaTable.forPath(spark, refusing).dropFeatureSupport(name, truncates)
    assert len(operations(refusing)) == 2


@pytest.fixture(scope="module")
def refusing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("refusing") / "table")
    properties = {**supported("rowTracking"), **supported("checkpointProtection")}
    write_delta(spark.range(1), path, properties=properties)
    alter_table(spark, path).add_constraint("c", "id >= 0")
    return path


@pytest.mark.slow
def test_the_history_is_truncated(spark: SparkSession, table_path: str) -> None:
    """A drop that truncates the history takes two steps: the traces go at once, the feature a day
    later.
    """
    before = make(spark, table_path, "deletionVectors")
    now = time.time_ns() // 1_000_000

    def drop(days: int) -> int:
        return drop_feature(
            spark, table_path, "deletionVectors", truncates_history=True,
            now_ms=now + days * DAY_MS,
        )  # fmt: skip

    with raises("DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"):
        drop(0)
    with raises("DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"):
        drop(0)
    assert is_supported(load_snapshot(spark, table_path).protocol, TableFeature.DELETION_VECTORS)
    drop(2)
    found = load_snapshot(spark, table_path)
    assert {f.value for f in supported_features(found.protocol)} == {"appendOnly", "invariants"}
    assert rows(spark, table_path) == before
    assert commit(table_path, found.version)["commitInfo"][0]["operationParameters"] == {
        "featureName": "deletionVectors", "truncateHistory": True,
    }  # fmt: skip


@pytest.mark.slow
def test_protected_checkpoints_are_deleted_with_all_they_protect(
    spark: SparkSession, table_path: str
) -> None:
    """Checkpoint Protection: cleanup leaves them, or takes the history before their version."""
    retention = {"delta.logRetentionDuration": "interval 8 days"}
    write_delta(spark.range(1), table_path, properties={**supported("vacuumProtocolCheck"),
                                                        **retention})  # fmt: skip
    version = drop_feature(spark, table_path, "vacuumProtocolCheck")
    now = time.time_ns() // 1_000_000
    log = Path(table_path, "_delta_log")
    newest = log / f"{version:020}.json"
    newest.touch()
    result = clean_log(spark, table_path, now_ms=now + 8 * DAY_MS)
    assert result.files == ()
    # The barriers alone have expired.
    for file in log.glob("*.json"):
        moment = now / 1000 - (0 if file == newest else 20 * 86_400)
        os.utime(file, (moment, moment))
    result = clean_log(spark, table_path, now_ms=now)
    assert result.files == ()
    assert "protected" in str(result.reason)
    with raises("DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"):
        drop_feature(spark, table_path, "checkpointProtection", truncates_history=True)
    assert clean_log(spark, table_path, now_ms=now + 20 * DAY_MS).checkpoint_version is not None
    assert min(checkpoints(table_path)) >= version
    drop_feature(spark, table_path, "checkpointProtection", truncates_history=True)
    found = load_snapshot(spark, table_path)
    assert {f.value for f in supported_features(found.protocol)} == {"appendOnly", "invariants"}
    assert found.properties == retention
    assert rows(spark, table_path) == [(0,)]


@pytest.mark.slow
def test_others_use_it_again(
    spark: SparkSession, table_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append in between does not matter; a use of the feature does."""
    make(spark, table_path, "v2Checkpoint")
    meanwhile = [
        lambda: write_delta(spark.sql(ROWS).limit(1), table_path, mode="append"),
        lambda: alter_table(spark, table_path).set_properties({"delta.checkpointPolicy": "v2"}),
    ]
    checked = command.has_traces

    def has_traces(*arguments: object) -> bool:
        found = checked(*arguments)  # type: ignore[arg-type]
        if meanwhile:
            meanwhile.pop(0)()
        return found

    monkeypatch.setattr(command, "has_traces", has_traces)
    with raises("DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"):
        drop_feature(spark, table_path, "v2Checkpoint")
    assert len(rows(spark, table_path)) == 9
    drop_feature(spark, table_path, "v2Checkpoint")
    found = load_snapshot(spark, table_path)
    assert found.properties[PROTECTED] == str(found.version)


@pytest.mark.slow
@pytest.mark.classic("stops a writer that creates files itself")
@pytest.mark.parametrize("name", sorted(USES))
def test_a_drop_that_dies_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """At each change of the storage: the rows are there, and the next drop ends it."""
    if name != "vacuumProtocolCheck":  # the others are alike
        monkeypatch.setattr(command, "NUM_BARRIERS", 1)
    template = str(tmp_path / "table")
    before = make(spark, template, name)
    for nth in range(1, 60):
        path = str(tmp_path / f"{name}-{nth}")
        shutil.copytree(template, path)
        with dying_writer(nth, "after") as death, suppress(Crash, DeltaError):
            drop_feature(spark, path, name)
        assert rows(spark, path) == before
        is_done = not death.is_dead
        if is_supported(load_snapshot(spark, path).protocol, TableFeature(name)):
            rewritten = operations(path).count("REORG")
            drop_feature(spark, path, name)
            assert rows(spark, path) == before
            assert operations(path).count("REORG") <= max(1, rewritten)
        if is_done:
            return
    raise AssertionError("it never ended")
