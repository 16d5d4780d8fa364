"""Joins of the rows of data files with columns of their files from the log."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.table.vectors.deletion_vector_workers import (
    chunk_rows,
    is_deleted,
    is_deleted_in_chunk,
)

# Names that no column of a table has, as they are in the same rows.
FILE_URI = "__sparkdelta_file_uri"
FILE_KEY = "__sparkdelta_file_key"
ROW_INDEX = "__sparkdelta_row_index"
CHUNKS = "__sparkdelta_chunks"
ONLY_CHUNKS = "__sparkdelta_only_chunks"
IS_DELETED = "__sparkdelta_is_deleted"
_ROW_FILE_KEY = "__sparkdelta_row_file_key"
_CHUNK_FILE_KEY = "__sparkdelta_chunk_file_key"
_CHUNK = "__sparkdelta_chunk"
_WORDS = "__sparkdelta_words"


def path_of_uri(uri: str) -> str:
    """Return SQL that converts the URI of a file in a scan to a decoded path, as
    `base.protocol.file_paths.plain_path`.

    Hadoop's URIs have single slashes, but may have an empty authority.
    """
    # url_decode decodes "+" to a space, as in forms.
    decoded = f"url_decode(replace({uri}, '+', '%2B'))"
    decoded = f"CASE WHEN contains({uri}, '%') THEN {decoded} ELSE {uri} END"
    return f"replace({decoded}, ':///', ':/')"


def uri_key(uri: Column) -> Column:
    """Return a key to join rows with files: a hash is cheaper to compare than a URI."""
    return F.xxhash64(uri)


def stamp_key(size_bytes: int, modification_time_ms: int) -> int:
    """Return a key of the file's size and modification time, which are constant in a batch of rows.

    Two files may have the same key.
    """
    key = (size_bytes << 20 ^ modification_time_ms * 1000) & (2**64 - 1)
    return key - 2**64 if key >= 2**63 else key


def with_file(rows: DataFrame, metadata: Column, *more: Column, by_stamp: bool) -> DataFrame:
    """Return the rows of a Parquet scan with the key of their file and their position in it.

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
    is_of = F.expr(f"{quoted(_ROW_FILE_KEY)} = {quoted(FILE_KEY)}")
    joined = rows.join(F.broadcast(files), is_of, "left")
    problem = (
        "[DELTA_DATA_FILE_NOT_READ] A scan read a file that the log does not name: the "
        "storage spells its path otherwise than the log does. Please report this."
    )
    is_kept = "TRUE"
    if has_bitmaps:
        index, only = quoted(ROW_INDEX), quoted(ONLY_CHUNKS)
        deleted = is_deleted(quoted(CHUNKS), index)
        if ONLY_CHUNKS in files.columns:
            deleted += f" OR ({only} IS NOT NULL AND NOT {is_deleted(only, index)})"
        joined = joined.selectExpr("*", f"{deleted} AS {quoted(IS_DELETED)}")
        is_kept = f"NOT {quoted(IS_DELETED)}"
    failure = f"raise_error({text_literal(problem)})"
    return joined.filter(f"CASE WHEN {quoted(FILE_KEY)} IS NULL THEN {failure} ELSE {is_kept} END")


def without_deleted_rows(rows: DataFrame, bitmaps: DataFrame) -> DataFrame:
    """Return the rows that bitmaps do not delete, for bitmaps too large to be broadcast: rows and
    chunks are shuffled by file and chunk.

    Parameters
    ----------
    rows
        As `join_files` gives them.
    bitmaps
        FILE_KEY LONG and CHUNKS.
    """
    files = bitmaps.selectExpr(f"{quoted(FILE_KEY)} AS file_key", quoted(CHUNKS))
    chunks = chunk_rows(files, CHUNKS).selectExpr(
        f"file_key AS {quoted(_CHUNK_FILE_KEY)}",
        f"CAST(chunk AS BIGINT) AS {quoted(_CHUNK)}",
        f"words AS {quoted(_WORDS)}",
    )
    index = quoted(ROW_INDEX)
    same_chunk = F.expr(
        f"{quoted(FILE_KEY)} = {quoted(_CHUNK_FILE_KEY)} "
        f"AND shiftright({index}, 16) = {quoted(_CHUNK)}"
    )
    # Without a hint Spark may broadcast them: it estimates their size before decoding.
    joined = rows.join(chunks.hint("shuffle_hash"), same_chunk, "left")
    deleted = f"{is_deleted_in_chunk(quoted(_WORDS), index)} AS {quoted(IS_DELETED)}"
    return joined.selectExpr("*", deleted).filter(f"NOT {quoted(IS_DELETED)}")


def except_on_deleted_rows(condition: str | Column) -> Column:
    """Return a condition that Spark does not evaluate on rows that a deletion vector deletes.

    Otherwise Spark evaluates it on the rows of the scan, before they are joined with bitmaps, and
    a condition that fails for a deleted row fails the query.

    Parameters
    ----------
    condition
        On rows that have IS_DELETED.
    """
    is_true = expression_of(condition)
    # Spark rewrites a single WHEN to an AND, and pushes down its sides separately.
    return F.when(F.col(IS_DELETED), F.lit(False)).when(is_true, F.lit(True)).otherwise(False)


def expression_of(given: str | Column) -> Column:
    """Return a user's expression, SQL text or a Column, as a Column."""
    return F.expr(given) if isinstance(given, str) else given
