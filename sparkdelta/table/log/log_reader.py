"""A reader of a log segment: of its commits, and of the checkpoint that they follow."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from sparkdelta.base.protocol.actions import Sidecar
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.base.storage.recent_values import RecentValues
from sparkdelta.table.checkpoint.checkpoint_reader import SMALL_CHECKPOINT_BYTES, CheckpointReader
from sparkdelta.table.listing.file_reader import LogFileReader
from sparkdelta.table.listing.log_segment_rules import LogSegment
from sparkdelta.table.log.commit_range import CommitRange


class FileLists(RecentValues[Hashable, pa.Table]):
    """A cache of the short lists of files that were last read from a log segment."""

    MAX_LISTS = 8
    MAX_FILES = 1_000

    def __init__(self) -> None:
        super().__init__(self.MAX_LISTS)

    def keep(self, key: Hashable, files: pa.Table) -> None:
        """Keep a list with a key, unless it is long."""
        if files.num_rows <= self.MAX_FILES:
            super().keep(key, files)


@dataclass(frozen=True, slots=True)
class LogReader:
    """A reader of one log segment.

    Attributes
    ----------
    commits
        The commits and compactions in `segment.deltas`.
    broken
        The problems of newer checkpoints that cannot be read, by file name.
    file_lists
        Lists of this segment's live files; readers of the same log share them.
    """

    segment: LogSegment
    commits: CommitRange
    checkpoint: CheckpointReader | None
    broken: Mapping[str, str] = field(default_factory=dict)
    file_lists: FileLists = field(default_factory=FileLists, repr=False, compare=False)

    @classmethod
    def open(cls, reader: LogFileReader, segment: LogSegment) -> LogReader:
        """Read the segment's commits, or plan that executors read them."""
        commits = CommitRange.read(reader, segment.deltas)
        if segment.checkpoint is None:
            return cls(segment, commits, None)
        return cls(segment, commits, CheckpointReader(reader, segment.checkpoint, segment.version))

    @property
    def reader(self) -> LogFileReader:
        """The reader of any files of this log."""
        return self.commits.reader

    @property
    def spark(self) -> SparkSession:
        return self.reader.spark

    @property
    def store(self) -> LogStore:
        return self.reader.store

    @property
    def table_root(self) -> str:
        return self.store.table_root

    @property
    def options(self) -> Mapping[str, str]:
        """The Hadoop settings of every read."""
        return self.reader.options

    @property
    def sidecars(self) -> tuple[Sidecar, ...]:
        """The sidecar files of the checkpoint, by their names alone."""
        return () if self.checkpoint is None else self.checkpoint.sidecars

    @property
    def has_commits(self) -> bool:
        return bool(self.commits.files)

    @property
    def is_small(self) -> bool:
        """True if the log is so small that one task reads it faster than several."""
        stored = 0 if self.checkpoint is None else self.checkpoint.size_bytes
        return self.commits.is_local and stored <= SMALL_CHECKPOINT_BYTES

    def extended(self, segment: LogSegment) -> LogReader:
        """Return the reader of a segment with more commits; only these are read."""
        new = segment.deltas[len(self.commits.files) :]
        checkpoint = self.checkpoint and replace(self.checkpoint, version=segment.version)
        return replace(
            self,
            segment=segment,
            commits=self.commits.extended(new),
            checkpoint=checkpoint,
            file_lists=FileLists(),
        )

    def in_session(self, spark: SparkSession) -> LogReader:
        """Return the same reader with its DataFrames in another session."""
        reader = replace(self.reader, spark=spark)
        checkpoint = self.checkpoint and replace(self.checkpoint, reader=reader)
        return replace(self, commits=self.commits.in_session(reader), checkpoint=checkpoint)

    def with_options(self, options: Mapping[str, str]) -> LogReader:
        """Return the same reader with other settings for later reads."""
        return self._with(replace(self.reader, options=options))

    def with_store(self, store: LogStore) -> LogReader:
        """Return the same reader with another store of the same log."""
        return self._with(replace(self.reader, store=store))

    def _with(self, reader: LogFileReader) -> LogReader:
        commits = replace(self.commits, reader=reader)
        checkpoint = self.checkpoint and replace(self.checkpoint, reader=reader)
        return replace(self, commits=commits, checkpoint=checkpoint)

    def with_sidecars(self, chosen: Sequence[Sidecar]) -> LogReader:
        """Return the reader of the same segment with only these sidecars of the checkpoint."""
        checkpoint = self.checkpoint and replace(self.checkpoint, chosen=tuple(chosen))
        return replace(self, checkpoint=checkpoint, file_lists=FileLists())

    def estimate_file_actions(self) -> tuple[int, int]:
        """Estimate the numbers of live files and tombstones without replay: enough to lay them out.

        Costs a Spark job if the checkpoint's tags do not have its numbers, and one if the driver
        does not search the commits.
        """
        adds, removes = (0, 0) if self.checkpoint is None else self.checkpoint.count_file_actions()
        new, gone = self.commits.count_file_actions()
        return max(adds + new - gone, new), removes + gone

    def totals_in_tags(self) -> tuple[int, int] | None:
        """Return the number of live files and their bytes, by the tags of all sidecars.

        None if a sidecar lacks the tags, or a commit follows the checkpoint.
        """
        if self.checkpoint is None or self.has_commits:
            return None
        tags = self.checkpoint.tags
        if tags is None:
            return None
        sizes = [one.add_bytes for one in tags if one.add_bytes is not None]
        return (sum(one.num_adds for one in tags), sum(sizes)) if len(sizes) == len(tags) else None

    def size_at_most(self) -> int | None:
        """Return an upper bound of the live files' bytes; None if the driver has none."""
        in_tags = self.totals_in_tags()
        if in_tags is not None:
            return in_tags[1]
        return self.commits.added_bytes() if self.checkpoint is None else None

    @property
    def contents(self) -> str:
        """A text that identifies the log's contents: its root, files and local lines."""
        checkpoint = () if self.checkpoint is None else self.checkpoint.checkpoint.files
        files = (
            f"{file.name} {file.size_bytes} {file.modification_time_ms}"
            for file in (*checkpoint, *self.commits.files)
        )
        lines = self.commits.local_lines
        texts = () if lines is None else lines["line"].to_pylist()
        return "\n".join((self.table_root, *files, *texts))

    def vectors_at_most(self) -> int | None:
        """Return an upper bound of the deletion vectors; None if the driver has none."""
        return self.commits.count_naming("deletionVector") if self.checkpoint is None else None
