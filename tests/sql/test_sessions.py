"""`format("delta")` in sessions that asked for it, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, readwriter
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta import DeltaError, DeltaTable, load_snapshot, write_delta
from sparkdelta.base.jvm import jvm_builders
from sparkdelta.base.spark import enabled_sessions
from sparkdelta.base.spark.spark_errors import SPARK_ERRORS
from sparkdelta.exceptions import InvalidArgumentError, TableNotFoundError
from tests.support.errors import raises


def _ids(rows: DataFrame) -> list[int]:
    return sorted(row["id"] for row in rows.select("id").collect())


@pytest.mark.both_kinds
def test_the_ways_to_write_and_read(enabled: SparkSession, table_path: str) -> None:
    three, two = enabled.range(3), enabled.range(10, 12)
    three.write.format("delta").save(table_path)
    with raises("DELTA_TABLE_ALREADY_EXISTS"):
        three.write.format("Delta").save(table_path)
    three.write.save(table_path, format="delta", mode="ignore")
    two.write.mode("append").option("userMetadata", "x").format("delta").option(
        "path", table_path
    ).save()
    (
        two.withColumn("part", F.lit("a"))
        .write.format("delta")
        .mode("overwrite")
        .partitionBy("part")
        .option("OVERWRITESCHEMA", "True")
        .save(table_path)
    )
    read = enabled.read.format("delta")
    assert _ids(read.load(table_path)) == [10, 11]
    assert _ids(enabled.read.option("versionAsOf", 0).format("delta").load(table_path)) == [0, 1, 2]
    assert _ids(enabled.read.load(f"{table_path}@v1", format="delta")) == [0, 1, 2, 10, 11]
    assert load_snapshot(enabled, table_path).metadata.partition_columns == ("part",)
    history = DeltaTable.forPath(enabled, table_path).history().select("userMetadata").collect()
    assert [row[0] for row in history] == [None, "x", None]


def test_times_are_those_of_the_session(enabled: SparkSession, table_path: str) -> None:
    enabled.range(1).write.format("delta").save(table_path)
    (commit,) = DeltaTable.forPath(enabled, table_path).history().collect()
    enabled.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        shown = enabled.sql("SELECT 1").select(F.lit(commit["timestamp"]).cast("string"))
        text = shown.collect()[0][0]
        read = enabled.read.format("delta").option("timestampAsOf", text)
        assert _ids(read.load(table_path)) == [0]
        digits = "".join(filter(str.isdigit, text)).ljust(17, "0")[:17]
        assert _ids(enabled.read.format("delta").load(f"{table_path}@{digits}")) == [0]
    finally:
        enabled.conf.set("spark.sql.session.timeZone", "UTC")
    with raises("DELTA_TIMESTAMP_INVALID"):
        enabled.read.format("delta").option("timestampAsOf", "yesterdays").load(table_path)


def test_options_of_writes(enabled: SparkSession, table_path: str) -> None:
    def write(rows: DataFrame, mode: str = "append", **options: Any) -> None:
        rows.write.format("delta").mode(mode).options(**options).save(table_path)

    write(enabled.range(4), **{"delta.enableChangeDataFeed": "true"})
    write(enabled.range(4, 6), txnAppId="a", txnVersion=1, compression="gzip", optimizeWrite=False)
    write(enabled.range(4, 6), txnAppId="a", txnVersion=1, **{"delta.enableChangeDataFeed": True})
    assert _ids(enabled.read.format("delta").load(table_path)) == [0, 1, 2, 3, 4, 5]
    write(enabled.range(1).withColumn("more", F.lit(1)), mergeSchema="true", maxRecordsPerFile=1)
    write(enabled.range(1, 2), dataChange="false")
    snapshot = load_snapshot(enabled, table_path)
    assert (snapshot.version, snapshot.schema.names) == (3, ["id", "more"])
    changes = enabled.read.format("delta").option("readChangeFeed", "true")
    assert _ids(changes.option("startingVersion", 1).load(table_path)) == [0, 4, 5]
    with pytest.raises(InvalidArgumentError):
        write(enabled.range(1), mergeSchema="yes")
    with pytest.raises(InvalidArgumentError):
        enabled.read.format("delta").schema("id INT").load(table_path)
    with pytest.raises(InvalidArgumentError):
        enabled.range(1).write.format("delta").bucketBy(2, "id").save(table_path)


def test_unknown_options_are_ignored_and_logged(
    enabled: SparkSession, table_path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "sparkdelta")
    options = {"header": "true", "inferSchema": "true"}
    enabled.range(3).write.format("delta").options(**options).save(table_path)
    assert enabled.read.format("delta").options(**options).load(table_path).count() == 3
    stream = enabled.readStream.format("delta").options(**options).load(table_path)
    assert stream.schema.names == ["id"]
    assert [record.levelname for record in caplog.records].count("WARNING") == 0
    ignored = [text for text in caplog.messages if "header, inferSchema" in text]
    assert len(ignored) == 3
    read = enabled.read.format("delta").option("versionsAsOf", "0")
    assert read.option("startingVersion", "7").load(table_path).count() == 3
    (warning,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "versionsAsOf" in warning.getMessage()
    assert "Did you mean versionAsOf?" in warning.getMessage()
    changes = enabled.read.format("delta").option("readChangeFeed", "true")
    with pytest.raises(InvalidArgumentError):
        changes.option("startingVersion", "0").option("versionAsOf", "0").load(table_path)


def test_options_of_overwrites_that_are_set_for_all_writes(
    enabled: SparkSession, table_path: str
) -> None:
    options = {
        "partitionOverwriteMode": "dynamic",
        "overwriteSchema": "true",
        "replaceWhere": "part = 2",
    }
    name, rows = f"delta.`{table_path}`", enabled.sql("SELECT 1 AS id, 1 AS part")
    for mode in ("error", "append", "ignore"):
        rows.write.format("delta").mode(mode).options(**options).partitionBy("part").save(
            table_path
        )
    rows.writeTo(name).options(**options).append()
    assert _ids(enabled.read.format("delta").load(table_path)) == [1, 1, 1]
    first = rows.write.format("delta").mode("overwrite").option("replaceWhere", "part = 1")
    first.save(table_path + "2")
    assert _ids(enabled.read.format("delta").load(table_path + "2")) == [1]
    with pytest.raises(InvalidArgumentError):
        rows.write.format("delta").mode("append").option("partitionOverwriteMode", "all").save(
            table_path
        )
    other = enabled.sql("SELECT 2 AS id, 2 AS part").writeTo(name).using("delta")
    other.partitionedBy(F.col("part")).option("partitionOverwriteMode", "dynamic").createOrReplace()
    assert _ids(enabled.read.format("delta").load(table_path)) == [2], "a table is replaced whole"


def test_the_first_rows_of_a_table_need_not_match_replace_where(
    enabled: SparkSession, tmp_path: Path
) -> None:
    """As with delta-spark, which ignores a condition on columns that are not there, too."""
    rows = enabled.sql("SELECT 1 AS id UNION ALL SELECT 2")
    for number, where in enumerate(("id = 1", "nothing = 1")):
        path = str(tmp_path / str(number))
        writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", where)
        writer.save(path)
        assert _ids(enabled.read.format("delta").load(path)) == [1, 2]
        with raises("DELTA_REPLACE_WHERE_MISMATCH" if not number else "DELTA_COLUMN_NOT_FOUND"):
            writer.save(path)
    with raises("DELTA_INVALID_CONDITION"):
        writer.option("replaceWhere", "id =").save(str(tmp_path / "2"))
    with raises("DELTA_REPLACE_WHERE_MISMATCH"):
        write_delta(rows, str(tmp_path / "3"), mode="overwrite", replace_where="id = 1")


def test_replace_where_counts_more_than_a_new_schema(
    enabled: SparkSession, table_path: str
) -> None:
    """delta-spark 4.4.0 stores the same rows, and refuses the same columns."""
    name, one = f"delta.`{table_path}`", enabled.sql("SELECT 1 AS id, 'b' AS v")
    options = {"replaceWhere": "id = 1", "overwriteSchema": "true"}
    enabled.sql("SELECT 1 AS id, 'a' AS v UNION ALL SELECT 2, 'a'").write.format("delta").save(
        table_path
    )

    def rows() -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in enabled.table(name).collect())

    one.write.format("delta").mode("overwrite").options(**options).save(table_path)
    assert rows() == [(1, "b"), (2, "a")]
    with raises("DELTA_METADATA_MISMATCH"):
        one.withColumn("w", F.lit(1)).write.format("delta").mode("overwrite").options(
            **options
        ).save(table_path)
    replacing = enabled.sql("SELECT 1 AS id, 'c' AS v").writeTo(name).using("delta")
    replacing.option("replaceWhere", "id = 1").createOrReplace()
    assert rows() == [(1, "c"), (2, "a")]
    with raises("DELTA_REPLACE_WHERE_MISMATCH"):
        replacing.option("replaceWhere", "id = 2").createOrReplace()
    new = enabled.range(2).writeTo(f"delta.`{table_path}2`").using("delta")
    new.option("replaceWhere", "id = 1").createOrReplace()
    assert _ids(enabled.read.format("delta").load(table_path + "2")) == [0, 1]


@pytest.mark.full
def test_rows_take_the_place_of_those_that_they_match(
    enabled: SparkSession, table_path: str
) -> None:
    """Nulls equal nothing in `replaceUsing`; the examples are those of delta-spark's guide."""
    schema = "name STRING, country STRING"
    students = [("Dylan", "US"), ("Doug", "UK"), ("Julia", "IT"), ("Adam", None)]
    new = enabled.createDataFrame([("Peter", "FR"), ("Jennie", "UK"), ("Eva", None)], schema)
    writer = new.write.format("delta").mode("overwrite").option("replaceusing", "country")
    enabled.createDataFrame(students, schema).coalesce(1).write.format("delta").mode(
        "overwrite"
    ).option("replaceUsing", "country").save(table_path)
    writer.save(table_path)
    names = {"Dylan", "Julia", "Adam", "Jennie", "Peter", "Eva"}
    read = enabled.read.format("delta")
    assert {row["name"] for row in read.load(table_path).collect()} == names
    (
        new.alias("s")
        .select("name", F.lit("XX").alias("country"))
        .alias("s")
        .write.format("delta")
        .mode("overwrite")
        .option("targetAlias", "t")
        .option("replaceOn", "t.name = s.name AND t.country <=> NULL")
        .save(table_path)
    )
    found = [tuple(row) for row in read.load(table_path).where("country = 'XX'").collect()]
    assert sorted(found) == [("Eva", "XX"), ("Jennie", "XX"), ("Peter", "XX")]
    assert read.load(table_path).count() == 8
    for refused in (
        writer.option("compression", "gzip"),
        new.write.format("delta").mode("append").option("replaceUsing", "country"),
        new.write.format("delta").mode("overwrite").options(replaceUsing="name", replaceOn="true"),
    ):
        with pytest.raises(InvalidArgumentError):
            refused.save(table_path)
    assert load_snapshot(enabled, table_path).version == 2


