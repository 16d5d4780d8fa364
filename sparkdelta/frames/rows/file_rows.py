"""Joins of the rows of data files with columns of their files from the log."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sparkdelta.exceptions import DataFileNotReadError
from sparkdelta.workers.deletion_vectors import chunk_rows, is_deleted, is_deleted_in_chunk

# Names that no column of a table has, as they are in the same rows.
FILE_URI = "sparkdelta:file_uri"
FILE_KEY = "sparkdelta:file_key"
ROW_INDEX = "sparkdelta:row_index"
CHUNKS = "sparkdelta:chunks"
ONLY_CHUNKS = "sparkdelta:only_chunks"
IS_DELETED = "sparkdelta:is_deleted"
_ROW_FILE_KEY = "sparkdelta:row_file_key"
_CHUNK_FILE_KEY = "sparkdelta:chunk_file_key"
_CHUNK = "sparkdelta:chunk"
_WORDS = "sparkdelta:words"


def path_of_uri(uri: Column) -> Column:
    """Convert the URI of a file in a scan to a decoded path, as `protocol.file_paths.plain_path`.

    Hadoop's URIs have single slashes, but may have an empty authority.
    """
    # url_decode decodes "+" to a space, as in forms.
    encoded = F.replace(uri, F.lit("+"), F.lit("%2B"))
    decoded = F.when(uri.contains("%"), F.url_decode(encoded)).otherwise(uri)
    return F.replace(decoded, F.lit(":///"), F.lit(":/"))


def uri_key(uri: Column) -> Column:
    """A key to join rows with files: a hash is cheaper to compare than a URI."""
    return F.xxhash64(uri)


def stamp_key(size_bytes: int, modification_time_ms: int) -> int:
    """A key of the file's size and modification time, which are constant in a batch of rows.

    Two files may have the same key.
    """
    key = (size_bytes << 20 ^ modification_time_ms * 1000) & (2**64 - 1)
    return key - 2**64 if key >= 2**63 else key


def with_file(rows: DataFrame, metadata: Column, *more: Column, by_stamp: bool) -> DataFrame:
    """The rows of a Parquet scan with the key of their file and their position in it.

    Parameters
    ----------
    metadata
        STRUCT<file_path STRING, file_size LONG, file_modification_time TIMESTAMP, row_index LONG>,
        the scan's hidden column.
    more
        Columns of the scan to keep besides.
    by_stamp
        True for `stamp_key` as the key, False for `uri_key`.
    """
    if by_stamp:
        moment = F.unix_micros(metadata["file_modification_time"])
        key = F.shiftleft(metadata["file_size"], 20).bitwiseXOR(moment)
    else:
        key = uri_key(metadata["file_path"])
    index = metadata["row_index"].alias(ROW_INDEX)
    return rows.select("*", key.alias(_ROW_FILE_KEY), index, *more)


def join_files(rows: DataFrame, files: DataFrame, *, has_bitmaps: bool) -> DataFrame:
    """Attach a file's columns to its rows, and leave out the rows that its bitmap deletes; with
    `has_bitmaps`, the others have IS_DELETED, which is false, for `except_on_deleted_rows`.

    A row whose file is not among `files` fails the query: its deletion vector and partition values
    are unknown.

    Parameters
    ----------
    rows
        As `with_file` gives them.
    files
        FILE_KEY LONG, unique unless the rows of a file are wanted several times; any other columns;
        CHUNKS ARRAY<ARRAY<LONG>> if `has_bitmaps`, and perhaps ONLY_CHUNKS of the only rows to
        keep. Small enough to be broadcast.
    """
    joined = rows.join(F.broadcast(files), F.col(_ROW_FILE_KEY) == F.col(FILE_KEY), "left")
    problem = F.lit(
        f"[{DataFileNotReadError.error_class}] A scan read a file that the log does not name: the "
        "storage spells its path otherwise than the log does. Please report this."
    )
    is_kept = F.lit(True)
    if has_bitmaps:
        deleted = is_deleted(F.col(CHUNKS), F.col(ROW_INDEX))
        if ONLY_CHUNKS in files.columns:
            is_other = ~is_deleted(F.col(ONLY_CHUNKS), F.col(ROW_INDEX))
            deleted |= F.col(ONLY_CHUNKS).isNotNull() & is_other
        joined = joined.select("*", deleted.alias(IS_DELETED))
        is_kept = ~F.col(IS_DELETED)
    return joined.filter(
        F.when(F.col(FILE_KEY).isNull(), F.raise_error(problem)).otherwise(is_kept)
    )


def without_deleted_rows(rows: DataFrame, bitmaps: DataFrame) -> DataFrame:
    """The rows that bitmaps do not delete, for bitmaps too large to be broadcast: rows and chunks
    are shuffled by file and chunk.

    Parameters
    ----------
    rows
        As `join_files` gives them.
    bitmaps
        FILE_KEY LONG and CHUNKS.
    """
    chunks = chunk_rows(bitmaps.select(F.col(FILE_KEY).alias("file_key"), CHUNKS), CHUNKS)
    chunks = chunks.select(
        F.col("file_key").alias(_CHUNK_FILE_KEY),
        F.col("chunk").cast("long").alias(_CHUNK),
        F.col("words").alias(_WORDS),
    )
    same_chunk = (F.col(FILE_KEY) == F.col(_CHUNK_FILE_KEY)) & (
        F.shiftright(ROW_INDEX, 16) == F.col(_CHUNK)
    )
    deleted = is_deleted_in_chunk(F.col(_WORDS), F.col(ROW_INDEX))
    # Without a hint Spark may broadcast them: it estimates their size before decoding.
    joined = rows.join(chunks.hint("shuffle_hash"), same_chunk, "left")
    is_deleted = F.coalesce(deleted, F.lit(False)).alias(IS_DELETED)
    return joined.select("*", is_deleted).filter(~F.col(IS_DELETED))


def except_on_deleted_rows(condition: str | Column) -> Column:
    """A condition that Spark does not evaluate on rows that a deletion vector deletes.

    Otherwise Spark evaluates it on the rows of the scan, before they are joined with bitmaps, and
    a condition that fails for a deleted row fails the query.

    Parameters
    ----------
    condition
        On rows that have IS_DELETED.
    """
    condition = F.expr(condition) if isinstance(condition, str) else condition
    # Spark rewrites a single WHEN to an AND, and pushes down its sides separately.
    return F.when(F.col(IS_DELETED), F.lit(False)).when(condition, F.lit(True)).otherwise(False)
