"""Rows of a checkpoint, computed from the reconciled state of a table.

References
----------
PROTOCOL.md#checkpoints-1, PROTOCOL.md#checkpoint-schema, PROTOCOL.md#checkpoints,
PROTOCOL.md#transaction-identifiers
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from sparkdelta.base.schema.action_schemas import REMOVE
from sparkdelta.base.schema.checkpoint_schema import (
    PARTITION_VALUES_PARSED,
    STATS_PARSED,
    CheckpointSchema,
)
from sparkdelta.base.schema.partition_value_frames import partition_value, typed_partition_value
from sparkdelta.base.schema.sql_text import type_text
from sparkdelta.base.schema.statistics_frames import conformed, parsed_statistics, statistics_text
from sparkdelta.base.schema.statistics_schema import covers
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.skipping.data_skipping_frames import StoredFacts, stored_partition_value


def add_rows(
    adds: DataFrame, *, schema: CheckpointSchema, stored: StoredFacts, time_zone: str
) -> DataFrame:
    """Return the live files as rows of a checkpoint (add STRUCT).

    Statistics that exist only as JSON or only as a struct are converted to the form that the
    checkpoint stores, so that none are lost.

    Parameters
    ----------
    adds
        The fields of the add action and the typed columns in `stored`.
    time_zone
        The time zone of timestamp partition values that were written without one.
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
    return f"coalesce({in_json}, {in_struct})"  # the JSON may have more fields


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
            typed = stored_partition_value(stored, field)
            value = f"CASE WHEN {PARTITION_VALUES_PARSED} IS NOT NULL THEN {typed} ELSE {value} END"
        values.append(f"{value} AS {quoted(key)}")
    return f"struct({', '.join(values)})"


def remove_rows(removes: DataFrame, *, expired_at_ms: int) -> DataFrame:
    """Return the unexpired tombstones (remove STRUCT), without statistics and tags.

    Parameters
    ----------
    expired_at_ms
        Milliseconds since the epoch. Tombstones deleted at or before this time, or without a
        deletion timestamp, are dropped.
    """
    facts = {"dataChange": "FALSE"}
    fields = ", ".join(f"{facts.get(name, name)} AS {name}" for name in REMOVE.names)
    unexpired = removes.filter(f"deletionTimestamp > {expired_at_ms}")
    return unexpired.selectExpr(f"struct({fields}) AS remove")


def transaction_rows(transactions: DataFrame, *, expired_at_ms: int | None) -> DataFrame:
    """Return the unexpired transaction identifiers (txn STRUCT).

    Parameters
    ----------
    expired_at_ms
        Milliseconds since the epoch. Identifiers last updated at or before this time are dropped;
        those without a time are kept. None keeps all.
    """
    if expired_at_ms is not None:
        transactions = transactions.filter(f"coalesce(lastUpdated > {expired_at_ms}, TRUE)")
    return transactions.selectExpr("struct(*) AS txn")


def domain_rows(domains: DataFrame) -> DataFrame:
    """Return the active domains as rows of a checkpoint (domainMetadata STRUCT)."""
    return domains.selectExpr("struct(*) AS domainMetadata")


def checkpoint_rows(*frames: DataFrame, columns: StructType) -> DataFrame:
    """Return the union of DataFrames with exactly these columns; missing columns are null.

    Parameters
    ----------
    frames
        DataFrames with some of the columns.
    """
    return reduce(DataFrame.union, (_with_all(frame, columns) for frame in frames))


def _with_all(frame: DataFrame, columns: StructType) -> DataFrame:
    present = set(frame.columns)
    fields = (
        f.name if f.name in present else f"CAST(NULL AS {type_text(f.dataType)}) AS {f.name}"
        for f in columns.fields
    )
    return frame.selectExpr(*fields)
