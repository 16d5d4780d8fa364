"""Golden tables about the log itself: checkpoints of every kind, truncation, commit timestamps."""

from __future__ import annotations

from tests.golden.workbench import DeltaSparkBench, delta_spark_table

PART_SIZE = "spark.databricks.delta.checkpoint.partSize"
TOP_LEVEL_FORMAT = "spark.databricks.delta.checkpointV2.topLevelFileFormat"


def _churn(bench: DeltaSparkBench, first: int, last: int) -> None:
    """One commit per number: mostly appends, every fourth one a delete."""
    for number in range(first, last + 1):
        if number % 4 == 3:
            bench.sql(f"DELETE FROM {{t}} WHERE id = {number - 2}")
        else:
            bench.sql(f"INSERT INTO {{t}} VALUES ({number}, 'row {number}', {number % 3})")


@delta_spark_table("checkpoint-classic", "checkpoint_classic", "time_travel")
def checkpoint_classic(bench: DeltaSparkBench) -> None:
    """Classic checkpoints of versions 3 and 6 (interval 3), appends and deletes of whole files."""
    bench.create("id BIGINT, name STRING, part INT", checkpointInterval="3")
    _churn(bench, 1, 7)


@delta_spark_table("checkpoint-multi-part", "checkpoint_multi_part", "partitioned")
def checkpoint_multi_part(bench: DeltaSparkBench) -> None:
    """A checkpoint of version 6 in several parts (session setting partSize), partitioned."""
    bench.create("id BIGINT, name STRING, part INT", "part", checkpointInterval="6")
    with bench.settings({PART_SIZE: "3"}):
        _churn(bench, 1, 7)


@delta_spark_table("checkpoint-v2-json", "checkpoint_v2", "v2Checkpoint", "sidecars")
def checkpoint_v2_json(bench: DeltaSparkBench) -> None:
    """A V2 checkpoint with a JSON top level and a sidecar."""
    bench.create("id BIGINT, name STRING, part INT", checkpointPolicy="v2", checkpointInterval="4")
    with bench.settings({TOP_LEVEL_FORMAT: "json"}):
        _churn(bench, 1, 5)


@delta_spark_table("checkpoint-v2-parquet", "checkpoint_v2", "v2Checkpoint", "sidecars")
def checkpoint_v2_parquet(bench: DeltaSparkBench) -> None:
    """A V2 checkpoint with a Parquet top level and a sidecar."""
    bench.create("id BIGINT, name STRING, part INT", checkpointPolicy="v2", checkpointInterval="4")
    with bench.settings({TOP_LEVEL_FORMAT: "parquet"}):
        _churn(bench, 1, 5)


@delta_spark_table(
    "checkpoint-v2-sidecars", "checkpoint_v2", "v2Checkpoint", "sidecars", "partitioned"
)
def checkpoint_v2_sidecars(bench: DeltaSparkBench) -> None:
    """A V2 checkpoint with several sidecars (a small partSize), partitioned, deletion vectors."""
    bench.create(
        "id BIGINT, name STRING, part INT",
        "part",
        checkpointPolicy="v2",
        checkpointInterval="7",
        enableDeletionVectors="true",
    )
    with bench.settings({PART_SIZE: "2", TOP_LEVEL_FORMAT: "json"}):
        for start in range(0, 24, 4):
            rows = f"SELECT id, 'row ' || id, id % 2 FROM range({start}, {start + 4})"
            bench.sql(f"INSERT INTO {{t}} {rows}")
        bench.sql("DELETE FROM {t} WHERE id % 8 = 3")
        bench.sql("DELETE FROM {t} WHERE id = 0")


@delta_spark_table(
    "checkpoint-v2-then-classic", "checkpoint_v2", "checkpoint_classic", "v2Checkpoint"
)
def checkpoint_v2_then_classic(bench: DeltaSparkBench) -> None:
    """The policy goes from v2 to classic: a V2 checkpoint under a classic name comes after one with
    a UUID.
    """
    bench.create("id BIGINT, name STRING, part INT", checkpointPolicy="v2", checkpointInterval="2")
    _churn(bench, 1, 2)
    bench.set(checkpointPolicy="classic")
    _churn(bench, 4, 6)


