"""DELETE, UPDATE and MERGE of every kind of table that rows can be written into.

PROTOCOL.md#writer-version-requirements
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaTable, alter_table, load_snapshot, read_delta, verify, write_delta
from sparkdelta.api.delta_table import DeltaTableBuilder, IdentityGenerator
from sparkdelta.exceptions import DeltaError
from tests.support.errors import raises
from tests.support.settings import HOSTILE, settings
from tests.support.unreferenced import unreferenced

Wrong = tuple[str | type[DeltaError], dict[str, str]]
MAPPED = {"delta.columnMapping.mode": "id"}
VECTORS = {"delta.enableDeletionVectors": "true"}


@dataclass(frozen=True)
class Kind:
    """A kind of table.

    Attributes
    ----------
    columns
        Beside `id INT` and `n INT`.
    values
        Of these columns, for the rows that a query makes of `id`.
    updated
        The values that an UPDATE and a MERGE assign.
    wrong
        Assignments that are refused, and by what error.
    """

    columns: dict[str, str]
    values: dict[str, str]
    updated: dict[str, str]
    properties: dict[str, str] = field(default_factory=dict)
    wrong: tuple[Wrong, ...] = ()
    declared: Callable[[DeltaTableBuilder[DeltaTable]], object] = lambda builder: None
    altered: Callable[[Any], object] = lambda table: None


NESTED = "STRUCT<a: INT NOT NULL, l: ARRAY<STRUCT<b: STRING NOT NULL>>, m: MAP<STRING, INT>>"
KINDS = {
    "constraints": Kind(
        {"st": NESTED},
        {"st": "named_struct('a', 1, 'l', array(named_struct('b', 'x')), 'm', map('k', 1))"},
        {"st.a": "t.st.a + 1", "n": "t.n + 1"},
        {"delta.constraints.low": "n < 100", "delta.constraints.deep": "st.a < 50", **VECTORS},
        (
            ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", {"n": "100"}),
            ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", {"st.a": "50"}),
            ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", {"n": "NULL"}),
            ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", {"st.a": "NULL"}),
            (
                "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
                {"st.l": "array(named_struct('b', CAST(NULL AS STRING)))"},
            ),
        ),
    ),
    "texts": Kind(
        {"c": "CHAR(3)", "v": "VARCHAR(3)"},
        {"c": "'a'", "v": "'é😀x'"},
        {"c": "'bcd'", "v": "concat(left(t.v, 1), 'z')"},
        MAPPED,
        (
            ("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", {"c": "'abcd'"}),
            ("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", {"v": "concat(t.v, '!')"}),
        ),
    ),
    "variants": Kind(
        {"v": "VARIANT", "st": "STRUCT<v: VARIANT>"},
        {"v": "parse_json('{\"a\": 1}')", "st": "named_struct('v', parse_json('[1, null]'))"},
        {"v": "parse_json('2')", "st.v": "t.v"},
        VECTORS,
    ),
    "wider types": Kind(
        {"x": "INT", "d": "DECIMAL(4, 1)"},
        {"x": "id", "d": "CAST(id / 2 AS DECIMAL(4, 1))"},
        {"x": "t.x + 5000000000", "d": "1234567.89"},
        {"delta.enableTypeWidening": "true"},
        altered=lambda table: (
            table.change_column("x", "LONG"),
            table.change_column("d", "DECIMAL(12, 3)"),
        ),
    ),
    "clustered": Kind(
        {"p": "STRING"},
        {"p": "CAST(id % 2 AS STRING)"},
        {"p": "upper(concat(t.p, 'x'))"},
        {
            "delta.enableInCommitTimestamps": "true",
            "delta.enableRowTracking": "true",
            "delta.enableChangeDataFeed": "true",
            **VECTORS,
        },
        declared=lambda builder: builder.clusterBy("p", "id"),
    ),
    "Iceberg V1": Kind(
        {"p": "DATE", "st": "STRUCT<a: INT>"},
        {"p": "DATE '2024-02-29'", "st": "named_struct('a', id)"},
        {"p": "date_add(t.p, 1)", "st.a": "t.st.a * 2"},
        {"delta.enableIcebergCompatV1": "true", "delta.columnMapping.mode": "name"},
        declared=lambda builder: builder.partitionedBy("p"),
    ),
    "Iceberg V2": Kind(
        {"l": "ARRAY<STRUCT<b: STRING>>", "m": "MAP<STRING, ARRAY<INT>>"},
        {"l": "array(named_struct('b', 'x'))", "m": "map('k', array(id))"},
        {"l": "concat(t.l, t.l)", "m": "map('k2', array(t.n))"},
        {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"},
    ),
    "rules": Kind(
        {},
        {},
        {"n": "t.n + 1"},
        {"delta.feature.allowColumnDefaults": "supported", **VECTORS},
        (
            ("DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED", {"k": "1"}),
            ("DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED", {"k": "DEFAULT"}),
            ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", {"twice": "1"}),
        ),
        declared=lambda builder: (
            builder.addColumn("twice", "INT", generatedAlwaysAs="n * 2"),
            builder.addColumn("k", "LONG", generatedAlwaysAs=IdentityGenerator(100, -7)),
        ),
        altered=lambda table: table.add_column("d", "STRING", default="'none'"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(KINDS))
def test_all_kinds(spark: SparkSession, table_path: str, name: str) -> None:
    """Rows that are changed follow the rules of the table, others keep their values."""
    kind = KINDS[name]
    builder = DeltaTable.create(spark).location(table_path)
    for column, data_type in {"id": "INT", "n": "INT", **kind.columns}.items():
        builder.addColumn(column, data_type)
    kind.declared(builder)
    for key, value in kind.properties.items():
        builder.property(key, value)
    table = builder.execute().alias("t")

    def made(ids: str) -> Any:
        texts = [f"{sql} AS `{column}`" for column, sql in kind.values.items()]
        rows = spark.sql(f"SELECT CAST(id AS INT) AS id FROM {ids}")
        return rows.selectExpr("id", "id % 3 AS n", *texts)

    write_delta(made("range(0, 12, 1, 2)"), table_path, mode="append")
    kind.altered(alter_table(spark, table_path))
    before = rows_of(spark, table_path)
    for error, values in kind.wrong:
        with raises(error):
            table.update("id IN (1, 7)", values)
        merge = table.merge(made("range(2)").alias("s"), "t.id = s.id")
        with raises(error):
            merge.whenMatchedUpdate(set=values).execute()
    assert not unreferenced(table_path)
    with settings(spark, HOSTILE["time zone, no ANSI"]):
        assert table.update("id IN (1, 7)", kind.updated).num_updated_rows == 2
        assert table.delete("id = 2").num_deleted_rows == 1
        source = made("range(8, 14)").alias("s")
        done = (
            table.merge(source, F.col("t.id") == F.col("s.id"))
            .whenMatchedDelete("t.id = 9")
            .whenMatchedUpdate("t.id < 11", kind.updated)
            .whenNotMatchedInsert(values={c: f"s.`{c}`" for c in source.columns})
            .execute()
        )
        assert tuple(done.first() or ()) == (5, 2, 1, 2)
    after = rows_of(spark, table_path)
    assert after.keys() == before.keys() - {2, 9} | {12, 13}
    changed = {1, 7, 8, 10}
    for key in after.keys() - changed - {12, 13}:
        assert after[key] == before[key]
    for key in changed:
        kept = {column for column in after[key] if not _is_assigned(column, kind)}
        assert {c: after[key][c] for c in kept} == {c: before[key][c] for c in kept}
        assert after[key] != before[key]
    if name == "rules":
        assert all(row["twice"] == 2 * row["n"] for row in after.values())
        assert len({row["k"] for row in after.values()}) == len(after)
        assert min(after[12]["k"], after[13]["k"]) < min(row["k"] for row in before.values())
        assert after[12]["d"] == "none"
    if name == "clustered":
        adds = load_snapshot(spark, table_path).add_files()
        assert {row["clusteringProvider"] for row in adds.collect()} <= {"liquid", None}
    assert verify(spark, table_path, footers=True).is_clean


def test_inserts_into_append_only_tables(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#append-only-tables: a merge that only inserts is an append. Of an identity column
    that is GENERATED ALWAYS, no values can be given.
    """
    builder = DeltaTable.create(spark).location(table_path).addColumn("id", "INT")
    builder.addColumn("k", "LONG", generatedAlwaysAs=IdentityGenerator())
    table = builder.property("delta.appendOnly", "true").execute().alias("t")
    source = spark.sql("SELECT 1 AS id, 7L AS k").alias("s")
    merge = table.merge(source, "t.id = s.id")
    with raises("DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"):
        merge.whenNotMatchedInsertAll().execute()
    merge.whenNotMatchedInsert(values={"id": "s.id"}).execute()
    for call in (
        merge.whenMatchedDelete().execute,
        merge.whenMatchedUpdate(set={"id": "3"}).execute,
        lambda: table.delete("id = 1"),
        lambda: table.update("id = 1", {"id": "3"}),
    ):
        with raises("DELTA_CANNOT_MODIFY_APPEND_ONLY"):
            call()
    assert [tuple(row) for row in table.toDF().collect()] == [(1, 1)]


def _is_assigned(column: str, kind: Kind) -> bool:
    return column == "twice" or column in {name.partition(".")[0] for name in kind.updated}


def rows_of(spark: SparkSession, path: str) -> dict[int, dict[str, Any]]:
    """The rows by id, as JSON values."""
    found = read_delta(spark, path).select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}))
    rows = [json.loads(row[0]) for row in found.collect()]
    return {row["id"]: row for row in rows}
