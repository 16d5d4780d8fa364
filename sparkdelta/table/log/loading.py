"""Loading of a log segment: its protocol, its metaData and a reader of its other actions.

References
----------
PROTOCOL.md#state-validation, PROTOCOL.md#log-compaction-files, PROTOCOL.md#v2-spec,
PROTOCOL.md#sidecar-files, PROTOCOL.md#checkpoint-metadata-tags
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.protocol.actions import Metadata, Protocol, Sidecar
from sparkdelta.base.protocol.file_paths import decode_path
from sparkdelta.base.protocol.log_files import (
    SIDECAR_DIRECTORY,
    LogFileKind,
    Version,
    sidecar_name,
    version_checksum_name,
)
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.schema.action_schemas import ACTIONS, ADD, CHECKPOINT_METADATA
from sparkdelta.base.spark.driver import has_rows, read_row, read_rows
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.base.storage.recent_values import RecentValues
from sparkdelta.exceptions import (
    DeltaError,
    LogFileNotFoundError,
    MalformedLogFileError,
    StorageError,
)
from sparkdelta.table.checkpoint.checkpoint_footers import TIME_PRECISION_S, RecentCheckpoints
from sparkdelta.table.checkpoint.checkpoint_reader import (
    MAX_SIDECARS,
    SMALL_CHECKPOINT_BYTES,
    CheckpointReader,
)
from sparkdelta.table.checksum.version_checksum_rules import VersionChecksum
from sparkdelta.table.listing.catalog_log import has_catalog
from sparkdelta.table.listing.file_reader import LogFileReader
from sparkdelta.table.listing.line_reader import lines_that_name, total_size
from sparkdelta.table.listing.listing import find_log_segment, read_options
from sparkdelta.table.listing.log_segment_rules import LogSegment
from sparkdelta.table.listing.plain_actions import plain_actions
from sparkdelta.table.log.checksums import checksum_of_segment
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.log_reader import LogReader
from sparkdelta.table.log.reconciliation_frames import contradicting_commits
from sparkdelta.table.log.table_configuration import TableConfiguration

_LOGGER = logging.getLogger(__name__)

Action = TypeVar("Action")

_MAX_TABLE_ACTIONS = 100_000


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """A log segment's protocol, metadata and checksum, and a reader of its other actions."""

    log: LogReader
    protocol: Protocol
    metadata: Metadata
    checksum: VersionChecksum | None

    @property
    def configuration(self) -> TableConfiguration:
        """The validated configuration; raises an error for a table that cannot be read."""
        return TableConfiguration.validate(
            self.protocol,
            self.metadata,
            path=self.log.table_root,
            has_catalog=has_catalog(self.log.store),
        )

    @property
    def num_files(self) -> int | None:
        """The number of live files in the version checksum."""
        return None if self.checksum is None else self.checksum.num_files


def load_log(
    spark: SparkSession,
    store: LogStore,
    version: Version | None,
    options: Mapping[str, str],
    without: Collection[str] = (),
) -> LoadedLog:
    """Find and load the segment of a version, the latest by default.

    Files named in `without` are ignored.

    If a file of the segment vanishes meanwhile, as log cleanup does it, the log is listed once
    more. A checkpoint that cannot be read is then left out, if the rest of the log is enough.
    """
    with suppress(LogFileNotFoundError, _BrokenCheckpoint):
        return _load(spark, store, version, options, without)
    broken: dict[str, DeltaError] = {}
    while True:
        try:
            loaded = _load(spark, store, version, options, [*without, *broken])
        except _BrokenCheckpoint as error:
            version = error.version  # never an older one, where the checkpoint alone has the latest
            broken.update(dict.fromkeys(error.files, error.problem))
        except DeltaError:
            if not broken:
                raise
            raise next(iter(broken.values())) from None
        else:
            problems = {name: problem.message for name, problem in broken.items()}
            if problems:
                _LOGGER.warning("%s: ignored invalid log files: %s", store.table_root, problems)
            return replace(loaded, log=replace(loaded.log, broken=problems))


