"""Spark Connect reads what classic Spark reads."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta import (
    DeltaError,
    DeltaTable,
    load_snapshot,
    read_changes,
    read_delta,
    use_catalog,
    write_delta,
)
from tests.support.distributed import distributed_scans
from tests.support.log_writer import write_checkpoint, write_commit, write_v2_checkpoint
from tests.support.memory_catalog import MemoryCatalog
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

pytestmark = [pytest.mark.connect, pytest.mark.full]
ROOT = Path(__file__).parents[3]

_SESSION = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from sparkdelta import DeltaError, DeltaTable, load_snapshot, read_delta
from tests.base.spark.test_connect_engine import by_name, by_pyspark, deleted, described
from tests.base.spark.test_connect_engine import CACHED, changed, read_while_cached
from tests.base.spark.test_connect_engine import by_definition, refused_definitions
from tests.base.spark.test_connect_engine import ruled, written
from tests.support.distributed import distributed_scans
spark = (SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "2")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate())
found = {}
"""
_READS = """
for name, path in json.loads(sys.argv[1]).items():
    try:
        by_workers, is_whole = name in ("vectors", "mapped"), name in ("plain", "vectors")
        found[name] = described(spark, path, by_workers=by_workers, is_whole=is_whole)
    except DeltaError as error:
        found[name] = [error.error_class]
with distributed_scans():
    hidden = read_delta(spark, json.loads(sys.argv[1])["hidden"])
    found["hidden, by workers"] = sorted(row["id"] for row in hidden.collect())
"""
_HOSTILE = """
spark.conf.set("spark.sql.session.timeZone", "America/New_York")
spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
spark.conf.set("spark.sql.caseSensitive", "true")
spark.conf.set("spark.sql.ansi.enabled", "false")
"""
_READS_AGAIN = """
try:
    found["hostile"] = described(spark, json.loads(sys.argv[1])["vectors"])
except Exception as error:
    found["hostile"] = repr(error)[:1000]
tables = json.loads(sys.argv[1])
found["cached"] = [read_while_cached(spark, tables[name]) for name in CACHED]
"""
_CHANGES = """
found["written"] = written(spark, Path(sys.argv[2]))
found["deleted"] = deleted(spark, Path(sys.argv[2]))
found["changed"] = changed(spark, Path(sys.argv[2]))
found["ruled"] = ruled(spark, Path(sys.argv[2]))
found["by pyspark"] = by_pyspark(spark, Path(sys.argv[2]))
found["by definition"] = by_definition(spark, Path(sys.argv[2]))
found["refused"] = refused_definitions(spark, Path(sys.argv[2]))
found["by name"] = by_name(spark, Path(sys.argv[2]))
"""
_END = """
print(json.dumps(found))
spark.stop()
"""
READING_PROGRAM = _SESSION + _READS + _HOSTILE + _READS_AGAIN + _END
CHANGING_PROGRAM = _SESSION + _HOSTILE + _CHANGES + _END


def described(
    spark: SparkSession, path: str, *, by_workers: bool = False, is_whole: bool = True
) -> Any:
    """Rows and live files of a table, and perhaps more of what there is to ask, as JSON has it."""
    rows = sorted((list(row) for row in read_delta(spark, path).collect()), key=repr)
    if by_workers:
        with distributed_scans():
            again = read_delta(spark, path).collect()
        assert sorted((list(row) for row in again), key=repr) == rows
    snapshot = load_snapshot(spark, path)
    if not is_whole:
        return [snapshot.version, rows, paths(snapshot)]
    table = DeltaTable.forPath(spark, path)
    history = [[row["version"], row["operation"]] for row in table.history().collect()]
    detail = table.detail().collect()[0]
    totals = [detail["numFiles"], detail["location"]]
    filtered = read_delta(spark, path, where="id > 1", columns=["id"]).count()
    by_column = snapshot.scan((F.col("id") > 1) & (F.col("id") < 9))
    kept = [by_column.to_df().count(), by_column.report().after_statistics.files]
    return [snapshot.version, rows, paths(snapshot), history, totals, filtered, kept]


