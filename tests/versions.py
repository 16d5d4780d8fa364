"""The versions of Spark and Python under test, and a run of the core tests on each.

``python3 tests/versions.py 4.0.0 4.3`` runs the core on these versions of Spark, by default on all;
each has a virtual environment of its own. With ``--connect``, it runs all tests on Spark Connect.
Needs nothing but Python.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Versions:
    """A version of Spark, and the version of Python that it is tested with.

    Attributes
    ----------
    spark
        A version such as ``4.0.0``, or of two numbers for the newest of its patches.
    """

    spark: str
    python: str

    @property
    def requirement(self) -> str:
        """The requirement by which pip installs this version of PySpark."""
        is_patch = self.spark.count(".") == 2
        return f"pyspark[connect]=={self.spark}" + ("" if is_patch else ".*")


PINNED = "4.2.0"
"""The version of Spark that the JARs of delta-spark, our oracle, were built for."""

TESTED = (
    Versions("4.0.0", "3.10"),
    Versions("4.0", "3.11"),
    Versions("4.1", "3.12"),
    Versions(PINNED, "3.11"),
    Versions("4.2", "3.12"),
    Versions("4.3", "3.13"),
)

CORE = (
    "tests/golden/test_golden_tables.py",  # reads
    "tests/table/scan/test_deferred_scan.py",
    "tests/table/scan/test_sent_scan.py",  # in methods of PySpark's client
    "tests/operations/write/test_write_options.py",
    "tests/operations/write/test_create_table.py",
    "tests/operations/write/test_delete.py",
    "tests/operations/write/test_update.py",
    "tests/operations/merge/test_merge.py",
    "tests/operations/stream/test_read_stream.py",
    "tests/operations/stream/test_write_stream.py",
    "tests/sql/test_statement_text.py",
    "tests/sql/test_odd_names.py",
    "tests/sql/test_sessions.py",
    "tests/base/jvm/test_jvm_callbacks.py",
    "tests/base/jvm/test_spark_internals.py",
)


def main() -> int:
    """Run the core tests on the versions that the command line names; return an exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spark", nargs="*", help=", ".join(each.spark for each in TESTED))
    parser.add_argument("--workers", default="2", help="processes that run tests")
    newest = "only print the path of the newest Python under test, or of this one"
    parser.add_argument("--newest-python", action="store_true", help=newest)
    connect = "run all tests on Spark Connect, by default with the oldest and the newest version"
    parser.add_argument("--connect", action="store_true", help=connect)
    arguments = parser.parse_args()
    if arguments.newest_python:
        print(_interpreter(TESTED[-1].python))
        return 0
    unknown = set(arguments.spark) - {each.spark for each in TESTED}
    if unknown:
        parser.error(f"not among the tested versions: {', '.join(sorted(unknown))}")
    ends = [TESTED[0].spark, TESTED[-1].spark] if arguments.connect else []
    chosen = arguments.spark or ends
    failed = []
    for versions in TESTED:
        if not chosen or versions.spark in chosen:
            started = time.monotonic()
            code = _run(versions, arguments.workers, on_connect=arguments.connect)
            seconds = round(time.monotonic() - started)
            outcome = f"exit code {code}" if code else "passed"
            print(f"Spark {versions.spark}, Python {versions.python}: {outcome}, {seconds} s")
            failed += [versions.spark] if code else []
    return 1 if failed else 0


def _run(versions: Versions, workers: str, *, on_connect: bool) -> int:
    python = _environment(versions)
    options = ["-n", workers, "--dist", "worksteal", "-q"]
    if on_connect:
        markers, tests = "connect", ("tests",)
    elif versions.spark == PINNED:
        markers, tests = "not connect and not full", CORE
    else:
        markers, tests = "not more_connect and (connect or not full)", CORE
    options += ["-m", f"not slow and not oracle and {markers}"]
    command = [python, "-m", "pytest", *options, *tests]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def _environment(versions: Versions) -> str:
    """Make the virtual environment of a version if it is not there; return its Python."""
    name, interpreter = f"spark-{versions.spark}", _interpreter(versions.python)
    return make_environment(name, interpreter, "--editable", ".[tests]", versions.requirement)


def make_environment(name: str, interpreter: str, *packages: str) -> str:
    """Make a virtual environment with packages if it is not there; return its Python."""
    directory = ROOT / f".venv-{name}"
    python, stamp = directory / "bin" / "python", directory / ".installed"
    requirements = ROOT / "pyproject.toml"
    if stamp.exists() and stamp.stat().st_mtime > requirements.stat().st_mtime:
        return str(python)
    shutil.rmtree(directory, ignore_errors=True)
    subprocess.run([interpreter, "-m", "venv", directory], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--no-compile", *packages]
    subprocess.run(install, cwd=ROOT, check=True)
    stamp.touch()
    return str(python)


def _interpreter(version: str) -> str:
    """Return a Python of a version; where there is none, say so and return this Python."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}")]
    candidates += sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))
    for candidate in filter(None, candidates):
        works = subprocess.run([candidate, "-c", ""], capture_output=True, check=False)
        if works.returncode == 0:
            return candidate
    this = ".".join(map(str, sys.version_info[:2]))
    print(f"LEFT OUT: no Python {version} here, so Python {this} is used", file=sys.stderr)
    return sys.executable


if __name__ == "__main__":
    sys.exit(main())
