"""Shared code of all jobs: progress on stderr, one line of JSON on stdout, exit codes.

If spark-submit runs the job on another machine (``--deploy-mode cluster``), pass this file with
``--py-files`` as well.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from typing import Any, TextIO

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkdelta import DeltaError
from sparkdelta.base.spark.library_sessions import SPARK_ERRORS
from sparkdelta.table.rows.job_failures import likely_cause

DONE, NOT_DONE = 0, 1
"""Exit codes: success; failure, or there are findings. 2 means invalid arguments."""

Call = Callable[[SparkSession, Namespace], tuple[Mapping[str, object], int]]


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser for the arguments that all jobs take."""
    lines = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser(description=description, formatter_class=lines)
    made.add_argument("path", help="root of the table, any path that Spark can read")
    return made


def run(
    arguments_parser: argparse.ArgumentParser, arguments: Sequence[str] | None, call: Call
) -> int:
    """Parse, make one library call, print its result; return the exit code."""
    with redirect_stderr(_stderr()):
        options = arguments_parser.parse_args(arguments)
        spark = SparkSession.builder.appName(f"sparkdelta {options.path}").getOrCreate()
        logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
        logger = logging.getLogger("sparkdelta")
        logger.setLevel(logging.INFO)
        logger.info("%s of %s", arguments_parser.prog, options.path)
        try:
            result, code = call(spark, options)
        except DeltaError as error:
            print(error, file=sys.stderr)
            result, code = {"error": error.error_class, "message": error.message}, NOT_DONE
        except Exception as error:  # whoever reads the output gets a line of JSON all the same
            logger.exception("%s failed", arguments_parser.prog)
            message = str(error)
            if isinstance(error, SPARK_ERRORS):
                message, _ = likely_cause(message)  # without Java's stack trace
            result, code = {"error": type(error).__name__, "message": message}, NOT_DONE
    print(json.dumps({"path": options.path, **result}, default=str))
    return code


def _stderr() -> TextIO | io.TextIOBase:
    """Return standard error: the JVM's under spark-submit, which redirects Python's to stdout."""
    if "PYSPARK_GATEWAY_PORT" in os.environ and os.path.sameopenfile(1, 2):
        return _JvmStderr()
    return sys.stderr


class _JvmStderr(io.TextIOBase):
    def __init__(self) -> None:
        SparkContext._ensure_initialized()  # the connection to the JVM alone
        self._stream: Any = SparkContext._jvm.System.err  # type: ignore[union-attr]

    def write(self, text: str) -> int:
        self._stream.print(text)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()
