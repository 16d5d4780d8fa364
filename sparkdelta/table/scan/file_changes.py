"""Changes of files, which scans read in place of live files.

References
----------
PROTOCOL.md#change-data-files
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from sparkdelta.base.protocol.change_types import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from sparkdelta.base.schema.column_mapping import PHYSICAL_NAME
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.skipping.data_skipping_frames import DataSkipping
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.commit_times import COMMIT_TIMES
from sparkdelta.table.log.state import NUM_RECORDS, TableState, num_records
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.file_change_frames import derived_changes, recorded_changes
from sparkdelta.table.scan.live_files import partition_texts, read_list
from sparkdelta.table.scan.scan_request import CHANGE_KIND, FileList, row_id_columns
from sparkdelta.table.scan.split_workers import ONLY

_OF_COMMIT = (COMMIT_VERSION, COMMIT_TIMESTAMP)

# As text in UTC, by no function that depends on the session's time zone.
_MILLISECONDS = "IF(in_commit, coalesce(timestamp_ms, file_time), file_time)"
_TIMESTAMP = (
    "concat(TIMESTAMP_NTZ'1970-01-01 00:00:00' + "
    f"make_dt_interval(0, 0, 0, CAST({_MILLISECONDS} AS DECIMAL(18, 3)) / 1000), 'Z')"
)

# delta-spark's MERGE may write files again of which no row changed, and says so only here.
_CHANGES_NOTHING = " AND ".join(
    (
        "commitInfo.operation = 'MERGE'",
        *(
            f"commitInfo.operationMetrics['numTargetRows{what}'] = '0'"
            for what in ("Inserted", "Updated", "Deleted")
        ),
    )
)


def with_change_columns(configuration: TableConfiguration) -> TableConfiguration:
    """Return the configuration of a table whose rows are the changes of another.

    The version and the timestamp of a commit are the same for all the rows of a file, so they are
    partition columns.
    """
    change_type, version, timestamp = (
        StructField(name, data_type, True, {PHYSICAL_NAME: name})
        for name, data_type in (
            (CHANGE_TYPE, StringType()),
            (COMMIT_VERSION, LongType()),
            (COMMIT_TIMESTAMP, TimestampType()),
        )
    )
    return replace(
        configuration,
        schema=StructType([*configuration.schema.fields, change_type, version, timestamp]),
        partition_fields=(*configuration.partition_fields, version, timestamp),
    )


class FileChanges:
    """Changes of files that a scan reads in place of the live files of a version; the rows of a
    file with several changes are read once.
    """

    def changes(self, state: TableState) -> DataFrame:
        """Return the files to read, see `file_change_frames.derived_changes`; values that all rows
        of a file share are among its partition values.

        Parameters
        ----------
        state
            That of the scan.
        """
        raise NotImplementedError

    def are_few(self, bound: int) -> bool:
        """Return True if there are surely no more than a bound."""
        raise NotImplementedError

    def listed(
        self, state: TableState, skipping: DataSkipping | None, bound: int, *, tracks_rows: bool
    ) -> FileList:
        """Return the list of files, see `LiveFiles.listed`."""
        files = self.frame(state, skipping, tracks_rows=tracks_rows)
        version, few = state.log.segment.version, self.are_few(bound)
        listed = read_list(files, bound, version, few=few)
        return files if listed is None else listed

    def frame(
        self, state: TableState, skipping: DataSkipping | None, *, tracks_rows: bool
    ) -> DataFrame:
        """Return the list of files as a lazy DataFrame, with the columns of `NativeScan.rows`."""
        changes = self.changes(state)
        if skipping is not None:
            changes = skipping.keep(changes)
        vectors = [
            f"CASE WHEN {name}.storageType IS NOT NULL THEN {name} END AS {quoted(alias)}"
            for name, alias in (("deletionVector", "deletionVector"), ("only", ONLY))
        ]
        return changes.selectExpr(
            f"{absolute_path('path', table_root=state.log.store.table_root)} AS file",
            "coalesce(size, 0L) AS size",
            *partition_texts(state.configuration),
            f"kind AS {quoted(CHANGE_KIND)}",
            *vectors,
            f"{num_records()} AS {NUM_RECORDS}",
            *(row_id_columns() if tracks_rows else ()),
        )


@dataclass(frozen=True, kw_only=True)
class CommitFileChanges(FileChanges):
    """The changes of a range of commits.

    Attributes
    ----------
    commits
        The commits of the range, none replaced by a compaction.
    times
        `COMMIT_TIMES` of them.
    exclude_regex
        A regular expression of Java; files with a match of it in their path are not read.
    """

    commits: CommitRange
    times: pa.Table
    exclude_regex: str | None = None

    def are_few(self, bound: int) -> bool:
        lines = self.commits.local_lines
        return lines is not None and 2 * lines.num_rows <= bound

    def changes(self, state: TableState) -> DataFrame:
        """Return the files to read, with the commit's version and timestamp among the partition
        values.
        """
        commits = self.commits
        changes = derived_changes(
            commits.changes("add", "remove"),
            table_root=state.log.store.table_root,
            is_partitioned=len(state.configuration.partition_fields) > len(_OF_COMMIT),
        )
        is_recorded = F.col("kind").isNull()
        if commits.may_hold("cdc"):
            changes = changes.unionByName(recorded_changes(commits.changes("cdc")))
        changes = changes.join(F.broadcast(self._commit_facts()), "version")
        changes = changes.filter(is_recorded | ~(F.col("has_cdc") | F.col("changes_nothing")))
        of_commit = F.create_map(
            *(F.lit(COMMIT_VERSION), F.col("version").cast("string")),
            *(F.lit(COMMIT_TIMESTAMP), F.col("timestamp")),
        )
        if self.exclude_regex is not None:
            changes = changes.filter(~F.col("path").rlike(self.exclude_regex))
        values = F.coalesce("partitionValues", F.expr("CAST(map() AS MAP<STRING, STRING>)"))
        return changes.withColumn("partitionValues", F.map_concat(values, of_commit))

    def _commit_facts(self) -> DataFrame:
        """Return a row per commit.

        Its columns are version LONG, timestamp STRING, has_cdc BOOLEAN, changes_nothing BOOLEAN.
        """
        commits = self.commits
        parts = [
            local_frame(commits.reader.spark, self.times, COMMIT_TIMES),
            commits.commit_infos().selectExpr(
                "version",
                "commitInfo.inCommitTimestamp AS timestamp_ms",
                f"{_CHANGES_NOTHING} AS changes_nothing",
            ),
        ]
        if commits.may_hold("cdc"):
            recorded = commits.changes("cdc").filter("cdc.path IS NOT NULL")
            parts.append(recorded.selectExpr("version", "TRUE AS has_cdc"))
        facts = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), parts)
        if commits.is_local:
            facts = facts.coalesce(1)
        aggregates = [F.max(name).alias(name) for name in facts.columns if name != "version"]
        facts = grouped(facts, ["version"], *aggregates)
        has_cdc = "coalesce(has_cdc, FALSE)" if "has_cdc" in facts.columns else "FALSE"
        return facts.selectExpr(
            "version",
            f"{_TIMESTAMP} AS timestamp",
            f"{has_cdc} AS has_cdc",
            "coalesce(changes_nothing, FALSE) AS changes_nothing",
        )
