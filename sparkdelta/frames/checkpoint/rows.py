"""From the reconciled state to the rows of a checkpoint.

References
----------
PROTOCOL.md#checkpoints-1, PROTOCOL.md#checkpoint-schema
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from sparkdelta.frames.log.partition_values import partition_value, typed_partition_value
from sparkdelta.frames.log.statistics import conformed, parsed_statistics, statistics_text
from sparkdelta.frames.skipping.data_skipping import StoredFacts
from sparkdelta.schema.action_schemas import REMOVE
from sparkdelta.schema.checkpoint_schema import (
    PARTITION_VALUES_PARSED,
    STATS_PARSED,
    CheckpointSchema,
)
from sparkdelta.schema.sql_text import type_text
from sparkdelta.schema.statistics_schema import covers
from sparkdelta.schema.table_schema import quoted


def add_rows(
    adds: DataFrame, *, schema: CheckpointSchema, stored: StoredFacts, time_zone: str
) -> DataFrame:
    """The live files as rows of a checkpoint: one column `add`.

    Statistics that are there in one form only are converted to the other, so that a checkpoint
    without the one loses nothing.

    Parameters
    ----------
    adds
        The fields of the add action, and the typed columns that `stored` names.
    time_zone
        Of timestamp partition values that were written without one.

    References
    ----------
    PROTOCOL.md#checkpoints-1
    """
    facts = {
        "dataChange": "FALSE",
        "stats": _text(schema, stored),
        STATS_PARSED: _parsed(schema, stored),
        PARTITION_VALUES_PARSED: _partition_values(schema, stored, time_zone),
    }
    fields = ", ".join(f"{facts.get(name, name)} AS {name}" for name in schema.add.names)
    return adds.selectExpr(f"struct({fields}) AS add")


def _parsed(schema: CheckpointSchema, stored: StoredFacts) -> str:
    in_json = parsed_statistics("stats", statistics=schema.statistics)
    if stored.statistics is None:
        return in_json
    in_struct = conformed(STATS_PARSED, stored=stored.statistics, wanted=schema.statistics)
    if schema.with_json and covers(stored.statistics, schema.statistics):
        return f"coalesce({in_struct}, {in_json})"
    return f"coalesce({in_json}, {in_struct})"  # the text may say more, and may be lost otherwise


def _text(schema: CheckpointSchema, stored: StoredFacts) -> str:
    if stored.statistics is None:
        return "stats"
    in_struct = conformed(STATS_PARSED, stored=stored.statistics, wanted=schema.statistics)
    return f"coalesce(stats, {statistics_text(in_struct, statistics=schema.statistics)})"


def _partition_values(schema: CheckpointSchema, stored: StoredFacts, time_zone: str) -> str:
    values = []
    for key, field in schema.partition_keys:
        text = partition_value("partitionValues", key)
        value = typed_partition_value(text, field, time_zone=time_zone)
        if field.name in stored.partition_values:
            known = PARTITION_VALUES_PARSED
            typed = f"{known}.{quoted(stored.partition_values[field.name])}"
            value = f"CASE WHEN {known} IS NOT NULL THEN {typed} ELSE {value} END"
        values.append(f"{value} AS {quoted(key)}")
    return f"struct({', '.join(values)})"


def remove_rows(removes: DataFrame, *, expired_at_ms: int) -> DataFrame:
    """The tombstones that are not expired: one column `remove`, without statistics and tags.

    Parameters
    ----------
    expired_at_ms
        Files deleted then or before have been kept long enough; so have those of which nobody
        knows when they were deleted.

    References
    ----------
    PROTOCOL.md#checkpoints
    """
    facts = {"dataChange": "FALSE"}
    fields = ", ".join(f"{facts.get(name, name)} AS {name}" for name in REMOVE.names)
    kept = removes.filter(f"deletionTimestamp > {expired_at_ms}")
    return kept.selectExpr(f"struct({fields}) AS remove")


def transaction_rows(transactions: DataFrame, *, expired_at_ms: int | None) -> DataFrame:
    """The transaction identifiers that are not expired: one column `txn`.

    Parameters
    ----------
    expired_at_ms
        Those last updated then or before are dropped; one without a time is kept. None keeps all.

    References
    ----------
    PROTOCOL.md#transaction-identifiers
    """
    if expired_at_ms is not None:
        transactions = transactions.filter(f"coalesce(lastUpdated > {expired_at_ms}, TRUE)")
    return transactions.selectExpr("struct(*) AS txn")


def domain_rows(domains: DataFrame) -> DataFrame:
    """The live domains: one column `domainMetadata`."""
    return domains.selectExpr("struct(*) AS domainMetadata")


def checkpoint_rows(*frames: DataFrame, columns: StructType) -> DataFrame:
    """One frame of all rows, with exactly these columns; what a frame lacks is null.

    Parameters
    ----------
    frames
        Each has some of the columns.

    References
    ----------
    PROTOCOL.md#checkpoint-schema
    """
    return reduce(DataFrame.union, (_with_all(frame, columns) for frame in frames))


def _with_all(frame: DataFrame, columns: StructType) -> DataFrame:
    present = set(frame.columns)
    fields = (
        f.name if f.name in present else f"CAST(NULL AS {type_text(f.dataType)}) AS {f.name}"
        for f in columns.fields
    )
    return frame.selectExpr(*fields)
