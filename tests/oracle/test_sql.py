"""The same SQL texts in both engines: they return the same rows, or errors of the same class.

Texts run one after the other, so that a statement that changes less, or more, than it should shows
in the next query.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sparkdelta.exceptions import DeltaError
from tests.support.delta_spark import DeltaSpark

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

_TEXTS = r"""
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
"""

TEXTS = [line for line in _TEXTS.splitlines() if line]
DIFFERENT: Mapping[str, str] = {
    "CREATE TABLE so_t (id BIGINT) USING delta": "DELTA_TABLE_ALREADY_EXISTS",
    "INSERT INTO so_t BY NAME SELECT 9 AS id, 4 AS nothing": "DELTA_METADATA_MISMATCH",
    "INSERT INTO so_t (v) VALUES ('no id')": "DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
    "SELECT * FROM table_changes('so_missing', 1)": "DELTA_TABLE_NOT_FOUND",
    "OPTIMIZE so_missing": "DELTA_TABLE_NOT_FOUND",
}
"""Our error class for each text whose result differs from delta-spark's; COMPATIBILITY.md gives the
reasons.
"""
COMPARED: Mapping[str, tuple[str, ...]] = {
    "DESCRIBE HISTORY": ("version", "operation"),
    "DESCRIBE DETAIL": ("format", "description", "partitionColumns", "clusteringColumns"),
}
"""The columns to compare, by the first words of the statement; the others hold paths, sizes or times."""


def results(spark: SparkSession, root: str) -> list[Any]:
    """In either engine: what each text returns, or the class of its error."""
    found: list[Any] = []
    for text in TEXTS:
        try:
            found.append(_result(spark, text, root))
        except (DeltaError, PySparkException) as error:
            found.append(error.getCondition())
        except Py4JJavaError as error:
            found.append(error.java_exception.getClass().getName())
    return found


def _result(spark: SparkSession, text: str, root: str) -> Any:
    """Names and types of columns, and rows in any order, with paths below the root."""
    frame = spark.sql(text.replace("{p}", f"delta.`{root}/").replace("{r}", root))
    columns = [f"{field.name} {field.dataType.simpleString()}" for field in frame.schema]
    shown = next((v for words, v in COMPARED.items() if text.startswith(words)), frame.columns)
    rows = [json.dumps([row[name] for name in shown], default=str) for row in frame.collect()]
    return [columns, sorted(row.replace(root, "") for row in rows)]


def test_the_same_texts(enabled: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    theirs = delta_spark.run("tests.oracle.test_sql:results", root=str(tmp_path / "theirs"))
    ours = results(enabled, str(tmp_path / "ours"))
    found = zip(TEXTS, theirs, ours, strict=True)
    different = [one for one in found if one[1] != one[2]]
    for one in different:
        print(*one, sep="\n    ")
    assert {text: our for text, _, our in different} == DIFFERENT
