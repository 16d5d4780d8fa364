"""Check that a Delta table is consistent with its log: spark-submit jobs/verify.py /path/to/table

Prints a report to standard error, and the same as one line of JSON to standard output. Exit codes:
0 the table is clean; 1 there are findings, or the table could not be read; 2 invalid arguments.
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
    parser.add_argument("--version", type=int, help="version (default: latest)")
    parser.add_argument(
        "--footers", action="store_true", help="open every data file and count its rows"
    )
    return job.run(parser, arguments, _verify)


def _verify(spark: SparkSession, options: Namespace) -> tuple[Mapping[str, object], int]:
    found = sparkdelta.verify(spark, options.path, version=options.version, footers=options.footers)
    print(found, file=sys.stderr)
    return found.as_dict(), job.DONE if found.is_clean else job.NOT_DONE


if __name__ == "__main__":
    sys.exit(main())
