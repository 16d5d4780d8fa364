"""Shared code of all jobs: progress on stderr, one line of JSON on stdout, exit codes.

If spark-submit runs the job on another machine (``--deploy-mode cluster``), pass this file with
``--py-files`` as well.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from contextlib import redirect_stderr
from typing import Any, TextIO

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkdelta import DeltaError
from sparkdelta.__main__ import FAILED, add_options, exit_code, fields_of, json_text
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.spark.spark_errors import SPARK_ERRORS
from sparkdelta.table.rows.job_failures import likely_cause


def run(command: str, description: str | None, arguments: Sequence[str] | None = None) -> int:
    """Run a command of the command line, print its result, and return the exit code."""
    with redirect_stderr(_stderr()):
        parser = ArgumentParser(
            description=description, formatter_class=RawDescriptionHelpFormatter
        )
        add_options(parser, command)
        options = vars(parser.parse_args(arguments))
        call, path = options.pop("call"), options.pop("path")
        spark = SparkSession.builder.appName(f"sparkdelta {path}").getOrCreate()
        logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
        logger = logging.getLogger("sparkdelta")
        logger.setLevel(logging.INFO)
        logger.info("%s of %s", parser.prog, path)
        try:
            outcome = call(spark, path, **options)
            assert not isinstance(outcome, list), "a job prints one line"
            if isinstance(outcome, Result) and type(outcome).__str__ is not object.__str__:
                print(outcome, file=sys.stderr)  # a report
            result, code = fields_of(outcome), exit_code(outcome)
        except DeltaError as error:
            print(error, file=sys.stderr)
            result, code = {"error": error.error_class, "message": error.message}, FAILED
        except Exception as error:  # whoever reads the output gets a line of JSON all the same
            logger.exception("%s failed", parser.prog)
            message = str(error)
            if isinstance(error, SPARK_ERRORS):
                message, _ = likely_cause(message)  # without Java's stack trace
            result, code = {"error": type(error).__name__, "message": message}, FAILED
    print(json_text({"path": path, **result}))
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
