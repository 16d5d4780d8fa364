"""Lines of the log: whole or an error; what is not known is ignored."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.schema.action_schemas import ACTIONS, actions
from sparkdelta.exceptions import MalformedLogFileError, from_message
from sparkdelta.table.listing.log_line_frames import parse_log_lines
from tests.support.spark_jobs import no_jobs
from tests.support.table_builder import add

Lines = Callable[..., DataFrame]
GOOD = json.dumps(add("f", stats='{"numRecords":1}'))

TORN = {
    "cut inside a value": GOOD[:-5],
    "cut after a value": GOOD[:-1],
    "cut inside the action's name": '{"ad',
    "cut after the brace": "{",
    "two objects": GOOD + GOOD,
    "two objects, one torn": GOOD + GOOD[:-7],
    "trailing text": GOOD + " x",
    "trailing brace": GOOD + "}",
    "leading text": "x" + GOOD,
    "not JSON": "garbage",
    "zeros, as after a crash": "\x00" * 8,
    "an array": f"[{GOOD}]",
    "a number": "7",
    "a text": '"add"',
    "a number where a text map is": '{"add":{"path":"f","partitionValues":7}}',
    "a text where a number is": '{"add":{"path":"f","size":"big"}}',
    "a fraction where a number is": '{"add":{"path":"f","size":1.5}}',
    "a number that is too large": '{"add":{"path":"f","size":9223372036854775808}}',
    "an action that is a text": '{"add":"f"}',
    "an action that is an array": '{"add":["f"]}',
    "a text where a flag is": '{"add":{"path":"f","dataChange":"yes"}}',
    "further members": GOOD + ',"txn":{}',
    "null": "null",
}


@pytest.mark.parametrize("how", TORN)
def test_a_line_that_is_not_whole_is_an_error(lines: Lines, how: str) -> None:
    """Even of `count()`, which asks for no column: Spark would prune the parsing away."""
    with pytest.raises(PySparkException) as raised:
        parse_log_lines(lines(GOOD, TORN[how]), actions=ACTIONS).count()
    assert isinstance(from_message(str(raised.value)), MalformedLogFileError)


@pytest.mark.full
def test_torn_lines_fail_each_query(lines: Lines) -> None:
    parsed = parse_log_lines(lines(GOOD, TORN["cut inside a value"]), actions=ACTIONS)
    for query in (
        parsed.select("version"),
        parsed.select("add.path"),
        parsed.filter("add.path = 'no'"),
        parsed.filter("txn IS NOT NULL").select("txn.appId"),
        parsed.groupBy("version").count(),
    ):
        with pytest.raises(PySparkException, match="DELTA_MALFORMED_LOG_FILE"):
            query.collect()


@pytest.mark.usefixtures("hostile")
def test_the_error_does_not_depend_on_settings(lines: Lines) -> None:
    for how in ("cut inside a value", "two objects", "a text where a number is"):
        with pytest.raises(PySparkException, match="DELTA_MALFORMED_LOG_FILE"):
            parse_log_lines(lines(TORN[how]), actions=ACTIONS).count()


def test_the_error_names_the_version_and_shows_the_line(lines: Lines) -> None:
    with pytest.raises(PySparkException, match=r"Version 42 .*line begins with: \{\"add"):
        parse_log_lines(lines(GOOD[:-5], version=42), actions=ACTIONS).count()


@pytest.mark.usefixtures("hostile")
def test_unknown_actions_and_fields_are_ignored(lines: Lines) -> None:
    """PROTOCOL.md#protocol-evolution"""
    known = add("f", futureField={"a": [1]}, size=3)
    known["futureSibling"] = 1
    texts = [json.dumps(known), '{"futureAction":{"path":7}}', '{"cdc":{"path":"c"}}', "{}"]
    parsed = parse_log_lines(lines(*texts), actions=ACTIONS)
    assert [row["add"]["path"] for row in parsed.collect() if row["add"]] == ["f"]
    assert parsed.count() == len(texts)


def test_blank_lines_are_left_out(lines: Lines) -> None:
    parsed = parse_log_lines(lines("", "   ", GOOD, ""), actions=ACTIONS)
    assert parsed.count() == 1


def test_white_space_around_an_action_is_json(lines: Lines) -> None:
    parsed = parse_log_lines(lines(f"  {GOOD}\t", f"{GOOD}\r"), actions=ACTIONS)
    assert [row["add"]["path"] for row in parsed.collect()] == ["f", "f"]


def test_a_blank_line_with_a_carriage_return_is_blank(lines: Lines) -> None:
    assert parse_log_lines(lines("\r", "\t"), actions=ACTIONS).count() == 0


@pytest.mark.usefixtures("hostile")
def test_names_are_matched_in_their_case(lines: Lines) -> None:
    parsed = parse_log_lines(lines('{"ADD":{"path":"f"}}', '{"add":{"PATH":"f"}}'), actions=ACTIONS)
    assert [row["add"] and row["add"]["path"] for row in parsed.collect()] == [None, None]


def test_only_the_wanted_actions_are_columns(lines: Lines) -> None:
    parsed = parse_log_lines(lines(GOOD), actions=actions("txn", "remove"))
    assert parsed.columns == ["version", "remove", "txn"]


def test_long_and_strange_texts(lines: Lines) -> None:
    path = 'é€😀\u2028 \\ " %20 ' + "x" * 100_000
    for text in (json.dumps(add(path)), json.dumps(add(path), ensure_ascii=False)):
        assert parse_log_lines(lines(text), actions=ACTIONS).first()["add"]["path"] == path


def test_nothing_runs_when_the_frame_is_made(spark: SparkSession, lines: Lines) -> None:
    with no_jobs(spark):
        parse_log_lines(lines(GOOD), actions=ACTIONS)
