"""The change of file totals by values (`table.commit.checksum_step_rules`) and by rows
(`table.checksum.version_checksum_frames`).
"""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.action_lines import action_line
from sparkdelta.base.protocol.actions import Metadata, Protocol
from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile
from sparkdelta.base.protocol.file_totals import DELETED_BOUNDARIES, FileBin, FileTotals
from sparkdelta.base.schema.action_schemas import actions as action_types
from sparkdelta.table.checksum.version_checksum_frames import changed_bins
from sparkdelta.table.checksum.version_checksum_rules import VersionChecksum
from sparkdelta.table.commit.checksum_step_rules import checksum_after
from sparkdelta.table.commit.conflict_rules import WinningCommit
from tests.support.drawn import drawn

ROOT = "file:/t"
BOUNDARIES = (0, 8, 100)
MANY = FileTotals.of(
    [
        FileBin(size, deleted, 1_000, 1_000_000, 500, 10**12)
        for size in range(len(BOUNDARIES))
        for deleted in range(len(DELETED_BOUNDARIES))
    ],
    BOUNDARIES,
)
"""More of everything than a commit takes out."""
BEFORE = VersionChecksum(
    protocol=Protocol(3, 7, ("deletionVectors",), ("deletionVectors",)),
    metadata=Metadata("id", schema_string="{}"),
).with_totals(MANY)

PATHS = st.sampled_from(["a", "%61", "b", "file:/t/../a", "c d", "c%20d", "e", "f", "g", "h"])
SIZES = st.sampled_from([0, 7, 8, 99, 100, 10**6])
VECTORS = st.none() | st.builds(
    DeletionVectorDescriptor,
    st.just("u"),
    st.sampled_from(["v", "w"]),
    st.sampled_from([None, 1]),
    st.just(1),
    st.sampled_from([0, 9, 10, 2**31 - 1]),
)
ADDS = st.builds(
    AddFile, PATHS, st.just({}), SIZES, st.just(1), st.just(True), deletion_vector=VECTORS
)
REMOVES = st.builds(
    RemoveFile,
    PATHS,
    st.just(1),
    st.just(True),
    size=SIZES | SIZES | st.none(),
    deletion_vector=VECTORS,
)
COMMITS = st.lists(ADDS | REMOVES, max_size=4)


VECTOR = DeletionVectorDescriptor("u", "v", 1, 1, 9)


def _remove(vector: DeletionVectorDescriptor | None = None) -> RemoveFile:
    return RemoveFile("a", 1, True, size=99, deletion_vector=vector)


BY_HAND: list[list[AddFile | RemoveFile]] = [
    [_remove(VECTOR)],
    [_remove(), AddFile("a", {}, 99, 1, True, deletion_vector=VECTOR)],
    [_remove(VECTOR), AddFile("a", {}, 99, 1, True, deletion_vector=VECTOR)],
]
"""A file that is removed, one that gets a deletion vector, and one that is written again."""


@pytest.mark.full
def test_totals_change_alike(spark: SparkSession) -> None:
    """PROTOCOL.md#version-checksum-file-schema"""
    examples = [*BY_HAND, *drawn(COMMITS, 8)]
    lines = [(n, action_line(file)) for n, files in enumerate(examples) for file in files]
    typed = spark.createDataFrame(lines, "example INT, line STRING").select(
        "example", F.from_json("line", action_types("add", "remove")).alias("a")
    )

    def changed(n: int) -> DataFrame:
        actions = typed.filter(F.col("example") == n).select("a.*").coalesce(1)
        bins = changed_bins(actions, table_root=ROOT, size_boundaries=BOUNDARIES)
        return bins.withColumn("example", F.lit(n))

    rows = reduce(DataFrame.unionAll, map(changed, range(len(examples)))).collect()
    told = 0
    for n, files in enumerate(examples):
        mine = [row for row in rows if row["example"] == n]
        bins = [FileBin(*row[:6]) for row in mine]
        commit = WinningCommit(
            1,
            commit_info={"operation": "WRITE"},
            adds=tuple(file for file in files if isinstance(file, AddFile)),
            removes=tuple(file for file in files if isinstance(file, RemoveFile)),
        )
        after = checksum_after(BEFORE, commit, table_root=ROOT)
        assert (after is not None) == all(row["is_plain"] for row in mine), files
        if after is not None:
            told += 1
            assert after.totals == MANY.plus(FileTotals.of(bins, BOUNDARIES)), files
    assert 0 < told < len(examples)
