"""Clone a Delta table: spark-submit jobs/clone.py /path/to/table /path/to/clone --deep

Prints one line of JSON to standard output: the versions of both tables, and the files and bytes
that were copied. Exit codes: 0 success; 1 the table could not be cloned; 2 invalid arguments.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence

import job
from pyspark.sql import SparkSession

import sparkdelta


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return its exit code."""
    parser = job.parser(__doc__)
    parser.add_argument("target", help="root of the clone")
    parser.add_argument("--deep", action="store_true", help="copy the files")
    parser.add_argument("--replace", action="store_true", help="of a table that is there already")
    parser.add_argument("--version", type=int, help="of the table; the latest by default")
    parser.add_argument("--timestamp", help="the version that was the latest at this time")
    return job.run(parser, arguments, _clone)


def _clone(spark: SparkSession, options: Namespace) -> tuple[Mapping[str, object], int]:
    result = sparkdelta.clone(
        spark,
        options.path,
        options.target,
        deep=options.deep,
        replace=options.replace,
        version=options.version,
        timestamp=options.timestamp,
    )
    return result.as_dict(), job.DONE


if __name__ == "__main__":
    sys.exit(main())
