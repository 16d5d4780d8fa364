"""HDFS in a JVM of its own: Hadoop's mini cluster, of the version whose client Spark brings."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from tests.support.jars import (
    HADOOP,
    SPARK_JARS,
    Dependency,
    JarsUnavailable,
    java,
    resolved_jars,
)

_NEEDED = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "jcl-over-slf4j", "log4j-")
_CLUSTER = Dependency("org.apache.hadoop", "hadoop-client-minicluster", HADOOP, is_alone=True)
_JUNIT = Dependency("org.junit.jupiter", "junit-jupiter-api", "5.12.2")
"""The mini cluster asks it whether directories are there."""
_MAIN = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"
_SECONDS = 300  # of a busy machine


class MiniHdfsUnavailable(Exception):
    """The JARs of HDFS cannot be resolved here."""


class MiniHdfs:
    """A name node and a data node on this machine.

    Attributes
    ----------
    uri
        ``hdfs://localhost:PORT``, once it is started.
    """

    def __init__(self) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="mini-hdfs-")
        self._process: subprocess.Popen[bytes] | None = None
        self.uri = ""

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises
        ------
        MiniHdfsUnavailable
            The JARs cannot be resolved.
        """
        scratch = Path(self._scratch.name)
        # Jetty would unpack the pages from the JAR, all of whose megabytes it reads to find them.
        for page in ("hdfs", "datanode", "static"):
            (scratch / "pages" / "webapps" / page / "WEB-INF").mkdir(parents=True)
        own = [path for path in sorted(SPARK_JARS.glob("*.jar")) if path.name.startswith(_NEEDED)]
        try:
            resolved = resolved_jars(scratch, _CLUSTER, _JUNIT)
        except JarsUnavailable as unavailable:
            raise MiniHdfsUnavailable(str(unavailable)) from unavailable
        path = [str(scratch / "pages"), *map(str, [*resolved, *own])]
        details = scratch / "details.json"
        with (scratch / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    java(),
                    *("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                    *("-cp", os.pathsep.join(path), _MAIN),
                    *("-nomr", "-format", "-nnport", "0", "-nnhttpport", "0"),
                    *("-writeDetails", str(details)),
                ],
                cwd=scratch,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.uri = f"hdfs://localhost:{self._port(details)}"

    def stop(self) -> None:
        """End it; what it held is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        self._scratch.cleanup()

    def _port(self, details: Path) -> int:
        assert self._process is not None
        deadline = time.monotonic() + _SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            if details.exists() and (text := details.read_text(encoding="utf-8")).endswith("}"):
                return int(json.loads(text)["namenode_port"])
            time.sleep(0.1)
        last_words = (details.parent / "log").read_text(encoding="utf-8", errors="replace")[-3000:]
        self.stop()
        raise AssertionError(f"the mini cluster does not start:\n{last_words}")
