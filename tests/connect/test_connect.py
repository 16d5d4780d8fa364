"""Spark Connect reads what classic Spark reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, load_snapshot, read_delta
from tests.support.distributed import distributed_scans
from tests.support.log_writer import write_checkpoint, write_commit, write_v2_checkpoint
from tests.support.reference_model import replay
from tests.support.snapshots import paths
from tests.support.table_builder import (
    create,
    field,
    ids,
    metadata,
    protocol,
    removal_of,
    write_data,
    write_vectors,
)

pytestmark = pytest.mark.connect
ROOT = Path(__file__).parents[2]

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
from sparkdelta import DeltaError, DeltaTable, load_snapshot, read_delta
from tests.connect.test_connect import described
from tests.support.distributed import distributed_scans
spark = (SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "2")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate())
found = {}
for name, path in json.loads(sys.argv[1]).items():
    try:
        found[name] = described(spark, path)
    except DeltaError as error:
        found[name] = [type(error).__name__]
with distributed_scans():
    hidden = read_delta(spark, json.loads(sys.argv[1])["hidden"])
    found["hidden, by workers"] = sorted(row["id"] for row in hidden.collect())
spark.conf.set("spark.sql.session.timeZone", "America/New_York")
spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
spark.conf.set("spark.sql.caseSensitive", "true")
spark.conf.set("spark.sql.ansi.enabled", "false")
try:
    found["hostile"] = described(spark, json.loads(sys.argv[1])["vectors"])
except Exception as error:
    found["hostile"] = repr(error)[:1000]
print(json.dumps(found))
spark.stop()
"""


def described(spark: SparkSession, path: str) -> Any:
    """Rows, live files, history and detail of a table, as JSON has them."""
    rows = sorted((list(row) for row in read_delta(spark, path).collect()), key=repr)
    with distributed_scans():
        by_workers = read_delta(spark, path).collect()
    assert sorted((list(row) for row in by_workers), key=repr) == rows
    snapshot = load_snapshot(spark, path)
    table = DeltaTable.forPath(spark, path)
    history = [[row["version"], row["operation"]] for row in table.history().collect()]
    detail = table.detail().collect()[0]
    totals = [detail["numFiles"], detail["location"]]
    filtered = read_delta(spark, path, where="id > 1", columns=["id"]).count()
    by_column = snapshot.scan((F.col("id") > 1) & (F.col("id") < 9))
    kept = [by_column.to_df().count(), by_column.report().after_statistics.files]
    return [snapshot.version, rows, paths(snapshot), history, totals, filtered, kept]


def _tables(root: Path) -> dict[str, Path]:
    info = {"commitInfo": {"timestamp": 1, "operation": "WRITE"}}
    plain = create(root / "my table", info, write_data(root / "my table", "f g", ids(0, 3)))

    partitioned = root / "partitioned"
    schema = (field("p", "string"), field("id", "long"))
    files = [
        write_data(partitioned, f"p={p}/f", ids(n, n + 2), {"p": p})
        for n, p in enumerate(["a b", "c"])
    ]
    described_ = metadata(*schema, partitioned_by=["p"])
    write_commit(partitioned, 0, [protocol(), described_, *files])
    write_commit(partitioned, 1, [info, removal_of(files[0])])

    checkpointed = root / "checkpointed"
    commits = {
        0: [protocol(), metadata(), write_data(checkpointed, "f", ids(0, 2))],
        1: [write_data(checkpointed, "g", ids(2, 4)), {"txn": {"appId": "a", "version": 1}}],
    }
    write_checkpoint(checkpointed, 1, replay(commits).checkpoint())
    write_commit(checkpointed, 2, [removal_of(commits[0][2]), info])

    v2 = root / "v2"
    action = write_data(v2, "f", ids(0, 2))
    first = [protocol(features=["v2Checkpoint"]), metadata()]
    write_v2_checkpoint(v2, 3, first, sidecars=[[action]], as_json=True)
    write_commit(v2, 4, [info, write_data(v2, "g", ids(5, 6))])

    vectors = root / "vectors"
    shared = write_vectors(vectors, [0], [1, 2], prefix="ab")
    files = [
        write_data(vectors, f"f{n}", ids(3 * n, 3 * n + 3), deletionVector=vector)
        for n, vector in enumerate(shared)
    ]
    write_commit(vectors, 0, [protocol(features=["deletionVectors"]), metadata(), *files, info])

    mapped = root / "mapped"
    physical = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    configuration = {"delta.columnMapping.mode": "name"}
    data = ids(0, 2).rename_columns(["col-1"])
    described_ = metadata(field("id", "long", metadata=physical), configuration=configuration)
    actions = [protocol(features=["columnMapping"]), described_, write_data(mapped, "f", data)]
    write_commit(mapped, 0, [*actions, info])

    without_ids = root / "without ids"
    by_id = metadata(
        field("id", "long", metadata=physical), configuration={"delta.columnMapping.mode": "id"}
    )
    file = write_data(without_ids, "f", data)
    write_commit(without_ids, 0, [protocol(features=["columnMapping"]), by_id, file])

    hidden = create(root / "hidden", write_data(root / "hidden", "_f", ids(0, 2)))
    return {
        "plain": plain, "partitioned": partitioned, "checkpointed": checkpointed, "v2": v2,
        "vectors": vectors, "mapped": mapped, "hidden": hidden, "missing": root / "missing",
        "without ids": without_ids,
    }  # fmt: skip


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tables by name."""
    return _tables(tmp_path_factory.mktemp("connect"))


@pytest.fixture(scope="module")
def by_connect(tables: dict[str, Path]) -> dict[str, Any]:
    """What a Connect client in a process of its own says of each table."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps({n: str(p) for n, p in tables.items()})],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, cwd=tables["plain"].parent, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-5000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "name", ["plain", "partitioned", "checkpointed", "v2", "vectors", "mapped"]
)
def test_connect_reads_what_classic_reads(
    spark: SparkSession, tables: dict[str, Path], by_connect: dict[str, Any], name: str
) -> None:
    assert by_connect[name] == json.loads(json.dumps(described(spark, str(tables[name]))))


def test_what_connect_cannot_read(by_connect: dict[str, Any]) -> None:
    assert by_connect["hidden"] == ["DataFileNotReadError"]
    assert by_connect["hidden, by workers"] == [0, 1]
    assert by_connect["missing"] == ["TableNotFoundError"]
    assert by_connect["without ids"] == ["ColumnMappingError"], "never read by physical names"


def test_settings_do_not_matter(by_connect: dict[str, Any]) -> None:
    assert by_connect["hostile"] == by_connect["vectors"]
