"""Tags that sparkdelta gives to sidecars, for a checkpoint that was made without."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from sparkdelta.operations.checkpoint.checkpoint_contents import CheckpointContents
from sparkdelta.operations.checkpoint.checkpoint_options import CheckpointOptions
from sparkdelta.table.checkpoint.sidecar_summary_frames import sidecar_summaries, summarized_type
from sparkdelta.table.checkpoint.sidecar_tag_rules import SidecarTags
from sparkdelta.table.snapshot.snapshot import open_snapshot
from tests.benchmarks.logs import as_json_lines, write_lines


def tag_sidecars(spark: SparkSession, root: Path, version: int) -> None:
    """Tag the sidecars of a V2 checkpoint in JSON that are sorted as sparkdelta sorts them, so that
    the next checkpoint need not write them again. Those of ten million files would take minutes.
    """
    write_tags(root, version, summarized_tags(spark, root, version))


def summarized_tags(spark: SparkSession, root: Path, version: int) -> dict[str, SidecarTags]:
    """The tags of each sidecar, from its rows."""
    contents = checkpoint_contents(spark, root, version)
    files = spark.read.schema(summarized_type(contents.order)).parquet(
        str(root / "_delta_log" / "_sidecars")
    )
    name = files.metadataColumn("_metadata")["file_name"]
    return {
        row.file: SidecarTags(
            num_adds=row.num_adds,
            num_removes=row.num_removes,
            fingerprint=contents.fingerprint,
            partition_values=row.partition_values,
            statistics=row.statistics,
            add_bytes=row.add_bytes,
        )
        for row in sidecar_summaries(files, name, contents.order).collect()
    }


def checkpoint_contents(spark: SparkSession, root: Path, version: int) -> CheckpointContents:
    """The contents that sparkdelta would give to the checkpoint."""
    snapshot = open_snapshot(spark, str(root), version=version)
    return CheckpointContents.of(snapshot, CheckpointOptions(), now_ms=time.time_ns() // 1_000_000)


def write_tags(root: Path, version: int, tags: Mapping[str, SidecarTags]) -> None:
    """Write the tags of each sidecar, by its name, into the checkpoint."""
    [checkpoint] = (root / "_delta_log").glob(f"{version:020}.checkpoint.*.json")
    actions = [json.loads(line) for line in checkpoint.read_text(encoding="utf-8").splitlines()]
    for sidecar in (action["sidecar"] for action in actions if "sidecar" in action):
        sidecar["tags"] = tags[sidecar["path"]].as_tags()
    write_lines(checkpoint, as_json_lines(actions))
