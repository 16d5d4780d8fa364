"""Plans of batches: the files that commits added, up to a limit.

References
----------
PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from sparkdelta.base.protocol.actions import Metadata
from sparkdelta.base.protocol.log_files import LogFile, LogFileKind, Version, listing_prefix
from sparkdelta.base.protocol.table_features import TableFeature, check_readable, is_supported
from sparkdelta.base.storage.stream_source import ReadLimit
from sparkdelta.exceptions import (
    DeltaError,
    MissingStreamSnapshotError,
    TruncatedTransactionLogError,
    VersionNotFoundError,
)
from sparkdelta.operations.stream.admission import Admission
from sparkdelta.operations.stream.indexed_files import (
    EXCLUDED,
    INDEX,
    VERSION,
    IndexedFiles,
    file_list_columns,
)
from sparkdelta.operations.stream.schema_check import schema_problem
from sparkdelta.operations.stream.stream_commits import (
    REMOVED,
    added_files,
    between,
    kinds_of_files,
    table_changes,
    windows,
)
from sparkdelta.operations.stream.stream_offset_rules import BEFORE_FILES, StreamOffset
from sparkdelta.operations.stream.stream_options import StreamOptions
from sparkdelta.table.listing.catalog_log import has_catalog
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.scan.scan import MAX_DRIVER_FILES, Scan
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot


@dataclass(frozen=True, slots=True)
class ChangedCommits:
    """The commits whose changes are read from one offset to another."""

    begin: StreamOffset
    end: StreamOffset
    commits: tuple[LogFile, ...]

    @property
    def divides_a_commit(self) -> bool:
        """True if an offset is between the files of a commit."""
        return max(self.begin.index, self.end.index) > BEFORE_FILES


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The files and commits that a batch reads.

    Attributes
    ----------
    files
        Files with the columns of `file_list_columns`, VERSION and INDEX.
    end
        The offset after all of it.
    changed
        The commits whose changes are read, in a stream of changes.
    """

    files: tuple[pa.Table, ...]
    end: StreamOffset
    changed: ChangedCommits | None = None


@dataclass(slots=True)
class QueryState:
    """The state of a running query.

    Attributes
    ----------
    begin
        The offset at which it began, if that is not in its checkpoint yet.
    ends_soon, last
        True if it reads only what there is at its first batch, and the last such version.
    planned
        The start and the plan of the last batch whose end was asked for.
    """

    begin: StreamOffset | None = None
    ends_soon: bool = False
    last: Version | None = None
    planned: tuple[StreamOffset | None, BatchPlan] | None = None
    is_checked: bool = False
    _indexed: IndexedFiles | None = None

    def indexed(self, version: Version, make: Callable[[], IndexedFiles]) -> IndexedFiles:
        """Return the files of a version, and keep them until another version's are needed."""
        if self._indexed is None or self._indexed.version != version:
            self.release()
            self._indexed = make()
        return self._indexed

    def release(self, before: Version | None = None) -> None:
        """Release the files of a version, if it is before another one."""
        if self._indexed is not None and (before is None or self._indexed.version < before):
            self._indexed.release()
            self._indexed = None


@dataclass(frozen=True, slots=True)
class _Part:
    """Some files in order, and the offset after them."""

    files: pa.Table | None
    after: StreamOffset


