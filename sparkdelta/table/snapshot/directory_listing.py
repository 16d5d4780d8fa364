"""Listing of all files and directories below a directory, by workers or the driver."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructField, StructType

from sparkdelta.base.spark.driver import count_rows
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.table.snapshot.file_listing_workers import (
    ENTRIES,
    ENTRIES_IN_ARROW,
    FileLister,
    listed_files,
)
from sparkdelta.table.snapshot.staging import Staging

FIRST_BUDGET, BUDGET = 10_000, 200_000
"""The number of entries that a task lists before it leaves the rest to others: in the first job,
and in later ones."""

_TASKS_PER_CORE = 4
_DRIVER_BATCHES = 20  # of a listing by the driver, in one staged file

_DIRECTORIES = StructType(
    [StructField("path", StringType()), StructField("modificationTime", LongType())]
)


def list_directory(
    lister: FileLister, stage: Staging, options: Mapping[str, str], *, by_workers: bool
) -> DataFrame:
    """Return the files and directories below the root of a lister.

    One task begins. Tasks that find many entries leave directories for the next job, until none
    is left.

    Parameters
    ----------
    by_workers
        False if the driver lists where it can, as on HDFS, for which workers would start JVMs.

    Returns
    -------
    DataFrame
        The columns of `ENTRIES` but isPending; staged.
    """
    on_driver = None if by_workers else engine_of(stage.spark).driver_files(options)
    if on_driver is not None:
        parts = _listed_by_driver(replace(lister, files=on_driver), stage)
    else:
        parts = _listed_by_workers(lister, stage)
    rows = [stage.read_parquet(part, ENTRIES)[0] for part in parts]
    return reduce(DataFrame.unionAll, rows).filter("NOT isPending").drop("isPending")


def _listed_by_workers(lister: FileLister, stage: Staging) -> Iterator[str]:
    spark = stage.spark
    directories = spark.createDataFrame([("", None)], _DIRECTORIES)
    count, budget = 1, FIRST_BUDGET
    most = engine_of(spark).parallelism * _TASKS_PER_CORE
    for number in itertools.count():
        part = f"entries-{number}"
        with worker_python(spark):
            entries = listed_files(directories.repartition(min(count, most)), lister, budget=budget)
        stage.write_parquet(entries, part, {})
        yield part
        rows, _ = stage.read_parquet(part, ENTRIES)
        directories, budget = rows.filter("isPending"), BUDGET
        count = count_rows(directories, what="number of directories to list")
        if not count:
            return


def _listed_by_driver(lister: FileLister, stage: Staging) -> Iterator[str]:
    batches = lister.list_below([("", None)], budget=sys.maxsize)
    for number in itertools.count():
        some = [*islice(batches, _DRIVER_BATCHES)]
        if number and not some:
            return
        table = pa.Table.from_batches(some, schema=ENTRIES_IN_ARROW)
        part = f"entries-{number}"
        stage.write_parquet(local_frame(stage.spark, table, ENTRIES), part, {})
        yield part
