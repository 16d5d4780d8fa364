"""Operations and their parameters, as the log has them: delta-spark writes the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

STATEMENTS = (
    "CREATE TABLE {t} (a INT, b STRING) USING delta COMMENT 'all' TBLPROPERTIES ('k' = 'v')",
    "CREATE OR REPLACE TABLE {t} USING delta CLUSTER BY (a) AS SELECT 1 AS a, 'x' AS b",
    "INSERT INTO {t} VALUES (2, 'y')",
    "TRUNCATE TABLE {t}",
    "REPLACE TABLE {t} USING delta COMMENT 'c' TBLPROPERTIES ('k' = 'v') AS SELECT 1 AS a",
    "ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('k')",
    "ALTER TABLE {t} ADD CONSTRAINT c CHECK (a > 0)",
    "ALTER TABLE {t} DROP CONSTRAINT c",
    "RESTORE TABLE {t} TO VERSION AS OF 1",
)


WRITES: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("append", "p", {"mergeSchema": "true"}),
    ("append", "", {}),
    ("overwrite", "", {}),
    ("overwrite", "", {"replaceWhere": "p < 2"}),
    ("overwrite", "p", {"replaceWhere": "a < 9"}),
    ("overwrite", "p", {"overwriteSchema": "true", "mergeSchema": "true"}),
    ("overwrite", "", {"partitionOverwriteMode": "dynamic"}),
)
"""The mode, the partition column and the options of a writer."""
CHANGES = (
    "INSERT WITH SCHEMA EVOLUTION INTO oh_t VALUES (3, 'x', 1)",
    "INSERT OVERWRITE oh_t VALUES (1, 'x', 1), (5, 'x', 2)",
    "INSERT OVERWRITE oh_t PARTITION (p = 1) SELECT 1, 'x'",
    "INSERT INTO oh_t REPLACE WHERE a = 5 SELECT 5, 'x', 1",
    "INSERT OVERWRITE oh_t WITH ('partitionOverwriteMode' = 'dynamic') VALUES (1, 'x', 1)",
    "UPDATE oh_t SET s = 'q' WHERE a = 500",
    "DELETE FROM oh_t WHERE p = 500",
    "MERGE INTO oh_t USING (SELECT 700 k) q ON oh_t.a = q.k WHEN MATCHED THEN DELETE",
    "MERGE INTO oh_t USING (SELECT 1 k) q ON oh_t.a = q.k WHEN MATCHED AND q.k > 5 THEN DELETE",
    "MERGE INTO oh_t USING (SELECT 1 k WHERE 1 = 0) ON a = k WHEN MATCHED THEN DELETE",
    "DELETE FROM oh_t",
    "DELETE FROM oh_t",
    "UPDATE oh_t SET s = 'q'",
)


def run(spark: SparkSession, table: str) -> list[tuple[str, Any]]:
    for statement in STATEMENTS:
        spark.sql(statement.format(t=f"delta.`{table}`"))
    return _operations(table)


def write_and_change(spark: SparkSession, table: str) -> list[list[Any]]:
    """Write to a table by name and path, and change it; return the operations without conditions,
    which have other texts, and the results of the changes.
    """
    spark.sql(
        "CREATE TABLE oh_t (a INT, s STRING, p INT) USING delta PARTITIONED BY (p) "
        f"LOCATION '{table}'"
    )
    rows = spark.sql("SELECT CAST(id AS INT) a, 'x' s, CAST(id % 2 AS INT) p FROM range(3)")
    for by_name in (True, False):
        for mode, column, options in WRITES:
            writer = rows.write.format("delta").mode(mode).options(**options)
            writer = writer.partitionBy(column) if column else writer
            if by_name:
                writer.saveAsTable("oh_t")
            else:
                writer.save(table)
    rows.write.mode("overwrite").insertInto("oh_t")
    rows.writeTo("oh_t").option("mergeSchema", "true").append()
    rows.writeTo("oh_t").overwritePartitions()
    rows.writeTo("oh_t").overwrite(F.col("p") < 2)
    rows.writeTo("oh_t").using("delta").partitionedBy("p").createOrReplace()
    results = list[Any]()
    for statement in CHANGES:
        answer = spark.sql(statement)
        results.append([statement, answer.columns, [tuple(row) for row in answer.collect()]])
    spark.sql("DROP TABLE oh_t")
    operations = _operations(table)
    for _, parameters in operations:
        parameters.pop("predicate", None)
    return json.loads(json.dumps([operations, results]))


def _operations(table: str) -> list[tuple[str, Any]]:
    """Return the operation and the parameters of each commit."""
    found = []
    for file in sorted(Path(table).glob("_delta_log/*.json")):
        actions = map(json.loads, file.read_text().splitlines())
        info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
        found.append((info["operation"], info["operationParameters"]))
    return found


@pytest.mark.slow
def test_the_same_history(enabled: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    theirs = delta_spark.run("tests.oracle.test_history:run", table=str(tmp_path / "theirs"))
    assert run(enabled, str(tmp_path / "ours")) == [tuple(operation) for operation in theirs]


@pytest.mark.slow
def test_the_same_history_of_writers(
    enabled: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    theirs, ours = (
        delta_spark.run(
            "tests.oracle.test_history:write_and_change", table=str(tmp_path / "theirs")
        ),
        write_and_change(enabled, str(tmp_path / "ours")),
    )
    different = [
        each
        for one, other in zip(theirs, ours, strict=True)
        for each in zip(one, other, strict=False)
        if each[0] != each[1]
    ]
    for each in different:
        print(*each, sep="\n    ")
    assert not different
    assert [len(one) for one in theirs] == [len(one) for one in ours]
