"""Reads of touched files: the rows that stay, or the deleted rows alone.

References
----------
PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.schema.action_schemas import ADD as ADD_TYPE
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.schema.sql_text import from_json_text
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.table.rows.modified_file_actions import adds_before
from sparkdelta.table.scan.known_files import known_files
from sparkdelta.table.scan.scan import MAX_DRIVER_FILES, Scan
from sparkdelta.table.scan.scan_request import (
    CHANGE_KIND,
    FileList,
    MetadataColumn,
    partition_column,
    row_id_columns,
)
from sparkdelta.table.scan.split_workers import ONLY
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.vectors.deletion_vector_writing_workers import (
    ADD,
    NUM_RECORDS,
    OUTCOME,
    TOUCHED,
    VECTOR,
    Outcome,
)


def rewritten_files(
    snapshot: Snapshot, touched: pa.Table | DataFrame, count: int
) -> FileList | None:
    """Return the files to rewrite with all deleted rows in their deletion vectors; None if there
    are none.

    A DataFrame if they are too many for the driver, or if their bitmaps are too large for every
    executor: the rows that stay are not shuffled.

    Parameters
    ----------
    touched
        `TOUCHED`; a table if the driver knows them.
    count
        The number of files to rewrite.
    """
    if not count:
        return None
    if isinstance(touched, pa.Table):
        rewritten = touched.filter(pc.equal(touched[OUTCOME], Outcome.REWRITTEN.value))
        return snapshot.scan().not_shuffled(_known_files(snapshot, rewritten))
    rewritten = touched.filter(F.col(OUTCOME) == Outcome.REWRITTEN.value)
    files = _files(snapshot, rewritten, F.col(VECTOR).alias("deletionVector"))
    if count > MAX_DRIVER_FILES:
        return files
    known = read_table(
        files, what="files to rewrite", bound=MAX_DRIVER_FILES, version=snapshot.version
    )
    return snapshot.scan().not_shuffled(known)


def deleted_rows(
    snapshot: Snapshot,
    touched: pa.Table | DataFrame,
    count: int,
    *metadata_columns: MetadataColumn,
    scan: Scan | None = None,
) -> DataFrame:
    """Return the deleted rows, lazily: bitmaps select them, not the condition once more.

    Parameters
    ----------
    touched
        `TOUCHED`; a table if the driver knows them.
    count
        The number of files.
    scan
        Of these rows; by default, of the whole table.
    """
    if isinstance(touched, pa.Table):
        touched = local_frame(snapshot.log.spark, touched, TOUCHED)
    scan = (snapshot.scan() if scan is None else scan).with_changes()
    return scan.rows_of(_files_of_deleted_rows(snapshot, touched, count), *metadata_columns)


def _files_of_deleted_rows(snapshot: Snapshot, touched: DataFrame, count: int) -> FileList:
    """Return the files of a scan with changes."""
    before = F.col(f"{ADD}.deletionVector")
    files = _files(
        snapshot,
        touched,
        F.when(before["storageType"].isNotNull(), before).alias("deletionVector"),
        F.col(VECTOR).alias(ONLY),  # none if all rows are deleted
        F.lit(None).cast("string").alias(CHANGE_KIND),
    )
    if count > MAX_DRIVER_FILES:
        return files
    return read_table(
        files, what="files of deleted rows", bound=MAX_DRIVER_FILES, version=snapshot.version
    )


def _known_files(snapshot: Snapshot, touched: pa.Table) -> pa.Table:
    """Return the columns that scans need of each file, with all its deleted rows in its vector."""
    rows = touched.select([VECTOR, NUM_RECORDS]).to_pylist()
    return known_files(
        [
            replace(
                add,
                deletion_vector=DeletionVectorDescriptor.from_dict(row[VECTOR]),
                stats=json.dumps({NUM_RECORDS: row[NUM_RECORDS]}),
            )
            for add, row in zip(adds_before(touched), rows, strict=True)
        ],
        snapshot.configuration,
        snapshot.path,
        has_vectors=True,
        tracks_rows=True,
    )


def _files(snapshot: Snapshot, touched: DataFrame, *vectors: Column) -> DataFrame:
    """Return the columns that scans need of each file, see `NativeScan.rows`."""
    add = F.expr(from_json_text(ADD, ADD_TYPE)).alias(ADD)
    file = absolute_path(f"{ADD}.path", table_root=snapshot.path)
    values = (
        F.try_element_at(f"{ADD}.partitionValues", F.lit(key)).alias(partition_column(number))
        for number, (key, _) in enumerate(snapshot.configuration.partition_keys)
    )
    return touched.select(add, VECTOR, NUM_RECORDS).select(
        F.expr(file).alias("file"),
        f"{ADD}.size",
        *values,
        *vectors,
        NUM_RECORDS,
        *map(F.expr, row_id_columns(ADD)),
    )
