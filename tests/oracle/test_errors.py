"""Tests that PySpark's readers and writers, `DeltaTable` and SQL raise the errors of delta-spark in
an enabled session: condition, SQLSTATE and parameters.

The errors of more statements are compared in `test_sql`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta.error_names import entries_by_condition
from tests.oracle.error_names import different_results, names_of
from tests.support.delta_spark import DeltaSpark

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

_TABLES = """
CREATE TABLE er_t (id INT NOT NULL, v STRING, p INT, c INT) USING delta PARTITIONED BY (p)
INSERT INTO er_t VALUES (1, 'a', 1, 1), (2, 'b', 2, 2)
INSERT INTO er_t VALUES (3, 'c', 1, 3)
ALTER TABLE er_t ADD CONSTRAINT positive CHECK (id > 0)
CREATE TABLE er_d (id INT, s STRUCT<x: INT, y: STRING>, n DECIMAL(4, 1)) USING delta LOCATION '{root}/d'
INSERT INTO er_d VALUES (1, named_struct('x', 1, 'y', 'a'), 1.5)
CREATE TABLE er_a (id INT) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')
CREATE TABLE er_e USING delta LOCATION '{root}/e'
CREATE TABLE er_f (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')
INSERT INTO er_f VALUES (1)
CREATE TABLE er_n (id INT NOT NULL) USING delta
CREATE TABLE er_g (id INT, g INT GENERATED ALWAYS AS (id + 1)) USING delta
CREATE TABLE er_c (id INT, v STRING) USING delta CLUSTER BY (id)
CREATE TABLE er_m (id INT, s STRUCT<x: INT, y: INT>, l ARRAY<STRUCT<f: INT>>, m MAP<INT, INT>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')
CREATE TABLE er_q (id INT) USING parquet LOCATION '{root}/parquet'
INSERT INTO er_q VALUES (1)
CREATE VIEW er_v AS SELECT * FROM er_d
CREATE TEMP VIEW er_some AS SELECT * FROM er_d WHERE id > 0
CREATE TEMP VIEW er_limit AS SELECT * FROM er_d LIMIT 5
CREATE TEMP VIEW er_join AS SELECT a.* FROM er_d a JOIN er_d b ON a.id = b.id
CREATE TEMP VIEW er_old AS SELECT * FROM er_d VERSION AS OF 1
CREATE TEMP VIEW er_above AS SELECT id, s, n FROM er_v
CREATE TABLE er_ch (id INT, v VARCHAR(2), c CHAR(3)) USING delta
INSERT INTO er_ch VALUES (1, 'a', 'a')
"""  # noqa: E501 - statements
_STATEMENTS = """
ALTER TABLE er_v SET TBLPROPERTIES ('a' = 'b')
ALTER TABLE er_v ADD COLUMN z INT
ALTER TABLE er_missing ADD CONSTRAINT c CHECK (id > 1)
ALTER TABLE er_missing DROP CONSTRAINT c
ALTER TABLE er_v ADD CONSTRAINT c CHECK (id > 1)
ALTER TABLE er_some DROP FEATURE deletionVectors
ALTER TABLE er_d ADD COLUMN s.z INT AFTER id
ALTER TABLE er_m DROP COLUMN l.element
ALTER TABLE er_m DROP COLUMN m.key
ALTER TABLE er_m DROP COLUMN l.nothing
ALTER TABLE er_m DROP COLUMN id.nothing
ALTER TABLE er_m RENAME COLUMN l.element TO z
ALTER TABLE er_m ALTER COLUMN l.element COMMENT 'z'
ALTER TABLE er_m ALTER COLUMN s.x AFTER nothing
ALTER VIEW er_d AS SELECT 1
ALTER VIEW er_d WITH SCHEMA EVOLUTION
ALTER VIEW er_d SET TBLPROPERTIES ('a' = 'b')
ALTER VIEW er_d UNSET TBLPROPERTIES ('a')
CREATE TABLE er_new SHALLOW CLONE er_v
CREATE TABLE er_new SHALLOW CLONE er_some
CREATE TABLE er_new SHALLOW CLONE er_d VERSION AS OF -1
CREATE TABLE er_v (id INT) USING delta
CREATE TABLE er_q USING delta AS SELECT 1 AS id
CREATE TABLE no_catalog.no_database.er_new (id INT) USING delta
REPLACE TABLE er_v (id INT) USING delta
CREATE OR REPLACE TABLE er_q (id INT) USING delta
CONVERT TO DELTA er_missing
CONVERT TO DELTA default.er_missing
CONVERT TO DELTA er_v
OPTIMIZE er_v
OPTIMIZE er_some
OPTIMIZE er_q
OPTIMIZE '{root}/missing'
VACUUM er_v
VACUUM er_q
VACUUM '{root}/missing'
VACUUM er_d USING INVENTORY er_missing
RESTORE TABLE er_v TO VERSION AS OF 0
RESTORE TABLE er_q TO VERSION AS OF 0
RESTORE TABLE er_d TO VERSION AS OF -1
REORG TABLE er_some APPLY (PURGE)
REORG TABLE er_q APPLY (PURGE)
GENERATE symlink_format_manifest FOR TABLE er_v
GENERATE symlink_format_manifest FOR TABLE er_q
DESCRIBE DETAIL er_v
DESC HISTORY er_some
DESCRIBE HISTORY er_q
DESCRIBE delta.`{root}/missing`
TRUNCATE TABLE delta.`{root}/missing`
TRUNCATE TABLE er_v
SHOW PARTITIONS delta.`{root}/missing`
SHOW COLUMNS IN delta.`{root}/missing`
SHOW TBLPROPERTIES delta.`{root}/missing`
INSERT INTO er_d (id, nothing) VALUES (1, 2)
INSERT INTO er_d (id, id) VALUES (1, 2)
INSERT INTO er_d (id) VALUES (1, 2)
INSERT INTO er_d BY NAME SELECT 1L AS id, 2 AS nothing
INSERT INTO er_d BY NAME SELECT 1 AS id, 2 AS nothing
INSERT INTO er_v SELECT * FROM er_d
INSERT INTO er_some SELECT * FROM er_d
INSERT INTO delta.`{root}/d@v1` SELECT * FROM er_d
DELETE FROM er_v
DELETE FROM er_some
DELETE FROM er_limit
DELETE FROM er_old
DELETE FROM delta.`{root}/d@v1`
DELETE FROM delta.`{root}/d@v9`
UPDATE er_v SET id = 1
UPDATE er_some SET id = 1
UPDATE er_join SET id = 1
UPDATE er_old SET id = 1
UPDATE er_d SET s.x = 1, s.X = 2
UPDATE er_d SET id = 1, ID = 2
MERGE INTO er_v t USING er_t s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO er_some t USING er_t s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO er_join t USING er_t s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO er_old t USING er_t s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO er_d t USING er_t s ON t.id = (SELECT 1) WHEN MATCHED THEN DELETE
MERGE INTO er_d t USING er_t s ON t.id = s.id WHEN NOT MATCHED AND EXISTS (SELECT 1) THEN INSERT *
SELECT * FROM er_d TIMESTAMP AS OF 'yesterday'
SELECT * FROM er_v VERSION AS OF 0
SELECT * FROM delta.`relative`
SELECT * FROM delta.`relative/path` VERSION AS OF 0
DELETE FROM delta.`relative`
UPDATE delta.`relative` SET id = 1
INSERT INTO delta.`relative` VALUES (1)
MERGE INTO delta.`relative` t USING er_t s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO er_d t USING delta.`relative` s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO er_missing t USING er_t s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO er_q t USING er_t s ON t.id = s.id WHEN MATCHED THEN DELETE
DELETE FROM er_above WHERE id = 1
UPDATE er_above SET id = 1
MERGE INTO er_above t USING er_t s ON t.id = s.id WHEN MATCHED THEN DELETE
INSERT INTO er_above SELECT * FROM er_d
REPLACE TABLE no_database.er_new (id INT) USING delta
REPLACE TABLE no_database.er_new USING delta AS SELECT 1 AS id
CREATE TABLE no_database.er_new (id INT) USING delta
ALTER TABLE er_missing ALTER COLUMN id SYNC IDENTITY
ALTER TABLE er_missing CLUSTER BY (id)
ALTER TABLE er_v CLUSTER BY (id)
ALTER TABLE er_q CLUSTER BY (id)
ALTER TABLE er_q CLUSTER BY NONE
ALTER TABLE er_d DROP COLUMN nothing
ALTER TABLE er_d ADD CONSTRAINT pk PRIMARY KEY (id)
ALTER TABLE er_d SET TBLPROPERTIES ('delta.feature.deletionVectors' = 'on')
ALTER TABLE er_t DROP FEATURE checkConstraints
CREATE TABLE er_new (id INT DEFAULT 'x') USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE er_new (id INT DEFAULT nothing) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE er_new (id INT, g INT GENERATED ALWAYS AS (g + 1)) USING delta
CREATE TABLE er_new (id INT, g INT GENERATED ALWAYS AS (id), h INT GENERATED ALWAYS AS (g)) USING delta
CREATE EXTERNAL TABLE er_external (id INT) USING delta
LOAD DATA INPATH '/x' INTO TABLE er_d
INSERT INTO er_t VALUES (NULL, 'a', 1, 1)
INSERT INTO er_d VALUES (array(1), NULL, NULL)
INSERT INTO er_d VALUES (99999999999, NULL, NULL)
INSERT INTO er_d VALUES (1, NULL, 123456.5BD)
INSERT INTO er_d (id, n) SELECT 1
INSERT INTO er_t PARTITION (id = 1) VALUES ('x', 1, 1)
INSERT OVERWRITE er_t PARTITION (nothing = 1) VALUES (1, 'x', 1)
INSERT INTO er_ch VALUES (1, 'abc', 'a')
INSERT INTO er_ch VALUES (1, 'a', 'abcd')
UPDATE er_ch SET v = 'abc'
UPDATE er_ch SET c = 'abcd'
MERGE INTO er_ch t USING (SELECT 1 AS k) ON id = k WHEN MATCHED THEN UPDATE SET v = 'abc'
SELECT * FROM table_changes('er_q', 0)
SELECT * FROM table_changes('er_missing', 0)
SELECT * FROM table_changes('er_f', 'x')
SELECT * FROM table_changes_by_path('/er/missing', 0)
"""  # noqa: E501 - statements
Fault = Callable[[SparkSession, str], Any]


def _table(spark: SparkSession, path: str) -> Any:
    """Return the `DeltaTable` of either engine."""
    return _delta_table(spark).forPath(_session(spark), path)


def _named(spark: SparkSession, name: str) -> Any:
    return _delta_table(spark).forName(_session(spark), name)


def _is_delta_spark(spark: SparkSession) -> bool:
    return "io.delta" in spark.conf.get("spark.sql.extensions", "")


def _delta_table(spark: SparkSession) -> Any:
    if _is_delta_spark(spark):
        return spark._jvm.io.delta.tables.DeltaTable
    from delta.tables import DeltaTable

    return DeltaTable


def _session(spark: SparkSession) -> Any:
    return spark._jsparkSession if _is_delta_spark(spark) else spark


def _rows(spark: SparkSession, text: str) -> Any:
    return spark.sql(f"SELECT {text}")


def _writer(spark: SparkSession, text: str, mode: str = "append") -> Any:
    return _rows(spark, text).write.format("delta").mode(mode)


def _reader(spark: SparkSession) -> Any:
    return spark.read.format("delta")


def _run(text: str, spark: SparkSession, root: str) -> Any:
    return spark.sql(text.replace("{root}", root)).collect()


_ROW = "4 AS id, 'd' AS v, 1 AS p, 4 AS c"
FAULTS: dict[str, Fault] = {
    "load a missing path": lambda s, r: _reader(s).load(f"{r}/missing"),
    "load a directory of Parquet files": lambda s, r: _reader(s).load(f"{r}/parquet"),
    "load a missing version": lambda s, r: _reader(s).option("versionAsOf", 9).load(f"{r}/d"),
    "load a wrong version": lambda s, r: _reader(s).option("versionAsOf", "x").load(f"{r}/d"),
    "load a negative version": lambda s, r: _reader(s).option("versionAsOf", -1).load(f"{r}/d"),
    "load an early time": lambda s, r: (
        _reader(s).option("timestampAsOf", "2000-01-01").load(f"{r}/d")
    ),
    "load a late time": lambda s, r: (
        _reader(s).option("timestampAsOf", "2999-01-01").load(f"{r}/d")
    ),
    "load a wrong time": lambda s, r: _reader(s).option("timestampAsOf", "x").load(f"{r}/d"),
    "load by version and time": lambda s, r: (
        _reader(s).option("timestampAsOf", "2999-01-01").option("versionAsOf", 1).load(f"{r}/d")
    ),
    "load with a schema": lambda s, r: _reader(s).schema("id INT").load(f"{r}/d"),
    "load changes that are not recorded": lambda s, r: (
        _reader(s)
        .option("readChangeFeed", "true")
        .option("startingVersion", 0)
        .load(f"{r}/d")
        .collect()
    ),
    "changes without a start": lambda s, r: (
        _reader(s).option("readChangeFeed", "true").table("er_f")
    ),
    "changes from two starts": lambda s, r: (
        _reader(s)
        .option("readChangeFeed", "true")
        .option("startingVersion", 0)
        .option("startingTimestamp", "2020-01-01")
        .table("er_f")
        .collect()
    ),
    "changes to two ends": lambda s, r: (
        _reader(s)
        .option("readChangeFeed", "true")
        .option("startingVersion", 0)
        .option("endingVersion", 1)
        .option("endingTimestamp", "2020-01-01")
        .table("er_f")
        .collect()
    ),
    "changes from a late version": lambda s, r: (
        _reader(s)
        .option("readChangeFeed", "true")
        .option("startingVersion", 9)
        .table("er_f")
        .collect()
    ),
    "changes of a wrong range": lambda s, r: (
        _reader(s)
        .option("readChangeFeed", "true")
        .option("startingVersion", 1)
        .option("endingVersion", 0)
        .table("er_f")
        .collect()
    ),
    "table of a missing name": lambda s, r: s.table("er_missing"),
    "a column that is not there": lambda s, r: s.table("er_t").select("nothing"),
    "rows of a table without columns": lambda s, r: s.table("er_e").collect(),
    "a query of a table without columns": lambda s, r: s.sql("SELECT * FROM er_e").collect(),
    "append a new column": lambda s, r: _writer(s, f"{_ROW}, 1 AS new").saveAsTable("er_t"),
    "append to a path a new column": lambda s, r: _writer(
        s, "1 AS id, named_struct('x', 1, 'y', 'a') AS s, CAST(1.5 AS DECIMAL(4, 1)) AS n, 3 AS new"
    ).save(f"{r}/d"),
    "append another type to a path": lambda s, r: _writer(s, "'x' AS id").save(f"{r}/d"),
    "append another type by name": lambda s, r: _writer(
        s, "'x' AS id, NULL AS v, 1 AS p, 1 AS c"
    ).saveAsTable("er_t"),
    "append another structure": lambda s, r: _writer(
        s, "1 AS id, named_struct('x', 1, 'z', 2) AS s"
    ).save(f"{r}/d"),
    "append without a NOT NULL column": lambda s, r: _writer(s, "'v' AS v, 1 AS p").saveAsTable(
        "er_t"
    ),
    "append a null": lambda s, r: _writer(s, "INT(NULL) AS id").saveAsTable("er_n"),
    "append a violation": lambda s, r: _writer(s, "-1 AS id, 'v' AS v, 1 AS p, 1 AS c").saveAsTable(
        "er_t"
    ),
    "append with a wrong generated value": lambda s, r: _writer(s, "1 AS id, 9 AS g").saveAsTable(
        "er_g"
    ),
    "append with another partitioning": lambda s, r: (
        _writer(s, _ROW).partitionBy("v").saveAsTable("er_t")
    ),
    "append to a path with another partitioning": lambda s, r: (
        _writer(s, "1 AS id").partitionBy("id").save(f"{r}/d")
    ),
    "append one column twice": lambda s, r: _writer(s, "1 AS id, 2 AS ID").save(f"{r}/d"),
    "create by mode error": lambda s, r: _writer(s, "1 AS id", "error").save(f"{r}/d"),
    "create a named table twice": lambda s, r: _writer(s, "1 AS id", "error").saveAsTable("er_t"),
    "a wrong mode": lambda s, r: _writer(s, "1 AS id", "sometimes").save(f"{r}/d"),
    "overwrite with other columns": lambda s, r: _writer(s, "1 AS x", "overwrite").save(f"{r}/d"),
    "overwrite rows of an append-only table": lambda s, r: _writer(
        s, "1 AS id", "overwrite"
    ).insertInto("er_a"),
    "replaceWhere of other rows": lambda s, r: (
        _writer(s, "1 AS id", "overwrite").option("replaceWhere", "id = 2").save(f"{r}/d")
    ),
    "replaceWhere of a missing column": lambda s, r: (
        _writer(s, "1 AS id", "overwrite").option("replaceWhere", "nothing = 2").save(f"{r}/d")
    ),
    "replaceWhere and dynamic partitions": lambda s, r: (
        _writer(s, _ROW, "overwrite")
        .option("replaceWhere", "p = 1")
        .option("partitionOverwriteMode", "dynamic")
        .saveAsTable("er_t")
    ),
    "half a transaction": lambda s, r: (
        _writer(s, "1 AS id").option("txnAppId", "app").save(f"{r}/d")
    ),
    "a wrong version of a transaction": lambda s, r: (
        _writer(s, "1 AS id").option("txnAppId", "app").option("txnVersion", "x").save(f"{r}/d")
    ),
    "a wrong truth value": lambda s, r: (
        _writer(s, "1 AS id").option("mergeSchema", "maybe").save(f"{r}/d")
    ),
    "a wrong number of rows per file": lambda s, r: (
        _writer(s, "1 AS id").option("maxRecordsPerFile", "x").save(f"{r}/d")
    ),
    "a name with a blank": lambda s, r: _writer(s, "1 AS `a b`").save(f"{r}/new"),
    "one column twice": lambda s, r: _writer(s, "1 AS a, 2 AS A").save(f"{r}/new"),
    "only nulls": lambda s, r: _writer(s, "NULL AS a").save(f"{r}/new"),
    "a partition column that is not there": lambda s, r: (
        _writer(s, "1 AS a, 2 AS b").partitionBy("c").save(f"{r}/new")
    ),
    "all columns for partitions": lambda s, r: (
        _writer(s, "1 AS a").partitionBy("a").save(f"{r}/new")
    ),
    "insert too few columns": lambda s, r: _writer(s, "1, 'a'").insertInto("er_t"),
    "insert too many columns": lambda s, r: _writer(s, "1, 'a', 3, 4, 5").insertInto("er_t"),
    "writeTo a missing table": lambda s, r: _rows(s, "1 AS id").writeTo("er_missing").append(),
    "writeTo creates a table twice": lambda s, r: (
        _rows(s, "1 AS id").writeTo("er_t").using("delta").create()
    ),
    "writeTo replaces a missing table": lambda s, r: (
        _rows(s, "1 AS id").writeTo("er_missing").using("delta").replace()
    ),
    "forPath of a missing path": lambda s, r: _table(s, f"{r}/missing"),
    "forPath of Parquet files": lambda s, r: _table(s, f"{r}/parquet"),
    "forName of a missing name": lambda s, r: _named(s, "er_missing"),
    "forName of another format": lambda s, r: _named(s, "er_q"),
    "delete by a missing column": lambda s, r: _named(s, "er_t").delete("nothing = 1"),
    "delete by a number": lambda s, r: _named(s, "er_t").delete("id"),
    "delete by a wrong text": lambda s, r: _named(s, "er_t").delete("id ="),
    "delete by an aggregate": lambda s, r: _named(s, "er_t").delete("count(*) > 1"),
    "delete by chance": lambda s, r: _named(s, "er_t").delete("rand() > 2"),
    "delete from an append-only table": lambda s, r: _named(s, "er_a").delete("id = 1"),
    "vacuum too early": lambda s, r: _named(s, "er_t").vacuum(0.0),
    "restore a missing version": lambda s, r: _named(s, "er_t").restoreToVersion(99),
    "restore an early time": lambda s, r: _named(s, "er_t").restoreToTimestamp("2000-01-01"),
    "restore a late time": lambda s, r: _named(s, "er_t").restoreToTimestamp("2999-01-01"),
    "restore a wrong time": lambda s, r: _named(s, "er_t").restoreToTimestamp("x"),
    "optimize by a data column": lambda s, r: (
        _named(s, "er_t").optimize().where("id = 1").executeCompaction()
    ),
    "add an unknown feature": lambda s, r: _named(s, "er_t").addFeatureSupport("nothing"),
    "drop an unknown feature": lambda s, r: _named(s, "er_t").dropFeatureSupport("nothing"),
    "drop a feature that is not there": lambda s, r: _named(s, "er_d").dropFeatureSupport(
        "deletionVectors"
    ),
    "a lower protocol": lambda s, r: _named(s, "er_t").upgradeTableProtocol(9, 9),
    "a merge with several matches": lambda s, r: s.sql(
        "MERGE INTO er_d t USING (SELECT explode(array(1, 1)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = s.id"
    ),
    "a decimal that is too long": lambda s, r: s.sql("UPDATE er_d SET n = 123456.5BD"),
    "a text that is no number": lambda s, r: s.sql("UPDATE er_d SET id = 'x'"),
    "a field that is not there": lambda s, r: s.sql("UPDATE er_d SET s.z = 1"),
    "an ambiguous column": lambda s, r: s.sql(
        "MERGE INTO er_d t USING er_t s ON id = 1 WHEN MATCHED THEN DELETE"
    ),
    "a clustered table by Z-order": lambda s, r: s.sql("OPTIMIZE er_c ZORDER BY (v)"),
    "a text that is not understood": lambda s, r: s.sql("UPDATE er_d SET = 1"),
    "an unknown property": lambda s, r: s.sql(
        "ALTER TABLE er_d SET TBLPROPERTIES ('delta.nothing' = '1')"
    ),
    "show the columns of a missing table": lambda s, r: s.sql("DESCRIBE HISTORY er_missing"),
    "insert into a view": lambda s, r: s.table("er_d").write.insertInto("er_some"),
    "merge into a view": lambda s, r: (
        s.table("er_t").mergeInto("er_some", F.expr("er_t.id = -1")).whenMatched().delete().merge()
    ),
    "save a table over a view": lambda s, r: (
        s.table("er_d").writeTo("er_v").using("delta").create()
    ),
    "replace a view": lambda s, r: s.table("er_d").writeTo("er_v").using("delta").replace(),
    "replace a table of Parquet files": lambda s, r: (
        s.table("er_d").writeTo("er_q").using("delta").createOrReplace()
    ),
    "create a table of the catalog twice": lambda s, r: s.catalog.createTable(
        "er_d", source="delta", schema=s.table("er_t").schema
    ),
    "name a path as a table twice": lambda s, r: s.catalog.createTable(
        "er_d", f"{r}/d", source="delta"
    ),
    "create a table of a view's name": lambda s, r: s.catalog.createTable(
        "er_v", source="delta", schema=s.table("er_t").schema
    ),
    "forName of a view": lambda s, r: _named(s, "er_v"),
    "forName of a missing database": lambda s, r: _named(s, "no_database.er_missing"),
    "forName of a missing catalog": lambda s, r: _named(s, "no_catalog.er.er_missing"),
    "forName of a relative path": lambda s, r: _named(s, "delta.`relative`"),
    "table of a relative path": lambda s, r: s.table("delta.`relative`"),
    "insert into a missing table": lambda s, r: _writer(s, "1 AS id").insertInto("er_missing"),
    "insert too many columns into a table of Parquet files": lambda s, r: _writer(
        s, "1, 2"
    ).insertInto("er_q"),
    "recover the partitions of a table": lambda s, r: s.catalog.recoverPartitions("er_t"),
    "recover the partitions of a view": lambda s, r: s.catalog.recoverPartitions("er_v"),
    "list the columns of a missing table": lambda s, r: s.catalog.listColumns("er_missing"),
    "drop a missing table of the catalog": lambda s, r: s.catalog.dropTable("er_missing"),
    "drop a table as a view": lambda s, r: s.catalog.dropView("er_d"),
    "refresh a missing table": lambda s, r: s.catalog.refreshTable("er_missing"),
}
for _name in ("er t", "er-t", "er_t;", "", "a..b", "{root}/d", "er_t VERSION AS OF 0"):
    FAULTS |= {
        f"{what} {_name!r}": partial(fault, _name)
        for what, fault in {
            "table": lambda n, s, r: s.table(n.replace("{root}", r)),
            "forName": lambda n, s, r: _named(s, n.replace("{root}", r)),
            "saveAsTable": lambda n, s, r: _writer(s, "1 AS id").saveAsTable(
                n.replace("{root}", r)
            ),
            "insertInto": lambda n, s, r: _writer(s, "1 AS id").insertInto(n.replace("{root}", r)),
        }.items()
    }
FAULTS |= {text: partial(_run, text) for text in _STATEMENTS.strip().splitlines()}


def faults(spark: SparkSession, root: str) -> list[Any]:
    """Return the names of the error of each fault; runs in either engine."""
    for text in _TABLES.strip().splitlines():
        spark.sql(text.replace("{root}", root))
    return [names_of(partial(fault, spark, root), root) for fault in FAULTS.values()]


def known_parameters(spark: SparkSession) -> dict[str, list[str]]:
    """Return the parameters of each condition of Spark and delta-spark, as their JARs have them."""
    jvm, found = spark._jvm, {}
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    for name in ("error/error-conditions.json", "error/delta-error-classes.json"):
        resource = loader.getResource(name)
        entries = json.loads(jvm.org.apache.commons.io.IOUtils.toString(resource, "UTF-8"))
        for condition, entry in entries.items():
            text = "".join(entry["message"])
            found[condition] = _PARAMETER.findall(text)
            for kind, more in entry.get("subClass", {}).items():
                both = text + "".join(more["message"])
                found[f"{condition}.{kind}"] = _PARAMETER.findall(both)
    return found


_PARAMETER = re.compile(r"<(\w+)>")
OTHER_PARAMETERS = {
    "CAST_INVALID_INPUT",  # has one more, which its text does not show
    "DELTA_CONCURRENT_TRANSACTION",  # and the next two have none when they are raised
    "DELTA_CONCURRENT_WRITE",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",  # the code that raises it gives the others
}


def test_the_entries_have_the_parameters_of_delta_spark(delta_spark: DeltaSpark) -> None:
    known = delta_spark.run("tests.oracle.test_errors:known_parameters")
    different = {
        condition
        for ours, entries in entries_by_condition().items()
        for condition, parameters in ((each.condition or ours, each.parameters) for each in entries)
        if "{" not in condition and set(known.get(condition, ())) != parameters.keys()
    }
    assert different == OTHER_PARAMETERS


def test_the_same_faults(enabled: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    roots = [str(tmp_path / engine) for engine in ("theirs", "ours")]
    theirs = delta_spark.run("tests.oracle.test_errors:faults", root=roots[0])
    assert not different_results(FAULTS, theirs, faults(enabled, roots[1]))
