"""Plans of batches of changes: whole commits, up to a limit.

References
----------
PROTOCOL.md#change-data-files
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from sparkdelta.base.protocol.change_types import ChangeType
from sparkdelta.base.protocol.log_files import LogFile
from sparkdelta.base.storage.stream_source import ReadLimit
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.stream.admission import Admission
from sparkdelta.operations.stream.indexed_files import VERSION
from sparkdelta.operations.stream.stream_batches import (
    BatchPlan,
    BatchPlanner,
    ChangedCommits,
    QueryState,
    end_of,
)
from sparkdelta.operations.stream.stream_commits import between_offsets, changed_files, windows
from sparkdelta.operations.stream.stream_offset_rules import StreamOffset
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import readable_commits
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.commit_times import commit_times
from sparkdelta.table.scan.file_changes import CommitFileChanges, with_change_columns
from sparkdelta.table.scan.scan import Scan
from sparkdelta.table.scan.scan_request import CHANGE_KIND, partition_column
from sparkdelta.table.scan.split_workers import ONLY


class ChangePlanner(BatchPlanner):
    """A planner of the batches of a stream of changes.

    The changes of one commit are in one batch, so that an update has both of its rows there. Only a
    batch that delta-spark planned may have a part of a commit's changes.
    """

    __slots__ = ()

    @property
    def scan(self) -> Scan:
        return self._scan_of(CommitRange.read(self.opened.log.reader, ()))

    def plan(
        self,
        state: QueryState,
        begin: StreamOffset,
        limit: ReadLimit,
        finish: StreamOffset | None = None,
    ) -> BatchPlan:
        self._check_begin(state, begin)
        admission = self._admission(limit, finish)
        files: tuple[pa.Table, ...] = ()
        if begin.is_initial:
            parts = self._initial_parts(state, begin, admission, finish)
            initial = self._admitted(parts, begin, admission)
            if initial.end.is_initial or admission.is_full or initial.end == finish:
                return initial
            files, begin = initial.files, initial.end
        commits: list[LogFile] = []
        for window in windows(self._commits(state, begin, finish), max(admission.files, 1)):
            admitted = self._admitted_commits(window, admission)
            commits += admitted
            if len(admitted) < len(window) or admission.is_full:
                break
        end = end_of(commits[-1].version, begin, finish) if commits else begin
        return BatchPlan(files, end, ChangedCommits(begin, end, tuple(commits)))

    def _admitted_commits(self, window: list[LogFile], admission: Admission) -> list[LogFile]:
        """Return the first commits whose changes are admitted."""
        commits = CommitRange.read(self.opened.log.reader, window)
        problems = self._table_problems(commits)
        changed = changed_files(commits)
        sizes = {row["version"]: (row["files"], row["size"]) for row in changed.to_pylist()}
        for number, commit in enumerate(window):
            if admission.is_full or not admission.admit_all(*sizes.get(commit.version, (0, 0))):
                return window[:number]
            if commit.version in problems:
                if number:
                    return window[:number]
                raise problems[commit.version]
        return window

    def _listed_for_scan(self, files: pa.Table) -> pa.Table:
        """Return files of an initial snapshot as inserts of its version."""
        version = files[VERSION][0].as_py()
        moment = self._snapshot(version).timestamp
        of_commit = len(self.opened.configuration.partition_fields)
        texts = {
            CHANGE_KIND: ChangeType.INSERT.value,
            partition_column(of_commit): str(version),
            partition_column(of_commit + 1): (
                None if moment is None else moment.isoformat(sep=" ").replace("+00:00", "Z")
            ),
        }
        files = files.drop_columns([VERSION])
        for name, text in texts.items():
            column = pa.repeat(pa.scalar(text, pa.string()), files.num_rows)
            files = files.append_column(name, column)
        return files.append_column(ONLY, pa.nulls(files.num_rows, files["deletionVector"].type))

    def _changes(self, plan: BatchPlan) -> list[tuple[Scan, pa.Table | DataFrame]]:
        changed = plan.changed
        if changed is None or not changed.commits:
            return []
        commits = CommitRange.read(self.opened.log.reader, changed.commits)
        if changed.divides_a_commit:
            if not commits.is_local:
                version = changed.commits[-1].version
                raise DeltaError.of(
                    "DELTA_STREAM_OFFSET_WITHIN_CHANGES", path=self.opened.path, version=version
                )
            commits = between_offsets(commits, changed.begin, changed.end)
        scan = self._scan_of(commits).with_given_files(tracks_rows=False)
        assert scan.given_files is not None
        return [(scan, scan.given_files)]

    def _scan_of(self, commits: CommitRange) -> Scan:
        """Return the scan of the changes of some commits in order."""
        opened = self.opened
        in_commit = opened.configuration.in_commit_timestamps
        listed: list[LogFile] = []
        if commits.files:
            in_commit = opened.refresh().configuration.in_commit_timestamps
            listed = readable_commits(list_log_files(opened.log.store), path=opened.path)
        times = commit_times(listed, in_commit)
        configuration = with_change_columns(opened.configuration)
        times = times.filter(pc.is_in(times[VERSION], pa.array(c.version for c in commits.files)))
        return Scan(
            replace(opened.state, configuration=configuration, cached=None),
            None,
            None,
            is_streaming=True,
            changes=CommitFileChanges(
                commits=commits, times=times, exclude_regex=self.options.exclude_regex
            ),
        )
