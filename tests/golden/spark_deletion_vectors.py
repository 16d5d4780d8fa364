"""Golden tables about deletion vectors."""

from __future__ import annotations

from tests.golden.workbench import DeltaSparkBench, delta_spark_table


@delta_spark_table("dv-delete", "deletionVectors", "op_delete")
def dv_delete(bench: DeltaSparkBench) -> None:
    """Deletes that touch three files at once (several vectors in one file), again, and a whole
    file.
    """
    bench.create("id INT, name STRING", enableDeletionVectors="true")
    for start in (0, 10, 20):
        bench.sql(f"INSERT INTO {{t}} SELECT id, 'n' || id FROM range({start}, {start + 10}, 1, 1)")
    bench.sql(
        "DELETE FROM {t} WHERE id % 5 = 1",
        "DELETE FROM {t} WHERE id % 5 = 2",
        "DELETE FROM {t} WHERE id >= 20",
    )


@delta_spark_table(
    "dv-update-merge", "deletionVectors", "op_update", "op_merge", "checkpoint_classic"
)
def dv_update_merge(bench: DeltaSparkBench) -> None:
    """UPDATE and MERGE with vectors, a checkpoint that holds some, then OPTIMIZE and RESTORE."""
    bench.create("id INT, name STRING", enableDeletionVectors="true")
    bench.sql(
        "INSERT INTO {t} SELECT id, 'n' || id FROM range(0, 10, 1, 1)",
        "UPDATE {t} SET name = upper(name) WHERE id < 3",
        "MERGE INTO {t} t USING (SELECT id + 8 AS id, 'm' AS name FROM range(4)) s ON t.id = s.id"
        " WHEN MATCHED AND s.id = 8 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED"
        " THEN INSERT *",
    )
    bench.checkpoint()
    bench.sql(
        "DELETE FROM {t} WHERE id = 5", "OPTIMIZE {t}", "RESTORE TABLE {t} TO VERSION AS OF 2"
    )


@delta_spark_table("dv-partitioned", "deletionVectors", "partitioned", "checkpoint_v2")
def dv_partitioned(bench: DeltaSparkBench) -> None:
    """Vectors on partitioned data with odd partition values, a V2 checkpoint, REORG PURGE."""
    bench.create("id INT, part STRING", "part", enableDeletionVectors="true", checkpointPolicy="v2")
    bench.sql(
        "INSERT INTO {t} SELECT CAST(id AS INT), CASE id % 4 WHEN 0 THEN 'a b%/=' WHEN 1 THEN"
        " 'ü:#+'"
        " WHEN 2 THEN NULL ELSE 'plain' END FROM range(0, 20, 1, 1)",
        "DELETE FROM {t} WHERE id < 6",
        "DELETE FROM {t} WHERE part IS NULL AND id > 10",
    )
    bench.checkpoint()
    bench.sql("DELETE FROM {t} WHERE id = 19", "REORG TABLE {t} APPLY (PURGE)")


@delta_spark_table("dv-column-mapping", "deletionVectors", "columnMapping", "columnMapping_id")
def dv_column_mapping(bench: DeltaSparkBench) -> None:
    """Vectors with id mode: renamed and dropped columns, change data feed on."""
    bench.create(
        "id INT, name STRING, gone INT",
        enableDeletionVectors="true",
        columnMapping__mode="id",
        enableChangeDataFeed="true",
    )
    bench.sql(
        "INSERT INTO {t} SELECT id, 'n' || id, id FROM range(0, 8, 1, 1)",
        "DELETE FROM {t} WHERE id = 3",
        "ALTER TABLE {t} RENAME COLUMN name TO `the name`",
        "ALTER TABLE {t} DROP COLUMN gone",
        "UPDATE {t} SET `the name` = 'updated' WHERE id IN (4, 5)",
    )


@delta_spark_table("dv-long-file", "deletionVectors", "op_delete", versions=(1, 2, 3))
def dv_long_file(bench: DeltaSparkBench) -> None:
    """One file of 150,000 rows: vectors of runs and of scattered rows, over more than one 65,536
    chunk.
    """
    bench.create("block INT, seventh BOOLEAN", enableDeletionVectors="true")
    bench.sql(
        "INSERT INTO {t} SELECT CAST(id DIV 1000 AS INT), id % 7 = 0 FROM range(0, 150000, 1, 1)",
        "DELETE FROM {t} WHERE seventh AND block % 10 = 3",
        "DELETE FROM {t} WHERE block BETWEEN 60 AND 139",
    )


@delta_spark_table("dv-random-prefix", "deletionVectors", "randomizeFilePrefixes")
def dv_random_prefix(bench: DeltaSparkBench) -> None:
    """Data files and vectors under random prefixes (delta.randomizeFilePrefixes)."""
    bench.create(
        "id INT", enableDeletionVectors="true", randomizeFilePrefixes="true", randomPrefixLength="3"
    )
    bench.sql(
        "INSERT INTO {t} SELECT id FROM range(0, 6, 1, 1)",
        "INSERT INTO {t} SELECT id FROM range(6, 12, 1, 1)",
        "DELETE FROM {t} WHERE id IN (2, 8)",
    )


@delta_spark_table(
    "dv-dropped-feature", "deletionVectors", "op_drop_feature", "checkpointProtection"
)
def dv_dropped_feature(bench: DeltaSparkBench) -> None:
    """DROP FEATURE deletionVectors: the latest version needs no reader feature, older ones do."""
    bench.create("id INT", enableDeletionVectors="true")
    bench.sql(
        "INSERT INTO {t} SELECT id FROM range(0, 6, 1, 1)",
        "DELETE FROM {t} WHERE id = 4",
        "ALTER TABLE {t} DROP FEATURE deletionVectors",
        "INSERT INTO {t} VALUES (7)",
    )
