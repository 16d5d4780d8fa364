"""The command ``sparkdelta``."""

from __future__ import annotations

import inspect
import json
import math
from argparse import ArgumentParser
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

import sparkdelta
from sparkdelta import __main__ as command_line
from sparkdelta.__main__ import main

pytestmark = pytest.mark.full


def test_commands(
    spark: SparkSession, table_path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def run(command: str, *more: str) -> list[dict[str, object]]:
        assert main([command, table_path, *more, "--json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    feed = {"delta.enableChangeDataFeed": "true"}
    sparkdelta.write_delta(spark.range(3).coalesce(1), table_path, properties=feed)
    sparkdelta.write_delta(spark.range(3, 5).coalesce(1), table_path, mode="append")
    assert run("describe")[0]["numFiles"] == 2
    assert [row["version"] for row in run("history", "--limit", "1")] == [1]
    assert len(run("files", "--where", "id > 3")) == 1
    assert [row["id"] for row in run("changes", "1")] == [3, 4]
    assert run("verify")
    assert run("checkpoint")[0]["version"] == 1
    assert run("optimize", "--dry-run")
    assert run("vacuum", "--dry-run")
    assert run("repair", "--dry-run")
    assert run("clean-log", "--dry-run")
    parquet = str(tmp_path / "parquet")
    spark.range(3).coalesce(1).write.parquet(parquet)
    assert main(["convert", parquet, "--no-statistics", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["num_converted_files"] == 1
    assert main(["history", table_path, "--limit", "1"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert any(line[:1] == ["1"] and "WRITE" in line for line in lines), "a table of one row"
    assert main(["verify", table_path]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["findings", "0"] in [line[-2:] for line in lines]
    assert main(["describe", str(tmp_path / "nothing")]) == 1
    assert "DELTA_TABLE_NOT_FOUND" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["describe"])


@pytest.mark.parametrize("name", command_line._COMMANDS)
def test_each_option_is_an_argument_of_the_function(name: str) -> None:
    parser = ArgumentParser(add_help=False)
    command_line.add_options(parser, name)
    options = {action.dest for action in parser._actions} - {"path"}
    function = command_line._COMMANDS[name].call
    assert inspect.signature(function).bind(None, "/nothing", **dict.fromkeys(options))
    defaults = {action.default for action in parser._actions}
    assert all(each is None or type(each) in (bool, int, str) for each in defaults)


def test_any_value_is_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON has no NaN, no bytes and no other keys than text."""
    row = {
        "n": math.nan, "b": bytearray(b"\x01\xff"), "d": date(2024, 5, 1), "c": Decimal("1.50"),
        "m": {Row(x=1): -math.inf}, "a": [True, None, 1, 2.5, Row(y=b"")], "s": "text",
    }  # fmt: skip
    monkeypatch.setattr(command_line, "_session", lambda: None)
    changes = command_line._COMMANDS["changes"]._replace(call=lambda *_, **__: [row])
    monkeypatch.setitem(command_line._COMMANDS, "changes", changes)
    assert main(["changes", "/nothing", "0", "--json"]) == 0

    def no_number(text: str) -> None:
        raise ValueError(text)

    assert json.loads(capsys.readouterr().out, parse_constant=no_number) == {
        "n": "nan", "b": "Af8=", "d": "2024-05-01", "c": "1.50", "m": {"[1]": "-inf"},
        "a": [True, None, 1, 2.5, [""]], "s": "text",
    }  # fmt: skip
    assert main(["changes", "/nothing", "0"]) == 0
    assert "2024-05-01" in capsys.readouterr().out


def test_an_error_of_spark_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PySparkException("Job aborted: f.parquet is no Parquet file\n\tat org.apache.Some")

    monkeypatch.setattr(command_line, "_session", lambda: None)
    changes = command_line._COMMANDS["changes"]._replace(call=fail)  # type: ignore[arg-type]
    monkeypatch.setitem(command_line._COMMANDS, "changes", changes)
    assert main(["changes", "/nothing", "0"]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "Job aborted: f.parquet is no Parquet file\n")


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_a_limit_is_a_number_of_rows(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["history", "/nothing", f"--limit={limit}"])
    assert exit_.value.code == 2
    assert f"{limit} is not a number of rows" in capsys.readouterr().err
