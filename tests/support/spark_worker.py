"""A Spark session in a process and a JVM of its own, which runs functions of the test suite.

Arguments and results travel as JSON. Run as a module (``python -m tests.support.spark_worker``)
this file is that process.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import pyspark

REPOSITORY_ROOT = Path(__file__).resolve().parents[2]


class SparkWorkerError(Exception):
    """A function that ran inside the worker raised; the text is its traceback."""


class SparkWorker:
    """A worker process.

    Use it as a context manager, or call :meth:`start` and :meth:`stop`.

    Parameters
    ----------
    session
        ``module:function`` that makes the session from a scratch directory and `options`.
    scratch
        A directory for the session's warehouse and the worker's log; a temporary one by default.
    options
        More arguments of that function, as JSON holds them.
    """

    def __init__(self, session: str, scratch: Path | None = None, **options: Any) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="spark-worker-")
        self._scratch = scratch or Path(self._temporary.name)
        self._arguments = [session, str(self._scratch), json.dumps(options)]
        self._log = self._scratch / "worker.log"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the worker and wait until its session is up."""
        environment = {
            name: value
            for name, value in os.environ.items()
            # A worker must be classic Spark with its own settings, whatever the main session is.
            if not name.startswith(("SPARK_REMOTE", "SPARK_CONNECT", "PYSPARK_SUBMIT_ARGS"))
        }
        environment["PYSPARK_PYTHON"] = sys.executable
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.spark_worker", *self._arguments],
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
        except SparkWorkerError:
            self.stop()
            raise

    def run(self, function: str, **arguments: Any) -> Any:
        """Call ``module:function`` with the worker's session and JSON arguments.

        Returns
        -------
        Any
            The function's result, as JSON holds it.

        Raises
        ------
        SparkWorkerError
            The function raised, or the worker died.
        """
        if self._process is None or self._process.stdin is None:
            raise SparkWorkerError("the worker has not been started")
        request = json.dumps({"function": function, "arguments": arguments})
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise SparkWorkerError(self._last_words()) from error
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
        self._temporary.cleanup()

    def kill(self) -> None:
        """End the worker at once, as a machine that fails would; its JVM follows."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> SparkWorker:
        self.start()
        return self

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
            raise SparkWorkerError(self._last_words())
        reply = json.loads(line)
        if "error" in reply:
            raise SparkWorkerError(reply["error"])
        return reply["result"]

    def _last_words(self) -> str:
        text = self._log.read_text(encoding="utf-8", errors="replace")
        return "the worker died; the end of its log:\n" + text[-5000:]


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return function


def _serve(make_session: str, scratch: Path, options: dict[str, Any], replies: IO[str]) -> None:
    def reply(**message: object) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    session = _function(make_session)(scratch, **options)
    reply(result=pyspark.__version__)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            result = _function(request["function"])(session, **request["arguments"])
            reply(result=result)
        except Exception:  # noqa: BLE001  (the other process decides what it means)
            reply(error=traceback.format_exc())
    session.stop()


def main() -> None:
    """Serve requests from standard input until it closes."""
    # Whatever the JVM prints goes to the log: standard output belongs to the replies.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    session, scratch, options = sys.argv[1:]
    _serve(session, Path(scratch), json.loads(options), replies)


if __name__ == "__main__":
    main()