@delta_spark_table(
    "checkpoint-stats-struct-only", "checkpoint_classic", "stats_struct", "partitioned"
)
def checkpoint_stats_struct_only(bench: DeltaSparkBench) -> None:
    """The checkpoint holds statistics and partition values as structs and no JSON statistics."""
    bench.create(
        "id BIGINT, name STRING, price DECIMAL(9,2), at TIMESTAMP, part DATE",
        "part",
        checkpoint__writeStatsAsJson="false",
        checkpoint__writeStatsAsStruct="true",
    )
    _dated(bench)
    bench.checkpoint()
    bench.sql("DELETE FROM {t} WHERE id = 2")


@delta_spark_table("checkpoint-stats-json-only", "checkpoint_classic", "stats_json", "partitioned")
def checkpoint_stats_json_only(bench: DeltaSparkBench) -> None:
    """The checkpoint holds statistics as JSON and no structs."""
    bench.create(
        "id BIGINT, name STRING, price DECIMAL(9,2), at TIMESTAMP, part DATE",
        "part",
        checkpoint__writeStatsAsJson="true",
        checkpoint__writeStatsAsStruct="false",
    )
    _dated(bench)
    bench.checkpoint()
    bench.sql("DELETE FROM {t} WHERE id = 2")


def _dated(bench: DeltaSparkBench) -> None:
    bench.sql(
        "INSERT INTO {t} VALUES (1, 'one', 1.25, '2024-02-29 12:34:56.789012', '2024-02-29'),"
        " (2, 'two', -2.50, '1969-12-31 23:59:59.999999', '1969-12-31'), (3, NULL, NULL, NULL,"
        " NULL)",
        "INSERT INTO {t} VALUES (4, '', 9999999.99, '9999-12-31 23:59:59.999999', '9999-12-31')",
    )


@delta_spark_table(
    "long-history", "checkpoint_classic", "time_travel", versions=(0, 1, 9, 10, 11, 19, 20, 21, 25)
)
def long_history(bench: DeltaSparkBench) -> None:
    """Twenty-five commits after the first, checkpoints of versions 10 and 20."""
    bench.create("id BIGINT, name STRING, part INT", checkpointInterval="10")
    _churn(bench, 1, 24)
    bench.sql("UPDATE {t} SET name = 'last' WHERE part = 1")


@delta_spark_table("truncated-log", "checkpoint_classic", "log_truncated")
def truncated_log(bench: DeltaSparkBench) -> None:
    """The commits before the checkpoint of version 4 are gone, as after log cleanup."""
    bench.create("id BIGINT, name STRING, part INT", checkpointInterval="4")
    _churn(bench, 1, 6)
    for version in range(4):
        for file in (bench.path / "_delta_log").glob(f"{version:020}.*"):
            file.unlink()
        bench.unreadable[version] = "truncated log"


@delta_spark_table("vacuumed", "op_vacuum", "vacuumProtocolCheck")
def vacuumed(bench: DeltaSparkBench) -> None:
    """The files of versions 1 and 2 were removed by VACUUM; feature vacuumProtocolCheck."""
    bench.create("id BIGINT, name STRING", feature__vacuumProtocolCheck="supported")
    bench.sql(
        "INSERT INTO {t} VALUES (1, 'a')",
        "INSERT INTO {t} VALUES (2, 'b')",
        "INSERT OVERWRITE {t} VALUES (3, 'c')",
    )
    with bench.settings(
        {
            "spark.databricks.delta.retentionDurationCheck.enabled": "false",
            "spark.databricks.delta.vacuum.logging.enabled": "true",
        }
    ):
        bench.sql("VACUUM {t} RETAIN 0 HOURS")
    bench.unreadable.update({1: "missing data file", 2: "missing data file"})


@delta_spark_table("in-commit-timestamps", "inCommitTimestamp", "time_travel")
def in_commit_timestamps(bench: DeltaSparkBench) -> None:
    """In-commit timestamps from version 0 on, with a checkpoint."""
    bench.create("id BIGINT", enableInCommitTimestamps="true", checkpointInterval="2")
    for number in range(3):
        bench.sql(f"INSERT INTO {{t}} VALUES ({number})")


@delta_spark_table("in-commit-timestamps-later", "inCommitTimestamp", "time_travel")
def in_commit_timestamps_later(bench: DeltaSparkBench) -> None:
    """In-commit timestamps enabled by version 2: enablement version and timestamp are set."""
    bench.create("id BIGINT")
    bench.sql("INSERT INTO {t} VALUES (1)")
    bench.set(enableInCommitTimestamps="true")
    bench.sql("INSERT INTO {t} VALUES (2)", "INSERT INTO {t} VALUES (3)")
