"""One table that several engines change: random operations as JSON, a model of the rows, and how
Spark, ours or delta-spark's, carries them out.

A row is ``[id, v, s, t, p]``: `v` is the text of a DOUBLE, `t` microseconds. A condition is a list
of terms that all hold.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    clean_log,
    compact_log,
    enable,
    load_snapshot,
    sql,
    vacuum,
    write_checkpoint,
)

Row = list[Any]
Model = dict[int, Row]
Operation = list[Any]

COLUMNS = ("id", "v", "s", "t", "p")
DECLARED = "id BIGINT, v DOUBLE, s STRING, t TIMESTAMP, p STRING"
NUMBERS = ("NaN", "-0.0", "0.0", "1.5", "-2.25", "-Infinity", "Infinity", None)
TEXTS = ("", "a", "it's", "snow 雪", "z" * 40, "z" * 40 + "z", "😀" * 33, "𠀀", "𠀀" * 33, None)
TIMES = (0, -1, 1_700_000_000_123_456, 1_700_000_000_123_999, -1_000_000_000_000_001, None)
PARTS = ("a", "b c", "100%", "x=1/y", "😀:", "𠀀", None)
DAYS = 40 * 24 * 3_600_000


def random_rows(random: Random, ids: Iterable[int]) -> list[Row]:
    return [[n, *(random.choice(values) for values in (NUMBERS, TEXTS, TIMES, PARTS))] for n in ids]


def random_condition(random: Random, names: Sequence[str]) -> list[Row]:
    """Draw one term or two, on some of the columns."""
    return [_random_term(random, random.choice(names)) for _ in range(random.choice((1, 1, 2)))]


def _random_term(random: Random, name: str) -> Row:
    if name == "id":
        divisor = random.randint(2, 4)
        return [name, divisor, random.randrange(divisor)]
    values: dict[str, Sequence[Any]] = {"v": NUMBERS[:-1], "s": TEXTS[:-1], "t": TIMES[:-1]}
    return [name, random.choice(values.get(name, PARTS))]


def holds(condition: list[Row], row: Row) -> bool:
    return all(_term_holds(term, row) for term in condition)


def _term_holds(term: Row, row: Row) -> bool:
    name, bound = term[:2]
    value = row[COLUMNS.index(name)]
    if name == "id":
        return bool(value % bound == term[2])
    if name == "p":
        return bool(value == bound)
    if value is None:
        return False
    if name == "v":
        return _greater(float(value), float(bound))
    if name == "s":
        return bool(value.encode() >= bound.encode())
    return bool(value < bound)


def _greater(left: float, right: float) -> bool:
    """Compare as Spark does, for which NaN is larger than every number."""
    return not math.isnan(right) and (math.isnan(left) or left > right)


def condition_text(condition: list[Row]) -> str:
    return " AND ".join(map(_term_text, condition))


def _term_text(term: Row) -> str:
    name, bound = term[:2]
    if name == "id":
        return f"id % {bound} = {term[2]}"
    if name == "p":
        return "p IS NULL" if bound is None else f"p = {_quoted(bound)}"
    if name == "v":
        return f"v > double('{bound}')"
    return f"s >= {_quoted(bound)}" if name == "s" else f"t < timestamp_micros({bound})"


def rows_text(rows: list[Row]) -> str:
    """Return a query of the rows."""
    values = (
        f"({n}L, double('{v}'), {_quoted(s)}, timestamp_micros({t}), {_quoted(p)})".replace(
            "double('None')", "CAST(NULL AS DOUBLE)"
        ).replace("micros(None)", "micros(CAST(NULL AS BIGINT))")
        for n, v, s, t, p in rows
    )
    return f"SELECT * FROM VALUES {', '.join(values)} AS r({', '.join(COLUMNS)})"


def _quoted(text: str | None) -> str:
    return "CAST(NULL AS STRING)" if text is None else "'" + text.replace("'", "\\'") + "'"


def after(operation: Operation, rows: Model) -> Model:
    """Return the rows after an operation."""
    kind, *arguments = operation
    if kind == "append":
        return rows | {row[0]: row for row in arguments[0]}
    if kind == "delete":
        return {n: row for n, row in rows.items() if not holds(arguments[0], row)}
    if kind == "replace":
        kept = {n: row for n, row in rows.items() if not holds(arguments[0], row)}
        return kept | {row[0]: row for row in arguments[1]}
    if kind == "update":
        return {n: _updated(row) if holds(arguments[0], row) else row for n, row in rows.items()}
    if kind == "move":
        condition, part = arguments
        return {n: [*r[:4], part] if holds(condition, r) else r for n, r in rows.items()}
    if kind == "merge":
        new = {row[0]: row for row in arguments[0]}
        return {n: row for n, row in rows.items() if n not in new or n % 2 == 1} | {
            n: row for n, row in new.items() if n not in rows or n % 2 == 1
        }
    return rows


def own_operations(
    random: Random, kinds: Sequence[str], number: int, *, writers: int, steps: int, first: int = 30
) -> list[Operation]:
    """Draw operations on the rows whose id has the remainder `number` by the count of writers.

    Parameters
    ----------
    first
        The rows with smaller ids are there already.
    """
    next_id, operations = first + (number - first) % writers, list[Operation]()
    for _ in range(steps):
        kind = random.choice(kinds)
        if kind in ("append", "merge"):
            begin = next_id - 3 * writers * (kind == "merge")
            ids = range(begin, begin + 5 * writers, writers)
            next_id = ids.stop
            operations.append([kind, random_rows(random, ids)])
        elif kind in ("delete", "update"):
            own = ["id", writers, number]
            operations.append([kind, [own, *random_condition(random, ("id", "s", "p"))]])
        else:
            operations.append([kind])
    return operations


def shared_operations(
    random: Random, kinds: Sequence[str], *, first_new: int, steps: int, merged: int = 45
) -> list[Operation]:
    """Draw operations on all rows, of which an append has ids from `first_new` on, and a merge has
    ids below `merged`.
    """
    next_id, operations = first_new, list[Operation]()
    for _ in range(steps):
        kind = random.choice(kinds)
        if kind == "append":
            ids = range(next_id, next_id + 3)
            next_id = ids.stop
            operations.append([kind, random_rows(random, ids)])
        elif kind == "merge":
            operations.append([kind, random_rows(random, random.sample(range(merged), 4))])
        elif kind in ("delete", "update"):
            operations.append([kind, random_condition(random, ("id", "s", "p"))])
        else:
            operations.append([kind])
    return operations


def _updated(row: Row) -> Row:
    text = row[2]
    return [*row[:2], None if text is None else f"{text}+", *row[3:]]


def statement(operation: Operation) -> str | None:
    """Return the SQL of an operation of rows on ``{t}``, which both engines on Spark understand."""
    kind, *arguments = operation
    if kind == "append":
        return f"INSERT INTO {{t}} {rows_text(arguments[0])}"
    if kind == "delete":
        return f"DELETE FROM {{t}} WHERE {condition_text(arguments[0])}"
    if kind == "replace":
        where = condition_text(arguments[0])
        return f"INSERT INTO {{t}} REPLACE WHERE {where} {rows_text(arguments[1])}"
    if kind == "update":
        return f"UPDATE {{t}} SET s = concat(s, '+') WHERE {condition_text(arguments[0])}"
    if kind == "move":
        return f"UPDATE {{t}} SET p = {_quoted(arguments[1])} WHERE {condition_text(arguments[0])}"
    if kind == "merge":
        return (
            f"MERGE INTO {{t}} t USING ({rows_text(arguments[0])}) s ON t.id = s.id"
            " WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET *"
            " WHEN NOT MATCHED THEN INSERT *"
        )
    if kind == "restore":
        return f"RESTORE TABLE {{t}} TO VERSION AS OF {arguments[0]}"
    return {
        "optimize": "OPTIMIZE {t}",
        "cluster": "OPTIMIZE {t} ZORDER BY (id)",
        "purge": "REORG TABLE {t} APPLY (PURGE)",
    }.get(kind)


def shown(rows: DataFrame) -> list[Row]:
    """Return the rows as the model has them, by id."""
    texts = rows.selectExpr("id", "CAST(v AS STRING)", "s", "unix_micros(t)", "p")
    return sorted(map(list, texts.collect()))


def carry_out(spark: SparkSession, path: str, operations: list[Operation]) -> list[str | None]:
    """Run operations by sparkdelta; for each, None or the error."""
    return [attempt(lambda one=one: _run(spark, path, one)) for one in operations]  # type: ignore[misc]


def carry_out_marked(
    spark: SparkSession, path: str, operations: list[Operation], mark: str
) -> list[str | None]:
    """Run operations by sparkdelta, whose commits have the mark and a number as metadata."""
    enable(spark)
    told = []
    for number, one in enumerate(operations):
        spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", f"{mark}{number}")
        told.append(attempt(lambda one=one: _run(spark, path, one, spark.sql)))  # type: ignore[misc]
    return told


def marks(path: str) -> list[str | None]:
    """Return the metadata of each commit, by version."""
    commits = sorted(p for p in Path(path, "_delta_log").glob("*.json") if p.stem.isdigit())
    lines = (json.loads(commit.read_text().partition("\n")[0]) for commit in commits)
    return [line["commitInfo"].get("userMetadata") for line in lines]


def _mislead(path: str) -> None:
    """Let `_last_checkpoint` name the oldest checkpoint."""
    log = Path(path, "_delta_log")
    versions = sorted(int(p.name[:20]) for p in log.glob("*.checkpoint.*"))
    if versions:
        hint = log / f"hint-{uuid.uuid4()}"
        hint.write_text(json.dumps({"version": versions[0], "size": 1}))
        hint.replace(log / "_last_checkpoint")


def _run(
    spark: SparkSession,
    path: str,
    operation: Operation,
    run: Callable[[str], object] | None = None,
) -> None:
    text, kind = statement(operation), operation[0]
    if text is not None:
        text = text.replace("{t}", f"delta.`{path}`")
        sql(spark, text) if run is None else run(text)
    elif kind == "mislead":
        _mislead(path)
    elif kind == "vacuum old":
        vacuum(spark, path, progress=False)
    elif kind == "checkpoint":
        write_checkpoint(spark, path)
    elif kind == "vacuum":
        vacuum(spark, path, retention_hours=0, check_retention=False, progress=False)
    elif kind == "compact log":
        version = load_snapshot(spark, path).version
        if version > 1:
            compact_log(spark, path, start=max(1, version - 3), end=version)
    else:
        committed = load_snapshot(spark, path).timestamp_ms or 0
        clean_log(spark, path, now_ms=committed + DAYS)


def carry_out_by_delta_spark(
    spark: SparkSession, path: str, operations: list[Operation]
) -> list[str | None]:
    """Run operations; runs in the process of delta-spark."""
    return [attempt(lambda one=one: _run_theirs(spark, path, one)) for one in operations]  # type: ignore[misc]


def _run_theirs(spark: SparkSession, path: str, operation: Operation) -> None:
    text, kind = statement(operation), operation[0]
    if text is not None:
        spark.sql(text.replace("{t}", f"delta.`{path}`"))
    elif kind == "vacuum":
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    elif kind == "checkpoint":
        jvm: Any = spark._jvm
        session: Any = spark
        jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, path).checkpoint()


def attempt(run: Callable[[], object]) -> str | None:
    """Run something and return the error, or None."""
    try:
        run()
    except Exception as error:  # noqa: BLE001  (the test decides what it means)
        return f"{type(error).__name__}: {str(error)[:1500]}"
    return None


def read_by_delta_spark(spark: SparkSession, path: str, wheres: list[str]) -> list[list[Row]]:
    """Read all rows, and those of conditions; runs in the process of delta-spark."""
    rows = spark.read.format("delta").load(path)
    return [shown(rows), *(shown(rows.where(where)) for where in wheres)]


def changes_by_delta_spark(spark: SparkSession, path: str, start: int) -> list[Row]:
    """Read the change data; runs in the process of delta-spark."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    return shown_changes(reader.option("startingVersion", start).load(path))


def shown_changes(changes: DataFrame) -> list[Row]:
    texts = changes.selectExpr("_commit_version", "_change_type", "id", "CAST(v AS STRING)", "s",
                               "unix_micros(t)", "p")  # fmt: skip
    return sorted(map(list, texts.collect()), key=str)


def create_by_delta_spark(spark: SparkSession, text: str) -> None:
    """Execute a statement; runs in the process of delta-spark."""
    spark.sql(text)
