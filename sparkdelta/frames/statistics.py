"""File statistics: JSON text or a checkpoint's struct to one typed struct."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.schema.table_schema import quoted

_JSON_OPTIONS = {"mode": "PERMISSIVE", "timeZone": "UTC"}
_TEXT_OPTIONS = {"ignoreNullFields": "true", "timeZone": "UTC"}
_TEMPORAL = (DateType, TimestampType, TimestampNTZType)


def parse_statistics(stats: Column, *, statistics: StructType) -> Column:
    """`add.stats` as a struct of type `statistics`; null where there is none or it does not parse.

    References
    ----------
    PROTOCOL.md#per-file-statistics
    """
    return F.from_json(stats, statistics, _JSON_OPTIONS)


def statistics_text(column: Column, *, statistics: StructType) -> Column:
    """A struct of statistics as the JSON text that `add.stats` holds, exact to the microsecond.

    References
    ----------
    PROTOCOL.md#per-file-statistics
    """
    if not any(isinstance(leaf, _TEMPORAL) for leaf in _leaves(statistics)):
        return F.to_json(column, _TEXT_OPTIONS)
    # Moments become texts before, by means that know neither a time zone nor a format of the
    # session. Inside a lambda, so that the struct is computed once.
    texts = F.transform(F.array(column), lambda value: _texts(value, statistics))
    return F.when(column.isNotNull(), F.to_json(F.get(texts, F.lit(0)), _TEXT_OPTIONS))


def _leaves(data_type: DataType) -> Iterator[DataType]:
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            yield from _leaves(field.dataType)
    else:
        yield data_type


def _texts(value: Column, data_type: DataType) -> Column:
    if isinstance(data_type, StructType):
        fields = [_texts(value[f.name], f.dataType).alias(f.name) for f in data_type.fields]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(data_type, DateType):
        return value.cast("string")
    if isinstance(data_type, TimestampType):
        epoch = F.expr("TIMESTAMP_NTZ '1970-01-01 00:00:00'")
        local = F.timestamp_add("MICROSECOND", F.unix_micros(value), epoch)
        return F.concat(F.replace(local.cast("string"), F.lit(" "), F.lit("T")), F.lit("Z"))
    if isinstance(data_type, TimestampNTZType):
        return F.replace(value.cast("string"), F.lit(" "), F.lit("T"))
    return value


def conform(column: str, *, stored: DataType, wanted: DataType) -> Column:
    """A struct column of a checkpoint with the fields of `wanted`, matched by name.

    A field that was not stored is null; a leaf of another type, as from before a type change, is
    cast, and null where it does not fit: statistics may be missing, but never wrong.
    """
    if stored == wanted:
        return F.col(column)
    # In one text: a call into the JVM for every field would take longer than to plan the rest.
    return F.expr(_conformed(quoted(column), stored, wanted))


def _conformed(value: str, stored: DataType | None, wanted: DataType) -> str:
    if not isinstance(wanted, StructType):
        if stored is None:
            return f"CAST(NULL AS {_type_name(wanted)})"
        return value if stored == wanted else f"TRY_CAST({value} AS {_type_name(wanted)})"
    fields = {f.name: f.dataType for f in stored.fields} if isinstance(stored, StructType) else {}
    # The appendix of the protocol spells nullCount as nullCounts, and some writers follow it.
    spelled = {"nullCount": "nullCounts"} if "nullCount" not in fields else {}
    parts = []
    for field in wanted.fields:
        name = spelled.get(field.name, field.name)
        inner = _conformed(f"{value}.{quoted(name)}", fields.get(name), field.dataType)
        parts.append(f"{inner} AS {quoted(field.name)}")
    present = f"{value} IS NOT NULL" if isinstance(stored, StructType) else "FALSE"
    return f"CASE WHEN {present} THEN struct({', '.join(parts)}) END"


def _type_name(data_type: DataType) -> str:
    # What TIMESTAMP alone means is a setting.
    is_moment = isinstance(data_type, TimestampType)
    return "timestamp_ltz" if is_moment else data_type.simpleString()
