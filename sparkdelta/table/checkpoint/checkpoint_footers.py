"""Footers of a checkpoint's own Parquet files.

They are read before the checkpoint is relied on, so that a damaged one is found while commits can
take its place.

References
----------
PROTOCOL.md#checkpoint-schema
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from sparkdelta.base.parquet.footer_rules import TAIL_BYTES
from sparkdelta.base.protocol.column_names import stored_name_key
from sparkdelta.base.protocol.log_files import LogFile
from sparkdelta.base.schema.action_schemas import ACTIONS
from sparkdelta.base.storage.log_store import LogStore, in_parallel
from sparkdelta.base.storage.recent_values import RecentValues
from sparkdelta.exceptions import LogFileNotFoundError, MalformedLogFileError
from sparkdelta.table.listing.log_segment_rules import Checkpoint

TIME_PRECISION_S = 2.0
"""Modification times are coarse: a file that was written within this time of being read may have
been replaced since."""

_FIRST_BYTES = 1 << 16
_ACTIONS = {stored_name_key(name) for name in ACTIONS.names}
_IN_EVERY_CHECKPOINT = ("protocol", "metaData")
_PATH = "add.path"


@dataclass(frozen=True, slots=True)
class CheckpointFooters:
    """The contents of a checkpoint's own files, by their footers.

    Attributes
    ----------
    columns
        The names of the columns of each file, in lower case.
    num_adds
        The number of add actions; None where the footers do not count them.
    """

    columns: tuple[frozenset[str], ...]
    num_adds: int | None = None

    def check(self, store: LogStore, checkpoint: Checkpoint) -> None:
        """Check that each file has actions, and that some file has protocol and metaData."""
        for file, names in zip(checkpoint.files, self.columns, strict=True):
            if names.isdisjoint(_ACTIONS):
                raise _malformed(store, file, "has no column of an action")
        for name in _IN_EVERY_CHECKPOINT:
            if not any(stored_name_key(name) in names for names in self.columns):
                raise _malformed(store, checkpoint.files[0], f"has no {name}")


class RecentFooters:
    """A cache of the checkpoints whose footers were read last.

    Most versions of a table have the checkpoint of the previous version.
    """

    def __init__(self) -> None:
        self._footers: RecentValues[object, CheckpointFooters] = RecentValues(64)

    def find(self, store: LogStore, checkpoint: Checkpoint) -> CheckpointFooters | None:
        return self._footers.find((store.table_root, checkpoint.files))

    def keep(self, store: LogStore, checkpoint: Checkpoint, footers: CheckpointFooters) -> None:
        """Keep the footers of a checkpoint, unless its files were just written."""
        newest = max(file.modification_time_ms for file in checkpoint.files)
        if newest < (time.time() - TIME_PRECISION_S) * 1000:
            self._footers.keep((store.table_root, checkpoint.files), footers)


def read_footers(store: LogStore, checkpoint: Checkpoint) -> CheckpointFooters:
    """Read the footers of a checkpoint's own files, which are Parquet, without a Spark job."""
    columns, counts = [], []
    for metadata in in_parallel(lambda file: _metadata(store, file), checkpoint.files):
        leaves = [metadata.schema.column(n).path.lower() for n in range(metadata.num_columns)]
        columns.append(frozenset(leaf.partition(".")[0] for leaf in leaves))
        counts.append(_num_adds(metadata, leaves))
    numbers = [count for count in counts if count is not None]
    return CheckpointFooters(tuple(columns), sum(numbers) if len(numbers) == len(counts) else None)


def _metadata(store: LogStore, file: LogFile) -> pq.FileMetaData:
    try:
        tail = store.read_from(file.name, max(0, file.size_bytes - _FIRST_BYTES))
        size = int.from_bytes(tail[-TAIL_BYTES:-4], "little") + TAIL_BYTES
        if len(tail) < size <= file.size_bytes:
            tail = store.read_from(file.name, file.size_bytes - size)
    except FileNotFoundError as error:
        root, name = store.table_root, str(error.filename)
        raise LogFileNotFoundError(path=root, version=file.version, file=name) from error
    try:
        return pq.read_metadata(pa.BufferReader(tail))
    except (pa.ArrowException, OSError) as error:
        problem = str(error).partition("\n")[0].rstrip(".")
        raise _malformed(store, file, f"is not a complete Parquet file: {problem}") from error


def _num_adds(metadata: pq.FileMetaData, leaves: Sequence[str]) -> int | None:
    """Count the rows with an add; return None if the statistics have no count of nulls."""
    if _PATH not in leaves:
        return 0
    count, column = 0, leaves.index(_PATH)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if not group.num_rows:
            continue
        statistics = group.column(column).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        count += group.num_rows - statistics.null_count
    return count


def _malformed(store: LogStore, file: LogFile, problem: str) -> MalformedLogFileError:
    return MalformedLogFileError(
        path=store.table_root, version=file.version, problem=f"{file.name} {problem}"
    )
