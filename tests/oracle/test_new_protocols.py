"""New tables for which versions of the protocol, features and properties are asked for: both
engines give them the same protocol and the same properties.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import load_snapshot, sql
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

FEATURE = "delta.feature."
MAPPED = {"delta.columnMapping.mode": "name"}
CHANGES = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
NO_DEFAULTS = {"delta.ignoreProtocolDefaults": "true"}
PLAIN, NOT_NULL = "a INT", "a INT NOT NULL"


def versions(reader: int | None, writer: int | None) -> dict[str, str]:
    asked = {"delta.minReaderVersion": reader, "delta.minWriterVersion": writer}
    return {name: str(version) for name, version in asked.items() if version is not None}


def features(*names: str) -> dict[str, str]:
    return {f"{FEATURE}{name}": "supported" for name in names}


TABLES: list[tuple[str, dict[str, str]]] = [
    *((PLAIN, versions(reader, writer)) for reader in (None, 1, 2, 3) for writer in (None, 1, 2)),
    *((PLAIN, versions(reader, writer)) for reader in (1, 2, 3) for writer in (4, 5, 6, 7)),
    *((NOT_NULL, versions(3, writer)) for writer in (2, 7)),
    *((PLAIN, {**versions(3, 7), **more}) for more in (MAPPED, CHANGES, VECTORS)),
    *((PLAIN, {**versions(1, 7), **more}) for more in (MAPPED, CHANGES, VECTORS)),
    *((PLAIN, {**versions(1, 7), "delta.appendOnly": value}) for value in ("true", "false")),
    *((PLAIN, {**versions(1, 1), **more}) for more in (VECTORS, features("domainMetadata"))),
    *((PLAIN, {**versions(2, 5), **more}) for more in (MAPPED, CHANGES, VECTORS)),
    (PLAIN, features("appendOnly")),
    (PLAIN, features("deletionVectors")),
    (PLAIN, features("rowTracking", "checkConstraints")),
    (PLAIN, {**versions(3, 7), **features("appendOnly", "invariants")}),
    (PLAIN, {**versions(3, 7), **features("v2Checkpoint"), "own": "x"}),
    (PLAIN, {**versions(1, 4), **features("rowTracking")}),
    (PLAIN, NO_DEFAULTS),
    (PLAIN, {**NO_DEFAULTS, **VECTORS}),
]


def create(table: str, number: int) -> str:
    columns, properties = TABLES[number]
    text = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    listed = f" TBLPROPERTIES ({text})" if text else ""
    return f"CREATE TABLE delta.`{table}/{number}` ({columns}) USING delta{listed}"


def theirs(spark: SparkSession, table: str) -> None:
    """Make tables by the statements that we execute, too; runs in the process of delta-spark."""
    for number in range(len(TABLES)):
        spark.sql(create(table, number))


def described(spark: SparkSession, table: str, number: int) -> tuple[Any, ...]:
    """Return the request for a table, its protocol and its properties, without random names."""
    found = load_snapshot(spark, f"{table}/{number}")
    protocol = found.protocol
    lists = [
        names and sorted(names) for names in (protocol.reader_features, protocol.writer_features)
    ]
    properties = {k: v for k, v in found.properties.items() if "materialized" not in k}
    return (
        TABLES[number],
        protocol.min_reader_version,
        protocol.min_writer_version,
        lists,
        properties,
    )


@pytest.mark.slow
def test_the_same_protocols(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    ours, other = str(tmp_path / "ours"), str(tmp_path / "theirs")
    delta_spark.run("tests.oracle.test_new_protocols:theirs", table=other)
    for number in range(len(TABLES)):
        sql(spark, create(ours, number))
    numbers = range(len(TABLES))
    assert [described(spark, ours, n) for n in numbers] == [
        described(spark, other, n) for n in numbers
    ]
