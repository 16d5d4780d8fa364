"""Statements on a table whose path and columns have odd names, in sessions with adverse settings:
the same rows in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaError, load_snapshot
from tests.support.settings import HOSTILE, settings

ID, PART, DAY, NESTED = "`a.b`", "`c``d`", "`ü \"'x`", "`select`"


@pytest.mark.slow
@pytest.mark.parametrize("values", HOSTILE.values(), ids=HOSTILE)
def test_statements(enabled: SparkSession, tmp_path: Path, values: Mapping[str, str]) -> None:
    """Dots, backticks, quotes, blanks, umlauts and keywords in names; texts become dates."""
    path = tmp_path / "a b.c`d ü'x %20"
    table, sql = f"delta.`{str(path).replace('`', '``')}`", enabled.sql
    with settings(enabled, values):
        sql(f"""CREATE TABLE {table} (
            {ID} INT NOT NULL COMMENT 'it''s', {PART} STRING, {DAY} DATE,
            {NESTED} STRUCT<`x.y`: INT, {PART}: STRING>
          ) USING delta PARTITIONED BY ({PART}) TBLPROPERTIES ('delta.columnMapping.mode' = 'name',
            'delta.enableDeletionVectors' = 'true', 'a b.c' = 'x''y')""")
        sql(f"""INSERT INTO {table} BY NAME
            SELECT '2024-01-01' AS {DAY}, named_struct({_text(PART)}, 's', 'x.y', '7') AS {NESTED},
              'p.q' AS {PART}, id AS {ID} FROM range(4)""")
        sql(f"INSERT INTO {table} ({PART}, {ID}) VALUES ('ö %20', 8L), (NULL, :nine)", {"nine": 9})
        sql(f"""UPDATE {table} AS `t.t` SET `t.t`.{PART} = concat({PART}, '.`z'),
            {NESTED}.`x.y` = {ID} WHERE `t.t`.{NESTED}.{PART} = 's' AND `t.t`.{ID} < 2""")
        sql(f"""MERGE INTO {table} AS `t.t`
            USING (SELECT 9 AS {ID}, '2024-02-01' AS {DAY} UNION ALL SELECT 10, NULL) AS `s s`
            ON `t.t`.{ID} = `s s`.{ID} WHEN MATCHED THEN UPDATE SET {DAY} = `s s`.{DAY}
            WHEN NOT MATCHED THEN INSERT ({ID}, {PART}) VALUES (`s s`.{ID}, 'new''')
            WHEN NOT MATCHED BY SOURCE AND `t.t`.{ID} = 3 THEN DELETE""")
        sql(f"ALTER TABLE {table} RENAME COLUMN {DAY} TO `{{day}}`")
        sql(f"DELETE FROM {table} WHERE {PART} <=> 'p.q' AND {ID} = 2")
        with pytest.raises(DeltaError):
            sql(f"INSERT INTO {table} ({ID}) VALUES (3000000000)")
        rows = sql(f"""WITH `w.x` AS (SELECT * FROM {table} WHERE {ID} <> 0)
            SELECT {ID}, `w.x`.{PART}, `{{day}}`, `w.x`.{NESTED}.`x.y` FROM `w.x`
            JOIN {table} VERSION AS OF 2 AS `y z` USING ({ID}) ORDER BY {ID}""").collect()
    assert [tuple(row) for row in rows] == [
        (1, "p.q.`z", date(2024, 1, 1), 1),
        (8, "ö %20", None, None),
        (9, None, date(2024, 2, 1), None),
    ]
    assert load_snapshot(enabled, str(path)).properties["a b.c"] == "x'y"


def _text(name: str) -> str:
    """A name in backticks as a string."""
    return "'" + name[1:-1].replace("``", "`") + "'"