CACHED = ("plain", "partitioned", "vectors")


def read_while_cached(spark: SparkSession, path: str) -> list[int]:
    """Numbers of rows of a table that the session has in its cache."""
    rows = read_delta(spark, path).cache()
    counts = [rows.count(), read_delta(spark, path).count()]
    counts.append(read_delta(spark, path, where="id > 1").count())
    rows.unpersist()
    return counts


def written(spark: SparkSession, root: Path) -> Any:
    """Write in every way, and return the rows of the tables and the writes that were refused."""
    plain, ruled, refused = root / "written", root / "ruled", []

    def write(path: Path, values: str, **options: Any) -> None:
        write_delta(spark.sql(f"SELECT * FROM VALUES {values}"), str(path), **options)

    def refuse(path: Path, values: str, **options: Any) -> None:
        refuse_rows(path, spark.sql(f"SELECT * FROM VALUES {values}"), **options)

    def refuse_rows(path: Path, rows: DataFrame, **options: Any) -> None:
        try:
            write_delta(rows, str(path), **options)
        except DeltaError as error:
            refused.append(error.error_class)

    write(plain, "(1L, 'a'), (2L, 'b/ c') AS t(id, p)", mode="append", partition_by=["p"])
    write(plain, "(3L, 'a') AS t(id, p)", mode="overwrite", partition_overwrite_mode="dynamic")
    write(
        plain, "(4L, CAST(NULL AS STRING), 1.5F) AS t(id, p, f)", mode="append", merge_schema=True
    )
    write(plain, "(9L, 'a') AS t(id, p)", mode="ignore")
    refuse(plain, "(9L, 'a') AS t(id, p)", mode="error")
    refuse(plain, "('x', 'a') AS t(id, p)", mode="append")
    sparkdelta.write_checkpoint(spark, str(plain))
    own = read_delta(spark, str(plain)).filter("id > 3")
    write(plain, "(5L, 'c', 2.5F) AS t(id, p, f)", mode="append")
    refuse_rows(plain, own, mode="append")

    write_commit(ruled, 0, [protocol(1, 4), _with_rules()])
    # The day of a time is that in UTC, whatever the session says.
    night = "TIMESTAMP_LTZ'2024-03-01 02:00:00Z'"
    write(ruled, f"({night}, 1) AS t(at, n)", mode="append")
    refuse(ruled, f"({night}, -1) AS t(at, n)", mode="append")
    refuse(ruled, "(CAST(NULL AS TIMESTAMP_LTZ), 1) AS t(at, n)", mode="append")
    rows = sorted(map(str, read_delta(spark, str(plain)).collect()))
    days = read_delta(spark, str(ruled)).selectExpr("unix_micros(at)", "n", "day").collect()

    kept = {"retention_hours": 0, "check_retention": False}
    modes = [sparkdelta.vacuum(spark, str(plain), mode=mode, **kept) for mode in ("lite", "full")]
    vacuumed = [[result.deleted.count, result.unneeded.count] for result in modes]

    made = DeltaTable.create(spark).location(str(root / "made")).addColumn("id", "LONG")
    made.addColumn("p", "STRING").partitionedBy("p").execute()
    versions = [load_snapshot(spark, str(path)).version for path in (plain, ruled, root / "made")]
    return [rows, list(map(str, days)), versions, refused, vacuumed]


