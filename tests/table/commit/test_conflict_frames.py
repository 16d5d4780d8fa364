"""Conflicts over files: values (`table.commit.conflict_rules`) and rows
(`table.commit.conflict_frames`).
"""

from __future__ import annotations

from functools import reduce
from itertools import product

import pytest
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from sparkdelta.base.predicates.predicate_rules import And, Column, Comparison, IsNull, Literal
from sparkdelta.base.protocol.action_lines import action_line
from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile
from sparkdelta.base.protocol.file_paths import canonical_path
from sparkdelta.base.schema.action_schemas import actions as action_types
from sparkdelta.base.skipping.data_skipping_frames import DataSkipping
from sparkdelta.table.commit.conflict_frames import CONFLICT, SUBJECT, conflicting_files
from sparkdelta.table.commit.conflict_rules import ReadSet, WinningCommit, file_conflicts
from tests.support.drawn import drawn

ROOT = "file:/t"
SCHEMA = StructType([StructField("p", IntegerType()), StructField("v", LongType())])
TYPES = {"p": ("p", "integer")}
P, V = Column(("p",)), Column(("v",))
PREDICATES = (
    And((Comparison("=", P, Literal(1, "int")), Comparison("=", V, Literal(7, "int")))),
    IsNull(P),
)
READ = frozenset({("a b", None), ("file:/u/x", "uv@1")})
REMOVED = frozenset({("c%", None), ("a b", "uw@1")})

PATHS = st.sampled_from(["a%20b", "a b", "c%25", "c%2525", "d", "file:///u/x", "/u/x", "u/x"])
VECTORS = st.none() | st.just(DeletionVectorDescriptor("u", "v", 1, 1, 1))
ADDS = st.builds(
    AddFile,
    PATHS,
    st.fixed_dictionaries({"p": st.sampled_from([None, "", "1", "01", "2"])}),
    st.just(1),
    st.just(1),
    st.booleans(),
)
REMOVES = st.builds(RemoveFile, PATHS, st.just(1), st.booleans(), deletion_vector=VECTORS)


@pytest.mark.full
def test_the_same_is_found(spark: SparkSession) -> None:
    """PROTOCOL.md#add-file-and-remove-file"""
    commits = drawn(st.lists(ADDS | REMOVES, max_size=3), 6)
    kinds = [(*kind, n % 3 == 0) for n, kind in enumerate(product((False, True), repeat=2))]
    # reads all, blind append, leaves rows
    examples = [(files, *kinds[n % len(kinds)]) for n, files in enumerate(commits)]
    no_match = AddFile("d", {"p": "2"}, 1, 1, True)
    examples.append(([no_match], True, False, False))
    lines = [(n, action_line(file)) for n, (files, *_) in enumerate(examples) for file in files]
    typed = spark.createDataFrame(lines, "example INT, line STRING").select(
        "example", F.from_json("line", action_types("add", "remove")).alias("a")
    )
    skipping = [DataSkipping.of(predicate, SCHEMA, ["p"]) for predicate in PREDICATES]
    read, removed = (
        F.broadcast(spark.createDataFrame([(path,) for path, _ in keys], "key STRING"))
        for keys in (READ, REMOVED)
    )

    def found(n: int) -> DataFrame:
        _, whole, blind, leaves = examples[n]
        findings = conflicting_files(
            typed.filter(F.col("example") == n).select("a.*").coalesce(1),
            reads_whole_table=whole,
            leaves_rows=leaves,
            skipping=skipping,
            read_files=read,
            removed_files=removed,
            is_blind_append=blind,
            table_root=ROOT,
        )
        return findings.select(F.lit(n).alias("example"), CONFLICT, SUBJECT)

    rows = reduce(DataFrame.unionAll, map(found, range(len(examples)))).collect()
    seen = set()
    for n, (files, whole, blind, leaves) in enumerate(examples):
        winner = WinningCommit(
            1,
            commit_info={"isBlindAppend": blind},
            adds=tuple(file for file in files if isinstance(file, AddFile)),
            removes=tuple(file for file in files if isinstance(file, RemoveFile)),
        )
        wanted = file_conflicts(
            winner,
            read=ReadSet(PREDICATES, READ, whole, leaves),
            removes=REMOVED,
            partition_types=TYPES,
            table_root=ROOT,
        )
        mine = [(row[CONFLICT], row[SUBJECT]) for row in rows if row["example"] == n]
        assert sorted(name for name, _ in mine) == sorted(f.name for f in wanted), files
        touched = {canonical_path(file.path, ROOT) for file in files}
        assert all(canonical_path(subject, ROOT) in touched for _, subject in mine)
        seen |= set(wanted)
    assert len(seen) == 3
