"""Logs of up to a billion files, with checkpoints of about nine bytes for each of them.

File `n` of `files` has the ids from `n * ROWS`, and every day has as many files; so sidecars are
sorted by day and id, as sparkdelta sorts them. Names count up instead of being random: a sidecar of
100,000 files takes 1 MB instead of 5.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from sparkdelta.operations.checkpoint.checkpoint_options import ADDS_PER_SIDECAR
from sparkdelta.table.checkpoint.sidecar_tag_rules import SidecarTags
from tests.benchmarks.file_actions import BYTES, DAYS, FEW, FIRST_DAY, PARTITION, ROWS, TIME
from tests.benchmarks.logs import (
    CHECKPOINT_VERSION,
    COMMIT_INFO,
    as_json_lines,
    opening_actions,
    write_lines,
)
from tests.benchmarks.tagged_sidecars import checkpoint_contents, write_tags

_COMMITS = 10
_BOUNDS = "minValues", "maxValues"
_CONFIGURATION = {
    "delta.checkpoint.writeStatsAsJson": "false",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpointInterval": "1000",
    "delta.dataSkippingStatsColumns": ",".join(FEW),
    "delta.enableChangeDataFeed": "true",
}


@dataclass(frozen=True, slots=True)
class GrowthLog:
    """A log with a V2 checkpoint at version 10, and ten commits after it that replace up to 10,000
    files that lie together: most of one day, if a day has so many.
    """

    files: int

    @property
    def replaced(self) -> range:
        """The numbers of the files that the commits replace."""
        count = min(10_000, self.files // 10)
        middle = self.files // 2
        return range(middle, middle + count)

    def day_of(self, number: int) -> date:
        """The partition of a file."""
        return FIRST_DAY + timedelta(days=number * DAYS // self.files)

    def write_once(self, spark: SparkSession, directory: Path) -> Path:
        """Make the table below `directory`, unless an earlier run has made it there."""
        root = directory / f"growth-{self.files}"
        unfinished = root.with_suffix(".unfinished")
        if not root.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            (unfinished / "_delta_log" / "_sidecars").mkdir(parents=True)
            self._write(spark, unfinished)
            unfinished.rename(root)
        return root

    def _write(self, spark: SparkSession, root: Path) -> None:
        log = root / "_delta_log"
        sidecars = self._write_sidecars(spark, log / "_sidecars")
        schema = spark.read.parquet(str(log / "_sidecars" / sidecars[0]["path"])).schema.json()
        metadata = {"version": CHECKPOINT_VERSION, "tags": {"sidecarFileSchema": schema}}
        opening = opening_actions(_CONFIGURATION, "v2Checkpoint", writer_only=("changeDataFeed",))
        actions = [
            {"checkpointMetadata": metadata},
            *opening,
            *({"sidecar": sidecar} for sidecar in sidecars),
        ]
        name = f"{CHECKPOINT_VERSION:020}.checkpoint.{uuid.uuid4()}.json"
        write_lines(log / name, as_json_lines(actions))
        hint = {"version": CHECKPOINT_VERSION, "size": self.files + len(sidecars) + 3}
        (log / "_last_checkpoint").write_text(json.dumps(hint), encoding="utf-8")
        fingerprint = checkpoint_contents(spark, root, CHECKPOINT_VERSION).fingerprint
        tags = {
            sidecar["path"]: self._tags(number, fingerprint)
            for number, sidecar in enumerate(sidecars)
        }
        write_tags(root, CHECKPOINT_VERSION, tags)
        each = len(self.replaced) // _COMMITS
        for commit in range(_COMMITS):
            numbers = self.replaced[commit * each : (commit + 1) * each]
            lines = as_json_lines([COMMIT_INFO, *self._replacements(numbers)])
            write_lines(log / f"{CHECKPOINT_VERSION + 1 + commit:020}.json", lines)

    def _tags(self, sidecar: int, fingerprint: str) -> SidecarTags:
        numbers = self._numbers(sidecar)
        days = str(self.day_of(numbers[0])), str(self.day_of(numbers[-1]))
        # Both bounds of the second column take every value in a hundred files in a row.
        ends = (numbers[0] * ROWS, 0), (numbers[-1] * ROWS + ROWS - 1, 999)
        values = {
            "numRecords": len(numbers),
            **{kind: {PARTITION: day} for kind, day in zip(_BOUNDS, days, strict=True)},
            "nullCount": {PARTITION: 0},
        }
        statistics = {
            "numRecords": len(numbers) * ROWS,
            **{
                kind: dict(zip(FEW, end, strict=True))
                for kind, end in zip(_BOUNDS, ends, strict=True)
            },
            "nullCount": dict.fromkeys(FEW, 0),
        }
        return SidecarTags(
            num_adds=len(numbers),
            num_removes=0,
            fingerprint=fingerprint,
            partition_values=json.dumps(values, separators=(",", ":")),
            statistics=json.dumps(statistics, separators=(",", ":")),
            add_bytes=len(numbers) * BYTES,
        )

    def _numbers(self, sidecar: int) -> range:
        first = sidecar * ADDS_PER_SIDECAR
        return range(first, min(first + ADDS_PER_SIDECAR, self.files))

    def _write_sidecars(self, spark: SparkSession, directory: Path) -> list[dict[str, Any]]:
        files, place = self.files, str(directory)

        def write(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for first in (number * ADDS_PER_SIDECAR for part in parts for number in part["id"]):
                adds = _adds(np.arange(first, min(first + ADDS_PER_SIDECAR, files)), files)
                path = Path(place) / f"{uuid.uuid4()}.parquet"
                pq.write_table(adds, path, compression="zstd", write_page_index=True)
                found = path.stat()
                row = (path.name, found.st_size, found.st_mtime_ns // 1_000_000)
                yield pd.DataFrame([row], columns=["path", "sizeInBytes", "modificationTime"])

        count = -(-files // ADDS_PER_SIDECAR)
        rows = spark.range(0, count, 1, min(count, 500)).mapInPandas(
            write, "path STRING, sizeInBytes BIGINT, modificationTime BIGINT"
        )
        return [row.asDict() for row in rows.collect()]

    def _replacements(self, numbers: range) -> Iterator[dict[str, Any]]:
        for number in numbers:
            day = str(self.day_of(number))
            values = {"partitionValues": {PARTITION: day}, "size": BYTES, "dataChange": True}
            path, replacement = _path(day, number), _path(day, self.files + number)
            first, quantities = number * ROWS, _quantities(number)
            stats = {
                "numRecords": ROWS,
                "minValues": {"id": first, "quantity": quantities[0]},
                "maxValues": {"id": first + ROWS - 1, "quantity": quantities[1]},
                "nullCount": {"id": 0, "quantity": 0},
            }
            yield {
                "remove": {
                    "path": path,
                    "deletionTimestamp": TIME,
                    "extendedFileMetadata": True,
                    **values,
                }
            }
            yield {
                "add": {
                    "path": replacement,
                    "modificationTime": TIME,
                    "stats": json.dumps(stats),
                    **values,
                }
            }


def _path(day: str, number: int) -> str:
    return f"{PARTITION}={day}/part-{number:012}.c000.zstd.parquet"


def _quantities(number: Any) -> tuple[Any, Any]:
    """The bounds of the second column of a file, or of each file of an array."""
    return number * 7919 % 50, 950 + number * 104_729 % 50


def _adds(numbers: np.ndarray[Any, np.dtype[np.int64]], files: int) -> pa.Table:
    """The adds of the files, in one column `add` as sparkdelta and delta-spark write it."""
    count = len(numbers)
    ordinals = numbers * DAYS // files
    days = pa.array(np.datetime64(FIRST_DAY) + np.arange(DAYS)).take(pa.array(ordinals))
    texts = days.cast(pa.string())
    padded = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width=12, padding="0")
    paths = pc.binary_join_element_wise(
        f"{PARTITION}=", texts, "/part-", padded, ".c000.zstd.parquet", ""
    )
    values = pa.MapArray.from_arrays(
        pa.array(np.arange(count + 1, dtype=np.int32)), pa.repeat(PARTITION, count), texts
    )
    first = numbers * ROWS
    least, greatest = _quantities(numbers)

    def pair(ids: pa.Array, quantities: pa.Array) -> pa.StructArray:
        return pa.StructArray.from_arrays([ids, quantities], ["id", "quantity"])

    zeros = pa.repeat(0, count)
    statistics = {
        "numRecords": pa.repeat(ROWS, count),
        "minValues": pair(pa.array(first), pa.array(least.astype(np.int32))),
        "maxValues": pair(pa.array(first + ROWS - 1), pa.array(greatest.astype(np.int32))),
        "nullCount": pair(zeros, zeros),
    }
    vector = pa.struct(
        {
            "storageType": pa.string(),
            "pathOrInlineDv": pa.string(),
            "offset": pa.int32(),
            "sizeInBytes": pa.int32(),
            "cardinality": pa.int64(),
        }
    )
    fields = {
        "path": paths,
        "partitionValues": values,
        "size": pa.repeat(BYTES, count),
        "modificationTime": pa.repeat(TIME, count),
        "dataChange": pa.repeat(False, count),
        "tags": pa.nulls(count, pa.map_(pa.string(), pa.string())),
        "deletionVector": pa.nulls(count, vector),
        "partitionValues_parsed": pa.StructArray.from_arrays([days], [PARTITION]),
        "stats_parsed": pa.StructArray.from_arrays([*statistics.values()], [*statistics]),
    }
    return pa.table({"add": pa.StructArray.from_arrays([*fields.values()], [*fields])})
