"""Describe a Delta table: spark-submit jobs/describe.py /path/to/table

Prints the one row of `DESCRIBE DETAIL`, and with --history the latest commits, as JSON on standard
output. Exit codes: 0 success; 1 the table could not be read; 2 invalid arguments.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence

import job
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return its exit code."""
    parser = job.parser(__doc__)
    parser.add_argument(
        "--history", type=int, default=0, metavar="N", help="include the latest N commits"
    )
    return job.run(parser, arguments, _describe)


def _describe(spark: SparkSession, options: Namespace) -> tuple[Mapping[str, object], int]:
    table = DeltaTable.forPath(spark, options.path)
    detail = table.detail().collect()[0].asDict(recursive=True)
    if not options.history:
        return detail, job.DONE
    commits = [row.asDict(recursive=True) for row in table.history(options.history).collect()]
    return {**detail, "history": commits}, job.DONE


if __name__ == "__main__":
    sys.exit(main())
