"""Random histories that delta-spark wrote read equal in all engines, at every version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError as DeltaRsError
from pyspark.sql import SparkSession

from sparkdelta import read_delta
from tests.golden.expected import comparable
from tests.support.delta_spark import DeltaSpark
from tests.support.rows import assert_same_rows, parquet_rows

pytestmark = pytest.mark.oracle

ROW_IDS = ["_metadata.row_id", "_metadata.row_commit_version"]
# delta-spark may refuse a few of the random statements; more would make a poor test.
MOST_REFUSED = 4
# How delta-rs says that it does not read a table, which is no difference between the engines.
DELTA_RS_REFUSAL = "Unsupported table features"


def test_random_history(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, seed: int
) -> None:
    history = delta_spark.run("tests.oracle.history:write_history", root=str(tmp_path), seed=seed)
    assert len(history["refused"]) <= MOST_REFUSED, "\n".join(history["refused"])
    table = str(tmp_path / "delta")
    wrong: list[str] = []

    def check(engine: str, version: int, suffix: str, read: Callable[[], pa.Table | None]) -> None:
        expected = parquet_rows(tmp_path / "expected" / f"v{version}{suffix}.parquet")
        try:
            rows = read()
            if rows is not None:
                assert_same_rows(rows, expected)
        except Exception as error:  # noqa: BLE001  (the other versions tell where it began)
            wrong.append(f"{engine}, version {version}: {type(error).__name__}: {error}")

    def sparkdelta_rows(version: int, *more: str) -> pa.Table:
        rows = read_delta(spark, table, version=version)
        if more:
            rows = read_delta(spark, table, version=version, columns=[*rows.columns, *more])
        return comparable(rows).toArrow()

    for version in range(history["latest"] + 1):
        check("sparkdelta", version, "", lambda v=version: sparkdelta_rows(v))
        if version in history["row_ids"]:
            check("sparkdelta", version, ".row-ids", lambda v=version: sparkdelta_rows(v, *ROW_IDS))
        check("delta-rs", version, "", lambda v=version: delta_rs_rows(table, v))
    story = [f"the history of seed {seed}:", *history["statements"]]
    assert not wrong, "\n".join([*wrong, *story])


def delta_rs_rows(table: str, version: int) -> pa.Table | None:
    """The rows as delta-rs reads them; None where it refuses the table."""
    try:
        opened = DeltaTable(table, version=version)
        query = QueryBuilder().register("t", opened).execute("SELECT * FROM t")
        rows = pa.table(query.read_all())
    except DeltaRsError as error:
        if DELTA_RS_REFUSAL in str(error):
            return None
        raise
    # The query's own types are views of texts and bytes.
    schema = pa.schema(opened.schema().to_arrow())
    return rows.select(schema.names).cast(schema)
