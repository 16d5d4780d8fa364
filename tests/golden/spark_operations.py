"""Golden tables about what writers do: commands, writer features, row tracking."""

from __future__ import annotations

from tests.golden.workbench import DeltaSparkBench, delta_spark_table


@delta_spark_table("overwrite", "op_overwrite", "op_replace_where", "partitioned")
def overwrite(bench: DeltaSparkBench) -> None:
    """Overwrites: whole, by replaceWhere, of touched partitions, and with another schema and
    partitioning.
    """
    bench.create("id INT, p STRING", "p")
    bench.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, NULL)")

    def write(rows: str, **options: str) -> None:
        frame = bench.spark.sql(rows).coalesce(1)
        frame.write.format("delta").mode("overwrite").options(**options).save(str(bench.path))

    write("SELECT 10 AS id, 'b' AS p", replaceWhere="p = 'b'")
    write("SELECT 20 AS id, 'a' AS p", partitionOverwriteMode="dynamic")
    write("SELECT * FROM VALUES (30, 'c'), (31, 'c') AS s(id, p)")
    frame = bench.spark.sql("SELECT date'2024-01-01' AS d, 'text' AS id").coalesce(1)
    frame.write.format("delta").mode("overwrite").partitionBy("d").option(
        "overwriteSchema", "true"
    ).save(str(bench.path))


@delta_spark_table("restore-optimize", "op_restore", "op_optimize", "op_zorder")
def restore_optimize(bench: DeltaSparkBench) -> None:
    """OPTIMIZE (dataChange false), ZORDER, deletes, RESTORE back and forth: files come and go
    again.
    """
    bench.create("id INT, name STRING")
    bench.sql(
        "INSERT INTO {t} VALUES (1, 'a')",
        "INSERT INTO {t} VALUES (2, 'b')",
        "OPTIMIZE {t}",
        "DELETE FROM {t} WHERE id = 1",
        "RESTORE TABLE {t} TO VERSION AS OF 2",
        "INSERT INTO {t} VALUES (3, 'c')",
        "OPTIMIZE {t} ZORDER BY (id)",
        "RESTORE TABLE {t} TO VERSION AS OF 4",
    )


@delta_spark_table("change-data-feed", "changeDataFeed", "cdc_files", "op_update", "op_merge")
def change_data_feed(bench: DeltaSparkBench) -> None:
    """Change data feed: cdc actions and files with a _change_type column beside the data."""
    bench.create("id INT, name STRING, part INT", "part", enableChangeDataFeed="true")
    bench.sql(
        "INSERT INTO {t} SELECT CAST(id AS INT), 'n' || id, CAST(id % 2 AS INT) FROM range(0, 6,"
        " 1, 1)",
        "UPDATE {t} SET name = 'updated' WHERE id = 3",
        "DELETE FROM {t} WHERE id = 4",
        "MERGE INTO {t} t USING (SELECT 1 AS id UNION ALL SELECT 9) s ON t.id = s.id WHEN MATCHED"
        " THEN UPDATE SET"
        " name = 'merged' WHEN NOT MATCHED THEN INSERT (id, name, part) VALUES (s.id, 'new', 1)",
    )


@delta_spark_table("row-tracking", "rowTracking", "domainMetadata", row_ids=True)
def row_tracking(bench: DeltaSparkBench) -> None:
    """Row tracking from creation; UPDATE, MERGE and OPTIMIZE materialise row ids and commit
    versions.
    """
    bench.create("id INT, name STRING", enableRowTracking="true")
    bench.sql(
        "INSERT INTO {t} SELECT id, 'n' || id FROM range(0, 5, 1, 1)",
        "INSERT INTO {t} SELECT id, 'n' || id FROM range(5, 10, 1, 1)",
        "UPDATE {t} SET name = 'updated' WHERE id IN (1, 6)",
        "MERGE INTO {t} t USING (SELECT id + 8 AS id FROM range(4)) s ON t.id = s.id WHEN MATCHED"
        " THEN UPDATE SET"
        " name = 'merged' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'inserted')",
        "OPTIMIZE {t}",
    )


