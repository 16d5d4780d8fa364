"""Places on curves, as values and in DataFrames."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.spark.row_range_frames import hashed_numbers, separate_places
from sparkdelta.operations.compaction.curve_order_frames import (
    PLACE,
    curve_key,
    in_curve_order,
    with_place,
)
from sparkdelta.operations.compaction.curve_rules import NOISE_BITS, Curve, CurveRanges


@pytest.mark.parametrize(
    ("dimensions", "is_hilbert"), [(2, True), (4, True), (1, False), (3, False)]
)
def test_both_find_the_same_place(spark: SparkSession, dimensions: int, is_hilbert: bool) -> None:
    curve = Curve.through(dimensions, is_hilbert=is_hilbert)
    random = np.random.default_rng(0)
    cells = random.integers(0, 1 << curve.bits, (50, dimensions))
    names = [f"c{number}" for number in range(dimensions)]
    rows = spark.createDataFrame(cells.tolist(), ", ".join(f"{name} INT" for name in names))
    found = [row[PLACE] >> NOISE_BITS for row in with_place(rows, names, curve).collect()]
    assert found == curve.places(list(cells.T)).tolist()


@pytest.mark.full
def test_rows_of_groups_in_files(spark: SparkSession) -> None:
    """Each file has its share of its group, in narrow ranges of both columns, even of a frequent
    value; rows without a value come first.
    """
    rows = spark.range(4000).selectExpr(
        "CAST(id % 2 AS INT) AS part",
        "CAST(hash(id) AS DOUBLE) AS a",
        "IF(id % 8 < 6, 'x', CAST(hash(id, 1) AS STRING)) AS b",
        "IF(id % 100 < 2, NULL, 1) AS one",
    )
    curve = Curve.through(2, is_hilbert=True)
    for columns, share in ((("a", "b"), 2), (("one", "one"), 4)):
        keys = [curve_key(name, rows.schema[name].dataType) for name in columns]
        sample = rows.selectExpr("part", *(f"{k} AS k{n}" for n, k in enumerate(keys))).toPandas()
        ranges = [
            CurveRanges.of(
                [sample[sample["part"] == part][f"k{n}"].to_numpy() for n in range(2)], curve, files
            )
            for part, files in ((0, 4), (1, 8))
        ]
        [row] = spark.range(1).selectExpr(f"{hashed_numbers(12)} AS partitions").collect()
        places = separate_places(row["partitions"], 12)
        copied = rows.withColumn("group", F.col("part"))
        laid_out = in_curve_order(copied, "`group`", keys, curve, ranges, places)
        assert laid_out.columns == rows.columns
        files = laid_out.groupBy("part", F.spark_partition_id()).agg(
            F.count("*").alias("rows"), (F.max("a") - F.min("a")).alias("width")
        )
        found = files.collect()
        assert sorted(row["part"] for row in found) == [0] * 4 + [1] * 8
        assert all(abs(row["rows"] * (4 + 4 * row["part"]) / 2000 - 1) < 0.25 for row in found)
        if columns[0] == "a":
            assert sum(row["width"] for row in found) / 12 / 2**32 < 1 / share
