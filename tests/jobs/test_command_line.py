"""The command ``sparkdelta``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sparkdelta
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
