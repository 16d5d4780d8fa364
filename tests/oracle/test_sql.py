"""Tests of the same SQL texts in both engines: they return the same rows, or errors of the same
condition, SQLSTATE and parameters.

Texts run one after the other, so that a statement that changes less, or more, than it should shows
in the next query.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.golden.cases import TABLES
from tests.oracle.error_names import are_same, names
from tests.support.delta_spark import DeltaSpark

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

_TEXTS = {
    "rows": r"""
CREATE TABLE so_t (id BIGINT NOT NULL, v STRING COMMENT 'it''s \t "v"', p INT) USING delta PARTITIONED BY (p) COMMENT 'one\ntwo' TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', own = 3.5, 'a b' = "c""d")
CREATE TABLE so_t (id BIGINT) USING delta
CREATE TABLE IF NOT EXISTS so_t (other STRING) USING delta
INSERT INTO so_t VALUES (1, 'it\'s', 1), (2, "a""b", 1), (3, r'\n', 2), (4, 'x\n\u0041\101\%\_\q', 2), (5, 'a' 'b', NULL)
SELECT * FROM so_t
DELETE FROM so_t WHERE v = "a""b"
UPDATE so_t AS t SET v = concat(t.v, ';', 'x''y', "\"") WHERE t.v = 'it\'s' /* and /* nested */ */;
delete from default.so_t where v == r'\n' -- ; a comment
SELECT * FROM spark_catalog.default.so_t WHERE p <=> 1 OR p IS NULL
DESCRIBE so_t
DESCRIBE so_t v
SHOW TBLPROPERTIES so_t ('own')
SHOW TBLPROPERTIES so_t ('a b')
SHOW PARTITIONS so_t PARTITION (p = 2)
DESCRIBE HISTORY so_t LIMIT 3
DESCRIBE DETAIL so_t
SELECT id FROM IDENTIFIER('default.' || 'so_t') WHERE id = 1
INSERT INTO IDENTIFIER('so_' || 't') VALUES (7, 'seven', 7)
DELETE FROM IDENTIFIER('spark_catalog.default.so_t') WHERE IDENTIFIER('id') = 4
SET so_variable = so_t
INSERT INTO ${so_variable} VALUES (8, '${so_variable} ${so_none}', 8)
SELECT v FROM ${so_variable} WHERE id = 8
DECLARE OR REPLACE VARIABLE so_id INT DEFAULT 8
SELECT v FROM so_t WHERE id = so_id
DELETE FROM so_t WHERE id = so_id
WITH s AS (SELECT 20 AS id, 'w' AS v) INSERT INTO so_t (id, v) SELECT * FROM s
WITH s AS (SELECT 20 AS id), r AS (SELECT id, 'r' AS v FROM s) MERGE INTO so_t t USING r ON t.id = r.id WHEN MATCHED THEN UPDATE SET v = r.v
WITH s AS (SELECT 1) DELETE FROM so_t WHERE id = 7
INSERT INTO so_t BY NAME SELECT 'by name' AS v, 9 AS id
INSERT INTO so_t BY NAME SELECT 9 AS id, 4 AS nothing
INSERT INTO so_t (v) VALUES ('no id')
INSERT INTO so_t VALUES (5)
INSERT INTO so_t REPLACE WHERE id > 8 SELECT 30, 'thirty', NULL
INSERT INTO so_t REPLACE WHERE id > 10 SELECT 9, 'nine', NULL
SELECT * FROM so_t
COMMENT ON TABLE so_t IS 'what''s new'
COMMENT ON TABLE so_missing IS 'x'
SELECT id, _change_type, _commit_version FROM table_changes('so_t', 1, 3)
SELECT * FROM table_changes('so_t', 5, 2)
SELECT * FROM table_changes('so_t', 1000)
SELECT * FROM table_changes('so_missing', 1)
SELECT * FROM so_missing
INSERT INTO so_missing VALUES (1)
DELETE FROM so_missing
OPTIMIZE so_missing
OPTIMIZE so_t WHERE id = 1
OPTIMIZE so_t ZORDER BY (p)
DROP TABLE so_t
""",
    "versions": r"""
CREATE TABLE so_v (id INT, v STRING) USING delta
INSERT INTO so_v VALUES (1, 'a')
INSERT INTO so_v VALUES (2, 'b')
DELETE FROM so_v WHERE id = 1
SELECT * FROM so_v VERSION AS OF 1
SELECT * FROM so_v VERSION AS OF 0
SELECT * FROM so_v FOR VERSION AS OF 2
SELECT * FROM so_v FOR SYSTEM_VERSION AS OF 2
SELECT * FROM so_v VERSION AS OF '2'
SELECT * FROM so_v VERSION AS OF 4
SELECT * FROM so_v VERSION AS OF '4'
SELECT * FROM so_v VERSION AS OF -1
SELECT * FROM so_v VERSION AS OF 'one'
SELECT * FROM so_v VERSION AS OF 1 + 1
SELECT * FROM so_v VERSION AS OF 99999999999999999999
SELECT * FROM so_v TIMESTAMP AS OF '2000-01-01'
SELECT * FROM so_v TIMESTAMP AS OF '2999-01-01'
SELECT * FROM so_v TIMESTAMP AS OF 'yesterday'
SELECT * FROM so_v TIMESTAMP AS OF NULL
SELECT * FROM so_v TIMESTAMP AS OF current_date() - 3000
SELECT * FROM so_v TIMESTAMP AS OF rand()
SELECT * FROM so_v TIMESTAMP AS OF id
SELECT * FROM so_v TIMESTAMP AS OF (SELECT TIMESTAMP '2000-01-01')
SELECT a.id, b.id FROM so_v a FULL JOIN so_v VERSION AS OF 1 b ON a.id = b.id
SELECT id FROM so_v VERSION AS OF 1 AS old WHERE old.v = 'a'
WITH c AS (SELECT 1 AS id) SELECT * FROM c VERSION AS OF 1
CREATE TEMPORARY VIEW so_view AS SELECT * FROM so_v VERSION AS OF 1
SELECT * FROM so_view
SELECT * FROM so_view VERSION AS OF 1
DROP VIEW so_view
SELECT * FROM so_missing VERSION AS OF 1
SELECT * FROM so_missing TIMESTAMP AS OF '2000-01-01'
SELECT * FROM {p}missing` VERSION AS OF 1
SELECT * FROM {p}missing@v1`
SELECT * FROM {p}missing`
SELECT * FROM {p}times` TIMESTAMP AS OF '2026-11-21 10:35:19.026'
SELECT * FROM {p}times` TIMESTAMP AS OF TIMESTAMP '2026-11-21 10:35:19'
SELECT * FROM {p}times` TIMESTAMP AS OF '2026-11-21T10:35:20Z'
SELECT * FROM {p}times` TIMESTAMP AS OF '2026-11-21 12:35:20+02:00'
SELECT * FROM {p}times` TIMESTAMP AS OF '2026-11-22'
SELECT * FROM {p}times` FOR SYSTEM_TIME AS OF '2026-11-21 10:35:20'
SELECT * FROM {p}times@v1`
SELECT * FROM {p}times@v0`
SELECT * FROM {p}times@v9`
SELECT * FROM {p}times@V1`
SELECT * FROM {p}times@v1` VERSION AS OF 1
SELECT * FROM {p}times@v1` TIMESTAMP AS OF '2026-11-21 10:35:19.026'
SELECT * FROM {p}times@20261121103519026`
SELECT * FROM {p}times@20000101000000000`
SELECT * FROM {p}times` VERSION AS OF 1
INSERT INTO so_v VERSION AS OF 1 VALUES (3, 'c')
DELETE FROM so_v VERSION AS OF 1
DELETE FROM {p}times@v1`
INSERT INTO {p}times@v1` SELECT * FROM {p}times`
INSERT INTO so_v SELECT id + 10, v FROM so_v VERSION AS OF 1
SELECT * FROM so_v
RESTORE TABLE so_v TO VERSION AS OF 2
SELECT * FROM so_v
RESTORE so_v VERSION AS OF 3
SELECT * FROM so_v
RESTORE TABLE so_v TO VERSION AS OF 99
RESTORE TABLE so_v TO VERSION AS OF -1
RESTORE TABLE so_v TO TIMESTAMP AS OF '2999-01-01'
RESTORE TABLE so_v TO TIMESTAMP AS OF '2000-01-01'
RESTORE TABLE so_v TO TIMESTAMP AS OF 'x'
RESTORE TABLE so_v
RESTORE TABLE so_missing TO VERSION AS OF 1
RESTORE TABLE {p}missing` TO VERSION AS OF 1
RESTORE TABLE {p}times` TO TIMESTAMP AS OF '2026-11-21 10:35:19.026'
SELECT * FROM {p}times`
RESTORE TABLE {p}times` TO VERSION AS OF 3
DESCRIBE HISTORY so_v
DESCRIBE HISTORY {p}times`
DESCRIBE HISTORY so_missing
DESCRIBE DETAIL so_missing
DESCRIBE HISTORY {p}missing`
DESCRIBE DETAIL {p}missing`
DESCRIBE so_missing
DROP TABLE so_v
""",
    "options": r"""
