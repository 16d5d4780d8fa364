"""File statistics: JSON text or a checkpoint's struct to one typed struct."""

from __future__ import annotations

from pyspark.sql.types import DataType, StructType

from sparkdelta.schema.sql_text import from_json_text, type_text
from sparkdelta.schema.table_schema import quoted


def parsed_statistics(stats: str, *, statistics: StructType) -> str:
    """`add.stats` as a struct of type `statistics`, in SQL; null where there is none or it does not
    parse.

    References
    ----------
    PROTOCOL.md#per-file-statistics
    """
    return from_json_text(stats, statistics, mode="PERMISSIVE", timeZone="UTC")


def conformed(column: str, *, stored: DataType, wanted: DataType) -> str:
    """A struct column of a checkpoint with the fields of `wanted`, matched by name, in SQL.

    A field that was not stored is null; a leaf of another type, as from before a type change, is
    cast, and null where it does not fit: statistics may be missing, but never wrong.
    """
    return _conformed(quoted(column), stored, wanted)


def _conformed(value: str, stored: DataType | None, wanted: DataType) -> str:
    if not isinstance(wanted, StructType):
        if stored is None:
            return f"CAST(NULL AS {type_text(wanted)})"
        return value if stored == wanted else f"TRY_CAST({value} AS {type_text(wanted)})"
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