@dataclass(frozen=True, slots=True)
class BatchPlanner:
    """A planner of the batches of a stream of added rows."""

    opened: Snapshot
    options: StreamOptions

    @property
    def scan(self) -> Scan:
        """A scan of the rows of a batch, given their files."""
        return replace(self.opened.scan(), is_streaming=True)

    def _admission(self, limit: ReadLimit, finish: StreamOffset | None) -> Admission:
        """Return the admission of a new batch. The driver holds its files: a batch whose end is not
        known has at most `MAX_DRIVER_FILES`, unless ``maxFilesPerTrigger`` is larger.
        """
        most = max(MAX_DRIVER_FILES, self.options.max_files_per_trigger or 0)
        return Admission.of(limit, most=most if finish is None else _NO_LIMIT)

    def newest_version(self, begin: StreamOffset) -> Version:
        """Return the latest version, or the one before `begin` if no commit followed it."""
        commits = self._listed(begin.version)
        return commits[-1].version if commits else begin.version - 1

    def plan(
        self,
        state: QueryState,
        begin: StreamOffset,
        limit: ReadLimit,
        finish: StreamOffset | None = None,
    ) -> BatchPlan:
        """Plan the batch that begins at an offset.

        `finish` is the end of the batch, if that is known; then there is no limit. A version that
        the stream cannot read is a DeltaError.
        """
        self._check_begin(state, begin)
        admission = self._admission(limit, finish)
        return self._admitted(self._parts(state, begin, admission, finish), begin, admission)

    def _admitted(
        self, parts: Iterator[_Part], begin: StreamOffset, admission: Admission
    ) -> BatchPlan:
        """Return the plan of the files that are admitted."""
        files, end = [], begin
        for part in parts:
            if part.files is not None and part.files.num_rows:
                admitted = admission.admit(part.files["size"])
                files.append(part.files.slice(0, admitted))
                if admitted < part.files.num_rows:
                    if admitted:
                        end = self._after(begin, part.files, admitted - 1)
                    break
            end = part.after
            if admission.is_full:
                break
        return BatchPlan(tuple(files), end)

    def rows(self, plan: BatchPlan) -> DataFrame | None:
        """Return the rows of a batch; None if it reads no file."""
        frames = [scan.rows_of(files) for scan, files in self.scans(plan)]
        return reduce(DataFrame.unionAll, frames) if frames else None

    def scans(self, plan: BatchPlan) -> list[tuple[Scan, pa.Table | DataFrame]]:
        """Return the scans of a batch, each with its files."""
        scan = self.scan
        of_files = [(scan, self._listed_for_scan(files)) for files in _distinct(plan.files)]
        return [*of_files, *self._changes(plan)]

    def _listed_for_scan(self, files: pa.Table) -> pa.Table:
        """Return files with the columns that the scan needs."""
        return files.drop_columns([VERSION])

    def _changes(
        self,
        plan: BatchPlan,  # noqa: ARG002 - of rows, none
    ) -> list[tuple[Scan, pa.Table | DataFrame]]:
        """Return the scan of the changes of the commits of a plan, and its files."""
        return []

    def _after(self, begin: StreamOffset, files: pa.Table, number: int) -> StreamOffset:
        version, index = files[VERSION][number].as_py(), files[INDEX][number].as_py()
        is_initial = begin.is_initial and version == begin.version
        return StreamOffset(begin.table_id, version, index, is_initial)

    def _parts(
        self,
        state: QueryState,
        begin: StreamOffset,
        admission: Admission,
        finish: StreamOffset | None,
    ) -> Iterator[_Part]:
        """Yield the files after an offset, not many more at a time than are admitted."""
        if begin.is_initial:
            yield from self._initial_parts(state, begin, admission, finish)
            begin = StreamOffset(begin.table_id, begin.version + 1)
        commits = self._commits(state, begin, finish)
        for window in windows(commits, max(admission.files, 1)):
            window_commits = CommitRange.read(self.opened.log.reader, window)
            if window_commits.is_local:
                yield from self._local_parts(window_commits, begin, finish)
            else:
                yield from self._large_parts(state, window_commits, begin, admission, finish)

    def _initial_parts(
        self,
        state: QueryState,
        begin: StreamOffset,
        admission: Admission,
        finish: StreamOffset | None,
    ) -> Iterator[_Part]:
        files = state.indexed(
            begin.version,
            lambda: IndexedFiles.of_snapshot(self._snapshot(begin.version), self._columns),
        )
        return _indexed_parts(files, begin, admission, finish)

    def _local_parts(
        self, commits: CommitRange, begin: StreamOffset, finish: StreamOffset | None
    ) -> Iterator[_Part]:
        files = added_files(commits, self.opened.configuration, self.options.exclude_regex)
        is_added = pc.is_valid(files[INDEX])
        removed = files.filter(pc.invert(is_added))
        removed = removed.group_by(VERSION).aggregate([(REMOVED, "min")])
        removes = dict(
            zip(removed[VERSION].to_pylist(), removed[f"{REMOVED}_min"].to_pylist(), strict=True)
        )
        files = files.filter(is_added).drop_columns([REMOVED])
        adding = set(pc.unique(files[VERSION]).to_pylist())
        problems = self._table_problems(commits)
        for version, file in removes.items():
            problem = self._removal_problem(version, file, adds=version in adding)
            if problem is not None:
                problems.setdefault(version, problem)
        if self.options.skip_change_commits:
            files = files.filter(pc.invert(pc.is_in(files[VERSION], pa.array(removes, pa.int64()))))
        files = files.filter(between(files, begin, finish))
        bad = min(problems, default=None)
        if bad is not None:
            before = files.filter(pc.less(files[VERSION], bad))
            yield _Part(before, StreamOffset(begin.table_id, max(bad, begin.version)))
            raise problems[bad]
        yield _Part(files, end_of(commits.files[-1].version, begin, finish))

    def _large_parts(
        self,
        state: QueryState,
        commits: CommitRange,
        begin: StreamOffset,
        admission: Admission,
        finish: StreamOffset | None,
    ) -> Iterator[_Part]:
        """Yield the files of one commit that the driver cannot read."""
        [commit] = commits.files
        problems = self._table_problems(commits)
        adds, removed = kinds_of_files(commits)
        if removed is not None:
            problem = self._removal_problem(commit.version, removed, adds=adds)
            if problem is not None:
                problems.setdefault(commit.version, problem)
        if problems:
            raise problems[commit.version]
        if removed is not None and self.options.skip_change_commits:
            yield _Part(None, end_of(commit.version, begin, finish))
            return
        files = state.indexed(
            commit.version,
            lambda: IndexedFiles.of_commit(self.opened.log.reader, commit, self._columns),
        )
        at = (
            begin
            if begin.version == commit.version
            else replace(begin, version=commit.version, index=BEFORE_FILES)
        )
        yield from _indexed_parts(files, at, admission, finish)

    def _removal_problem(self, version: Version, file: str, *, adds: bool) -> DeltaError | None:
        """Return the error of a commit that removes data, unless the options allow it."""
        options, path = self.options, self.opened.path
        if options.ignore_changes or options.skip_change_commits:
            return None
        if adds:
            return DeltaError.of(
                "DELTA_SOURCE_TABLE_IGNORE_CHANGES", path=path, version=version, file=file
            )
        if options.ignore_deletes:
            return None
        return DeltaError.of("DELTA_SOURCE_IGNORE_DELETE", path=path, version=version, file=file)

    def _table_problems(self, commits: CommitRange) -> dict[Version, DeltaError]:
        """Return the errors of commits that change the table so that the stream must end."""
        problems: dict[Version, DeltaError] = {}
        for version, metadata, protocol in table_changes(commits):
            if protocol is not None:
                check_readable(
                    protocol, path=self.opened.path, has_catalog=has_catalog(self.opened.log.store)
                )
            problem = None if metadata is None else self._schema_problem(version, metadata)
            if problem is not None:
                problems.setdefault(version, problem)
        return problems

    def _check_begin(self, state: QueryState, begin: StreamOffset) -> None:
        """Compare the table where a query begins with the table that it reads, once."""
        if state.is_checked:
            return
        opened = self.opened.version
        version = begin.version if begin.version <= opened else begin.version - 1
        if version != opened:
            try:
                snapshot = self._snapshot(version)
            except MissingStreamSnapshotError:
                # Names of columns in files may have changed since, where columns may be mapped.
                if begin.is_initial or is_supported(
                    self.opened.protocol, TableFeature.COLUMN_MAPPING
                ):
                    raise
            else:
                problem = self._schema_problem(version, snapshot.metadata)
                if problem is not None:
                    raise problem
        state.is_checked = True

    def _snapshot(self, version: Version) -> Snapshot:
        opened = self.opened
        if version == opened.version:
            return opened
        try:
            return open_snapshot(opened.log.spark, opened.path, version=version)
        except (VersionNotFoundError, TruncatedTransactionLogError) as error:
            raise MissingStreamSnapshotError(path=opened.path, version=version) from error

    def _commits(
        self, state: QueryState, begin: StreamOffset, finish: StreamOffset | None
    ) -> list[LogFile]:
        """Return the commits to read, in order and without gaps."""
        path, first = self.opened.path, begin.version
        commits = self._listed(first)
        newest = commits[-1].version if commits else None
        last = state.last
        if finish is not None:
            last = finish.version if finish.index > BEFORE_FILES else finish.version - 1
            if first <= last and (newest is None or newest < last):
                raise DeltaError.of(
                    "DELTA_STREAMING_TRAILING_COMMIT_MISSING",
                    path=path,
                    version=last,
                    latest=newest,
                )
        commits = [commit for commit in commits if last is None or commit.version <= last]
        if self.options.fail_on_data_loss:
            for version, commit in enumerate(commits, first):
                if commit.version != version:
                    raise DeltaError.of(
                        "DELTA_MISSING_FILES_UNEXPECTED_VERSION",
                        path=path,
                        version=version,
                        earliest=commit.version,
                    )
        return commits

    def _listed(self, first: Version) -> list[LogFile]:
        """Return the commits from a version on, in order."""
        files = list_log_files(self.opened.log.store, listing_prefix(first))
        commits = [file for file in files if file.kind is LogFileKind.COMMIT]
        return sorted(commits, key=lambda commit: commit.version)

    @property
    def _columns(self) -> list[str]:
        return file_list_columns(
            self.opened.configuration, self.opened.path, self.options.exclude_regex
        )

    def _schema_problem(self, version: Version, metadata: Metadata) -> DeltaError | None:
        return schema_problem(self.opened, self.options, version, metadata)


