"""Spark type of a file's statistics, derived from the table's schema.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    LongType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.column_mapping import physical_name
from sparkdelta.base.schema.type_widening import TYPE_CHANGES

_ORDERED_TYPES = (NumericType, StringType, DateType, TimestampType, TimestampNTZType)


def statistics_schema(
    schema: StructType, partition_columns: tuple[str, ...], mode: ColumnMappingMode
) -> StructType:
    """Return the type of `stats_parsed` with physical names.

    Ordered types have min/max values, unless the column was widened from FLOAT; all have null
    counts. Every data column is included, independent of `delta.dataSkippingNumIndexedCols` at the
    time a file was written; statistics missing in a file read as null.
    """
    partitions = {name_key(name) for name in partition_columns}
    data = StructType([field for field in schema.fields if name_key(field.name) not in partitions])
    fields = [StructField("numRecords", LongType())]
    for name, leaf in (("minValues", _bound), ("maxValues", _bound), ("nullCount", _count)):
        values = _mirror(data, mode, leaf)
        if values is not None:
            fields.append(StructField(name, values))
    fields.append(StructField("tightBounds", BooleanType()))
    return StructType(fields)


def _bound(field: StructField) -> DataType | None:
    data_type = field.dataType
    if isinstance(data_type, StringType):
        return StringType()
    # Bounds serialized as FLOAT lack digits that DOUBLE needs.
    was_float = any(
        change.get("fromType") == "float" for change in (field.metadata or {}).get(TYPE_CHANGES, ())
    )
    return data_type if isinstance(data_type, _ORDERED_TYPES) and not was_float else None


def _count(field: StructField) -> DataType | None:
    return None if isinstance(field.dataType, NullType) else LongType()


def _mirror(
    schema: StructType, mode: ColumnMappingMode, leaf: Callable[[StructField], DataType | None]
) -> StructType | None:
    fields = []
    for field in schema.fields:
        data_type = (
            _mirror(field.dataType, mode, leaf)
            if isinstance(field.dataType, StructType)
            else leaf(field)
        )
        if data_type is not None:
            fields.append(StructField(physical_name(field, mode), data_type))
    return StructType(fields) if fields else None


def leaves(
    data_type: DataType, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], DataType]]:
    """Yield the leaf fields of a struct at every level, each as its path and type."""
    if not isinstance(data_type, StructType):
        yield path, data_type
        return
    for field in data_type.fields:
        yield from leaves(field.dataType, (*path, field.name))


def narrowed_statistics(
    statistics: StructType, paths: Sequence[tuple[str, ...]]
) -> StructType | None:
    """Return the part of a `stats_parsed` type that covers these physical paths, or None."""
    fields = []
    for field in statistics.fields:
        if isinstance(field.dataType, StructType):
            narrowed = _only(field.dataType, paths)
            if narrowed is not None:
                fields.append(StructField(field.name, narrowed))
    if not fields:
        return None
    return StructType([statistics["numRecords"], *fields])


def _only(data_type: StructType, paths: Sequence[tuple[str, ...]]) -> StructType | None:
    fields = []
    for field in data_type.fields:
        inner = [path[1:] for path in paths if path and path[0] == field.name]
        if () in inner:
            fields.append(field)
        elif inner and isinstance(field.dataType, StructType):
            narrowed = _only(field.dataType, inner)
            if narrowed is not None:
                fields.append(StructField(field.name, narrowed))
    return StructType(fields) if fields else None


def spelled(statistics: DataType, kind: str) -> str:
    """Return the name of a statistics field, which may be nullCounts for nullCount.

    The protocol's appendix and some writers use that name.
    """
    names = statistics.names if isinstance(statistics, StructType) else []
    is_plural = kind == "nullCount" and kind not in names and "nullCounts" in names
    return "nullCounts" if is_plural else kind


def reliable_statistics(stored: StructType, wanted: StructType) -> StructType:
    """Return the type of a checkpoint's statistics without leaves that need a time zone to convert.

    The writer's time zone is unknown.
    """
    types = {spelled(stored, field.name): field.dataType for field in wanted.fields}
    fields = []
    for field in stored.fields:
        stored_type, wanted_type = field.dataType, types.get(field.name)
        if isinstance(stored_type, StructType) and isinstance(wanted_type, StructType):
            fields.append(StructField(field.name, reliable_statistics(stored_type, wanted_type)))
        elif (
            stored_type == wanted_type
            or wanted_type is None
            or TimestampType() not in (stored_type, wanted_type)
        ):
            fields.append(field)
    return StructType(fields)


def covers(stored: StructType, wanted: StructType) -> bool:
    """Return True if every leaf of the wanted type is stored, of any type."""
    for field in wanted.fields:
        name = spelled(stored, field.name)
        if name not in stored.names:
            return False
        inner = stored[name].dataType
        if isinstance(field.dataType, StructType) and not (
            isinstance(inner, StructType) and covers(inner, field.dataType)
        ):
            return False
    return True
