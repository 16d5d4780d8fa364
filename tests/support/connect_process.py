"""A Spark Connect server and its clients, each in a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.cluster import ROOT, SPARK_HOME

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_SECONDS = 300  # of a busy machine

_CLIENT = """
import importlib, json, sys
from pyspark.sql import SparkSession
remote, module, name, arguments = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
print(json.dumps(getattr(importlib.import_module(module), name)(spark, *json.loads(arguments))))
"""


class ConnectServer:
    """A server whose Python fails to import this library and sqlglot."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        for package in ("sparkdelta", "sqlglot"):
            (scratch / "packages" / package).mkdir(parents=True)
            text = 'raise ImportError("it is not installed")\n'
            (scratch / "packages" / package / "__init__.py").write_text(text)
        self.start()

    def start(self) -> None:
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings = {
            "spark.connect.grpc.binding.port": str(port),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(self.scratch / "warehouse"),
        }
        pairs = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
        log = self.scratch / "server.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [
                    str(SPARK_HOME / "bin" / "spark-submit"),
                    *("--master", "local[2]", "--driver-memory", "1g", *pairs),
                    *("--class", _CLASS, "spark-internal"),
                ],
                env={
                    **os.environ,
                    "SPARK_HOME": str(SPARK_HOME),
                    "PYTHONPATH": str(self.scratch / "packages"),
                    "PYSPARK_PYTHON": sys.executable,
                    "PYSPARK_DRIVER_PYTHON": sys.executable,
                },
                cwd=self.scratch,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.remote = f"sc://127.0.0.1:{port}"
        deadline = time.monotonic() + _SECONDS
        while not _accepts(port):
            assert self._process.poll() is None, log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.2)

    def kill(self) -> None:
        """Kill the server's JVM."""
        self._process.kill()
        self._process.wait()

    def client(self, function: Callable[..., Any], *arguments: Any) -> subprocess.Popen[str]:
        """Start a client that calls a function with its session and arguments."""
        texts = self.remote, function.__module__, function.__name__, json.dumps(arguments)
        return subprocess.Popen(
            [sys.executable, "-c", _CLIENT, *texts],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns in a client, as JSON has it."""
        with self.client(function, *arguments) as client:
            output, errors = client.communicate(timeout=120)
        assert client.returncode == 0, errors[-5000:]
        return json.loads(output.splitlines()[-1])


def _accepts(port: int) -> bool:
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
