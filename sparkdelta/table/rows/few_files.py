"""Descriptions of a few new data files, by the driver: a Spark job would take longer to start.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from sparkdelta.base.storage.worker_files import StoredFiles
from sparkdelta.exceptions import StorageError
from sparkdelta.table.rows.footer_statistics_workers import LISTED, FooterReader

_LOGGER = logging.getLogger(__name__)

MAX_DRIVER_FOOTERS = 16
"""Up to this many footers are read by the driver."""

_THREADS = 16


def describe_few_files(
    files: StoredFiles, directory: str, reader: FooterReader, most: int
) -> pa.Table | None:
    """The columns of `footer_statistics.ADDED` for the data files below a directory.

    None if they are more than `most`, or if the driver cannot reach them.
    """
    try:
        found = files.data_files(directory)
        if len(found) > most:
            return None
        return _described(found, replace(reader, files=files))
    except (OSError, StorageError) as error:
        _LOGGER.info("Executors read the footers in %s; the driver cannot: %s", directory, error)
        return None


def _described(found: Sequence[tuple[str, int, int]], reader: FooterReader) -> pa.Table:
    def described(part: list[tuple[str, int, int]]) -> list[pa.RecordBatch]:
        rows = [dict(zip(LISTED.names, file, strict=True)) for file in part]
        return list(reader.read(iter([pa.RecordBatch.from_pylist(rows, schema=LISTED)])))

    parts = [[file] for file in found] or [[]]
    with ThreadPoolExecutor(min(len(parts), _THREADS)) as threads:
        return pa.Table.from_batches([b for part in threads.map(described, parts) for b in part])
