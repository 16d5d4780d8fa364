"""Spark's setting of what an overwrite replaces, which has no effect here."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.table.write.options import WriteOptions

_SETTING = "spark.sql.sources.partitionOverwriteMode"


def check_overwrite_setting(spark: SparkSession, options: WriteOptions) -> None:
    """Refuse to overwrite a whole table where a setting of the session asks for less.

    Settings have no effect, but rows would be lost that delta-spark keeps.

    Raises
    ------
    InvalidArgumentError
    """
    is_whole = options.mode == "overwrite" and options.replace_where is None
    if not is_whole or options.is_dynamic or options.overwrite_schema:
        return
    if str(spark.conf.get(_SETTING, "static")).lower() == "dynamic":
        problem = (
            f"{_SETTING} is dynamic, which has no effect here; give the option "
            "partitionOverwriteMode of df.write, or set it to static"
        )
        raise InvalidArgumentError(argument="partitionOverwriteMode", problem=problem)
