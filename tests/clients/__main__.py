"""Programs that people run on delta-spark, run on this package.

``python3 -m tests.clients dbt pandera`` runs two of them; by default all run. Each has a virtual
environment of its own, and runs as a user would run it, by ``sparkdelta run``. dbt and SQLMesh
build projects of ours with changing data. For the others, pytest runs tests: ours, or those of the
program in a checkout that a variable names. ``fast`` runs some of ours in one environment and one
session. With ``--connect``, tests run as clients of a Spark Connect server. Needs nothing but
Python.
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
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.clients.suites import DBT, FAST, PEER, SUITES, Suite
from tests.versions import ROOT, make_environment

PROJECTS = Path(__file__).resolve().parent

# The tables are small, and each JVM lives shortly.
_SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -Dderby.system.durability=test",
    "spark.databricks.delta.snapshotPartitions": "2",  # of delta-spark
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


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


def _keep_state(project: Path, step: int) -> None:
    """Keep what dbt wrote about its last build, for `dbt clone`."""
    if step == 3:
        shutil.copytree(project / "target", project / "state")


def _change_model(project: Path, step: int) -> None:
    """Change a model before the second plan."""
    if step == 1:
        model = project / "models" / "all_orders.sql"
        text = model.read_text(encoding="utf-8")
        model.write_text(text.replace("amount FROM", "amount + 1 AS amount FROM"), encoding="utf-8")


_PLAN = ("sqlmesh", "plan", "--auto-apply", "--no-prompts")

CLIENTS = {
    "dbt": Client(
        DBT,
        (
            *map(_dbt, (1, 2, 3)),
            ("dbt", "clone", "--state", "state", "--target", "copies"),
            ("dbt", "docs", "generate"),
            ("dbt", "show", "--select", "orders"),
        ),
        _keep_state,
        {
            "SELECT id, customer FROM shop.appended": [
                [1, "ann"], [2, "bob"], [3, "ann"], [4, "eve"], [5, "eve"], [6, "eve"],
            ],
            "SELECT id, build FROM shop.merged": [[1, 1], [2, 1], [3, 1], [4, 2], [5, 3], [6, 3]],
            "SELECT id FROM shop.overwritten": [[1], [2], [3], [4], [5], [6]],
            "SELECT id FROM shop.daily": [[1], [2], [3], [4], [5], [6]],
            "SELECT customer, orders FROM shop.customers": [["ann", 2], ["bob", 1], ["eve", 3]],
            "SELECT id FROM shop_copies.orders": [[1], [2], [3], [4], [5], [6]],
            "SELECT customer, orders FROM shop_copies.customers": [
                ["ann", 2], ["bob", 1], ["eve", 3],
            ],
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

_SERVER = """
import sys, tempfile
from pathlib import Path
from tests.support.connect_server import connect_server
with tempfile.TemporaryDirectory() as scratch, connect_server(Path(scratch)) as remote:
    print(remote, flush=True)
    sys.stdin.read()
"""

_CHECK = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
print(json.dumps([sorted(map(list, spark.sql(q).collect())) for q in json.loads(sys.argv[1])]))
"""


def main() -> int:
    """Run the clients that the command line names; return an exit code."""
    names = [*CLIENTS, *SUITES]
    suites = {**SUITES, "fast": FAST}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", help=", ".join([*names, "fast"]))
    parser.add_argument("--spark", default="4.3", help="the version of PySpark")
    peer = "run the suites on delta-spark instead, whose JARs Spark downloads"
    parser.add_argument("--delta-spark", action="store_true", help=peer)
    connect = "run the suites on Spark Connect that are known to run there"
    parser.add_argument("--connect", action="store_true", help=connect)
    arguments = parser.parse_args()
    unknown = set(arguments.clients) - {*CLIENTS, *suites}
    if unknown:
        parser.error(f"not among the clients: {', '.join(sorted(unknown))}")
    problems = []
    for name in arguments.clients or names:
        suite = suites.get(name)
        if suite is None and (arguments.delta_spark or arguments.connect):
            continue
        if arguments.connect and suite is not None and suite.on_connect is None:
            continue
        if suite is not None and suite.checkout and suite.checkout not in os.environ:
            print(f"{name}: skipped, {suite.checkout} names no checkout", flush=True)
            continue
        started = time.monotonic()
        if suite is None:
            of_client = _run(name, CLIENTS[name], arguments.spark)
        elif arguments.delta_spark:
            of_client = _run_suite_on_delta_spark(name, suite)
        else:
            run = _run_suite_on_connect if arguments.connect else _run_suite
            of_client = run(name, suite, arguments.spark)
        seconds = round(time.monotonic() - started)
        print(f"{name}: {'failed' if of_client else 'passed'}, {seconds} s", flush=True)
        problems += of_client
    print(*problems, sep="\n")
    return 1 if problems else 0


