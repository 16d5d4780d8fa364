"""Random histories of Delta tables, written by delta-spark from a seed.

Runs inside the worker of :mod:`tests.support.delta_spark`. The author keeps its own list of the
columns at every version, so that a RESTORE leaves it knowing what to write next.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.golden.expected import comparable
from tests.oracle.values import (
    MAPPED_NAMES,
    NESTED,
    PLAIN_NAMES,
    PRIMITIVES,
    WIDER,
    Column,
    literal,
)

ID = Column("id", "BIGINT")
Operation = Callable[[], "tuple[Column, ...] | None"]
ROW_ID_COLUMNS = ("_metadata.row_id", "_metadata.row_commit_version")


def write_history(spark: SparkSession, root: str, seed: int, steps: int = 14) -> dict[str, Any]:
    """Write one random table below ``root`` and what delta-spark reads at each of its versions.

    Returns
    -------
    dict
        ``latest``; ``row_ids``, the versions that have row ids; ``statements``, what was run;
        ``refused``, what delta-spark refused to do.
    """
    author = HistoryAuthor(spark, Path(root) / "delta", Random(seed))
    author.create()
    for _ in range(steps):
        author.step()
    latest = author.latest()
    row_ids = [version for version in range(latest + 1) if _expect(author, Path(root), version)]
    return {
        "latest": latest,
        "row_ids": row_ids,
        "statements": author.statements,
        "refused": author.refused,
    }


def _expect(author: HistoryAuthor, root: Path, version: int) -> bool:
    """Write the rows of a version, with their row ids where it has them; say whether it has."""
    rows = author.spark.read.format("delta").option("versionAsOf", version).load(str(author.path))
    expected = root / "expected"
    expected.mkdir(parents=True, exist_ok=True)
    pq.write_table(comparable(rows).toArrow(), expected / f"v{version}.parquet", store_schema=False)
    try:
        with_ids = rows.select(*(f"`{name}`" for name in rows.columns), *ROW_ID_COLUMNS)
    except AnalysisException:
        return False
    table = comparable(with_ids).toArrow()
    pq.write_table(table, expected / f"v{version}.row-ids.parquet", store_schema=False)
    return True


class HistoryAuthor:
    """Invents and runs one commit after the other on one table.

    Attributes
    ----------
    plain_names
        The names that columns may have without column mapping.
    """

    plain_names = PLAIN_NAMES

    def __init__(self, spark: SparkSession, path: Path, random: Random) -> None:
        self.spark = spark
        self.path = path
        self.random = random
        self.statements: list[str] = []
        self.refused: list[str] = []
        self._columns: dict[int, tuple[Column, ...]] = {}
        self._properties: dict[str, str] = {}
        self._properties_at: dict[int, dict[str, str]] = {}
        self._next_id = 0

    def create(self) -> None:
        """Create the table: random properties, columns and partition columns."""
        random = self.random
        maybe = {
            "delta.columnMapping.mode": random.choice(("none", "none", "name", "id")),
            "delta.enableDeletionVectors": random.choice(("true", "true", "false")),
            "delta.checkpointPolicy": random.choice(("classic", "classic", "v2")),
            "delta.checkpointInterval": str(random.choice((2, 3, 5, 100))),
            "delta.enableRowTracking": random.choice(("true", "false", "false")),
            "delta.enableInCommitTimestamps": random.choice(("true", "false", "false")),
            "delta.enableTypeWidening": random.choice(("true", "false")),
            "delta.enableChangeDataFeed": random.choice(("true", "false", "false", "false")),
            "delta.checkpoint.writeStatsAsJson": random.choice(("true", "false")),
            "delta.checkpoint.writeStatsAsStruct": random.choice(("true", "false")),
            "delta.randomizeFilePrefixes": random.choice(("true", "false", "false", "false")),
        }
        self._properties = maybe
        names = [*self.plain_names, *(MAPPED_NAMES if self._mapped else ())]
        random.shuffle(names)
        types = [random.choice((*PRIMITIVES, *NESTED)) for _ in range(random.randint(2, 4))]
        columns = [ID, *(Column(names.pop(), data_type) for data_type in types)]
        if random.random() < 0.3:
            columns.append(Column(names.pop(), "TIMESTAMP_NTZ"))
        partition = [
            Column(names.pop(), random.choice(PRIMITIVES), partition=True)
            for _ in range(random.choice((0, 1, 2)))
        ]
        columns += partition
        random.shuffle(columns)
        clause = ", ".join(column.quoted for column in partition)
        self._sql(
            f"CREATE TABLE {{t}} ({self._declared(columns)}) USING delta"
            f" {f'PARTITIONED BY ({clause})' if clause else ''} {_listed(maybe)}"
        )
        self._note(tuple(columns))

    def step(self) -> None:
        """Run one random operation; one that the engine refuses counts as nothing."""
        operations = self.operations()
        weights = [weight for weight, _ in operations]
        operation = self.random.choices([run for _, run in operations], weights)[0]
        settings = {
            "spark.databricks.delta.checkpoint.partSize": self.random.choice(("2", "100")),
            "spark.databricks.delta.checkpointV2.topLevelFileFormat": self.random.choice(
                ("json", "parquet")
            ),
            "spark.databricks.delta.write.utcTimestampPartitionValues": self.random.choice(
                ("true", "false")
            ),
            "spark.sql.parquet.outputTimestampType": self.random.choice(
                ("TIMESTAMP_MICROS", "INT96")
            ),
            "spark.sql.leafNodeDefaultParallelism": self.random.choice(("1", "2")),
        }
        before = self._now
        try:
            with self._settings(settings):
                columns = operation()
        except Exception:  # noqa: BLE001  (what delta-spark refuses is no part of a history)
            self.refused.append(f"{self.statements[-1]}\n{traceback.format_exc(limit=-1)[-1500:]}")
            columns = before
        self._note(columns or before)

    def operations(self) -> list[tuple[int, Operation]]:
        """Return what the author may do, each with how often it does it."""
        return [
            (6, self._append),
            (1, self._overwrite),
            (2, self._replace_where),
            (4, self._delete),
            (3, self._update),
            (3, self._merge),
            (1, self._optimize),
            (2, self._add_column),
            (2, self._rename_or_drop),
            (2, self._widen),
            (2, self._set_property),
            (1, self._restore),
            (1, self._checkpoint),
        ]

    def run(self, text: str) -> None:
        """Execute a statement."""
        self.spark.sql(text)

    def latest(self) -> int:
        """Ask delta-spark for the latest version."""
        row = self.spark.sql(f"DESCRIBE HISTORY delta.`{self.path}` LIMIT 1").first()
        assert row is not None
        return int(row["version"])

    @property
    def _now(self) -> tuple[Column, ...]:
        return self._columns[max(self._columns)]

    @property
    def _mapped(self) -> bool:
        return self._properties["delta.columnMapping.mode"] != "none"

    def _note(self, columns: tuple[Column, ...]) -> None:
        for version in range(max(self._columns, default=-1) + 1, self.latest() + 1):
            self._columns[version] = columns
            self._properties_at[version] = dict(self._properties)

    def _append(self) -> None:
        self._sql(f"INSERT INTO {{t}} ({self._names()}) {self._rows()}")

    def _overwrite(self) -> None:
        mode = self.random.choice(("static", "dynamic"))
        with self._settings({"spark.sql.sources.partitionOverwriteMode": mode}):
            self._sql(f"INSERT OVERWRITE {{t}} ({self._names()}) {self._rows()}")

    def _replace_where(self) -> None:
        # Ids grow, so new rows always satisfy the predicate.
        least = self.random.randint(max(0, self._next_id - 6), self._next_id)
        ordered = ", ".join(column.quoted for column in self._now)
        rows = f"SELECT {ordered} FROM ({self._rows()}) AS s({self._names()})"
        self._sql(f"INSERT INTO {{t}} REPLACE WHERE id >= {least} {rows}")

    def _delete(self) -> None:
        self._sql(f"DELETE FROM {{t}} WHERE {self._condition()}")

    def _update(self) -> None:
        column = self.random.choice([column for column in self._now if column != ID])
        value = literal(self.random, column.type)
        self._sql(f"UPDATE {{t}} SET {column.quoted} = {value} WHERE {self._condition()}")

    def _merge(self) -> None:
        names = self._names()
        back = min(self._next_id, 3)
        self._next_id -= back  # some of the source's ids are in the table already
        source = f"(SELECT * FROM ({self._rows(back + 1)}) AS s({names}))"
        updated = self.random.choice([column for column in self._now if column != ID])
        matched = self.random.choice(
            (
                f"WHEN MATCHED THEN UPDATE SET t.{updated.quoted} = s.{updated.quoted}",
                "WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET *",
                f"WHEN NOT MATCHED BY SOURCE AND {self._condition('t.')} THEN DELETE",
            )
        )
        # An inserting clause comes before one about rows that the source lacks.
        insert = "WHEN NOT MATCHED THEN INSERT *"
        clauses = f"{insert} {matched}" if "BY SOURCE" in matched else f"{matched} {insert}"
        self._sql(f"MERGE INTO {{t}} t USING {source} s ON t.id = s.id {clauses}")

    def _optimize(self) -> None:
        choices = ["OPTIMIZE {t}", "OPTIMIZE {t} ZORDER BY (id)"]
        if self._properties["delta.enableDeletionVectors"] == "true":
            choices.append("REORG TABLE {t} APPLY (PURGE)")
        self._sql(self.random.choice(choices))

    def _add_column(self) -> tuple[Column, ...] | None:
        taken = {column.name.lower() for column in self._now}
        names = [*self.plain_names, *(MAPPED_NAMES if self._mapped else ())]
        # A dropped and added name may come back with another type only where columns are mapped.
        free = [name for name in names if name.lower() not in taken]
        column = Column(self.random.choice(free), self.random.choice((*PRIMITIVES, *NESTED)))
        first = self.random.choice(("", "", " FIRST"))
        self._sql(f"ALTER TABLE {{t}} ADD COLUMN ({column.quoted} {column.type}{first})")
        return (column, *self._now) if first else (*self._now, column)

    def _rename_or_drop(self) -> tuple[Column, ...] | None:
        if not self._mapped:
            return None
        column = self.random.choice([column for column in self._now if column != ID])
        if self.random.random() < 0.4 and not column.partition and len(self._now) > 3:
            self._sql(f"ALTER TABLE {{t}} DROP COLUMN {column.quoted}")
            return tuple(other for other in self._now if other != column)
        taken = {other.name.lower() for other in self._now}
        free = [name for name in (*self.plain_names, *MAPPED_NAMES) if name.lower() not in taken]
        renamed = replace(column, name=self.random.choice(free))
        self._sql(f"ALTER TABLE {{t}} RENAME COLUMN {column.quoted} TO {renamed.quoted}")
        return tuple(renamed if other == column else other for other in self._now)

    def _widen(self) -> tuple[Column, ...] | None:
        choices = [column for column in self._now if column.type in WIDER and column != ID]
        if self._properties["delta.enableTypeWidening"] != "true" or not choices:
            return None
        column = self.random.choice(choices)
        wider = replace(column, type=self.random.choice(WIDER[column.type]))
        self._sql(f"ALTER TABLE {{t}} ALTER COLUMN {column.quoted} TYPE {wider.type}")
        return tuple(wider if other == column else other for other in self._now)

    def _set_property(self) -> None:
        name, value = self.random.choice(
            (
                ("delta.checkpointPolicy", self.random.choice(("classic", "v2"))),
                ("delta.checkpoint.writeStatsAsStruct", self.random.choice(("true", "false"))),
                ("delta.checkpoint.writeStatsAsJson", self.random.choice(("true", "false"))),
                ("delta.enableDeletionVectors", self.random.choice(("true", "false"))),
                ("delta.enableTypeWidening", "true"),
                ("delta.enableInCommitTimestamps", self.random.choice(("true", "false"))),
                ("delta.enableRowTracking", "true"),
                ("delta.columnMapping.mode", "name"),
                ("delta.dataSkippingNumIndexedCols", self.random.choice(("0", "1", "-1"))),
            )
        )
        if name == "delta.columnMapping.mode" and self._mapped:
            return
        self._sql(f"ALTER TABLE {{t}} SET {_listed({name: value})}")
        self._properties[name] = value

    def _restore(self) -> tuple[Column, ...] | None:
        version = self.random.choice(sorted(self._columns))
        self._sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {version}")
        self._properties = dict(self._properties_at[version])
        return self._columns[version]

    def _checkpoint(self) -> None:
        self.statements.append("checkpoint")
        jvm: Any = self.spark._jvm
        session: Any = self.spark
        jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
            session._jsparkSession, str(self.path)
        ).checkpoint()

    def _condition(self, prefix: str = "") -> str:
        """Make a condition that holds for some rows, by id or by a column's value."""
        if self.random.random() < 0.7:
            divisor = self.random.randint(2, 5)
            return f"{prefix}id % {divisor} = {self.random.randrange(divisor)}"
        comparable_types = [column for column in self._now if "<" not in column.type]
        column = self.random.choice(comparable_types)
        return f"{prefix}{column.quoted} <=> {literal(self.random, column.type)}"

    def _names(self) -> str:
        return ", ".join(column.quoted for column in self._now)

    def _rows(self, count: int | None = None, columns: Sequence[Column] | None = None) -> str:
        """Make a query of new rows, their columns by default in the table's order."""
        rows = []
        for _ in range(count or self.random.randint(1, 6)):
            values = (
                f"{self._next_id}L" if column == ID else literal(self.random, column.type)
                for column in columns or self._now
            )
            rows.append(f"({', '.join(values)})")
            self._next_id += 1
        return f"SELECT * FROM VALUES {', '.join(rows)}"

    def _declared(self, columns: list[Column]) -> str:
        return ", ".join(f"{column.quoted} {column.type}" for column in columns)

    def _sql(self, statement: str) -> None:
        self.statements.append(statement)
        self.run(statement.replace("{t}", f"delta.`{self.path}`"))

    @contextmanager
    def _settings(self, values: Mapping[str, str]) -> Iterator[None]:
        before = {name: self.spark.conf.get(name, None) for name in values}
        try:
            for name, value in values.items():
                self.spark.conf.set(name, value)
            yield
        finally:
            for name, old in before.items():
                if old is None:
                    self.spark.conf.unset(name)
                else:
                    self.spark.conf.set(name, old)


def _listed(properties: Mapping[str, str]) -> str:
    pairs = (f"'{name}' = '{value}'" for name, value in properties.items())
    return f"TBLPROPERTIES ({', '.join(pairs)})"
