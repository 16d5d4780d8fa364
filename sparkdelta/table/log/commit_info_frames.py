"""Commit provenance: the `commitInfo` actions of the log.

References
----------
PROTOCOL.md#commit-provenance-information
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, MapType, StringType, StructField, StructType

from sparkdelta.base.schema.action_schemas import COMMIT_INFO
from sparkdelta.table.listing.log_line_frames import may_name, parse_log_lines

_RAW = StructType([StructField("commitInfo", StringType())])


def commit_infos(lines: DataFrame, *, few: bool = False) -> DataFrame:
    """Return the commitInfo actions, one row per commit that has one.

    A commitInfo may contain any JSON. A field of an unexpected type is null, or its JSON text if a
    string is expected.

    Parameters
    ----------
    lines
        version LONG, line STRING.
    few
        See `parse_log_lines`.

    Returns
    -------
    DataFrame
        version LONG, commitInfo STRUCT (`schema.action_schemas.COMMIT_INFO`).
    """
    named = lines.filter(may_name("commitInfo"))
    raw = parse_log_lines(named, actions=_RAW, few=few).filter("commitInfo IS NOT NULL")
    return raw.select("version", _field(F.col("commitInfo"), "$", COMMIT_INFO).alias("commitInfo"))


def _field(json: Column, path: str, data_type: DataType) -> Column:
    if isinstance(data_type, StructType):
        fields = [
            _field(json, f"{path}.{field.name}", field.dataType).alias(field.name)
            for field in data_type.fields
        ]
        present = F.get_json_object(json, path).isNotNull()
        return F.when(present, F.struct(*fields))
    text = F.get_json_object(json, path)
    if isinstance(data_type, MapType):
        return F.from_json(text, data_type.simpleString(), {"mode": "PERMISSIVE"})
    return text.try_cast(data_type)
