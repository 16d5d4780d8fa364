"""Delete expired log files of a Delta table: spark-submit jobs/clean_log.py /path/to/table

Prints one line of JSON to standard output, with the names of the deleted files, or the reason why
there are none. Exit codes: 0 success; 1 the log could not be cleaned; 2 invalid arguments.
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
    parser.add_argument(
        "--dry-run", action="store_true", help="list the expired files without deleting them"
    )
    return job.run(parser, arguments, _clean)


def _clean(spark: SparkSession, options: Namespace) -> tuple[Mapping[str, object], int]:
    result = sparkdelta.clean_log(spark, options.path, dry_run=options.dry_run)
    return result.as_dict(), job.DONE


if __name__ == "__main__":
    sys.exit(main())
