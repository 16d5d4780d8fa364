"""`spark.catalog` of enabled sessions, and the SQL statements of the same effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.storagelevel import StorageLevel

from sparkdelta import DeltaTable, load_snapshot
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from tests.sql.test_pyspark_methods import REFUSED
from tests.support.errors import raises
from tests.support.settings import settings

_LATER = hasattr(Catalog, "truncateTable")  # methods of Spark 4.2
later_method = pytest.mark.skipif(not _LATER, reason="a method of later versions of PySpark")


@pytest.fixture
def name(enabled: SparkSession) -> Iterator[str]:
    """The name of a managed table with two rows."""
    enabled.sql("CREATE TABLE cat_t (id INT, v STRING) USING delta TBLPROPERTIES (own = 'x')")
    enabled.sql("INSERT INTO cat_t VALUES (1, 'a'), (2, 'b')")
    yield "cat_t"
    enabled.sql("DROP TABLE IF EXISTS cat_t")
    enabled.catalog.clearCache()


def _is_read_from_cache(rows: DataFrame) -> bool:
    plan = rows._jdf.queryExecution().optimizedPlan().toString()  # type: ignore[operator]
    return "InMemoryRelation" in plan


def _sum(rows: DataFrame) -> int:
    return int(rows.selectExpr("sum(id)").collect()[0][0] or 0)


@pytest.mark.classic("looks into plans")
def test_statements_leave_a_dataframe_of_the_table_in_the_cache(
    enabled: SparkSession, name: str
) -> None:
    rows = enabled.table(name).cache()
    assert rows.count() == 2
    path = enabled.sql(f"DESCRIBE DETAIL {name}").collect()[0]["location"]
    for text in (f"SELECT * FROM {name}", f"SELECT count(*) FROM delta.`{path}`"):
        assert _is_read_from_cache(enabled.sql(text))
        assert rows.is_cached
        assert rows.storageLevel.useMemory, text
    rows.unpersist()


@pytest.mark.classic("looks into plans")
@pytest.mark.full
def test_cached_tables_follow_all_commits(enabled: SparkSession, name: str) -> None:
    catalog, sql = enabled.catalog, enabled.sql
    path = sql(f"DESCRIBE DETAIL {name}").collect()[0]["location"]
    assert not catalog.isCached(name)
    catalog.cacheTable(name)
    catalog.cacheTable(name)
    more = enabled.createDataFrame([(20, "more")], "id INT, v STRING").write.format("delta")
    changes: tuple[tuple[Callable[[], Any], int], ...] = (
        (lambda: None, 3),
        (lambda: sql(f"INSERT INTO {name} VALUES (10, 'c')"), 13),
        (lambda: more.mode("append").save(path), 33),
        (lambda: sql(f"DELETE FROM {name} WHERE id = 1"), 32),
        (lambda: sql(f"ALTER TABLE {name} ADD COLUMNS (w INT)"), 32),
        (lambda: sql(f"RESTORE TABLE {name} TO VERSION AS OF 1"), 3),
        (lambda: catalog.refreshTable(name), 3),
    )
    for change, total in changes:
        change()
        for rows in (
            enabled.table(name),
            enabled.read.table(name).where("id > 0"),
            sql(f"SELECT id FROM {name} AS a"),
            enabled.read.format("delta").load(path),
        ):
            assert _is_read_from_cache(rows)
            assert _sum(rows) == total
        assert catalog.isCached(f"default.{name}")
        assert catalog.isCached(f"delta.`{path}`")
    assert _sum(sql(f"SELECT * FROM {name} VERSION AS OF 2")) == 13
    assert enabled.table(name).join(enabled.table(name), "id").count() == 2
    cached = enabled.table(name)
    assert cached.join(enabled.table(name), cached["id"] < 2).count() == 2, "not the same columns"
    catalog.uncacheTable(name)
    catalog.uncacheTable(name)
    assert not catalog.isCached(name)
    assert not _is_read_from_cache(enabled.table(name))


@pytest.mark.classic("looks into plans")
def test_sql_caches_tables(enabled: SparkSession, name: str) -> None:
    sql, catalog = enabled.sql, enabled.catalog
    assert sql(f"CACHE TABLE {name}").columns == []
    assert catalog.isCached(name)
    assert _is_read_from_cache(sql(f"SELECT * FROM {name}"))
    sql("CLEAR CACHE")
    assert not catalog.isCached(name)
    assert not _is_read_from_cache(enabled.table(name))
    sql(f"CACHE LAZY TABLE {name} OPTIONS ('storageLevel' 'DISK_ONLY')")
    assert catalog.isCached(name)
    sql(f"ALTER TABLE {name} RENAME TO cat_new")
    try:
        assert catalog.isCached("cat_new")
        assert _sum(enabled.table("cat_new")) == 3
        for text, error in (
            ("OPTIONS ('storageLevel' = 'PAPER')", InvalidArgumentError),
            ("OPTIONS (level = 'DISK_ONLY')", "DELTA_UNKNOWN_ARGUMENT"),
        ):
            with raises(error):
                sql(f"CACHE TABLE cat_new {text}")
        sql("UNCACHE TABLE IF EXISTS cat_new")
        assert not catalog.isCached("cat_new")
        disk = "OPTIONS ('storageLevel' = 'DISK_ONLY')"
        sql(f"CACHE TABLE cat_new {disk} AS SELECT id FROM cat_new WHERE id > 1")
        try:
            assert _sum(enabled.table("cat_new")) == 2, "a view hides the table"
            assert _is_read_from_cache(enabled.table("cat_new"))
            assert _sum(enabled.table("default.cat_new")) == 3
        finally:
            catalog.dropTempView("cat_new")
    finally:
        sql(f"ALTER TABLE cat_new RENAME TO {name}")


def test_a_table_that_is_created_anew_is_not_read_from_the_cache(
    enabled: SparkSession, table_path: str
) -> None:
    name = f"delta.`{table_path}`"
    try:
        for rows in (2, 3):
            enabled.range(rows).write.format("delta").save(f"{table_path}{rows}")
        Path(f"{table_path}2").rename(table_path)
        enabled.catalog.cacheTable(name)
        assert enabled.table(name).count() == 2
        Path(table_path).rename(f"{table_path} old")
        Path(f"{table_path}3").rename(table_path)
        assert enabled.table(name).count() == 3
    finally:
        enabled.catalog.clearCache()


def test_storage_levels(enabled: SparkSession, name: str) -> None:
    from sparkdelta.sql.statements.cached_tables import storage_level, uncache_table

    path = enabled.sql(f"DESCRIBE DETAIL {name}").collect()[0]["location"]
    enabled.catalog.cacheTable(name, StorageLevel.DISK_ONLY)
    enabled.sql(f"INSERT INTO {name} VALUES (3, 'c')")
    assert enabled.table(name).count() == 3
    assert uncache_table(enabled, path) == StorageLevel.DISK_ONLY, "the newer version's, too"
    for text, level in (
        ("MEMORY_AND_DISK", StorageLevel.MEMORY_AND_DISK_DESER),
        ("memory_only_ser_2", StorageLevel.MEMORY_ONLY_2),
        ("DISK_ONLY_3", StorageLevel.DISK_ONLY_3),
        ("OFF_HEAP", StorageLevel.OFF_HEAP),
    ):
        assert storage_level({"STORAGELEVEL": text}) == level


@later_method
def test_partitions_properties_and_truncation(enabled: SparkSession, name: str) -> None:
    catalog, sql = enabled.catalog, enabled.sql
    sql("CREATE TABLE cat_p (id INT, part STRING, d DATE) USING delta PARTITIONED BY (part, d)")
    try:
        sql("INSERT INTO cat_p VALUES (1, 'b/c', DATE'2024-01-01'), (2, NULL, DATE'2024-01-02')")
        assert [each.partition for each in catalog.listPartitions("cat_p")] == [
            "part=__HIVE_DEFAULT_PARTITION__/d=2024-01-02",
            "part=b%2Fc/d=2024-01-01",
        ]
        with raises("DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE"):
            catalog.listPartitions(name)
        shown = {row["key"]: row["value"] for row in sql(f"SHOW TBLPROPERTIES {name}").collect()}
        assert catalog.getTableProperties(f"spark_catalog.default.{name}") == shown
        assert shown["own"] == "x"
        catalog.truncateTable("cat_p")
        assert enabled.table("cat_p").count() == 0
        (newest,) = DeltaTable.forName(enabled, "cat_p").history(1).collect()
        assert (newest["version"], newest["operation"]) == (2, "TRUNCATE")
        catalog.dropTable("cat_p")
        assert not catalog.tableExists("cat_p")
        catalog.dropTable("cat_p", ifExists=True)
    finally:
        sql("DROP TABLE IF EXISTS cat_p")


def test_an_external_table_is_created_by_its_old_method(
    enabled: SparkSession, table_path: str
) -> None:
    enabled.range(3).write.format("delta").save(table_path)
    try:
        with pytest.warns() as warned:  # also by PySpark 4.0 itself
            rows = enabled.catalog.createExternalTable("cat_e", path=table_path, source="delta")
        assert any("createTable" in str(warning.message) for warning in warned)
        assert rows.count() == enabled.table("cat_e").count() == 3
    finally:
        enabled.sql("DROP TABLE IF EXISTS cat_e")


@pytest.mark.full
def test_catalog_and_descriptions_show_kind_owner_and_comment(
    enabled: SparkSession, table_path: str
) -> None:
    sql, catalog = enabled.sql, enabled.catalog
    sql("CREATE DATABASE cat_db")
    try:
        sql(
            """CREATE TABLE cat_db.kept (id INT) USING delta CLUSTER BY (id) COMMENT "it's kept\""""
        )
        sql(f"CREATE TABLE cat_db.placed USING delta LOCATION '{table_path}' AS SELECT 1 AS id")
        sql("CREATE TABLE cat_db.other (id INT) USING parquet")
        sql("COMMENT ON TABLE cat_db.placed IS 'later'")
        enabled.createDataFrame([(1,)], "id INT")  # makes it the active session
        with settings(enabled, {"spark.sql.codegen.factoryMode": "FALLBACK"}):  # Spark needs it
            tables = {each.name: each for each in catalog.listTables("cat_db")}
            matching = [each.name for each in catalog.listTables("cat_db", "k*")]
        assert [tables[name].tableType for name in ("kept", "placed", "other")] == [
            "MANAGED",
            "EXTERNAL",
            "MANAGED",
        ]
        assert (tables["kept"].description, tables["placed"].description) == ("it's kept", "later")
        assert tables["kept"] == catalog.getTable("cat_db.kept")
        assert matching == ["kept"]
        shown = [tuple(row) for row in sql("DESCRIBE EXTENDED cat_db.kept").collect()]
        start = shown.index(("# Detailed Table Information", "", ""))
        details = {key: value for key, value, _ in shown[start + 1 :]}
        properties, location = details.pop("Table Properties"), details.pop("Location")
        owner = details.pop("Owner", None)
        assert list(details.items()) == [
            ("Catalog", "spark_catalog"),
            ("Namespace", "cat_db"),
            ("Database", "cat_db"),
            ("Table", "kept"),
            ("Type", "MANAGED"),
            ("Comment", "it's kept"),
            ("Provider", "delta"),
            ("Is_managed_location", "true"),
        ]
        assert location.endswith("/cat_db.db/kept")
        assert properties.startswith('[clusteringColumns=[["id"]],')
        placed = dict(
            sql("DESCRIBE EXTENDED cat_db.placed").select("col_name", "data_type").collect()
        )
        assert (placed["Type"], placed.get("Owner")) == ("EXTERNAL", owner)
        assert "Is_managed_location" not in placed
        by_path = dict(
            sql(f"DESCRIBE EXTENDED delta.`{table_path}`").select("col_name", "data_type").collect()
        )
        assert (by_path["Namespace"], by_path["Table"], by_path["Type"]) == (
            "delta",
            table_path,
            "MANAGED",
        )
        assert "Owner" not in by_path
        texts = {
            row["tableName"]: row["information"].splitlines()
            for row in sql("SHOW TABLE EXTENDED IN cat_db LIKE 'kept|placed'").collect()
        }
        assert {"Provider: delta", "Type: MANAGED", "Comment: it's kept"} <= {*texts["kept"]}
        owners = [line for line in texts["kept"] if line.startswith("Owner: ")]
        assert owners == ([f"Owner: {owner}"] if owner else [])
        assert {"Provider: delta", "Type: EXTERNAL"} <= {*texts["placed"]}
    finally:
        sql("DROP DATABASE cat_db CASCADE")