CREATE TABLE so_o (id INT, v STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')
INSERT INTO so_o VALUES (1, 'a')
INSERT INTO so_o VALUES (2, 'b')
DELETE FROM so_o WHERE id = 1
SELECT id, _change_type, _commit_version FROM so_o WITH ('readChangeFeed' = 'true', 'startingVersion' = '1')
SELECT id, _change_type, _commit_version FROM so_o WITH ('READCHANGEFEED' = true, startingVersion = 1, endingVersion 2) AS c WHERE c.id > 0
SELECT so_o.id, _change_type FROM so_o WITH (readChangeData = 'true', startingVersion = 0)
SELECT id, _change_type FROM so_o WITH ('readChangeFeed' = 'true', 'startingTimestamp' = '2000-01-01')
SELECT id, _change_type FROM so_o WITH ('readChangeFeed' = 'true', 'startingVersion' = '99')
SELECT id, _change_type FROM so_o WITH ('readChangeFeed' = 'true')
SELECT id FROM so_o WITH ('readChangeFeed' = 'maybe')
SELECT id FROM so_o WITH ('readChangeFeed' = NULL)
SELECT id FROM so_o WITH ()
SELECT id FROM so_o WITH ('readChangeFeed' = 'false')
SELECT a.id, b.id FROM so_o WITH ('versionAsOf' = '1') a, so_o b
SELECT id FROM so_o WITH ('timestampAsOf' = '2000-01-01')
SELECT id FROM so_o VERSION AS OF 1 WITH ('versionAsOf' = '0')
SELECT id FROM so_o WITH ('nothing' = 'x')
TABLE so_o WITH ('versionAsOf' = '1')
DELETE FROM so_o WITH ('userMetadata' = 'mine') WHERE id = 1
INSERT INTO so_o WITH ('mergeSchema' = 'true') SELECT 3 AS id, 'c' AS v, 5 AS extra
INSERT INTO so_o WITH ('mergeSchema' = 'true') BY NAME SELECT 4 AS id, 6 AS more
INSERT INTO so_o WITH ('mergeSchema' = 'false') BY NAME SELECT 4 AS id, 6 AS other
INSERT INTO so_o WITH ('mergeSchema' = 'maybe') (id) SELECT 5
INSERT INTO so_o WITH ('userMetadata' = 'mine') (id) VALUES (6)
INSERT INTO so_o WITH ('txnAppId' = 'app', 'txnVersion' = '1') (id) VALUES (7)
INSERT INTO so_o WITH ('txnAppId' = 'app', 'txnVersion' = '1') (id) VALUES (8)
INSERT INTO so_o WITH ('delta.appendOnly' = 'true') (id) SELECT 9
SELECT * FROM so_o
DESCRIBE HISTORY so_o LIMIT 5
CREATE TABLE so_p (id INT, p INT) USING delta PARTITIONED BY (p)
INSERT INTO so_p VALUES (1, 1), (2, 2)
INSERT OVERWRITE so_p WITH ('partitionOverwriteMode' = 'dynamic') VALUES (3, 1)
SELECT * FROM so_p
INSERT OVERWRITE so_p WITH ('replaceWhere' = 'p = 2') VALUES (5, 2)
INSERT INTO so_p WITH ('mergeSchema' = 'true') PARTITION (p = 7) SELECT 9, 5 AS more
INSERT INTO so_p WITH ('mergeSchema' = 'true') REPLACE WHERE p = 7 SELECT 10, 7, 5
INSERT INTO so_p WITH ('maxRecordsPerFile' = '1', 'compression' = 'gzip') (id) SELECT 12
SELECT * FROM so_p
WITH so_p (SELECT 1 AS id), so_o (a) (SELECT a FROM VALUES (3) AS t (a)) SELECT * FROM so_p, so_o
WITH RECURSIVE so_p(n) MAX RECURSION LEVEL 9 AS (SELECT 1 UNION ALL SELECT n + 1 FROM so_p WHERE n < 3) SELECT * FROM so_p
SELECT so_p, trim(FROM so_o) FROM (SELECT map(1, 2) m, ' x' so_o) LATERAL VIEW explode(m) e AS k, so_p
DROP TABLE so_o
DROP TABLE so_p
""",
    "definitions": r"""
CREATE TABLE so_d (id INT COMMENT 'key', v STRING, p INT) USING delta PARTITIONED BY (p) LOCATION '{r}/d' COMMENT 'source' TBLPROPERTIES ('own' = 'x', 'delta.appendOnly' = 'false')
INSERT INTO so_d VALUES (1, 'a', 1), (2, 'b', 2)
INSERT INTO so_d VALUES (3, 'c', 1)
CREATE TABLE so_clone SHALLOW CLONE so_d
SELECT * FROM so_clone
CREATE TABLE so_clone SHALLOW CLONE so_d
CREATE TABLE IF NOT EXISTS so_clone SHALLOW CLONE so_d
CREATE OR REPLACE TABLE so_clone SHALLOW CLONE so_d VERSION AS OF 1
DELETE FROM so_clone
CREATE OR REPLACE TABLE so_clone SHALLOW CLONE so_d VERSION AS OF 1 TBLPROPERTIES ('own' = 'y', 'delta.logRetentionDuration' = 'interval 50 days')
SELECT * FROM so_clone
SHOW TBLPROPERTIES so_clone ('own')
SHOW TBLPROPERTIES so_clone ('delta.logRetentionDuration')
SHOW TBLPROPERTIES so_clone ('delta.appendOnly')
DESCRIBE DETAIL so_clone
DESCRIBE so_clone
DESCRIBE HISTORY so_clone
TRUNCATE TABLE so_clone
REPLACE TABLE so_clone SHALLOW CLONE so_d VERSION AS OF 0
SELECT * FROM so_clone
INSERT INTO so_clone VALUES (9, 'z', 9)
SELECT * FROM so_clone
DELETE FROM so_clone
CREATE OR REPLACE TABLE so_clone SHALLOW CLONE so_d VERSION AS OF 99
CREATE OR REPLACE TABLE so_clone SHALLOW CLONE so_d TIMESTAMP AS OF '1999-01-01'
CREATE OR REPLACE TABLE so_clone SHALLOW CLONE so_d TIMESTAMP AS OF '2999-01-01'
CREATE OR REPLACE TABLE so_clone SHALLOW CLONE so_d TIMESTAMP AS OF 'x'
CREATE OR REPLACE TABLE so_clone SHALLOW CLONE so_d@v1
CREATE OR REPLACE TABLE so_clone SHALLOW CLONE so_missing
CREATE OR REPLACE TABLE so_clone SHALLOW CLONE {p}missing`
CREATE OR REPLACE TABLE so_clone SHALLOW CLONE so_d TBLPROPERTIES ('delta.nothing' = '1')
CREATE OR REPLACE TABLE so_clone SHALLOW CLONE so_d TBLPROPERTIES ('delta.appendOnly' = 'maybe')
REPLACE TABLE so_clone2 SHALLOW CLONE so_d
CREATE TABLE {p}clone3` SHALLOW CLONE {p}d`
SELECT * FROM {p}clone3`
CREATE TABLE so_clone4 SHALLOW CLONE {p}d` LOCATION '{r}/clone4'
SELECT * FROM {p}clone4`
CREATE TABLE so_pq USING parquet AS SELECT 1 AS a
CREATE TABLE so_like LIKE so_d
DESCRIBE so_like
DESCRIBE DETAIL so_like
SELECT * FROM so_like
SHOW TBLPROPERTIES so_like ('own')
CREATE TABLE so_like LIKE so_d
CREATE TABLE IF NOT EXISTS so_like LIKE so_d
CREATE TABLE so_like2 LIKE so_d TBLPROPERTIES ('own' = 'z')
SHOW TBLPROPERTIES so_like2 ('own')
CREATE TABLE so_like3 LIKE so_d USING delta LOCATION '{r}/like3'
CREATE TABLE so_like4 LIKE so_missing
CREATE TABLE so_as USING delta AS SELECT id, v FROM so_d
SELECT * FROM so_as
DESCRIBE so_as
CREATE TABLE so_as USING delta AS SELECT 1 AS id
CREATE TABLE IF NOT EXISTS so_as USING delta AS SELECT 7 AS id, 'no' AS v
SELECT * FROM so_as
CREATE OR REPLACE TABLE so_as USING delta PARTITIONED BY (q) COMMENT 'new' TBLPROPERTIES ('k' = 'l') AS SELECT id, p AS q FROM so_d
SELECT * FROM so_as
DESCRIBE so_as
DESCRIBE DETAIL so_as
SHOW TBLPROPERTIES so_as ('k')
SHOW PARTITIONS so_as
CREATE OR REPLACE TABLE so_as USING delta AS SELECT max(id) AS top FROM so_as
SELECT * FROM so_as
SHOW TBLPROPERTIES so_as ('k')
DESCRIBE DETAIL so_as
DESCRIBE HISTORY so_as
REPLACE TABLE so_as USING delta AS SELECT 2 AS two
SELECT * FROM so_as
REPLACE TABLE so_as2 USING delta AS SELECT 2 AS two
CREATE TABLE so_as3 USING delta PARTITIONED BY (nothing) AS SELECT 1 AS a
CREATE TABLE so_as3 USING delta AS SELECT 1 AS a, 2 AS A
CREATE TABLE so_as3 USING delta AS SELECT 1 AS `a b`
CREATE TABLE so_as3 USING delta AS SELECT NULL AS n
SELECT * FROM so_as3
CREATE TABLE so_as4 (a INT) USING delta AS SELECT 1 AS a
CREATE TABLE so_as4 USING delta CLUSTER BY (a) AS SELECT 1 AS a
DESCRIBE DETAIL so_as4
CREATE TABLE so_as5 USING delta PARTITIONED BY (a) CLUSTER BY (a) AS SELECT 1 AS a, 2 AS b
CREATE TABLE so_as5 USING delta AS SELECT 1 AS a WHERE false
SELECT * FROM so_as5
CREATE TABLE so_as6 USING delta AS SELECT * FROM so_missing
CREATE TABLE so_as7 USING delta PARTITIONED BY (a) AS SELECT 1 AS a
CREATE TABLE {p}as8` USING delta AS SELECT 5 AS five
SELECT * FROM {p}as8`
CREATE TABLE {p}as8` USING delta AS SELECT 5 AS five
CREATE OR REPLACE TABLE {p}as8` USING delta AS SELECT 6 AS six
SELECT * FROM {p}as8`
CREATE OR REPLACE TABLE so_new (id INT NOT NULL, g INT GENERATED ALWAYS AS (id + 1), d INT DEFAULT 4, i BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5)) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
INSERT INTO so_new (id) VALUES (1)
INSERT INTO so_new (id, d) VALUES (2, DEFAULT)
INSERT INTO so_new (id, g) VALUES (3, 5)
INSERT INTO so_new (id, i) VALUES (3, 5)
INSERT INTO so_new VALUES (4, 5, 6)
SELECT id, g, d, i >= 10 FROM so_new
DESCRIBE so_new
CREATE TABLE so_bad (id INT, ID INT) USING delta
CREATE TABLE so_bad (id INT, id INT) USING delta
CREATE TABLE so_bad (id INT) USING delta PARTITIONED BY (p)
CREATE TABLE so_bad (id INT) USING delta PARTITIONED BY (id)
CREATE TABLE so_bad2 (id INT, p INT) USING delta PARTITIONED BY (bucket(4, id))
CREATE TABLE so_bad2 (id INT, p INT) USING delta CLUSTERED BY (id) INTO 4 BUCKETS
CREATE TABLE so_bad2 (id INT, s STRUCT<a: INT>) USING delta PARTITIONED BY (s)
CREATE TABLE so_bad2 (id INT, g INT GENERATED ALWAYS AS (rand())) USING delta
CREATE TABLE so_bad2 (id INT, g INT GENERATED ALWAYS AS (nothing)) USING delta
CREATE TABLE so_bad2 (id INT, i INT GENERATED ALWAYS AS IDENTITY) USING delta
CREATE TABLE so_bad2 (id INT, i BIGINT GENERATED ALWAYS AS IDENTITY (INCREMENT BY 0)) USING delta
CREATE TABLE so_bad2 (`a b` INT) USING delta
CREATE TABLE so_bad3 (`a b` INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')
DESCRIBE so_bad3
CREATE TABLE so_bad4 (id INT) USING delta TBLPROPERTIES ('delta.nothing' = 'x')
CREATE TABLE so_bad4 (id INT) USING delta TBLPROPERTIES ('delta.appendOnly' = 'x')
CREATE TABLE so_bad4 (id INT) USING delta TBLPROPERTIES ('delta.minReaderVersion' = '9')
CREATE TABLE so_bad4 (id INT) USING delta TBLPROPERTIES ('delta.feature.nothing' = 'supported')
CREATE TABLE so_bad4 (id NOTHING) USING delta
CREATE TABLE so_bad4 (id INT, c INTERVAL DAY) USING delta
CREATE TABLE so_bad4 (id INT) USING delta TBLPROPERTIES ('location' = '/x')
CREATE TABLE so_bad5 () USING delta
CREATE TABLE so_bad6 (id INT, CONSTRAINT c CHECK (id > 1)) USING delta
CREATE TABLE so_there USING delta LOCATION '{r}/d'
SELECT * FROM so_there
CREATE TABLE so_there2 (id INT) USING delta LOCATION '{r}/d'
CREATE TABLE so_there2 (id INT COMMENT 'key', v STRING, p INT) USING delta PARTITIONED BY (p) LOCATION '{r}/d'
DROP TABLE so_there2
CREATE TABLE so_there2 (id INT COMMENT 'key', v STRING, p INT) USING delta LOCATION '{r}/d'
CREATE TABLE so_there2 (id INT COMMENT 'key', v STRING, p INT) USING delta CLUSTER BY (p) LOCATION '{r}/d'
CREATE TABLE so_there2 (id BIGINT COMMENT 'key', v STRING, p INT) USING delta PARTITIONED BY (p) LOCATION '{r}/d'
CREATE TABLE so_there2 USING delta LOCATION '{r}/d' TBLPROPERTIES ('own' = 'z')
CREATE TABLE IF NOT EXISTS so_there2 (id INT COMMENT 'key', v STRING, p INT) USING delta PARTITIONED BY (p) LOCATION '{r}/d' TBLPROPERTIES ('own' = 'x', 'delta.appendOnly' = 'false')
SELECT * FROM so_there2
CREATE OR REPLACE TABLE so_there3 (x INT) USING delta CLUSTER BY (x) LOCATION '{r}/there3'
INSERT INTO so_there3 VALUES (1)
CREATE OR REPLACE TABLE so_there3 (y INT) USING delta LOCATION '{r}/there3'
SELECT * FROM so_there3
DESCRIBE DETAIL so_there3
DESCRIBE HISTORY so_there3
REPLACE TABLE so_missing (x INT) USING delta
CREATE TABLE so_none.t (x INT) USING delta
INSERT OVERWRITE DIRECTORY '{r}/flat' USING parquet SELECT 1 AS a, 'x' AS b
INSERT OVERWRITE DIRECTORY '{r}/parts/p=1' USING parquet SELECT 1 AS a
INSERT OVERWRITE DIRECTORY '{r}/parts/p=2' USING parquet SELECT 2 AS a
INSERT OVERWRITE DIRECTORY '{r}/words/p=one' USING parquet SELECT 2 AS a
INSERT OVERWRITE DIRECTORY '{r}/mixed' USING json SELECT 2 AS a
CONVERT TO DELTA parquet.`{r}/flat`
SELECT * FROM {p}flat`
CONVERT TO DELTA parquet.`{r}/flat`
CONVERT TO DELTA {p}flat`
DESCRIBE HISTORY {p}flat`
CONVERT TO DELTA parquet.`{r}/parts`
CONVERT TO DELTA parquet.`{r}/parts` PARTITIONED BY (q INT)
CONVERT TO DELTA parquet.`{r}/parts` PARTITIONED BY (p INT, q INT)
CONVERT TO DELTA parquet.`{r}/parts` PARTITIONED BY (a INT)
CONVERT TO DELTA parquet.`{r}/parts` NO STATISTICS PARTITIONED BY (p INT)
SELECT * FROM {p}parts`
SHOW PARTITIONS {p}parts`
CONVERT TO DELTA parquet.`{r}/words` PARTITIONED BY (p INT)
CONVERT TO DELTA parquet.`{r}/words` PARTITIONED BY (p STRING)
SELECT * FROM {p}words`
CONVERT TO DELTA parquet.`{r}/mixed`
CONVERT TO DELTA parquet.`{r}/missing`
CONVERT TO DELTA json.`{r}/mixed`
CONVERT TO DELTA so_missing
CREATE TABLE so_names (id INT) USING delta
ALTER TABLE so_names RENAME TO so_names2
SELECT * FROM so_names2
SELECT * FROM so_names
ALTER TABLE so_missing RENAME TO so_names
ALTER TABLE so_names2 RENAME TO so_d
DROP TABLE so_names2
DROP TABLE so_names2
DROP TABLE IF EXISTS so_names2
DROP VIEW so_d
SHOW COLUMNS IN so_d
SHOW COLUMNS FROM so_d IN default
SHOW COLUMNS IN so_missing
SHOW CREATE TABLE so_d
SHOW PARTITIONS so_as4
SHOW PARTITIONS so_d PARTITION (nothing = 1)
SHOW TBLPROPERTIES so_missing
SHOW TBLPROPERTIES so_d ('nothing')
SHOW TBLPROPERTIES so_d (own)
DESCRIBE so_d nothing
DESCRIBE TABLE EXTENDED so_d id
DESCRIBE so_d PARTITION (p = 1)
ANALYZE TABLE so_d COMPUTE STATISTICS
ANALYZE TABLE so_d COMPUTE STATISTICS FOR COLUMNS id
ANALYZE TABLE so_d COMPUTE DELTA STATISTICS
REFRESH TABLE so_d
MSCK REPAIR TABLE so_d
TRUNCATE TABLE so_as4
TRUNCATE TABLE so_d PARTITION (p = 1)
TRUNCATE TABLE so_missing
SELECT * FROM so_as4
DROP TABLE IF EXISTS so_clone
DROP TABLE IF EXISTS so_clone4
DROP TABLE IF EXISTS so_pq
DROP TABLE IF EXISTS so_like
DROP TABLE IF EXISTS so_like2
DROP TABLE IF EXISTS so_like3
DROP TABLE IF EXISTS so_as
DROP TABLE IF EXISTS so_as4
DROP TABLE IF EXISTS so_as5
DROP TABLE IF EXISTS so_new
DROP TABLE IF EXISTS so_bad3
DROP TABLE IF EXISTS so_there
DROP TABLE IF EXISTS so_there2
DROP TABLE IF EXISTS so_there3
DROP TABLE IF EXISTS so_d
""",
    "merges": r"""
CREATE TABLE so_m (id INT, v STRING, c STRUCT<a: INT, b: STRING>, n INT) USING delta LOCATION '{r}/m'
INSERT INTO so_m VALUES (1, 'a', named_struct('a', 1, 'b', 'x'), 1), (2, 'b', named_struct('a', 2, 'b', 'y'), 2), (3, 'c', NULL, 3)
CREATE TEMPORARY VIEW so_s AS SELECT * FROM VALUES (2, 'B', 20), (4, 'D', 40) AS q(id, v, n)
CREATE TEMPORARY VIEW so_twice AS SELECT * FROM VALUES (2, 'B'), (2, 'C') AS q(id, v)
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v, t.c.a = s.n WHEN NOT MATCHED THEN INSERT (id, v, c, n) VALUES (s.id, s.v, NULL, s.n)
SELECT * FROM so_m
MERGE INTO so_m USING so_s ON so_m.id = so_s.id WHEN MATCHED AND so_s.n > 100 THEN DELETE WHEN MATCHED THEN UPDATE SET so_m.n = so_m.n + so_s.n WHEN NOT MATCHED BY TARGET THEN INSERT (id) VALUES (so_s.id) WHEN NOT MATCHED BY SOURCE AND so_m.id = 1 THEN UPDATE SET v = concat(v, '!') WHEN NOT MATCHED BY SOURCE THEN DELETE
SELECT * FROM so_m
MERGE INTO so_m t USING so_twice s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v
MERGE INTO so_m t USING so_twice s ON t.id = s.id WHEN MATCHED THEN DELETE
SELECT * FROM so_m
INSERT INTO so_m VALUES (2, 'b', named_struct('a', 2, 'b', 'y'), 2)
MERGE INTO so_m t USING so_twice s ON t.id = s.id WHEN MATCHED AND s.v = 'B' THEN UPDATE SET v = s.v
MERGE INTO so_m t USING so_twice s ON t.id = s.id WHEN MATCHED AND s.v = 'B' THEN DELETE
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *
MERGE WITH SCHEMA EVOLUTION INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
SELECT * FROM so_m
MERGE WITH SCHEMA EVOLUTION INTO so_m t USING (SELECT 5 AS id, 'E' AS v, 1.5 AS w) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
SELECT * FROM so_m
DESCRIBE so_m
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v, v = 'x'
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v, V = 'x'
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET c.a = 1, c = NULL
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (1)
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, c.a) VALUES (1, 2)
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (nothing) VALUES (1)
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (1, 2)
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.nothing
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = v
MERGE INTO so_m t USING so_s s ON t.nothing = s.id WHEN MATCHED THEN DELETE
MERGE INTO so_m t USING so_s s ON id = id WHEN MATCHED THEN DELETE
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED AND nothing THEN DELETE
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED AND t.id THEN DELETE
MERGE INTO so_m t USING so_s s ON t.id WHEN MATCHED THEN DELETE
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'x'
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (1) WHEN NOT MATCHED AND s.id = 4 THEN INSERT (id) VALUES (2)
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'x'
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.v
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN INSERT (id) VALUES (1)
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED THEN DELETE
MERGE INTO so_m t USING so_s s ON t.id = s.id
MERGE INTO so_m t USING so_s s ON t.id = s.id AND rand() > 2 WHEN MATCHED THEN DELETE
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = rand() * 0
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED AND EXISTS (SELECT 1) THEN DELETE
MERGE INTO so_m t USING so_s s ON t.id = s.id AND count(*) > 1 WHEN MATCHED THEN DELETE
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 'x'
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = '17'
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 99999999999
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET c = named_struct('a', 9, 'b', 'q')
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET c = named_struct('b', 'r', 'a', 8)
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET c = named_struct('a', 9, 'c', 'q')
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET c = named_struct('a', 9)
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET c.nothing = 9
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.c = 9
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s.id = 9
SELECT * FROM so_m
MERGE INTO so_m t USING so_m s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n + 1
MERGE INTO so_m t USING so_missing s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO so_missing t USING so_s s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO {p}missing` t USING so_s s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO {p}m` t USING so_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 0
MERGE INTO so_m t USING (SELECT * FROM so_s WHERE id = 100) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)
MERGE INTO so_m t USING (SELECT 6 AS id, 'F' AS v) s ON t.id = s.id WHEN NOT MATCHED AND s.v = 'F' THEN INSERT (v, id) VALUES (s.v, s.id)
MERGE INTO so_m t USING so_s s ON t.id <=> s.id AND false WHEN NOT MATCHED BY SOURCE AND t.id = 6 THEN DELETE
MERGE INTO so_m AS t USING so_s AS t ON t.id = t.id WHEN MATCHED THEN DELETE
SELECT * FROM so_m
UPDATE so_m SET nothing = 1
UPDATE so_m SET v = nothing
UPDATE so_m SET v = 'x' WHERE nothing = 1
UPDATE so_m SET v = 'x', v = 'y'
UPDATE so_m SET v = 'x', V = 'y'
UPDATE so_m SET c.a = 5, c.b = 'five' WHERE id = 4
UPDATE so_m SET c.a = 5, c.a = 6
UPDATE so_m SET c.a = 5, c = NULL
UPDATE so_m SET c.nothing = 5
UPDATE so_m SET c.a.x = 5
UPDATE so_m SET id.a = 5
UPDATE so_m SET n = 'x'
UPDATE so_m SET n = '12' WHERE id = 4
UPDATE so_m SET n = 99999999999
UPDATE so_m SET n = n / 2 WHERE id = 4
UPDATE so_m SET n = 1.7 WHERE id = 4
UPDATE so_m SET n = date '2020-01-01'
UPDATE so_m SET n = true
UPDATE so_m SET v = 17 WHERE id = 4
UPDATE so_m SET c = named_struct('b', 'r', 'a', 8) WHERE id = 4
UPDATE so_m SET c = 4
UPDATE so_m SET id = DEFAULT WHERE id = 4
UPDATE so_m SET v = upper(v), n = id, id = n WHERE id = 2
UPDATE so_m AS t SET t.v = 'alias' WHERE t.id = 1
UPDATE so_m t SET so_m.v = 'alias'
UPDATE so_m SET so_m.v = 'name', n = 3 WHERE so_m.id = 1
UPDATE so_m SET v = 'x' WHERE id IN (SELECT id FROM so_s)
UPDATE so_m SET v = 'x' WHERE id
UPDATE so_m SET v = 'x' WHERE rand() > 2
UPDATE so_m SET v = 'x' WHERE count(*) > 1
UPDATE so_m SET v = count(*)
UPDATE so_m SET v = 'x' WHERE false
UPDATE so_m SET
UPDATE so_m SET v
UPDATE so_s SET v = 1
UPDATE {p}missing` SET v = 1
UPDATE so_missing SET v = 1
SELECT * FROM so_m
DELETE FROM so_m WHERE nothing = 1
DELETE FROM so_m WHERE id
DELETE FROM so_m WHERE rand() > 2
DELETE FROM so_m WHERE count(*) > 1
DELETE FROM so_m WHERE id IN (SELECT id FROM so_s WHERE id = 4)
DELETE FROM so_m WHERE EXISTS (SELECT 1)
DELETE FROM so_m t WHERE t.id = 1
DELETE FROM so_m t WHERE so_m.id = 1
DELETE FROM so_m WHERE id = 'x'
DELETE FROM so_m WHERE c.a = 8 OR c IS NULL
DELETE FROM so_m WHERE false
DELETE FROM so_m LIMIT 1
DELETE so_m
DELETE FROM {p}missing`
SELECT * FROM so_m
DELETE FROM so_m
SELECT * FROM so_m
DESCRIBE HISTORY so_m
DROP TABLE so_m
CREATE TABLE so_m (id INT, v STRING) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')
INSERT INTO so_m VALUES (1, 'a')
DELETE FROM so_m
UPDATE so_m SET v = 'b'
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *
MERGE INTO so_m t USING so_s s ON t.id = s.id WHEN MATCHED THEN DELETE
TRUNCATE TABLE so_m
INSERT OVERWRITE so_m VALUES (2, 'b')
SELECT * FROM so_m
DROP TABLE so_m
DROP VIEW so_s
DROP VIEW so_twice
""",
    "alterations": r"""
CREATE TABLE so_a (id INT, v STRING, s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<e: INT>>, m MAP<STRING, INT>, p INT) USING delta PARTITIONED BY (p) LOCATION '{r}/a'
INSERT INTO so_a VALUES (1, 'a', named_struct('x', 1, 'y', 'b'), array(named_struct('e', 1)), map('k', 1), 1)
ALTER TABLE so_a ADD COLUMN c INT
ALTER TABLE so_a ADD COLUMNS (d DATE COMMENT 'day' FIRST, e STRING AFTER v)
ALTER TABLE so_a ADD COLUMN (s.z INT AFTER x, l.element.f INT, m.value.g INT)
ALTER TABLE so_a ADD COLUMN (s.z INT AFTER x, l.element.f INT FIRST)
ALTER TABLE so_a ADD COLUMN c INT
ALTER TABLE so_a ADD COLUMN C INT
ALTER TABLE so_a ADD COLUMN IF NOT EXISTS c INT
ALTER TABLE so_a ADD COLUMN n INT NOT NULL
ALTER TABLE so_a ADD COLUMN n INT AFTER nothing
ALTER TABLE so_a ADD COLUMN n NOTHING
ALTER TABLE so_a ADD COLUMN nothing.n INT
ALTER TABLE so_a ADD COLUMN id.n INT
ALTER TABLE so_a ADD COLUMN `a b` INT
ALTER TABLE so_a ADD COLUMN n INT GENERATED ALWAYS AS (id + 1)
ALTER TABLE so_a ADD COLUMNS (n INT, n STRING)
DESCRIBE so_a
SELECT * FROM so_a
ALTER TABLE so_a RENAME COLUMN v TO w
ALTER TABLE so_a DROP COLUMN e
ALTER TABLE so_a SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')
ALTER TABLE so_a RENAME COLUMN v TO w
ALTER TABLE so_a RENAME COLUMN s.x TO s.xx
ALTER TABLE so_a RENAME COLUMN s.x TO xx
ALTER TABLE so_a RENAME COLUMN w TO id
ALTER TABLE so_a RENAME COLUMN w TO ID
ALTER TABLE so_a RENAME COLUMN nothing TO something
ALTER TABLE so_a RENAME COLUMN s.nothing TO something
ALTER TABLE so_a RENAME COLUMN p TO q
ALTER TABLE so_a RENAME COLUMN w TO `w, x`
ALTER TABLE so_a RENAME COLUMN `w, x` TO w
ALTER TABLE so_a DROP COLUMN e
ALTER TABLE so_a DROP COLUMN e
ALTER TABLE so_a DROP COLUMN IF EXISTS e
ALTER TABLE so_a DROP COLUMNS (d, s.z)
ALTER TABLE so_a DROP COLUMN q
ALTER TABLE so_a DROP COLUMNS (nothing)
ALTER TABLE so_a DROP COLUMN l.element
ALTER TABLE so_a DROP COLUMN s.xx, s.y
DESCRIBE so_a
SELECT * FROM so_a
ALTER TABLE so_a ALTER COLUMN w COMMENT 'it''s'
ALTER TABLE so_a ALTER w FIRST
ALTER TABLE so_a ALTER COLUMN w AFTER id
ALTER TABLE so_a ALTER COLUMN w AFTER W
ALTER TABLE so_a ALTER COLUMN w AFTER nothing
ALTER TABLE so_a ALTER COLUMN nothing FIRST
ALTER TABLE so_a ALTER COLUMN l.element.e FIRST
ALTER TABLE so_a ALTER COLUMN w SET NOT NULL
ALTER TABLE so_a ALTER COLUMN w DROP NOT NULL
ALTER TABLE so_a ALTER COLUMN w TYPE INT
ALTER TABLE so_a ALTER COLUMN id TYPE BIGINT
ALTER TABLE so_a ALTER COLUMN id TYPE INT
ALTER TABLE so_a ALTER COLUMN id TYPE SMALLINT
ALTER TABLE so_a ALTER COLUMN q TYPE BIGINT
ALTER TABLE so_a ALTER COLUMN s TYPE STRUCT<xx: INT>
ALTER TABLE so_a ALTER COLUMN w TYPE VARCHAR(5)
ALTER TABLE so_a SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')
ALTER TABLE so_a ALTER COLUMN id TYPE BIGINT
ALTER TABLE so_a ALTER COLUMN id TYPE INT
ALTER TABLE so_a ALTER COLUMN id TYPE STRING
ALTER TABLE so_a ALTER COLUMN id TYPE DECIMAL(20, 0)
ALTER TABLE so_a ALTER COLUMN m.value TYPE BIGINT
ALTER TABLE so_a ALTER COLUMN l.element.e TYPE DOUBLE
ALTER TABLE so_a ALTER COLUMN c TYPE BIGINT COMMENT 'both'
ALTER TABLE so_a ALTER COLUMN c COMMENT 'one', w COMMENT 'two'
ALTER TABLE so_a ALTER COLUMN c COMMENT 'one', c COMMENT 'two'
ALTER TABLE so_a CHANGE COLUMN w w STRING COMMENT 'changed' AFTER c
ALTER TABLE so_a CHANGE COLUMN w other STRING
ALTER TABLE so_a CHANGE w w STRING FIRST
ALTER TABLE so_a SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
ALTER TABLE so_a ALTER COLUMN c SET DEFAULT 7
ALTER TABLE so_a ALTER COLUMN c SET DEFAULT nothing
ALTER TABLE so_a ALTER COLUMN c SET DEFAULT 'x'
ALTER TABLE so_a ALTER COLUMN c SET DEFAULT (SELECT 1)
INSERT INTO so_a (id, q) VALUES (2, 2)
ALTER TABLE so_a ALTER COLUMN c DROP DEFAULT
INSERT INTO so_a (id, q) VALUES (3, 3)
DESCRIBE so_a
SELECT * FROM so_a
ALTER TABLE so_a ADD CONSTRAINT positive CHECK (id > 0)
ALTER TABLE so_a ADD CONSTRAINT positive CHECK (id > 1)
ALTER TABLE so_a ADD CONSTRAINT POSITIVE CHECK (id > 1)
ALTER TABLE so_a ADD CONSTRAINT big CHECK (id > 2)
ALTER TABLE so_a ADD CONSTRAINT bad CHECK (nothing > 2)
ALTER TABLE so_a ADD CONSTRAINT bad CHECK (id + 1)
ALTER TABLE so_a ADD CONSTRAINT bad CHECK (rand() > 2)
ALTER TABLE so_a ADD CONSTRAINT bad CHECK (id IN (SELECT 1))
ALTER TABLE so_a ADD CONSTRAINT bad CHECK (count(*) > 1)
ALTER TABLE so_a ADD CONSTRAINT bad CHECK id > 1
ALTER TABLE so_a ADD CONSTRAINT `odd name` CHECK (id < 1000)
ALTER TABLE so_a ADD CHECK (id > 0)
SHOW TBLPROPERTIES so_a ('delta.constraints.positive')
SHOW TBLPROPERTIES so_a ('delta.constraints.odd name')
INSERT INTO so_a (id) VALUES (-1)
INSERT INTO so_a (id) VALUES (NULL)
UPDATE so_a SET id = 2000
ALTER TABLE so_a RENAME COLUMN id TO key
ALTER TABLE so_a DROP COLUMN id
ALTER TABLE so_a ALTER COLUMN id TYPE DECIMAL(20, 0)
ALTER TABLE so_a SET TBLPROPERTIES ('delta.constraints.mine' = 'id > 0')
ALTER TABLE so_a UNSET TBLPROPERTIES ('delta.constraints.positive')
ALTER TABLE so_a DROP CONSTRAINT nothing
ALTER TABLE so_a DROP CONSTRAINT IF EXISTS nothing
ALTER TABLE so_a DROP CONSTRAINT Positive
ALTER TABLE so_a DROP CONSTRAINT `odd name`
INSERT INTO so_a (id) VALUES (-1)
ALTER TABLE so_a SET TBLPROPERTIES ('own' = 'x', delta.appendOnly = true, n = 5)
SHOW TBLPROPERTIES so_a ('own')
SHOW TBLPROPERTIES so_a ('delta.appendOnly')
DELETE FROM so_a WHERE id = 3
ALTER TABLE so_a UNSET TBLPROPERTIES ('delta.appendOnly', 'own')
SHOW TBLPROPERTIES so_a ('own')
ALTER TABLE so_a UNSET TBLPROPERTIES IF EXISTS ('own')
ALTER TABLE so_a SET TBLPROPERTIES ('delta.nothing' = 'x')
ALTER TABLE so_a SET TBLPROPERTIES ('delta.appendOnly' = 'x')
ALTER TABLE so_a SET TBLPROPERTIES ('delta.checkpointInterval' = '0')
ALTER TABLE so_a SET TBLPROPERTIES ('delta.logRetentionDuration' = 'x')
ALTER TABLE so_a SET TBLPROPERTIES ('delta.columnMapping.mode' = 'id')
ALTER TABLE so_a SET TBLPROPERTIES ('delta.columnMapping.mode' = 'x')
ALTER TABLE so_a SET TBLPROPERTIES ('delta.minReaderVersion' = '1')
ALTER TABLE so_a SET TBLPROPERTIES ('delta.feature.nothing' = 'supported')
ALTER TABLE so_a SET TBLPROPERTIES ('delta.feature.deletionVectors' = 'enabled')
ALTER TABLE so_a SET TBLPROPERTIES ('location' = '/x')
ALTER TABLE so_a SET TBLPROPERTIES ('provider' = 'parquet')
ALTER TABLE so_a SET TBLPROPERTIES ('comment' = 'as property')
ALTER TABLE so_a SET TBLPROPERTIES ()
DESCRIBE DETAIL so_a
ALTER TABLE so_a CLUSTER BY (id)
ALTER TABLE so_a DROP FEATURE nothing
ALTER TABLE so_a DROP FEATURE deletionVectors
ALTER TABLE so_a DROP FEATURE columnMapping
ALTER TABLE so_a DROP FEATURE appendOnly
ALTER TABLE so_a DROP FEATURE checkConstraints
ALTER TABLE so_a DROP FEATURE checkConstraints
ALTER TABLE so_a DROP FEATURE typeWidening TRUNCATE HISTORY
ALTER TABLE so_a SET LOCATION '{r}/nowhere'
ALTER TABLE so_a SET SERDEPROPERTIES ('a' = 'b')
ALTER TABLE so_a ADD PARTITION (q = 5)
ALTER TABLE so_a DROP PARTITION (q = 1)
ALTER TABLE so_a RECOVER PARTITIONS
ALTER TABLE so_a REPLACE COLUMNS (id BIGINT, w STRING)
ALTER TABLE so_a NOTHING
ALTER TABLE so_missing ADD COLUMN c INT
ALTER TABLE {p}missing` ADD COLUMN c INT
ALTER TABLE so_missing SET TBLPROPERTIES ('a' = 'b')
ALTER TABLE so_missing ADD CONSTRAINT c CHECK (id > 1)
ALTER TABLE so_missing CLUSTER BY (id)
ALTER TABLE so_missing DROP FEATURE deletionVectors
ALTER TABLE {p}a` ADD COLUMN by_path INT
DESCRIBE {p}a`
SELECT * FROM so_a
DROP TABLE so_a
CREATE TABLE so_c (id INT, v STRING, s STRUCT<x: INT>, a ARRAY<INT>) USING delta CLUSTER BY (id)
DESCRIBE DETAIL so_c
ALTER TABLE so_c CLUSTER BY (v, s.x)
DESCRIBE DETAIL so_c
ALTER TABLE so_c CLUSTER BY (nothing)
ALTER TABLE so_c CLUSTER BY (a)
ALTER TABLE so_c CLUSTER BY (id, id)
ALTER TABLE so_c CLUSTER BY (id, v, s.x, a, id)
ALTER TABLE so_c CLUSTER BY NONE
DESCRIBE DETAIL so_c
ALTER TABLE so_c CLUSTER BY (id)
ALTER TABLE so_c SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')
ALTER TABLE so_c DROP COLUMN id
ALTER TABLE so_c RENAME COLUMN id TO key
DESCRIBE DETAIL so_c
DESCRIBE so_c
ALTER TABLE so_c DROP FEATURE clustering
ALTER TABLE so_c REPLACE COLUMNS (key INT, w STRING)
ALTER TABLE so_c ADD COLUMN i BIGINT GENERATED ALWAYS AS IDENTITY
ALTER TABLE so_c ALTER COLUMN key SYNC IDENTITY
COMMENT ON TABLE so_c IS NULL
COMMENT ON COLUMN so_c.key IS 'a key'
DESCRIBE so_c
DROP TABLE so_c
CREATE TABLE so_g (id INT NOT NULL, g INT GENERATED ALWAYS AS (id + 1), i BIGINT GENERATED BY DEFAULT AS IDENTITY) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')
INSERT INTO so_g (id, i) VALUES (1, 100)
ALTER TABLE so_g ALTER COLUMN id DROP NOT NULL
ALTER TABLE so_g ALTER COLUMN id TYPE BIGINT
ALTER TABLE so_g DROP COLUMN id
ALTER TABLE so_g RENAME COLUMN id TO key
ALTER TABLE so_g DROP COLUMN g
ALTER TABLE so_g ALTER COLUMN i SYNC IDENTITY
ALTER TABLE so_g DROP COLUMN i
INSERT INTO so_g (id) VALUES (NULL)
SELECT id FROM so_g
DESCRIBE HISTORY so_g LIMIT 6
DROP TABLE so_g
""",
    "upkeep": r"""
CREATE TABLE so_u (id INT, v STRING, p INT) USING delta PARTITIONED BY (p) LOCATION '{r}/u' TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')
INSERT INTO so_u SELECT /*+ COALESCE(1) */ id, 'a', id % 2 FROM range(10)
INSERT INTO so_u SELECT /*+ COALESCE(1) */ id + 10, 'b', id % 2 FROM range(10)
DELETE FROM so_u WHERE id = 1
OPTIMIZE so_u WHERE p = 0
SELECT * FROM so_u
OPTIMIZE so_u WHERE id = 1
OPTIMIZE so_u WHERE nothing = 1
OPTIMIZE so_u WHERE p = 1 AND id = 1
OPTIMIZE so_u WHERE p IN (0, 1) AND p IS NOT NULL
OPTIMIZE so_u WHERE p = 'x'
OPTIMIZE so_u WHERE p
OPTIMIZE so_u ZORDER BY (id, v)
OPTIMIZE so_u ZORDER BY id
OPTIMIZE so_u ZORDER BY (nothing)
OPTIMIZE so_u ZORDER BY (p)
OPTIMIZE so_u ZORDER BY (id, id)
OPTIMIZE so_u WHERE p = 0 ZORDER BY (id)
OPTIMIZE so_u FULL
OPTIMIZE so_u FULL WHERE p = 0
OPTIMIZE {p}u`
OPTIMIZE '{r}/u'
OPTIMIZE {p}missing`
OPTIMIZE so_u WHERE
OPTIMIZE so_u NOTHING
OPTIMIZE TABLE so_u
SELECT * FROM so_u
REORG TABLE so_u APPLY (PURGE)
DELETE FROM so_u WHERE id IN (2, 3)
REORG TABLE so_u WHERE p = 0 APPLY (PURGE)
REORG TABLE so_u WHERE id = 0 APPLY (PURGE)
REORG TABLE so_u WHERE nothing = 0 APPLY (PURGE)
REORG TABLE so_u APPLY (NOTHING)
REORG TABLE so_u
REORG TABLE so_missing APPLY (PURGE)
REORG so_u APPLY (PURGE)
REORG TABLE {p}u` APPLY (PURGE)
SELECT * FROM so_u
VACUUM so_u RETAIN 0 HOURS
VACUUM so_u RETAIN 0 HOURS DRY RUN
VACUUM so_u RETAIN 168.5 HOURS DRY RUN
VACUUM so_u RETAIN x HOURS
VACUUM so_u RETAIN 200
VACUUM so_u DRY RUN
VACUUM so_u
VACUUM so_u FULL
VACUUM so_u LITE
VACUUM so_u LITE DRY RUN
VACUUM so_u DRY RUN RETAIN 200 HOURS
VACUUM so_u FULL LITE
VACUUM so_u DRY RUN DRY RUN
VACUUM {p}u` RETAIN 200 HOURS
VACUUM '{r}/u' DRY RUN
VACUUM delta.'{r}/u' DRY RUN
VACUUM so_missing
VACUUM {p}missing`
VACUUM '{r}/missing'
VACUUM so_u NOTHING
VACUUM so_u USING INVENTORY so_missing
VACUUM so_u USING INVENTORY (SELECT 'x' AS path)
SET spark.databricks.delta.retentionDurationCheck.enabled = false
VACUUM so_u RETAIN 0 HOURS
SELECT * FROM so_u
RESTORE TABLE so_u TO VERSION AS OF 1
RESET spark.databricks.delta.retentionDurationCheck.enabled
DROP TABLE so_u
CREATE TABLE so_k (id INT, v STRING) USING delta CLUSTER BY (id)
INSERT INTO so_k SELECT id, 'a' FROM range(10)
INSERT INTO so_k SELECT id + 5, 'a' FROM range(10)
OPTIMIZE so_k
OPTIMIZE so_k FULL
OPTIMIZE so_k FULL
OPTIMIZE so_k ZORDER BY (id)
OPTIMIZE so_k WHERE id = 1
OPTIMIZE so_k FULL WHERE id = 1
ALTER TABLE so_k CLUSTER BY (v)
OPTIMIZE so_k FULL
ALTER TABLE so_k CLUSTER BY NONE
OPTIMIZE so_k FULL
OPTIMIZE so_k
SELECT * FROM so_k
DROP TABLE so_k
CREATE TABLE so_g (id INT, p INT) USING delta PARTITIONED BY (p) LOCATION '{r}/g'
GENERATE symlink_format_manifest FOR TABLE so_g
INSERT INTO so_g VALUES (1, 1), (2, 2)
GENERATE symlink_format_manifest FOR TABLE so_g
GENERATE SYMLINK_FORMAT_MANIFEST FOR TABLE {p}g`
GENERATE nothing FOR TABLE so_g
GENERATE symlink_format_manifest FOR TABLE so_missing
GENERATE symlink_format_manifest FOR TABLE {p}missing`
GENERATE symlink_format_manifest so_g
SELECT count(*) FROM text.`{r}/g/_symlink_format_manifest`
ALTER TABLE so_g SET TBLPROPERTIES ('delta.compatibility.symlinkFormatManifest.enabled' = 'true')
DELETE FROM so_g WHERE p = 1
SELECT count(*) FROM text.`{r}/g/_symlink_format_manifest`
ALTER TABLE so_g SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')
DESCRIBE HISTORY so_g LIMIT 2
DROP TABLE so_g
""",
    "session settings": r"""
CREATE TABLE so_s (k INT, i INT, d DECIMAL(4, 2), b BIGINT, a ARRAY<VARCHAR(2)>) USING delta
SET spark.sql.storeAssignmentPolicy = STRICT
INSERT INTO so_s (k, i) SELECT 1, 5L
INSERT INTO so_s (k, b) SELECT 2, 5
UPDATE so_s SET i = 7L
UPDATE so_s SET d = 5
SET spark.sql.storeAssignmentPolicy = LEGACY
INSERT INTO so_s (k, i, d) SELECT 3, 'x', 123.4BD
INSERT INTO so_s (k, i) SELECT 4, 3000000000L
INSERT INTO so_s BY NAME SELECT 5 AS k, DATE '2024-01-02' AS i
UPDATE so_s SET d = 'y', i = '8' WHERE k = 2
MERGE INTO so_s t USING (SELECT 3 AS k, 'z' AS i UNION ALL SELECT 6, '9') s ON t.k = s.k WHEN MATCHED THEN UPDATE SET i = s.i WHEN NOT MATCHED THEN INSERT (k, i) VALUES (s.k, s.i)
RESET spark.sql.storeAssignmentPolicy
INSERT INTO so_s (k, i) SELECT 7, 'x'
INSERT INTO so_s (k, a) SELECT 8, array('ab')
INSERT INTO so_s (k, a) SELECT 9, array('abc')
SELECT * FROM so_s
INSERT INTO so_s WITH ('replaceWhere' = 'k = 1', 'overwriteSchema' = 'true') (k) VALUES (10)
INSERT OVERWRITE so_s WITH ('overwriteSchema' = 'true') SELECT 11, 11, 1, 1, array('c'), 'new' AS n
SELECT * FROM so_s
SELECT k FROM so_s VERSION AS OF 0 WITH ('nothing' = 'x')
VACUUM so_s RETAIN 1 HOURS
ALTER TABLE so_s UNSET TBLPROPERTIES ('nothing', 'delta.appendOnly')
ALTER TABLE so_s SET TBLPROPERTIES ('delta.universalFormat.enabledFormats' = 'iceberg')
ALTER TABLE so_s SET TBLPROPERTIES ('delta.coordinatedCommits.tableConf' = 'x')
DROP TABLE so_s
SET spark.sql.session.timeZone = America/New_York
CREATE TABLE so_z (k INT, at TIMESTAMP DEFAULT TIMESTAMP '2024-01-02 22:00:00', t STRING DEFAULT CAST(TIMESTAMP '2024-01-02 03:00:00Z' AS STRING)) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
ALTER TABLE so_z ADD CONSTRAINT evening CHECK (hour(at) = 22)
INSERT INTO so_z (k) VALUES (1)
INSERT INTO so_z (k, at) VALUES (2, TIMESTAMP '2024-01-02 22:00:00Z')
SELECT k, unix_timestamp(at), t FROM so_z
SET spark.sql.session.timeZone = UTC
INSERT INTO so_z (k) VALUES (3)
SELECT k, unix_timestamp(at), t FROM so_z
ALTER TABLE so_z ADD CONSTRAINT number CHECK (CAST(t AS INT) IS NULL)
ALTER TABLE so_z DROP CONSTRAINT evening
SET spark.sql.ansi.enabled = false
INSERT INTO so_z (k, t) VALUES (4, 'x')
RESET spark.sql.ansi.enabled
SELECT k, t FROM so_z
DROP TABLE so_z
""",
}
_ENFORCES_RETENTION = (
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
)
TEXTS = {name: [line for line in texts.splitlines() if line] for name, texts in _TEXTS.items()}
DIFFERENT: Mapping[str, str] = {
    "CREATE OR REPLACE TABLE so_clone SHALLOW CLONE {p}missing`": "PATH_NOT_FOUND",
    "ALTER TABLE so_a ADD CONSTRAINT bad CHECK (rand() > 2)": "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT",
    "ALTER TABLE so_a ADD CONSTRAINT bad CHECK (id IN (SELECT 1))": "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT",
    "INSERT INTO so_s (k, a) SELECT 9, array('abc')": "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
}
"""Our condition for each text whose result differs; COMPATIBILITY.md gives the reasons."""
COMPARED: Mapping[str, tuple[str, ...]] = {
    "DESCRIBE HISTORY ": ("version", "operation"),
    "DESCRIBE DETAIL ": ("format", "description", "partitionColumns", "clusteringColumns"),
    " CLONE ": (),
    "OPTIMIZE ": (),
    "REORG ": (),
    "RESTORE ": (),
    "VACUUM ": (),
}
"""The columns to compare, by words of the statement; the others hold paths, sizes or times."""


