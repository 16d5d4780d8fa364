"""Write a checkpoint of a Delta table: spark-submit jobs/checkpoint.py /path/to/table

The result is one line of JSON on standard output; what happens is told on standard error. Exit
codes: 0 a checkpoint was written, or one that is as good is there; 1 it could not be written; 2 the
arguments are wrong.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict

from pyspark.sql import SparkSession

import sparkdelta
from sparkdelta import DeltaError
from sparkdelta.table.checkpoint_contents import ADDS_PER_SIDECAR


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return its exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
    logging.getLogger("sparkdelta").setLevel(logging.INFO)
    spark = SparkSession.builder.appName(f"checkpoint of {options.path}").getOrCreate()
    try:
        written = sparkdelta.write_checkpoint(
            spark,
            options.path,
            version=options.version,
            kind=options.kind,
            layout=options.layout,
            incremental=not options.full,
            adds_per_sidecar=options.adds_per_sidecar,
            compression=options.compression,
        )
    except DeltaError as error:
        print(error, file=sys.stderr)
        print(json.dumps({"path": options.path, "error": error.error_class}))
        return 1
    print(json.dumps({"path": options.path, "is_written": written.is_written, **asdict(written)}))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="checkpoint.py", description=__doc__)
    parser.add_argument("path", help="the table's root, as any path that Spark reads")
    parser.add_argument("--version", type=int, help="the version; the latest by default")
    parser.add_argument(
        "--kind",
        choices=("classic", "v2-classic", "v2-json", "v2-parquet"),
        help="spec and name; by default what delta.checkpointPolicy of the table says",
    )
    parser.add_argument(
        "--layout",
        choices=("clustered", "hash"),
        default="clustered",
        help="clustered: ordered by partition values and statistics, so that selective reads open "
        "few sidecars; hash: spread by path, in a little less time",
    )
    parser.add_argument(
        "--full", action="store_true", help="take over no sidecar of the last checkpoint"
    )
    parser.add_argument(
        "--adds-per-sidecar",
        type=int,
        default=ADDS_PER_SIDECAR,
        metavar="N",
        help="how many live files a sidecar describes, about (%(default)s)",
    )
    parser.add_argument("--compression", default="snappy", help="of Parquet files (%(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
