"""Statements of ALTER TABLE while others write.

PROTOCOL.md#delta-log-entries
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from sparkdelta.api.delta_table import IdentityGenerator
from sparkdelta.exceptions import DeltaConcurrentModificationException, DeltaError
from sparkdelta.operations.alter import drop_feature as command
from sparkdelta.table.commit.transaction import Transaction
from tests.operations.alter.test_drop_feature import USES, make
from tests.support.alter_statements import (
    Statement,
    altered,
    by_sql,
    dropped_with_history,
    of_table,
)

pytestmark = pytest.mark.slow

MAPPING, TRACKING = "delta.columnMapping.mode", "delta.enableRowTracking"
PROPERTIES = {
    MAPPING: "name", "delta.enableTypeWidening": "true", "delta.enableDeletionVectors": "true",
    "own": "x",
}  # fmt: skip


REPLACED = "k INT COMMENT 'k', id LONG, n SMALLINT, z INT"
STATEMENTS: dict[str, Statement] = {
    "add": altered("add_column", "more", "INT", first=True),
    "rename": altered("rename_column", "n", "m"),
    "drop": altered("drop_columns", "n"),
    "widen": altered("change_column", "n", "BIGINT"),
    "default": altered("change_column", "k", default="7"),
    "no default": altered("change_column", "k", drop_default=True),
    "move": altered("change_column", "k", after="id"),
    "describe": altered("change_column", "n", comment="new"),
    "several": by_sql("ALTER TABLE {} ALTER COLUMN n COMMENT 'n', k FIRST"),
    "replace": altered("replace_columns", REPLACED),
    "loosen": altered("change_column", "id", drop_not_null=True),
    "constrain": altered("add_constraint", "few", "id < 5"),
    "no constraint": altered("drop_constraint", "c"),
    "cluster": altered("cluster_by", "k"),
    "no clusters": altered("cluster_by"),
    "sync": altered("sync_identity", "g"),
    "set": altered("set_properties", {"own": "y"}),
    "unset": altered("unset_properties", ["own"]),
    "comment": by_sql("COMMENT ON TABLE {} IS 'new'"),
    "timestamps": altered("set_properties", {"delta.enableInCommitTimestamps": "true"}),
    "change data": altered("set_properties", {"delta.enableChangeDataFeed": "true"}),
    "append only": altered("set_properties", {"delta.appendOnly": "true"}),
    "iceberg": altered("set_properties", {"delta.enableIcebergCompatV2": "true"}),
    "upgrade": of_table("upgradeTableProtocol", 2, 5),
    "add feature": of_table("addFeatureSupport", "v2Checkpoint"),
    "track rows": altered("set_properties", {TRACKING: "true"}),
    "map": altered("set_properties", {MAPPING: "name"}),
    "unmap": altered("set_properties", {MAPPING: "none"}),
    "drop vectors": of_table("dropFeatureSupport", "deletionVectors"),
    "drop widening": of_table("dropFeatureSupport", "typeWidening"),
    "domainMetadata": of_table("dropFeatureSupport", "domainMetadata"),
    "materializePartitionColumns": of_table("dropFeatureSupport", "materializePartitionColumns"),
    "columnMapping": of_table("dropFeatureSupport", "columnMapping"),
    "rowTracking": of_table("dropFeatureSupport", "rowTracking"),
    "v2Checkpoint": of_table("dropFeatureSupport", "v2Checkpoint"),
    "checkConstraints": of_table("dropFeatureSupport", "checkConstraints"),
    "inCommitTimestamp": of_table("dropFeatureSupport", "inCommitTimestamp"),
    "truncate": dropped_with_history("vacuumProtocolCheck"),
}
"""A statement named after a feature drops it from a table that uses no other feature."""

PLAIN = ("replace", "upgrade", "map")
"""Statements that run on a table without table features."""

MAPPED = ("iceberg",)
"""Statements that run on a table whose only feature is column mapping."""

OF_ROWS = ("rename", "drop", "widen", "constrain", "sync")
"""Statements that change columns, or that depend on rows, race with all kinds of writes."""

EXCLUSIVE = ("constrain", "sync", "unmap", "iceberg")
COMMIT = Transaction.commit

Write = Callable[[SparkSession, str], object]


def new_row(spark: SparkSession, path: str, number: int) -> DataFrame:
    found = load_snapshot(spark, path)
    wanted = {"id", "g", *found.metadata.partition_columns}
    names = [name for name in found.schema.names if name in wanted]
    return spark.sql(f"SELECT {', '.join(f'{number}L AS {name}' for name in names)}")


def append(spark: SparkSession, path: str) -> object:
    return write_delta(new_row(spark, path, 9), path, mode="append")


def overwrite(spark: SparkSession, path: str) -> object:
    return write_delta(new_row(spark, path, 8), path, mode="overwrite")


def delete(spark: SparkSession, path: str) -> object:
    return DeltaTable.forPath(spark, path).delete("id = 0")


def update(spark: SparkSession, path: str) -> object:
    return DeltaTable.forPath(spark, path).update("id = 1", {"id": "4L"})


def merge(spark: SparkSession, path: str) -> object:
    source = new_row(spark, path, 1).union(new_row(spark, path, 7))
    inserted = {name: f"s.{name}" for name in source.columns}
    merged = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merged = merged.whenMatchedUpdate(set={"id": "4L"}).whenNotMatchedInsert(values=inserted)
    return merged.execute()


WRITES: list[Write] = [append, overwrite, delete, merge, update]


def make_rich(spark: SparkSession, path: str) -> None:
    """Two files; clustered, with a constraint, a wider column, and an identity column."""
    table = DeltaTable.create(spark).location(path).clusterBy("id")
    table.addColumn("id", "LONG", nullable=False).addColumn("n", "SMALLINT").addColumn("k", "INT")
    table.addColumn("g", "LONG", generatedByDefaultAs=IdentityGenerator())
    for name, value in PROPERTIES.items():
        table.property(name, value)
    table.execute()
    rows = "SELECT id, smallint(id) AS n, int(id % 2) AS k, id + 50 AS g FROM range(0, 4, 1, 2)"
    write_delta(spark.sql(rows), path, mode="append")
    alter_table(spark, path).change_column("n", "INT").change_column("k", default="3")
    alter_table(spark, path).add_constraint("c", "id >= 0")


def make_plain(spark: SparkSession, path: str, properties: dict[str, str] | None = None) -> None:
    rows = "SELECT id, smallint(id) AS n, int(id % 2) AS k FROM range(0, 4, 1, 2)"
    write_delta(spark.sql(rows), path, properties=properties)


def make_mapped(spark: SparkSession, path: str) -> None:
    make_plain(spark, path, {MAPPING: "name"})


MAKERS = {"plain": make_plain, "mapped": make_mapped, "rich": make_rich}
Templates = Callable[[str], Path]


@pytest.fixture(scope="module")
def templates(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """The table that a statement is for."""
    root = tmp_path_factory.mktemp("altered")

    def template(name: str) -> Path:
        feature = "vacuumProtocolCheck" if name == "truncate" else name
        own = "plain" if name in PLAIN else "mapped" if name in MAPPED else "rich"
        kind = feature if feature in USES else own
        path = root / kind
        if not path.exists():
            if kind in USES:
                make(spark, str(path), kind)
            else:
                MAKERS[kind](spark, str(path))
        return path

    return template


@pytest.fixture
def copies(templates: Templates, tmp_path: Path, name: str) -> Callable[[], str]:
    def copy() -> str:
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        shutil.copytree(templates(name), path)
        return str(path)

    return copy


def state(spark: SparkSession, path: str) -> tuple[Any, ...]:
    """Rows, schema, properties, features and domains, but for what is drawn at random."""
    found = load_snapshot(spark, path)
    schema = json.loads(
        found.metadata.schema_string or "",
        object_hook=lambda d: {k: v for k, v in d.items() if "physicalName" not in k},
    )
    # Random names, and numbers and times of versions.
    drawn = ("materialized", "requireCheckpointProtection", "inCommitTimestampEnablement")
    properties = {k: v for k, v in found.properties.items() if not any(d in k for d in drawn)}
    since = found.properties.get("delta.inCommitTimestampEnablementVersion")
    if since is not None:
        assert "metaData" in Path(path, "_delta_log", f"{int(since):020}.json").read_text()
    domains = found.domain_metadata().filter("domain <> 'delta.rowTracking'").count()
    rows = sorted(map(str, read_delta(spark, path).collect()))
    return rows, schema, properties, found.protocol, domains


def meanwhile(monkeypatch: pytest.MonkeyPatch, nth: int, other: Callable[[], object]) -> None:
    """Let another writer commit right before the nth of the next commits."""
    commit, count = Transaction.commit, 0

    def overtaken(self: Transaction, *arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == nth:
            monkeypatch.setattr(Transaction, "commit", commit)
            other()
        return commit(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", overtaken)


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_serial_history_or_a_conflict(
    spark: SparkSession,
    copies: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """The second writer fails by a conflict, or commits what it would have committed after the
    first.
    """
    monkeypatch.setattr(command, "NUM_BARRIERS", 1)  # the others are alike
    num_commits = 0

    def alter(path: str) -> object:
        return STATEMENTS[name](spark, path)

    outcomes = []
    for write in WRITES if name in OF_ROWS else WRITES[::3]:

        def written(path: str, write: Write = write) -> object:
            return write(spark, path)

        for first, second in ((alter, written), (written, alter)):
            serial = copies()
            before = load_snapshot(spark, serial).version
            first(serial)
            if first is alter:
                num_commits = load_snapshot(spark, serial).version - before
            only_first = state(spark, serial)
            try:
                second(serial)
                both: object = state(spark, serial)
            except DeltaError as error:
                both = error.error_class
            commits = {1, min(2, num_commits), num_commits} if second is alter else {1}
            for nth in sorted(commits):
                path = copies()
                meanwhile(monkeypatch, nth, partial(first, path))
                conflict, refused = None, None
                try:
                    second(path)
                except DeltaConcurrentModificationException as error:
                    conflict = type(error).__name__
                except DeltaError as error:
                    refused = error.error_class
                case = write.__name__, "first" if first is alter else f"second {nth}", conflict
                assert Transaction.commit is COMMIT, case
                assert refused in (None, both), case
                if conflict and second is alter and nth > 1:
                    second(path)  # it goes on
                    conflict = None
                wanted = only_first if conflict or isinstance(both, str) else both
                assert state(spark, path) == wanted, case
                outcomes.append(conflict or refused)
    # These depend on all rows, and later writes on them.
    assert (None in outcomes) == (name not in EXCLUSIVE)
