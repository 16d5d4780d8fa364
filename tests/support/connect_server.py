"""A Spark Connect server and its clients, each in a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.support.cluster import ROOT, SPARK_HOME, bare_python, spark_environment

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
    """A server whose Python knows neither this package nor sqlglot.

    Attributes
    ----------
    remote
        Its address for `SparkSession.builder.remote`.
    """

    def __init__(
        self,
        scratch: Path,
        settings: Mapping[str, str] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        master: str = "local[2]",
        memory: str = "1g",
    ) -> None:
        python = str(bare_python(scratch))
        self._scratch, self._master, self._memory = scratch, master, memory
        self._environment = {
            **spark_environment(Path(python)),
            "PYSPARK_DRIVER_PYTHON": python,
            "SPARK_CONF_DIR": str(Path(__file__).parent / "spark_conf"),
            **(environment or {}),
        }
        self._settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            **(settings or {}),
        }
        self.start()

    def start(self) -> None:
        """Start the server, perhaps again, on a free port."""
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        conf = {"spark.connect.grpc.binding.port": str(port), **self._settings}
        pairs = [part for pair in conf.items() for part in ("--conf", "=".join(pair))]
        log = self._scratch / "server.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [
                    str(SPARK_HOME / "bin" / "spark-submit"),
                    *("--master", self._master, "--driver-memory", self._memory, *pairs),
                    *("--class", _CLASS, "spark-internal"),
                ],
                env=self._environment,
                cwd=self._scratch,
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
            try:
                output, errors = client.communicate(timeout=_SECONDS)
            finally:
                client.kill()  # one that hangs
        assert client.returncode == 0, errors[-5000:]
        return json.loads(output.splitlines()[-1])


@contextmanager
def connect_server(
    scratch: Path, settings: Mapping[str, str] | None = None, **options: Any
) -> Iterator[str]:
    """Start a server, with the options of `ConnectServer`, and yield its address."""
    server = ConnectServer(scratch, settings, **options)
    try:
        yield server.remote
    finally:
        server.kill()


def _accepts(port: int) -> bool:
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
