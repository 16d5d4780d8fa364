"""REPLACE COLUMNS: what becomes of columns, fields and rows, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, IntegerType, StructField, StructType

from sparkdelta import AlterTable, DeltaTable, alter_table, load_snapshot, write_delta
from sparkdelta.api.delta_table import IdentityGenerator
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from tests.operations.alter.test_alter_columns import MAPPED, parameters
from tests.operations.write.test_write import rows
from tests.support.errors import raises
from tests.support.spark_jobs import no_jobs

WIDENING = {"delta.enableTypeWidening": "true"}
DEEP = "SELECT 1 AS a, 'b' AS b, named_struct('x', 2, 'y', 'z') AS s, array(map('k', 3)) AS m"


def test_columns_are_replaced(spark: SparkSession, table_path: str) -> None:
    """Change Metadata: in one version, at every level; those that stay keep their metadata."""
    write_delta(
        spark.sql(DEEP),
        table_path,
        properties={**WIDENING, "delta.dataSkippingStatsColumns": "a,b"},
    )
    table = alter_table(spark, table_path)
    table.change_column("b", comment="old").change_column("s.x", comment="in it")
    given = DataType.fromDDL(
        "s STRUCT<y: STRING COMMENT 'why', n: INT, X: BIGINT>, m ARRAY<MAP<STRING, DOUBLE>>, "
        "B STRING"
    )
    assert isinstance(given, StructType)
    given.add("A", "integer", metadata={"comment": "new", "CURRENT_DEFAULT": "7"}).add("c", "date")
    table.replace_columns(given)
    name, shown = parameters(table_path, 3)
    assert name == "REPLACE COLUMNS"
    assert '{"name":"c","type":"date","nullable":true,"metadata":{}}' in shown["columns"]
    schema = load_snapshot(spark, table_path).schema
    assert schema.simpleString() == (
        "struct<s:struct<y:string,n:int,x:bigint>,m:array<map<string,double>>,b:string,a:int,c:date>"
    )
    inner = schema["s"].dataType
    assert isinstance(inner, StructType)
    assert [f.metadata.get("comment") for f in inner] == ["why", None, "in it"]
    assert [f.metadata.get("comment") for f in schema] == [None, None, "old", "new", None]
    write_delta(spark.sql("SELECT 'c' AS b"), table_path, mode="append")
    assert rows(spark, table_path) == [
        (None, None, "c", 7, None), (("z", None, 2), [{"k": 3.0}], "b", 1, None),
    ]  # fmt: skip
    version = load_snapshot(spark, table_path).version
    table.replace_columns(schema)
    assert load_snapshot(spark, table_path).version == version


def test_columns_that_are_missing_are_dropped(spark: SparkSession, table_path: str) -> None:
    """Column Mapping: a column of the same name that is added later is another one."""
    properties = {**MAPPED, "delta.dataSkippingStatsColumns": "a,s.x"}
    write_delta(spark.sql(DEEP), table_path, properties=properties)
    table = alter_table(spark, table_path)
    table.replace_columns("s STRUCT<y: STRING>, b STRING")
    table.replace_columns("b STRING, s STRUCT<y: STRING, x: INT>, a INT")
    found = load_snapshot(spark, table_path)
    assert found.properties["delta.columnMapping.maxColumnId"] == "8"
    assert "delta.dataSkippingStatsColumns" not in found.properties
    assert rows(spark, table_path) == [("b", ("z", None), None)]


def test_refused_replacements_commit_nothing(
    spark: SparkSession, table_path: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nothing is committed, and no Spark job starts."""
    builder = DeltaTable.create(spark).location(table_path).addColumn("a", "INT", nullable=False)
    builder.addColumn("s", "STRUCT<x: INT>").addColumn("l", "ARRAY<INT>").addColumn("p", "INT")
    builder.property("delta.constraints.some", "s.x > 0").partitionedBy("p").execute()
    table = alter_table(spark, table_path)
    rest = "s STRUCT<x: INT>, l ARRAY<INT>, p INT"
    fields = load_snapshot(spark, table_path).schema.fields
    tight = StructType([*fields[:2], StructField("l", ArrayType(IntegerType(), False)), fields[3]])
    default = {"CURRENT_DEFAULT": "1 +"}
    wrong = StructType([*fields, StructField("d", IntegerType(), True, default)])
    refused: list[tuple[Callable[[], AlterTable], str | type[DeltaError]]] = [
        (
            lambda: table.replace_columns("a INT, s STRUCT<x: INT>, p INT"),
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        ),
        (
            lambda: table.replace_columns(f"b INT, {rest}"),
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        ),
        (
            lambda: table.replace_columns(f"a INT, {rest.replace('x', 'y')}"),
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        ),
        (
            lambda: table.replace_columns(f"a BIGINT, {rest}"),
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        ),
        (
            lambda: table.replace_columns(f"a STRUCT<x: INT>, {rest}"),
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        ),
        (
            lambda: table.replace_columns(f"a INT, {rest} NOT NULL"),
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        ),
        (
            lambda: table.replace_columns(f"a INT, {rest}, b INT NOT NULL"),
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        ),
        (lambda: table.replace_columns(tight), "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"),
        (
            lambda: table.replace_columns(f"a INT, {rest}, b INT, B INT"),
            "DELTA_DUPLICATE_COLUMNS_FOUND",
        ),
        (lambda: table.replace_columns(wrong), InvalidArgumentError),
        (lambda: table.replace_columns(StructType()), InvalidArgumentError),
        (lambda: table.replace_columns("INT"), InvalidArgumentError),
    ]
    with no_jobs(spark):
        for statement, error in refused:
            with raises(error):
                statement()
    assert load_snapshot(spark, table_path).version == 0
    table.set_properties(MAPPED)
    for columns, error in [
        ("a INT, l ARRAY<INT>, p INT", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        ("a INT, s STRUCT<x: INT>, l ARRAY<INT>", "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"),
    ]:
        with raises(error):
            table.replace_columns(columns)
    other = str(tmp_path_factory.mktemp("identity") / "table")
    identity = DeltaTable.create(spark).location(other)
    identity.addColumn("i", "BIGINT", generatedAlwaysAs=IdentityGenerator()).execute()
    with raises("DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED"):
        alter_table(spark, other).replace_columns("i BIGINT, a INT")
