"""Pairs of table features that are added, used and dropped one after the other: delta-spark reads
and writes every result, and refuses what we refuse.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import alter_table, load_snapshot, verify, write_delta
from sparkdelta.base.protocol.table_features import supported_features
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.alter import drop_feature as command
from sparkdelta.operations.alter.drop_feature import drop_feature
from tests.operations.alter.test_drop_feature import ROWS, USES, rows
from tests.oracle.test_drop_feature_oracle import drop
from tests.support.delta_spark import DeltaSpark

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PAIRS = list(combinations(sorted(USES), 2))
LAST = ("columnMapping",)  # it renames the columns that others use


def try_to_drop(spark: SparkSession, table: str, name: str) -> dict[str, Any]:
    """Drop a feature and return the protocol then, or the error; runs in the process of
    delta-spark.
    """
    try:
        return {"protocol": drop(spark, table, name)}
    except Exception as error:  # noqa: BLE001 - compared with whether we raise one
        return {"error": str(error)[:1000]}


def use(spark: SparkSession, path: str, name: str) -> None:
    """Add a feature to a table, and use it."""
    properties, used = USES[name]
    alter_table(spark, path).set_properties(properties)
    if name != "domainMetadata":
        used(spark, path)
        return
    domain = {"domain": "own", "configuration": "{}", "removed": False}
    version = load_snapshot(spark, path).version + 1
    lines = [{"commitInfo": {"inCommitTimestamp": 1 << 42}}, {"domainMetadata": domain}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    Path(path, "_delta_log", f"{version:020}.json").write_text(text)


@dataclass(frozen=True)
class Engines:
    """Both engines, and the thread that calls delta-spark."""

    spark: SparkSession
    delta_spark: DeltaSpark
    waiting: ThreadPoolExecutor

    def dropped(self, path: str, name: str, *, copy: str | None) -> Iterator[None]:
        """Drop a feature here, and from the copy by delta-spark, which then writes to our table.

        It yields before it waits for an answer of delta-spark.
        """
        before, told = rows(self.spark, path), None
        if copy is not None:
            told = self._ask("test_feature_pairs:try_to_drop", table=copy, name=name)
        try:
            drop_feature(self.spark, path, name)
            refusal = None
        except DeltaError as error:
            refusal = str(error)
        assert rows(self.spark, path) == before
        found = load_snapshot(self.spark, path).protocol
        left = sorted(feature.value for feature in supported_features(found))
        if told is None:
            assert refusal is None, (path, name, refusal)
        else:
            yield
            wanted, answer = {"protocol": [found.min_reader_version, left]}, told.result()
            assert (refusal is None) == ("error" not in answer), (path, refusal, answer)
            assert refusal is not None or answer == wanted, (path, answer, wanted)
        told = self._ask("test_drop_feature:go_on", table=path)
        yield
        read, features = told.result()
        assert ([tuple(row) for row in read], features) == (before, left), path

    def drop_both(self, path: str, first: str, second: str) -> Iterator[None]:
        """Drop one feature, append rows, and drop the other one.

        delta-spark need not drop the other one, too: the table is then like one that has it alone,
        or, if the first drop is refused, like the one of the other order.
        """
        copy = f"{path}-copy"
        shutil.copytree(path, copy)
        yield from self.dropped(path, first, copy=copy)
        schema = load_snapshot(self.spark, path).schema
        values = [f"{'8L' if name == 'id' else '0'} AS {name}" for name in schema.names]
        write_delta(self.spark.sql(f"SELECT {', '.join(values)}"), path, mode="append")
        yield from self.dropped(path, second, copy=None)
        found = supported_features(load_snapshot(self.spark, path).protocol)
        assert second not in {feature.value for feature in found}
        assert verify(self.spark, path).is_clean

    def _ask(self, function: str, **arguments: Any) -> Any:
        ask = partial(self.delta_spark.run, f"tests.oracle.{function}", **arguments)
        return self.waiting.submit(ask)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_pair(
    spark: SparkSession,
    delta_spark: DeltaSpark,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    second: str,
) -> None:
    """Both features are added to a table and used; then they are dropped, in either order.

    The tables of both orders take turns, so that no engine waits for the other.
    """
    monkeypatch.setattr(command, "NUM_BARRIERS", 1)  # the others are alike
    template = str(tmp_path / "table")
    write_delta(spark.sql(ROWS), template, partition_by=["p"])
    for name in sorted((first, second), key=lambda each: (each in LAST, each)):
        use(spark, template, name)
    with ExitStack() as stack:
        engines = Engines(spark, delta_spark, stack.enter_context(ThreadPoolExecutor(1)))
        runs = []
        for order in ((first, second), (second, first)):
            path = str(tmp_path / order[0])
            shutil.copytree(template, path)
            runs.append(engines.drop_both(path, *order))
        for _ in zip_longest(*runs):
            pass
