"""The benchmarks' command line.

Progress goes to stderr, a Markdown table to stdout, everything to the JSON file that `--json`
names. Let nothing else run on the machine meanwhile: ratios of a busy one say little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from tests.benchmarks.measurement import Comparison, Pairs, Stopwatch, as_table
from tests.benchmarks.suites import SCALES, SUITES


def main(arguments: Sequence[str] | None = None) -> list[Comparison]:
    """Run the suites asked for and print what they show."""
    options = _parser().parse_args(arguments)
    pairs = Pairs(first=options.pairs, close=options.close_pairs)
    comparisons: list[Comparison] = []
    with tempfile.TemporaryDirectory(prefix="sparkdelta-bench-", dir=options.scratch) as scratch:
        spark = _spark(options, Path(scratch))
        try:
            for name in options.only or SUITES:
                stopwatch = Stopwatch(spark, pairs, name)
                directory = Path(scratch) / name.replace(" ", "-")
                directory.mkdir()
                for result in SUITES[name](stopwatch, SCALES[options.scale], directory):
                    comparisons.append(result)
                    _say(f"{name}: {result.name}: {result.ratio:.2f}x")
            report = _report(options, spark, comparisons)
        finally:
            spark.stop()
    print(as_table(comparisons))
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return comparisons


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="full", help="small: only to see it run")
    parser.add_argument("--only", choices=SUITES, action="append", help="may be repeated")
    parser.add_argument("--json", metavar="FILE", help="where to write all measurements")
    parser.add_argument("--pairs", type=int, default=5, help="pairs to measure")
    parser.add_argument(
        "--close-pairs", type=int, default=15, help="pairs where the ratio is close to 1"
    )
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--driver-memory", default="2g")
    parser.add_argument("--scratch", help="where to make tables for the time of the run")
    return parser


def _spark(options: argparse.Namespace, scratch: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{options.cores}]")
        .appName("sparkdelta benchmarks")
        .config("spark.driver.memory", options.driver_memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(2 * options.cores))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _report(
    options: argparse.Namespace, spark: SparkSession, comparisons: Sequence[Comparison]
) -> dict[str, object]:
    return {
        "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
        "machine": platform.machine(),
        "master": spark.sparkContext.master,
        "driver_memory": options.driver_memory,
        "scale": {"name": options.scale, **asdict(SCALES[options.scale])},
        "comparisons": [comparison.as_dict() for comparison in comparisons],
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
