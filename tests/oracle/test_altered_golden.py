"""Golden tables that are altered by either engine, and then read by both."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, read_delta
from tests.golden.cases import GoldenCase, golden_cases
from tests.golden.expected import comparable
from tests.oracle.test_random_alters import described, refused
from tests.support.delta_spark import DeltaSpark
from tests.support.rows import assert_same_rows, parquet_rows, spark_rows

pytestmark = pytest.mark.oracle

PADDED = ("char-varchar",)  # by Spark, when it reads a table of a catalog or of delta-spark
CASES = [case for case in golden_cases() if case.name not in PADDED]
READ_OTHERWISE = {
    "rs-partition-types": "delta-spark keeps the escapes of a binary partition value",
    "rs-partitioned": "delta-spark reads an empty partition value of text as such, not as null",
}
"""Tables of which only our rows are compared with the expected ones, and why."""

NEW = "a new"


def statements(case: GoldenCase, *, is_mapped: bool) -> list[str]:
    """A column is added and another one renamed, which may need column mapping first."""
    mapping = "" if is_mapped else ", 'delta.columnMapping.mode' = 'name'"
    column = expected(case).column_names[0]
    return [
        f"SET TBLPROPERTIES ('own' = 'x'{mapping})",
        f"ADD COLUMNS (`{NEW}` INT COMMENT 'new' FIRST)",
        f"RENAME COLUMN `{column}` TO `it's renamed`",
        f"ADD CONSTRAINT c CHECK (`{NEW}` IS NULL)",
    ]


def alter(spark: SparkSession, table: str, statements: list[str]) -> list[str | None]:
    """Carry statements out and return the error of each, or None; runs in the process of
    delta-spark.
    """
    errors: list[str | None] = []
    for statement in statements:
        try:
            spark.sql(statement)
            errors.append(None)
        except Exception as error:  # noqa: BLE001 - compared with whether we raise one
            errors.append(str(error)[:1000])
    return errors


def read(spark: SparkSession, tables: dict[str, str]) -> None:
    """Copy the rows of tables into files; runs in the process of delta-spark."""
    for table, file in tables.items():
        rows = comparable(spark.read.format("delta").load(table))
        pq.write_table(spark_rows(rows), file, store_schema=False)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_read_what_either_altered(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, case: GoldenCase
) -> None:
    """Both engines alter a table alike, and its rows stay as they were."""
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    for path in (ours, theirs):
        shutil.copytree(case.table, path)
    texts = statements(case, is_mapped=load_snapshot(spark, ours).configuration.is_mapped)
    here = "tests.oracle.test_altered_golden"
    told = delta_spark.run(f"{here}:alter", table=theirs, statements=[
        f"ALTER TABLE delta.`{theirs}` {text}" for text in texts
    ])  # fmt: skip
    for text, other in zip(texts, told, strict=True):
        refusal = refused(spark, f"ALTER TABLE delta.`{ours}` {text}")
        assert (refusal is None) == (other is None), (text, refusal, other)
    assert described(spark, ours) == described(spark, theirs)
    files = {path: f"{path}.parquet" for path in (ours, theirs)}
    delta_spark.run(f"{here}:read", tables=files)
    for path, file in files.items():
        found = spark_rows(comparable(read_delta(spark, path)))
        if case.name not in READ_OTHERWISE:
            assert_same_rows(found, parquet_rows(Path(file)))
        assert_same_rows(original(found, case), expected(case))


def original(rows: pa.Table, case: GoldenCase) -> pa.Table:
    """The rows without the new column, by the names that the others had."""
    rest = rows.drop_columns([NEW]) if NEW in rows.column_names else rows
    return rest.rename_columns(expected(case).column_names)


def expected(case: GoldenCase) -> pa.Table:
    file = case.reads[-1].rows_file
    assert file is not None
    rows = parquet_rows(file)
    ids = ("row_id", "row_commit_version")
    return rows.select([name for name in rows.column_names if name not in ids])
