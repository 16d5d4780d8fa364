"""PySpark's own methods against the functions that do the same."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta import read_delta, write_delta
from tests.benchmarks.measurement import Comparison, Stopwatch, at_most
from tests.benchmarks.parts import Measured
from tests.support.spark_jobs import files_read

_FILES = 64


class Sizes(Protocol):
    """Of the benchmark's scale."""

    @property
    def rows_per_file(self) -> int: ...


def statements(stopwatch: Stopwatch, scale: Sizes, scratch: Path) -> Measured:
    """Reads by `format("delta")`, and their files."""
    spark = stopwatch.spark
    plain, parted = scratch / "plain", scratch / "parted"
    rows = _FILES * scale.rows_per_file // 20
    numbers = spark.range(0, rows, 1, _FILES).selectExpr(
        "id", "CAST(hash(id) AS DOUBLE) / 100 AS amount", "sha2(CAST(id AS STRING), 256) AS text",
        f"CAST(id * 8 DIV {rows} AS INT) AS part",
    )  # fmt: skip
    write_delta(numbers, str(plain))
    write_delta(numbers, str(parted), partition_by=["part"])
    sparkdelta.enable(spark)
    try:
        for name, path, condition in (
            ("1 of 64 files by statistics", plain, f"id BETWEEN 10 AND {rows // _FILES - 10}"),
            ("16 of 64 files by statistics", plain, f"id < {rows // 4}"),
            ("1 of 8 partitions", parted, "part = 3"),
            ("all files", plain, "amount > 0"),
        ):
            yield _read(stopwatch, name, str(path), condition)
    finally:
        sparkdelta.disable(spark)


def _read(stopwatch: Stopwatch, name: str, path: str, condition: str) -> Comparison:
    spark = stopwatch.spark

    def total(frame: DataFrame) -> object:
        totals = frame.agg(F.count("*"), F.max("amount"))
        return totals.collect(), files_read(totals)

    return stopwatch.compare(
        f"load(path).where(condition), {name}",
        lambda: total(spark.read.format("delta").load(path).where(condition)),
        lambda: total(read_delta(spark, path, where=condition)),
        floor_name="read_delta(where=condition)",
        target=at_most(1.1),
    )
