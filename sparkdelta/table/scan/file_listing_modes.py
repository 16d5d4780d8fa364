"""The times at which a scan chooses its files, with the reasons."""

from __future__ import annotations

from enum import Enum


class FileListingMode(str, Enum):
    """The time at which a scan chooses its files, and why; the value is a sentence for reports."""

    LATE = "when a query runs, by all its filters"
    CONDITION = "at once, by `where`"
    NO_CALLS = "at once, as Spark calls no Python of the driver back"
    SENT = "when a query is sent, by `filter` and `where` next to the table"
    STREAM = "at once, as the rows are a batch of a stream"
    CHANGES = "at once, as a file may have several changes"
    ROW_TRACKING = "at once, as row ids of many files are asked for"
    CACHED = "at once, from the cache of the snapshot"
    MANY_FILES = "at once, as there may be more than `max_driver_files`"
    DELETION_VECTORS = "at once, as there may be many deletion vectors"
    ROW_READER = "at once, as Spark does not read so many columns in batches"
