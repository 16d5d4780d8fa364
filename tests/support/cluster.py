"""A standalone cluster of pyspark's own distribution: a master and two workers, each a process.

Its Python sees the installed dependencies, but neither this repository nor an installed sparkdelta:
what a job needs must be shipped to it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

ROOT = Path(__file__).resolve().parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
WORKERS = 2
_SECONDS = 600  # of a busy machine
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # JVMs, which compile more than they run
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Registering worker")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A standalone cluster, to which jobs are submitted.

    Attributes
    ----------
    python
        A program that is Python without this package.
    package
        The package as a zip file, for ``--py-files``.
    """

    master: str
    python: Path
    package: Path
    scratch: Path

    def submit(
        self,
        job: str,
        *arguments: str,
        py_files: Sequence[Path] = (),
        jars: Sequence[Path] = (),
        more_settings: Mapping[str, str] | None = None,
        seconds: int = _SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """spark-submit a file, by default one of `jobs/`, from a directory that is not this
        repository.
        """
        shipped = ["--py-files", ",".join(map(str, py_files))] if py_files else []
        shipped += ["--jars", ",".join(map(str, jars))] if jars else []
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": SHORT_LIVED,
            "spark.executor.extraJavaOptions": SHORT_LIVED,
            "spark.executor.memory": "512m",
            "spark.cores.max": str(WORKERS),
            "spark.sql.shuffle.partitions": "2",
            **(more_settings or {}),
        }
        conf = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
        return subprocess.run(
            [
                str(SPARK_HOME / "bin" / "spark-submit"),
                *("--master", self.master, "--driver-memory", "512m"),
                *conf,
                *shipped,
                str(ROOT / "jobs" / job),
                *arguments,
            ],
            cwd=self.scratch,
            env=spark_environment(self.python),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )


@contextmanager
def standalone_cluster(scratch: Path) -> Iterator[Cluster]:
    """A cluster on this machine, which is gone afterwards."""
    python = bare_python(scratch)
    package = Path(shutil.make_archive(str(scratch / "sparkdelta"), "zip", ROOT, "sparkdelta"))
    with ExitStack() as stack:
        local = ("--host", "127.0.0.1", "--webui-port", "0")
        master_log = scratch / "master.log"
        _start(stack, python, master_log, "master.Master", *local, "--port", "0")
        (url,) = _wait(master_log, _MASTER, 1)
        for number in range(WORKERS):
            directory = str(scratch / f"w{number}")
            resources = ("--cores", "1", "--memory", "1g", "--work-dir", directory)
            _start(
                stack, python, scratch / f"worker{number}.log", "worker.Worker",
                *local, *resources, url,
            )  # fmt: skip
        _wait(master_log, _REGISTERED, WORKERS)
        yield Cluster(url, python, package, scratch)


def bare_python(scratch: Path) -> Path:
    """Python without this package and sqlglot, which a server need not have.

    It reads no .pth files, by which packages are installed for development.
    """
    packages = scratch / "packages"
    packages.mkdir()
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if (
            not entry.name.startswith(("sparkdelta", "__editable__", "sqlglot"))
            and entry.suffix != ".pth"
        ):
            (packages / entry.name).symlink_to(entry)
    program = scratch / "python"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="{packages}${{PYTHONPATH:+:$PYTHONPATH}}" '
        f'exec "{sys.executable}" -S "$@"\n'
    )
    program.chmod(0o755)
    return program


def spark_environment(python: Path) -> dict[str, str]:
    ours = ("SPARK_", "PYSPARK_", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {
        **kept,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
    }


def _start(stack: ExitStack, python: Path, log: Path, role: str, *arguments: str) -> None:
    output = stack.enter_context(log.open("w"))
    process = subprocess.Popen(
        [
            str(SPARK_HOME / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{role}",
            *arguments,
        ],
        env={
            **spark_environment(python),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
        },
        stdout=output,
        stderr=subprocess.STDOUT,
    )
    stack.callback(_stop, process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(log: Path, pattern: re.Pattern[str], times: int) -> list[str]:
    """Return the matches of a pattern in a log, once there are enough of them."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        found = pattern.findall(log.read_text(errors="replace"))
        if len(found) >= times:
            return list(found)
        time.sleep(0.2)
    raise TimeoutError(log.read_text(errors="replace")[-3000:])
