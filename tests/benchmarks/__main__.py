"""The benchmarks' command line.

Progress goes to stderr, a Markdown table to stdout, everything to the JSON file that `--json`
names. Let nothing else run on the machine meanwhile: ratios of a busy one say little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from tests.benchmarks.alterations import ALTERATION_PARTS
from tests.benchmarks.changes import CHANGE_PARTS
from tests.benchmarks.checkpoints import CHECKPOINT_PARTS
from tests.benchmarks.fixed_costs import FIXED_COST_PARTS
from tests.benchmarks.maintenance import MAINTENANCE_PARTS
from tests.benchmarks.measurement import Comparison, NotMeasured, Pairs, Stopwatch, as_table, say
from tests.benchmarks.planning import PARTS
from tests.benchmarks.row_changes import ROW_CHANGE_PARTS
from tests.benchmarks.session import local_session
from tests.benchmarks.suites import SCALES, SUITES, Scale
from tests.benchmarks.writes import WRITE_PARTS

OF_LARGE_TABLES = ("planning", "checkpoints")
"""The suites that share tables of many files."""

NOT_BY_DEFAULT = (
    *OF_LARGE_TABLES,
    *("writes", "row changes", "alterations", "maintenance", "changes", "sql", "fixed costs"),
    *("growth", "connect", "peers"),
)
"""Suites of commands of their own, as each takes longer than all others."""


def main(arguments: Sequence[str] | None = None) -> list[Comparison | NotMeasured]:
    """Run the suites asked for and print what they show."""
    options = _parser().parse_args(arguments)
    pairs = Pairs(first=options.pairs, close=options.close_pairs)
    scale = _scale(options)
    results: list[Comparison | NotMeasured] = []
    if options.scratch:
        Path(options.scratch).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sparkdelta-bench-", dir=options.scratch) as scratch:
        spark = local_session(Path(scratch), cores=options.cores, memory=options.driver_memory)
        try:
            for name in options.only or (suite for suite in SUITES if suite not in NOT_BY_DEFAULT):
                stopwatch = Stopwatch(spark, pairs, name)
                keeps = (
                    name in (*OF_LARGE_TABLES, "alterations", "changes", "connect", "growth")
                    and options.scratch
                )
                parent = Path(options.scratch) if keeps else Path(scratch)
                folder = OF_LARGE_TABLES[0] if name in OF_LARGE_TABLES else name
                directory = parent / folder.replace(" ", "-")
                directory.mkdir(exist_ok=True)
                for result in SUITES[name](stopwatch, scale, directory):
                    results.append(result)
                    say(result.summary)
                    if options.json:
                        report = _report(options, scale, spark, results)
                        Path(options.json).write_text(report, encoding="utf-8")
        finally:
            spark.stop()
    print(as_table(results))
    return results


def _scale(options: argparse.Namespace) -> Scale:
    scale = SCALES[options.scale]
    chosen = replace(
        scale.planning, most_files=options.most_files, without=tuple(options.without or ())
    )
    batches = scale.batches if options.batches is None else options.batches
    return replace(scale, planning=chosen, batches=batches)


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
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="where to make tables; those of some suites stay there for the next run",
    )
    planning = parser.add_argument_group("suites with parts")
    planning.add_argument(
        "--most-files",
        type=int,
        metavar="N",
        help="leave out tables of more files; those of the largest are written only with this",
    )
    planning.add_argument(
        "--batches", type=int, metavar="N", help="batches of the stream whose latency is measured"
    )
    planning.add_argument(
        "--without",
        choices=[
            *(*PARTS, *CHECKPOINT_PARTS, *WRITE_PARTS),
            *(*ROW_CHANGE_PARTS, *CHANGE_PARTS, *MAINTENANCE_PARTS, *ALTERATION_PARTS),
            *FIXED_COST_PARTS,
        ],
        action="append",
        help="leave out a part; may be repeated",
    )
    return parser


def _report(
    options: argparse.Namespace,
    scale: Scale,
    spark: SparkSession,
    results: Sequence[Comparison | NotMeasured],
) -> str:
    report = {
        "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
        "machine": platform.machine(),
        "master": spark.sparkContext.master,
        "driver_memory": options.driver_memory,
        "scale": {"name": options.scale, **asdict(scale)},
        "comparisons": [one.as_dict() for one in results if isinstance(one, Comparison)],
        "not_measured": [one.as_dict() for one in results if isinstance(one, NotMeasured)],
    }
    return json.dumps(report, indent=2) + "\n"


if __name__ == "__main__":
    main()
