"""ALTER TABLE by both engines: the same tables come of the same statements, and delta-spark goes on
with ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import AlterTable, alter_table, read_delta, write_delta
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

SOURCE = (
    "SELECT 1 AS a, 2 AS b, named_struct('x', 3, 'y', 'z') AS s, array(named_struct('e', 4)) AS i,"
    " map('k', 5) AS m, 6 AS p"
)
ON = {
    "delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true",
    "delta.feature.allowColumnDefaults": "supported", "delta.dataSkippingStatsColumns": "a,b,s",
}  # fmt: skip
RANDOM = re.compile(r'"delta.columnMapping[^,}]*,|,?"delta.columnMapping[^,}]*')
Statement = tuple[Callable[[AlterTable], AlterTable], str]
STATEMENTS: list[Statement] = [
    (
        lambda t: t.set_properties(ON),
        f"SET TBLPROPERTIES ({', '.join(f'{k!r} = {v!r}' for k, v in ON.items())})",
    ),
    (
        lambda t: t.set_properties({"own": "x", "gone": "y"}),
        "SET TBLPROPERTIES (own='x', gone='y')",
    ),
    (lambda t: t.unset_properties(["gone"], if_exists=True), "UNSET TBLPROPERTIES ('gone')"),
    (lambda t: t.rename_column("a", "x y.z"), "RENAME COLUMN a TO `x y.z`"),
    (lambda t: t.rename_column("s.x", "w"), "RENAME COLUMN s.x TO w"),
    (lambda t: t.rename_column("p", "q"), "RENAME COLUMN p TO q"),
    (
        lambda t: t.add_column("c", "INT", comment="new", after="b"),
        "ADD COLUMNS (c INT COMMENT 'new' AFTER b)",
    ),
    (
        lambda t: t.add_column("i.element.f", "STRING", first=True),
        "ADD COLUMNS (i.element.f STRING FIRST)",
    ),
    (
        lambda t: t.add_columns("d VARCHAR(2), g STRUCT<h: DATE>"),
        "ADD COLUMNS (d VARCHAR(2), g STRUCT<h: DATE>)",
    ),
    (lambda t: t.change_column("c", default="40 + 2"), "ALTER COLUMN c SET DEFAULT 40 + 2"),
    (lambda t: t.change_column("d", "VARCHAR(4)"), "ALTER COLUMN d TYPE VARCHAR(4)"),
    (lambda t: t.change_column("b", comment="it's"), 'ALTER COLUMN b COMMENT "it\'s"'),
    (lambda t: t.change_column("s.y", first=True), "ALTER COLUMN s.y FIRST"),
    (lambda t: t.change_column("b", "BIGINT"), "ALTER COLUMN b TYPE BIGINT"),
    (lambda t: t.change_column("m.value", "DOUBLE"), "ALTER COLUMN m.value TYPE DOUBLE"),
    (lambda t: t.change_column("i.element.e", "BIGINT"), "ALTER COLUMN i.element.e TYPE BIGINT"),
    (lambda t: t.drop_columns("g", "s.w"), "DROP COLUMNS (g, s.w)"),
    (lambda t: t.add_constraint("Some", "b > 1"), "ADD CONSTRAINT Some CHECK (b > 1)"),
    (
        lambda t: t.add_constraint("other", "NOT c <=> 1"),
        "ADD CONSTRAINT other CHECK (NOT c <=> 1)",
    ),
    (lambda t: t.drop_constraint("OTHER"), "DROP CONSTRAINT OTHER"),
]


def theirs(spark: SparkSession, table: str) -> None:
    """Make the table and alter it by delta-spark's own statements; runs in its process."""
    spark.sql(SOURCE).write.format("delta").partitionBy("p").save(table)
    for _, sql in STATEMENTS:
        spark.sql(f"ALTER TABLE delta.`{table}` {sql}")


def go_on(spark: SparkSession, table: str) -> list[str]:
    """Append to our table, alter it and read it; runs in the process of delta-spark."""
    spark.sql(f"INSERT INTO delta.`{table}` (b, q) VALUES (7000000000, 8)")
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS (last INT)")
    rows = spark.sql(f"SELECT to_json(struct(*)) FROM delta.`{table}` ORDER BY b").collect()
    return [row[0] for row in rows]


def described(path: str) -> tuple[Any, ...]:
    """The table without names and ids that are drawn at random, and its operations."""
    metadata: dict[str, Any] = {}
    features: set[str] = set()
    operations = []
    for file in sorted(Path(path, "_delta_log").glob("*.json")):
        for line in file.read_text().splitlines():
            action = json.loads(line)
            metadata = action.get("metaData", metadata)
            features |= set(action.get("protocol", {}).get("writerFeatures") or ())
            if "commitInfo" in action:
                info = action["commitInfo"]
                shown = str(info["operationParameters"])
                operations.append(
                    (info["operation"], RANDOM.sub("", shown).lower(), info["isBlindAppend"])
                )
    schema = json.loads(metadata["schemaString"], object_hook=without_ids)
    used = features - {"checkpointProtection"}
    return schema, metadata["partitionColumns"], metadata["configuration"], used, operations[1:]


def without_ids(document: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in document.items() if not k.startswith("delta.columnMapping.")}


@pytest.mark.slow
def test_the_same_statements(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    ours, other = str(tmp_path / "ours"), str(tmp_path / "theirs")
    write_delta(spark.sql(SOURCE), ours, partition_by=["p"])
    table = alter_table(spark, ours)
    for statement, _ in STATEMENTS:
        statement(table)
    delta_spark.run("tests.oracle.test_alter:theirs", table=other)
    found, wanted = described(ours), described(other)
    assert found[:4] == wanted[:4]
    assert found[4] == wanted[4]
    rows = delta_spark.run("tests.oracle.test_alter:go_on", table=ours)
    assert [json.loads(row) for row in rows] == [
        {"x y.z": 1, "b": 2, "s": {"y": "z"}, "i": [{"e": 4}], "m": {"k": 5.0}, "q": 6},
        {"b": 7_000_000_000, "c": 42, "q": 8},
    ]  # fmt: skip
    read = read_delta(spark, ours, where="b > 1").orderBy("b").selectExpr("to_json(struct(*))")
    assert [row[0] for row in read.collect()] == rows
