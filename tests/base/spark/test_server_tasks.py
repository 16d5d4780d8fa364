"""Tasks on a server bring the library's code as bytes that a worker loads once."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sparkdelta.base.spark import server_tasks
from sparkdelta.base.spark.server_tasks import _code, _task, on_server
from sparkdelta.base.storage import server_store_workers as workers
from sparkdelta.base.storage.server_store_workers import StoreOperation
from sparkdelta.base.storage.worker_files import ArrowFiles
from sparkdelta.exceptions import DeltaError

_WORKER = """
import pickle, sys
from pyspark import cloudpickle
kept = sys._sparkdelta_code = {str(number): None for number in range(int(sys.argv[1]))}
loads, loaded = cloudpickle.loads, []
cloudpickle.loads = lambda code: loaded.append(code) or loads(code)
found = [pickle.loads(task)(0) for task in pickle.load(sys.stdin.buffer)]
has_library = any(name.partition(".")[0] == "sparkdelta" for name in sys.modules)
sys.stdout.buffer.write(pickle.dumps((found, len(loaded), len(kept), has_library)))
"""


def run(tmp_path: Path, *functions: Any, others: int = 0) -> tuple[list[Any], int, int]:
    """Run tasks in a worker, which has only their bytes and the code of other tasks, and return
    their outcomes, how often it loaded code, and how many codes it keeps.
    """
    tasks = [cloudpickle.dumps(_task(function)) for function in functions]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", _WORKER, str(others)],
        cwd=tmp_path, env=environment, input=pickle.dumps(tasks), capture_output=True, check=True,
    )  # fmt: skip
    found, loaded, kept, has_library = pickle.loads(done.stdout)
    assert not has_library
    return found, loaded, kept


@pytest.mark.parametrize("others", [0, 40])
def test_a_worker_loads_the_code_of_all_operations_of_a_log_once(
    tmp_path: Path, others: int
) -> None:
    root = f"file:{tmp_path}"
    found, loaded, kept = run(
        tmp_path,
        StoreOperation(root, {}, workers.put_if_absent, ("0.json", b"{}")),
        StoreOperation(root, {}, workers.survey),
        StoreOperation(root, {}, workers.read, (["1.json"],)),
        others=others,
    )
    created, (error, [(name, size, _, data)]), missing = found
    assert created == ([], [])
    assert (error, name, size, data) == ([], "0.json", 2, b"{}")
    assert missing == (["FileNotFoundError", "1.json"], [])
    assert (loaded, kept) == (1, min(others + 1, 16))


def test_a_closure_takes_the_librarys_classes_from_the_kept_code(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"data")
    files, path = ArrowFiles({}), f"file:{tmp_path}/a"

    def size() -> list[Any]:
        return [(path, files.size(path), 0, None)]

    assert run(tmp_path, size, size) == ([([], [(path, 4, 0, None)])] * 2, 1, 1)


def test_code_is_pickled_once(tmp_path: Path) -> None:
    _task(StoreOperation(f"file:{tmp_path}", {}, workers.survey))
    before = _code.cache_info().misses
    task = _task(StoreOperation(f"file:{tmp_path}/other", {}, workers.delete, (["a"],)))
    assert _code.cache_info().misses == before
    assert len(cloudpickle.dumps(task)) < 100_000


def test_another_python_on_the_server_is_named(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PySparkException(
            "\n  An exception was thrown from the Python worker:\n"
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.11 than that "
            "in driver: 3.13.\n"
            "Please check environment variables."
        )

    monkeypatch.setattr(server_tasks, "read_table", fail)
    with pytest.raises(DeltaError, match=r"workers: Python in worker has different version: 3\.11"):
        on_server(spark, list, what="nothing")
