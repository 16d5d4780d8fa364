"""Fresh row ids of values (`base.protocol.row_ids`) and of rows (`table.commit.row_id_frames`)."""

from __future__ import annotations

import json
from itertools import accumulate

import pytest
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.action_lines import action_line
from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.base.protocol.row_ids import with_row_ids as with_row_ids_of_values
from sparkdelta.base.schema.action_schemas import actions as action_types
from sparkdelta.table.commit.row_id_frames import FIRST_ROW_IDS, new_row_totals, with_row_ids
from sparkdelta.table.log.commit_line_frames import conformed_actions
from tests.support.drawn import drawn
from tests.support.errors import raises

MARK, VERSION = 41, 7
STATS = ['{"numRecords":0}', '{"numRecords":3}', '{"numRecords":20,"tightBounds":true}']
NO_COUNT = [None, "{}", '{"numRecords":null}', '{"numRecords":-1}', "{"]

COUNTS = [0, 3, 0, 1, 7, 2, 5, 1]


def test_the_files_of_a_group_follow_each_other(spark: SparkSession) -> None:
    """Writer Requirements for Row Tracking: in an order that does not depend on who has them."""
    stats = F.concat(F.lit('{"numRecords":'), F.lit(COUNTS)[F.col("id")], F.lit("}"))
    plain = spark.range(len(COUNTS)).select(
        F.struct(F.concat(F.lit("f"), "id").alias("path"), stats.alias("stats")).alias("add")
    )
    gone = spark.range(3).select(F.struct(F.concat(F.lit("g"), "id").alias("path")).alias("remove"))
    both = plain.unionByName(gone, allowMissingColumns=True)
    frame = conformed_actions(both, both.schema)
    found = []
    for partitions in (1, 3):
        actions = frame.repartition(partitions, F.rand(partitions))
        totals = {r["group"]: r["num_rows"] for r in new_row_totals(actions, groups=3).collect()}
        assert len(totals) == 3
        assert sum(totals.values()) == sum(COUNTS)
        first = list(zip(totals, accumulate(totals.values(), initial=100), strict=False))
        numbered = with_row_ids(
            actions, spark.createDataFrame(sorted(first), FIRST_ROW_IDS), version=4, groups=3
        )
        rows = numbered.collect()
        assert sum(row["remove"] is not None for row in rows) == 3
        adds = [row["add"] for row in rows if row["add"] is not None]
        assert {add["defaultRowCommitVersion"] for add in adds} == {4}
        ordered = sorted(
            adds, key=lambda add: (add["baseRowId"], json.loads(add["stats"])["numRecords"])
        )
        values = [AddFile(add["path"], {}, 1, 1, True, add["stats"]) for add in ordered]
        wanted, mark = with_row_ids_of_values(values, mark=99, version=4, path="t")
        assert mark == 99 + sum(COUNTS)
        assert [add["baseRowId"] for add in ordered] == [add.base_row_id for add in wanted]
        by_group = sorted(first)
        found.append({a["path"]: a["baseRowId"] - dict(by_group)[g] for a, g in zip(
            adds, [r["g"] for r in spark.createDataFrame([(a["path"],) for a in adds], "p STRING")
                   .selectExpr("pmod(xxhash64(p), 3) AS g").collect()], strict=True)})  # fmt: skip
    assert found[0] == found[1]


def commits(stats: list[str | None]) -> st.SearchStrategy[list[AddFile]]:
    """Adds of different files in the order of their paths, some with row ids of their own."""

    def named(adds: list[tuple[str | None, int | None]]) -> list[AddFile]:
        return [
            AddFile(f"f{n}", {}, 1, 1, True, text, base_row_id=base)
            for n, (text, base) in enumerate(adds)
        ]

    add = st.tuples(st.sampled_from(stats), st.sampled_from([None, None, 0, 5]))
    return st.lists(add, max_size=6).map(named)


@pytest.mark.parametrize("stats", NO_COUNT)
@pytest.mark.every_case
def test_a_file_without_a_number_of_rows_is_uncounted(
    spark: SparkSession, stats: str | None
) -> None:
    """Writer Requirements for Row Tracking"""
    line = action_line(AddFile("f", {}, 1, 1, True, stats))
    rows = spark.createDataFrame([(line,)], "line STRING")
    plain = rows.select(F.from_json("line", action_types("add", "remove")).alias("a")).select("a.*")
    totals = new_row_totals(conformed_actions(plain, plain.schema), groups=1)
    assert [row["uncounted"] for row in totals.collect()] == ["f"]


@pytest.mark.full
def test_a_group_of_rows_is_numbered_as_values_are(spark: SparkSession) -> None:
    """Writer Requirements for Row Tracking"""
    examples = [*drawn(commits([*STATS]), 4), *drawn(commits([*STATS, *NO_COUNT]), 3)]
    lines = [(n, action_line(add)) for n, adds in enumerate(examples) for add in adds]
    typed = spark.createDataFrame(lines, "example INT, line STRING").select(
        "example", F.from_json("line", action_types("add", "remove")).alias("a")
    )
    first = spark.createDataFrame([(0, MARK + 1)], FIRST_ROW_IDS)

    def outcome(n: int) -> DataFrame:
        plain = typed.filter(F.col("example") == n).select("a.*").coalesce(1)
        actions = conformed_actions(plain, plain.schema)
        totals = new_row_totals(actions, groups=1).selectExpr(
            f"{n} AS example", "num_rows", "uncounted", "NULL AS path", "NULL AS id", "NULL AS v"
        )
        numbered = with_row_ids(actions, first, version=VERSION, groups=1).selectExpr(
            f"{n}", "NULL", "NULL", "add.path", "add.baseRowId", "add.defaultRowCommitVersion"
        )
        return totals.unionAll(numbered)

    every = outcome(0)
    for n in range(1, len(examples)):
        every = every.unionAll(outcome(n))
    rows = every.collect()
    for n, adds in enumerate(examples):
        mine = [row for row in rows if row["example"] == n]
        totals = [row for row in mine if row["path"] is None]
        assert len(totals) == any(add.base_row_id is None for add in adds)
        if any(row["uncounted"] for row in totals):
            with raises("DELTA_INVALID_COMMIT"):
                with_row_ids_of_values(adds, mark=MARK, version=VERSION, path="t")
            continue
        wanted, mark = with_row_ids_of_values(adds, mark=MARK, version=VERSION, path="t")
        assert sum(row["num_rows"] for row in totals) == mark - MARK
        assert {row["path"]: (row["id"], row["v"]) for row in mine if row["path"]} == {
            add.path: (add.base_row_id, add.default_row_commit_version) for add in wanted
        }
