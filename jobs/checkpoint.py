"""Write a checkpoint of a Delta table: spark-submit jobs/checkpoint.py /path/to/table

Prints the result as one line of JSON to standard output, and progress to standard error. Exit
codes: 0 a checkpoint was written, or an equivalent one exists; 1 it could not be written; 2 invalid
arguments.
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import job
from pyspark.sql import SparkSession

import sparkdelta
from sparkdelta.operations.checkpoint.checkpoint_options import ADDS_PER_SIDECAR


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return its exit code."""
    return job.run(_parser(), arguments, _checkpoint)


def _checkpoint(spark: SparkSession, options: Namespace) -> tuple[Mapping[str, object], int]:
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
    return {"is_written": written.is_written, **asdict(written)}, job.DONE


def _parser() -> argparse.ArgumentParser:
    parser = job.parser(__doc__)
    parser.add_argument("--version", type=int, help="version (default: latest)")
    parser.add_argument(
        "--kind",
        choices=("classic", "v2-classic", "v2-json", "v2-parquet"),
        help="checkpoint kind (default: by the table's delta.checkpointPolicy)",
    )
    parser.add_argument(
        "--layout",
        choices=("clustered", "hash"),
        default="clustered",
        help="clustered: ordered by partition values and statistics, so that selective reads open "
        "few sidecars; hash: distributed by path, slightly faster to write",
    )
    parser.add_argument(
        "--full", action="store_true", help="do not reuse sidecars of the last checkpoint"
    )
    parser.add_argument(
        "--adds-per-sidecar",
        type=int,
        default=ADDS_PER_SIDECAR,
        metavar="N",
        help="approximate number of live files per sidecar (default: %(default)s)",
    )
    parser.add_argument(
        "--compression", default="snappy", help="Parquet compression codec (default: %(default)s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