@pytest.mark.full
def test_append_to_a_delta_table_by_name_needs_its_format(enabled: SparkSession, name: str) -> None:
    rows = enabled.createDataFrame([(3, "c")], "id INT, v STRING").write.mode("append")
    for other in (None, "parquet"):
        with pytest.raises(AnalysisException):
            rows.saveAsTable(f"default.{name}", format=other)
    rows.saveAsTable(name, format="delta")
    assert _sum(enabled.table(name)) == 6
    stream = enabled.readStream.table(name).writeStream.option("checkpointLocation", "/unused")
    with pytest.raises(AnalysisException):
        stream.toTable(name)
    with pytest.raises(AnalysisException):
        rows.mode("error").saveAsTable(name)
    [newest] = enabled.sql(f"DESCRIBE HISTORY {name} LIMIT 1").collect()
    assert (newest["version"], newest["operation"]) == (2, "WRITE")


def test_details_name_a_table_that_was_found_by_its_name(enabled: SparkSession, name: str) -> None:
    def shown(rows: DataFrame) -> Any:
        return rows.collect()[0]["name"]

    table = DeltaTable.forName(enabled, f"default.{name.upper()}")
    location = table.detail().collect()[0]["location"]
    assert (
        shown(table.detail()) == shown(table.alias("a").detail()) == f"spark_catalog.default.{name}"
    )
    assert shown(enabled.sql(f"DESCRIBE DETAIL {name}")) == f"spark_catalog.default.{name}"
    assert shown(enabled.sql(f"DESCRIBE DETAIL delta.`{location}`")) is None
    assert shown(DeltaTable.forPath(enabled, location).detail()) is None


