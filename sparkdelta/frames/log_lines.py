"""Lines of commits to actions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from sparkdelta.exceptions import MalformedLogFileError

_CORRUPT = "_corrupt_record"


def parse_log_lines(
    lines: DataFrame, *, actions: StructType, few: bool = False, keep_line: bool = False
) -> DataFrame:
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
    keep_line
        Whether to return the line too; not with `few`.

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
    # A check in a filter would be skipped for lines that an earlier condition rejects. Here no
    # column can be had without it, and the parse is evaluated once.
    action = F.transform(F.array(F.from_json(document, parsed, options)), _checked)
    lines = lines.filter(_has_text())
    if few:
        whole = lines.select("version", F.get(action, F.lit(0)).alias("action"))
        return whole.select("version", "action.*")
    # The generator keeps filters above it, and is not pruned away by count().
    return lines.select("version", *(["line"] if keep_line else []), F.inline(action))


def _checked(parsed: Column) -> Column:
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
    action = F.get(parsed["action"], F.lit(0))
    is_one = parsed[_CORRUPT].isNull() & parsed["whole"] & (F.size(parsed["action"]) == 1)
    is_whole = F.coalesce(is_one & action.isNotNull() & F.is_valid_utf8("line"), F.lit(False))
    # Blank lines are left out before, but a filter above may be evaluated before that.
    return F.when(is_whole, action).when(_has_text(), F.raise_error(problem))


def _has_text() -> Column:
    return F.rlike("line", F.lit(r"\S"))
