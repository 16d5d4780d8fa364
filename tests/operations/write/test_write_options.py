"""Options of a write that say what its files are like, and what it claims."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import alter_table, load_snapshot, read_delta, write_delta
from sparkdelta.base.parquet.parquet_options import committer_settings
from sparkdelta.exceptions import InvalidArgumentError, TableNotFoundError
from tests.support.errors import raises
from tests.support.log_writer import write_commit
from tests.support.settings import settings
from tests.support.spark_jobs import counted_jobs
from tests.support.table_builder import field, metadata, protocol


def adds(path: str, version: int) -> list[dict[str, Any]]:
    lines = Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines()
    return [json.loads(line)["add"] for line in lines if '"add":' in line]


def test_a_file_for_each_partition_and_size(spark: SparkSession, table_path: str) -> None:
    """Rows of a partition come together in a file of about the size that is asked for."""
    rows = spark.range(0, 4000, 1, 4).selectExpr("id", "id % 2 AS p", "hex(hash(id)) AS s")
    write_delta(rows, table_path, partition_by=["p"], mode="append")
    assert len(adds(table_path, 0)) == 8
    plain = {"spark.sql.adaptive.enabled": "false"}
    with settings(spark, plain):
        before = dict(spark.conf.getAll)
        write_delta(rows, table_path, mode="append", target_file_size=1 << 20)
        assert dict(spark.conf.getAll) == before
    assert [a["partitionValues"]["p"] for a in sorted(adds(table_path, 1), key=str)] == ["0", "1"]
    write_delta(rows, table_path, mode="append", target_file_size=4_000)
    sizes = [a["size"] for a in adds(table_path, 2)]
    # Spark splits a partition between the tasks that its rows come from; staged rows have fewer.
    is_staged = "connect" in type(spark).__module__ and spark.version < "4.2"
    assert (3 if is_staged else 4) < len(sizes) <= 8
    assert read_delta(spark, table_path).count() == 12_000


def test_a_table_may_ask_for_it(spark: SparkSession, table_path: str) -> None:
    configuration = {
        "delta.autoOptimize.optimizeWrite": "true",
        "delta.targetFileSize": "1mb",
    }
    actions = [protocol(), metadata(field("id", "long"), configuration=configuration)]
    write_commit(Path(table_path), 0, actions)
    write_delta(spark.range(0, 8, 1, 4), table_path, mode="append")
    assert len(adds(table_path, 1)) == 1
    configuration["delta.targetFileSize"] = "large"
    path = f"{table_path}2"
    actions = [protocol(), metadata(field("id", "long"), configuration=configuration)]
    write_commit(Path(path), 0, actions)
    with pytest.raises(InvalidArgumentError):
        write_delta(spark.range(1), path, mode="append")


def test_rows_per_file_and_compression(spark: SparkSession, table_path: str) -> None:
    """ "Table Properties": zstd, unless the write or the table names another codec."""

    def codec(version: int) -> str:
        file = Path(table_path, adds(table_path, version)[0]["path"])
        return str(pq.ParquetFile(file).metadata.row_group(0).column(0).compression)

    rows = spark.range(0, 10, 1, 1)
    write_delta(rows, table_path, max_records_per_file=4, compression="gzip")
    found = adds(table_path, 0)
    assert sorted(json.loads(a["stats"])["numRecords"] for a in found) == [2, 4, 4]
    write_delta(rows, table_path, mode="append")
    alter_table(spark, table_path).set_properties({"delta.parquet.compression.codec": "snappy"})
    write_delta(rows, table_path, mode="append")
    assert [codec(version) for version in (0, 1, 3)] == ["GZIP", "ZSTD", "SNAPPY"]


@pytest.mark.slow
def test_files_have_their_place_when_the_job_commits(spark: SparkSession, table_path: str) -> None:
    """Files have no place before the whole job commits: else those of a task that fails while it
    commits, and of its second run, would both count.
    """

    def placed(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The files in place once the other task has committed; its own task is not yet there."""
        [frame] = batches
        until = time.monotonic() + 60
        if frame["id"][0]:
            [directory] = Path(table_path).glob("_sparkdelta-*")
            while not (found := [*directory.glob("*.parquet")]) and not [
                *directory.glob("_temporary/0/task_*")
            ]:
                assert time.monotonic() < until
            frame["id"] = len(found)
        yield frame

    rows = spark.range(0, 2, 1, 2).mapInPandas(placed, "id LONG")
    committers = {
        "mapreduce.fileoutputcommitter.algorithm.version": "2",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
        "spark.sql.sources.commitProtocolClass": (
            "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol"
        ),
    }
    with settings(spark, committers):
        write_delta(rows, table_path)
    assert [row["id"] for row in read_delta(spark, table_path).collect()] == [0, 0]
    assert [path.name for path in Path(table_path).glob("_*")] == ["_delta_log"]