def deleted(spark: SparkSession, root: Path) -> Any:
    """Rows, changes and counts after deletes by vectors and by rewrites."""
    found = []
    for name in ("enableDeletionVectors", "enableChangeDataFeed"):
        path = str(root / name)
        rows = spark.range(0, 12, 1, 2).selectExpr("id", "id % 2 AS part", "'x' AS s")
        write_delta(rows, path, partition_by=["part"], properties={f"delta.{name}": "true"})
        table = DeltaTable.forPath(spark, path)
        done = [table.delete("id = 3"), table.delete(F.col("id").isin(4, 5) & (F.col("s") == "x"))]
        counts = [[d.num_deleted_rows, d.num_copied_rows, d.num_deletion_vectors] for d in done]
        found.append([sorted(map(list, read_delta(spark, path).collect())), counts])
    changes = read_changes(spark, path, start_version=1)
    found.append(sorted(map(list, changes.select("id", "part", "_change_type").collect())))
    return found


def changed(spark: SparkSession, root: Path) -> Any:
    """Rows, counts, changes and refusals of updates, merges, and deletes by any condition."""
    path, refused = str(root / "changed"), []
    rows = spark.range(0, 12, 1, 2).selectExpr("id", "id % 2 AS part", "CAST(id AS STRING) AS s")
    rows = rows.withColumn("n", F.struct(F.col("id").alias("a"), F.lit(1).alias("b")))
    properties = dict.fromkeys(("delta.enableChangeDataFeed", "delta.enableRowTracking"), "true")
    write_delta(rows, path, partition_by=["part"], properties=properties)
    table = DeltaTable.forPath(spark, path)
    columns = table.toDF()
    counts = [
        table.delete("abs(id) + length(s) > 12").num_deleted_rows,
        table.update("id % 3 = 0", {"s": "concat(s, '!')", "n.b": "n.b + 1"}).num_updated_rows,
        table.update(columns["id"] == 4, {"part": F.col("part") + 8}).num_updated_rows,
        table.optimize().where("part = 0").executeCompaction().count(),
    ]
    source = (
        spark.range(6, 14).selectExpr("id", "id % 2 AS part", "concat('new', id) AS s").alias("s")
    )
    merge = table.alias("t").merge(source, "t.id = s.id AND s.part IS NOT NULL")
    merge = merge.whenMatchedUpdate("s.id > 7", {"s": "s.s"}).whenMatchedDelete("s.id = 6")
    merge = merge.whenNotMatchedInsert("s.id < 13", {"id": "s.id", "part": "s.part", "s": "s.s"})
    merge = merge.whenNotMatchedBySourceUpdate("t.id = 2", {"s": "'left'"})
    counts += list(merge.whenNotMatchedBySourceDelete("t.id = 1").execute().collect()[0])
    rows.select("id").where("id = 3").createOrReplaceTempView("keys_to_delete")
    keys = spark.table("keys_to_delete")
    condition = (columns["id"] == keys["id"]) & F.expr("keys_to_delete.id > 0")
    deletes = table.merge(keys, condition).whenMatchedDelete()
    counts += list(deletes.execute().collect()[0])
    new = rows.where("id = 10").withColumn("s", F.lit("ten"))
    replacing = {"mode": "overwrite", "replace_where": "id BETWEEN 10 AND 11 AND length(s) > 0"}
    counts.append(write_delta(new, path, **replacing).num_rows)
    for change in (
        lambda: write_delta(new.union(rows), path, **replacing),
        lambda: table.delete("id > rand()"),
        lambda: table.update("id IN (SELECT 1)", {"s": "s"}),
        lambda: table.update("id = 1", {"nowhere": "s"}),
        table.merge(source, "missing = 1").whenMatchedDelete().execute,
        table.alias("t").merge(source.union(source).alias("s"), "t.id = s.id")
        .whenMatchedUpdate(set={"s": "s.s"}).execute,
    ):  # fmt: skip
        try:
            change()
        except DeltaError as error:
            refused.append(error.error_class)
    changes = read_changes(spark, path, start_version=1).select("id", "s", "n", "_change_type")
    counts.append(read_delta(spark, path, columns=["_metadata.row_id"]).distinct().count())
    final = read_delta(spark, path)
    return [*(sorted(map(str, frame.collect())) for frame in (final, changes)), counts, refused]


