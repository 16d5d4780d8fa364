"""Values at the limits of their types are found by the statistics that were written with them, and
by those of a checkpoint: no file that holds a matching row is left out.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from random import Random

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import load_snapshot, write_checkpoint, write_delta
from sparkdelta.base.predicates.condition_text import parse_condition
from sparkdelta.base.predicates.predicate_rules import without_not
from sparkdelta.base.predicates.value_lists import with_value_lists
from sparkdelta.base.skipping.data_skipping_frames import DataSkipping, StoredFacts
from sparkdelta.table.snapshot.snapshot import Snapshot
from tests.properties.limits import FILES, conditions, rows


def _keeps(text: str, snapshot: Snapshot, stored: StoredFacts) -> Column:
    configuration = snapshot.configuration
    parsed = parse_condition(text, configuration.schema, time_zone="UTC")
    predicate = with_value_lists(without_not(parsed), configuration.schema)
    skipping = DataSkipping.of(
        predicate,
        configuration.schema,
        configuration.partition_columns,
        column_mapping=configuration.column_mapping,
    )
    known = [c for c in (skipping.pushed(stored), skipping.by_statistics(stored)) if c is not None]
    return F.expr(" AND ".join(f"coalesce({condition}, FALSE)" for condition in known or ["TRUE"]))


def matching(frame: DataFrame, texts: list[str]) -> dict[int, list[bool]]:
    """Flags by file: for each condition, true if one of the file's rows matches it."""
    matches = F.array(*(F.max(F.expr(f"coalesce({text}, FALSE)")) for text in texts))
    return {row[0]: row[1] for row in frame.groupBy("file").agg(matches).collect()}


def kept(spark: SparkSession, path: str, texts: list[str]) -> dict[int, list[bool]]:
    """Flags by file: for each condition, true if it keeps the file."""
    snapshot = load_snapshot(spark, path)
    adds, stored = snapshot.state.adds_as_stored()
    columns = F.array(*(_keeps(text, snapshot, stored) for text in texts))
    found = adds.select(F.col("partitionValues")["file"].cast("int"), columns).collect()
    return {row[0]: row[1] for row in found}


@pytest.mark.full
def test_no_matching_file_is_left_out(spark: SparkSession, table_path: str) -> None:
    random = Random(0)
    frame, texts = spark.sql(rows(random)), conditions(random, 6)
    wanted = matching(frame, texts)
    write_delta(
        frame, table_path, partition_by=["file"],
        properties={"delta.checkpoint.writeStatsAsStruct": "true"},
    )  # fmt: skip
    found = {"the commit": kept(spark, table_path, texts)}
    write_checkpoint(spark, table_path)
    found["the checkpoint"] = kept(spark, table_path, texts)
    for source, files in found.items():
        assert len(files) == FILES
        lost = [
            (source, text, file)
            for file in files
            for text, matches, keeps in zip(texts, wanted[file], files[file], strict=True)
            if matches and not keeps
        ]
        assert lost == []
        dropped = sum(not keeps for keeps_ in files.values() for keeps in keeps_)
        assert dropped > FILES * len(texts) / 4, "hardly anything is left out"