_NO_LIMIT = 1 << 62


def _indexed_parts(
    files: IndexedFiles, begin: StreamOffset, admission: Admission, finish: StreamOffset | None
) -> Iterator[_Part]:
    """Yield the files of one version after an offset, as many as are admitted at a time."""
    at = begin
    while True:
        count = max(admission.files, 1)
        if finish is not None and finish.version == files.version:
            count = finish.index - at.index
        part = files.after(at.index, count + 1)
        if part.num_rows <= count and (finish is None or finish.version != files.version):
            break
        at = replace(at, index=at.index + count)
        yield _Part(part.slice(0, count), at)
        if at == finish:
            return
    yield _Part(part, StreamOffset(begin.table_id, files.version + 1))


def end_of(version: Version, begin: StreamOffset, finish: StreamOffset | None) -> StreamOffset:
    """Return the offset after all of a commit that is read."""
    if finish is not None and finish.version == version:
        return finish
    return StreamOffset(begin.table_id, version + 1)


def _distinct(parts: tuple[pa.Table, ...]) -> list[pa.Table]:
    """Return the files to read, in tables in which each file occurs once.

    Excluded files are left out. A file may have been added several times, with other deletion
    vectors.
    """
    if not parts:
        return []
    files = pa.concat_tables(parts, promote_options="default")
    files = files.filter(pc.invert(files[EXCLUDED])).drop_columns([EXCLUDED, INDEX])
    if not files.num_rows:
        return []
    times = files["file"].to_pandas()
    numbers = times.groupby(times).cumcount()
    return [files.filter(pa.array(numbers == number)) for number in range(int(numbers.max()) + 1)]