def ruled(spark: SparkSession, root: Path) -> Any:
    """Rows of a new table with rules, and the constraints that are refused."""
    made = DeltaTable.create(spark).location(str(root / "with rules")).addColumn("n", "INT")
    made.addColumn("user", "STRING").addColumn("twice", "INT", generatedAlwaysAs="n * 2").execute()
    alter = sparkdelta.alter_table(spark, str(root / "with rules"))
    alter.add_constraint("positive", "n > 0 AND user <> '(select '")
    write_delta(spark.sql("SELECT 1 AS n, 'a' AS user"), str(root / "with rules"), mode="append")
    refused = []
    for expression in (
        "n > 1", "n > rand()", "n > (SELECT 1)", "sum(n) > 1", "user = current_user()", "n",
        "missing > 1", "row_number() OVER (ORDER BY n) > 0",
    ):  # fmt: skip
        try:
            alter.add_constraint("refused", expression)
        except DeltaError as error:
            refused.append(error.error_class)
    rows = read_delta(spark, str(root / "with rules")).collect()
    return [list(map(list, rows)), refused]


DEFINITIONS = """
CREATE TABLE t (id INT, s CHAR(3) COMMENT 'it''s {x}', part INT) USING delta PARTITIONED BY (part);
INSERT INTO t SELECT CAST(id AS INT), 'a', 1 FROM range(4);
CREATE VIEW v (n COMMENT 'number', s) COMMENT 'odd' TBLPROPERTIES ('k' = 'x') AS SELECT id,
 s FROM t WHERE s = 'a';
SHOW CREATE TABLE v;
CREATE VIEW v AS SELECT s FROM t;
DELETE FROM t WHERE id = 2;
SELECT v.n FROM v JOIN t ON v.n = t.id WHERE v.s = 'a';
CREATE VIEW mixed AS WITH c AS (SELECT n FROM v) SELECT n FROM c UNION ALL
 SELECT id FROM c_defined.t VERSION AS OF 1 AS old WHERE old.id NOT IN (SELECT id FROM t);
ALTER VIEW mixed RENAME TO above;
TABLE above;
ALTER VIEW above AS SELECT * EXCEPT (part) FROM t;
DESCRIBE above;
CREATE OR REPLACE VIEW v AS SELECT id FROM above JOIN v USING (id);
CREATE VIEW bad AS SELECT id FROM t JOIN temporary USING (id);
CREATE VIEW bad AS SELECT id + 1 FROM t;
CREATE FUNCTION f(low INT DEFAULT 0) RETURNS INT RETURN (SELECT sum(id) FROM t WHERE id >= low);
CREATE FUNCTION g() RETURNS TABLE (id INT) RETURN SELECT t.id FROM t WHERE t.id >= f(9);
SELECT c_defined.f(1), count(*) FROM g();
CREATE FUNCTION bad() RETURNS INT RETURN (SELECT max(id) FROM t JOIN temporary USING (id));
CREATE OR REPLACE FUNCTION f(low INT) RETURNS INT RETURN (SELECT max(id) FROM t) + low;
SELECT f(1);
CACHE TABLE above;
INSERT INTO t VALUES (9, 'b', 2);
SELECT sum(a.id), count(b.id) FROM t a JOIN t b USING (id);
UNCACHE TABLE t;
DROP VIEW above;
CREATE TABLE delta.`{other}` LIKE t;
ALTER TABLE t SET LOCATION '{other}';
TABLE t
""".strip().split(";\n")
CACHED_AFTER = {"CACHE TABLE above": True, "UNCACHE TABLE t": False}


