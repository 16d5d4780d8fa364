"""Summaries of written checkpoint files, one row per file.

References
----------
PROTOCOL.md#sidecar-file-information
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from sparkdelta.base.schema.action_schemas import ADD, REMOVE
from sparkdelta.base.schema.checkpoint_schema import PARTITION_VALUES_PARSED, STATS_PARSED
from sparkdelta.base.schema.statistics_frames import statistics_text
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.table.checkpoint.checkpoint_layout_frames import FileOrder, leaf, value_ranges_type

# `operations.checkpoint.checkpoint_row_frames` writes it in every file action.
_NEVER_NULL = "dataChange"
_IS_ADD = f"add.{_NEVER_NULL} IS NOT NULL"
_COUNTS = (
    "count(1) AS num_rows",
    f"count(add.{_NEVER_NULL}) AS num_adds",
    f"count(remove.{_NEVER_NULL}) AS num_removes",
)

MAX_TEXT = 128
"""The maximum length in characters of a bound in a tag; longer bounds are omitted."""


def counted_type() -> StructType:
    """Return the columns of a file that `counts` reads: a small field that is never null."""
    add, remove = StructType([ADD[_NEVER_NULL]]), StructType([REMOVE[_NEVER_NULL]])
    return StructType([StructField("add", add), StructField("remove", remove)])


def summarized_type(order: FileOrder) -> StructType:
    """Return the columns of a sidecar file that `sidecar_summaries` reads."""
    schema = order.schema
    fields = [ADD[_NEVER_NULL], ADD["size"]]
    if not schema.with_struct:
        fields += [ADD["partitionValues"], *([ADD["stats"]] if schema.with_json else [])]
    elif schema.partition_keys:
        fields.append(StructField(PARTITION_VALUES_PARSED, schema.partition_values))
    if schema.with_struct:
        fields.append(StructField(STATS_PARSED, order.ranged_statistics))
    remove = StructType([REMOVE[_NEVER_NULL], REMOVE["deletionTimestamp"]])
    return StructType([StructField("add", StructType(fields)), StructField("remove", remove)])


def counts() -> list[Column]:
    """Return the aggregates num_rows LONG, num_adds LONG, num_removes LONG over `counted_type`."""
    return [F.expr(count) for count in _COUNTS]


def sidecar_summaries(rows: DataFrame, file_name: Column, order: FileOrder) -> DataFrame:
    """Summarize sidecar files, from their rows of type `summarized_type`.

    A bound covers all adds of the sidecar. It is omitted if one of them lacks the bound.

    Returns
    -------
    DataFrame
        file STRING, `counts`, add_bytes LONG (total size of the data files), partition_values
        STRING and statistics STRING (JSON, see `table.checkpoint.sidecar_tag_rules`),
        first_deletion LONG and last_deletion LONG (milliseconds since the epoch).
    """
    keys = order.ranged_partition_keys
    values = (f"{order.partition_value(key, field)} AS {quoted(key)}" for key, field in keys)
    facts = rows.select("add", "remove", file_name.alias("file")).selectExpr(
        "*",
        f"struct({', '.join(values)}) AS of_row" if keys else "NULL AS of_row",
        f"{order.statistics()} AS statistics",
    )
    aggregates = (
        *_COUNTS,
        "coalesce(sum(add.size), 0) AS add_bytes",
        "min(remove.deletionTimestamp) AS first_deletion",
        "max(remove.deletionTimestamp) AS last_deletion",
        f"{_value_ranges(keys)} AS of_values",
        f"{_statistics_ranges(order.ranged_statistics)} AS of_statistics",
    )
    of_values = statistics_text("of_values", statistics=value_ranges_type(keys))
    of_statistics = statistics_text("of_statistics", statistics=order.ranged_statistics)
    return (
        grouped(facts, ["file"], *map(F.expr, aggregates))
        .selectExpr("*", f"{of_values} AS partition_values", f"{of_statistics} AS statistics")
        .drop("of_values", "of_statistics")
    )


def _value_ranges(keys: Sequence[tuple[str, StructField]]) -> str:
    fields = [f"count(add.{_NEVER_NULL}) AS numRecords"]
    if keys:
        named = [(quoted(key), f"of_row.{quoted(key)}", field.dataType) for key, field in keys]
        least = (f"{_short(f'min({value})', kind)} AS {key}" for key, value, kind in named)
        most = (f"{_short(f'max({value})', kind)} AS {key}" for key, value, kind in named)
        nulls = (f"count_if({_IS_ADD} AND {value} IS NULL) AS {key}" for key, value, _ in named)
        kinds = {"minValues": least, "maxValues": most, "nullCount": nulls}
        fields += [f"struct({', '.join(columns)}) AS {name}" for name, columns in kinds.items()]
    return f"struct({', '.join(fields)})"


def _statistics_ranges(ranged: StructType) -> str:
    fields = [f"{_if_all('sum(statistics.numRecords)', 'statistics.numRecords')} AS numRecords"]
    for field in ranged.fields:
        if isinstance(field.dataType, StructType):
            fields.append(f"{_ranges(field.name, field.dataType, ())} AS {field.name}")
    return f"struct({', '.join(fields)})"


def _ranges(kind: str, data_type: StructType, path: tuple[str, ...]) -> str:
    fields = []
    for field in data_type.fields:
        inner = (*path, field.name)
        value = (
            _ranges(kind, field.dataType, inner)
            if isinstance(field.dataType, StructType)
            else _range(kind, field.dataType, inner)
        )
        fields.append(f"{value} AS {quoted(field.name)}")
    return f"struct({', '.join(fields)})"


def _range(kind: str, data_type: DataType, path: tuple[str, ...]) -> str:
    value = leaf("statistics", kind, path)
    if kind == "nullCount":
        return _if_all(f"sum({value})", value)
    bound = f"min({value})" if kind == "minValues" else f"max({value})"
    # An add without the bound is allowed only if all its values are null.
    is_all_null = (
        f"coalesce({leaf('statistics', 'nullCount', path)} = statistics.numRecords, FALSE)"
    )
    missing = f"count_if({_IS_ADD} AND {value} IS NULL AND NOT {is_all_null})"
    return f"CASE WHEN {missing} = 0 THEN {_short(bound, data_type)} END"


def _if_all(total: str, value: str) -> str:
    """Return SQL for a sum that is null unless every add has a value."""
    return f"CASE WHEN count_if({_IS_ADD} AND {value} IS NULL) = 0 THEN {total} END"


def _short(bound: str, data_type: DataType) -> str:
    if not isinstance(data_type, StringType):
        return bound
    return f"CASE WHEN char_length({bound}) <= {MAX_TEXT} THEN {bound} END"
