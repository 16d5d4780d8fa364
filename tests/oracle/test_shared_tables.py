"""Tables that sparkdelta, delta-spark and delta-rs change, in turn and at once: after each step,
every engine reads the rows of a model.
"""

from __future__ import annotations

import math
import random
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as RsTable
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, read_changes, read_delta, sql, verify
from tests.oracle.test_delta_spark import delta_rs_rows
from tests.support import shared_table as shared
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

STEPS = 8
SUPPORT = "tests.support.shared_table:"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("v", pa.float64()), ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")), ("p", pa.string()),
    ]
)  # fmt: skip
PROPERTIES = {
    "delta.enableDeletionVectors": ["true", "false", "false"],
    "delta.enableChangeDataFeed": ["true", "false"],
    "delta.checkpointInterval": ["2", "3", "100"],
    "delta.checkpointPolicy": ["v2", "classic", "classic"],
    "delta.enableInCommitTimestamps": ["true", "false", "false"],
    "delta.enableRowTracking": ["true", "false", "false"],
    "delta.columnMapping.mode": ["none", "none", "name", "id"],
    "delta.dataSkippingNumIndexedCols": ["32", "2"],
    "delta.checkpoint.writeStatsAsStruct": ["true", "false"],
}
KINDS = (
    "append", "append", "append", "delete", "delete", "update", "update", "merge", "merge",
    "replace", "move", "optimize", "cluster", "purge", "checkpoint", "vacuum", "compact log",
    "clean log", "restore",
)  # fmt: skip
NOT_OF_DELTA_SPARK = {"clean log", "compact log"}
NOT_OF_DELTA_RS = {"clean log", "purge"}
# Words in the errors by which delta-rs refuses to write a table.
DELTA_RS_REFUSALS = ("nsupported", "not supported", "requires feature")


class Engines:
    """The three engines on one table."""

    def __init__(self, spark: SparkSession, delta_spark: DeltaSpark, path: str) -> None:
        self.spark = spark
        self.delta_spark = delta_spark
        self.path = path

    def run(self, engine: str, operations: list[shared.Operation]) -> list[str | None]:
        if engine == "sparkdelta":
            return shared.carry_out(self.spark, self.path, operations)
        if engine == "delta-rs":
            return [
                shared.attempt(lambda one=one: run_delta_rs(self.path, one)) for one in operations
            ]  # type: ignore[misc]
        told: list[str | None] = self.delta_spark.run(
            f"{SUPPORT}carry_out_by_delta_spark", path=self.path, operations=operations
        )
        return told

    def assert_rows(self, rows: shared.Model, conditions: list[Any], story: str) -> None:
        """Assert that every engine reads these rows, and those of each condition."""
        expected = [
            sorted(row for row in rows.values() if shared.holds(condition, row))
            for condition in [[], *conditions]
        ]
        wheres = [shared.condition_text(condition) for condition in conditions]
        ours = [
            shared.shown(read_delta(self.spark, self.path)),
            *(shared.shown(read_delta(self.spark, self.path, where=where)) for where in wheres),
        ]
        theirs = self.delta_spark.run(
            f"{SUPPORT}read_by_delta_spark", path=self.path, wheres=wheres
        )
        for where, of_model, of_ours, of_theirs in zip(
            ["true", *wheres], expected, ours, theirs, strict=True
        ):
            assert of_ours == of_model, f"sparkdelta, {where}:\n{story}"
            # Spark's Parquet filter loses NaN in files of delta-rs, whose bounds leave it out.
            by_v = re.search(r"\bv\b", where) is not None
            seen, right = ([r for r in rows if not (by_v and r[1] == "NaN")]
                           for rows in (of_theirs, of_model))  # fmt: skip
            assert seen == right, f"delta-spark, {where}:\n{story}"
        read = delta_rs_rows(self.path, RsTable(self.path).version())
        if read is not None:
            assert sorted(map(of_arrow, read.to_pylist())) == expected[0], f"delta-rs:\n{story}"