def by_definition(spark: SparkSession, root: Path) -> Any:
    """Results of statements on views, functions, and cached and moved tables, and whether the table
    is cached then; commits of a table of a catalog.
    """
    other, results = str(root / "other place"), []
    sparkdelta.enable(spark)
    try:
        spark.sql("CREATE DATABASE c_defined")
        spark.sql("USE c_defined")
        spark.range(1).createOrReplaceTempView("temporary")
        for text in DEFINITIONS:
            try:
                frame = spark.sql(text.replace("{other}", other))
                result: Any = [frame.columns, sorted(map(str, frame.collect()))]
            except PySparkException as error:
                result = getattr(error, "error_class", None) or error.getCondition()
            if text in CACHED_AFTER:
                result = [result, spark.catalog.isCached("t")]
            results.append(result)
        spark.catalog.dropTempView("temporary")
        path, catalog = str(root / "managed"), MemoryCatalog(forgets=False)
        use_catalog(spark, path, catalog)
        managed = {"delta.feature.catalogManaged": "supported"}
        write_delta(spark.range(4), path, properties=managed)
        DeltaTable.forPath(spark, path).delete("id > 2")
        sparkdelta.write_checkpoint(spark, path)
        rows = [read_delta(spark, path, version=version).count() for version in (0, 1)]
        use_catalog(spark, path, None)
        with pytest.raises(DeltaError) as raised:
            read_delta(spark, path)
        return [*results, rows, [*catalog.latest.values()], raised.value.error_class]
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE c_defined CASCADE")
        sparkdelta.disable(spark)


def refused_definitions(spark: SparkSession, root: Path) -> list[str | None]:
    """Definitions that only Spark Connect refuses, and an argument of `enable`."""
    table, refused = f"delta.`{root / 'other place'}`", []
    for call in (
        lambda: sparkdelta.sql(spark, f"CREATE VIEW refused AS SELECT id FROM {table}"),
        lambda: sparkdelta.sql(
            spark, f"CREATE FUNCTION refused() RETURNS INT RETURN (SELECT max(id) FROM {table})"
        ),
        lambda: sparkdelta.enable(spark, sync_catalog=True),
    ):
        try:
            call()
        except DeltaError as error:
            refused.append(error.error_class)
    return refused


def by_pyspark(spark: SparkSession, root: Path) -> Any:
    """Write and read by PySpark's own methods in an enabled session."""
    path, rows = str(root / "by pyspark"), spark.range(4).withColumn("part", F.col("id") % 2)
    name = f"delta.`{path}`"
    sparkdelta.enable(spark)
    try:
        rows.write.format("delta").partitionBy("part").option("delta.appendOnly", "false").save(
            path
        )
        rows.where("id > 2").write.mode("append").save(
            path, format="delta", txnAppId="a", txnVersion=1
        )
        rows.where("id > 2").writeTo(name).overwritePartitions()
        spark.range(5, 6).writeTo(name).using("delta").clusterBy("id").createOrReplace()
        read = spark.read.format("delta")
        counts = [read.load(f"{path}@v{version}").count() for version in range(4)]
        columns = load_snapshot(spark, path, version=0).metadata.partition_columns
        return [counts, columns, load_snapshot(spark, path).version]
    finally:
        sparkdelta.disable(spark)


NAMES = ("c_made", "c_saved", "c_external", "c_written", "c_built", "c_selected", "c_like")


