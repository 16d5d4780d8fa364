"""Pairs of table features that are added, used and dropped one after the other: delta-spark reads
and writes every result, and refuses what we refuse.
"""

from __future__ import annotations

import json
import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import alter_table, load_snapshot, verify, write_delta
from sparkdelta.commands.drop_feature import drop_feature
from sparkdelta.exceptions import DeltaError
from sparkdelta.protocol.table_features import supported_features
from tests.commands.test_drop_feature import ROWS, USES, rows
from tests.oracle.test_drop_feature import drop
from tests.support.delta_spark import DeltaSpark

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PAIRS = sorted(permutations(USES, 2))
LAST = ("columnMapping",)  # it renames the columns that others use


def try_to_drop(spark: SparkSession, table: str, name: str) -> dict[str, Any]:
    """In the process of delta-spark: drop a feature; the protocol then, or the error."""
    try:
        return {"protocol": drop(spark, table, name)}
    except Exception as error:  # noqa: BLE001 - compared with whether we raise one
        return {"error": str(error)[:1000]}


def use(spark: SparkSession, path: str, name: str) -> None:
    """Add a feature to a table, and use it."""
    properties, used = USES[name]
    alter_table(spark, path).set_properties(properties)
    if name != "domainMetadata":
        used(spark, path)
        return
    domain = {"domain": "own", "configuration": "{}", "removed": False}
    version = load_snapshot(spark, path).version + 1
    lines = [{"commitInfo": {"inCommitTimestamp": 1 << 42}}, {"domainMetadata": domain}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    Path(path, "_delta_log", f"{version:020}.json").write_text(text)


def dropped(spark: SparkSession, delta_spark: DeltaSpark, path: str, name: str) -> bool:
    """Drop a feature, as delta-spark does of a copy; False if both refuse it."""
    before, copy = rows(spark, path), f"{path}-copy"
    shutil.copytree(path, copy)
    told = delta_spark.run("tests.oracle.test_feature_pairs:try_to_drop", table=copy, name=name)
    try:
        drop_feature(spark, path, name)
        refusal = None
    except DeltaError as error:
        refusal = str(error)
    shutil.rmtree(copy)
    assert (refusal is None) == ("error" not in told), (refusal, told)
    assert rows(spark, path) == before
    found = load_snapshot(spark, path).protocol
    left = sorted(feature.value for feature in supported_features(found))
    if refusal is None:
        assert told["protocol"] == [found.min_reader_version, left]
    read, features = delta_spark.run("tests.oracle.test_drop_feature:go_on", table=path)
    assert ([tuple(row) for row in read], features) == (before, left)
    return refusal is None


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_pair(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, first: str, second: str
) -> None:
    """Both features are added to a table and used; the first is dropped, then the second."""
    path = str(tmp_path / "table")
    write_delta(spark.sql(ROWS), path, partition_by=["p"])
    for name in sorted((first, second), key=lambda each: (each in LAST, each)):
        use(spark, path, name)
    dropped(spark, delta_spark, path, first)
    more = {
        field.name: "8L" if field.name == "id" else "0"
        for field in load_snapshot(spark, path).schema.fields
    }
    values = ", ".join(f"{value} AS {name}" for name, value in more.items())
    write_delta(spark.sql(f"SELECT {values}"), path, mode="append")
    assert dropped(spark, delta_spark, path, second)
    assert verify(spark, path).is_clean
