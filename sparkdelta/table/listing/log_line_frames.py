"""Parsing of log lines into actions.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#protocol-evolution
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from sparkdelta.base.schema.sql_text import from_json_text, text_literal
from sparkdelta.exceptions import MalformedLogFileError

_CORRUPT = "_corrupt_record"
BLANKS = " \t\n\v\f\r"
"""The characters of blank lines, which hold no action."""

_HAS_TEXT = f"trim(LEADING {text_literal(BLANKS)} FROM line) != ''"


def parse_log_lines(
    lines: DataFrame,
    *,
    actions: StructType,
    few: bool = False,
    keep_line: bool = False,
    keep: Sequence[str] = (),
) -> DataFrame:
    """Parse the lines of the log, one row per line and one column per requested action.

    A line that is not exactly one JSON object of the expected types fails the query, regardless of
    the columns that the query selects. Other actions and unknown fields are ignored.

    Parameters
    ----------
    lines
        version LONG (of the commit, or the last version of a log compaction), line STRING.
    actions
        The requested columns of `schema.action_schemas.ACTIONS`, or some of their fields.
    few
        True to use only projections and filters. Spark evaluates these without a job if the lines
        are local data, but parses the lines again for each filter.
    keep_line
        True to return the line too; ignored with `few`.
    keep
        Names of other columns of `lines` to return too; ignored with `few`.

    Returns
    -------
    DataFrame
        version LONG, line STRING if `keep_line`, and the columns of `actions`. Blank lines are
        skipped.
    """
    # A filter would not check lines that an earlier condition rejects. Every column is derived from
    # this expression, so it is always evaluated, and the line is parsed once.
    action = f"transform(array({_parsed(actions)}), parsed -> {_checked('parsed')})"
    lines = lines.filter(_HAS_TEXT)
    if few:
        return lines.selectExpr("version", f"get({action}, 0) AS action").select(
            "version", "action.*"
        )
    # Filters are not pushed below a generator, and count() does not prune it.
    line = ["line"] if keep_line else []
    return lines.selectExpr("version", *line, *keep, f"inline({action})")


def damaged_lines(lines: DataFrame, *, actions: StructType) -> DataFrame:
    """Return the lines for which `parse_log_lines` fails: version LONG, line STRING."""
    is_whole = f"transform(array({_parsed(actions)}), parsed -> {_is_whole('parsed')})"
    return lines.filter(_HAS_TEXT).filter(f"NOT get({is_whole}, 0)").select("version", "line")


def may_name(*actions: str) -> str:
    """Return SQL that is true if a line may contain one of these actions, or is truncated."""
    named = (f"contains(line, '\"{action}\"')" for action in actions)
    # A line truncated within an action's name has no closing brace.
    return " OR ".join((*named, "NOT endswith(rtrim(line), '}')"))


def _parsed(actions: StructType) -> str:
    parsed = StructType(
        [
            StructField("action", ArrayType(actions)),
            StructField("whole", BooleanType()),
            StructField(_CORRUPT, StringType()),
        ]
    )
    # Spark's parser stops after the first object. Inside an array that is followed by another key,
    # a truncated line or one with trailing text is invalid JSON or not exactly one element.
    document = """concat('{"action":[', line, '],"whole":true}')"""
    return from_json_text(
        document, parsed, mode="PERMISSIVE", columnNameOfCorruptRecord=_CORRUPT, timeZone="UTC"
    )


def _is_whole(parsed: str) -> str:
    is_one = f"{parsed}.{_CORRUPT} IS NULL AND {parsed}.whole AND size({parsed}.action) = 1"
    is_valid = f"get({parsed}.action, 0) IS NOT NULL AND is_valid_utf8(line)"
    return f"coalesce({is_one} AND {is_valid}, FALSE)"


def _checked(parsed: str) -> str:
    problem = (
        f"concat('[{MalformedLogFileError.error_class}] Version ', CAST(version AS string), "
        "' of the log contains a line that is not one complete JSON action. The file was cut "
        "short or changed after it was committed. Restore it from a backup, or read a version "
        "before it. The line begins with: ', substring(line, 1, 200))"
    )
    # Spark may evaluate another filter before the one that removes blank lines.
    return (
        f"CASE WHEN {_is_whole(parsed)} THEN get({parsed}.action, 0) "
        f"WHEN {_HAS_TEXT} THEN raise_error({problem}) END"
    )
