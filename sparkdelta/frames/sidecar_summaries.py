"""What the written files of a checkpoint hold, a row for each file.

References
----------
PROTOCOL.md#sidecar-file-information
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from sparkdelta.frames.checkpoint_layout import FileOrder, leaf, value_ranges_type
from sparkdelta.frames.statistics import statistics_text
from sparkdelta.schema.action_schemas import ADD, REMOVE
from sparkdelta.schema.checkpoint_schema import PARTITION_VALUES_PARSED, STATS_PARSED

_ALWAYS = "dataChange"  # as `frames.checkpoint_rows` writes it

MAX_TEXT = 128
"""A bound of more characters is left out of a tag."""


def counted_type() -> StructType:
    """What of a file must be read for `file_counts`: the cheapest field that every action has."""
    add, remove = StructType([ADD[_ALWAYS]]), StructType([REMOVE[_ALWAYS]])
    return StructType([StructField("add", add), StructField("remove", remove)])


def summarized_type(order: FileOrder) -> StructType:
    """What of a sidecar file must be read for `sidecar_summaries`."""
    schema = order.schema
    fields = [ADD[_ALWAYS]]
    if not schema.with_struct:
        fields += [ADD["partitionValues"], *([ADD["stats"]] if schema.with_json else [])]
    elif schema.partition_keys:
        fields.append(StructField(PARTITION_VALUES_PARSED, schema.partition_values))
    if schema.with_struct:
        fields.append(StructField(STATS_PARSED, order.ranged_statistics))
    remove = StructType([REMOVE[_ALWAYS], REMOVE["deletionTimestamp"]])
    return StructType([StructField("add", StructType(fields)), StructField("remove", remove)])


def file_counts(rows: DataFrame, file_name: Column) -> DataFrame:
    """file STRING, num_rows LONG, num_adds LONG, num_removes LONG.

    Parameters
    ----------
    rows
        The files' rows, of type `counted_type`.
    """
    return rows.groupBy(file_name.alias("file")).agg(*_counts())


def sidecar_summaries(rows: DataFrame, file_name: Column, order: FileOrder) -> DataFrame:
    """As `file_counts`, and partition_values STRING, statistics STRING (JSON as in
    `protocol.sidecar_tags`), first_deletion LONG, last_deletion LONG.

    A bound is that of all adds, and missing where one add of the file lacks it.

    Parameters
    ----------
    rows
        The files' rows, of type `summarized_type`.
    """
    keys = order.ranged_partition_keys
    values = [order.partition_value(key, field).alias(key) for key, field in keys]
    facts = rows.select(
        "add",
        "remove",
        file_name.alias("file"),
        (F.struct(*values) if values else F.lit(None)).alias("values"),
        order.statistics().alias("statistics"),
    )
    of_values, of_statistics = _value_ranges(order), _statistics_ranges(order)
    aggregated = facts.groupBy("file").agg(
        *_counts(),
        F.min("remove.deletionTimestamp").alias("first_deletion"),
        F.max("remove.deletionTimestamp").alias("last_deletion"),
        of_values.alias("of_values"),
        of_statistics.alias("of_statistics"),
    )
    return aggregated.select(
        "file",
        "num_rows",
        "num_adds",
        "num_removes",
        "first_deletion",
        "last_deletion",
        F.expr(
            statistics_text("of_values", statistics=value_ranges_type(order.ranged_partition_keys))
        ).alias("partition_values"),
        F.expr(statistics_text("of_statistics", statistics=order.ranged_statistics)).alias(
            "statistics"
        ),
    )


def _counts() -> list[Column]:
    return [
        F.count(F.lit(1)).alias("num_rows"),
        F.count(f"add.{_ALWAYS}").alias("num_adds"),
        F.count(f"remove.{_ALWAYS}").alias("num_removes"),
    ]


def _value_ranges(order: FileOrder) -> Column:
    values, keys = F.col("values"), order.ranged_partition_keys
    fields = [F.count(f"add.{_ALWAYS}").alias("numRecords")]
    if keys:
        least = [_short(F.min(values[k]), f.dataType).alias(k) for k, f in keys]
        most = [_short(F.max(values[k]), f.dataType).alias(k) for k, f in keys]
        nulls = [F.count_if(_is_add() & values[k].isNull()).alias(k) for k, _ in keys]
        kinds = {"minValues": least, "maxValues": most, "nullCount": nulls}
        fields += [F.struct(*columns).alias(name) for name, columns in kinds.items()]
    return F.struct(*fields)


def _statistics_ranges(order: FileOrder) -> Column:
    statistics = F.col("statistics")
    records = statistics["numRecords"]

    def known(path: tuple[str, ...], kind: str) -> Column:
        """Whether every add has the bound, or nothing but nulls."""
        bound, nulls = leaf(statistics, kind, path), leaf(statistics, "nullCount", path)
        has_none = F.coalesce(nulls == records, F.lit(False))
        return F.count_if(_is_add() & bound.isNull() & ~has_none) == 0

    def aggregate(kind: str, path: tuple[str, ...], data_type: DataType) -> Column:
        column = leaf(statistics, kind, path)
        if kind == "nullCount":
            return _if_all(F.sum(column), column)
        bound = F.min(column) if kind == "minValues" else F.max(column)
        return F.when(known(path, kind), _short(bound, data_type))

    def ranges(kind: str, data_type: StructType, path: tuple[str, ...]) -> Column:
        fields = []
        for field in data_type.fields:
            inner = (*path, field.name)
            value = (
                ranges(kind, field.dataType, inner)
                if isinstance(field.dataType, StructType)
                else aggregate(kind, inner, field.dataType)
            )
            fields.append(value.alias(field.name))
        return F.struct(*fields)

    fields = [_if_all(F.sum(records), records).alias("numRecords")]
    for field in order.ranged_statistics.fields:
        if isinstance(field.dataType, StructType):
            fields.append(ranges(field.name, field.dataType, ()).alias(field.name))
    return F.struct(*fields)


def _is_add() -> Column:
    return F.col(f"add.{_ALWAYS}").isNotNull()


def _if_all(total: Column, column: Column) -> Column:
    """A sum, where every add has a value."""
    return F.when(F.count_if(_is_add() & column.isNull()) == 0, total)


def _short(bound: Column, data_type: DataType) -> Column:
    if not isinstance(data_type, StringType):
        return bound
    return F.when(F.char_length(bound) <= MAX_TEXT, bound)