@pytest.mark.every_case
@pytest.mark.parametrize(
    "options", [{"replaceUsing": "id"}, {"replaceOn": "t.id = s.id", "targetAlias": "t"}]
)
@pytest.mark.full
def test_rows_that_replace_are_matched_as_appended_ones_are(
    enabled: SparkSession, table_path: str, options: dict[str, str]
) -> None:
    """No column of them is left out, and the table fills those that they lack."""

    def write(query: str) -> None:
        rows = enabled.sql(query).alias("s")
        rows.write.format("delta").mode("overwrite").options(**options).save(table_path)

    enabled.sql(
        f"""CREATE TABLE delta.`{table_path}` (id INT, `a.s` STRING, d INT DEFAULT 7,
        twice INT GENERATED ALWAYS AS (id * 2), n LONG GENERATED ALWAYS AS IDENTITY)
        USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"""
    )
    write("SELECT 1 AS id, 'a' AS `a.s`")
    write("SELECT 2L AS ID, 3 AS d")
    write("SELECT 1 AS id, NULL AS d")
    found = enabled.read.format("delta").load(table_path).orderBy("id").drop("n").collect()
    assert [tuple(row) for row in found] == [(1, None, None, 2), (2, None, 3, 4)]
    for query, error in (
        ("SELECT 1 AS id, 'x' AS more", "DELTA_METADATA_MISMATCH"),
        ("SELECT '1' AS id", "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("SELECT 1 AS id, 1L AS n", "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"),
    ):
        with raises(error):
            write(query)
    assert load_snapshot(enabled, table_path).version == 3


def test_tables_that_are_created_at_a_path(enabled: SparkSession, tmp_path: Path) -> None:
    """A name that is dropped leaves them, as it does one of `saveAsTable`."""
    paths = {name: str(tmp_path / name) for name in ("api_one", "api_two")}
    rows = enabled.range(3).writeTo("api_one").using("delta")
    rows.tableProperty("location", paths["api_one"]).tableProperty("comment", "three").create()
    stream = enabled.readStream.format("delta").load(paths["api_one"]).writeStream.format("delta")
    stream = stream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "c"))
    try:
        stream.option("Path", paths["api_two"]).toTable("api_two").awaitTermination()
        metadata = load_snapshot(enabled, paths["api_one"]).metadata
        assert (metadata.description, metadata.configuration) == ("three", {})
        for name in paths:
            assert enabled.catalog.getTable(name).tableType == "EXTERNAL"
        enabled.range(1).writeTo("api_one").replace()
        with pytest.raises(InvalidArgumentError):
            rows.tableProperty("location", paths["api_two"]).createOrReplace()
        with pytest.raises(InvalidArgumentError):
            # Spelled as before: Spark Connect keeps both spellings of an option, in no order.
            stream.option("Path", paths["api_one"]).toTable("api_two")
    finally:
        for name in paths:
            enabled.sql(f"DROP TABLE IF EXISTS {name}")
    assert [_ids(enabled.read.format("delta").load(path)) for path in paths.values()] == [
        [0],
        [0, 1, 2],
    ]


