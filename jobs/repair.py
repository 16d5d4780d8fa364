"""Mend a Delta table: spark-submit jobs/repair.py /path/to/table

Prints one line of JSON to standard output: what was mended and what is left. Exit codes: 0 nothing
is left; 1 problems are left, or the table could not be read; 2 invalid arguments.
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
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be done")
    return job.run(parser, arguments, _repair)


def _repair(spark: SparkSession, options: Namespace) -> tuple[Mapping[str, object], int]:
    result = sparkdelta.repair(spark, options.path, dry_run=options.dry_run)
    print(result, file=sys.stderr)
    return result.as_dict(), job.NOT_DONE if result.untouched else job.DONE


if __name__ == "__main__":
    sys.exit(main())