class _RecentLogs:
    """A cache of recently loaded logs, used as long as their files are listed as before.

    A replaced file shows a different size or time. Times are coarse, so files that were written
    just before they were read are not kept.
    """

    def __init__(self, size: int) -> None:
        self._logs: RecentValues[object, tuple[LogSegment, LoadedLog]] = RecentValues(size)

    def find(self, reader: LogFileReader, segment: LogSegment) -> LoadedLog | None:
        listed, loaded = self._logs.find(self._key(reader)) or (None, None)
        if loaded is None or listed != segment:
            return None
        return replace(loaded, log=loaded.log.with_store(reader.store))

    def keep(self, reader: LogFileReader, segment: LogSegment, loaded: LoadedLog) -> None:
        """Keep a log that was listed as a segment, unless its files were just written."""
        checkpoint, checksum = segment.checkpoint, segment.version_checksum
        files = [*segment.deltas, *(() if checkpoint is None else checkpoint.files)]
        times = [f.modification_time_ms for f in (*files, checksum) if f is not None]
        if 0 < min(times) <= max(times) < (time.time() - TIME_PRECISION_S) * 1000:
            self._logs.keep(self._key(reader), (segment, loaded))

    @staticmethod
    def _key(reader: LogFileReader) -> object:
        return reader.spark, reader.table_root, frozenset(reader.options.items())


_recent = _RecentLogs(8)


class _BrokenCheckpoint(Exception):  # noqa: N818 - it never leaves this module
    """An unreadable checkpoint of a segment."""

    def __init__(self, segment: LogSegment, problem: DeltaError) -> None:
        super().__init__(problem)
        assert segment.checkpoint is not None
        self.version = segment.version
        self.files = [file.name for file in segment.checkpoint.files]
        self.problem = problem


@contextmanager
def _broken_checkpoint(segment: LogSegment) -> Iterator[None]:
    """Raise storage errors as `_BrokenCheckpoint`."""
    try:
        yield
    except StorageError as error:
        raise _BrokenCheckpoint(segment, error) from error


def load_without_checkpoint(log: LogReader, problem: DeltaError) -> LogReader:
    """Load the log of the same version again, without its checkpoint.

    Raises `problem` if there is no checkpoint, or the version cannot be reconstructed without it.
    """
    if log.checkpoint is None:
        raise problem
    names = [file.name for file in log.checkpoint.checkpoint.files]
    broken = {**log.broken, **dict.fromkeys(names, problem.message)}
    try:
        loaded = load_log(log.spark, log.store, log.segment.version, log.options, [*broken])
    except DeltaError:
        raise problem from None
    _LOGGER.warning("%s: ignored invalid log files: %s", log.table_root, broken)
    return replace(loaded.log, broken={**broken, **loaded.log.broken})


def extend_log(
    log: LogReader, segment: LogSegment, protocol: Protocol, metadata: Metadata
) -> LoadedLog:
    """Load a segment that adds commits to the same checkpoint, reading only the new ones.

    Protocol and metadata are the earlier log's, unless the new commits have others.
    """
    extended = log.extended(segment)
    checksum = checksum_of_segment(log.store, segment, extended.commits)
    new_protocol, new_metadata = _in_checksum(checksum)
    if new_protocol is None or new_metadata is None:
        new_protocol, new_metadata = _in_commits(extended.commits.after(log.commits))
    return LoadedLog(extended, new_protocol or protocol, new_metadata or metadata, checksum)


