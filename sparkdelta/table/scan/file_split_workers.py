"""Data files cut into splits, spread over tasks, without a list of them on the driver.

References
----------
PROTOCOL.md#data-files
"""

from __future__ import annotations

import math

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

SPLIT_BYTES = 64 * 1024 * 1024
"""The size of a split in bytes, and the target size of a task: about a compressed row group."""

OPENING_BYTES = 256 * 1024
"""The bytes that opening a file counts as, so that no task gets too many small files."""

MAX_SPLITS = 10_000
"""The maximum number of splits of a file; very large files have longer splits."""

START, END = "__sparkdelta_start", "__sparkdelta_end"


def scan_cost(size: Column) -> Column:
    """Return the cost of reading files: an aggregate (DOUBLE, bytes) over their sizes."""
    cost = F.greatest(size, F.lit(0)).cast("double") + OPENING_BYTES
    return F.coalesce(F.sum(cost), F.lit(0.0))


def task_count(cost: float, *, split_bytes: int = SPLIT_BYTES) -> int:
    """Return the number of tasks for a cost of `scan_cost`."""
    return max(1, min(math.ceil(cost / split_bytes), _MAX_TASKS))


_MAX_TASKS = 100_000
_MAX_SIZE = 1 << 62  # the sum with a split's size must not overflow


def file_splits(files: DataFrame, *, tasks: int, split_bytes: int = SPLIT_BYTES) -> DataFrame:
    """Return a row for every split of every file, spread over tasks.

    They are spread round-robin: as most are of one size, tasks get about the same bytes.

    Parameters
    ----------
    files
        size LONG, the file's bytes as the log says, and any other columns.
    tasks
        The number of partitions.

    Returns
    -------
    DataFrame
        The columns of `files`, then START LONG and END LONG: where a row group must begin to be
        part of the split; END is excluded, and null in the last split of a file, so that the splits
        hold the whole file whatever its size is.
    """
    size = F.least(F.greatest(F.coalesce(F.col("size"), F.lit(1)), F.lit(1)), F.lit(_MAX_SIZE))
    step = F.greatest(F.lit(split_bytes), F.ceil(size / MAX_SPLITS)).cast("long")
    starts = F.sequence(F.lit(0).cast("long"), size - 1, step)
    end = F.col(START) + step
    return (
        files.select("*", F.explode(starts).alias(START))
        .select("*", F.when(end < size, end).alias(END))
        .repartition(tasks)
    )
