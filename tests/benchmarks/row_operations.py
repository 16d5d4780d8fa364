"""The operations that change rows, and the table whose copies they change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from sparkdelta import DeltaTable, write_delta
from tests.benchmarks.copied_tables import Bench
from tests.benchmarks.data import STORED, stored_rows
from tests.benchmarks.measurement import Target, at_most

RIVAL_MEMORY = "2g"
"""The heap of delta-spark."""

STATEMENT = f"{__name__}:run_statement"
"""The name of `run_statement`, for delta-spark's worker."""

_LEAST_FILES = 50


@dataclass(frozen=True, slots=True)
class Change:
    """An operation as delta-spark's SQL and as a call of `DeltaTable`.

    Attributes
    ----------
    statement
        With ``{table}`` and ``{source}`` in it.
    source
        A query for the source of MERGE.
    with_vectors, with_rewrite
        The targets on a table with deletion vectors, and on one without.
    """

    name: str
    statement: str
    call: Callable[[DeltaTable, DataFrame | None], object]
    with_vectors: Target
    with_rewrite: Target
    source: str | None = None

    def sql(self, table: Path) -> str:
        """The statement for a table."""
        return self.statement.format(table=f"delta.`{table}`", source=self.source)

    def apply(self, spark: SparkSession, table: Path) -> None:
        """Change a table by sparkdelta."""
        source = None if self.source is None else spark.sql(self.source)
        self.call(DeltaTable.forPath(spark, str(table)), source)


@dataclass(frozen=True, slots=True)
class RowBench(Bench):
    """The suite of row changes, and its tables."""

    @property
    def num_rows(self) -> int:
        return self.scale.data_files * self.scale.rows_per_file

    @property
    def num_files(self) -> int:
        return max(self.scale.data_files, _LEAST_FILES)

    def table(self, *, has_vectors: bool) -> Path:
        """The table that is copied; its files are ranges of `id`."""
        path = self.scratch / ("vectors" if has_vectors else "rewrite")
        if not path.exists():
            rows = self.spark.range(0, self.num_rows, 1, self.num_files)
            write_delta(
                stored_rows(rows),
                str(path),
                properties={"delta.enableDeletionVectors": str(has_vectors).lower()},
            )
        return path


def row_operations(bench: RowBench) -> list[Change]:
    """DELETE in all files and in one, UPDATE, and MERGE in all files, in few, and of many rows."""
    rows, per_file = bench.num_rows, bench.num_rows // bench.num_files
    of_file = f"id BETWEEN {2 * per_file} AND {2 * per_file + per_file // 10}"

    def source(ids: str) -> str:
        values = {name: sql for name, (_, sql) in STORED.items()} | {"note": "'merged'"}
        columns = ", ".join(f"{sql} AS {name}" for name, sql in values.items())
        return f"SELECT {columns} FROM ({ids})"

    spread = f"SELECT id * 200 + 3 AS id FROM range({rows // 200})"
    new = f"SELECT id + {rows} AS id FROM range({rows // 200})"
    near = f"SELECT id * 2 + {2 * per_file} AS id FROM range({per_file // 4})"
    many = f"SELECT id * 4 + 1 AS id FROM range({rows // 4})"
    upsert = (
        "MERGE INTO {table} t USING ({source}) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    return [
        Change(
            "DELETE of 1/1000 of the rows in all files",
            "DELETE FROM {table} WHERE quantity = 7",
            lambda table, _: table.delete("quantity = 7"),
            at_most(0.7),
            at_most(0.8),
        ),
        Change(
            "DELETE of one file's range",
            f"DELETE FROM {{table}} WHERE {of_file}",
            lambda table, _: table.delete(of_file),
            at_most(0.5),
            at_most(0.7),
        ),
        Change(
            "UPDATE of 1/1000 of the rows in all files",
            "UPDATE {table} SET note = concat(note, '!') WHERE quantity = 7",
            lambda table, _: table.update("quantity = 7", {"note": "concat(note, '!')"}),
            at_most(0.7),
            at_most(0.8),
        ),
        *(
            Change(name, upsert, _upsert, *targets, source=source(ids))
            for name, ids, targets in (
                (
                    f"MERGE of {rows // 200:,} updates in all files and as many inserts",
                    f"{spread} UNION ALL {new}",
                    (at_most(0.5), at_most(0.6)),
                ),
                (
                    "MERGE of keys in 2% of the files",
                    near,
                    (at_most(0.2), at_most(0.2)),
                ),
                (
                    f"MERGE of {rows // 4:,} updates",
                    many,
                    (at_most(0.8), at_most(0.8)),
                ),
            )
        ),
    ]


def _upsert(table: DeltaTable, source: DataFrame | None) -> object:
    assert source is not None
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    return merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def run_statement(spark: SparkSession, statement: str) -> None:
    """Runs in the worker."""
    spark.sql(statement).collect()
