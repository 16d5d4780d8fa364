"""Variables of SQL texts, as Spark has them: ``${name}`` stands for a setting of the session."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

_VARIABLE = re.compile(r"\$\{(?:(spark|sparkconf|hivevar|hiveconf):)?([^\s}]+)\}")


def with_variables(spark: SparkSession, text: str) -> str:
    """Return a text with the values of its variables; those that have none stay, as they do for
    Spark.
    """
    if "${" not in text or spark.conf.get("spark.sql.variable.substitute") != "true":
        return text

    def value(found: re.Match[str]) -> str:
        setting = spark.conf.get(found[2], None)
        return found[0] if setting is None else setting

    return _VARIABLE.sub(value, text)