def test_refused_methods_raise_delta_errors(enabled: SparkSession, name: str) -> None:
    """Nothing that PySpark's method does on its way to a Delta table is Spark's own error."""
    owners = {
        "Catalog": enabled.catalog,
        "DataFrameReader": enabled.read.option("startingVersion", 0),
        "DataStreamReader": enabled.readStream,
    }
    there = [each.split(".") for each in REFUSED]
    v2 = "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
    partitions = "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED"
    conditions = {
        "getCreateTableString": "DELTA_OPERATION_NOT_ALLOWED",
        "changes": "DELTA_STATEMENT_NOT_SUPPORTED",
    }
    for kind, method in there:
        if hasattr(owners[kind], method):
            with raises(conditions.get(method, v2)):
                getattr(owners[kind], method)(name)
    for text, condition in {
        f"SHOW CREATE TABLE {name}": "DELTA_OPERATION_NOT_ALLOWED",
        f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS": v2,
        f"MSCK REPAIR TABLE {name}": v2,
        f"ALTER TABLE {name} RECOVER PARTITIONS": v2,
        f"DESCRIBE EXTENDED {name} AS JSON": v2,
        f"ALTER TABLE {name} DROP IF EXISTS PARTITION (v = 'a')": partitions,
        f"SHOW TABLE EXTENDED LIKE '{name}' PARTITION (v = 'a')": partitions,
    }.items():
        with raises(condition) as raised:
            enabled.sql(text)
        assert isinstance(raised.value, AnalysisException)
    path = enabled.sql(f"DESCRIBE DETAIL {name}").collect()[0]["location"]
    assert load_snapshot(enabled, path).version == 1
    assert enabled.sql(f"SHOW TABLE EXTENDED LIKE '{name}'").count() == 1