def by_name(spark: SparkSession, root: Path) -> Any:
    """Tables with names, by all ways to create them: their rows, kinds and what DROP leaves."""
    sparkdelta.enable(spark)
    try:
        spark.sql("CREATE TABLE c_made (id BIGINT, part INT) USING delta PARTITIONED BY (part)")
        more = spark.range(3).selectExpr("id", "1 AS part")
        more.write.format("delta").mode("append").saveAsTable("c_made")
        spark.sql("INSERT INTO c_made VALUES (3, 2)")
        spark.range(2).write.format("delta").saveAsTable("c_saved")
        external = spark.range(4).write.format("delta").option("path", str(root / "it's external"))
        external.saveAsTable("default.c_external")
        spark.range(5).writeTo("c_written").using("delta").create()
        DeltaTable.create(spark).tableName("c_built").addColumn("id", "INT").execute()
        spark.sql("CREATE TABLE c_selected USING delta AS SELECT * FROM c_made WHERE part = 2")
        spark.sql("CREATE TABLE c_like LIKE c_saved")
        spark.range(9).createOrReplaceTempView("c_written")
        spark.range(6).write.format("delta").mode("overwrite").saveAsTable("c_written")
        seen = [spark.table(name).count() for name in ("c_written", "default.c_written")]
        spark.catalog.dropTempView("c_written")
        rows = [spark.table(name).count() for name in NAMES]
        kinds = [spark.catalog.getTable(name).tableType for name in NAMES]
        refused = []
        for text in (
            "CREATE TABLE c_saved (id INT) USING delta",
            "CREATE TABLE c_failed (id INT, id INT) USING delta",
            "CREATE TABLE other.default.c_failed (id INT) USING delta",
            "ALTER TABLE c_saved RENAME TO c_made",
        ):
            with pytest.raises(DeltaError) as raised:
                spark.sql(text)
            refused.append(raised.value.error_class)
        spark.sql("ALTER TABLE c_saved RENAME TO c_renamed")
        renamed = spark.sql("SELECT COUNT(*) FROM default.c_renamed").collect()[0][0]
        spark.sql("ALTER TABLE c_renamed RENAME TO c_saved")
        listed = {row["tableName"] for row in spark.sql("SHOW TABLES LIKE 'c_*'").collect()}
        paths = [DeltaTable.forName(spark, n).detail().collect()[0]["location"] for n in NAMES]
        for name in NAMES:
            spark.sql(f"DROP TABLE {name}")
        left = [Path(path.removeprefix("file:")).exists() for path in paths]
        gone = spark.sql("SHOW TABLES LIKE 'c_*'").count()
        return [rows, kinds, refused, renamed, sorted(listed), left, gone, seen]
    finally:
        sparkdelta.disable(spark)


def _with_rules() -> dict[str, Any]:
    generated = {"delta.generationExpression": "CAST(at AS DATE)"}
    return metadata(
        field("at", "timestamp", nullable=False),
        field("n", "integer"),
        field("day", "date", metadata=generated),
        configuration={"delta.constraints.positive": "n > 0"},
    )


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

    by_id_ = root / "by id"
    made = pa.table({"own name": pa.array([0, 1], pa.int64())})
    with_id = pa.field("own name", pa.int64(), metadata={"PARQUET:field_id": "1"})
    file = write_data(by_id_, "f", made.cast(pa.schema([with_id])))
    write_commit(by_id_, 0, [protocol(features=["columnMapping"]), by_id, file, info])

    no_bytes = create(root / "no bytes", write_data(root / "no bytes", "f", ids(0, 2)), info)
    (no_bytes / "f").write_bytes(b"")
    torn = create(root / "torn", write_data(root / "torn", "f", ids(0, 2)), info)
    (torn / "_delta_log" / f"{1:020d}.json").write_bytes(b"")

    hidden = create(root / "hidden", write_data(root / "hidden", "_f", ids(0, 2)))
    return {
        "plain": plain, "partitioned": partitioned, "checkpointed": checkpointed, "v2": v2,
        "vectors": vectors, "mapped": mapped, "hidden": hidden, "missing": root / "missing",
        "without ids": without_ids, "by id": by_id_, "no bytes": no_bytes, "torn": torn,
    }  # fmt: skip


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, Any]]:
    """Tables by name, and what a Connect client in a process of its own says of each."""
    return _asked_once(tmp_path_factory, "reads", READING_PROGRAM, _tables)


