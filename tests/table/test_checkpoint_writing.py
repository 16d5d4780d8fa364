"""Checkpoints that are written: what they hold, how they are named, and what a crash leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, write_checkpoint
from sparkdelta.commands.checkpoint import checkpoint
from sparkdelta.protocol.last_checkpoint import parse_last_checkpoint
from tests.support.log_writer import log_directory, write_commit
from tests.support.reference_model import replay
from tests.support.snapshots import expected, replayed
from tests.support.table_builder import add, field, metadata, protocol, remove
from tests.table.histories import COMMITS, write_history

LAST = 6
NOW = 1_700_000_000_000
"""Long after every tombstone of the history, so a retention of ages keeps them."""
KINDS = ["classic", "v2-classic", "v2-json", "v2-parquet"]
KEEP = {"delta.deletedFileRetentionDuration": "interval 5000 weeks"}


def write_kept_history(table: Path, **configuration: str) -> None:
    """The history, with nothing expired."""
    write_history(table)
    kept = {**KEEP, **configuration}
    for version in (0, 4):
        actions = [
            {"metaData": {**a["metaData"], "configuration": kept}} if "metaData" in a else a
            for a in COMMITS[version]
        ]
        write_commit(table, version, actions)


def only_checkpoint(table: Path, version: int) -> None:
    """Leave nothing of the log that the checkpoint of a version replaces."""
    for file in log_directory(table).glob("*.json"):
        if "checkpoint" not in file.name and int(file.name[:20]) <= version:
            file.unlink()


def names(table: Path) -> list[str]:
    """The files of the log but for commits."""
    log = log_directory(table)
    files = (file for file in log.rglob("*") if file.is_file())
    return sorted(
        str(file.relative_to(log)) for file in files if len(file.name) != len(f"{0:020d}.json")
    )


@pytest.mark.parametrize("layout", ["clustered", "hash"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_holds_the_whole_state(
    spark: SparkSession, table: Path, kind: str, layout: Any
) -> None:
    """PROTOCOL.md#action-reconciliation"""
    write_kept_history(table)
    written = checkpoint(spark, str(table), kind=kind, layout=layout, now_ms=NOW)
    state = replay(COMMITS, until=LAST)
    assert (written.num_adds, written.num_removes) == (len(state.adds), len(state.removes))
    only_checkpoint(table, LAST)
    snapshot = load_snapshot(spark, str(table))
    assert snapshot.segment.checkpoint is not None
    assert [file.name for file in snapshot.segment.checkpoint.files] == [written.file]
    assert replayed(snapshot) == expected(state)
    assert len(snapshot.log.sidecars) == written.num_sidecars == (0 if kind == "classic" else 2)