def _load(
    spark: SparkSession,
    store: LogStore,
    version: Version | None,
    options: Mapping[str, str],
    without: Collection[str],
) -> LoadedLog:
    segment = find_log_segment(store, version=version, without=without)
    # Only now does every store know its root.
    reader = LogFileReader(spark, store, read_options(store, options))
    recent = None if without else _recent.find(reader, segment)
    if recent is not None:
        if recent.log.checkpoint is not None:
            with _broken_checkpoint(segment):
                _require_sidecars(recent.log.checkpoint, recent.log.sidecars)
        return recent
    listed, log = segment, LogReader.open(reader, segment)
    broken = [*without]
    while names := _broken_compactions(log.commits):
        broken += names
        segment = find_log_segment(store, version=segment.version, without=broken)
        log = LogReader.open(reader, segment)
    is_hidden = log.commits.has_empty_schema()
    checksum = None if is_hidden else checksum_of_segment(store, segment, log.commits)
    protocol, metadata = _in_checksum(checksum)
    if protocol is None or metadata is None:
        protocol, metadata = _in_commits(log.commits)
    if log.checkpoint is not None:
        with _broken_checkpoint(segment):
            log.checkpoint.checked_footers()
            if _must_be_read(log.checkpoint, log.commits, protocol, metadata):
                found = _own_actions(log.checkpoint)
                log = replace(log, checkpoint=_with_sidecars(log.checkpoint, found))
                from_dict = partial(Protocol.from_dict, path=store.table_root)
                protocol = protocol or _one(found.of_table, "protocol", from_dict)
                metadata = metadata or _one(found.of_table, "metaData", Metadata.from_dict)
            check_num_files(log, checksum)
    if protocol is None or metadata is None:
        what = "protocol" if protocol is None else "metadata"
        raise DeltaError.of(
            "DELTA_STATE_RECOVER_ERROR", what=what, version=segment.version, path=store.table_root
        )
    loaded = LoadedLog(log, protocol, metadata, checksum)
    if not without:
        _recent.keep(reader, listed, loaded)
    return loaded


def check_num_files(log: LogReader, checksum: VersionChecksum | None) -> None:
    """Compare the number of files in the checkpoint with the version checksum's.

    Both must be known without a Spark job. An unexplained difference is a MalformedLogFileError.
    """
    checkpoint, commits = log.checkpoint, log.commits
    if checkpoint is None or checksum is None or checksum.num_files is None:
        return
    num_adds = checkpoint.num_adds_by_metadata()
    if num_adds is None or not commits.is_local:
        return
    new, gone = commits.count_file_actions() if commits.files else (0, 0)
    if not num_adds - gone <= checksum.num_files <= num_adds + new:
        after = " and the commits after it" if commits.files else ""
        problem = (
            f"{checkpoint.checkpoint.files[0].name} has {num_adds} files; it{after} cannot give "
            f"the {checksum.num_files} files in {version_checksum_name(log.segment.version)}, "
            "which is to be deleted if it is the wrong one"
        )
        raise _malformed(checkpoint, problem)


def _broken_compactions(commits: CommitRange) -> list[str]:
    """Find compactions that hold an add and a remove of the same logical file."""
    compactions = [file for file in commits.files if file.kind is LogFileKind.COMPACTION]
    if not compactions:
        return []
    doubled = contradicting_commits(
        commits.actions("add", "remove"), table_root=commits.reader.table_root
    ).filter(F.col("version").isin([file.end_version for file in compactions]))
    rows = read_rows(
        doubled,
        what="invalid log compactions",
        bound=_MAX_TABLE_ACTIONS,
        version=commits.last_version,
    )
    versions = {row["version"] for row in rows}
    return [file.name for file in compactions if file.end_version in versions]


def _in_checksum(checksum: VersionChecksum | None) -> tuple[Protocol | None, Metadata | None]:
    if checksum is None or checksum.protocol is None or checksum.metadata is None:
        return None, None
    return checksum.protocol, checksum.metadata


def _in_commits(commits: CommitRange) -> tuple[Protocol | None, Metadata | None]:
    if not commits.may_hold("protocol", "metaData"):
        return None, None
    if commits.is_searched:
        actions = commits.read_table_actions(bound=_MAX_TABLE_ACTIONS)
    else:
        actions = [_newest_table_actions(commits)]
    actions.sort(key=lambda action: action["version"] or 0)
    from_dict = partial(Protocol.from_dict, path=commits.reader.table_root)
    return _one(actions, "protocol", from_dict), _one(actions, "metaData", Metadata.from_dict)


def _newest_table_actions(commits: CommitRange) -> dict[str, Any]:
    # One row instead of one per change, at the price of a shuffle of few rows.
    newest = (
        F.max_by(name, F.when(F.col(name).isNotNull(), F.col("version"))).alias(name)
        for name in ("protocol", "metaData")
    )
    row = read_row(
        commits.table_actions().groupBy().agg(F.max("version").alias("version"), *newest),
        what="protocol and metaData",
        version=commits.last_version,
    )
    return row.asDict(recursive=True)


