"""Write a log compaction file of a Delta table: spark-submit jobs/compact_log.py /path/to/table

Prints the result as one line of JSON to standard output. Exit codes: 0 the file was written or
exists, or there is nothing to compact; 1 it could not be written; 2 invalid arguments.
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
        "--start", type=int, help="first version (default: the one after the newest checkpoint)"
    )
    parser.add_argument("--end", type=int, help="last version (default: latest)")
    return job.run(parser, arguments, _compact)


def _compact(spark: SparkSession, options: Namespace) -> tuple[Mapping[str, object], int]:
    result = sparkdelta.compact_log(spark, options.path, start=options.start, end=options.end)
    return result.as_dict(), job.DONE


if __name__ == "__main__":
    sys.exit(main())
