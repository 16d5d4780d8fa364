"""The contents of a log segment: its commits, and the checkpoint that they follow."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from sparkdelta.base.protocol.actions import Sidecar
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.table.checkpoint.checkpoint_reader import SMALL_CHECKPOINT_BYTES, CheckpointReader
from sparkdelta.table.listing.file_reader import LogFileReader
from sparkdelta.table.listing.log_segment_rules import LogSegment
from sparkdelta.table.log.commit_range import CommitRange


class FileLists:
    """Cache of the short file lists that were read last from a log segment, by all that they depend
    on.
    """

    MAX_LISTS = 8
    MAX_FILES = 1_000

    def __init__(self) -> None:
        self._lists: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable | None) -> pa.Table | None:
        with self._lock:
            return self._lists.get(key)

    def keep(self, key: Hashable | None, files: pa.Table) -> None:
        """Keep a list with a key, unless it is long."""
        if key is None or files.num_rows > self.MAX_FILES:
            return
        with self._lock:
            self._lists[key] = files
            while len(self._lists) > self.MAX_LISTS:
                self._lists.popitem(last=False)


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads one log segment.

    Attributes
    ----------
    commits
        `segment.deltas`.
    checkpoint
        That of the segment; None where there is none.
    broken
        The files of newer checkpoints that cannot be read, and why not.
    file_lists
        Lists of this segment's live files, of which the readers of the same log share one set.
    """

    segment: LogSegment
    commits: CommitRange
    checkpoint: CheckpointReader | None
    broken: Mapping[str, str] = field(default_factory=dict)
    file_lists: FileLists = field(default_factory=FileLists, repr=False, compare=False)

    @classmethod
    def open(cls, reader: LogFileReader, segment: LogSegment) -> LogReader:
        """Read the segment's commits, or arrange for the executors to do it."""
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
    def options(self) -> Mapping[str, str]:
        """The Hadoop settings that every read carries."""
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
        """The reader of a segment that has further commits on the same checkpoint; reads only
        them.
        """
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
        """The same reader with its DataFrames in another session."""
        reader = replace(self.reader, spark=spark)
        checkpoint = self.checkpoint and replace(self.checkpoint, reader=reader)
        return replace(self, commits=self.commits.in_session(reader), checkpoint=checkpoint)

    def with_options(self, options: Mapping[str, str]) -> LogReader:
        """The same reader with other settings for what it has yet to read."""
        return self._with(replace(self.reader, options=options))

    def with_store(self, store: LogStore) -> LogReader:
        """The same reader with another store of the same log."""
        return self._with(replace(self.reader, store=store))

    def _with(self, reader: LogFileReader) -> LogReader:
        commits = replace(self.commits, reader=reader)
        checkpoint = self.checkpoint and replace(self.checkpoint, reader=reader)
        return replace(self, commits=commits, checkpoint=checkpoint)

    def with_sidecars(self, chosen: Sequence[Sidecar]) -> LogReader:
        """The reader of the same segment whose checkpoint has these sidecars alone."""
        checkpoint = self.checkpoint and replace(self.checkpoint, chosen=tuple(chosen))
        return replace(self, checkpoint=checkpoint, file_lists=FileLists())

    def estimate_file_actions(self) -> tuple[int, int]:
        """The number of live files and of tombstones after replay, as exact as it can be known
        without replay: enough to lay them out. Costs a Spark job where the checkpoint's tags do not
        tell, and one where the driver does not search the commits.
        """
        adds, removes = (0, 0) if self.checkpoint is None else self.checkpoint.count_file_actions()
        new, gone = self.commits.count_file_actions()
        return max(adds + new - gone, new), removes + gone

    def totals_in_tags(self) -> tuple[int, int] | None:
        """The number of live files and their bytes; None unless the tags of all sidecars tell and
        no commit follows the checkpoint.
        """
        if self.checkpoint is None or self.has_commits:
            return None
        tags = self.checkpoint.tags
        if tags is None:
            return None
        sizes = [one.add_bytes for one in tags if one.add_bytes is not None]
        return (sum(one.num_adds for one in tags), sum(sizes)) if len(sizes) == len(tags) else None

    def size_at_most(self) -> int | None:
        """An upper bound of the live files' bytes; None if it takes more than the driver has."""
        in_tags = self.totals_in_tags()
        if in_tags is not None:
            return in_tags[1]
        return self.commits.added_bytes() if self.checkpoint is None else None

    @property
    def contents(self) -> str:
        """A text that identifies the contents of the log: its place, its files as listed, and their
        lines as far as the driver has them.
        """
        checkpoint = () if self.checkpoint is None else self.checkpoint.checkpoint.files
        files = (
            f"{file.name} {file.size_bytes} {file.modification_time_ms}"
            for file in (*checkpoint, *self.commits.files)
        )
        lines = self.commits.local_lines
        texts = () if lines is None else lines["line"].to_pylist()
        return "\n".join((self.store.table_root, *files, *texts))

    def vectors_at_most(self) -> int | None:
        """An upper bound of the live files' deletion vectors; None if it takes more than the driver
        has.
        """
        return self.commits.count_naming("deletionVector") if self.checkpoint is None else None