def results(spark: SparkSession, name: str, root: str) -> list[Any]:
    """Return the result of each text, or the names of its error; runs in either engine."""
    found: list[Any] = []
    spark.conf.set(_ENFORCES_RETENTION, "false")  # the times of a golden table are fixed
    shutil.copytree(TABLES / "in-commit-timestamps" / "delta", Path(root, "times"))
    for text in TEXTS[name]:
        try:
            found.append(_result(spark, text, root))
        except (PySparkException, Py4JJavaError) as error:
            found.append(names(error, root))
    return found


def _result(spark: SparkSession, text: str, root: str) -> Any:
    """Names and types of columns, and rows in any order, with paths below the root."""
    frame = spark.sql(text.replace("{p}", f"delta.`{root}/").replace("{r}", root))
    columns = [f"{field.name} {field.dataType.simpleString()}" for field in frame.schema]
    shown = next((v for words, v in COMPARED.items() if words in text), frame.columns)
    rows = [json.dumps([row[name] for name in shown], default=str) for row in frame.collect()]
    return [columns, sorted(row.replace(root, "") for row in rows)]


def _is_same(theirs: Any, ours: Any) -> bool:
    are_errors = isinstance(theirs, dict) and isinstance(ours, dict)
    return are_same(theirs, ours) if are_errors else bool(theirs == ours)


@pytest.mark.parametrize("name", TEXTS)
def test_the_same_texts(
    enabled: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, name: str
) -> None:
    roots = [str(tmp_path / engine) for engine in ("theirs", "ours")]
    theirs = delta_spark.run("tests.oracle.test_sql:results", name=name, root=roots[0])
    ours = results(enabled, name, roots[1])
    found = zip(TEXTS[name], theirs, ours, strict=True)
    different = [one for one in found if not _is_same(*one[1:])]
    for one in different:
        print(*one, sep="\n    ")
    expected = {text: ours for text, ours in DIFFERENT.items() if text in TEXTS[name]}
    conditions = {
        text: ours["condition"] if isinstance(ours, dict) else None for text, _, ours in different
    }
    assert conditions == expected
