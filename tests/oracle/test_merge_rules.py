"""MERGE of generated, default and identity columns by delta-spark and by sparkdelta.

Without the word DEFAULT, for which delta-spark has no value in MERGE.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, alter_table, read_delta, verify, write_delta
from sparkdelta.api.delta_table import IdentityGenerator
from sparkdelta.operations.merge.merge_clauses import Clause
from tests.golden.expected import comparable
from tests.oracle.test_merges import merge_ours, sql_text
from tests.support.delta_spark import DeltaSpark
from tests.support.rows import assert_same_rows, parquet_rows

pytestmark = pytest.mark.oracle

UPDATE, INSERT = Clause.MATCHED_UPDATE, Clause.NOT_MATCHED_INSERT
ALONE = Clause.NOT_MATCHED_BY_SOURCE_UPDATE
SOURCE = "SELECT * FROM VALUES (1, 9), (3, 3), (4, 4) AS q(id, a)"
FULL = "SELECT *, a * 2 AS twice, 'x' AS d FROM VALUES (1, 9), (3, 3) AS q(id, a)"
Case = tuple[str, bool, list[tuple[Clause, str | None, dict[str, str] | None]]]
CASES: dict[str, Case] = {
    "recomputed": (SOURCE, False, [(UPDATE, None, {"a": "s.a"})]),
    "recomputed alone": (SOURCE, False, [(ALONE, None, {"a": "t.a + 5", "d": "'z'"})]),
    "assigned": (SOURCE, False, [(UPDATE, None, {"a": "s.a", "twice": "s.a * 2"})]),
    "wrongly assigned": (SOURCE, False, [(UPDATE, None, {"a": "s.a", "twice": "5"})]),
    "one clause assigns": (
        SOURCE,
        False,
        [
            (UPDATE, "s.a > 100", {"a": "s.a"}),
            (UPDATE, None, {"a": "5", "twice": "10"}),
            (INSERT, "s.id = 3", {"id": "s.id", "a": "7", "d": "'own'"}),
            (INSERT, None, {"id": "s.id", "a": "8", "twice": "16"}),
        ],
    ),
    "star without columns": (SOURCE, False, [(UPDATE, None, None)]),
    "inserted star without columns": (SOURCE, False, [(INSERT, None, None)]),
    "evolving stars": (SOURCE, True, [(UPDATE, None, None), (INSERT, None, None)]),
    "stars": (FULL, True, [(UPDATE, None, None), (INSERT, None, None)]),
    "inserted identity": (SOURCE, False, [(INSERT, None, {"id": "s.id", "k": "1"})]),
    "updated identity": (SOURCE, False, [(UPDATE, None, {"k": "1"})]),
}


@pytest.mark.slow
def test_rules(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    """Both engines give the same rows, or both refuse; identity values are those of each engine."""
    made = str(tmp_path / "made")
    table = DeltaTable.create(spark).location(made).addColumn("id", "INT").addColumn("a", "INT")
    table.addColumn("twice", "INT", generatedAlwaysAs="a * 2")
    table.addColumn("k", "LONG", generatedAlwaysAs=IdentityGenerator())
    table.property("delta.feature.allowColumnDefaults", "supported").execute()
    alter_table(spark, made).add_column("d", "STRING", default="'none'")
    rows = spark.sql("SELECT * FROM VALUES (1, 1, 'p'), (2, 2, 'q') AS q(id, a, d)")
    write_delta(rows.coalesce(1), made, mode="append")
    different = []
    for number, (name, (source, evolves, clauses)) in enumerate(CASES.items()):
        ours, theirs = (str(tmp_path / f"{engine}-{number}") for engine in ("ours", "theirs"))
        for copy in (ours, theirs):
            shutil.copytree(made, copy)
        text = sql_text(theirs, source, "t.id = s.id", clauses, evolves=evolves)
        expected = str(tmp_path / "expected.parquet")
        told = delta_spark.run(
            "tests.oracle.test_merges:merge", table=theirs, text=text, expected=expected
        )
        raised = None
        try:
            merge_ours(spark, ours, source, "t.id = s.id", clauses, evolves=evolves)
        except Exception as error:  # noqa: BLE001 - compared with whether the other raises one
            raised = error
        if raised is not None or "error" in told:
            if (raised is None) or ("error" not in told) or not _same_class(raised, told):
                different.append((name, told.get("error", "")[:300], str(raised)[:300]))
            continue
        kept = [column for column in read_delta(spark, ours).columns if column != "k"]
        found = comparable(read_delta(spark, ours)).toArrow().select(kept)
        try:
            assert_same_rows(found, parquet_rows(Path(expected)).select(kept))
        except AssertionError as error:
            different.append((name, str(error)[:300], ""))
        keys = [row["k"] for row in read_delta(spark, ours).collect()]
        assert len({*keys}) == len(keys)
        assert verify(spark, ours).is_clean
    assert different == []


def _same_class(raised: Exception, told: dict[str, Any]) -> bool:
    """True if delta-spark's error has the class of ours in it."""
    return str(raised).partition("]")[0].strip("[") in told["error"]
