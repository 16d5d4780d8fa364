"""Random histories of SQL: both engines run the same statements on a table each, and after every
statement the tables have the same rows, columns and version.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, read_delta, sql, verify, write_checkpoint
from tests.golden.expected import comparable
from tests.oracle.history import ID, HistoryAuthor
from tests.oracle.values import PLAIN_NAMES, literal
from tests.support.delta_spark import DeltaSpark
from tests.support.rows import assert_same_rows, parquet_rows

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

STEPS = 10
# delta-spark makes a version of it that changes nothing.
NO_COMMIT = "DROP CONSTRAINT IF EXISTS"


class SqlAuthor(HistoryAuthor):
    """Runs its statements by `sparkdelta.sql`, and more kinds of them."""

    # delta-spark's MERGE does not find a partition column with a dot in its name.
    plain_names = tuple(name for name in PLAIN_NAMES if "." not in name)

    def operations(self) -> list[Any]:
        return [
            *super().operations(),
            (2, self._insert_some_columns),
            (2, self._insert_defaults_by_name),
            (2, self._update_by_expression),
            (2, self._delete_by_subquery),
            (1, self._truncate),
            (2, self._constrain),
            (2, self._merge_duplicates),
        ]

    def run(self, text: str) -> None:
        sql(self.spark, text)

    def latest(self) -> int:
        return load_snapshot(self.spark, str(self.path)).version

    def _sql(self, statement: str) -> None:
        # As a partition value, delta-spark takes this text for null, and sparkdelta refuses it.
        super()._sql(statement.replace("__HIVE_DEFAULT_PARTITION__", "a hive"))

    def _overwrite(self) -> None:
        self._sql(f"INSERT OVERWRITE {{t}} ({self._names()}) {self._rows()}")

    def _checkpoint(self) -> None:
        write_checkpoint(self.spark, str(self.path))

    def _insert_some_columns(self) -> None:
        others = [column for column in self._now if column != ID]
        chosen = [ID, *self.random.sample(others, self.random.randint(1, len(others)))]
        self.random.shuffle(chosen)
        names = ", ".join(column.quoted for column in chosen)
        self._sql(f"INSERT INTO {{t}} ({names}) {self._rows(columns=chosen)}")

    def _insert_defaults_by_name(self) -> None:
        chosen = self.random.sample(self._now, len(self._now))
        names = ", ".join(column.quoted for column in chosen)
        rows = self._rows(columns=chosen)
        self._sql(f"INSERT INTO {{t}} BY NAME SELECT * FROM ({rows}) AS s({names})")

    def _update_by_expression(self) -> None:
        one, other = (self.random.choice([c for c in self._now if c != ID]) for _ in range(2))
        value = literal(self.random, one.type)
        if one.type == other.type:
            value = other.quoted
        self._sql(
            f"UPDATE {{t}} AS t SET {one.quoted} = CASE WHEN id % 2 = 0 THEN {value}"
            f" ELSE {one.quoted} END WHERE {self._condition('t.')} OR {self._condition('t.')}"
        )

    def _delete_by_subquery(self) -> None:
        least = self.random.randint(0, self._next_id)
        self._sql(f"DELETE FROM {{t}} WHERE id IN (SELECT id FROM range({least}, {least + 3}))")

    def _truncate(self) -> None:
        if self.random.random() < 0.3:
            self._sql("TRUNCATE TABLE {t}")

    def _constrain(self) -> None:
        most = self.random.randint(0, 2 * self._next_id + 1)
        self._sql(
            self.random.choice(
                (
                    f"ALTER TABLE {{t}} ADD CONSTRAINT most CHECK (id < {most} OR id IS NULL)",
                    "ALTER TABLE {t} DROP CONSTRAINT IF EXISTS most",
                )
            )
        )

    def _merge_duplicates(self) -> None:
        """Several rows of the source for a row of the table: only a lone DELETE takes them."""
        back = min(self._next_id, 2)
        self._next_id -= back
        names, rows = self._names(), self._rows(back + 1)
        source = f"(SELECT * FROM ({rows}) AS s({names}) CROSS JOIN VALUES (1), (2) AS twice(x))"
        clause = self.random.choice(("DELETE", "UPDATE SET *", "DELETE"))
        insert = self.random.choice(("", " WHEN NOT MATCHED THEN INSERT *"))
        self._sql(
            f"MERGE INTO {{t}} t USING {source} s ON t.id = s.id WHEN MATCHED THEN {clause}{insert}"
        )


def replay(
    spark: SparkSession, root: str, statements: list[str], versions: list[int]
) -> list[dict[str, Any]]:
    """Run the statements and write the rows after each; runs in the process of delta-spark.

    Parameters
    ----------
    versions
        Those of the other table after each statement.
    """
    table, told = str(Path(root) / "theirs"), list[dict[str, Any]]()
    for number, statement in enumerate(statements):
        restored = re.search(r"TO VERSION AS OF (\d+)", statement)
        if restored:
            version = int(restored[1])
            at = next(n for n, later in enumerate(versions) if later >= version)
            same = told[at]["version"] - (versions[at] - version)
            statement = f"RESTORE TABLE {{t}} TO VERSION AS OF {same}"
        answer: dict[str, Any] = {"error": None}
        try:
            spark.sql(statement.replace("{t}", f"delta.`{table}`"))
        except Exception as error:  # noqa: BLE001  (compared with whether we raise one)
            answer["error"] = f"{type(error).__name__}: {str(error)[:1500]}"
        rows = spark.read.format("delta").load(table)
        arrow = comparable(rows).toArrow()
        pq.write_table(arrow, Path(root) / f"{number}.parquet", store_schema=False)
        latest = spark.sql(f"DESCRIBE HISTORY delta.`{table}` LIMIT 1").collect()[0]["version"]
        told.append({**answer, "version": latest, "schema": rows.schema.simpleString()})
    return told


def shortened(statement: str) -> str:
    """Return a statement without the middle of its rows."""
    return statement if len(statement) < 900 else f"{statement[:500]} ... {statement[-400:]}"


def test_random_sql(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, seed: int
) -> None:
    author = SqlAuthor(spark, tmp_path / "ours", Random(f"sql {seed}"))
    author.create()
    ours: list[tuple[str | None, int, pa.Table]] = []

    def note(number: int, error: str | None) -> None:
        rows = comparable(read_delta(spark, str(author.path))).toArrow()
        ours.append((error, author.latest(), rows))

    note(0, None)
    for _ in range(STEPS):
        done, refused = len(author.statements), len(author.refused)
        author.step()
        if len(author.statements) > done:
            note(done, author.refused[-1] if len(author.refused) > refused else None)
    told = delta_spark.run(
        "tests.oracle.test_sql_histories:replay", root=str(tmp_path), statements=author.statements,
        versions=[version for _, version, _ in ours],
    )  # fmt: skip
    story = [f"the history of seed {seed}:"]
    for number, (statement, answer) in enumerate(zip(author.statements, told, strict=True)):
        error, version, rows = ours[number]
        refused = "  -- refused" * (error is not None)
        story.append(f"{number}, {version}: {shortened(statement)}{refused}")
        told_story = "\n".join([*story, f"sparkdelta: {error}", f"delta-spark: {answer}"])
        assert (error is None) == (answer["error"] is None), told_story
        if number and not re.search(NO_COMMIT, statement):
            commits = version - ours[number - 1][1]
            assert commits == answer["version"] - told[number - 1]["version"], told_story
        try:
            assert_same_rows(rows, parquet_rows(tmp_path / f"{number}.parquet"))
        except AssertionError as different:
            raise AssertionError(f"{different}\n{told_story}") from different
    assert load_snapshot(spark, str(author.path)).schema.simpleString() == told[-1]["schema"]
    assert verify(spark, str(author.path)).is_clean