def test_tables_of_the_catalog(enabled: SparkSession, table_path: str) -> None:
    create, schema = enabled.catalog.createTable, enabled.range(0).schema
    try:
        made = create(
            "api_made",
            source="delta",
            schema=schema,
            description="d",
            **{"delta.appendOnly": "true"},
        )
        assert (made.count(), enabled.catalog.getTable("api_made").description) == (0, "d")
        enabled.range(3).write.format("delta").save(table_path)
        assert create("api_placed", table_path, "delta").count() == 3
        assert enabled.catalog.getTable("api_placed").tableType == "EXTERNAL"
        for name, options in (
            ("api_made", {"schema": schema}),
            ("api_placed", {"path": table_path}),
            ("api_x", {"a": "b"}),
        ):
            with pytest.raises(DeltaError):
                create(name, source="delta", **options)
        with pytest.raises(DeltaError):
            create("api_x", table_path + " x", "delta")
    finally:
        for name in ("api_made", "api_placed"):
            enabled.sql(f"DROP TABLE IF EXISTS {name}")


def test_merge_into(enabled: SparkSession, table_path: str) -> None:
    enabled.range(4).withColumn("s", F.lit("old")).write.format("delta").save(table_path)
    enabled.sql(f"CREATE TABLE api_merged USING delta LOCATION '{table_path}'")
    try:
        new = enabled.createDataFrame(
            [(2, "new", 1), (9, "nine", 2)], "id LONG, s STRING, more INT"
        )
        merge = new.alias("n").mergeInto("api_merged", F.expr("api_merged.id = n.id"))
        merge.whenMatched(F.expr("n.s = 'new'")).update({"s": F.col("n.s")})
        merge.whenNotMatched().insertAll().whenNotMatchedBySource(
            F.expr("api_merged.id = 0")
        ).delete()
        merge.whenNotMatchedBySource().update({"s": F.lit("kept")}).withSchemaEvolution().merge()
        found = {tuple(row) for row in enabled.table("api_merged").collect()}
        assert found == {
            (1, "kept", None), (2, "new", None), (3, "kept", None), (9, "nine", 2),
        }  # fmt: skip
        path = f"delta.`{table_path}`"
        new.alias("n").mergeInto(path, F.expr("n.id = 2")).whenMatched().delete().merge()
        assert enabled.table(path).count() == 0
        with pytest.raises(InvalidArgumentError):
            merge.whenNotMatchedBySource().updateAll()
    finally:
        enabled.sql("DROP TABLE api_merged")


