"""Provenance: whatever is in a commitInfo, history can be shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from sparkdelta.table.log.commit_info_frames import commit_infos
from tests.support.table_builder import add

Lines = Callable[..., DataFrame]


def _info(**fields: Any) -> str:
    return json.dumps({"commitInfo": fields})


@pytest.mark.usefixtures("hostile")
def test_fields_and_their_types(lines: Lines) -> None:
    """PROTOCOL.md#commit-provenance-information"""
    text = _info(
        timestamp=5, operation="WRITE", operationParameters={"mode": "Append", "n": 1, "deep": {}},
        isBlindAppend=True, readVersion=3, operationMetrics={"numFiles": "1"}, unknown=[1],
        job={"jobId": "7", "unknown": 1}, engineInfo="x/1",
    )  # fmt: skip
    (row,) = commit_infos(lines(json.dumps(add("f")), text, version=4)).collect()
    info = row["commitInfo"]
    assert row["version"] == 4
    assert (info["timestamp"], info["operation"], info["readVersion"]) == (5, "WRITE", 3)
    assert info["operationParameters"] == {"mode": "Append", "n": "1", "deep": "{}"}
    assert (info["isBlindAppend"], info["operationMetrics"]) == (True, {"numFiles": "1"})
    assert (info["job"]["jobId"], info["notebook"], info["engineInfo"]) == ("7", None, "x/1")


def test_any_json_is_allowed(lines: Lines) -> None:
    odd = [
        _info(timestamp="soon", operation=7, operationParameters="x", isBlindAppend="?", job=[1]),
        _info(operation={"a": [1]}, operationParameters=[1], notebook="n", readVersion=1.5),
        _info(),
    ]
    rows = commit_infos(lines(*odd)).collect()
    assert len(rows) == 3
    first, second, _ = (row["commitInfo"] for row in rows)
    assert (first["timestamp"], first["operation"], first["isBlindAppend"]) == (None, "7", None)
    assert second["operation"] == '{"a":[1]}'


def test_a_commit_without_one_has_no_row(lines: Lines) -> None:
    assert commit_infos(lines(json.dumps(add("f")), "")).collect() == []


def test_a_torn_line_is_an_error(lines: Lines) -> None:
    for text in (_info(operation="WRITE")[:-3], '{"comm'):
        with pytest.raises(PySparkException, match="DELTA_MALFORMED_LOG_FILE"):
            commit_infos(lines(text)).collect()
