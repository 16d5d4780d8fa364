"""Lines of commits to actions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.exceptions import MalformedLogFileError

_CORRUPT = "_corrupt_record"


def parse_log_lines(lines: DataFrame, *, actions: StructType) -> DataFrame:
    """One row per line of the log, with each of the wanted actions in a column of its own.

    A line that is not exactly one JSON object of the right types fails the query, whatever columns
    the query asks for. Other actions and unknown fields are ignored.

    Parameters
    ----------
    lines
        version LONG (of the commit, or the last one of a compaction), line STRING.
    actions
        The wanted columns, of `schema.action_schemas.ACTIONS`.

    Returns
    -------
    DataFrame
        version LONG, and the columns of `actions`; blank lines are left out.

    References
    ----------
    PROTOCOL.md#delta-log-entries, PROTOCOL.md#protocol-evolution
    """
    parsed = StructType([StructField("action", actions), StructField(_CORRUPT, StringType())])
    # As the value of a key, a line followed by anything else is not valid JSON any more; Spark's
    # parser by itself stops after the first object. The generator keeps `from_json` from being
    # evaluated again in every filter above it, and is not pruned away by count().
    document = F.concat(F.lit('{"action":'), "line", F.lit("}"))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "timeZone": "UTC"}
    return (
        lines.filter(F.trim("line") != "")
        .select("version", "line", F.inline(F.array(F.from_json(document, parsed, options))))
        .filter(_is_whole())
        .select("version", "action.*")
    )


def _is_whole() -> Column:
    problem = F.concat(
        F.lit(f"[{MalformedLogFileError.error_class}] Version "),
        F.col("version").cast("string"),
        F.lit(
            " of the log holds a line that is not one complete JSON action. The file was cut short "
            "or changed after it was committed. Restore it from a backup, or read a version before "
            "it. The line begins with: "
        ),
        F.substring("line", 1, 200),
    )
    return F.when(F.col(_CORRUPT).isNull(), F.lit(True)).otherwise(F.raise_error(problem))
