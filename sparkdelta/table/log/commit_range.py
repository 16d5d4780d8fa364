"""Commits of a log, as files, lines and actions.

References
----------
PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from sparkdelta.base.protocol.commit_info import COMMIT_INFO, parse_commit_info
from sparkdelta.base.protocol.log_files import LogFile, Version
from sparkdelta.base.schema.action_schemas import CHANGES, actions
from sparkdelta.base.spark.driver import read_row, read_rows
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.table.listing.file_reader import LogFileReader
from sparkdelta.table.listing.line_reader import (
    fits_on_driver,
    is_searched_by_driver,
    lines_that_name,
    local_lines,
    read_lines,
    total_size,
)
from sparkdelta.table.listing.log_line_frames import may_name, parse_log_lines
from sparkdelta.table.listing.plain_actions import ActionsOfLine, plain_actions
from sparkdelta.table.log.commit_info_frames import commit_infos

BROADCAST_LOG_BYTES = 64 * 1024 * 1024
"""Up to this many bytes of commits after a checkpoint, their keys are broadcast to filter it."""

_SHORT_LINES = 1_000
"""Up to this many lines are parsed without a job, which takes less time although each is parsed
again for each filter; in a new process, a tenth of it."""

_OF_TABLE = actions("protocol", "metaData")
_NOT_OF_FILES = frozenset({"protocol", "metaData", "txn", "domainMetadata"})

_FILE_ACTION = (
    r'^\s*\{\s*"(?P<action>add|remove)"\s*:\s*\{'
    r'\s*"path"\s*:\s*"(?P<path>[^"\\%:/][^"\\%:]*)"'
)
"""Regular expression of an action that begins with its path: a relative path that has no other
spelling."""

_NOT_PLAIN = (
    r'"deletionVector"\s*:\s*\{'
    r"|\\u00(?:4[1-9A-Fa-f]|5[0-9Aa]|6[1-9A-Fa-f]|7[0-9Aa])"
    r"|[{,]\s*'"
)
"""Regular expression of a deletion vector, or of a possible name that is not spelled as in the
protocol: with escaped letters, or between apostrophes, which Spark reads."""

DISTINCT_FILES = StructType(
    [StructField("path", StringType()), StructField("is_add", BooleanType())]
)
"""The columns of `CommitRange.distinct_files`."""


@dataclass(frozen=True)
class CommitRange:
    """A range of commits of a log in order, or compactions in place of some of them.

    The lines of few commits are in the driver's memory, and frames of them cost no Spark job.
    Executors read the lines of more commits when the query runs, see
    `line_reader.DRIVER_LOG_BYTES`.
    """

    reader: LogFileReader
    files: tuple[LogFile, ...]
    _lines: pa.Table | DataFrame = field(repr=False)
    _not_of_files: list[pa.Table] = field(default_factory=list, repr=False)
    _distinct_files: list[pa.Table | None] = field(default_factory=list, repr=False)

    @classmethod
    def read(cls, reader: LogFileReader, files: Sequence[LogFile]) -> CommitRange:
        """Read commits, or plan that executors read them."""
        is_local = fits_on_driver(files)
        lines = read_lines(reader.store, files) if is_local else reader.executor_lines(files)
        return cls(reader, tuple(files), lines)

    def extended(self, files: Sequence[LogFile]) -> CommitRange:
        """Append commits to the range; only these are read."""
        files = (*self.files, *files)
        if self.local_lines is None or not fits_on_driver(files):
            return CommitRange(self.reader, files, self.reader.executor_lines(files))
        new = read_lines(self.reader.store, files[len(self.files) :])
        return CommitRange(self.reader, files, pa.concat_tables([self.local_lines, new]))

    def after(self, earlier: CommitRange) -> CommitRange:
        """Return the commits that were appended to an earlier range by `extended`."""
        files = self.files[len(earlier.files) :]
        if self.local_lines is None or earlier.local_lines is None:
            return CommitRange.read(self.reader, files)
        lines = self.local_lines.slice(earlier.local_lines.num_rows)
        return CommitRange(self.reader, files, lines)

    def in_session(self, reader: LogFileReader) -> CommitRange:
        """Return the same commits with their DataFrames in the session of another reader."""
        lines = self._lines if self.is_local else reader.executor_lines(self.files)
        return replace(self, reader=reader, _lines=lines)

    @property
    def local_lines(self) -> pa.Table | None:
        """version LONG, line STRING in the driver's memory; None if executors read them."""
        return self._lines if isinstance(self._lines, pa.Table) else None

    def commit_info_of(self, version: Version) -> Mapping[str, object] | None:
        """Return the commitInfo of a version, empty if it has none.

        None if executors read the lines, or the version's own commit is not the last file.
        """
        last = self.files[-1] if self.files else None
        if self.local_lines is None or last is None or last.version != version:
            return None
        if last.end_version is not None:
            return None
        lines = self.local_lines.filter(pc.equal(self.local_lines["version"], version))
        return parse_commit_info(lines_that_name(lines, COMMIT_INFO)["line"].to_pylist())

    @property
    def is_local(self) -> bool:
        """True if the lines are in the driver's memory."""
        return self.local_lines is not None

    @property
    def is_searched(self) -> bool:
        """True if the driver finds the actions that are not about files."""
        return self.is_local or is_searched_by_driver(self.files)

    @property
    def is_short(self) -> bool:
        """True if Spark parses the lines sooner without a job, see `actions`."""
        return self.local_lines is not None and self.local_lines.num_rows <= _SHORT_LINES

    @property
    def broadcasts_keys(self) -> bool:
        """True if the keys of the file actions are few enough to be broadcast."""
        return total_size(self.files) <= BROADCAST_LOG_BYTES

    @property
    def last_version(self) -> Version | None:
        """The last version in the range; None if it is empty."""
        return self.files[-1].last_version if self.files else None

    # Built at the first use: an append to a table with a version checksum has none.
    @cached_property
    def lines(self) -> DataFrame:
        """version LONG, line STRING."""
        if self.local_lines is None:
            return self._lines
        return local_lines(self.reader.spark, self.local_lines)

    def may_hold(self, *names: str) -> bool:
        """Return True if a commit may hold an action of these kinds."""
        lines = self._lines_with(*names)
        return bool(self.files) if lines is None else lines.num_rows > 0

    def actions(
        self, *names: str, above: Version | None = None, without_job: bool = False
    ) -> DataFrame:
        """Return version LONG and the named actions, one row per action.

        Rows of other actions may be among them.

        Parameters
        ----------
        without_job
            True for a frame of lines in the driver's memory that costs no Spark job, and is parsed
            again for each filter.
        """
        return self.parsed(actions(*names), above=above, without_job=without_job)

    def changes(self, *names: str) -> DataFrame:
        """Return the named columns of `CHANGES`; otherwise like `actions`."""
        return self.parsed(StructType([CHANGES[name] for name in names]))

    def parsed(
        self, schema: StructType, *, above: Version | None = None, without_job: bool = False
    ) -> DataFrame:
        """Return the columns and fields of a schema, and parse no others; see `actions`."""
        names = schema.names
        # Of one kind there are few lines or none, where Spark has nothing to do.
        table = self._lines_with(*names) if len(names) == 1 else None
        if table is not None:
            lines = local_lines(self.reader.spark, table)
        elif "add" not in names:  # most lines are adds, which need not be parsed
            lines = self.lines.filter(may_name(*names))
        else:
            lines = self.lines
        if (table is not None or self.is_local) and not without_job:
            # In one partition, what groups the actions by file needs no shuffle.
            lines = lines.coalesce(1)
        if above is not None:
            lines = lines.filter(F.col("version") > above)
        return parse_log_lines(lines, actions=schema, few=without_job)

    def table_actions(self) -> DataFrame:
        """Return version, protocol, metaData: a row for each commit line that holds one of the two.

        Costs no Spark job if the commits are small, see `line_reader.DRIVER_SCAN_BYTES`.
        """
        names = _OF_TABLE.names
        table = self._lines_with(*names)
        if table is None:
            lines = self.lines.filter(may_name(*names))
        else:
            lines = local_lines(self.reader.spark, table)
        rows = parse_log_lines(lines, actions=_OF_TABLE, few=table is not None)
        return rows.filter("protocol IS NOT NULL OR metaData IS NOT NULL")

    def read_table_actions(self, *, bound: int) -> list[ActionsOfLine]:
        """Read the rows of `table_actions`, without Spark if the driver has their lines."""
        table = self._lines_with(*_OF_TABLE.names)
        plain = None if table is None else plain_actions(table, _OF_TABLE)
        if plain is not None:
            return [each for each in plain if each["protocol"] or each["metaData"]]
        rows = read_rows(
            self.table_actions(),
            what="protocol and metaData",
            bound=bound,
            version=self.last_version,
        )
        return [row.asDict(recursive=True) for row in rows]

    def commit_infos(self) -> DataFrame:
        """Return version LONG, commitInfo STRUCT: one row per commit that has one."""
        return commit_infos(self.lines)

    def count_file_actions(self) -> tuple[int, int]:
        """Count the lines that name an add, and the lines that name a remove.

        Costs a Spark job unless the driver searches the commits.
        """
        names = ("add", "remove")
        if self.is_searched:
            lines = self._searched_lines()
            adds, removes = (lines_that_name(lines, name).num_rows for name in names)
        else:
            named = (F.count_if(F.expr(may_name(name))) for name in names)
            adds, removes = read_row(
                self.lines.agg(*named), what="size of the commits", version=self.last_version
            )
        return adds, removes

    def count_naming(self, field: str) -> int | None:
        """Count the actions of any kind that may have a field; None if executors read the lines."""
        if self.local_lines is None:
            return None
        return int(lines_that_name(self.local_lines, field).num_rows)

    def added_bytes(self) -> int | None:
        """Sum the sizes of all added files, live or not; None if executors read the lines."""
        if self.local_lines is None:
            return None
        adds = lines_that_name(self.local_lines, "add")["line"]
        sizes = pc.extract_regex(adds, r'"size"\s*:\s*(?P<size>[0-9]{1,15})\b')
        return pc.sum(pc.struct_field(sizes, "size").cast(pa.int64())).as_py() or 0

    @property
    def distinct_files(self) -> pa.Table | None:
        """path STRING, is_add BOOLEAN: the adds and removes, if each file occurs once, without a
        vector.

        Then there is nothing to reconcile among them. None if files repeat, if this is unknown
        without parsing, or if the driver does not search the commits. The first use reads lines
        that are not in the driver's memory. They are not parsed: a query that relies on this must
        parse them, so that a damaged line fails it.
        """
        if not self._distinct_files:
            self._distinct_files.append(self._find_distinct_files())
        return self._distinct_files[0]

    def _find_distinct_files(self) -> pa.Table | None:
        # On Spark Connect, the paths of a long log would be part of every message.
        if not self.is_local and not (
            self.is_searched and engine_of(self.reader.spark).can("see plans")
        ):
            return None
        lines = self._searched_lines().combine_chunks()
        if not self.is_local and _size_of(lines) - len(self.files) != total_size(self.files):
            return None  # executors may read something else
        if pc.any(pc.match_substring_regex(lines["line"], _NOT_PLAIN)).as_py():
            return None
        lines = lines_that_name(lines, "add", "remove")["line"]
        matches = pc.extract_regex(lines, _FILE_ACTION)
        paths = pc.struct_field(matches, "path")
        has_one_path = pc.equal(pc.count_substring(lines, '"path"'), 1)
        is_plain = pc.and_(has_one_path, pc.is_valid(paths))
        if not pc.all(is_plain, min_count=0).as_py():
            return None
        if pc.count_distinct(paths).as_py() < len(paths):
            return None
        return pa.table(
            [paths, pc.equal(pc.struct_field(matches, "action"), "add")], ["path", "is_add"]
        )

    def _searched_lines(self) -> pa.Table:
        """Return the lines, if the driver searches them."""
        lines = self.local_lines
        return read_lines(self.reader.store, self.files) if lines is None else lines

    def has_empty_schema(self) -> bool:
        """Return True if a metaData in the driver's memory has an empty schema.

        A version checksum must not hide it.
        """
        if self.local_lines is None:
            return False
        lines = pc.match_substring_regex(self.local_lines["line"], r'"schemaString"\s*:\s*""')
        return bool(pc.any(lines).as_py())

    def _lines_with(self, *names: str) -> pa.Table | None:
        """Return the lines that may hold such an action; None if the driver does not search."""
        if self.local_lines is not None:
            return lines_that_name(self.local_lines, *names)
        if not self.is_searched or not _NOT_OF_FILES.issuperset(names):
            return None
        if not self._not_of_files:
            lines = self._searched_lines()
            self._not_of_files.append(lines_that_name(lines, *sorted(_NOT_OF_FILES)))
        return lines_that_name(self._not_of_files[0], *names)


def _size_of(lines: pa.Table) -> int:
    """Sum the bytes of lines, including their line breaks."""
    return int(pc.sum(pc.binary_length(lines["line"])).as_py() or 0) + int(lines.num_rows)
