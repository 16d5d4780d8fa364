"""Where two ways to one version of a table disagree: a checkpoint, and replay of the log before it.

References
----------
PROTOCOL.md#checkpoints, PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.frames.file_keys import canonical_path, deletion_vector_id

_NUMBERS = ("size", "modificationTime", "baseRowId", "defaultRowCommitVersion")


def add_facts(adds: DataFrame, *, table_root: str) -> DataFrame:
    """key STRING, facts STRUCT of add actions: what a checkpoint may not change.

    It may change `dataChange`, and the form of the statistics: of these only `numRecords` is
    compared, since bounds may be left out, and moments cut to milliseconds.

    Parameters
    ----------
    adds
        As `Snapshot.add_files` gives them.
    """
    values = F.coalesce(F.col("partitionValues"), F.expr("map()"))
    return adds.select(
        F.expr(canonical_path("path", table_root=table_root)).alias("key"),
        F.struct(
            F.expr(deletion_vector_id("deletionVector")).alias("vector"),
            F.array_sort(F.map_entries(values)).alias("partitionValues"),
            F.col("stats_parsed.numRecords").alias("numRecords"),
            *_NUMBERS,
        ).alias("facts"),
    )


def remove_facts(removes: DataFrame, *, table_root: str) -> DataFrame:
    """key STRING, facts STRING of tombstones: which logical file."""
    return removes.select(
        F.expr(canonical_path("path", table_root=table_root)).alias("key"),
        F.expr(deletion_vector_id("deletionVector")).alias("facts"),
    )


def transaction_facts(transactions: DataFrame) -> DataFrame:
    """key STRING, facts LONG of transaction identifiers."""
    return transactions.select(F.col("appId").alias("key"), F.col("version").alias("facts"))


def domain_facts(domains: DataFrame) -> DataFrame:
    """key STRING, facts STRING of domain metadata."""
    return domains.select(F.col("domain").alias("key"), F.col("configuration").alias("facts"))


def disagreements(
    checkpoint: DataFrame, replay: DataFrame, *, kind: str, may_drop: bool = False
) -> DataFrame:
    """path STRING, problem STRING: the keys whose facts the two do not have equally often.

    Parameters
    ----------
    checkpoint, replay
        key and facts, of one type.
    kind
        What they are, for the text.
    may_drop
        Whether the checkpoint may leave out some, as expired tombstones.

    References
    ----------
    PROTOCOL.md#checkpoints
    """
    signed = checkpoint.withColumn("sign", F.lit(1)).unionByName(
        replay.withColumn("sign", F.lit(-1))
    )
    count = F.col("count")
    problem = F.when(count > 0, F.lit(f"the checkpoint alone has this {kind}, or has it so"))
    if not may_drop:
        problem = problem.when(count < 0, F.lit(f"the log alone has this {kind}, or has it so"))
    return (
        signed.groupBy("key", "facts")
        .agg(F.sum("sign").alias("count"))
        .select(F.col("key").alias("path"), problem.alias("problem"))
        .filter(F.col("problem").isNotNull())
    )
