"""What all jobs have in common: progress on stderr, one line of JSON on stdout, exit codes.

It lies beside the jobs: where spark-submit sends a job to another machine (``--deploy-mode
cluster``), name it in ``--py-files`` too.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

from sparkdelta import DeltaError

DONE, NOT_DONE = 0, 1
"""Exit codes: as asked; not so, or something was found. 2 is for wrong arguments."""

Call = Callable[[SparkSession, Namespace], tuple[Mapping[str, object], int]]


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser of what every job takes."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("path", help="the table's root, as any path that Spark reads")
    return made


def run(
    arguments_parser: argparse.ArgumentParser, arguments: Sequence[str] | None, call: Call
) -> int:
    """Parse, make one library call, print its result; return the exit code."""
    options = arguments_parser.parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
    logger = logging.getLogger("sparkdelta")
    logger.setLevel(logging.INFO)
    spark = SparkSession.builder.appName(f"sparkdelta {options.path}").getOrCreate()
    logger.info("%s of %s", arguments_parser.prog, options.path)
    try:
        result, code = call(spark, options)
    except DeltaError as error:
        print(error, file=sys.stderr)
        result, code = {"error": error.error_class}, NOT_DONE
    print(json.dumps({"path": options.path, **result}, default=str))
    return code
