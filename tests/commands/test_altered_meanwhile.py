"""Statements of ALTER TABLE while others write.

PROTOCOL.md#delta-log-entries
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import AlterTable, DeltaTable, alter_table, load_snapshot, read_delta, write_delta
from sparkdelta.exceptions import DeltaConcurrentModificationException, DeltaError
from sparkdelta.table.commit.transaction import Transaction

pytestmark = pytest.mark.slow

Statement = Callable[[AlterTable], object]
MAPPING, TRACKING = "delta.columnMapping.mode", "delta.enableRowTracking"
PROPERTIES = {
    MAPPING: "name", "delta.enableTypeWidening": "true", "delta.enableDeletionVectors": "true",
    "own": "x",
}  # fmt: skip
STATEMENTS: dict[str, Statement] = {
    "add": lambda t: t.add_column("more", "INT", first=True),
    "rename": lambda t: t.rename_column("n", "m"),
    "constrain": lambda t: t.add_constraint("few", "id < 5"),
    "cluster": lambda t: t.cluster_by("k"),
    "track rows": lambda t: t.set_properties({TRACKING: "true"}),
}

Write = Callable[[SparkSession, str], object]


def append(spark: SparkSession, path: str) -> object:
    return write_delta(spark.sql("SELECT 9L AS id"), path, mode="append")


def overwrite(spark: SparkSession, path: str) -> object:
    return write_delta(spark.sql("SELECT 8L AS id"), path, mode="overwrite")


def delete(spark: SparkSession, path: str) -> object:
    return DeltaTable.forPath(spark, path).delete("id = 0")


def update(spark: SparkSession, path: str) -> object:
    return DeltaTable.forPath(spark, path).update("id = 1", {"id": "4L"})


WRITES: list[Write] = [append, overwrite, delete, update]


@pytest.fixture(scope="module")
def template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files; clustered, with a constraint."""
    path = tmp_path_factory.mktemp("altered") / "table"
    rows = spark.sql("SELECT id, int(id) AS n, int(id % 2) AS k FROM range(0, 4, 1, 2)")
    write_delta(rows, str(path), properties=PROPERTIES, cluster_by=["id"])
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
    properties = {k: v for k, v in found.properties.items() if "materialized" not in k}
    domains = found.domain_metadata().filter("domain <> 'delta.rowTracking'").count()
    rows = sorted(map(str, read_delta(spark, path).collect()))
    return rows, schema, properties, found.protocol, domains


def meanwhile(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Let another writer commit right before the next commit."""
    commit = Transaction.commit

    def overtaken(self: Transaction, *arguments: Any) -> Any:
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

    def alter(path: str) -> object:
        return STATEMENTS[name](alter_table(spark, path))

    outcomes = []
    for write in WRITES:

        def written(path: str, write: Write = write) -> object:
            return write(spark, path)

        for first, second in ((written, alter), (alter, written)):
            path, serial = copies(), copies()
            first(serial)
            only_first = state(spark, serial)
            try:
                second(serial)
                both: object = state(spark, serial)
            except DeltaError as error:
                both = type(error)
            meanwhile(monkeypatch, lambda path=path, first=first: first(path))  # type: ignore[misc]
            conflict, refused = None, None
            try:
                second(path)
            except DeltaConcurrentModificationException as error:
                conflict = type(error).__name__
            except DeltaError as error:
                refused = type(error)
            case = write.__name__, "ALTER first" if first is alter else "ALTER second", conflict
            assert refused in (None, both), case
            wanted = only_first if conflict or isinstance(both, type) else both
            assert state(spark, path) == wanted, case
            outcomes.append(case)
    # A new constraint depends on all rows, and later writes on it.
    assert any(conflict is None for *_, conflict in outcomes) == (name != "constrain")
