"""Random statements of ALTER TABLE and writes, by delta-spark and by sparkdelta: after each, both
tables have the same schema, properties, protocol and rows.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sparkdelta import load_snapshot, read_delta, sql, verify
from sparkdelta.exceptions import DeltaError
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.oracle

STEPS = 14
DEFAULTS = "delta.feature.allowColumnDefaults"
CREATE = (
    "CREATE TABLE {} (a INT NOT NULL, b STRING COMMENT 'b', s STRUCT<x: INT, y: STRING>,"
    " l ARRAY<STRUCT<e: SMALLINT>>, m MAP<STRING, FLOAT>, p INT) USING delta"
)
INITIAL = {
    "delta.columnMapping.mode": ["name", "id"],
    "delta.enableTypeWidening": ["true"],
    "delta.enableDeletionVectors": ["true", "false"],
    "delta.enableChangeDataFeed": ["true"],
    "delta.enableMaterializePartitionColumnsFeature": ["true"],
    "delta.enableRowTracking": ["true"],
    DEFAULTS: ["supported"],
}
LATER = [
    "'delta.columnMapping.mode' = 'name'", "'delta.enableTypeWidening' = 'true'",
    "'delta.enableChangeDataFeed' = 'true', own = 'x'", "'delta.enableDeletionVectors' = 'true'",
    "'delta.enableRowTracking' = 'true'", "'delta.dataSkippingStatsColumns' = 'a'",
    "'delta.enableMaterializePartitionColumnsFeature' = 'true'", "'delta.checkpointInterval' = 3",
    "'delta.dataSkippingNumIndexedCols' = '2'", "'delta.enableInCommitTimestamps' = 'true'",
    "'delta.minReaderVersion' = '3', 'delta.minWriterVersion' = '7'",
    "'delta.minWriterVersion' = '4'",
    "'delta.checkpointPolicy' = 'v2'",
    "'delta.feature.domainMetadata' = 'supported'", "'delta.columnMapping.mode' = 'none'",
    "'delta.feature.vacuumProtocolCheck' = 'supported'",
]  # fmt: skip
DROPPABLE = [
    "columnMapping", "deletionVectors", "typeWidening", "rowTracking", "domainMetadata",
    "checkConstraints", "inCommitTimestamp", "v2Checkpoint", "vacuumProtocolCheck",
    "materializePartitionColumns", "appendOnly", "allowColumnDefaults", "nope",
]  # fmt: skip
UNSET = ["own", "delta.checkpointInterval", "delta.dataSkippingStatsColumns"]
NEW = ["INT", "SMALLINT", "STRING", "DATE", "STRUCT<n: INT>", "ARRAY<STRUCT<g: INT>>"]
WIDER = {
    "smallint": ["INT", "BIGINT", "DOUBLE"], "int": ["BIGINT", "DOUBLE", "DECIMAL(12,2)"],
    "float": ["DOUBLE"], "bigint": ["DECIMAL(20,0)", "INT"], "decimal(12,2)": ["DECIMAL(14,3)"],
}  # fmt: skip


def run(spark: SparkSession, table: str, statement: str) -> dict[str, Any]:
    """Carry a statement out and return the rows afterwards, or the error; runs in the process of
    delta-spark.
    """
    try:
        spark.sql(statement)
    except Exception as error:  # noqa: BLE001 - compared with whether we raise one
        return {"error": str(error)[:1000]}
    rows = spark.sql(f"SELECT to_json(struct(*)) FROM delta.`{table}`").collect()
    return {"rows": sorted(row[0] for row in rows)}


def value(rng: random.Random, data_type: DataType) -> str:
    """SQL of a value of a type."""
    if isinstance(data_type, StructType):
        fields = (f"'{f.name}', {value(rng, f.dataType)}" for f in data_type.fields)
        return f"named_struct({', '.join(fields)})"
    if isinstance(data_type, ArrayType):
        return f"array({value(rng, data_type.elementType)})"
    if isinstance(data_type, MapType):
        return f"map('k', {value(rng, data_type.valueType)})"
    kind, number = data_type.simpleString(), rng.randrange(100)
    if kind == "date":
        return f"DATE'2024-01-{1 + number % 28:02}'"
    return f"CAST({number if number < 90 else 'NULL'} AS {kind})"


def paths(data_type: DataType, path: str = "") -> Iterator[tuple[str, DataType]]:
    """Every field, element and value, by the name that SQL has for it."""
    if isinstance(data_type, StructType):
        inner = [(f"`{f.name}`", f.dataType) for f in data_type.fields]
    elif isinstance(data_type, ArrayType):
        inner = [("element", data_type.elementType)]
    else:
        inner = [("value", data_type.valueType)] if isinstance(data_type, MapType) else []
    for name, of in inner:
        yield f"{path}{name}", of
        yield from paths(of, f"{path}{name}.")


class Author:
    """Draws statements that suit the table as it is, and some that do not."""

    def __init__(self, rng: random.Random, *, has_defaults: bool) -> None:
        self.rng = rng
        self.has_defaults = has_defaults  # without its feature, delta-spark refuses a default
        self.names = 0
        self.schema = StructType()

    def statement(self, schema: StructType) -> str:
        self.schema = schema
        writes = [self.insert, self.insert, self.update, self.delete]
        alters = [
            self.add, self.add, self.rename, self.drop, self.retype, self.retype, self.move,
            self.describe, self.replace, self.replace, self.set, self.set, self.unset,
            self.constrain, self.loosen, self.cluster, self.drop_feature,
            *[self.default] * 3 * self.has_defaults,
        ]  # fmt: skip
        return self.rng.choice(writes if self.rng.random() < 0.3 else alters)()

    def insert(self) -> str:
        fields = [f for f in self.schema.fields if f.name == "a" or self.rng.random() < 0.8]
        values = ", ".join(
            f"CAST({self.rng.randrange(1, 90)} AS {f.dataType.simpleString()})"
            if f.name == "a"
            else value(self.rng, f.dataType)
            for f in fields
        )
        names = ", ".join(f"`{f.name}`" for f in fields)
        return f"INSERT INTO {{}} ({names}) SELECT {values}"

    def update(self) -> str:
        field = self.rng.choice(self.schema.fields)
        return f"UPDATE {{}} SET `{field.name}` = {value(self.rng, field.dataType)} WHERE a < 50"

    def delete(self) -> str:
        return f"DELETE FROM {{}} WHERE a % 4 = {self.rng.randrange(4)}"

    def new_name(self) -> str:
        self.names += 1
        return f"n{self.names}" if self.rng.random() < 0.8 else f"N {self.names}"

    def add(self) -> str:
        parents = [f"{p}." for p, t in paths(self.schema) if isinstance(t, StructType)]
        parent = self.rng.choice(["", "", *parents])
        rest = self.rng.choice(["", " COMMENT 'new'", " FIRST", " NOT NULL"])
        column = f"{parent}`{self.new_name()}` {self.rng.choice(NEW)}{rest}"
        return f"ALTER TABLE {{}} ADD COLUMNS ({column})"

    def path(self) -> str:
        fields = [p for p, _ in paths(self.schema) if p.endswith("`")]
        return self.rng.choice([p for p in fields if p not in ("`a`", "`p`")])

    def rename(self) -> str:
        return f"ALTER TABLE {{}} RENAME COLUMN {self.path()} TO `{self.new_name()}`"

    def drop(self) -> str:
        return f"ALTER TABLE {{}} DROP COLUMN {self.path()}"

    def retype(self) -> str:
        path, of = self.rng.choice(
            [(p, t) for p, t in paths(self.schema) if t.simpleString() in WIDER]
        )
        new = self.rng.choice(WIDER[of.simpleString()])
        return f"ALTER TABLE {{}} ALTER COLUMN {path} TYPE {new}"

    def move(self) -> str:
        path = self.path()
        parent, _, _ = path.rpartition(".")
        split = [p.rpartition(".") for p, _ in paths(self.schema)]
        others = [f"AFTER {other}" for above, _, other in split if above == parent]
        return f"ALTER TABLE {{}} ALTER COLUMN {path} {self.rng.choice(['FIRST', *others])}"

    def describe(self) -> str:
        return f"ALTER TABLE {{}} ALTER COLUMN {self.path()} COMMENT 'c {self.rng.randrange(9)}'"

    def loosen(self) -> str:
        path = self.rng.choice(["a", self.path()])
        return f"ALTER TABLE {{}} ALTER COLUMN {path} {self.rng.choice(['DROP', 'SET'])} NOT NULL"

    def cluster(self) -> str:
        fields = [p for p, _ in paths(self.schema) if p.endswith("`")]
        columns = self.rng.sample(fields, self.rng.choice([1, 1, 2]))
        by = self.rng.choice([f"({', '.join(columns)})", "NONE"])
        return f"ALTER TABLE {{}} CLUSTER BY {by}"

    def default(self) -> str:
        field = self.rng.choice(self.schema.fields)
        new = self.rng.choice([f"SET DEFAULT {value(self.rng, field.dataType)}", "DROP DEFAULT"])
        return f"ALTER TABLE {{}} ALTER COLUMN `{field.name}` {new}"

    def drop_feature(self) -> str:
        return f"ALTER TABLE {{}} DROP FEATURE {self.rng.choice(DROPPABLE)}"

    def set(self) -> str:
        return f"ALTER TABLE {{}} SET TBLPROPERTIES ({self.rng.choice(LATER)})"

    def unset(self) -> str:
        return f"ALTER TABLE {{}} UNSET TBLPROPERTIES IF EXISTS ('{self.rng.choice(UNSET)}')"

    def constrain(self) -> str:
        return self.rng.choice(
            [
                "ALTER TABLE {} ADD CONSTRAINT of_a CHECK (a > 0)",
                "ALTER TABLE {} DROP CONSTRAINT IF EXISTS of_a",
            ]
        )

    def replace(self) -> str:
        """The columns in another order; some are new, dropped or of a wider type."""
        fields = [
            (f.name, f.dataType.simpleString() if f.name == "a" else self.other(f.dataType))
            for f in self.schema.fields
        ]
        if self.rng.random() < 0.5:
            self.rng.shuffle(fields)
        kind = self.rng.random()
        if kind < 0.4:
            fields.append((self.new_name(), self.rng.choice(NEW)))
        elif kind < 0.7:
            fields.remove(self.rng.choice([f for f in fields if f[0] not in ("a", "p")] or fields))
        return f"ALTER TABLE {{}} REPLACE COLUMNS ({', '.join(f'`{n}` {t}' for n, t in fields)})"

    def other(self, of: DataType) -> str:
        if isinstance(of, StructType):
            fields = [f"`{f.name}`: {self.other(f.dataType)}" for f in of.fields]
            if self.rng.random() < 0.2:
                fields.append(f"`{self.new_name()}`: INT")
            return f"STRUCT<{', '.join(fields)}>"
        if isinstance(of, ArrayType):
            return f"ARRAY<{self.other(of.elementType)}>"
        if isinstance(of, MapType):
            return f"MAP<{of.keyType.simpleString()}, {self.other(of.valueType)}>"
        kind = of.simpleString()
        return self.rng.choice(WIDER[kind]) if kind in WIDER and self.rng.random() < 0.05 else kind


def refused(spark: SparkSession, statement: str) -> str | None:
    """Carry a statement out; the text of the error, or None."""
    try:
        sql(spark, statement)
    except DeltaError as error:
        return str(error)
    return None


def described(spark: SparkSession, table: str) -> tuple[Any, ...]:
    """The table but for names that are drawn at random."""
    found = load_snapshot(spark, table)
    text = found.metadata.schema_string or ""
    schema = json.loads(text, object_hook=without_random_names)
    properties = {k: v for k, v in found.properties.items() if "materialized" not in k}
    protocol = found.protocol
    features = sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})
    return schema, properties, (protocol.min_reader_version, protocol.min_writer_version, features)


def without_random_names(document: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in document.items() if k != "delta.columnMapping.physicalName"}


def rows(spark: SparkSession, table: str) -> list[str]:
    read = read_delta(spark, table).selectExpr("to_json(struct(*))").collect()
    return sorted(row[0] for row in read)


def test_random_statements(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(f"alters {seed}")
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    chosen = [(k, rng.choice(v)) for k, v in INITIAL.items() if rng.random() < 0.4]
    create = CREATE + rng.choice(["", " PARTITIONED BY (p)", " CLUSTER BY (a)"])
    if chosen:
        create += f" TBLPROPERTIES ({', '.join(f'{k!r} = {v!r}' for k, v in chosen)})"
    author, story = Author(rng, has_defaults=DEFAULTS in dict(chosen)), list[str]()
    statement = create
    for _ in range(STEPS):
        story.append(statement)
        told = delta_spark.run(
            "tests.oracle.test_random_alters:run",
            table=theirs,
            statement=statement.format(f"delta.`{theirs}`"),
        )
        refusal = refused(spark, statement.format(f"delta.`{ours}`"))
        if refusal is not None:
            story[-1] += "  -- refused"
        assert (refusal is None) == ("error" not in told), "\n".join(
            [*story, f"sparkdelta: {refusal}", f"delta-spark: {told.get('error')}"]
        )
        if refusal is None:
            assert described(spark, ours) == described(spark, theirs), "\n".join(story)
            assert rows(spark, ours) == told["rows"], "\n".join(story)
        statement = author.statement(load_snapshot(spark, ours).schema)
    more = author.insert()
    read = delta_spark.run(
        "tests.oracle.test_random_alters:run", table=ours, statement=more.format(f"delta.`{ours}`")
    )
    sql(spark, more.format(f"delta.`{theirs}`"))
    assert rows(spark, theirs) == read["rows"] == rows(spark, ours), "\n".join(story)
    assert verify(spark, ours).is_clean
