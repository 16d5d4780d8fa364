"""A statement of ALTER TABLE that dies at any of its changes leaves the table as it was, as it will
be, or between two of its commits; the same statement then goes on.

PROTOCOL.md#delta-log-entries, PROTOCOL.md#change-metadata
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, verify, write_delta
from sparkdelta.api.delta_table import IdentityGenerator
from sparkdelta.operations.alter.drop_feature import drop_feature
from tests.support.alter_statements import (
    Statement,
    altered,
    by_sql,
    dropped_with_history,
    of_table,
)
from tests.support.crashing_store import dying_writer
from tests.support.memory_log import Crash

pytestmark = pytest.mark.classic("stops a writer that creates files itself")

MAPPING, TRACKING = "delta.columnMapping.mode", "delta.enableRowTracking"
PROPERTIES = {
    MAPPING: "name", "delta.enableTypeWidening": "true", "delta.enableDeletionVectors": "true",
    "delta.feature.vacuumProtocolCheck": "supported", "own": "x",
}  # fmt: skip
STATEMENTS: dict[str, Statement] = {
    "set": altered("set_properties", {"own": "y", "delta.enableChangeDataFeed": "true"}),
    "unset": altered("unset_properties", ["own"]),
    "comment": by_sql("COMMENT ON TABLE {} IS 'new'"),
    "add": altered("add_column", "s.z", "INT", first=True),
    "add several": altered("add_columns", "y INT, z ARRAY<INT>"),
    "rename": altered("rename_column", "n", "m"),
    "drop": altered("drop_columns", "k", "s.y"),
    "move": altered("change_column", "k", first=True),
    "describe": altered("change_column", "s.y", comment="new"),
    "loosen": altered("change_column", "id", drop_not_null=True),
    "widen": altered("change_column", "n", "BIGINT"),
    "default": altered("change_column", "n", default="1"),
    "no default": altered("change_column", "k", drop_default=True),
    "several": by_sql("ALTER TABLE {} ALTER COLUMN n COMMENT 'n', k FIRST"),
    "replace": altered(
        "replace_columns", "n INT, id LONG, k INT COMMENT 'k', s STRUCT<x: INT, y: STRING>, z INT"
    ),
    "constrain": altered("add_constraint", "few", "id < 100"),
    "no constraint": altered("drop_constraint", "c"),
    "cluster": altered("cluster_by", "k", "n"),
    "no clusters": altered("cluster_by"),
    "sync": altered("sync_identity", "g"),
    "upgrade": of_table("upgradeTableProtocol", 2, 5),
    "add feature": of_table("addFeatureSupport", "v2Checkpoint"),
    "timestamps": altered("set_properties", {"delta.enableInCommitTimestamps": "true"}),
    "iceberg": altered("set_properties", {"delta.enableIcebergCompatV3": "true"}),
    "track rows": altered("set_properties", {TRACKING: "true", "own": "y"}),
    "map": altered("set_properties", {MAPPING: "name"}),
    "unmap": altered("set_properties", {MAPPING: "none", "own": "y"}),
    "unset mapping": altered("unset_properties", [MAPPING, "own"]),
    "truncate": dropped_with_history("vacuumProtocolCheck"),
    "unprotect": dropped_with_history("checkpointProtection"),
}
"""Drops of features without `truncateHistory` are in `test_drop_feature.py`."""

PLAIN = ("upgrade", "map", "replace")
"""Statements that run on a table without table features."""

PROTECTED = ("unprotect",)
"""Statements that run on a table with protected checkpoints, from which a feature was dropped."""

IDENTITY = IdentityGenerator()


def _template(spark: SparkSession, path: str, properties: dict[str, str]) -> None:
    """Two files, one with a deletion vector; clustered, with a constraint."""
    table = DeltaTable.create(spark).location(path)
    table.addColumn("id", "LONG", nullable=False).addColumn("n", "INT")
    table.addColumn("s", "STRUCT<x: INT, y: STRING>").addColumn("k", "INT")
    for name, value in properties.items():
        table.property(name, value)
    if properties:
        table.addColumn("g", "LONG", generatedByDefaultAs=IDENTITY).clusterBy("id")
    table.execute()
    rows = "SELECT id, int(id) AS n, named_struct('x', 1, 'y', 'a') AS s, int(id % 2) AS k"
    if properties:
        alter_table(spark, path).change_column("k", default="3").add_constraint("c", "id >= 0")
        rows += ", id + 50 AS g"
    write_delta(spark.sql(f"{rows} FROM range(0, 6, 1, 2)"), path, mode="append")
    DeltaTable.forPath(spark, path).delete("id = 1")


Templates = Callable[[str], Path]


@pytest.fixture(scope="module")
def templates(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """The table that a statement is for: without table features, or with many."""
    root = tmp_path_factory.mktemp("alter_crashes")
    _template(spark, str(root / "plain"), {})
    _template(spark, str(root / "rich"), PROPERTIES)
    shutil.copytree(root / "rich", root / "protected")
    drop_feature(spark, str(root / "protected"), "vacuumProtocolCheck")

    def template(name: str) -> Path:
        kind = "plain" if name in PLAIN else "protected" if name in PROTECTED else "rich"
        return root / kind

    return template


def commits(path: str) -> dict[int, list[str]]:
    """The actions of each version but for what is drawn at random, and for times."""
    found = {}
    for file in Path(path, "_delta_log").glob("*.json"):
        actions = map(json.loads, file.read_text().splitlines())
        lines = (
            json.dumps(a["commitInfo"]["operation"] if "commitInfo" in a else a) for a in actions
        )
        found[int(file.stem)] = sorted(map(_without_random, lines))
    return found


def _without_random(text: str) -> str:
    names = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "uuid", text)
    return re.sub(r"\b1\d{12}\b", "time", names)


def rows(spark: SparkSession, path: str) -> list[str]:
    return sorted(map(str, read_delta(spark, path).collect()))


def definition(spark: SparkSession, path: str) -> tuple[Any, ...]:
    """Protocol, schema, properties and domains, as `commits` has them."""
    found = load_snapshot(spark, path)
    domains = [row.configuration for row in found.domain_metadata().collect()]
    metadata = _without_random(json.dumps(found.metadata.to_dict(), sort_keys=True))
    return found.protocol, metadata, sorted(domains)


@pytest.mark.slow
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_that_dies(
    spark: SparkSession, tmp_path: Path, templates: Templates, name: str
) -> None:
    """At each change of the storage, as they are in a run that does not die."""
    statement, template = STATEMENTS[name], templates(name)
    whole = str(tmp_path / "whole")
    shutil.copytree(template, whole)
    before, first = rows(spark, whole), load_snapshot(spark, whole).version
    with dying_writer(0, "never") as death:
        statement(spark, whole)
    wanted, after = commits(whole), rows(spark, whole)
    last = load_snapshot(spark, whole).version
    assert last == first + 1 or after == before
    for nth in range(1, len(death.calls) + 1):
        path = str(tmp_path / str(nth))
        shutil.copytree(template, path)
        with dying_writer(nth, "after") as death, suppress(Crash):
            statement(spark, path)
        assert death.is_dead
        version = load_snapshot(spark, path).version
        done = {v: lines for v, lines in commits(path).items() if v > first and v in wanted}
        assert done == {v: wanted[v] for v in done}, nth
        assert rows(spark, path) == (after if version > first else before), nth
        if version < last:
            statement(spark, path)
        assert definition(spark, path) == definition(spark, whole), nth
        assert rows(spark, path) == after, nth
        assert verify(spark, path).is_clean, nth