def test_committers_of_object_stores_are_kept() -> None:
    binding = "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter"
    protocol = "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol"
    own = {"spark.sql.sources.commitProtocolClass": protocol,
           "spark.sql.parquet.output.committer.class": binding}  # fmt: skip
    assert committer_settings(own.get) == own
    sparks = committer_settings(lambda _, default: default)
    assert sparks.keys() == own.keys()
    assert committer_settings(lambda *_: "nobody.knows.Committer") == sparks


def test_a_write_that_changes_no_data(spark: SparkSession, table_path: str) -> None:
    """ "Add File and Remove File": dataChange is false where rows are only rearranged."""
    with raises("DELTA_DATA_CHANGE_FALSE"):
        write_delta(spark.range(4), table_path, data_change=False)
    write_delta(spark.range(0, 4, 1, 2), table_path)
    rows = read_delta(spark, table_path).coalesce(1)
    write_delta(rows, table_path, mode="overwrite", data_change=False)
    log = Path(table_path, "_delta_log", f"{1:020d}.json").read_text().splitlines()
    files = [a for line in log for name, a in json.loads(line).items() if name != "commitInfo"]
    assert [a["dataChange"] for a in files] == [False] * 3
    assert read_delta(spark, table_path).count() == 4
    with raises("DELTA_DATA_CHANGE_FALSE"):
        write_delta(spark.sql("SELECT 1L AS id, 2 AS more"), table_path, mode="append",
                    merge_schema=True, data_change=False)  # fmt: skip
    rows = read_delta(spark, table_path)
    with pytest.raises(InvalidArgumentError):
        write_delta(rows, table_path, mode="overwrite", replace_where="id = 1", data_change=False)
    assert load_snapshot(spark, table_path).version == 1


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "best"},
        {"max_records_per_file": 0},
        {"max_records_per_file": "many"},
        {"target_file_size": -1},
        {"target_file_size": 1.5},
        {"target_file_size": True},
    ],
)
def test_options_that_are_none(spark, table_path, options) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidArgumentError):
        write_delta(spark.range(1), table_path, **options)
    assert not Path(table_path).exists()


@pytest.mark.classic("counts Spark's jobs")
def test_an_append_takes_few_jobs(spark: SparkSession, table_path: str) -> None:
    """Rules are checked in the pass that writes: no job is for them."""
    write_delta(spark.range(1), table_path)
    with counted_jobs(spark) as plain:
        write_delta(spark.range(1), table_path, mode="append")
    path = f"{table_path}2"
    configuration = {"delta.constraints.c": "id >= 0"}
    fields = (field("id", "long", nullable=False),
              field("g", "long", metadata={"delta.generationExpression": "id + 1"}))  # fmt: skip
    write_commit(Path(path), 0, [protocol(1, 4), metadata(*fields, configuration=configuration)])
    with counted_jobs(spark) as checked:
        write_delta(spark.range(1), path, mode="append")
    assert checked.count == plain.count


@pytest.mark.parametrize(
    "wrong",
    [
        {"txn_app_id": "a", "txn_version": "7"},
        {"txn_app_id": "a", "txn_version": 7.5},
        {"txn_app_id": 1, "txn_version": 7},
        {"user_metadata": {"a": 1}},
        {"merge_schema": "false"},
        {"data_change": "no"},
        {"partition_by": "part"},
        {"properties": {"delta.appendOnly": True}},
        {"compression": 1},
        {"mode": None},
    ],
    ids=str,
)
def test_options_of_the_wrong_type(
    spark: SparkSession, table_path: str, wrong: dict[str, Any]
) -> None:
    """Nothing is committed: what they would make of the log, nobody could read."""
    with pytest.raises(InvalidArgumentError):
        write_delta(spark.range(1), table_path, **{"mode": "append", **wrong})
    assert not Path(table_path).exists()


def test_wrong_frames_and_paths_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame: Any = spark.range(1).toPandas()
    with pytest.raises(InvalidArgumentError, match="createDataFrame"):
        write_delta(frame, str(tmp_path))
    nothing: Any = None
    with pytest.raises(InvalidArgumentError):
        read_delta(spark, nothing)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(TableNotFoundError):
        read_delta(spark, str(file))


def test_words_in_any_case(spark: SparkSession, tmp_path: Path) -> None:
    path: Any = tmp_path / "table"  # which Python's own functions take as well
    write_delta(spark.range(1), path, mode="ErrorIfExists", compression="GZIP")
    write_delta(spark.range(1), path, mode="Append")
    rows = spark.range(1).selectExpr("id", "id AS p")
    other = str(tmp_path / "partitioned")
    write_delta(rows, other, partition_by=["p"])
    write_delta(rows, other, mode="OVERWRITE", partition_overwrite_mode="DYNAMIC")
    assert (read_delta(spark, path).count(), read_delta(spark, other).count()) == (2, 1)
    assert repr(load_snapshot(spark, path)).startswith(f"Snapshot('file:{path}', version=1")
