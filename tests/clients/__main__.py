"""Programs that people run on delta-spark, run on this package: dbt and SQLMesh.

``python3 -m tests.clients dbt`` builds the project of that client three times with
changing data; by default all clients run. Each has a virtual environment of its own. A client runs
as a user would run it, by ``sparkdelta run``. Needs nothing but Python.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.versions import make_environment

PROJECTS = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Client:
    """A program that people run on Delta tables.

    Attributes
    ----------
    requirements
        The packages to install beside this one.
    steps
        The arguments of each ``sparkdelta run`` in the copy of its project.
    prepare
        Called with the project and the number of a step before the step runs.
    tables
        A query for each table that is checked at the end, and its rows in order.
    """

    requirements: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]
    prepare: Callable[[Path, int], None]
    tables: dict[str, list[list[object]]]


def _dbt(build: int) -> tuple[str, ...]:
    days = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-05")
    return ("dbt", "build", *days, "--vars", json.dumps({"build": build}))


def _nothing(_project: Path, _step: int) -> None:
    """Change nothing."""


def _change_model(project: Path, step: int) -> None:
    """Change a model before the second plan."""
    if step == 1:
        model = project / "models" / "all_orders.sql"
        text = model.read_text(encoding="utf-8")
        model.write_text(text.replace("amount FROM", "amount + 1 AS amount FROM"), encoding="utf-8")


_PLAN = ("sqlmesh", "plan", "--auto-apply", "--no-prompts")

CLIENTS = {
    # Newer versions of dbt-core download a part of theirs from a site of its own.
    "dbt": Client(
        ("dbt-core>=1.10,<1.11", "dbt-spark==1.11.0"),
        (*map(_dbt, (1, 2, 3)), ("dbt", "docs", "generate"), ("dbt", "show", "--select", "orders")),
        _nothing,
        {
            "SELECT id, customer FROM shop.appended": [
                [1, "ann"], [2, "bob"], [3, "ann"], [4, "eve"], [5, "eve"], [6, "eve"],
            ],
            "SELECT id, build FROM shop.merged": [[1, 1], [2, 1], [3, 1], [4, 2], [5, 3], [6, 3]],
            "SELECT id FROM shop.overwritten": [[1], [2], [3], [4], [5], [6]],
            "SELECT id FROM shop.daily": [[1], [2], [3], [4], [5], [6]],
            "SELECT customer, orders FROM shop.customers": [["ann", 2], ["bob", 1], ["eve", 3]],
            "SELECT id, count(*) FROM shop.orders_history GROUP BY id": [
                [1, 3], [2, 1], [3, 1], [4, 1], [5, 1], [6, 1],
            ],
        },
    ),
    "sqlmesh": Client(
        ("sqlmesh==0.236.4",),
        (_PLAN, ("sqlmesh", "plan", "dev", *_PLAN[2:]), _PLAN),
        _change_model,
        {
            "SELECT id, amount FROM shop.all_orders": [[1, 11.5], [2, 21.0], [3, 31.25]],
            "SELECT customer, orders FROM shop.customers": [["ann", 2], ["bob", 1]],
            "SELECT id FROM shop.by_time": [[1], [2], [3]],
            "SELECT id FROM shop.by_key": [[1], [2], [3]],
            "SELECT id FROM shop.by_partition": [[1], [2], [3]],
            "SELECT id FROM shop.scd": [[1], [2], [3]],
            "SELECT id FROM shop.bigger": [[2], [3]],
        },
    ),
}  # fmt: skip

_CHECK = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
print(json.dumps([sorted(map(list, spark.sql(q).collect())) for q in json.loads(sys.argv[1])]))
"""


def main() -> int:
    """Run the clients that the command line names; return an exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", help=", ".join(CLIENTS))
    parser.add_argument("--spark", default="4.3", help="the version of PySpark")
    arguments = parser.parse_args()
    unknown = set(arguments.clients) - CLIENTS.keys()
    if unknown:
        parser.error(f"not among the clients: {', '.join(sorted(unknown))}")
    problems = []
    for name in arguments.clients or CLIENTS:
        started = time.monotonic()
        of_client = _run(name, CLIENTS[name], arguments.spark)
        seconds = round(time.monotonic() - started)
        print(f"{name}: {'failed' if of_client else 'passed'}, {seconds} s", flush=True)
        problems += of_client
    print(*problems, sep="\n")
    return 1 if problems else 0


def _run(name: str, client: Client, spark: str) -> list[str]:
    """Run the steps of a client and check its tables; return the problems."""
    packages = "--editable", ".", f"pyspark=={spark}.*", *client.requirements
    binaries = Path(make_environment(f"client-{name}", sys.executable, *packages)).parent
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "project"
        shutil.copytree(PROJECTS / f"{name}_project", project)
        problems = []
        for number, step in enumerate(client.steps):
            client.prepare(project, number)
            if _in_project(project, binaries, *step).returncode:
                problems.append(f"{name}: `sparkdelta run {' '.join(step)}` failed")
        (project / "check.py").write_text(_CHECK, encoding="utf-8")
        queries = json.dumps(list(client.tables))
        checked = _in_project(project, binaries, "check.py", queries, stdout=subprocess.PIPE)
        if checked.returncode:
            return [*problems, f"{name}: the tables cannot be read"]
        results = json.loads(checked.stdout.decode().splitlines()[-1])
    for (query, expected), result in zip(client.tables.items(), results, strict=True):
        if result != expected:
            problems.append(f"{name}: {query} gives {result}, not {expected}")
    return problems


def _in_project(
    project: Path, binaries: Path, *arguments: str, stdout: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
    command = [str(binaries / "sparkdelta"), "run", *arguments]
    return subprocess.run(command, cwd=project, env=environment, stdout=stdout, check=False)


if __name__ == "__main__":
    sys.exit(main())
