"""The job as a scheduler sees it: JSON on standard output, and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs import checkpoint
from tests.support.table_builder import add, create


def test_the_job_writes_a_checkpoint(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = create(tmp_path / "table", add("a"), add("b"))
    assert checkpoint.main([str(table)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["is_written"] is True
    assert result["path"] == str(table)
    assert (result["version"], result["kind"], result["num_adds"]) == (0, "classic", 2)
    assert (table / "_delta_log" / result["file"]).exists()
    assert checkpoint.main([str(table)]) == 0
    assert json.loads(capsys.readouterr().out)["is_written"] is False


def test_the_job_fails_with_a_code(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checkpoint.main([str(tmp_path / "nothing")]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"] == "DELTA_TABLE_NOT_FOUND"
    assert "is not a Delta table" in captured.err


def test_an_error_of_spark_is_a_result_too(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = create(tmp_path / "table", add("a"))
    assert checkpoint.main([str(table), "--compression", "nothing"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]
    assert [file.name for file in (table / "_delta_log").iterdir()] == [f"{0:020d}.json"]


@pytest.mark.parametrize("arguments", [[], ["t", "--kind", "multi-part"], ["t", "--layout", "x"]])
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        checkpoint.main(arguments)
    assert raised.value.code == 2
    assert capsys.readouterr().out == ""


def test_help_explains_every_argument(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        checkpoint.main(["--help"])
    assert raised.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("--version", "--kind", "--layout", "--full"))
