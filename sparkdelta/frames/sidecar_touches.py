"""Which sidecars of a checkpoint the commits after it may speak of, by the sidecars' tags.

References
----------
PROTOCOL.md#action-reconciliation, PROTOCOL.md#sidecar-file-information
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sparkdelta.frames.checkpoint_layout import FileOrder, value_ranges_type
from sparkdelta.frames.partition_values import partition_value, typed_partition_value
from sparkdelta.frames.statistics import parsed_statistics
from sparkdelta.schema.sql_text import text_literal


def sidecars_in_range(sidecars: DataFrame, keyed: DataFrame, order: FileOrder) -> DataFrame:
    """name STRING: the sidecars whose partition values include those of a file action.

    A file action that does not say all its partition values may be of any sidecar.

    Parameters
    ----------
    sidecars
        name STRING, partition_values STRING (the tag).
    keyed
        As `reconciliation.keyed_file_actions` gives them.
    """
    keys = order.ranged_partition_keys
    if not keys:
        return sidecars.select("name")
    values = "coalesce(add.partitionValues, remove.partitionValues)"
    has_keys = (f"map_contains_key({values}, {text_literal(key)})" for key, _ in keys)
    is_complete = F.expr(f"coalesce({' AND '.join(has_keys)}, FALSE)")
    found = keyed.select(
        is_complete.alias("is_complete"),
        *(
            F.expr(
                typed_partition_value(
                    partition_value(values, key), field, time_zone=order.time_zone
                )
            ).alias(f"value_{number}")
            for number, (key, field) in enumerate(keys)
        ),
    ).distinct()
    ranges = parsed_statistics("partition_values", statistics=value_ranges_type(keys))
    ranged = sidecars.selectExpr("name", f"{ranges} AS ranges")
    inside = [_inside(F.col(f"value_{number}"), key) for number, (key, _) in enumerate(keys)]
    condition = ~F.col("is_complete") | reduce(Column.__and__, inside)
    return found.join(F.broadcast(ranged), condition, "inner").select("name").distinct()


def _inside(value: Column, key: str) -> Column:
    least, greatest = F.col("ranges")["minValues"][key], F.col("ranges")["maxValues"][key]
    nulls, files = F.col("ranges")["nullCount"][key], F.col("ranges")["numRecords"]
    has_values = nulls.isNull() | files.isNull() | (nulls < files)
    in_range = (least.isNull() | (least <= value)) & (greatest.isNull() | (value <= greatest))
    in_range = has_values & in_range
    return F.when(value.isNull(), nulls.isNull() | (nulls > 0)).otherwise(in_range)
