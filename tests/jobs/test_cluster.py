"""Jobs on a standalone cluster whose Python has no sparkdelta but what is shipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, standalone_cluster
from tests.support.log_writer import write_commit
from tests.support.table_builder import create, ids, removal_of, write_data, write_vectors

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Started once: two JVMs and a half each time."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three versions, a deletion vector, files to look at."""
    table = tmp_path / "table"
    first = write_data(table, "a.parquet", ids(0, 10))
    create(table, first)
    write_commit(table, 1, [write_data(table, "b.parquet", ids(10, 20))])
    (vector,) = write_vectors(table, [1])
    changed = {"add": {**first["add"], "deletionVector": vector}}
    write_commit(table, 2, [removal_of(first, size=first["add"]["size"]), changed])
    return table


def test_without_the_package_there_is_no_job(cluster: Cluster, table: Path) -> None:
    """So that the tests below show that what is shipped is enough."""
    run = cluster.submit("verify.py", str(table))
    assert run.returncode != 0
    assert "No module named 'sparkdelta'" in run.stdout + run.stderr


def test_every_job_runs_with_the_package_shipped(cluster: Cluster, table: Path) -> None:
    (table / "b.parquet").unlink()
    lost = {"check": "data file", "path": f"file:{table}/b.parquet", "problem": "is missing"}
    for code, job, key, value in (
        (0, "compact_log.py", "written", True),
        (0, "checkpoint.py", "is_written", True),
        (0, "clean_log.py", "checkpoint_version", 2),
        (0, "describe.py", "numFiles", 2),
        (1, "verify.py", "findings", [lost]),
    ):
        options = ["--footers"] if job == "verify.py" else []
        run = cluster.submit(job, str(table), *options, py_files=[cluster.package])
        assert run.returncode == code, run.stderr[-4000:]
        (line,) = run.stdout.splitlines()
        assert json.loads(line)[key] == value
        assert f"{job} of {table}" in run.stderr
