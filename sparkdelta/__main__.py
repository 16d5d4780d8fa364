"""The command ``sparkdelta``, or ``python -m sparkdelta``: shows and maintains a table."""

from __future__ import annotations

import argparse
import base64
import inspect
import json
import math
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias, get_args

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sparkdelta
from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.spark_errors import SPARK_ERRORS, unlogged_errors
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.changes.describe import DRAWN_OF_HISTORY
from sparkdelta.operations.checkpoint.checkpoint_options import Layout
from sparkdelta.operations.vacuum.vacuum import FULL, LITE
from sparkdelta.operations.verify.repair import RepairResult
from sparkdelta.operations.verify.verification import Verification
from sparkdelta.table.checkpoint.checkpoint_kind_rules import CheckpointKind
from sparkdelta.table.rows.job_failures import likely_cause

DONE, FAILED = 0, 1
"""Exit codes: success; an error, or findings of verify. 2 means invalid arguments."""

Row: TypeAlias = "Mapping[str, Any]"
Outcome: TypeAlias = "Result | Row | list[Row]"
"""The outcome of a command: the result of a function, the fields of one thing, or rows."""

Option: TypeAlias = "tuple[tuple[str, ...], Mapping[str, Any]]"

_SHOWN = 20


class Command(NamedTuple):
    """A command.

    Attributes
    ----------
    call
        Its function; takes a session, the path of a table, and the options by their names.
    options
        The options; the ones in a list exclude each other.
    """

    text: str
    call: Callable[..., Outcome]
    options: tuple[Option | list[Option], ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    name, *program = (sys.argv[1:] if arguments is None else arguments) or [""]
    if name == "run" and program and program[0] not in {"-h", "--help"}:
        run_program(program)
    options = vars(_parser().parse_args(arguments))
    spark = SparkSession.getActiveSession() or _session()
    is_json, call, path = options.pop("json"), options.pop("call"), options.pop("path")
    try:
        with unlogged_errors():
            outcome = call(spark, path, **options)
    except DeltaError as error:
        print(error, file=sys.stderr)
        return FAILED
    except SPARK_ERRORS as error:
        print(likely_cause(str(error))[0], file=sys.stderr)
        return FAILED
    try:
        if is_json:
            for row in outcome if isinstance(outcome, list) else [fields_of(outcome)]:
                print(json_text(row))
        else:
            _draw(outcome)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads it, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exit_code(outcome)


def run_program(program: Sequence[str]) -> NoReturn:
    """Replace this process by a program, in which each Spark session is enabled.

    The environment is inherited, so the same holds for Python programs that it starts.

    Parameters
    ----------
    program
        A console script such as ``dbt``, a path that ends in ``.py`` or ``-m`` and a module, with
        its arguments.
    """
    startup, bin_directory = Path(__file__).with_name("startup"), Path(sys.executable).parent
    environment = dict(os.environ)
    for name, first in {"PYTHONPATH": startup, "PATH": bin_directory}.items():
        environment[name] = os.pathsep.join(filter(None, [str(first), environment.get(name)]))
    is_python = program[0] == "-m" or program[0].endswith(".py")
    command = [sys.executable, *program] if is_python else list(program)
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - the user names the program
    except FileNotFoundError:
        sys.exit(f"sparkdelta run: there is no program {command[0]}")


def add_options(parser: ArgumentParser, name: str) -> None:
    """Add the path, the options and the function of a command to a parser.

    An option with a value has the default of the function's argument.
    """
    command = _COMMANDS[name]
    arguments = inspect.signature(command.call).parameters.values()
    defaults = {each.name: each.default for each in arguments if each.default is not each.empty}
    parser.set_defaults(call=command.call)
    parser.add_argument("path", help="root of the table, any path that Spark can read")
    for each in command.options:
        group = parser.add_mutually_exclusive_group() if isinstance(each, list) else parser
        for names, settings in each if isinstance(each, list) else [each]:
            option = group.add_argument(*names, **settings)
            if option.option_strings and option.nargs != 0:
                option.default = defaults.get(option.dest)


def exit_code(outcome: Outcome) -> int:
    """Return the exit code of a command; problems that are left in a table are a failure."""
    if isinstance(outcome, Verification):
        return DONE if outcome.is_clean else FAILED
    return FAILED if isinstance(outcome, RepairResult) and outcome.untouched else DONE


def fields_of(outcome: Result | Row) -> Row:
    """Return the fields of one thing by their names."""
    return outcome.as_dict() if isinstance(outcome, Result) else outcome


def json_text(row: Row) -> str:
    """Return a line of JSON."""
    return json.dumps(_plain(row))


def _session() -> SparkSession:
    """Start Spark, without its bars and warnings between the lines of an answer."""
    builder = SparkSession.builder.appName("sparkdelta").config("spark.log.level", "ERROR")
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()


def _parser() -> ArgumentParser:
    text = "Show and maintain a Delta table. Each command has its own --help."
    parser = ArgumentParser(prog="sparkdelta", description=text)
    parser.add_argument("--version", action="version", version=sparkdelta.__version__)
    commands = parser.add_subparsers(required=True, metavar="command")
    text = "run a program in which each Spark session is enabled: dbt build, script.py, -m pytest"
    run = commands.add_parser("run", help=text, description=text)
    run.add_argument("program", nargs="+", help="its name and arguments")
    for name, (text, _, _) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        add_options(command, name)
        command.add_argument("--json", action="store_true", help="print lines of JSON")
    return parser


def _describe(spark: SparkSession, path: str, *, history: int = 0) -> Outcome:
    table = DeltaTable.forPath(spark, path)
    [detail] = _rows(table.detail(), 1)
    return {**detail, "history": _rows(table.history(history), history)} if history else detail


def _history(spark: SparkSession, path: str, *, limit: int = _SHOWN) -> Outcome:
    commits = DeltaTable.forPath(spark, path).history(limit)
    return _rows(commits.select(*DRAWN_OF_HISTORY), limit)


def _files(
    spark: SparkSession, path: str, *, version: int | None, where: str | None, limit: int = _SHOWN
) -> Outcome:
    snapshot = sparkdelta.load_snapshot(spark, path, version=version)
    time = F.timestamp_millis("modificationTime").alias("modificationTime")
    files = snapshot.scan(where).files().select("path", "size", time)
    return _rows(files.orderBy("path"), limit)


def _changes(
    spark: SparkSession, path: str, *, start: int, end: int | None, limit: int = _SHOWN
) -> Outcome:
    changes = sparkdelta.read_changes(spark, path, start_version=start, end_version=end)
    return _rows(changes, limit)


def _optimize(spark: SparkSession, path: str, *, purge: bool, **options: Any) -> Outcome:
    if not purge:
        return sparkdelta.optimize(spark, path, **options)
    names = ("where", "target_file_size", "max_bytes", "dry_run")
    return sparkdelta.reorg(spark, path, **{name: options[name] for name in names})


def _rows(frame: DataFrame, limit: int) -> list[Row]:
    shown = read_rows(frame.limit(limit), what="rows that a command shows", bound=limit)
    return [row.asDict(recursive=True) for row in shown]


def _count(text: str) -> int:
    if not (text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a number of rows")
    return int(text)


def _option(*names: str, **settings: Any) -> Option:
    """Define an argument of a parser; its name or `dest` is the name of a function's argument."""
    return names, settings


_LIMIT = _option("--limit", type=_count, help="most rows (%(default)s)")
_DRY_RUN = _option("--dry-run", action="store_true", help="only tell what would be done")
_VERSION = _option("--version", type=int, help="the version; the latest by default")

_COMMANDS: dict[str, Command] = {
    "describe": Command("show what a table is: schema, size, properties, features", _describe, (
        _option("--history", type=int, metavar="N", help="include the latest N commits"),
    )),
    "history": Command("list the commits, newest first", _history, (_LIMIT,)),
    "files": Command("list the files of a version", _files, (
        _VERSION,
        _option("--where", help="a SQL condition: only files that may match"),
        _LIMIT,
    )),
    "changes": Command("list the rows that commits changed", _changes, (
        _option("start", type=int, help="the first version"),
        _option("end", type=int, nargs="?", help="the last version"),
        _LIMIT,
    )),
    "verify": Command(
        "check log and files; exit code 1 if there are findings", sparkdelta.verify, (
        _VERSION,
        _option("--footers", action="store_true", help="open every data file and count its rows"),
    )),
    "repair": Command("mend a table; exit code 1 if problems are left", sparkdelta.repair, (
        _DRY_RUN,
    )),
    "convert": Command(
        "convert a directory of Parquet files to a table", sparkdelta.convert_to_delta, (
        _option("--partition-schema", help="such as 'day DATE, id INT'; none by default"),
        _option("--infer-partitions", action="store_true", help="from the directories"),
        _option("--no-statistics", dest="collect_statistics", action="store_false",
                help="do not store statistics"),
    )),
    "clone": Command("make a table of a version of another table", sparkdelta.clone, (
        _option("target", help="root of the clone"),
        _option("--deep", action="store_true", help="copy the files"),
        _option("--replace", action="store_true", help="of a table that is there already"),
        _VERSION,
        _option("--timestamp", help="the version that was the latest at this time"),
    )),
    "checkpoint": Command("write a checkpoint", sparkdelta.write_checkpoint, (
        _VERSION,
        _option("--kind", choices=[kind.value for kind in CheckpointKind],
                help="by default as the table's delta.checkpointPolicy says"),
        _option("--layout", choices=get_args(Layout),
                help="clustered: ordered by partition values and statistics, so that selective "
                "reads open few sidecars; hash: distributed by path, slightly faster to write"),
        _option("--full", dest="incremental", action="store_false",
                help="do not reuse sidecars of the last checkpoint"),
        _option("--adds-per-sidecar", type=int, metavar="N",
                help="approximate number of live files per sidecar (default: %(default)s)"),
        _option("--compression", help="Parquet compression codec (default: %(default)s)"),
    )),
    "compact-log": Command("write a log compaction file", sparkdelta.compact_log, (
        _option("--start", type=int,
                help="first version (default: the one after the newest checkpoint)"),
        _option("--end", type=int, help="last version (default: latest)"),
    )),
    "clean-log": Command("delete expired files of the log", sparkdelta.clean_log, (_DRY_RUN,)),
    "optimize": Command("rewrite small files as larger ones", _optimize, (
        _option("--where", help="a SQL condition on partition columns"),
        [
            _option("--zorder-by", nargs="+", metavar="COLUMN", help="put rows in Z-order"),
            _option("--full", action="store_true",
                    help="cluster files again that other columns cluster"),
            _option("--purge", action="store_true",
                    help="rewrite files with deleted rows or dropped columns"),
        ],
        _option("--target-file-size", type=int, help="of the new files, in bytes"),
        _option("--max-bytes", type=int, help="of the files that a commit replaces"),
        _option("--min-cube-size", type=int, help="keep Z-cubes of at least this size in bytes"),
        _option("--max-cube-size", type=int, help="of new Z-cubes, in bytes"),
        _DRY_RUN,
    )),
    "vacuum": Command(
        "delete files that no version within the retention period needs", sparkdelta.vacuum, (
        _option("--retention-hours", type=float, help="by default the table's property"),
        _option("--mode", choices=(FULL, LITE), help="lite: by the log"),
        _option("--no-retention-check", dest="check_retention", action="store_false",
                help="allow less than the table's retention"),
        _option("--deletes-per-second", type=float, help="the most deletions per second"),
        _DRY_RUN,
    )),
}  # fmt: skip


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


def _draw(outcome: Outcome) -> None:
    """Print rows as a table, or the fields of one thing as a list; as JSON if rich is not
    installed.
    """
    rows: list[Row] = outcome if isinstance(outcome, list) else [fields_of(outcome)]
    try:
        from rich import box
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table
    except ImportError:
        for row in rows:
            print(json.dumps(row, default=str, indent=2))
        return
    if not isinstance(outcome, list):
        rows = [{"field": name, "value": value} for name, value in fields_of(outcome).items()]
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