def test_other_tables_and_views_are_sparks(
    enabled: SparkSession, name: str, tmp_path: Path
) -> None:
    catalog = enabled.catalog
    enabled.range(3).createOrReplaceTempView(name)
    enabled.sql(
        f"CREATE TABLE cat_other (id INT, p INT) USING parquet PARTITIONED BY (p)"
        f" LOCATION '{tmp_path}/other'"
    )
    try:
        enabled.sql("INSERT INTO cat_other VALUES (1, 2)")
        catalog.recoverPartitions("cat_other")
        for each, rows in ((name, 3), ("cat_other", 1)):
            assert not catalog.isCached(each)
            catalog.cacheTable(each)
            assert catalog.isCached(each)
            assert enabled.table(each).count() == rows
            catalog.uncacheTable(each)
            assert not catalog.isCached(each)
        assert not catalog.isCached(f"default.{name}"), "the view has the name alone"
        with pytest.raises(AnalysisException):
            catalog.cacheTable("cat_missing")
        if _LATER:
            assert [each.partition for each in catalog.listPartitions("cat_other")] == ["p=2"]
            assert "parquet" in catalog.getCreateTableString("cat_other")
            catalog.analyzeTable("cat_other", noScan=True)
            catalog.dropTable("cat_other")
    finally:
        catalog.dropTempView(name)
        enabled.sql("DROP TABLE IF EXISTS cat_other")


