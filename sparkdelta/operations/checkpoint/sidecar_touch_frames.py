"""Sidecars of a checkpoint that later commits may affect, according to the sidecars' tags.

References
----------
PROTOCOL.md#action-reconciliation, PROTOCOL.md#sidecar-file-information
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.schema.partition_value_frames import (
    is_invalid_partition_value,
    partition_value,
    partition_value_or_null,
)
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.schema.statistics_frames import parsed_statistics
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.table.checkpoint.checkpoint_layout_frames import FileOrder, value_ranges_type


def sidecars_in_range(sidecars: DataFrame, keyed: DataFrame, order: FileOrder) -> DataFrame:
    """Return the sidecars (name STRING) whose ranges include the partition values of an action.

    A file action may belong to any sidecar if a partition value is missing or is not of its type.

    Parameters
    ----------
    sidecars
        name STRING, partition_values STRING (the tag).
    keyed
        The file actions, from `reconciliation.keyed_file_actions`.
    """
    keys = order.ranged_partition_keys
    if not keys:
        return sidecars.select("name")
    values = "coalesce(add.partitionValues, remove.partitionValues)"
    has_keys = [f"map_contains_key({values}, {text_literal(key)})" for key, _ in keys]
    texts = [(partition_value(values, key), field) for key, field in keys]
    zone = order.time_zone
    wrong = (is_invalid_partition_value(text, field, time_zone=zone) for text, field in texts)
    are_values = [f"NOT coalesce({is_wrong}, FALSE)" for is_wrong in wrong]
    typed = (partition_value_or_null(text, field, time_zone=zone) for text, field in texts)
    values_of_actions = keyed.selectExpr(
        f"coalesce({' AND '.join([*has_keys, *are_values])}, FALSE) AS is_complete",
        *(f"{value} AS value_{number}" for number, value in enumerate(typed)),
    ).distinct()
    ranges = parsed_statistics("partition_values", statistics=value_ranges_type(keys))
    ranged = sidecars.selectExpr("name", f"{ranges} AS ranges")
    inside = (_inside(f"value_{number}", quoted(key)) for number, (key, _) in enumerate(keys))
    condition = F.expr(f"NOT is_complete OR ({' AND '.join(inside)})")
    return values_of_actions.join(F.broadcast(ranged), condition, "inner").select("name").distinct()


def _inside(value: str, key: str) -> str:
    """Return SQL that is true if a value may be in the ranges of a sidecar; so it is by default."""
    nulls = f"ranges.nullCount.{key}"
    in_range = (
        f"coalesce({nulls} < ranges.numRecords, TRUE) "
        f"AND coalesce(ranges.minValues.{key} <= {value}, TRUE) "
        f"AND coalesce({value} <= ranges.maxValues.{key}, TRUE)"
    )
    has_nulls = f"coalesce({nulls} > 0, TRUE)"
    return f"CASE WHEN {value} IS NULL THEN {has_nulls} ELSE {in_range} END"
