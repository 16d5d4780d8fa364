"""Operations and their parameters, as the log has them: delta-spark writes the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

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


def run(spark: SparkSession, table: str) -> list[tuple[str, Any]]:
    for statement in STATEMENTS:
        spark.sql(statement.format(t=f"delta.`{table}`"))
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
