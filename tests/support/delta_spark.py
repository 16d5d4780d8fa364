"""delta-spark in a process and a JVM of its own, as an independent writer and reader.

sparkdelta's tests run in a session without delta-spark, so that nothing of delta-spark can help
sparkdelta to pass. A test that needs the other engine asks :class:`DeltaSpark` to run a function
of the test suite inside a worker process; arguments and results travel as JSON, rows as Parquet
files.

Run as a module (``python -m tests.support.delta_spark``) this file is that worker.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import pyspark
from pyspark.sql import SparkSession

VERSION = "4.4.0"
PACKAGE = f"io.delta:delta-spark_4.2_2.13:{VERSION}"
PYSPARK_SERIES = "4.2."
REPOSITORY_ROOT = Path(__file__).resolve().parents[2]

_UNRESOLVED = ("unresolved dependency", "Server access error", "download failed")


class DeltaSparkUnavailable(Exception):
    """delta-spark cannot be started here: another PySpark, or its JARs cannot be resolved."""


class DeltaSparkError(Exception):
    """A function that ran inside the worker raised; the text is its traceback."""


class DeltaSpark:
    """A worker process with a delta-spark session.

    Use it as a context manager, or call :meth:`start` and :meth:`stop`.

    Parameters
    ----------
    warehouse
        A scratch directory for the session's warehouse and Derby files; a temporary one by default.
    """

    def __init__(self, warehouse: Path | None = None) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="delta-spark-")
        self._warehouse = warehouse or Path(self._scratch.name)
        self._log = self._warehouse / "worker.log"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> DeltaSpark:
        """Start the worker and wait until its session is up.

        Raises
        ------
        DeltaSparkUnavailable
            The installed PySpark is not the one delta-spark needs, or the JARs cannot be resolved.
        """
        if not pyspark.__version__.startswith(PYSPARK_SERIES):
            raise DeltaSparkUnavailable(
                f"{PACKAGE} needs pyspark {PYSPARK_SERIES}x, found {pyspark.__version__}"
            )
        environment = {
            name: value
            for name, value in os.environ.items()
            # A worker must be classic Spark with its own settings, whatever the main session is.
            if not name.startswith(("SPARK_REMOTE", "SPARK_CONNECT", "PYSPARK_SUBMIT_ARGS"))
        }
        environment["PYSPARK_PYTHON"] = sys.executable
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.delta_spark", str(self._warehouse)],
                cwd=REPOSITORY_ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
            )
        try:
            self._receive()
        except DeltaSparkError as error:
            self.stop()
            if any(sign in str(error) for sign in _UNRESOLVED):
                raise DeltaSparkUnavailable(f"the JARs of {PACKAGE} cannot be resolved") from error
            raise
        return self

    def run(self, function: str, **arguments: Any) -> Any:
        """Call ``module:function`` with the worker's session and JSON arguments.

        Returns
        -------
        Any
            The function's result, as JSON holds it.

        Raises
        ------
        DeltaSparkError
            The function raised, or the worker died.
        """
        if self._process is None or self._process.stdin is None:
            raise DeltaSparkError("the worker has not been started")
        request = json.dumps({"function": function, "arguments": arguments})
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise DeltaSparkError(self._last_words()) from error
        return self._receive()

    def stop(self) -> None:
        """Stop the worker and its JVM; does nothing when it does not run."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._scratch.cleanup()

    def __enter__(self) -> DeltaSpark:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _receive(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise DeltaSparkError(self._last_words())
        reply = json.loads(line)
        if "error" in reply:
            raise DeltaSparkError(reply["error"])
        return reply["result"]

    def _last_words(self) -> str:
        text = self._log.read_text(encoding="utf-8", errors="replace")
        return "the delta-spark worker died; the end of its log:\n" + text[-5000:]


def delta_session(warehouse: Path) -> SparkSession:
    """Build the one delta-spark session of this process: UTC, two cores, few partitions, no
    console.
    """
    settings = {
        "spark.jars.packages": PACKAGE,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(warehouse / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.leafNodeDefaultParallelism": "1",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.driver.memory": "1g",
        # Files with the old hybrid calendar depend on the JVM's own time zone.
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]").appName("delta-spark oracle")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _serve(warehouse: Path, replies: IO[str]) -> None:
    def reply(**message: object) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    session = delta_session(warehouse)
    reply(result=pyspark.__version__)
    for line in sys.stdin:
        request = json.loads(line)
        module, _, name = request["function"].partition(":")
        try:
            function = getattr(importlib.import_module(module), name)
            reply(result=function(session, **request["arguments"]))
        except Exception:  # noqa: BLE001  (the other process decides what it means)
            reply(error=traceback.format_exc())
    session.stop()


def main() -> None:
    """Serve requests from standard input until it closes."""
    # Whatever the JVM prints goes to the log: standard output belongs to the replies.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _serve(Path(sys.argv[1]), replies)


if __name__ == "__main__":
    main()
