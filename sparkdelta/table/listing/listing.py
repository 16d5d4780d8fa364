"""The store of a table's log, its listing, and the log segment of a version.

References
----------
PROTOCOL.md#last-checkpoint-file
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.arguments import checked_path
from sparkdelta.base.protocol.log_files import (
    LAST_CHECKPOINT,
    LogFile,
    Version,
    listing_prefix,
    parse_log_file,
    version_checksum_name,
)
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.checksum.version_checksum_rules import VersionChecksum, parse_version_checksum
from sparkdelta.table.listing.catalog_log import through_catalog
from sparkdelta.table.listing.last_checkpoint_rules import parse_last_checkpoint
from sparkdelta.table.listing.log_segment_rules import LogSegment, select_log_segment

_WITHOUT_CHECKSUM_FILES = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


def open_log(
    spark: SparkSession, path: str, hadoop_conf: Mapping[str, str] | None = None
) -> LogStore:
    """Return the store of a table's log, by the kind of session and the path's scheme."""
    return through_catalog(engine_of(spark).open_log(checked_path(path), hadoop_conf or {}))


def open_log_for_writing(
    spark: SparkSession, path: str, hadoop_conf: Mapping[str, str] | None = None
) -> LogStore:
    """Return the store of `open_log`, with the storage's own client if Hadoop cannot commit.

    Raises StoreNotWritableError, before anything is written, if there is no such client.
    """
    store = engine_of(spark).open_log_for_writing(checked_path(path), hadoop_conf or {})
    return through_catalog(store)


def read_options(store: LogStore, options: Mapping[str, str]) -> dict[str, str]:
    """Add to a caller's options the Hadoop settings of every read of a table's files.

    On local disks, Hadoop's own checksum files (``.name.crc``) are ignored: they stay behind when
    another program replaces a file, and would make a good file unreadable.
    """
    local = _WITHOUT_CHECKSUM_FILES if store.table_root.startswith("file:") else {}
    return {**local, **options}


def list_log_files(store: LogStore, start: str = "") -> list[LogFile]:
    """List the log's files by the protocol's names; other files are left out."""
    parsed = (
        parse_log_file(
            entry.name,
            size_bytes=entry.size_bytes,
            modification_time_ms=entry.modification_time_ms,
        )
        for entry in store.list_from(start)
    )
    return [file for file in parsed if file is not None]


def find_log_segment(
    store: LogStore, *, version: Version | None = None, without: Collection[str] = ()
) -> LogSegment:
    """Find the segment for a version, the latest by default.

    The listing starts at the checkpoint that `_last_checkpoint` names, if that leads to a segment
    with a checkpoint; a hint that is stale or wrong costs a second listing, never a wrong answer.
    """
    hint = read_hint(store)
    if hint is not None and (version is None or version >= hint):
        files = list_log_files(store, listing_prefix(hint))
        try:
            segment = select_log_segment(
                files, path=store.table_root, version=version, without=without
            )
        except DeltaError:
            pass  # the whole listing tells what is really wrong, if anything is
        else:
            if segment.checkpoint is not None:
                return segment
    files = list_log_files(store)
    return select_log_segment(files, path=store.table_root, version=version, without=without)


def read_hint(store: LogStore) -> Version | None:
    """Read the version in `_last_checkpoint`; return None if it is missing or invalid."""
    try:
        return parse_last_checkpoint(store.read([LAST_CHECKPOINT])[0])
    except FileNotFoundError:
        return None


def read_checksum(store: LogStore, version: Version) -> VersionChecksum | None:
    """Read the version checksum of a version; return None if it is missing or invalid."""
    try:
        return parse_version_checksum(store.read([version_checksum_name(version)])[0])
    except FileNotFoundError:
        return None
