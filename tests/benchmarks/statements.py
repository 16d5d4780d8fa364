"""PySpark's own methods, and SQL, against the functions that do the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta import DeltaTable, read_delta, write_delta
from sparkdelta.base.spark.enabled_sessions import sparks_own
from tests.benchmarks.measurement import Action, Comparison, Stopwatch, at_most
from tests.benchmarks.parts import Measured
from tests.support.spark_jobs import files_read

_FILES = 64
_ALLOWED = 0.05  # seconds for a statement of ours
_FOREIGN = 100  # statements that are not, which take too little to be measured alone
_ALLOWED_FOREIGN = 0.001  # seconds for each of them
_SHOWN = "{:.0f} ms; {:.3f} s for the call, {:.2f}x for the statement"


class Sizes(Protocol):
    """The sizes that this module takes from the benchmark's scale."""

    @property
    def rows_per_file(self) -> int: ...


@dataclass(frozen=True, slots=True)
class _Bench:
    stopwatch: Stopwatch
    path: str

    @property
    def spark(self) -> SparkSession:
        return self.stopwatch.spark

    @property
    def table(self) -> str:
        return f"delta.`{self.path}`"

    def overhead(
        self, name: str, statement: Action, call: Action, *, allowed: float = _ALLOWED
    ) -> Comparison:
        """Compare the seconds that a statement takes beyond the call that does the same with the
        seconds that it may take.
        """
        found = self.stopwatch.compare(name, statement, call, floor_name="", same_result=False)
        pairs = zip(found.seconds, found.floor_seconds, strict=True)
        return replace(
            found,
            name=f"{name}, beyond the call",
            floor_name=_SHOWN.format(allowed * 1000, median(found.floor_seconds), found.ratio),
            target=at_most(1),
            seconds=tuple(one - other for one, other in pairs),
            floor_seconds=(allowed,) * len(found.seconds),
        )


def statements(stopwatch: Stopwatch, scale: Sizes, scratch: Path) -> Measured:
    """Reads by `format("delta")` and their files; then what a statement costs beside its work."""
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
        yield from _statements(_Bench(stopwatch, str(plain)))
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


def _statements(bench: _Bench) -> Measured:
    spark, path, table = bench.spark, bench.path, bench.table
    sql = partial(sparkdelta.sql, spark)
    delta = DeltaTable.forPath(spark, path)
    joined = "SELECT a.id FROM {} a JOIN {} VERSION AS OF 0 b ON a.id = b.id WHERE a.id < 5"
    spliced = "SELECT a.id FROM {a} a JOIN {b} b ON a.id = b.id WHERE a.id < 5"
    nothing, nothing_source = "id = -1", "-1L AS id"
    row = "-2L AS id, 0D AS amount, 'x' AS text, 0 AS part"
    others = "SELECT a.id FROM range(9) a JOIN range(9) b ON a.id = b.id"
    sparks_sql = sparks_own(type(spark), "sql")
    of_table = "SELECT id FROM of_another_format WHERE id = 5"
    spark.sql("CREATE TABLE of_another_format USING parquet AS SELECT 5 AS id")
    compared: dict[str, tuple[Action, Action]] = {
        "SELECT": (
            lambda: sql(f"SELECT id FROM {table} WHERE id = 5"),
            lambda: read_delta(spark, path).where("id = 5").select("id"),
        ),
        "SELECT of a join": (
            lambda: sql(joined.format(table, table)),
            lambda: sparks_sql(
                spark, spliced, a=read_delta(spark, path), b=read_delta(spark, path, version=0)
            ),
        ),
        "DESCRIBE HISTORY": (
            lambda: sql(f"DESCRIBE HISTORY {table}"),
            lambda: DeltaTable.forPath(spark, path).history(),
        ),
        "DESCRIBE DETAIL": (
            lambda: sql(f"DESCRIBE DETAIL {table}"),
            lambda: DeltaTable.forPath(spark, path).detail(),
        ),
        "DELETE of nothing": (
            lambda: sql(f"DELETE FROM {table} WHERE {nothing}"),
            lambda: delta.delete(nothing),
        ),
        "DELETE of nothing, with a parameter": (
            lambda: sql(f"DELETE FROM {table} WHERE id = :id", {"id": -1}),
            lambda: delta.delete(nothing),
        ),
        "UPDATE of nothing": (
            lambda: sql(f"UPDATE {table} SET amount = 0 WHERE {nothing}"),
            lambda: delta.update(nothing, {"amount": "0"}),
        ),
        "MERGE of nothing": (
            lambda: sql(
                f"MERGE INTO {table} t USING (SELECT {nothing_source}) s ON t.id = s.id "
                "WHEN MATCHED THEN DELETE"
            ),
            lambda: (
                delta.alias("t")
                .merge(spark.sql(f"SELECT {nothing_source}").alias("s"), "t.id = s.id")
                .whenMatchedDelete()
                .execute()
            ),
        ),
        "INSERT of a row": (
            lambda: sql(f"INSERT INTO {table} SELECT {row}"),
            lambda: write_delta(spark.sql(f"SELECT {row}"), path, mode="append"),
        ),
    }
    foreign = {"queries of Spark's own": others, "queries of a Parquet table": of_table}

    def run_each(run: Callable[[str], DataFrame], text: str) -> None:
        for _ in range(_FOREIGN):
            run(text)

    try:
        for name, (statement, call) in compared.items():
            yield bench.overhead(name, statement, call)
        for name, text in foreign.items():
            yield bench.overhead(
                f"{_FOREIGN} {name}",
                partial(run_each, spark.sql, text),
                partial(run_each, partial(sparks_sql, spark), text),
                allowed=_FOREIGN * _ALLOWED_FOREIGN,
            )
    finally:
        spark.sql("DROP TABLE of_another_format")
