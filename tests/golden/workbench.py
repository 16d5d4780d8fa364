"""Tools to define golden tables: a catalogue, and a bench for each engine that writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession


class DeltaSparkBench:
    """Writes one table with delta-spark.

    Attributes
    ----------
    spark
        The delta-spark session.
    path
        The root of the table.
    unreadable
        Versions that must fail to read, with the reason; a definition fills it.
    """

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark = spark
        self.path = path
        self.unreadable: dict[int, str] = {}

    def sql(self, *statements: str) -> None:
        """Run SQL statements in which ``{t}`` stands for the table."""
        for statement in statements:
            self.spark.sql(statement.replace("{t}", f"delta.`{self.path}`"))

    def create(self, columns: str, partition_by: str = "", **properties: str) -> None:
        """Create the table; ``__`` in a property's name stands for a dot, ``delta.`` goes before
        it.
        """
        partitioning = f"PARTITIONED BY ({partition_by})" if partition_by else ""
        self.sql(f"CREATE TABLE {{t}} ({columns}) USING delta {partitioning} {_listed(properties)}")

    def set(self, **properties: str) -> None:
        """Set table properties, named as in :meth:`create`."""
        self.sql(f"ALTER TABLE {{t}} SET {_listed(properties)}")

    def append(self, rows: DataFrame, **options: str) -> None:
        """Append rows as one file per partition."""
        rows.coalesce(1).write.format("delta").mode("append").options(**options).save(
            str(self.path)
        )

    def read(self, version: int | None = None) -> DataFrame:
        """Read the table as delta-spark does."""
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(str(self.path))

    def checkpoint(self) -> None:
        """Write a checkpoint of the latest version, of the kind that table and session ask for."""
        jvm: Any = self.spark._jvm
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
            self.spark._jsparkSession,  # type: ignore[attr-defined]
            str(self.path),
        )
        log.checkpoint()

    @contextmanager
    def settings(self, values: Mapping[str, str]) -> Iterator[None]:
        """Run a block under other session settings."""
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
    if not properties:
        return ""
    pairs = (f"'delta.{name.replace('__', '.')}' = '{value}'" for name, value in properties.items())
    return f"TBLPROPERTIES ({', '.join(pairs)})"


@dataclass(frozen=True, slots=True)
class Golden:
    """The definition of a golden table.

    Attributes
    ----------
    name
        Name of the directory under ``tables``.
    writer
        ``delta-spark`` or ``delta-rs``.
    description
        What the table is about.
    features
        Plain tags.
    build
        Writes the table, given a bench (delta-spark) or the table's root (delta-rs).
    row_ids
        Whether the rows are also read together with their row ids and row commit versions.
    versions
        The versions to read; every one by default.
    escaped
        Binary partition columns whose escaped values delta-rs writes as the protocol says and
        reads as plain text.
    """

    name: str
    writer: str
    description: str
    features: tuple[str, ...]
    build: Callable[..., None]
    row_ids: bool = False
    versions: tuple[int, ...] | None = None
    escaped: tuple[str, ...] = ()


CATALOGUE: dict[str, Golden] = {}


def delta_spark_table(
    name: str,
    *features: str,
    row_ids: bool = False,
    versions: tuple[int, ...] | None = None,
) -> Callable[[Callable[[DeltaSparkBench], None]], Callable[[DeltaSparkBench], None]]:
    """Register a function that writes a table with delta-spark; its docstring describes it."""

    def register(build: Callable[[DeltaSparkBench], None]) -> Callable[[DeltaSparkBench], None]:
        CATALOGUE[name] = Golden(
            name,
            "delta-spark",
            _one_line(build.__doc__),
            features,
            build,
            row_ids,
            versions,
        )
        return build

    return register


def delta_rs_table(
    name: str, *features: str, escaped: tuple[str, ...] = ()
) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """Register a function that writes a table with delta-rs; its docstring is the description."""

    def register(build: Callable[[Path], None]) -> Callable[[Path], None]:
        CATALOGUE[name] = Golden(
            name, "delta-rs", _one_line(build.__doc__), features, build, escaped=escaped
        )
        return build

    return register


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())
