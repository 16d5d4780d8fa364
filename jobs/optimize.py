"""Compact, order, cluster or purge files: spark-submit jobs/optimize.py /path/to/table

Prints one line of JSON to standard output: the new versions, and the files and bytes before and
after. Exit codes: 0 success; 1 the table could not be optimized; 2 invalid arguments.
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
    parser.add_argument("--where", help="only partitions that this condition is true of")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--zorder-by", nargs="+", metavar="COLUMN", help="put rows in Z-order")
    kinds.add_argument(
        "--full", action="store_true", help="cluster files again that other columns cluster"
    )
    kinds.add_argument(
        "--purge", action="store_true", help="rewrite files with deleted rows or dropped columns"
    )
    parser.add_argument("--target-file-size", type=int, help="of the new files, in bytes")
    parser.add_argument("--max-bytes", type=int, help="of the files that a commit replaces")
    parser.add_argument("--min-cube-size", type=int, help="Z-cubes of so many bytes stay")
    parser.add_argument("--max-cube-size", type=int, help="of new Z-cubes, in bytes")
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be done")
    return job.run(parser, arguments, _optimize)


def _optimize(spark: SparkSession, options: Namespace) -> tuple[Mapping[str, object], int]:
    common = {
        "where": options.where,
        "target_file_size": options.target_file_size,
        "max_bytes": options.max_bytes,
        "dry_run": options.dry_run,
    }
    if options.purge:
        return sparkdelta.reorg(spark, options.path, **common).as_dict(), job.DONE
    result = sparkdelta.optimize(
        spark,
        options.path,
        zorder_by=options.zorder_by,
        full=options.full,
        min_cube_size=options.min_cube_size,
        max_cube_size=options.max_cube_size,
        **common,
    )
    return result.as_dict(), job.DONE


if __name__ == "__main__":
    sys.exit(main())
