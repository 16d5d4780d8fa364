"""The provenance that commits carry."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, MapType, StringType, StructField, StructType

from sparkdelta.frames.log.log_lines import may_name, parse_log_lines
from sparkdelta.schema.action_schemas import COMMIT_INFO

_RAW = StructType([StructField("commitInfo", StringType())])


def commit_infos(lines: DataFrame, *, few: bool = False) -> DataFrame:
    """version LONG, commitInfo STRUCT (`schema.action_schemas.COMMIT_INFO`), one row per commit.

    Any JSON is allowed in a commitInfo: a field of another type than expected is null, or the text
    of its JSON where a text is expected. Commits without a commitInfo have no row.

    Parameters
    ----------
    lines
        version LONG, line STRING.
    few
        As for `parse_log_lines`.

    References
    ----------
    PROTOCOL.md#commit-provenance-information
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
