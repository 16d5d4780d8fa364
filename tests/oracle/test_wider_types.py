"""Rows of one type that are written into a column of another, as delta-spark writes them."""

from __future__ import annotations

import datetime as dt
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

NUMBERS = {
    "INT": "17",
    "BIGINT": "17",
    "FLOAT": "17.75",
    "DOUBLE": "17.75",
    "DECIMAL(12,2)": "17.75",
    "DECIMAL(20,4)": "17.7512",
}
TIMES = {"DATE": "'2020-02-03'", "TIMESTAMP_NTZ": "'2020-02-03 04:05:06.789'"}
VALUES = {name: f"CAST({text} AS {name})" for name, text in {**NUMBERS, **TIMES}.items()}
PAIRS = [*permutations(NUMBERS, 2), *permutations(TIMES, 2)]
"""The type of a column, and that of its new rows."""
ROWS = "SELECT 2 AS k, " + ", ".join(
    f"{VALUES[source]} AS c{number}" for number, (_, source) in enumerate(PAIRS)
)
EVOLVE = "WITH SCHEMA EVOLUTION "
WHOLE = {
    "insert": "INSERT {evolve}INTO delta.`{table}` {rows}",
    "merge": "MERGE {evolve}INTO delta.`{table}` AS t USING ({rows}) AS s ON t.k = s.k "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
}


def create(spark: SparkSession, table: str, *, widens: bool) -> None:
    columns = ", ".join(f"c{number} {target}" for number, (target, _) in enumerate(PAIRS))
    spark.sql(
        f"CREATE TABLE delta.`{table}` (k INT, {columns}) USING delta TBLPROPERTIES "
        f"('delta.enableTypeWidening' = '{str(widens).lower()}')"
    )


def append_each(spark: SparkSession, table: str, merges: bool) -> dict[str, Any]:
    """Append a row to each column of a table; return what `stored` does, and the refused columns.
    Runs in the processes of both engines.
    """
    create(spark, table, widens=True)
    refused = []
    for number, (_, source) in enumerate(PAIRS):
        rows = spark.sql(f"SELECT {VALUES[source]} AS c{number}")
        writer = rows.write.format("delta").mode("append").option("mergeSchema", merges)
        try:
            writer.save(table)
        except Exception:  # noqa: BLE001 - compared with whether the other one raises one
            refused.append(f"c{number}")
    return {**stored(spark, table), "refused": refused}


def write_whole(spark: SparkSession, table: str, how: str, evolves: bool) -> dict[str, Any]:
    """Write a row with all columns of a table; runs in the processes of both engines."""
    create(spark, table, widens=True)
    evolve = EVOLVE if evolves else ""
    if how in WHOLE:
        spark.sql(WHOLE[how].format(evolve=evolve, table=table, rows=ROWS))
    else:
        rows = spark.sql(ROWS)
        rows.write.parquet(f"{table}-source")
        stream = spark.readStream.schema(rows.schema).parquet(f"{table}-source").writeStream
        stream = stream.format("delta").option("checkpointLocation", f"{table}-checkpoint")
        stream = stream.option("mergeSchema", evolves).trigger(availableNow=True)
        stream.start(table).awaitTermination()
    return stored(spark, table)


def stored(spark: SparkSession, table: str) -> dict[str, Any]:
    """The types of a table's columns and their only values, as texts."""
    frame = spark.read.format("delta").load(table)
    rows = [row.asDict() for row in frame.collect()]
    values = {}
    for name in frame.columns:
        given = [row[name] for row in rows if row[name] is not None]
        values[name] = str(given[0]) if given else None
    return {"types": dict(frame.dtypes), "values": values}


def originals(spark: SparkSession) -> dict[str, Any]:
    return spark.sql(ROWS).collect()[0].asDict()


def assert_nothing_lost(spark: SparkSession, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Each column has the type and value of delta-spark's, or the value of the rows."""
    given = originals(spark)
    differences = {}
    for number, (target, source) in enumerate(PAIRS):
        name = f"c{number}"
        outcomes = [(each["types"][name], each["values"][name]) for each in (ours, theirs)]
        if outcomes[0] == outcomes[1]:
            continue
        kept = outcomes[0][1]
        wanted = given[name]
        if isinstance(wanted, dt.date) and not isinstance(wanted, dt.datetime):
            wanted = dt.datetime.combine(wanted, dt.time())
        if (target, source) == ("DATE", "TIMESTAMP_NTZ") and kept == "2020-02-03":
            continue  # an append converts a time to its day, too, as INSERT does
        exact = kept is not None and (
            kept == str(wanted) if isinstance(wanted, dt.datetime) else float(kept) == float(wanted)
        )
        if not exact and name not in ours.get("refused", ()):
            differences[f"{target} <- {source}"] = outcomes
    assert not differences


@pytest.mark.parametrize("merges", [True, False])
def test_append_stores_what_delta_spark_stores_or_loses_nothing(
    enabled: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, merges: bool
) -> None:
    function = "tests.oracle.test_wider_types:append_each"
    theirs = delta_spark.run(function, table=str(tmp_path / "theirs"), merges=merges)
    ours = append_each(enabled, str(tmp_path / "ours"), merges)
    assert_nothing_lost(enabled, ours, theirs)
    assert set(ours["refused"]) < set(theirs["refused"])
    integer_from_double = f"c{PAIRS.index(('INT', 'DOUBLE'))}"
    assert (ours["types"][integer_from_double] == "double") == merges
    assert (integer_from_double in ours["refused"]) == (not merges)


@pytest.mark.parametrize("evolves", [True, False])
@pytest.mark.parametrize("how", ["insert", "merge", "stream"])
def test_sql_and_streams_convert_as_delta_spark_does_or_lose_nothing(
    enabled: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, how: str, evolves: bool
) -> None:
    function = "tests.oracle.test_wider_types:write_whole"
    theirs = delta_spark.run(function, table=str(tmp_path / "theirs"), how=how, evolves=evolves)
    ours = write_whole(enabled, str(tmp_path / "ours"), how, evolves)
    assert_nothing_lost(enabled, ours, theirs)
    integer_from_double = f"c{PAIRS.index(('INT', 'DOUBLE'))}"
    assert ours["values"][integer_from_double] == ("17.75" if evolves else "17")
