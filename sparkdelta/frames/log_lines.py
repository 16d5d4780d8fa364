"""Lines of commits to actions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from sparkdelta.exceptions import MalformedLogFileError

_CORRUPT = "_corrupt_record"


def parse_log_lines(lines: DataFrame, *, actions: StructType, few: bool = False) -> DataFrame:
    """One row per line of the log, with each of the wanted actions in a column of its own.

    A line that is not exactly one JSON object of the right types fails the query, whatever columns
    the query asks for. Other actions and unknown fields are ignored.

    Parameters
    ----------
    lines
        version LONG (of the commit, or the last one of a compaction), line STRING.
    actions
        The wanted columns, of `schema.action_schemas.ACTIONS`.
    few
        Whether to parse in projections and filters alone, which Spark evaluates without a job where
        the lines are local data, but each filter anew.

    Returns
    -------
    DataFrame
        version LONG, and the columns of `actions`; blank lines are left out.

    References
    ----------
    PROTOCOL.md#delta-log-entries, PROTOCOL.md#protocol-evolution
    """
    parsed = StructType(
        [
            StructField("action", ArrayType(actions)),
            StructField("whole", BooleanType()),
            StructField(_CORRUPT, StringType()),
        ]
    )
    # Spark's parser stops after the first object. Inside an array, with a key to come, a line that
    # is cut short or followed by anything else is not valid JSON or not one element.
    document = F.concat(F.lit('{"action":['), "line", F.lit('],"whole":true}'))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "timeZone": "UTC"}
    json = F.from_json(document, parsed, options)
    lines = lines.filter(F.rlike("line", F.lit(r"\S")))
    if few:
        fields = lines.select("version", "line", json.alias("_json")).select(
            "version", "line", "_json.*"
        )
    else:
        # The generator keeps from_json from being evaluated again in every filter above it.
        fields = lines.select("version", "line", F.inline(F.array(json)))
    return (
        fields.filter(_is_whole())
        .select("version", F.get("action", F.lit(0)).alias("action"))
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
    is_one = (
        F.col(_CORRUPT).isNull()
        & F.col("whole")
        & (F.size("action") == 1)
        & F.is_valid_utf8("line")
    )
    is_whole = F.coalesce(is_one & F.get("action", F.lit(0)).isNotNull(), F.lit(False))
    return F.when(is_whole, F.lit(True)).otherwise(F.raise_error(problem))