def _must_be_read(
    reader: CheckpointReader,
    commits: CommitRange,
    protocol: Protocol | None,
    metadata: Metadata | None,
) -> bool:
    """Return True if the checkpoint's own files must be read: they may name sidecars.

    A classic name does not show the spec. Only a table with v2Checkpoint has V2 checkpoints, and
    the checkpoint's protocol is the table's unless a commit after it changed that.
    """
    kind = reader.checkpoint.kind
    if protocol is None or metadata is None or kind is LogFileKind.UUID_CHECKPOINT:
        return True
    if kind is LogFileKind.MULTI_PART_CHECKPOINT:
        return False
    return is_supported(protocol, TableFeature.V2_CHECKPOINT) or commits.may_hold("protocol")


_OF_CHECKPOINT = StructType(
    [
        *(ACTIONS[name] for name in ("protocol", "metaData", "sidecar")),
        StructField("checkpointMetadata", CHECKPOINT_METADATA),
    ]
)
_PATHS = StructType([StructField(name, StructType([ADD["path"]])) for name in ("add", "remove")])


@dataclass(frozen=True, slots=True)
class _OwnActions:
    """The actions of a checkpoint's own files that are not about data files.

    Attributes
    ----------
    of_table
        Its checkpointMetadata, protocol and metaData.
    """

    of_table: Sequence[Mapping[str, Any]]
    sidecars: tuple[Sidecar, ...]
    sidecar_schema: StructType | None


_recent_checkpoints = RecentCheckpoints[_OwnActions](4)
_MAX_KEPT_SIDECARS = 50_000  # of a checkpoint that is kept: some 50 MB


def _own_actions(reader: CheckpointReader) -> _OwnActions:
    store, checkpoint = reader.reader.store, reader.checkpoint
    kept = _recent_checkpoints.find(store, checkpoint)
    if kept is not None:
        return kept
    actions = _checkpoint_actions(reader)
    found = _OwnActions(
        of_table=[action for action in actions if action["sidecar"] is None],
        sidecars=tuple(_sidecar(action["sidecar"]) for action in actions if action["sidecar"]),
        sidecar_schema=_sidecar_schema(actions),
    )
    if 0 < len(found.sidecars) <= _MAX_KEPT_SIDECARS:
        _recent_checkpoints.keep(store, checkpoint, found)
    return found


def _checkpoint_actions(reader: CheckpointReader) -> Sequence[Mapping[str, Any]]:
    """Read the protocol, metaData, sidecar and checkpointMetadata of a checkpoint's own files."""
    checkpoint = reader.checkpoint
    actions, has_file_actions = _searched_actions(reader) or _queried_actions(reader)
    if has_file_actions and _has_sidecars(actions):
        name = checkpoint.files[0].name
        raise _malformed(reader, f"{name} names sidecars and has file actions beside them")
    for name in ("checkpointMetadata", "protocol", "metaData"):
        # Lines of JSON may be lost; Parquet is read whole or not at all.
        is_needed = checkpoint.is_json or name != "checkpointMetadata"
        if is_needed and all(action[name] is None for action in actions):
            raise _malformed(reader, f"{checkpoint.files[0].name} has no {name}")
    return actions


def _has_sidecars(actions: Sequence[Mapping[str, Any]]) -> bool:
    return any(action["sidecar"] is not None for action in actions)


_Found: TypeAlias = tuple[Sequence[Mapping[str, Any]], bool]
"""The actions of a checkpoint, and True if there are file actions beside sidecars."""


def _searched_actions(reader: CheckpointReader) -> _Found | None:
    """Find the actions in a JSON checkpoint on the driver; None if that needs Spark."""
    lines = reader.searched_lines()
    if lines is None:
        return None
    actions = plain_actions(lines_that_name(lines, *_OF_CHECKPOINT.names), _OF_CHECKPOINT)
    if actions is None:
        return None
    if not _has_sidecars(actions):
        return actions, False
    # There is none, unless a value in another action has such a name.
    of_files = plain_actions(lines_that_name(lines, *_PATHS.names), _PATHS)
    if of_files is None:
        return None
    return actions, any(action["add"] or action["remove"] for action in of_files)