def test_clustered_tables(enabled: SparkSession, table_path: str) -> None:
    rows = enabled.range(2)
    rows.write.format("delta").clusterBy("id").save(table_path)
    rows.write.format("delta").mode("append").clusterBy("id").save(table_path)
    (detail,) = DeltaTable.forPath(enabled, table_path).detail().collect()
    assert (detail["clusteringColumns"], detail["numFiles"] > 1) == (["id"], True)
    more = rows.withColumn("more", F.lit(1)).write.format("delta").mode("append")
    with pytest.raises(sparkdelta.DeltaError):
        more.option("mergeSchema", "true").clusterBy("more").save(table_path)


def test_write_to(enabled: SparkSession, table_path: str) -> None:
    name = f"delta.`{table_path}`"
    rows = enabled.range(4).withColumn("part", F.col("id") % 2)
    with pytest.raises(TableNotFoundError):
        rows.writeTo(name).append()
    with raises("DELTA_CANNOT_REPLACE_MISSING_TABLE"):
        rows.writeTo(name).using("delta").replace()
    rows.writeTo(name).using("delta").partitionedBy(F.col("part")).tableProperty("a", "b").create()
    snapshot = load_snapshot(enabled, table_path)
    assert snapshot.metadata.partition_columns == ("part",)
    assert snapshot.properties["a"] == "b"
    rows.writeTo(name).append()
    rows.where("part = 1").writeTo(name).overwrite(F.col("part") == 1)
    rows.where("id = 2").writeTo(name).overwritePartitions()
    assert _ids(enabled.read.format("delta").load(table_path)) == [1, 2, 3]
    enabled.range(7, 8).writeTo(name).using("delta").clusterBy("id").createOrReplace()
    snapshot = load_snapshot(enabled, table_path)
    assert snapshot.metadata.partition_columns == ()
    assert "a" not in snapshot.properties
    assert _ids(enabled.read.format("delta").load(table_path)) == [7]


