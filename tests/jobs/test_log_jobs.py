"""The jobs of log maintenance as a scheduler sees them: JSON, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from jobs import clean_log, clone, compact_log, convert, describe, optimize, repair, vacuum, verify
from sparkdelta import DeltaTable
from tests.support.log_writer import write_commit
from tests.support.table_builder import add, create, ids, write_data

JOBS = (clean_log, clone, compact_log, describe, optimize, repair, vacuum, verify)
Run = Callable[[ModuleType, Sequence[str]], tuple[int, dict[str, Any], str]]


@pytest.fixture
def run(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code, the one line of JSON, and what stands on standard error."""

    def call(job: ModuleType, arguments: Sequence[str]) -> tuple[int, dict[str, Any], str]:
        code = job.main(list(arguments))
        captured = capsys.readouterr()
        (line,) = captured.out.splitlines()
        return code, json.loads(line), captured.err

    return call


def test_compact_log(run: Run, tmp_path: Path) -> None:
    table = create(tmp_path / "table", add("a"))
    assert run(compact_log, [str(table)])[:2] == (
        0, {"path": str(table), "start": 0, "end": 0, "name": None, "written": False,
            "size_bytes": 0},
    )  # fmt: skip
    for version in (1, 2):
        write_commit(table, version, [add(str(version))])
    code, result, _ = run(compact_log, [str(table), "--start", "1", "--end", "2"])
    assert (code, result["written"]) == (0, True)
    file = table / "_delta_log" / result["name"]
    assert file.stat().st_size == result["size_bytes"]
    code, result, errors = run(compact_log, [str(table), "--start", "2", "--end", "2"])
    assert (code, result["error"]) == (1, "DELTA_ILLEGAL_OPTION")
    assert "start" in errors


def test_clean_log(run: Run, tmp_path: Path) -> None:
    table = create(tmp_path / "table", add("a"))
    code, result, _ = run(clean_log, [str(table), "--dry-run"])
    assert (code, result["dry_run"], result["files"]) == (0, True, [])
    assert "checkpoint" in result["reason"]


def test_optimize(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "table"
    create(table, *(write_data(table, f"{n}.parquet", ids(n, n + 1)) for n in range(2)))
    _, planned, _ = run(optimize, [str(table), "--dry-run"])
    assert (planned["removed"]["count"], planned["versions"]) == (2, [])
    code, result, _ = run(optimize, [str(table), "--target-file-size", "1000000"])
    assert (code, result["added"]["count"], result["versions"]) == (0, 1, [1])


@pytest.mark.full
def test_clone(run: Run, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    create(source, write_data(source, "f.parquet", ids(0, 3)))
    code, result, _ = run(clone, [str(source), str(target), "--deep"])
    assert (code, result["version"], result["num_copied_files"]) == (0, 0, 1)
    code, result, _ = run(clone, [str(source), str(target), "--deep", "--replace"])
    assert (code, result["version"], result["num_copied_files"]) == (0, 1, 0)


@pytest.mark.full
def test_vacuum(run: Run, tmp_path: Path) -> None:
    table = create(tmp_path / "table")
    (table / "orphan").write_text("x")
    arguments = ["--retention-hours", "0", "--dry-run"]
    code, result, errors = run(vacuum, [str(table), *arguments])
    assert (code, result["error"]) == (1, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT")
    code, result, errors = run(vacuum, [str(table), *arguments, "--no-retention-check"])
    assert (code, result["unneeded"], result["files"]) == (0, {"count": 1, "bytes": 1}, ["orphan"])
    assert "Would delete" in errors


@pytest.mark.full
def test_repair(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "table"
    create(table, *(write_data(table, f"{n}.parquet", ids(n, n + 1)) for n in range(2)))
    (table / "0.parquet").unlink()
    code, result, errors = run(repair, [str(table), "--dry-run"])
    assert (code, result["num_missing_files"], result["version"]) == (0, 1, None)
    assert "0.parquet: does not exist" in errors
    assert run(repair, [str(table)])[1]["version"] == 1


@pytest.mark.full
def test_convert(run: Run, tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    code, result, _ = run(convert, [str(directory)])
    assert (code, result["error"]) == (1, "DELTA_EMPTY_DIRECTORY")
    write_data(directory, "day=2024-01-01/f.parquet", ids(0, 3))
    code, result, _ = run(convert, [str(directory), "--partition-schema", "day DATE"])
    assert (code, result["version"], result["num_converted_files"]) == (0, 0, 1)
    code, result, _ = run(convert, [str(directory)])
    assert (code, result["version"]) == (0, None)


def test_verify(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "table"
    create(table, write_data(table, "f.parquet", ids(0, 3)))
    code, result, errors = run(verify, [str(table), "--footers"])
    assert (code, result["clean"], result["findings"]) == (0, True, [])
    assert "clean" in errors
    (table / "f.parquet").unlink()
    code, result, errors = run(verify, [str(table), "--version", "0"])
    assert (code, result["clean"]) == (1, False)
    assert [finding["problem"] for finding in result["findings"]] == ["is missing"]
    assert "f.parquet: is missing" in errors


def test_describe(run: Run, tmp_path: Path) -> None:
    table = create(tmp_path / "table", add("a", size=7), configuration={"k": "v"})
    code, result, _ = run(describe, [str(table)])
    assert code == 0
    assert (result["numFiles"], result["sizeInBytes"], result["properties"]) == (1, 7, {"k": "v"})
    assert "history" not in result
    _, result, _ = run(describe, [str(table), "--history", "1"])
    assert [commit["version"] for commit in result["history"]] == [0]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_no_table(run: Run, tmp_path: Path, job: ModuleType) -> None:
    target = [str(tmp_path / "target")] if job is clone else []
    code, result, errors = run(job, [str(tmp_path / "nothing"), *target])
    assert (code, result["error"]) == (1, "DELTA_TABLE_NOT_FOUND")
    assert result["message"] in errors


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_arguments(job: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code in ((["--help"], 0), ([], 2), (["t", "--what"], 2)):
        with pytest.raises(SystemExit) as exited:
            job.main(arguments)
        assert exited.value.code == code
    assert "exit codes" in " ".join(capsys.readouterr().out.split()).lower()


def test_an_error_of_spark_is_a_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The line of JSON has no stack of Java; the log has all."""

    def fail(*_: object) -> None:
        raise PySparkException("Job aborted: f.parquet is no Parquet file\n\tat org.apache.Some")

    monkeypatch.setattr(describe.job, "SparkSession", MagicMock())
    monkeypatch.setattr(DeltaTable, "forPath", fail)
    assert describe.main(["/nothing"]) == 1
    told = capsys.readouterr()
    assert json.loads(told.out) == {
        "path": "/nothing",
        "error": "PySparkException",
        "message": "Job aborted: f.parquet is no Parquet file",
    }
    assert "at org.apache.Some" in caplog.text
