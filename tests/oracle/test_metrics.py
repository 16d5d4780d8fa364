"""Metrics of DELETE, UPDATE and MERGE in the history, by delta-spark and by sparkdelta.

Each statement changes copies of a table of which each append wrote one file, so that both engines
touch the same files.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparkdelta
from sparkdelta import DeltaTable, write_delta
from tests.support.delta_spark import DeltaSpark
from tests.support.settings import settings

pytestmark = pytest.mark.oracle

VECTORS, CHANGES = "delta.enableDeletionVectors", "delta.enableChangeDataFeed"
TABLES = [{VECTORS: "true"}, {CHANGES: "true"}, {VECTORS: "true", CHANGES: "true"}, {}]
MERGE = "MERGE INTO {t} t USING (SELECT id, -1 AS v FROM VALUES %s AS q(id)) s ON t.id = s.id "
STATEMENTS = {
    "delete from one file": "DELETE FROM {t} WHERE id = 3",
    "delete from a file with a vector": "DELETE FROM {t} WHERE id IN (12, 23)",
    "delete whole files": "DELETE FROM {t} WHERE id >= 10",
    "delete by rows and statistics": "DELETE FROM {t} WHERE v >= 10",
    "delete everything": "DELETE FROM {t}",
    "delete nothing": "DELETE FROM {t} WHERE v = -1",
    "update one file": "UPDATE {t} SET v = -1 WHERE id = 3",
    "update a file with a vector": "UPDATE {t} SET v = -1 WHERE id = 12",
    "update everything": "UPDATE {t} SET v = -1",
    "upsert": MERGE % "(3), (99)" + "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "merged update": MERGE % "(12)" + "WHEN MATCHED THEN UPDATE SET v = s.v",
    "merged delete": MERGE % "(3), (12)" + "WHEN MATCHED THEN DELETE",
    "merged delete of a file": MERGE % "(20), (21), (22), (23)" + "WHEN MATCHED THEN DELETE",
    "merged insert": MERGE % "(3), (99)" + "WHEN NOT MATCHED THEN INSERT *",
    "merge by source": MERGE
    % "(3)"
    + "WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN UPDATE SET v = 0 "
    "WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN DELETE",
}


WRITTEN = ("AddedFiles", "AddedBytes", "AddedChangeFiles", "FilesAdded", "BytesAdded")
"""Metrics of new files, of which only zero or not zero is compared: each engine divides rows among
files in its own way."""

OF_FILES = {
    "numOutputRows",
    "numTargetRowsCopied",
    "numTargetFilesRemoved",
    "numTargetBytesRemoved",
}
DIFFERENT = {
    "delete whole files": {"numAddedChangeFiles"},
    "delete by rows and statistics": {"numAddedChangeFiles"},
    "update everything": {"numDeletionVectorsRemoved"},
    "merge by source": OF_FILES,
}
"""See COMPATIBILITY.md, also for `numRemovedBytes`."""


def comparable(statement: str, found: dict[str, str]) -> dict[str, str]:
    return {
        name: str(value != "0") if name.endswith(WRITTEN) else value
        for name, value in found.items()
        if name not in {"numRemovedBytes", *DIFFERENT.get(statement, ())}
        and not name.endswith("TimeMs")
    }


def run(spark: SparkSession, statements: dict[str, str]) -> dict[str, Any]:
    """Execute statements and return the metrics of each, by the path of its table; runs in the
    process of delta-spark.
    """
    for path, text in statements.items():
        spark.sql(text.format(t=f"delta.`{path}`"))
    return {path: metrics(spark.sql(f"DESCRIBE HISTORY delta.`{path}`")) for path in statements}


def metrics(history: Any) -> dict[str, str]:
    last = history.orderBy("version", ascending=False).first()
    return dict(last["operationMetrics"] or {}) | {"version": str(last["version"])}


@pytest.mark.slow
def test_metrics(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, seed: int) -> None:
    made = tmp_path / "made"
    for number in range(3):
        rows = spark.range(number * 10, number * 10 + (4 if number == 2 else 10), 1, 1)
        properties = None if number else TABLES[seed % len(TABLES)]
        rows = rows.selectExpr("id", "id AS v")
        write_delta(rows, str(made), mode="append", properties=properties)
    DeltaTable.forPath(spark, str(made)).delete("id = 11")
    theirs = {}
    for name, text in STATEMENTS.items():
        for engine in ("ours", "theirs"):
            shutil.copytree(made, tmp_path / engine / name)
        theirs[str(tmp_path / "theirs" / name)] = text
    told = delta_spark.run("tests.oracle.test_metrics:run", statements=theirs)
    different = {}
    for name, text in STATEMENTS.items():
        ours = tmp_path / "ours" / name
        with settings(spark, {"spark.sql.leafNodeDefaultParallelism": "1"}):  # as delta-spark
            sparkdelta.sql(spark, text.format(t=f"delta.`{ours}`"))
        found = comparable(name, metrics(DeltaTable.forPath(spark, str(ours)).history(1)))
        expected = comparable(name, told[str(tmp_path / "theirs" / name)])
        if found != expected:
            different[name] = sorted({*found.items()} ^ {*expected.items()})
    assert different == {}
