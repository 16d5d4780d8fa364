"""New data files that are so few that the driver reads their footers itself: a Spark job would take
longer to start.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from sparkdelta.exceptions import StorageError
from sparkdelta.frames.footer_statistics import FooterReader
from sparkdelta.storage.worker_files import WorkerFiles

log = logging.getLogger(__name__)

MAX_DRIVER_FOOTERS = 16
"""Up to this many footers are read by the driver."""

_LISTED = pa.schema(
    [("path", pa.string()), ("length", pa.int64()), ("modificationTime", pa.int64())]
)


def describe_few_files(files: WorkerFiles, directory: str, reader: FooterReader) -> pa.Table | None:
    """The columns of `footer_statistics.ADDED` for the data files below a directory.

    None where they are more than MAX_DRIVER_FOOTERS, or where the driver has no way of its own to
    them.

    References
    ----------
    PROTOCOL.md#per-file-statistics
    """
    if not files.is_near(directory):
        return None
    try:
        return _described(files, directory, reader)
    except (OSError, StorageError) as error:
        log.info("Executors read the footers in %s; the driver cannot: %s", directory, error)
        return None


def _described(files: WorkerFiles, directory: str, reader: FooterReader) -> pa.Table | None:
    found = files.data_files(directory)
    if len(found) > MAX_DRIVER_FOOTERS:
        return None

    def described(part: list[tuple[str, int, int]]) -> list[pa.RecordBatch]:
        rows = [dict(zip(_LISTED.names, file, strict=True)) for file in part]
        return list(reader.read(iter([pa.RecordBatch.from_pylist(rows, schema=_LISTED)])))

    parts = [[file] for file in found] or [[]]
    with ThreadPoolExecutor(len(parts)) as threads:
        return pa.Table.from_batches([b for part in threads.map(described, parts) for b in part])
