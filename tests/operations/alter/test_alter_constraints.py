"""ALTER TABLE: CHECK constraints and clustering columns."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, load_snapshot, write_delta
from sparkdelta.exceptions import ColumnNotFoundError, ConcurrentAppendException
from sparkdelta.operations.alter.alter_table import alter
from sparkdelta.operations.alter.altered_constraints import add_constraint
from sparkdelta.table.definition.alteration import Alteration
from sparkdelta.table.snapshot.snapshot import Snapshot
from tests.operations.alter.test_alter_columns import parameters
from tests.operations.write.test_write import commit, rows
from tests.support.errors import raises
from tests.support.settings import settings


@pytest.mark.full
def test_existing_rows_satisfy_a_new_constraint(spark: SparkSession, table_path: str) -> None:
    """Check Constraints: a row for which it is null violates it; deleted rows do not count."""
    on = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    source = "SELECT IF(id = 8, NULL, id - 3) AS `v'a`, 'x' AS p FROM range(9)"
    write_delta(spark.sql(source).coalesce(1), table_path, properties=on)
    table = alter_table(spark, table_path)
    with raises("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION") as raised:
        table.add_constraint("Positive", "`v'a` > 0")
    assert raised.value.num_rows == 5
    assert len(raised.value.rows) == 3
    assert {"v'a", "p"} == json.loads(raised.value.rows[0]).keys()
    assert load_snapshot(spark, table_path).version == 0
    DeltaTable.forPath(spark, table_path).delete("`v'a` <= 0 OR `v'a` IS NULL")
    with settings(spark, {"spark.sql.ansi.enabled": "false", "spark.sql.caseSensitive": "true"}):
        table.add_constraint("Positive", "`V'A` > 0")
    assert parameters(table_path, 2) == (
        "ADD CONSTRAINT", {"name": "Positive", "expr": "`V'A` > 0"},
    )  # fmt: skip
    found = commit(table_path, 2)
    assert found["metaData"][0]["configuration"]["delta.constraints.positive"] == "`V'A` > 0"
    assert "checkConstraints" in found["protocol"][0]["writerFeatures"]
    with raises("DELTA_CONSTRAINT_ALREADY_EXISTS"):
        table.add_constraint("POSITIVE", "true")
    with raises("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        write_delta(spark.sql("SELECT 0L AS `v'a`"), table_path, mode="append")
    table.drop_constraint("POSITIVE").drop_constraint("gone", if_exists=True)
    assert parameters(table_path, 3) == (
        "DROP CONSTRAINT", {"name": "POSITIVE", "expr": "`V'A` > 0", "existed": "true"},
    )  # fmt: skip
    write_delta(spark.sql("SELECT 0L AS `v'a`"), table_path, mode="append")
    assert len(rows(spark, table_path)) == 5
    with raises("DELTA_CONSTRAINT_DOES_NOT_EXIST"):
        table.drop_constraint("positive")


def test_refused_constraints(spark: SparkSession, table_path: str) -> None:
    write_delta(spark.range(1), table_path)
    table = alter_table(spark, table_path)
    for expression, error in (
        ("nope > 1", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        ("id + 1", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("rand() < 2", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT"),
    ):
        with raises(error):
            table.add_constraint("c", expression)
    assert load_snapshot(spark, table_path).version == 0


def test_rows_that_are_appended_meanwhile(spark: SparkSession, table_path: str) -> None:
    """The constraint is not added, as these rows were not checked; delta-spark does the same."""
    write_delta(spark.range(1), table_path)

    def statement(snapshot: Snapshot) -> Alteration:
        found = add_constraint(snapshot, "c", "id < 1")
        write_delta(spark.range(9), table_path, mode="append")
        return found

    with pytest.raises(ConcurrentAppendException):
        alter(spark, table_path, statement)
    assert load_snapshot(spark, table_path).properties == {}


def test_clustering_columns_are_changed(spark: SparkSession, table_path: str) -> None:
    """Writer Requirements for Clustered Table: a domain with physical paths; history has names."""
    on = {"delta.columnMapping.mode": "name"}
    source = "SELECT 1 AS a, named_struct('x.y', 2) AS s, true AS b"
    write_delta(spark.sql(source), table_path, properties=on)
    table = alter_table(spark, table_path).cluster_by("A", "s.`x.y`").cluster_by("a", "s.`x.y`")
    found = commit(table_path, 1)
    assert set(found) == {"commitInfo", "protocol", "domainMetadata"}
    assert {"clustering", "domainMetadata"} <= set(found["protocol"][0]["writerFeatures"])
    assert parameters(table_path, 1) == (
        "CLUSTER BY", {"oldClusteringColumns": "", "newClusteringColumns": "a,s.`x.y`"},
    )  # fmt: skip
    table.cluster_by()
    assert set(commit(table_path, 2)) == {"commitInfo", "domainMetadata"}
    [domain] = commit(table_path, 2)["domainMetadata"]
    assert json.loads(domain["configuration"])["clusteringColumns"] == []
    with pytest.raises(ColumnNotFoundError):
        table.cluster_by("nope")
    write_delta(spark.sql(source), table_path, mode="append")
    assert len(rows(spark, table_path)) == 2


def test_a_partitioned_table_is_not_clustered(spark: SparkSession, table_path: str) -> None:
    write_delta(spark.sql("SELECT 1 AS a, 2 AS p"), table_path, partition_by=["p"])
    with raises("DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"):
        alter_table(spark, table_path).cluster_by("a")
