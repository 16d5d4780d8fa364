"""Logs of any length without data files: what loading, replay and planning are measured on."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.file_actions import (
    DAYS,
    FIRST_DAY,
    PARTITION,
    ROWS,
    TIME,
    Statistics,
    add_actions,
    as_lines,
    path_of,
    remove_actions,
    schema_string,
    with_path,
)

Layout = Literal["classic", "hash", "sorted"]
"""The layout of a checkpoint: one classic file; sidecars by a hash of the path; sidecars sorted by
partition, then by `id`. Rows of the first two are in no order, as writers that group files by a
hash leave them."""

SORTED_ROW_GROUP_BYTES = 8 * 1024 * 1024
"""The size of a row group of sorted sidecars, so that readers can skip most of them: about 55,000
files, those of two days where the table has ten million."""

CHECKPOINT_VERSION = 10
LARGE_TAIL = 10
_GENERATION = 2  # to be raised when the same parameters shall make other files


@dataclass(frozen=True, slots=True)
class CheckpointedLog:
    """A log with a checkpoint at version 10 and a tail of commits, each an update: it removes files
    and adds as many with the same rows.

    Attributes
    ----------
    files
        Live files, of the checkpoint and of every version after it.
    sidecars
        How many, of the layouts that have sidecars.
    actions_per_commit
        The adds of one commit, and its removes.
    """

    layout: Layout
    statistics: Statistics
    files: int
    sidecars: int
    tail_commits: int
    actions_per_commit: int

    def write_once(self, spark: SparkSession, directory: Path) -> Path:
        """The table below `directory`, made unless an earlier run made it there."""
        shape = asdict(self) if self.layout != "classic" else asdict(self) | {"sidecars": 0}
        name = "-".join(str(value) for value in (*shape.values(), f"g{_GENERATION}"))
        root, unfinished = directory / name, directory / f"{name}.unfinished"
        if not root.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            self.write(spark, unfinished)
            unfinished.rename(root)
        return root

    def write(self, spark: SparkSession, root: Path) -> None:
        """Make the table; executors make its checkpoint."""
        log = root / "_delta_log"
        log.mkdir(parents=True)
        if self.layout == "classic":
            self._write_classic(spark, log)
        else:
            self._write_sidecars(spark, log)
        hint = {"version": CHECKPOINT_VERSION, "size": self.files + 2}
        (log / "_last_checkpoint").write_text(json.dumps(hint), encoding="utf-8")
        self._write_tail(spark, log)

    def checkpoint_files(self, root: Path) -> list[str]:
        """The Parquet files that hold the adds."""
        directory = root / "_delta_log" / ("" if self.layout == "classic" else "_sidecars")
        return sorted(str(file) for file in directory.glob("*.parquet"))

    def live_paths(self, *, day: date, least: int, greatest: int) -> list[str]:
        """The sorted paths of files that `date = day AND id BETWEEN least AND greatest` leaves."""
        first, last = least // ROWS, min(greatest // ROWS, self.files - 1)
        wanted = (day - FIRST_DAY).days
        numbers = range(first + (wanted - first) % DAYS, last + 1, DAYS)
        return sorted(path_of(number, self._named(number)) for number in numbers)

    def _named(self, number: int) -> int:
        """The number in the name of the live file that has the rows of a file."""
        replacement, other = divmod(number, self._stride)
        replaced = other == 0 and replacement < self.tail_commits * self.actions_per_commit
        return self.files + replacement if replaced else number

    @property
    def _stride(self) -> int:
        return max(1, self.files // (self.tail_commits * self.actions_per_commit))

    def _write_classic(self, spark: SparkSession, log: Path) -> None:
        opening = spark.createDataFrame(
            [(json.dumps(action),) for action in self._opening()], "action STRING"
        )
        first = opening.select(F.from_json("action", _TABLE_ACTIONS).alias("a")).select("a.*")
        numbers = _numbers(spark, self.files).coalesce(1).sortWithinPartitions(F.xxhash64("n"))
        adds = add_actions(with_path(numbers), self.statistics)
        rows = first.unionByName(adds, allowMissingColumns=True).coalesce(1)
        (part,) = _write_parts(rows, log.parent / "parts")
        part.rename(log / f"{CHECKPOINT_VERSION:020}.checkpoint.parquet")
        shutil.rmtree(log.parent / "parts")

    def _write_sidecars(self, spark: SparkSession, log: Path) -> None:
        # Numbers are shuffled, not actions: those are made where they are written.
        numbers, options = _numbers(spark, self.files), {}
        if self.layout == "sorted":
            order = [F.col("n") % DAYS, F.col("n")]
            options["parquet.block.size"] = str(SORTED_ROW_GROUP_BYTES)
            numbers = numbers.repartitionByRange(self.sidecars, *order)
        else:
            order = [F.xxhash64("n")]
            numbers = numbers.repartition(self.sidecars, *order)
        files = with_path(numbers.sortWithinPartitions(*order))
        rows = add_actions(files, self.statistics)
        parts = _write_parts(rows, log.parent / "parts", options)
        directory = log / "_sidecars"
        directory.mkdir()
        written = [part.rename(directory / f"{uuid.uuid4()}.parquet") for part in parts]
        shutil.rmtree(log.parent / "parts")
        schema = spark.read.parquet(str(written[0])).schema.json()
        tags = {"sidecarFileSchema": schema}  # as delta-spark does
        top = [
            {"checkpointMetadata": {"version": CHECKPOINT_VERSION, "tags": tags}},
            *self._opening(),
        ]
        for file in written:
            size, modified = file.stat().st_size, file.stat().st_mtime_ns // 1_000_000
            sidecar = {"path": file.name, "sizeInBytes": size, "modificationTime": modified}
            top.append({"sidecar": sidecar})
        write_lines(
            log / f"{CHECKPOINT_VERSION:020}.checkpoint.{uuid.uuid4()}.json", as_json_lines(top)
        )

    def _write_tail(self, spark: SparkSession, log: Path) -> None:
        count, each = self.tail_commits * self.actions_per_commit, self.actions_per_commit
        assert count <= self.files
        of_old = f"id * {self._stride}"
        replaced = _numbers(spark, count, n=of_old, named=of_old)
        replacing = _numbers(spark, count, n=of_old, named=f"id + {self.files}")
        adds = as_lines(add_actions(with_path(replacing), "json", data_change=True))
        removes = as_lines(remove_actions(with_path(replaced)))
        for commit in range(self.tail_commits):
            part = slice(commit * each, (commit + 1) * each)
            lines = [*as_json_lines([COMMIT_INFO]), *adds[part], *removes[part]]
            write_lines(log / f"{CHECKPOINT_VERSION + 1 + commit:020}.json", lines)

    def _opening(self) -> list[dict[str, Any]]:
        configuration = {
            "delta.checkpoint.writeStatsAsJson": str(self.statistics in ("json", "both")).lower(),
            "delta.checkpoint.writeStatsAsStruct": str(self.statistics != "json").lower(),
        }
        if self.layout == "classic":
            return opening_actions(configuration)
        return opening_actions(configuration | {"delta.checkpointPolicy": "v2"}, "v2Checkpoint")


def large_log(files: int) -> CheckpointedLog:
    """A log with sorted sidecars and ten commits of up to 1,000 files each."""
    return CheckpointedLog(
        layout="sorted",
        statistics="both",
        files=files,
        sidecars=8,
        tail_commits=LARGE_TAIL,
        actions_per_commit=min(1_000, files // 100),
    )


def write_commits(
    spark: SparkSession, root: Path, *, commits: int, files_per_commit: int = 1
) -> list[str]:
    """A table whose log is nothing but commits that add files; the paths of the commits."""
    log = root / "_delta_log"
    log.mkdir(parents=True)
    files = with_path(_numbers(spark, commits * files_per_commit))
    adds = as_lines(add_actions(files, "json", data_change=True))
    paths = []
    for version in range(commits):
        first = as_json_lines([COMMIT_INFO, *(opening_actions({}) if version == 0 else [])])
        part = slice(version * files_per_commit, (version + 1) * files_per_commit)
        paths.append(log / f"{version:020}.json")
        write_lines(paths[-1], [*first, *adds[part]])
    return [str(path) for path in paths]


_TABLE_ACTIONS = (
    "protocol STRUCT<minReaderVersion: INT, minWriterVersion: INT>, "
    "metaData STRUCT<id: STRING, format: STRUCT<provider: STRING, "
    "options: MAP<STRING, STRING>>, schemaString: STRING, partitionColumns: ARRAY<STRING>, "
    "configuration: MAP<STRING, STRING>, createdTime: BIGINT>"
)
COMMIT_INFO = {"commitInfo": {"timestamp": TIME, "operation": "UPDATE", "engineInfo": "benchmark"}}


def opening_actions(
    configuration: dict[str, str], *features: str, writer_only: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The protocol and the metadata of a log."""
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if features:
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(features),
            "writerFeatures": [*features, *writer_only],
        }
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_string(),
        "partitionColumns": [PARTITION],
        "configuration": configuration,
        "createdTime": TIME,
    }
    return [{"protocol": protocol}, {"metaData": metadata}]


def _numbers(spark: SparkSession, count: int, *, n: str = "id", named: str = "id") -> DataFrame:
    return spark.range(count).selectExpr(f"{n} AS n", f"{named} AS named")


def _write_parts(
    frame: DataFrame, directory: Path, options: dict[str, str] | None = None
) -> list[Path]:
    # Timestamps as INT96 have no bounds in the footer.
    fixed = {"outputTimestampType": "TIMESTAMP_MICROS", "compression": "snappy"}
    frame.write.options(**fixed, **(options or {})).parquet(str(directory))
    return sorted(directory.glob("*.parquet"))


def as_json_lines(actions: Iterable[Mapping[str, Any]]) -> list[str]:
    """The actions as lines of a commit."""
    return [json.dumps(action, separators=(",", ":")) for action in actions]


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write a commit or a checkpoint in JSON."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
