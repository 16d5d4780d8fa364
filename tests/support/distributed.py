"""Scans by executors alone, however few files there are, and scans that list files at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from pyspark.sql import DataFrame

from sparkdelta.table.log.state import TableState
from sparkdelta.table.scan.distributed_scan import DistributedScan
from sparkdelta.table.scan.file_changes import FileChanges
from sparkdelta.table.scan.file_listing_modes import FileListingMode
from sparkdelta.table.scan.live_files import LiveFiles
from sparkdelta.table.scan.scan import Scan


@contextmanager
def distributed_scans(columns: Sequence[str] | None = None) -> Iterator[None]:
    """Make every scan of a block a distributed one.

    Parameters
    ----------
    columns
        Columns of the table to read at most.
    """
    rows = DistributedScan.rows

    def narrowed(scan: DistributedScan, files: DataFrame) -> DataFrame:
        wanted = None if columns is None else frozenset(columns)
        request = replace(scan.request, columns=wanted or scan.request.columns)
        return rows(replace(scan, request=request), files)

    with (
        listed_at_once(FileListingMode.MANY_FILES),
        patch.object(LiveFiles, "listed", lambda files, _: files.frame()),
        patch.object(FileChanges, "listed", _listed_by_executors),
        patch.object(DistributedScan, "rows", narrowed),
    ):
        yield


def _listed_by_executors(
    changes: FileChanges, state: TableState, skipping: Any, _: int, *, tracks_rows: bool
) -> DataFrame:
    return changes.frame(state, skipping, tracks_rows=tracks_rows)


@contextmanager
def listed_at_once(listing: FileListingMode = FileListingMode.NO_CALLS) -> Iterator[None]:
    """Make every scan of a block list its files before its query runs."""
    with patch.object(Scan, "listing", property(lambda _: listing)):
        yield