def of_arrow(row: dict[str, Any]) -> shared.Row:
    """The row as the model has it."""
    v, t = row["v"], row["t"]
    number = None if v is None else "NaN" if math.isnan(v) else str(v)
    number = number if v is None or not math.isinf(v) else "Infinity" if v > 0 else "-Infinity"
    micros = None if t is None else int(pa.scalar(t, pa.timestamp("us", "UTC")).value)
    return [row["id"], number, row["s"], micros, row["p"]]


def table_of(rows: list[shared.Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    columns[1] = tuple(None if v is None else float(v) for v in columns[1])
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def run_delta_rs(path: str, operation: shared.Operation) -> None:
    kind, *arguments = operation
    table = RsTable(path)
    if kind == "append":
        write_deltalake(table, table_of(arguments[0]), mode="append")
    elif kind == "delete":
        table.delete(shared.condition_text(arguments[0]))
    elif kind == "replace":
        where = shared.condition_text(arguments[0])
        write_deltalake(table, table_of(arguments[1]), mode="overwrite", predicate=where)
    elif kind == "update":
        table.update({"s": "s || '+'"}, shared.condition_text(arguments[0]))
    elif kind == "move":
        table.update(new_values={"p": arguments[1]}, predicate=shared.condition_text(arguments[0]))
    elif kind == "merge":
        merge = table.merge(table_of(arguments[0]), "t.id = s.id", "s", "t")
        merge = merge.when_matched_delete("t.id % 2 = 0").when_matched_update_all()
        merge.when_not_matched_insert_all().execute()
    elif kind == "restore":
        table.restore(arguments[0])
    elif kind == "optimize":
        table.optimize.compact()
    elif kind == "cluster":
        table.optimize.z_order(["id"])
    elif kind == "checkpoint":
        table.create_checkpoint()
    elif kind == "vacuum":
        table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    elif kind == "compact log" and table.version() > 1:
        table.compact_logs(max(1, table.version() - 3), table.version())


class Author:
    """Invents operations."""

    def __init__(self, rng: random.Random, names: tuple[str, ...] = shared.COLUMNS) -> None:
        self.random = rng
        self.names = names
        self.next_id = 0
        self.rows_at: dict[int, shared.Model] = {}

    def new_rows(self, back: int = 0) -> list[shared.Row]:
        self.next_id = max(0, self.next_id - back)
        first, count = self.next_id, self.random.randint(1, 5) + back
        self.next_id += count
        return shared.random_rows(self.random, range(first, first + count))

    def operation(self, kind: str, engine: str) -> shared.Operation:
        # delta-rs compares zeros and NaN in another way, and its texts of times differ.
        names = ("id", "s", "p") if engine == "delta-rs" else self.names
        condition = shared.random_condition(self.random, names)
        if kind in ("append", "merge"):
            return [kind, self.new_rows(4 * (kind == "merge"))]
        if kind == "replace":
            least = self.next_id % 3
            rows = [row for row in self.new_rows() if row[0] % 3 == least]
            return [kind, [["id", 3, least]], rows] if rows else ["delete", [["id", 3, least]]]
        if kind in ("delete", "update"):
            return [kind, condition]
        if kind == "move":
            return [kind, condition, self.random.choice(shared.PARTS[:-1])]
        if kind == "restore":
            return [kind, self.random.choice(sorted(self.rows_at))]
        return [kind]


def create(engines: Engines, rng: random.Random) -> dict[str, str]:
    names = rng.sample(sorted(PROPERTIES), rng.randint(0, 5))
    properties = {name: rng.choice(PROPERTIES[name]) for name in names}
    text = f"CREATE TABLE delta.`{engines.path}` ({shared.DECLARED}) USING delta"
    text += rng.choice((" PARTITIONED BY (p)", ""))
    if properties:
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        text += f" TBLPROPERTIES ({listed})"
    if rng.random() < 0.5:
        sql(engines.spark, text)
    else:
        engines.delta_spark.run(f"{SUPPORT}create_by_delta_spark", text=text)
    return properties


@pytest.mark.slow
def test_engines_take_turns(
    spark: SparkSession, delta_spark: DeltaSpark, table_path: str, seed: int
) -> None:
    rng = random.Random(f"turns {seed}")
    engines = Engines(spark, delta_spark, table_path)
    properties = create(engines, rng)
    author, rows = Author(rng), dict[int, shared.Row]()
    author.rows_at[0] = rows
    story = [f"seed {seed}: {properties}"]
    first_change = 0
    for number in range(STEPS):
        engine = rng.choice(("sparkdelta", "delta-spark", "delta-rs"))
        excluded = {
            "sparkdelta": set(), "delta-spark": NOT_OF_DELTA_SPARK, "delta-rs": NOT_OF_DELTA_RS,
        }[engine]  # fmt: skip
        kind = rng.choice([kind for kind in KINDS if kind not in excluded]) if number else "append"
        operation = author.operation(kind, engine)
        [error] = engines.run(engine, [operation])
        story.append(f"{engine}: {operation} {error or ''}")
        refused = error is not None and engine == "delta-rs" and any(
            sign in error for sign in DELTA_RS_REFUSALS
        )  # fmt: skip
        assert error is None or refused, "\n".join(story)
        if error is None:
            restored = kind == "restore"
            rows = author.rows_at[operation[1]] if restored else shared.after(operation, rows)
        version = load_snapshot(spark, table_path).version
        story[-1] += f" -> {version}"
        if kind in ("vacuum", "clean log"):
            author.rows_at.clear()
            first_change = version + 1
        for skipped in range(max(author.rows_at, default=version - 1) + 1, version + 1):
            author.rows_at[skipped] = rows
        conditions = [shared.random_condition(rng, shared.COLUMNS) for _ in range(1)]
        engines.assert_rows(rows, conditions, "\n".join(story))
    earlier = rng.choice(sorted(author.rows_at))
    found = shared.shown(read_delta(spark, table_path, version=earlier))
    assert found == sorted(author.rows_at[earlier].values()), "\n".join(story)
    if properties.get("delta.enableChangeDataFeed") == "true" and first_change <= version:
        theirs = delta_spark.run(
            f"{SUPPORT}changes_by_delta_spark", path=table_path, start=first_change
        )
        ours = shared.shown_changes(read_changes(spark, table_path, start_version=first_change))
        assert ours == theirs, "\n".join(story)
    report = verify(spark, table_path)
    assert report.is_clean, f"{report}\n" + "\n".join(story)


AT_ONCE = ("append", "delete", "update", "merge", "optimize", "checkpoint", "compact log")
CONFLICTS = ("oncurrent", "ConflictError", "conflict", "failed because", "CommitFailed")


@pytest.mark.slow
def test_engines_write_at_once(
    spark: SparkSession, delta_spark: DeltaSpark, table_path: str, seed: int
) -> None:
    """Each engine changes rows of its own; a commit that is refused has changed nothing."""
    rng = random.Random(f"at once {seed}")
    engines = Engines(spark, delta_spark, table_path)
    properties = create(engines, rng)
    assert engines.run("sparkdelta", [["append", shared.random_rows(rng, range(30))]]) == [None]
    rows = {row[0]: row for row in shared.shown(read_delta(spark, table_path))}
    names = ("sparkdelta", "delta-spark", "delta-rs")
    plans = {
        name: shared.own_operations(
            rng, AT_ONCE[: None if name == "sparkdelta" else -1], number, writers=3, steps=7
        )
        for number, name in enumerate(names)
    }
    with ThreadPoolExecutor(3) as threads:
        runs = {name: threads.submit(engines.run, name, plans[name]) for name in names}
        told = {name: run.result() for name, run in runs.items()}
    story = [f"seed {seed}: {properties}"]
    for name in names:
        for operation, error in zip(plans[name], told[name], strict=True):
            story.append(f"{name}: {operation} {error or ''}")
            if error is None:
                rows = shared.after(operation, rows)
                continue
            signs = (*CONFLICTS, *(DELTA_RS_REFUSALS if name == "delta-rs" else ()))
            assert any(sign in error for sign in signs), "\n".join(story)
    conditions = [shared.random_condition(rng, shared.COLUMNS) for _ in range(1)]
    engines.assert_rows(rows, conditions, "\n".join(story))
    report = verify(spark, table_path)
    assert report.is_clean, f"{report}\n" + "\n".join(story)
