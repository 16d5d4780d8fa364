"""A Spark Connect server in a process of its own, whose Python does not know this package."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from tests.support.cluster import SPARK_HOME, bare_python, spark_environment

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_SECONDS = 300  # of a busy machine


@contextmanager
def connect_server(
    scratch: Path,
    settings: Mapping[str, str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    master: str = "local[2]",
) -> Iterator[str]:
    """Start a server and yield its address for `SparkSession.builder.remote`."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    conf = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **(settings or {}),
    }
    pairs = [part for pair in conf.items() for part in ("--conf", "=".join(pair))]
    log = scratch / "server.log"
    with open(log, "wb") as output:
        server = subprocess.Popen(
            [
                str(SPARK_HOME / "bin" / "spark-submit"),
                *("--master", master, "--driver-memory", "1g", *pairs),
                *("--class", _CLASS, "spark-internal"),
            ],
            env={
                **spark_environment(bare_python(scratch)),
                "SPARK_CONF_DIR": os.environ["SPARK_CONF_DIR"],
                **(environment or {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=scratch,
        )
    try:
        deadline = time.monotonic() + _SECONDS
        while not _accepts(port):
            assert server.poll() is None, log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _accepts(port: int) -> bool:
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
