"""File statistics: JSON text or a checkpoint's struct to one typed struct."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType, TimestampType

from sparkdelta.schema.table_schema import quoted

_JSON_OPTIONS = {"mode": "PERMISSIVE", "timeZone": "UTC"}


def parse_statistics(stats: Column, *, statistics: StructType) -> Column:
    """`add.stats` as a struct of type `statistics`; null where there is none or it does not parse.

    References
    ----------
    PROTOCOL.md#per-file-statistics
    """
    return F.from_json(stats, statistics, _JSON_OPTIONS)


def conform(column: str, *, stored: DataType, wanted: DataType) -> Column:
    """A struct column of a checkpoint with the fields of `wanted`, matched by name.

    A field that was not stored is null; a leaf of another type, as from before a type change, is
    cast, and null where it does not fit: statistics may be missing, but never wrong.
    """
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