def _asked_once(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    program: str,
    tables: Callable[[Path], dict[str, Path]],
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the paths of tables and what a program prints about them.

    It runs once for all processes of a test run: a local server always has the same port.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    known, directory = root / f"{name}.json", root / name
    with open(root / "connect.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not known.exists():
            directory.mkdir()
            paths = {each: str(path) for each, path in tables(directory).items()}
            answers = _ask(program, paths, directory)
            known.write_text(json.dumps([paths, answers]), encoding="utf-8")
    paths, answers = json.loads(known.read_text(encoding="utf-8"))
    return paths, answers


def _ask(program: str, paths: dict[str, str], directory: Path) -> dict[str, Any]:
    result = subprocess.run(
        [sys.executable, "-c", program, json.dumps(paths), str(directory)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, cwd=directory, check=False,
        timeout=600,  # PySpark 4.0.0 may wait forever for the release of a failed query
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-5000:]
    answers: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return answers


@pytest.fixture(scope="module")
def tables(asked: tuple[dict[str, str], dict[str, Any]]) -> dict[str, str]:
    """Tables by name."""
    return asked[0]


@pytest.fixture(scope="module")
def by_connect(asked: tuple[dict[str, str], dict[str, Any]]) -> dict[str, Any]:
    """The client's answers by the names of tables and questions."""
    return asked[1]


@pytest.fixture(scope="module")
def changed_by_connect(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Another client's answers about what it has changed and defined."""
    return _asked_once(tmp_path_factory, "changes", CHANGING_PROGRAM, lambda _: {})[1]


@pytest.mark.parametrize(
    "name", ["plain", "partitioned", "checkpointed", "v2", "vectors", "mapped", "by id"]
)
def test_connect_reads_what_classic_reads(
    spark: SparkSession, tables: dict[str, str], by_connect: dict[str, Any], name: str
) -> None:
    is_whole = name in ("plain", "vectors")
    here = described(spark, tables[name], is_whole=is_whole)
    assert by_connect[name] == json.loads(json.dumps(here))


def test_connect_refuses_unreadable_tables(by_connect: dict[str, Any]) -> None:
    assert by_connect["hidden"] == ["DELTA_DATA_FILE_NOT_READ"]
    assert by_connect["hidden, by workers"] == [0, 1]
    assert by_connect["missing"] == ["DELTA_TABLE_NOT_FOUND"]
    assert by_connect["no bytes"] == ["DELTA_STORAGE_ERROR"], "never fewer rows"
    assert by_connect["torn"] == ["DELTA_MALFORMED_LOG_FILE"], "never an older version"
    assert by_connect["without ids"] == ["DELTA_INVALID_COLUMN_MAPPING"], (
        "never read by physical names"
    )


def test_settings_do_not_matter(by_connect: dict[str, Any]) -> None:
    assert by_connect["hostile"] == by_connect["vectors"]


def test_a_version_is_read_again_while_it_is_cached(
    spark: SparkSession, tables: dict[str, str], by_connect: dict[str, Any]
) -> None:
    counts = [read_while_cached(spark, tables[name]) for name in CACHED]
    assert by_connect["cached"] == counts
    assert all(first == again > 0 for first, again, _ in counts)


@pytest.mark.more_connect
def test_connect_writes_what_classic_writes(
    spark: SparkSession, changed_by_connect: dict[str, Any], tmp_path: Path
) -> None:
    """Under the settings of the other test, which no table may notice."""
    assert changed_by_connect["written"] == json.loads(json.dumps(written(spark, tmp_path)))
    assert len(changed_by_connect["written"][3]) == 5
    of_overwrite, of_refused_writes = [1, 1], [0, 0]
    assert changed_by_connect["written"][4] == [of_overwrite, of_refused_writes]


@pytest.mark.more_connect
def test_connect_deletes_what_classic_deletes(
    spark: SparkSession, changed_by_connect: dict[str, Any], tmp_path: Path
) -> None:
    here = json.loads(json.dumps(deleted(spark, tmp_path)))
    assert changed_by_connect["deleted"] == here
    assert [counts for _, counts in here[:2]] == [[[1, 0, 1], [2, 1, 1]], [[1, 2, 0], [2, 3, 0]]]


@pytest.mark.more_connect
def test_connect_changes_rows_as_classic_does(
    spark: SparkSession, changed_by_connect: dict[str, Any], tmp_path: Path
) -> None:
    here = json.loads(json.dumps(changed(spark, tmp_path)))
    assert changed_by_connect["changed"] == here
    assert here[2] == [1, 4, 1, 1, 8, 4, 2, 2, 1, 0, 1, 0, 2, 9]
    assert here[3] == [
        "DELTA_REPLACE_WHERE_MISMATCH",
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", "DELTA_UNSUPPORTED_SUBQUERY",
        "DELTA_COLUMN_NOT_FOUND", "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    ]  # fmt: skip


@pytest.mark.more_connect
def test_connect_checks_rules_as_classic_does(
    spark: SparkSession, changed_by_connect: dict[str, Any], tmp_path: Path
) -> None:
    here = json.loads(json.dumps(ruled(spark, tmp_path)))
    assert changed_by_connect["ruled"] == here
    assert here[0] == [[1, "a", 2]]
    in_constraint = "EXPRESSION_IN_CHECK_CONSTRAINT", "EXPRESSION_CHECK_CONSTRAINT"
    assert here[1] == [
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", f"DELTA_NON_DETERMINISTIC_{in_constraint[0]}",
        f"DELTA_UNSUPPORTED_{in_constraint[1]}", "DELTA_AGGREGATE_IN_CHECK_CONSTRAINT",
        f"DELTA_UNSUPPORTED_{in_constraint[1]}", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
        "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", f"DELTA_UNSUPPORTED_{in_constraint[1]}",
    ]  # fmt: skip


@pytest.mark.more_connect
def test_definitions_are_those_of_classic_spark(
    spark: SparkSession, changed_by_connect: dict[str, Any], tmp_path: Path
) -> None:
    here = json.loads(json.dumps(by_definition(spark, tmp_path)))
    there = changed_by_connect["by definition"]
    results = dict(zip(DEFINITIONS, here, strict=False))
    assert dict(zip(DEFINITIONS, there, strict=False)) == results
    assert there[-3:] == here[-3:] == [[4, 3], [1], here[-1]]
    assert [each for each in here if isinstance(each, str)] == [
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        "DELTA_STATEMENT_NOT_SUPPORTED",
        "INVALID_TEMP_OBJ_REFERENCE",
        "CREATE_PERMANENT_VIEW_WITHOUT_ALIAS",
        "DELTA_STATEMENT_NOT_SUPPORTED",
        "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
    ]
    assert results["TABLE above"][1] == ["Row(n=0)", "Row(n=1)", "Row(n=2)", "Row(n=3)"]
    assert results["SELECT f(1)"][1] == ["Row(spark_catalog.c_defined.f(1)=4)"]
    assert results["TABLE t"] == [["id", "s", "part"], []]
    assert {text: results[text][1] for text in CACHED_AFTER} == CACHED_AFTER


@pytest.mark.more_connect
def test_connect_refuses_what_its_server_cannot_define(changed_by_connect: dict[str, Any]) -> None:
    refused = ["DELTA_STATEMENT_NOT_SUPPORTED"] * 2
    assert changed_by_connect["refused"] == [*refused, "DELTA_ILLEGAL_OPTION"]


@pytest.mark.more_connect
def test_pysparks_methods_do_the_same(
    spark: SparkSession, changed_by_connect: dict[str, Any], tmp_path: Path
) -> None:
    here = json.loads(json.dumps(by_pyspark(spark, tmp_path)))
    assert changed_by_connect["by pyspark"] == here == [[4, 5, 3, 1], ["part"], 3]


@pytest.mark.more_connect
def test_names_are_in_the_servers_catalog(
    spark: SparkSession, changed_by_connect: dict[str, Any], tmp_path: Path
) -> None:
    here = json.loads(json.dumps(by_name(spark, tmp_path)))
    assert changed_by_connect["by name"] == here
    assert here[0] == [4, 2, 4, 6, 0, 1, 0]
    is_external = [name == "c_external" for name in NAMES]
    assert here[1] == ["EXTERNAL" if found else "MANAGED" for found in is_external]
    assert here[4:] == [sorted(NAMES), is_external, 0, [9, 6]]
