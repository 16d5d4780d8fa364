"""Tables with GEOMETRY and GEOGRAPHY columns: every change of rows keeps the values.

delta-io/delta#4726 proposes the feature.
"""

from __future__ import annotations

import json

import pytest
from pyspark.sql import Row, SparkSession

from sparkdelta import (
    DeltaTable,
    alter_table,
    load_snapshot,
    optimize,
    read_changes,
    read_delta,
    sql,
    verify,
    write_checkpoint,
    write_delta,
)
from sparkdelta.base.schema.spatial_types import SPATIAL_TYPES
from tests.operations.write.test_write import commit
from tests.support.errors import raises

pytestmark = pytest.mark.skipif(
    not SPATIAL_TYPES, reason="Spark reads and writes the types since version 4.2"
)

ONE = "0101000000000000000000F03F000000000000F03F"  # WKB of the point (1, 1)
TWO = "010100000000000000000000400000000000000040"
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
}
TEXTS = ("id", "hex(st_asbinary(g)) AS g", "st_srid(l[0]) AS srid", "hex(st_asbinary(s.h)) AS h")


def point(wkb: str) -> str:
    return f"st_geomfromwkb(X'{wkb}', 4326)"


def make(spark: SparkSession, path: str) -> None:
    rows = spark.range(4).selectExpr(
        "CAST(id AS INT) AS id",
        f"{point(ONE)} AS g",
        f"array({point(TWO)}) AS l",
        f"named_struct('h', st_geogfromwkb(X'{TWO}')) AS s",
    )
    write_delta(rows, path, properties=PROPERTIES)


def rows(spark: SparkSession, path: str) -> list[Row]:
    return read_delta(spark, path).selectExpr(*TEXTS).orderBy("id").collect()


def test_values_are_stored_and_read(spark: SparkSession, table_path: str) -> None:
    make(spark, table_path)
    table = load_snapshot(spark, table_path)
    assert "geospatial" in (table.protocol.reader_features or ())
    assert '"geography(OGC:CRS84, SPHERICAL)"' in (table.metadata.schema_string or "")
    assert rows(spark, table_path) == [Row(id=n, g=ONE, srid=4326, h=TWO) for n in range(4)]
    for add in commit(table_path, 0)["add"]:
        assert json.loads(add["stats"])["nullCount"].keys() == {"id"}


@pytest.mark.slow
def test_changes_of_rows_keep_values(spark: SparkSession, table_path: str) -> None:
    make(spark, table_path)
    table = f"delta.`{table_path}`"
    sql(spark, f"DELETE FROM {table} WHERE id = 0")
    sql(spark, f"UPDATE {table} SET g = {point(TWO)} WHERE id = 1")
    source = f"SELECT 2 AS id, {point(TWO)} AS g UNION ALL SELECT 9, {point(ONE)}"
    sql(
        spark,
        f"MERGE INTO {table} t USING ({source}) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET g = s.g WHEN NOT MATCHED THEN INSERT (id, g) "
        "VALUES (s.id, s.g)",
    )
    wanted = [(1, TWO, 4326, TWO), (2, TWO, 4326, TWO), (3, ONE, 4326, TWO), (9, ONE, None, None)]
    assert [tuple(row) for row in rows(spark, table_path)] == wanted
    changes = read_changes(spark, table_path, start_version=3).filter("id = 2")
    found = changes.selectExpr("_change_type", "hex(st_asbinary(g))").collect()
    assert set(map(tuple, found)) == {("update_preimage", ONE), ("update_postimage", TWO)}
    optimize(spark, table_path)
    write_checkpoint(spark, table_path)
    alter_table(spark, table_path).set_properties({"delta.columnMapping.mode": "name"})
    sql(spark, f"INSERT INTO {table} (id, g) SELECT 10, NULL")
    assert [tuple(row) for row in rows(spark, table_path)] == [*wanted, (10, None, None, None)]
    assert verify(spark, table_path, footers=True).is_clean
    with raises("DELTA_ILLEGAL_OPTION"):  # values have no equality
        read_changes(spark, table_path, start_version=0, net=True)
    net = read_changes(spark, table_path, start_version=1, net=True, columns=["id"])
    assert net.count() == 3  # 0 is gone; 9 and 10 are new


@pytest.mark.full
def test_what_geometries_cannot_be(spark: SparkSession, table_path: str) -> None:
    make(spark, table_path)
    table = f"delta.`{table_path}`"
    for statement, error in {
        f"OPTIMIZE {table} ZORDER BY (g)": "DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES",
        f"ALTER TABLE {table} ALTER COLUMN s SET DEFAULT NULL": (
            "DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES"
        ),
        f"ALTER TABLE {table} ADD COLUMN a GEOMETRY(ANY)": "DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED",
        f"ALTER TABLE {table} DROP FEATURE geospatial": "DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE",
        f"INSERT INTO {table} (id, g) SELECT 1, st_geomfromwkb(X'{ONE}', 0)": (
            "DELTA_FAILED_TO_MERGE_FIELDS"
        ),
        f"INSERT INTO {table} (id, g) SELECT 1, 'POINT(1 1)'": "DELTA_FAILED_TO_MERGE_FIELDS",
        f"ALTER TABLE {table} ADD CONSTRAINT c CHECK (id > 2 AND g IS NOT NULL)": (
            "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
        ),
    }.items():
        with raises(error):
            sql(spark, statement)
    assert load_snapshot(spark, table_path).version == 0


@pytest.mark.full
def test_the_feature_goes_with_its_columns(spark: SparkSession, table_path: str) -> None:
    make(spark, table_path)
    change = alter_table(spark, table_path)
    change.set_properties({"delta.columnMapping.mode": "name"})
    change.drop_columns("g", "l", "s")
    DeltaTable.forPath(spark, table_path).dropFeatureSupport("geospatial")
    assert "geospatial" not in (load_snapshot(spark, table_path).protocol.reader_features or ())
    assert read_delta(spark, table_path).count() == 4