def test_wrong_names_are_explained_by_spark(enabled: SparkSession, name: str) -> None:
    rows = enabled.table(name)
    for wrong in ("cat t", "cat-t", "cat_t;", "/a/path", "a..b"):
        for call in (
            lambda wrong=wrong: DeltaTable.forName(enabled, wrong),
            lambda wrong=wrong: DeltaTable.create(enabled).tableName(wrong),
            lambda wrong=wrong: rows.write.format("delta").saveAsTable(wrong),
            lambda wrong=wrong: rows.write.format("delta").insertInto(wrong),
            lambda wrong=wrong: enabled.table(wrong).collect(),
        ):
            with pytest.raises(ParseException):
                call()
    assert DeltaTable.forName(enabled, "`cat_t`").toDF().count() == 2


def _condition_of(call: Callable[[], Any]) -> str | None:
    with pytest.raises(AnalysisException) as raised:
        call()
    return raised.value.getCondition()


def test_mistakes_have_the_conditions_of_delta_spark(enabled: SparkSession, name: str) -> None:
    for text, condition in {
        f"INSERT INTO {name} VALUES (array(1), 'a')": "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
        f"INSERT INTO {name} (id, v) SELECT 1": (
            "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS"
        ),
        f"INSERT INTO {name} PARTITION (id = 1) VALUES ('x')": "NON_PARTITION_COLUMN",
        f"LOAD DATA INPATH '/x' INTO TABLE {name}": "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
        f"ALTER TABLE {name} DROP COLUMN nothing": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        f"ALTER TABLE {name} ADD CONSTRAINT pk PRIMARY KEY (id)": (
            "UNSUPPORTED_FEATURE.TABLE_OPERATION"
        ),
        f"MERGE INTO cat_missing t USING {name} s ON t.id = s.id WHEN MATCHED THEN DELETE": (
            "TABLE_OR_VIEW_NOT_FOUND"
        ),
        "CREATE TABLE cat_new (id INT DEFAULT 'x') USING delta": "INVALID_DEFAULT_VALUE.DATA_TYPE",
        "CREATE TABLE cat_new (id INT, g INT GENERATED ALWAYS AS (g + 1)) USING delta": (
            "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"
        ),
    }.items():
        assert _condition_of(lambda text=text: enabled.sql(text).collect()) == condition, text


def test_names_in_other_places_are_not_found(enabled: SparkSession, name: str) -> None:
    relative = "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"
    for text, condition in {
        "SELECT * FROM delta.`a/b`": relative,
        "DELETE FROM delta.`a/b`": relative,
        f"MERGE INTO {name} t USING delta.`a` s ON t.id = s.id WHEN MATCHED THEN DELETE": relative,
        "REPLACE TABLE no_database.t (id INT) USING delta": "TABLE_OR_VIEW_NOT_FOUND",
        "ALTER TABLE cat_missing ALTER COLUMN id SYNC IDENTITY": "TABLE_OR_VIEW_NOT_FOUND",
    }.items():
        assert _condition_of(lambda text=text: enabled.sql(text).collect()) == condition, text
    writer = enabled.table(name).write.format("delta")
    assert _condition_of(lambda: enabled.table("delta.`a/b`")) == relative
    missing = _condition_of(lambda: writer.insertInto("cat_missing"))
    assert missing == "TABLE_OR_VIEW_NOT_FOUND"
    with pytest.raises(DeltaError) as raised:
        DeltaTable.forName(enabled, "no_catalog.default.t")
    assert raised.value.getCondition() == "CATALOG_NOT_FOUND"


def test_rows_are_inserted_into_a_table_of_another_format(enabled: SparkSession, name: str) -> None:
    """Spark ignores the format of the writer."""
    enabled.sql("CREATE TABLE cat_other (id INT, v STRING) USING parquet")
    try:
        writer = enabled.table(name).write.format("delta").mode("append")
        writer.insertInto("cat_other")
        assert enabled.table("cat_other").count() == 2
        writer.insertInto(name)
        assert enabled.table(name).count() == 4
        with pytest.raises(AnalysisException) as raised:
            enabled.sql("ALTER TABLE cat_other CLUSTER BY (id)")
        assert raised.value.getCondition() == "DELTA_ONLY_OPERATION"
    finally:
        enabled.sql("DROP TABLE IF EXISTS cat_other")
