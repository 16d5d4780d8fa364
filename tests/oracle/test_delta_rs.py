"""Random histories that delta-rs wrote read equal in both engines, at every version."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from sparkdelta import read_delta
from tests.golden.expected import unescaped
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.oracle

STEPS = 14
MICROS = pa.timestamp("us", "UTC")
TEXTS = [
    "plain",
    "",
    "a b",
    "100%",
    "%20",
    "a/b=c",
    "12:30",
    "#&+?",
    "snow 雪",
    "it's",
    "a\\b",
    ".",
]
TIMES = [
    dt.datetime(1582, 10, 4, 23, 59, 59, 999999),
    dt.datetime(1815, 12, 10, 1, 2, 3, 4),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500000),
    dt.datetime(2024, 2, 29, 12, 0, 0),
]
ADDED = "added"
# Negative decimals are left out of partition values: delta-rs 1.6 spells -1.25 as "-1.-25".
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), TEXTS),
    "number": (pa.int64(), [-(2**63), 2**63 - 1, 0, 7]),
    "small": (pa.int8(), [-128, 127, 0]),
    "flag": (pa.bool_(), [True, False]),
    "ratio": (pa.float64(), [1.5, -0.0, float("nan"), float("-inf"), 5e-324]),
    "price": (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("12345678.90"), Decimal("7.05")]),
    "day": (pa.date32(), [time.date() for time in TIMES]),
    "at": (MICROS, [time.replace(tzinfo=dt.timezone.utc) for time in TIMES]),
    "local": (pa.timestamp("us"), TIMES),
    "bytes": (pa.binary(), [b"", b"\x00\xff", b"abc", "ü".encode()]),
    "list of": (pa.list_(pa.int32()), [[], [1, None], [2]]),
    "s.t": (
        pa.struct({"x": pa.int32(), "y z": pa.string()}),
        [{"x": 1, "y z": "v"}, {"x": None, "y z": None}],
    ),
    ADDED: (pa.string(), ["x", "y"]),
    "dict": (pa.map_(pa.string(), pa.float32()), [[], [("k", 1.5)], [("k", None), ("l", 0.5)]]),
}
# A double spelled in full makes a path too long for a file system, a list makes no partition.
PARTITIONABLE = ["text", "number", "small", "flag", "price", "day", "at", "local", "bytes"]


class DeltaRsAuthor:
    """Invents and runs one commit after the other on one table."""

    def __init__(self, path: Path, random: Random) -> None:
        self.path = path
        self.random = random
        self.names = random.sample(sorted(set(VALUES) - {ADDED}), 4)
        partitionable = [name for name in self.names if name in PARTITIONABLE]
        self.partition = random.sample(partitionable, min(len(partitionable), random.randint(0, 2)))
        self.story: list[str] = []
        self._next_id = 0

    def create(self) -> None:
        """Create the table with some rows."""
        write_deltalake(self.path, self._rows(), partition_by=self.partition or None)
        self.story.append(f"create {self.names} partitioned by {self.partition}")

    def step(self) -> None:
        """Run one random operation."""
        operations: list[tuple[int, Callable[[], object]]] = [
            (6, self._append),
            (1, self._overwrite),
            (2, self._replace),
            (3, lambda: self._table.delete(self._condition())),
            (2, self._update),
            (3, self._merge),
            (1, lambda: self._table.optimize.compact()),
            (1, self._restore),
            (1, lambda: self._table.create_checkpoint()),
            (1, self._compact_log),
            (1, self._add_column),
        ]
        weights = [weight for weight, _ in operations]
        operation = self.random.choices([run for _, run in operations], weights)[0]
        self.story.append(f"{self._table.version()}: {operation.__qualname__}")
        operation()

    @property
    def _table(self) -> DeltaTable:
        return DeltaTable(self.path)

    def _rows(self) -> pa.Table:
        count = self.random.randint(1, 5)
        ids = list(range(self._next_id, self._next_id + count))
        self._next_id += count
        columns: dict[str, pa.Array] = {"id": pa.array(ids, pa.int64())}
        for name in self.names:
            data_type, values = VALUES[name]
            # Where all values are null, delta-rs still takes the column's type from the schema.
            chosen = [self.random.choice([None, *values]) for _ in ids]
            columns[name] = pa.array(chosen, data_type)
        return pa.table(columns)

    def _condition(self) -> str:
        divisor = self.random.randint(2, 4)
        return f"id % {divisor} = {self.random.randrange(divisor)}"

    def _append(self) -> None:
        write_deltalake(self.path, self._rows(), mode="append")

    def _overwrite(self) -> None:
        write_deltalake(self.path, self._rows(), mode="overwrite")

    def _replace(self) -> None:
        predicate = f"id >= {max(0, self._next_id - self.random.randint(1, 6))}"
        write_deltalake(self.path, self._rows(), mode="overwrite", predicate=predicate)

    def _update(self) -> None:
        free = [name for name in self.names if name not in self.partition]
        if free:
            changes = {f"`{self.random.choice(free)}`": "NULL"}
            self._table.update(changes, predicate=self._condition())

    def _merge(self) -> None:
        self._next_id = max(0, self._next_id - 3)  # some of the source's ids are there already
        source = self._rows()
        merge = self._table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        if self.random.random() < 0.5:
            merge = merge.when_matched_delete("t.id % 2 = 0")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def _restore(self) -> None:
        # An older version may lack a column that was added since.
        latest = self._table.version()
        if ADDED not in self.names and latest > 0:
            self._table.restore(self.random.randrange(latest))

    def _compact_log(self) -> None:
        latest = self._table.version()
        if latest >= 2:
            start = self.random.randint(0, latest - 1)
            self._table.compact_logs(start, self.random.randint(start + 1, latest))

    def _add_column(self) -> None:
        if ADDED in self.names:
            return
        self.names.append(ADDED)
        write_deltalake(self.path, self._rows(), mode="append", schema_mode="merge")


def delta_rs_rows(path: Path, version: int) -> pa.Table:
    """The rows as delta-rs reads them, in the types of the table's schema."""
    table = DeltaTable(path, version=version)
    rows = table.to_pyarrow_table().cast(pa.schema(table.schema().to_arrow()))
    return unescaped(rows, {"bytes"} & set(table.metadata().partition_columns))


def test_random_history(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    author = DeltaRsAuthor(tmp_path / "table", Random(seed))
    author.create()
    for _ in range(STEPS):
        author.step()
    latest = DeltaTable(author.path).version()
    wrong = []
    for version in range(latest + 1):
        expected = delta_rs_rows(author.path, version)
        try:
            assert_same_rows(read_delta(spark, str(author.path), version=version), expected)
        except Exception as error:  # noqa: BLE001  (the other versions tell where it began)
            wrong.append(f"version {version}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join([*wrong, f"the history of seed {seed}:", *author.story])
