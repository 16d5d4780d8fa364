"""Convert a directory of Parquet files to a Delta table: spark-submit jobs/convert.py /data/events

Prints one line of JSON to standard output: the version, and the number and size of the files.
Exit codes: 0 success; 1 the directory could not be converted; 2 invalid arguments.
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
    parser.add_argument("--partition-schema", help="such as 'date DATE, id INT'")
    parser.add_argument("--infer-partitions", action="store_true", help="from the directories")
    parser.add_argument("--no-statistics", action="store_true", help="do not store statistics")
    return job.run(parser, arguments, _convert)


def _convert(spark: SparkSession, options: Namespace) -> tuple[Mapping[str, object], int]:
    result = sparkdelta.convert_to_delta(
        spark,
        options.path,
        partition_schema=options.partition_schema,
        infer_partitions=options.infer_partitions,
        collect_statistics=not options.no_statistics,
    )
    return result.as_dict(), job.DONE


if __name__ == "__main__":
    sys.exit(main())
