"""HDFS in a JVM of its own: Hadoop's mini cluster, of the version whose client Spark brings."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import pyspark

_SPARK_JARS = Path(pyspark.__file__).parent / "jars"
_NEEDED = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "jcl-over-slf4j", "log4j-")
_JUNIT = "5.12.2"  # the mini cluster asks it whether directories are there
_MODULE = """<ivy-module version="2.0">
  <info organisation="sparkdelta" module="mini-hdfs"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.hadoop" name="hadoop-client-minicluster" rev="{hadoop}"
      conf="default" transitive="false"/>
    <dependency org="org.junit.jupiter" name="junit-jupiter-api" rev="{junit}" conf="default"/>
  </dependencies>
</ivy-module>
"""
_MAIN = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"
_SECONDS = 300  # of a busy machine


class MiniHdfsUnavailable(Exception):
    """Its JARs cannot be resolved here."""


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
        own = [path for path in sorted(_SPARK_JARS.glob("*.jar")) if path.name.startswith(_NEEDED)]
        path = [str(scratch / "pages"), *_resolved(scratch), *map(str, own)]
        details = scratch / "details.json"
        with (scratch / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    _java(),
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


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def _resolved(scratch: Path) -> list[str]:
    """The JARs that Spark does not bring, by the Ivy that it brings."""
    [client] = _SPARK_JARS.glob("hadoop-client-api-*.jar")
    [ivy] = _SPARK_JARS.glob("ivy-*.jar")
    hadoop = client.stem.removeprefix("hadoop-client-api-")
    module, found = scratch / "ivy.xml", scratch / "class-path"
    module.write_text(_MODULE.format(hadoop=hadoop, junit=_JUNIT), encoding="utf-8")
    done = subprocess.run(
        [
            *(_java(), "-cp", str(ivy), "org.apache.ivy.Main", "-warn", "-ivy", str(module)),
            *("-confs", "default", "-cachepath", str(found)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not found.exists():
        raise MiniHdfsUnavailable(f"the JARs of Hadoop {hadoop}'s mini cluster cannot be resolved")
    return found.read_text(encoding="utf-8").strip().split(os.pathsep)