@delta_spark_table(
    "row-tracking-later",
    "rowTracking",
    "deletionVectors",
    "columnMapping",
    "partitioned",
    "checkpoint_classic",
    row_ids=True,
)
def row_tracking_later(bench: DeltaSparkBench) -> None:
    """Row tracking enabled later (backfill), with deletion vectors, name mode, partitions and a
    checkpoint.
    """
    bench.create(
        "id INT, name STRING, part INT",
        "part",
        enableDeletionVectors="true",
        columnMapping__mode="name",
    )
    bench.sql(
        "INSERT INTO {t} SELECT CAST(id AS INT), 'n' || id, CAST(id % 2 AS INT) FROM range(0, 6,"
        " 1, 1)"
    )
    bench.set(enableRowTracking="true")
    bench.sql("UPDATE {t} SET name = 'updated' WHERE id = 2", "DELETE FROM {t} WHERE id = 3")
    bench.checkpoint()
    bench.sql("INSERT INTO {t} VALUES (7, 'n7', 1)", "OPTIMIZE {t}")


@delta_spark_table(
    "constraints-and-defaults",
    "checkConstraints",
    "generatedColumns",
    "identityColumns",
    "allowColumnDefaults",
    "appendOnly",
    "invariants",
)
def constraints_and_defaults(bench: DeltaSparkBench) -> None:
    """Writer features that say nothing to a reader: CHECK, NOT NULL, generated, identity, defaults,
    append-only.
    """
    bench.create(
        "id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5), v INT NOT NULL"
        " DEFAULT 42,"
        " twice INT GENERATED ALWAYS AS (v * 2), day DATE GENERATED ALWAYS AS (CAST(at AS DATE)),"
        " at TIMESTAMP",
        "day",
        feature__allowColumnDefaults="supported",
    )
    bench.sql(
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (v > 0)",
        "INSERT INTO {t} (v, at) VALUES (1, '2024-01-01 10:00:00'), (2, NULL)",
        "INSERT INTO {t} (at) VALUES ('2024-01-02 10:00:00')",
    )
    bench.set(appendOnly="true")


@delta_spark_table("clustered", "clustering", "domainMetadata", "op_optimize", "checkpoint_classic")
def clustered(bench: DeltaSparkBench) -> None:
    """Liquid clustering: clusteringProvider, domain metadata changed and removed, a checkpoint
    between.
    """
    bench.sql(
        "CREATE TABLE {t} (id INT, name STRING, s STRUCT<k: INT>) USING delta CLUSTER BY (id, s.k)"
    )
    bench.sql(
        "INSERT INTO {t} SELECT id, 'n' || id, named_struct('k', id) FROM range(0, 4, 1, 1)",
        "INSERT INTO {t} SELECT id, 'n' || id, named_struct('k', id) FROM range(4, 8, 1, 1)",
        "OPTIMIZE {t}",
    )
    bench.checkpoint()
    bench.sql(
        "ALTER TABLE {t} CLUSTER BY (name)",
        "INSERT INTO {t} VALUES (9, 'n9', NULL)",
        "ALTER TABLE {t} CLUSTER BY NONE",
    )


@delta_spark_table("app-transactions", "txn", "op_append", "checkpoint_classic")
def app_transactions(bench: DeltaSparkBench) -> None:
    """Application transactions of two applications, one of them ignored as done, a checkpoint
    between.
    """
    bench.create("id INT")
    for app, version in (("app-a", 1), ("app-b", 7), ("app-a", 2), ("app-a", 2)):
        bench.append(
            bench.spark.sql(f"SELECT {version} AS id"), txnAppId=app, txnVersion=str(version)
        )
    bench.checkpoint()
    bench.append(bench.spark.sql("SELECT 9 AS id"), txnAppId="app-b", txnVersion="9")


@delta_spark_table("metadata-changes", "op_set_properties", "op_comment")
def metadata_changes(bench: DeltaSparkBench) -> None:
    """Name, comments and properties set and unset; the protocol upgraded by hand; user metadata."""
    bench.sql(
        "CREATE TABLE {t} (id INT COMMENT 'the id') USING delta COMMENT 'a table' TBLPROPERTIES"
        " ('my.key' = 'v 1')"
    )
    bench.sql(
        "COMMENT ON TABLE {t} IS 'another comment'",
        "ALTER TABLE {t} SET TBLPROPERTIES ('my.key' = 'v 2', 'unicode' = 'ü')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('my.key')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.minReaderVersion' = '3',"
        " 'delta.minWriterVersion' = '7')",
    )
    bench.append(bench.spark.sql("SELECT 1 AS id"), userMetadata='{"by": "hand"}')
