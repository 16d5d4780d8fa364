"""Statements of ALTER TABLE while others write.

PROTOCOL.md#delta-log-entries
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from sparkdelta.exceptions import DeltaConcurrentModificationException, DeltaError
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.tables import IdentityGenerator

pytestmark = pytest.mark.slow

Statement = Callable[[SparkSession, str], object]
MAPPING, TRACKING = "delta.columnMapping.mode", "delta.enableRowTracking"
PROPERTIES = {
    MAPPING: "name", "delta.enableTypeWidening": "true", "delta.enableDeletionVectors": "true",
    "own": "x",
}  # fmt: skip


def altered(method: str, *values: Any, **options: Any) -> Statement:
    def statement(spark: SparkSession, path: str) -> object:
        return getattr(alter_table(spark, path), method)(*values, **options)

    return statement


def of_table(method: str, *values: Any) -> Statement:
    def statement(spark: SparkSession, path: str) -> object:
        return getattr(DeltaTable.forPath(spark, path), method)(*values)

    return statement


STATEMENTS: dict[str, tuple[Statement, int]] = {
    "add": (altered("add_column", "more", "INT", first=True), 1),
    "rename": (altered("rename_column", "n", "m"), 1),
    "drop": (altered("drop_columns", "n"), 1),
    "widen": (altered("change_column", "n", "BIGINT"), 1),
    "default": (altered("change_column", "k", default="7"), 1),
    "loosen": (altered("change_column", "id", drop_not_null=True), 1),
    "constrain": (altered("add_constraint", "few", "id < 5"), 1),
    "no constraint": (altered("drop_constraint", "c"), 1),
    "cluster": (altered("cluster_by", "k"), 1),
    "no clusters": (altered("cluster_by"), 1),
    "sync": (altered("sync_identity", "g"), 1),
    "set": (altered("set_properties", {"own": "y"}), 1),
    "unset": (altered("unset_properties", ["own"]), 1),
    "add feature": (of_table("addFeatureSupport", "v2Checkpoint"), 1),
    "track rows": (altered("set_properties", {TRACKING: "true"}), 3),
    "unmap": (altered("set_properties", {MAPPING: "none"}), 1),
    "drop vectors": (of_table("dropFeatureSupport", "deletionVectors"), 5),
    "drop widening": (of_table("dropFeatureSupport", "typeWidening"), 7),
}
"""With the number of their commits."""

OF_ROWS = ("rename", "drop", "widen", "constrain", "sync")
"""Statements that change columns, or that depend on rows, race with all kinds of writes."""

EXCLUSIVE = ("constrain", "sync", "unmap")
COMMIT = Transaction.commit

Write = Callable[[SparkSession, str], object]


def append(spark: SparkSession, path: str) -> object:
    return write_delta(spark.sql("SELECT 9L AS id, 9L AS g"), path, mode="append")


def overwrite(spark: SparkSession, path: str) -> object:
    return write_delta(spark.sql("SELECT 8L AS id, 8L AS g"), path, mode="overwrite")


def delete(spark: SparkSession, path: str) -> object:
    return DeltaTable.forPath(spark, path).delete("id = 0")


def update(spark: SparkSession, path: str) -> object:
    return DeltaTable.forPath(spark, path).update("id = 1", {"id": "4L"})


WRITES: list[Write] = [append, overwrite, delete, update]


@pytest.fixture(scope="module")
def template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files; clustered, with a constraint, a wider column, and an identity column."""
    path = tmp_path_factory.mktemp("altered") / "table"
    table = DeltaTable.create(spark).location(str(path)).clusterBy("id")
    table.addColumn("id", "LONG", nullable=False).addColumn("n", "SMALLINT").addColumn("k", "INT")
    table.addColumn("g", "LONG", generatedByDefaultAs=IdentityGenerator())
    for name, value in PROPERTIES.items():
        table.property(name, value)
    table.execute()
    rows = "SELECT id, smallint(id) AS n, int(id % 2) AS k, id + 50 AS g FROM range(0, 4, 1, 2)"
    write_delta(spark.sql(rows), str(path), mode="append")
    alter_table(spark, str(path)).change_column("n", "INT")
    alter_table(spark, str(path)).add_constraint("c", "id >= 0")
    return path


@pytest.fixture
def copies(template: Path, tmp_path: Path) -> Iterator[Callable[[], str]]:
    def copy() -> str:
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        shutil.copytree(template, path)
        return str(path)

    return copy  # type: ignore[return-value]


def state(spark: SparkSession, path: str) -> tuple[Any, ...]:
    """Rows, schema, properties, features and domains, but for what is drawn at random."""
    found = load_snapshot(spark, path)
    schema = json.loads(
        found.metadata.schema_string or "",
        object_hook=lambda d: {k: v for k, v in d.items() if "physicalName" not in k},
    )
    drawn = ("materialized", "requireCheckpointProtection")  # or the number of a version
    properties = {k: v for k, v in found.properties.items() if not any(d in k for d in drawn)}
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
    statement, num_commits = STATEMENTS[name]

    def alter(path: str) -> object:
        return statement(spark, path)

    outcomes = []
    for write in WRITES if name in OF_ROWS else WRITES[::3]:

        def written(path: str, write: Write = write) -> object:
            return write(spark, path)

        for first, second in ((written, alter), (alter, written)):
            serial = copies()
            first(serial)
            only_first = state(spark, serial)
            try:
                second(serial)
                both: object = state(spark, serial)
            except DeltaError as error:
                both = type(error)
            for nth in sorted({1, 2, num_commits}) if second is alter and num_commits > 1 else [1]:
                path = copies()
                meanwhile(monkeypatch, nth, partial(first, path))
                conflict, refused = None, None
                try:
                    second(path)
                except DeltaConcurrentModificationException as error:
                    conflict = type(error).__name__
                except DeltaError as error:
                    refused = type(error)
                case = write.__name__, "first" if first is alter else f"second {nth}", conflict
                assert Transaction.commit is COMMIT, case
                assert refused in (None, both), case
                if conflict and second is alter and nth > 1:
                    second(path)  # it goes on
                    conflict = None
                wanted = only_first if conflict or isinstance(both, type) else both
                assert state(spark, path) == wanted, case
                outcomes.append(conflict or refused)
    # These depend on all rows, and later writes on them.
    assert (None in outcomes) == (name not in EXCLUSIVE)
