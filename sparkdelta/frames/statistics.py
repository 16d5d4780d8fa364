"""File statistics: JSON text or a checkpoint's struct to one typed struct."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

_JSON_OPTIONS = {"mode": "PERMISSIVE", "timeZone": "UTC"}


def parse_statistics(stats: Column, *, statistics: StructType) -> Column:
    """`add.stats` as a struct of type `statistics`; null where there is none or it does not parse.

    References
    ----------
    PROTOCOL.md#per-file-statistics
    """
    return F.from_json(stats, statistics, _JSON_OPTIONS)


def conform(column: Column, *, stored: DataType, wanted: DataType) -> Column:
    """A struct of a checkpoint with the fields of `wanted`, matched by name.

    A field that was not stored is null; a leaf of another type, as from before a type change, is
    cast, and null where it does not fit: statistics may be missing, but never wrong.
    """
    if not isinstance(wanted, StructType):
        return column if stored == wanted else column.try_cast(wanted)
    if not isinstance(stored, StructType):
        return F.lit(None).cast(wanted)
    types = {field.name: field.dataType for field in stored.fields}
    # The appendix of the protocol spells nullCount as nullCounts, and some writers follow it.
    spelled = {"nullCount": "nullCounts"} if "nullCount" not in types else {}
    fields = []
    for field in wanted.fields:
        name = spelled.get(field.name, field.name)
        value = (
            conform(column[name], stored=types[name], wanted=field.dataType)
            if name in types
            else F.lit(None).cast(field.dataType)
        )
        fields.append(value.alias(field.name))
    return F.when(column.isNotNull(), F.struct(*fields))
