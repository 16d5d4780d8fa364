"""Lines of commits to actions."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from sparkdelta.exceptions import MalformedLogFileError
from sparkdelta.schema.sql_text import from_json_text, text_literal

_CORRUPT = "_corrupt_record"
_BLANKS = " \t\n\v\f\r"

_HAS_TEXT = f"trim(LEADING {text_literal(_BLANKS)} FROM line) != ''"


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
    document = """concat('{"action":[', line, '],"whole":true}')"""
    json = from_json_text(
        document, parsed, mode="PERMISSIVE", columnNameOfCorruptRecord=_CORRUPT, timeZone="UTC"
    )
    # A check in a filter would be skipped for lines that an earlier condition rejects. Here no
    # column can be had without it, and the parse is evaluated once.
    action = f"transform(array({json}), parsed -> {_checked('parsed')})"
    lines = lines.filter(_HAS_TEXT)
    if few:
        return lines.selectExpr("version", f"get({action}, 0) AS action").select(
            "version", "action.*"
        )
    # The generator keeps filters above it, and is not pruned away by count().
    line = ["line"] if keep_line else []
    return lines.selectExpr("version", *line, f"inline({action})")


def may_name(*actions: str) -> str:
    """Whether a line may hold an action of some kinds, in SQL: it names one, or is cut short.

    References
    ----------
    PROTOCOL.md#delta-log-entries
    """
    named = (f"contains(line, '\"{action}\"')" for action in actions)
    # One cut short inside an action's name has no closing brace.
    return " OR ".join((*named, "NOT endswith(rtrim(line), '}')"))


def _checked(parsed: str) -> str:
    problem = (
        f"concat('[{MalformedLogFileError.error_class}] Version ', CAST(version AS string), "
        "' of the log contains a line that is not one complete JSON action. The file was cut "
        "short or changed after it was committed. Restore it from a backup, or read a version "
        "before it. The line begins with: ', substring(line, 1, 200))"
    )
    action = f"get({parsed}.action, 0)"
    is_one = f"{parsed}.{_CORRUPT} IS NULL AND {parsed}.whole AND size({parsed}.action) = 1"
    is_whole = f"coalesce({is_one} AND {action} IS NOT NULL AND is_valid_utf8(line), FALSE)"
    # Blank lines are left out before, but a filter above may be evaluated before that.
    return f"CASE WHEN {is_whole} THEN {action} WHEN {_HAS_TEXT} THEN raise_error({problem}) END"
