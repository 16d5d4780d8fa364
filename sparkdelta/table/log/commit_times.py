"""Timestamps of commits: in-commit timestamps if they are enabled, else file times.

References
----------
PROTOCOL.md#recommendations-for-readers-of-tables-with-in-commit-timestamps
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from sparkdelta.base.protocol.log_files import LogFile, Version
from sparkdelta.base.protocol.table_properties import InCommitTimestamps, has_in_commit_timestamp
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.checksum.version_checksum_rules import VersionChecksum
from sparkdelta.table.listing.line_reader import local_lines, read_first_line, read_lines
from sparkdelta.table.log.commit_info_frames import commit_infos
from sparkdelta.table.log.commit_timestamp_rules import strictly_increasing, version_at_or_before
from sparkdelta.table.log.log_reader import LogReader

COMMIT_TIMES = StructType(
    [
        StructField("version", LongType()),
        StructField("file_time", LongType()),
        StructField("in_commit", BooleanType()),
    ]
)


def commit_timestamp(
    log: LogReader, in_commit: InCommitTimestamps, checksum: VersionChecksum | None
) -> int | None:
    """Return the time of a segment's version in milliseconds; None if the commit file is gone."""
    version = log.segment.version
    commits = [file for file in log.segment.commits if file.version == version]
    if has_in_commit_timestamp(in_commit, version):
        if checksum is not None and checksum.in_commit_timestamp is not None:
            return checksum.in_commit_timestamp
        if commits:
            return in_commit_timestamp(log.spark, log.store, commits[0])
    return commits[0].modification_time_ms if commits else None


def in_commit_timestamp(spark: SparkSession, store: LogStore, commit: LogFile) -> int:
    """Read `commitInfo.inCommitTimestamp` of a commit, without a Spark job.

    The commitInfo must be the first action; other lines are read for writers that put it elsewhere.
    """
    rows = _timestamps(spark, read_first_line(store, commit))
    rows = rows or _timestamps(spark, read_lines(store, [commit]))
    if not rows:
        raise DeltaError.of(
            "DELTA_MISSING_COMMIT_INFO", version=commit.version, path=store.table_root
        )
    if rows[0]["inCommitTimestamp"] is None:
        raise DeltaError.of(
            "DELTA_MISSING_COMMIT_TIMESTAMP", version=commit.version, path=store.table_root
        )
    return int(rows[0]["inCommitTimestamp"])


def _timestamps(spark: SparkSession, lines: pa.Table) -> list[Row]:
    infos = commit_infos(local_lines(spark, lines), few=True)
    return read_rows(
        infos.select(F.col("commitInfo.inCommitTimestamp")),
        what="commit timestamps",
        bound=lines.num_rows,
    )


def file_times(commits: Sequence[LogFile]) -> list[tuple[Version, int]]:
    """Return version and modification time of each commit."""
    return [(file.version, file.modification_time_ms) for file in commits]


@dataclass(frozen=True, slots=True)
class CommitHistory:
    """The readable commits of a table, in order and without gaps, and their times."""

    spark: SparkSession
    store: LogStore
    commits: Sequence[LogFile]
    in_commit: InCommitTimestamps

    def timestamp(self, index: int) -> int:
        """Return the timestamp of a commit in milliseconds."""
        if has_in_commit_timestamp(self.in_commit, self.commits[index].version):
            return in_commit_timestamp(self.spark, self.store, self.commits[index])
        return strictly_increasing(file_times(self.commits))[index][1]

    def newest_at(self, moment_ms: int) -> Version | None:
        """Find the newest commit that is not newer than a moment; None if all are newer."""
        inside, outside = self.by_kind_of_time()
        bound = self.in_commit.enablement_timestamp
        if inside and (bound is None or moment_ms >= bound):
            # In-commit timestamps increase.
            number = bisect_right(
                inside, moment_ms, key=partial(in_commit_timestamp, self.spark, self.store)
            )
            return inside[number - 1].version if number else None
        return version_at_or_before(strictly_increasing(file_times(outside)), moment_ms)

    def by_kind_of_time(self) -> tuple[Sequence[LogFile], Sequence[LogFile]]:
        """Split the commits into those with in-commit timestamps, and those before them."""
        commits = self.commits
        inside = [file for file in commits if has_in_commit_timestamp(self.in_commit, file.version)]
        return inside, commits[: len(commits) - len(inside)]


def commit_times(commits: Sequence[LogFile], in_commit: InCommitTimestamps) -> pa.Table:
    """Return `COMMIT_TIMES` of all readable commits, in order.

    file_time is the modification time in milliseconds, made strictly increasing; in_commit is true
    if the commit holds its timestamp.
    """
    times = strictly_increasing(file_times(commits))
    has = [has_in_commit_timestamp(in_commit, version) for version, _ in times]
    return pa.table(
        {
            "version": pa.array([version for version, _ in times], pa.int64()),
            "file_time": pa.array([moment for _, moment in times], pa.int64()),
            "in_commit": pa.array(has, pa.bool_()),
        }
    )
