"""Tests of the entries in the session catalog that show columns, comment and properties."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparkdelta
from sparkdelta.table.listing import table_names

pytestmark = pytest.mark.classic("uses sync_catalog, which Spark Connect refuses")


@pytest.fixture
def synced(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that describes tables in its catalog."""
    yield sparkdelta.enable(spark, sync_catalog=True)
    sparkdelta.disable(spark)


@contextmanager
def dropped(spark: SparkSession, *names: str) -> Iterator[None]:
    """Drop tables after the block."""
    try:
        yield
    finally:
        for name in names:
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def entry(spark: SparkSession, name: str) -> tuple[list[str], str | None, dict[str, str]]:
    """Return the columns with their comments, the comment and the properties of an entry."""
    catalog = spark._jsparkSession.sessionState().catalog()
    parsed = spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(name)
    table = catalog.getTableMetadata(parsed)
    schema: dict[str, Any] = json.loads(table.schema().json())
    columns = [
        " ".join(filter(None, (each["name"], str(each["type"]), each["metadata"].get("comment"))))
        for each in schema["fields"]
    ]
    comment = table.comment()
    items = table.properties().toSeq()
    pairs = (items.apply(number) for number in range(items.size()))
    return (
        columns,
        str(comment.get()) if comment.isDefined() else None,
        {str(each._1()): str(each._2()) for each in pairs},
    )


def test_an_entry_follows_each_change_of_columns_and_properties(synced: SparkSession) -> None:
    with dropped(synced, "synced"):
        synced.sql("CREATE TABLE synced (id BIGINT COMMENT 'key') USING delta COMMENT 'first'")
        columns, comment, _ = entry(synced, "synced")
        assert (columns, comment) == (["id long key"], "first")
        synced.sql("ALTER TABLE synced ADD COLUMNS (d DATE)")
        synced.sql("ALTER TABLE synced SET TBLPROPERTIES ('team' = 'ours', 'spark.sql.x' = '1')")
        synced.sql("COMMENT ON TABLE synced IS 'second'")
        columns, comment, properties = entry(synced, "synced")
        assert (columns, comment) == (["id long key", "d date"], "second")
        assert properties["team"] == "ours"
        assert properties["delta.minWriterVersion"] == "2"
        synced.sql("ALTER TABLE synced SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        synced.sql("ALTER TABLE synced DROP COLUMN id")
        synced.sql("ALTER TABLE synced UNSET TBLPROPERTIES ('team')")
        columns, _, properties = entry(synced, "synced")
        assert columns == ["d date"]
        assert "team" not in properties
        synced.sql("INSERT INTO synced VALUES (DATE'2024-01-02')")
        assert synced.table("synced").count() == 1


def test_writes_of_dataframes_describe_their_tables(synced: SparkSession, table_path: str) -> None:
    with dropped(synced, "saved", "placed"):
        synced.range(2).write.format("delta").saveAsTable("saved")
        assert entry(synced, "saved")[0] == ["id long"]
        more = synced.range(2).selectExpr("id", "'a' AS text")
        more.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable("saved")
        assert entry(synced, "saved")[0] == ["id long", "text string"]
        more.write.format("delta").save(table_path)
        synced.sql(f"CREATE TABLE placed USING delta LOCATION '{table_path}'")
        assert entry(synced, "placed")[0] == ["id long", "text string"]


def test_an_append_that_first_uses_a_name_describes_its_table(
    synced: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dropped(synced, "used_first"):
        synced.sql("CREATE TABLE used_first (id BIGINT) USING delta")
        monkeypatch.setattr(table_names, "_names", {})  # as in another process
        more = synced.range(2).selectExpr("id", "'a' AS text")
        options = {"mode": "append", "mergeSchema": "true"}
        more.write.format("delta").saveAsTable("used_first", **options)
        assert entry(synced, "used_first")[0] == ["id long", "text string"]


def test_only_tables_with_the_property_are_described_in_other_sessions(
    enabled: SparkSession,
) -> None:
    asked = "TBLPROPERTIES ('sparkdelta.syncCatalog' = 'true')"
    with dropped(enabled, "plain", "asking"):
        enabled.sql("CREATE TABLE plain (id BIGINT) USING delta")
        enabled.sql(f"CREATE TABLE asking (id BIGINT) USING delta {asked}")
        enabled.sql("ALTER TABLE plain ADD COLUMN n INT")
        enabled.sql("ALTER TABLE asking ADD COLUMN n INT")
        assert entry(enabled, "plain")[0] == []
        assert entry(enabled, "asking")[0] == ["id long", "n integer"]


def test_delta_sparks_setting_asks_for_descriptions(enabled: SparkSession) -> None:
    setting = "spark.databricks.delta.catalog.update.enabled"
    enabled.conf.set(setting, "true")
    try:
        with dropped(enabled, "by_setting"):
            enabled.sql("CREATE TABLE by_setting (id BIGINT) USING delta")
            assert entry(enabled, "by_setting")[0] == ["id long"]
    finally:
        enabled.conf.unset(setting)


def test_an_entry_of_another_location_is_left_alone(synced: SparkSession, tmp_path: Path) -> None:
    places = [str(tmp_path / name) for name in ("before", "after")]
    for place in places:
        synced.range(1).write.format("delta").save(place)
    with dropped(synced, "moved"):
        synced.sql(f"CREATE TABLE moved USING delta LOCATION '{places[0]}'")
        synced.sql(f"ALTER TABLE moved SET LOCATION '{places[1]}'")
        synced.sql(f"ALTER TABLE delta.`{places[0]}` ADD COLUMN n INT")
        assert entry(synced, "moved")[0] == ["id long"]
        synced.sql(f"ALTER TABLE delta.`{places[1]}` ADD COLUMN m INT")
        assert entry(synced, "moved")[0] == ["id long", "m integer"]


def test_sessions_made_by_a_session_describe_tables_too(synced: SparkSession) -> None:
    with dropped(synced, "of_child"):
        synced.newSession().sql("CREATE TABLE of_child (id BIGINT) USING delta")
        assert entry(synced, "of_child")[0] == ["id long"]