@pytest.mark.classic("looks at PySpark's reader of classic sessions")
def test_everything_else_is_pysparks(spark: SparkSession, tmp_path: Path) -> None:
    path, load = str(tmp_path / "parquet"), readwriter.DataFrameReader.load
    sparkdelta.enable(sparkdelta.enable(spark))
    try:
        assert readwriter.DataFrameReader.load is not load
        assert readwriter.DataFrameReader.load.__doc__ == load.__doc__
        spark.range(3).write.save(path, format="parquet")
        assert _ids(spark.read.load(path)) == [0, 1, 2]
        assert _ids(spark.read.format("parquet").load([path])) == [0, 1, 2]
    finally:
        sparkdelta.disable(spark)
    assert readwriter.DataFrameReader.load is load
    with pytest.raises(SPARK_ERRORS):
        spark.read.format("delta").load(path)


@pytest.mark.classic("builds a classic session")
def test_a_builder_enables_its_session(spark: SparkSession) -> None:
    try:
        built = sparkdelta.configure(SparkSession.builder).getOrCreate()
        assert built is spark
        assert enabled_sessions.is_enabled(spark)
    finally:
        sparkdelta.disable(spark)
    assert SparkSession.builder.getOrCreate() is spark
    assert not enabled_sessions.is_enabled(spark)


def _clone(spark: SparkSession) -> SparkSession:
    """A session as `foreachBatch` hands out."""
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


