"""Log compaction: the commits of a range reconciled into one file, by one distributed job.

References
----------
PROTOCOL.md#log-compaction-files, PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from sparkdelta.base.protocol.arguments import checked_version
from sparkdelta.base.protocol.log_files import Version, compaction_name
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.schema.action_schemas import DELETION_VECTOR
from sparkdelta.base.schema.file_key_frames import canonical_path
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError, MalformedLogFileError
from sparkdelta.table.definition.writable import open_writable
from sparkdelta.table.listing.listing import list_log_files, open_log_for_writing
from sparkdelta.table.listing.log_line_frames import parse_log_lines
from sparkdelta.table.listing.log_segment_rules import commits_between
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.reconciliation_frames import (
    keyed_actions,
    newest_actions,
    newest_file_actions,
)
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import staging

_LOGGER = logging.getLogger(__name__)


def _with(*fields: StructField) -> StructType:
    return StructType(list(fields))


_PATH = StructField("path", StringType())
_FILE = _with(_PATH, StructField("deletionVector", DELETION_VECTOR))
_KEYS = _with(
    StructField("add", _FILE),
    StructField("remove", _FILE),
    StructField("metaData", _with(StructField("id", StringType()))),
    StructField("protocol", _with(StructField("minReaderVersion", IntegerType()))),
    StructField("txn", _with(StructField("appId", StringType()))),
    StructField("domainMetadata", _with(StructField("domain", StringType()))),
)
"""The fields that identify the subject of each action."""


@dataclass(frozen=True, slots=True)
class CompactionResult(Result):
    """The result of `sparkdelta.compact_log`.

    Attributes
    ----------
    name
        The compaction file; None where there was nothing to compact.
    written
        True if it is new; an existing file is never changed.
    """

    start: Version
    end: Version
    name: str | None = None
    written: bool = False
    size_bytes: int = 0


def compact_log(
    spark: SparkSession, path: str, *, start: int | None = None, end: int | None = None
) -> CompactionResult:
    """Write a log compaction file for the commits from `start` to `end`, both inclusive.

    Takes one Spark job; on the driver, only the actions needed to load a version are collected. An
    existing file is not replaced.

    Parameters
    ----------
    start
        The first version; by default the one after the newest checkpoint at or before `end`. With
        the default, nothing is written for fewer than two commits.
    end
        The last version; by default the latest.

    Raises
    ------
    DeltaError
        The range is empty, a commit is missing, or this engine cannot write the log; nothing was
        written.

    References
    ----------
    PROTOCOL.md#log-compaction-files
    """
    first, last = checked_version(start, "start"), checked_version(end, "end")
    store = open_log_for_writing(spark, path)
    with jobs_of(store.table_root, last), engine_of(spark).log_session() as session:
        return compact(open_writable(session, path, version=last), first)


def compact(snapshot: Snapshot, start: Version | None) -> CompactionResult:
    """Write the compaction of the commits up to a version, unless it is there.

    Parameters
    ----------
    snapshot
        The last version, in a `log_session`, of a table whose log is known to be writable.
    start
        See `compact_log`.

    Raises
    ------
    InvalidArgumentError
        The range has less than two commits.
    VersionsNotContiguousError
        A commit of the range is not there.
    """
    end, checkpoint = snapshot.version, snapshot.segment.checkpoint
    if start is None:
        start = 0 if checkpoint is None else checkpoint.version + 1
        if start >= end:
            return CompactionResult(start, end)
    if not 0 <= start < end:
        problem = f"{start} must be smaller than {end}, the end of the range"
        raise InvalidArgumentError(argument="start", problem=problem)
    store = snapshot.log.store
    files = list_log_files(store)
    name = compaction_name(start, end)
    if any(file.name == name for file in files):
        return CompactionResult(start, end, name)
    commits = commits_between(files, start, end, path=snapshot.path)
    compacted = compacted_commits(CommitRange.read(snapshot.log.reader, commits))
    with staging(snapshot.log.spark, store) as directory:
        (file,) = directory.write_lines(compacted.repartition(1), "compacted")
        try:
            directory.publish("compacted", file.name, name, is_new_name=False)
        except FileExistsError:
            return CompactionResult(start, end, name)
    _LOGGER.info("%s: wrote %s, %d bytes", snapshot.path, name, file.size_bytes)
    return CompactionResult(start, end, name, written=True, size_bytes=file.size_bytes)


def compacted_commits(commits: CommitRange) -> DataFrame:
    """Return the lines of a compaction of these commits: line STRING."""
    lines = commits.lines.coalesce(1) if commits.is_local else commits.lines
    root = commits.reader.store.table_root
    return compacted_lines(lines, table_root=root, is_local=commits.is_local)


def compacted_lines(lines: DataFrame, *, table_root: str, is_local: bool) -> DataFrame:
    """Return the lines with the newest actions of a range of commits (Action Reconciliation).

    The state before the range is unknown, so all removes, all transaction identifiers and every
    `domainMetadata` with `removed=true` are kept, regardless of their age. Actions that are not
    reconciled, such as commitInfo and cdc, are dropped. Lines are copied verbatim, with unknown
    fields.

    Parameters
    ----------
    lines
        version LONG, line STRING.
    is_local
        True if `lines` has a single partition.

    Returns
    -------
    DataFrame
        line STRING, unordered. A line with more than one action fails the query.
    """
    parsed = parse_log_lines(lines, actions=_KEYS, keep_line=True)
    # Every other action is superseded by the next one with its key, like a remove.
    is_add = F.col("add.path").isNotNull()
    line = _checked_line().alias("line")
    other = F.struct(F.col("remove.path"), F.col("remove.deletionVector"), line)
    carried = parsed.select(
        "*",
        F.when(is_add, F.struct("add.path", "add.deletionVector", line)).alias("_add"),
        F.when(~is_add, other).alias("_other"),
    )
    key = _key(table_root)
    actions = carried.select(
        "version", F.col("_add").alias("add"), F.col("_other").alias("remove"), key.alias("_key")
    )
    keyed = keyed_actions(actions, "_key", is_local=is_local)
    newest = newest_actions(newest_file_actions(keyed))
    return newest.select(F.coalesce("add.line", "remove.line").alias("line"))


def _key(table_root: str) -> Column:
    """Return the key of an action; null if it is not part of Action Reconciliation."""
    file = F.expr(canonical_path("coalesce(add.path, remove.path)", table_root=table_root))
    return F.coalesce(
        F.concat(F.lit("file "), file),
        F.concat(F.lit("txn "), "txn.appId"),
        F.concat(F.lit("domainMetadata "), "domainMetadata.domain"),
        F.when(F.col("protocol").isNotNull(), "protocol"),
        F.when(F.col("metaData").isNotNull(), "metaData"),
    )


def _checked_line() -> Column:
    kinds = [F.col(name).isNotNull().cast("int") for name in _KEYS.names]
    count = sum(kinds[1:], start=kinds[0])
    problem = F.concat(
        F.lit(f"[{MalformedLogFileError.error_class}] Version "),
        F.col("version").cast("string"),
        F.lit(" of the log contains a line with more than one action, which cannot be compacted."),
    )
    return F.when(count <= 1, F.col("line")).otherwise(F.raise_error(problem))