def _run_suite(name: str, suite: Suite, spark: str) -> list[str]:
    """Run the tests of a suite; return where they pass or fail otherwise than it says."""
    binaries = _suite_environment(name, suite, spark)
    failed, passed = _test_results(suite, binaries, "sparkdelta", "run", "pytest")
    return _differences(name, failed, passed, suite.failures, suite.passed)


def _run_suite_on_connect(name: str, suite: Suite, spark: str) -> list[str]:
    """Run the tests of a suite on Spark Connect, as `_run_suite` does."""
    binaries = _suite_environment(f"{name}-connect", suite, spark, ".[connect]")
    command = [str(binaries / "python"), "-c", _SERVER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        remote = {"SPARK_REMOTE": server.stdout.readline().strip()}
        suite = replace(suite, variables={**suite.variables, **remote})
        failed, passed = _test_results(suite, binaries, "sparkdelta", "run", "pytest")
        server.communicate()  # ends it
    failures = {**suite.failures, **suite.connect_failures}
    return _differences(name, failed, passed, failures, suite.on_connect)


def _suite_environment(name: str, suite: Suite, spark: str, package: str = ".") -> Path:
    """Make the environment of a suite; return the directory of its programs."""
    packages = "--editable", package, f"pyspark=={suite.spark or spark}.*", *suite.requirements
    binaries = Path(make_environment(f"client-{name}", sys.executable, *packages)).parent
    if suite.distribution:
        _declare(binaries, *suite.distribution)
    return binaries


def _differences(
    name: str, failed: set[str], passed: int, failures: Mapping[str, str], expected: int | None
) -> list[str]:
    """Return where tests passed or failed otherwise than expected."""
    problems = [f"{name}: {test} fails" for test in sorted(failed - failures.keys())]
    problems += [f"{name}: {test} passes now" for test in sorted(failures.keys() - failed)]
    if passed != expected:
        problems.append(f"{name}: {passed} tests pass, not {expected}")
    return problems


def _run_suite_on_delta_spark(name: str, suite: Suite) -> list[str]:
    """Run the tests of a suite on delta-spark; return where they do not pass as it says."""
    packages = *PEER.requirements, *suite.requirements
    binaries = Path(make_environment(f"peer-{name}", sys.executable, *packages)).parent
    failed, passed = _test_results(suite, binaries, "pytest", settings=PEER.settings)
    print(*(f"{name}: {test} fails with delta-spark" for test in sorted(failed)), sep="\n")
    if passed == suite.with_delta_spark:
        return []
    return [f"{name}: {passed} tests pass with delta-spark, not {suite.with_delta_spark}"]


def _declare(binaries: Path, package: str, version: str) -> None:
    """Let programs that ask pip's metadata find a version of a package, without its code."""
    metadata = next(binaries.parent.glob("lib/python*/site-packages"))
    metadata /= f"{package.replace('-', '_')}-{version}.dist-info/METADATA"
    metadata.parent.mkdir(exist_ok=True)
    text = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    metadata.write_text(text, encoding="utf-8")


def _test_results(
    suite: Suite, binaries: Path, *pytest: str, settings: Mapping[str, str] | None = None
) -> tuple[set[str], int]:
    """Run the tests of a suite; return the names of failed tests and the number of passed ones."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "project"
        ignored = shutil.ignore_patterns(".git", ".venv*")
        checkout = os.environ[suite.checkout] if suite.checkout else PROJECTS
        shutil.copytree(checkout, directory, symlinks=True, ignore=ignored)
        if suite.plugin:
            shutil.copy(PROJECTS / f"{suite.plugin}.py", directory)
        report = Path(scratch) / "report.xml"
        options = ["-o", "addopts=", "-q", "--tb=short", f"--junitxml={report}"]
        variables = {**suite.variables, "PYTHONPATH": str(directory)}
        command = [*pytest, *options, *suite.tests]
        _execute(directory, binaries, command, variables, {**suite.settings, **(settings or {})})
        if not report.exists():
            return {"pytest itself"}, 0
        cases = list(ET.parse(report).getroot().iter("testcase"))
    outcomes = {case: {child.tag for child in case} for case in cases}
    failed = {case.attrib["name"] for case, tags in outcomes.items() if tags & {"failure", "error"}}
    return failed, sum(not tags & {"failure", "error", "skipped"} for tags in outcomes.values())


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
    return _execute(project, binaries, ["sparkdelta", "run", *arguments], {}, {}, stdout)


def _execute(
    directory: Path,
    binaries: Path,
    command: list[str],
    variables: Mapping[str, str],
    settings: Mapping[str, str],
    stdout: int | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program of an environment, with settings of Spark."""
    configuration = directory.parent / "conf"
    configuration.mkdir(exist_ok=True)
    lines = [f"{setting} {value}\n" for setting, value in {**_SETTINGS, **settings}.items()]
    (configuration / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "SPARK_CONF_DIR": str(configuration),
        **variables,
    }
    command = [str(binaries / command[0]), *command[1:]]
    return subprocess.run(command, cwd=directory, env=environment, stdout=stdout, check=False)


if __name__ == "__main__":
    sys.exit(main())