@pytest.mark.classic("clones classic sessions")
def test_children_are_enabled_as_long_as_their_parent_is(
    spark: SparkSession, table_path: str
) -> None:
    load, before = readwriter.DataFrameReader.load, spark.newSession()
    sparkdelta.enable(spark)
    try:
        spark.range(3).write.format("delta").save(table_path)
        child = spark.newSession()
        family = [_clone(spark), child, child.newSession(), _clone(child)]
        assert all(map(enabled_sessions.is_enabled, family))
        assert _ids(family[2].read.format("delta").load(table_path)) == [0, 1, 2]
        assert child.sql(f"SELECT * FROM delta.`{table_path}`").count() == 3
        assert not enabled_sessions.is_enabled(before)
        assert not enabled_sessions.is_enabled(before.newSession())
    finally:
        sparkdelta.disable(spark)
    assert not any(map(enabled_sessions.is_enabled, family))
    assert readwriter.DataFrameReader.load is load


@pytest.mark.classic("calls a function of this module, which a server lacks")
def test_a_batch_and_the_sessions_it_makes_are_enabled(
    enabled: SparkSession, table_path: str, tmp_path: Path
) -> None:
    source, target = table_path, str(tmp_path / "target")
    enabled.range(3).write.format("delta").save(source)

    def copy(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("batch")
        rows = batch.sparkSession.sql("SELECT * FROM batch")
        rows.write.format("delta").mode("append").save(target)
        assert _ids(batch.sparkSession.newSession().read.load(target, format="delta")) == [0, 1, 2]

    rows = enabled.readStream.format("delta").load(source)
    writer = rows.writeStream.foreachBatch(copy).option("checkpointLocation", str(tmp_path / "c"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert _ids(enabled.read.format("delta").load(target)) == [0, 1, 2]


_CATALOG = "spark.sql.catalog.spark_catalog"
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


@pytest.mark.classic("looks into the JVM")
def test_delta_spark_beside_it_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = spark.newSession()
    other.conf.set(_CATALOG, _DELTA_CATALOG)
    monkeypatch.setattr(jvm_builders, "has_class", lambda *_: True)
    with raises("DELTA_SPARK_PRESENT"):
        sparkdelta.enable(other)
    assert other.conf.get(_CATALOG) == _DELTA_CATALOG


@pytest.mark.classic("uses newSession")
def test_settings_of_delta_spark_without_its_jar_are_replaced(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set(_CATALOG, _DELTA_CATALOG)
    with pytest.raises(SPARK_ERRORS):
        other.sql("SHOW TABLES")
    sparkdelta.enable(other)
    try:
        assert other.conf.get(_CATALOG) == "builtin"
        assert "tableName" in other.sql("SHOW TABLES").columns
    finally:
        sparkdelta.disable(other)


@pytest.mark.classic("builds a classic session")
def test_a_builder_has_no_settings_of_delta_spark(spark: SparkSession) -> None:
    builder = (
        SparkSession.builder.config(_CATALOG, _DELTA_CATALOG)
        .config(
            "spark.sql.extensions", "org.other.Extension,io.delta.sql.DeltaSparkSessionExtension"
        )
        .config("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.0, org.other:jar:1")
    )
    try:
        assert sparkdelta.configure(builder).getOrCreate() is spark
    finally:
        sparkdelta.disable(spark)
    assert builder._options == {
        "spark.sql.extensions": "org.other.Extension",
        "spark.jars.packages": " org.other:jar:1",
    }


def test_streams(enabled: SparkSession, table_path: str, tmp_path: Path) -> None:
    source, target = table_path, str(tmp_path / "target")
    for start in (0, 3):
        enabled.range(start, start + 3).write.format("delta").mode("append").save(source)
    rows = enabled.readStream.format("delta").option("startingVersion", "1").load(source)
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(availableNow=True).outputMode("append").start(target)
    query.awaitTermination()
    assert _ids(enabled.read.format("delta").load(target)) == [3, 4, 5]
    for refused in ("schemaTrackingLocation", "versionAsOf"):
        with raises("DELTA_UNKNOWN_ARGUMENT"):
            enabled.readStream.format("delta").option(refused, "1").load(source)
    with pytest.raises(InvalidArgumentError):
        rows.writeStream.format("delta").start(target)
    memory = rows.writeStream.format("memory").queryName("sd_memory").trigger(availableNow=True)
    memory.start().awaitTermination()
    assert _ids(enabled.table("sd_memory")) == [3, 4, 5]
    enabled.catalog.dropTempView("sd_memory")
