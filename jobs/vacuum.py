"""Delete the files that a Delta table no longer needs: spark-submit jobs/vacuum.py /path/to/table

Prints one line of JSON to standard output: the files and bytes that were deleted, and those that
were kept by reason. Exit codes: 0 success; 1 the table could not be vacuumed; 2 invalid arguments.
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
    parser.add_argument("--retention-hours", type=float, help="default: that of the table")
    parser.add_argument("--mode", choices=("full", "lite"), default="full", help="lite: by the log")
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be deleted")
    parser.add_argument(
        "--no-retention-check", action="store_true", help="allow less than the table's retention"
    )
    parser.add_argument("--deletes-per-second", type=float, help="the most deletions per second")
    return job.run(parser, arguments, _vacuum)


def _vacuum(spark: SparkSession, options: Namespace) -> tuple[Mapping[str, object], int]:
    result = sparkdelta.vacuum(
        spark,
        options.path,
        retention_hours=options.retention_hours,
        mode=options.mode,
        dry_run=options.dry_run,
        check_retention=not options.no_retention_check,
        deletes_per_second=options.deletes_per_second,
    )
    print(result, file=sys.stderr)
    return result.as_dict(), job.DONE


if __name__ == "__main__":
    sys.exit(main())
