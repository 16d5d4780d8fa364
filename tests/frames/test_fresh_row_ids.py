"""Row ids of many files, against those that the same rule gives to values."""

from __future__ import annotations

import json
from itertools import accumulate

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta.frames.commit_lines import conformed_actions
from sparkdelta.frames.fresh_row_ids import FIRST_ROW_IDS, new_row_totals, with_row_ids
from sparkdelta.protocol.file_actions import AddFile
from sparkdelta.protocol.row_ids import with_row_ids as with_row_ids_of_values

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
