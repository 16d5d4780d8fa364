"""The command ``sparkdelta``, or ``python -m sparkdelta``: shows and maintains a table."""

from __future__ import annotations

import argparse
import base64
import json
import math
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.error_log import unlogged_errors
from sparkdelta.base.spark.library_sessions import SPARK_ERRORS
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.changes.describe import DRAWN_OF_HISTORY
from sparkdelta.table.rows.job_failures import likely_cause

DONE, FAILED = 0, 1
"""Exit codes: success; an error, or findings of verify. 2 means invalid arguments."""

_SHOWN = 20
_LISTS = ("history", "files", "changes")
"""Commands that answer with rows; the others answer with the fields of one thing."""
Answer: TypeAlias = "list[dict[str, Any]]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    spark = SparkSession.getActiveSession() or _session()
    try:
        with unlogged_errors():
            answer, code = _COMMANDS[options.command](spark, options)
    except DeltaError as error:
        print(error, file=sys.stderr)
        return FAILED
    except SPARK_ERRORS as error:
        print(likely_cause(str(error))[0], file=sys.stderr)
        return FAILED
    try:
        if options.json:
            for row in answer:
                print(json.dumps(_plain(row)))
        else:
            _draw(answer, is_list=options.command in _LISTS)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads it, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _session() -> SparkSession:
    """Start Spark, without its bars and warnings between the lines of an answer."""
    builder = SparkSession.builder.appName("sparkdelta").config("spark.log.level", "ERROR")
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()


def _parser() -> argparse.ArgumentParser:
    text = "Show and maintain a Delta table. Each command has its own --help."
    parser = argparse.ArgumentParser(prog="sparkdelta", description=text)
    parser.add_argument("--version", action="version", version=sparkdelta.__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.add_argument("path", help="root of the table, any path that Spark can read")
        made.add_argument("--json", action="store_true", help="print lines of JSON")
        return made

    def limit(made: argparse.ArgumentParser) -> None:
        made.add_argument("--limit", type=_count, default=_SHOWN, help=f"most rows ({_SHOWN})")

    command("describe", "show what a table is: schema, size, properties, features")
    limit(command("history", "list the commits, newest first"))
    files = command("files", "list the files of a version")
    files.add_argument("--version", type=int, help="the version; the latest by default")
    files.add_argument("--where", help="a SQL condition: only files that may match")
    limit(files)
    changes = command("changes", "list the rows that commits changed")
    changes.add_argument("start", type=int, help="the first version")
    changes.add_argument("end", type=int, nargs="?", help="the last version")
    limit(changes)
    verify = command("verify", "check log and files; exit code 1 if there are findings")
    verify.add_argument("--footers", action="store_true", help="open every data file")
    convert = command("convert", "convert a directory of Parquet files to a table")
    convert.add_argument("--partition-schema", help="such as 'day DATE, id INT'; none by default")
    convert.add_argument("--no-statistics", action="store_true", help="read no statistics")
    command("checkpoint", "write a checkpoint of the latest version")
    optimize = command("optimize", "rewrite small files as larger ones")
    optimize.add_argument("--where", help="a SQL condition on partition columns")
    optimize.add_argument("--dry-run", action="store_true", help="only tell what would be done")
    vacuum = command("vacuum", "delete files that no version within the retention period needs")
    vacuum.add_argument("--retention-hours", type=float, help="by default the table's property")
    vacuum.add_argument("--dry-run", action="store_true", help="only tell what would be deleted")
    return parser


def _count(text: str) -> int:
    if not (text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a number of rows")
    return int(text)


def _describe(spark: SparkSession, options: Namespace) -> tuple[Answer, int]:
    return _rows(DeltaTable.forPath(spark, options.path).detail(), 1), DONE


def _history(spark: SparkSession, options: Namespace) -> tuple[Answer, int]:
    commits = DeltaTable.forPath(spark, options.path).history(options.limit)
    return _rows(commits.select(*DRAWN_OF_HISTORY), options.limit), DONE


def _files(spark: SparkSession, options: Namespace) -> tuple[Answer, int]:
    snapshot = sparkdelta.load_snapshot(spark, options.path, version=options.version)
    time = F.timestamp_millis("modificationTime").alias("modificationTime")
    files = snapshot.scan(options.where).files().select("path", "size", time)
    return _rows(files.orderBy("path"), options.limit), DONE


def _changes(spark: SparkSession, options: Namespace) -> tuple[Answer, int]:
    changes = sparkdelta.read_changes(
        spark, options.path, start_version=options.start, end_version=options.end
    )
    return _rows(changes, options.limit), DONE


def _verify(spark: SparkSession, options: Namespace) -> tuple[Answer, int]:
    found = sparkdelta.verify(spark, options.path, footers=options.footers)
    return [found.as_dict()], DONE if found.is_clean else FAILED


def _convert(spark: SparkSession, options: Namespace) -> tuple[Answer, int]:
    result = sparkdelta.convert_to_delta(
        spark,
        options.path,
        partition_schema=options.partition_schema,
        collect_statistics=not options.no_statistics,
    )
    return [result.as_dict()], DONE


def _checkpoint(spark: SparkSession, options: Namespace) -> tuple[Answer, int]:
    return [sparkdelta.write_checkpoint(spark, options.path).as_dict()], DONE


def _optimize(spark: SparkSession, options: Namespace) -> tuple[Answer, int]:
    result = sparkdelta.optimize(spark, options.path, where=options.where, dry_run=options.dry_run)
    return [result.as_dict()], DONE


def _vacuum(spark: SparkSession, options: Namespace) -> tuple[Answer, int]:
    result = sparkdelta.vacuum(
        spark, options.path, retention_hours=options.retention_hours, dry_run=options.dry_run
    )
    return [result.as_dict()], DONE


_COMMANDS: Mapping[str, Callable[[SparkSession, Namespace], tuple[Answer, int]]] = {
    "describe": _describe,
    "history": _history,
    "files": _files,
    "changes": _changes,
    "verify": _verify,
    "convert": _convert,
    "checkpoint": _checkpoint,
    "optimize": _optimize,
    "vacuum": _vacuum,
}


def _rows(frame: DataFrame, limit: int) -> Answer:
    shown = read_rows(frame.limit(limit), what="rows that a command shows", bound=limit)
    return [row.asDict(recursive=True) for row in shown]


def _plain(value: object) -> object:
    """Return a value that JSON can hold: bytes as Base64, other types that it lacks as text."""
    if isinstance(value, Mapping):
        return {str(_plain(name)): _plain(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if value is None or is_number or isinstance(value, str) else str(value)


def _draw(answer: Answer, *, is_list: bool) -> None:
    """Print rows as a table, or the fields of one thing as a list; as JSON if rich is not
    installed.
    """
    try:
        from rich import box
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table
    except ImportError:
        for row in answer:
            print(json.dumps(row, default=str, indent=2))
        return
    rows = answer
    if not is_list:
        rows = [{"field": name, "value": value} for row in answer for name, value in row.items()]
    table = Table(*(rows[0] if rows else ("no rows",)), box=box.SIMPLE)
    for row in rows:
        table.add_row(*(escape(_text(value)) for value in row.values()))
    Console().print(table)


def _text(value: object) -> str:
    """Return a value as people read it: an entry of a map or an element of a list in each line."""
    if isinstance(value, Mapping):
        return "\n".join(f"{name}: {_inner(own)}" for name, own in value.items())
    return "\n".join(map(_inner, value)) if isinstance(value, list | tuple) else _inner(value)


def _inner(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {own}" for name, own in value.items())
    return "" if value is None else str(value)


if __name__ == "__main__":
    sys.exit(main())
