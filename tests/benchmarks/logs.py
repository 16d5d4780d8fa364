"""Logs of any length without data files: what loading and replay are measured on."""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

_SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "day", "type": "date", "nullable": True, "metadata": {}},
        ],
    }
)
_FIRST_DAY = date(2024, 1, 1)
_DAYS = 365
_ROWS, _BYTES, _TIME = 1000, 123_456, 1_700_000_000_000
_CHECKPOINT_VERSION = 10


def write_commits(root: Path, *, commits: int, files_per_commit: int = 1) -> list[str]:
    """A table whose log is nothing but commits; the paths of the commits."""
    log = root / "_delta_log"
    log.mkdir(parents=True)
    paths = []
    for version in range(commits):
        numbers = range(version * files_per_commit, (version + 1) * files_per_commit)
        actions = [_commit_info(), *(_add(number) for number in numbers)]
        paths.append(_write_commit(log, version, (_opening() if version == 0 else []) + actions))
    return paths


def write_checkpoint(
    spark: SparkSession,
    root: Path,
    *,
    files: int,
    sidecars: int,
    tail_commits: int,
    actions_per_commit: int,
) -> list[str]:
    """A table with a checkpoint and a tail of commits that each add and remove files.

    As many files are added as are removed, so that the number of live files stays the same.

    Parameters
    ----------
    sidecars
        How many sidecar files the adds are hashed to; 0 for a classic checkpoint of one file.

    Returns
    -------
    list of str
        The Parquet files that hold the adds.
    """
    log = root / "_delta_log"
    log.mkdir(parents=True)
    if sidecars:
        written = _write_sidecars(spark, log, files, sidecars)
    else:
        written = [_write_classic(spark, log, files)]
    hint = {"version": _CHECKPOINT_VERSION, "size": files + 2}
    (log / "_last_checkpoint").write_text(json.dumps(hint), encoding="utf-8")
    stride = max(1, files // (tail_commits * actions_per_commit))
    for commit in range(tail_commits):
        numbers = range(commit * actions_per_commit, (commit + 1) * actions_per_commit)
        actions = [_add(files + number) for number in numbers]
        actions += [_remove(number * stride % files) for number in numbers]
        _write_commit(log, _CHECKPOINT_VERSION + 1 + commit, [_commit_info(), *actions])
    return written


def _write_classic(spark: SparkSession, log: Path, files: int) -> str:
    opening = spark.createDataFrame(
        [(json.dumps(action),) for action in _opening()], "action STRING"
    )
    actions = (
        "protocol STRUCT<minReaderVersion: INT, minWriterVersion: INT>, "
        "metaData STRUCT<id: STRING, format: STRUCT<provider: STRING, "
        "options: MAP<STRING, STRING>>, schemaString: STRING, partitionColumns: ARRAY<STRING>, "
        "configuration: MAP<STRING, STRING>>"
    )
    first = opening.select(F.from_json("action", actions).alias("a")).select("a.*")
    rows = first.unionByName(_adds(spark, files, 1), allowMissingColumns=True).coalesce(1)
    target = log / f"{_CHECKPOINT_VERSION:020}.checkpoint.parquet"
    (part,) = _write_parts(rows, log.parent / "parts")
    part.rename(target)
    shutil.rmtree(log.parent / "parts")
    return str(target)


def _write_sidecars(spark: SparkSession, log: Path, files: int, sidecars: int) -> list[str]:
    rows = _adds(spark, files, sidecars).repartition(sidecars, F.col("add.path"))
    parts = _write_parts(rows, log.parent / "parts")
    directory = log / "_sidecars"
    directory.mkdir()
    written = [part.rename(directory / f"{uuid.uuid4()}.parquet") for part in parts]
    shutil.rmtree(log.parent / "parts")
    top = [{"checkpointMetadata": {"version": _CHECKPOINT_VERSION}}, *_opening("v2Checkpoint")]
    for file in written:
        size, modified = file.stat().st_size, file.stat().st_mtime_ns // 1_000_000
        sidecar = {"path": file.name, "sizeInBytes": size, "modificationTime": modified}
        top.append({"sidecar": sidecar})
    _write_lines(log / f"{_CHECKPOINT_VERSION:020}.checkpoint.{uuid.uuid4()}.json", top)
    return [str(file) for file in written]


def _adds(spark: SparkSession, files: int, partitions: int) -> DataFrame:
    """As `_add`, with the statistics as JSON and as a struct, as delta-spark writes them."""
    days = F.date_add(F.lit(_FIRST_DAY), (F.col("id") % _DAYS).cast("int"))
    number, day = F.lpad(F.col("id").cast("string"), 9, "0"), F.col("day")
    path = F.concat(
        F.lit("day="), day.cast("string"), F.lit("/part-"), number, F.lit("-"),
        F.md5(F.col("id").cast("string")), F.lit(".c000.snappy.parquet"),
    )  # fmt: skip
    first, last = F.col("id") * _ROWS, F.col("id") * _ROWS + _ROWS - 1
    statistics = F.struct(
        F.lit(_ROWS).cast("long").alias("numRecords"),
        F.struct(first.alias("id")).alias("minValues"),
        F.struct(last.alias("id")).alias("maxValues"),
        F.struct(F.lit(0).cast("long").alias("id")).alias("nullCount"),
    )
    vector = (
        "STRUCT<storageType: STRING, pathOrInlineDv: STRING, offset: INT, sizeInBytes: INT, "
        "cardinality: BIGINT>"
    )
    add = F.struct(
        path.alias("path"),
        F.create_map(F.lit("day"), day.cast("string")).alias("partitionValues"),
        F.lit(_BYTES).cast("long").alias("size"),
        F.lit(_TIME).cast("long").alias("modificationTime"),
        F.lit(False).alias("dataChange"),
        F.to_json(statistics).alias("stats"),
        F.lit(None).cast("MAP<STRING, STRING>").alias("tags"),
        F.lit(None).cast(vector).alias("deletionVector"),
        F.struct(day.alias("day")).alias("partitionValues_parsed"),
        statistics.alias("stats_parsed"),
    )
    return spark.range(0, files, 1, partitions).withColumn("day", days).select(add.alias("add"))


def _write_parts(frame: DataFrame, directory: Path) -> list[Path]:
    frame.write.parquet(str(directory))
    return sorted(directory.glob("*.parquet"))


def _path(number: int) -> str:
    digest = hashlib.md5(str(number).encode()).hexdigest()
    return f"day={_day(number)}/part-{number:09}-{digest}.c000.snappy.parquet"


def _day(number: int) -> str:
    return (_FIRST_DAY + timedelta(days=number % _DAYS)).isoformat()


def _add(number: int) -> dict[str, Any]:
    first = number * _ROWS
    statistics = {
        "numRecords": _ROWS,
        "minValues": {"id": first},
        "maxValues": {"id": first + _ROWS - 1},
        "nullCount": {"id": 0},
    }
    return {
        "add": {
            "path": _path(number),
            "partitionValues": {"day": _day(number)},
            "size": _BYTES,
            "modificationTime": _TIME,
            "dataChange": True,
            "stats": json.dumps(statistics, separators=(",", ":")),
        }
    }


def _remove(number: int) -> dict[str, Any]:
    return {
        "remove": {
            "path": _path(number),
            "deletionTimestamp": _TIME,
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {"day": _day(number)},
            "size": _BYTES,
        }
    }


def _opening(*features: str) -> list[dict[str, Any]]:
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if features:
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(features),
            "writerFeatures": list(features),
        }
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": _SCHEMA,
        "partitionColumns": ["day"],
        "configuration": {},
    }
    return [{"protocol": protocol}, {"metaData": metadata}]


def _commit_info() -> dict[str, Any]:
    return {"commitInfo": {"timestamp": _TIME, "operation": "WRITE", "engineInfo": "benchmark"}}


def _write_commit(log: Path, version: int, actions: Iterable[dict[str, Any]]) -> str:
    path = log / f"{version:020}.json"
    _write_lines(path, actions)
    return str(path)


def _write_lines(path: Path, actions: Iterable[dict[str, Any]]) -> None:
    lines = (json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
    path.write_text("".join(lines), encoding="utf-8")