def _queried_actions(reader: CheckpointReader) -> _Found:
    # Leaves, so that row groups of nothing but file actions are skipped by their statistics.
    is_wanted = (
        "protocol.minReaderVersion IS NOT NULL OR metaData.id IS NOT NULL "
        "OR sidecar.path IS NOT NULL OR checkpointMetadata.version IS NOT NULL"
    )
    fields, is_of_file = _OF_CHECKPOINT.fields, "add.path IS NOT NULL OR remove.path IS NOT NULL"
    is_small = total_size(reader.checkpoint.files) <= SMALL_CHECKPOINT_BYTES
    if is_small:
        fields, is_wanted = [*fields, *_PATHS.fields], f"{is_wanted} OR {is_of_file}"
    rows = read_rows(
        reader.actions(*fields).filter(is_wanted),
        what="protocol, metaData and sidecars",
        bound=MAX_SIDECARS,
        version=reader.version,
    )
    actions = [row.asDict(recursive=True) for row in rows]
    if is_small:
        return actions, any(action["add"] or action["remove"] for action in actions)
    if not _has_sidecars(actions):
        return actions, False
    of_files = reader.actions(*_PATHS.fields).filter(is_of_file)
    what = "first add or remove action of a checkpoint"
    return actions, has_rows(of_files, what=what, version=reader.version)


def _with_sidecars(reader: CheckpointReader, actions: _OwnActions) -> CheckpointReader:
    """Return the reader with the sidecars that a checkpoint names."""
    _require_sidecars(reader, actions.sidecars)
    if not actions.sidecars:
        return reader
    return replace(reader, sidecars=actions.sidecars, sidecar_schema=actions.sidecar_schema)


def _require_sidecars(reader: CheckpointReader, sidecars: Sequence[Sidecar]) -> None:
    """Check that the sidecars of a checkpoint are there, and complete."""
    if not sidecars:
        return
    store = reader.reader.store
    stored = {file.name: file.size_bytes for file in store.list_directory(SIDECAR_DIRECTORY)}
    for sidecar in sidecars:
        name = sidecar_name(sidecar.path)
        if sidecar.path not in stored:
            raise LogFileNotFoundError(path=store.table_root, version=reader.version, file=name)
        size = stored[sidecar.path]
        if not size:  # Spark passes over such a file
            raise _malformed(reader, f"{name} has no bytes")
        if size < sidecar.size_in_bytes:
            raise _malformed(reader, f"{name} has {size} of {sidecar.size_in_bytes} bytes")


def _malformed(checkpoint: CheckpointReader, problem: str) -> MalformedLogFileError:
    root = checkpoint.reader.table_root
    return MalformedLogFileError(path=root, version=checkpoint.version, problem=problem)


def _sidecar(fields: Mapping[str, Any]) -> Sidecar:
    """Parse the wire form. Sidecars are in the log's own directory: only the path's name counts."""
    sidecar = Sidecar.from_dict(fields)
    return replace(sidecar, path=decode_path(sidecar.path).rpartition("/")[2])


def _sidecar_schema(actions: Sequence[Mapping[str, Any]]) -> StructType | None:
    """Parse the columns of the sidecars in the checkpoint's tags; None if they are missing."""
    found = (action["checkpointMetadata"] for action in actions)
    metadata = next((each for each in found if each), None)
    text = None if metadata is None else (metadata["tags"] or {}).get("sidecarFileSchema")
    try:
        return None if text is None else StructType.fromJson(json.loads(text))
    except DeltaError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError, PySparkException):
        return None


def _one(
    actions: Sequence[Mapping[str, Any]],
    name: str,
    from_dict: Callable[[Mapping[str, Any]], Action],
) -> Action | None:
    """Return the last action of a kind; None if there is none."""
    found = (action[name] for action in reversed(actions))
    fields = next((each for each in found if each is not None), None)
    return None if fields is None else from_dict(fields)
