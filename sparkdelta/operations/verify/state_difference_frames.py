"""Comparison of two sources of the same table state.

A checkpoint is compared with a replay of the commits before it, and a log compaction with the
commits of its range.

References
----------
PROTOCOL.md#checkpoints, PROTOCOL.md#action-reconciliation, PROTOCOL.md#log-compaction-files,
PROTOCOL.md#per-file-statistics, PROTOCOL.md#checkpoint-schema
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from sparkdelta.base.schema.action_schemas import actions
from sparkdelta.base.schema.checkpoint_schema import PARTITION_VALUES_PARSED
from sparkdelta.base.schema.file_key_frames import canonical_path, deletion_vector_id
from sparkdelta.base.schema.statistics_schema import leaves
from sparkdelta.base.schema.table_schema import quoted, quoted_path
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.table.listing.log_line_frames import parse_log_lines

_NUMBERS = ("size", "modificationTime", "baseRowId", "defaultRowCommitVersion")
_METADATA = ("id", "name", "description", "schemaString", "partitionColumns")
_COMPARED = ("minValues", "maxValues", "nullCount")
_RECONCILED = ("add", "remove", "txn", "domainMetadata", "metaData", "protocol")


def add_facts(adds: DataFrame, *, table_root: str, with_records: bool) -> DataFrame:
    """Return the fields of live files that a checkpoint must preserve, for `disagreements`.

    A checkpoint may change `dataChange` and the form of the statistics. Of the statistics, only
    `numRecords` is compared here; see `narrower_statistics` for the others.

    Parameters
    ----------
    adds
        The rows of `Snapshot.add_files`.
    with_records
        True if the checkpoint has statistics.
    """
    records = F.col("stats_parsed.numRecords") if with_records else F.lit(None).cast("long")
    path, facts = _of_add("", table_root)
    return _facts(adds, "add", path, [*facts, records.alias("numRecords")])


def remove_facts(removes: DataFrame, *, table_root: str, expired_at_ms: int) -> DataFrame:
    """Return the logical files and deletion timestamps of tombstones, for `disagreements`.

    Expired tombstones may be missing.
    """
    path, facts = _of_remove("", table_root)
    is_expired = F.coalesce("deletionTimestamp", F.lit(0)) <= expired_at_ms
    return _facts(removes, "remove", path, facts, may_be_missing=is_expired)


def transaction_facts(transactions: DataFrame, *, may_expire: bool) -> DataFrame:
    """Return the versions of transaction identifiers, for `disagreements`."""
    version = [F.col("version")]
    return _facts(transactions, "txn", F.col("appId"), version, may_be_missing=F.lit(may_expire))


def domain_facts(domains: DataFrame) -> DataFrame:
    """Return the configurations of domain metadata, for `disagreements`."""
    return _facts(domains, "domainMetadata", F.col("domain"), [F.col("configuration")])


def line_facts(lines: DataFrame, *, table_root: str) -> DataFrame:
    """Return the fields of actions that a log compaction must preserve, for `disagreements`.

    Parameters
    ----------
    lines
        version LONG, line STRING.
    """
    features = (
        F.array_sort(f"protocol.{name}").alias(name)
        for name in ("readerFeatures", "writerFeatures")
    )
    properties = F.array_sort(F.map_entries("metaData.configuration")).alias("configuration")
    versions = (F.col(f"protocol.{name}") for name in ("minReaderVersion", "minWriterVersion"))
    facts: dict[str, tuple[Column, list[Column]]] = {
        "add": _of_add("add.", table_root),
        "remove": _of_remove("remove.", table_root),
        "txn": (F.col("txn.appId"), [F.col("txn.version")]),
        "domainMetadata": (
            F.col("domainMetadata.domain"),
            [
                F.col("domainMetadata.configuration"),
                F.coalesce("domainMetadata.removed", F.lit(False)).alias("removed"),
            ],
        ),
        "metaData": (F.lit(""), [*(F.col(f"metaData.{name}") for name in _METADATA), properties]),
        "protocol": (F.lit(""), [*versions, *features]),
    }
    parsed = parse_log_lines(lines, actions=actions(*_RECONCILED))
    kinds = [
        F.when(F.col(name).isNotNull(), _keyed(name, *facts[name], may_be_missing=F.lit(False)))
        for name in _RECONCILED
    ]
    return parsed.select(F.coalesce(*kinds).alias("_")).filter("_ IS NOT NULL").select("_.*")


def _of_add(prefix: str, table_root: str) -> tuple[Column, list[Column]]:
    values = F.coalesce(F.col(f"{prefix}partitionValues"), F.expr("map()"))
    path, vector = _logical_file(prefix, table_root)
    numbers = (F.col(f"{prefix}{name}") for name in _NUMBERS)
    return path, [vector, F.array_sort(F.map_entries(values)).alias("partitionValues"), *numbers]


def _of_remove(prefix: str, table_root: str) -> tuple[Column, list[Column]]:
    path, vector = _logical_file(prefix, table_root)
    return path, [vector, F.col(f"{prefix}deletionTimestamp")]


def _logical_file(prefix: str, table_root: str) -> tuple[Column, Column]:
    path = F.expr(canonical_path(f"{prefix}path", table_root=table_root))
    return path, F.expr(deletion_vector_id(f"{prefix}deletionVector")).alias("vector")


def _facts(
    rows: DataFrame,
    kind: str,
    name: Column,
    facts: list[Column],
    may_be_missing: Column | None = None,
) -> DataFrame:
    missing = F.lit(False) if may_be_missing is None else may_be_missing
    return rows.select(_keyed(kind, name, facts, may_be_missing=missing).alias("_")).select("_.*")


def _keyed(kind: str, name: Column, facts: list[Column], *, may_be_missing: Column) -> Column:
    key = F.concat_ws(" ", F.lit(kind), name).alias("key")
    text = F.to_json(F.struct(*facts)).alias("facts")
    return F.struct(key, text, may_be_missing.alias("may_be_missing"))


def disagreements(checked: DataFrame, replay: DataFrame, *, of: str) -> DataFrame:
    """Return the keys whose fields do not occur equally often in both sources.

    Parameters
    ----------
    checked, replay
        key STRING, facts STRING, may_be_missing BOOLEAN: results of the functions above.
    of
        The name of the checked file in `problem`.

    Returns
    -------
    DataFrame
        path STRING (the key), problem STRING.
    """
    signed = checked.withColumn("sign", F.lit(1)).unionByName(replay.withColumn("sign", F.lit(-1)))
    count = F.col("count")
    problem = F.when(count > 0, F.lit(f"only in the {of}, or different there")).when(
        (count < 0) & ~F.col("may_be_missing"), F.lit("only in the log, or different there")
    )
    return (
        grouped(
            signed,
            ["key", "facts"],
            F.sum("sign").alias("count"),
            F.bool_and("may_be_missing").alias("may_be_missing"),
        )
        .select(F.col("key").alias("path"), problem.alias("problem"))
        .filter(F.col("problem").isNotNull())
    )


def narrower_statistics(
    checkpoint: DataFrame, replay: DataFrame, *, statistics: StructType, table_root: str
) -> DataFrame:
    """Return the files whose statistics in a checkpoint could skip them wrongly.

    A checkpoint may omit bounds and truncate timestamps to milliseconds. Otherwise its bounds must
    include the bounds of the log, and its null counts must be equal.

    Parameters
    ----------
    checkpoint, replay
        The rows of `Snapshot.add_files`, with `stats_parsed` of the type `statistics`.

    Returns
    -------
    DataFrame
        path STRING, problem STRING.
    """
    key = F.concat_ws(
        " ",
        F.expr(canonical_path("path", table_root=table_root)),
        F.expr(deletion_vector_id("deletionVector")),
    )
    stored = checkpoint.select(key.alias("key"), F.col("path"), F.col("stats_parsed").alias("a"))
    logged = replay.select(key.alias("key"), F.col("stats_parsed").alias("b"))
    problem = F.lit(None).cast("string")
    for names, data_type in leaves(statistics):
        if names[0] not in _COMPARED:
            continue
        name = quoted_path(names)
        value, expected = F.col(f"a.{name}"), F.col(f"b.{name}")
        if names[0] == "maxValues" and isinstance(data_type, TimestampType | TimestampNTZType):
            value = value + F.expr("INTERVAL '1' MILLISECOND")
        is_wrong = {"minValues": value > expected, "maxValues": value < expected}.get(
            names[0], value != expected
        )
        text = F.lit(f"{name} of the checkpoint does not match the log")
        problem = F.coalesce(F.when(is_wrong, text), problem)
    compared = stored.join(logged, "key").select("path", problem.alias("problem"))
    return compared.filter(F.col("problem").isNotNull())


def mismatched_partition_values(
    adds: DataFrame, typed: str, partition_values: Mapping[str, str]
) -> DataFrame:
    """Return the files with a `partitionValues_parsed` that differs from `partitionValues`.

    A null in `partitionValues_parsed` is not compared.

    Parameters
    ----------
    adds
        The add actions of a checkpoint.
    typed
        SQL for a struct of the values parsed from `partitionValues`.
    partition_values
        The field of `partitionValues_parsed` of each partition column, by column name.

    Returns
    -------
    DataFrame
        path STRING, problem STRING.
    """
    problem = F.lit(None).cast("string")
    for column, name in partition_values.items():
        stored = F.col(f"{PARTITION_VALUES_PARSED}.{quoted(name)}")
        # delta-spark leaves the empty strings that stand for null.
        is_stored = stored.isNotNull() & (stored.cast("string") != "")
        is_wrong = is_stored & ~stored.eqNullSafe(F.expr(typed)[column])
        text = F.lit(f"{PARTITION_VALUES_PARSED}.{column} does not match partitionValues")
        problem = F.coalesce(F.when(is_wrong, text), problem)
    compared = adds.select("path", problem.alias("problem"))
    return compared.filter(F.col("problem").isNotNull())
