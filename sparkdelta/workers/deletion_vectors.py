"""Deletion vectors: descriptors to bitmaps, one per file, and bitmaps to the rows that remain.

A bitmap is cut into chunks of 65,536 rows, each 1,024 words of 64 bits, so that one row costs one
hash look-up and one bit test in generated code, with no Python in the scan.

References
----------
PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from sparkdelta.protocol.deletion_vectors import DeletionVectorDescriptor, decode

BITMAPS = StructType(
    [
        StructField("file", StringType()),
        StructField("chunks", ArrayType(ArrayType(LongType()))),
    ]
)
"""file: URI of the data file; chunks: per 65,536 rows of it, 1,024 words whose bits are the deleted
rows, or null where none is deleted. Trailing chunks without a deleted row are left out."""


def decode_deletion_vectors(vectors: DataFrame) -> DataFrame:
    """The bitmap of every file, decoded on the executors and verified.

    Parameters
    ----------
    vectors
        content BINARY (of a deletion vector file, null for inline ones), and descriptors, an ARRAY
        of STRUCT<file STRING, storageType, pathOrInlineDv, offset, sizeInBytes, cardinality>: the
        data files whose deletion vectors that content holds.

    Returns
    -------
    DataFrame
        `BITMAPS`, one row per data file.

    Raises
    ------
    DeletionVectorChecksumError, DeletionVectorSizeError, DeletionVectorCardinalityError,
    DeletionVectorFormatError
        When the query runs, with the deletion vector's name.

    References
    ----------
    PROTOCOL.md#deletion-vector-file-storage-format
    """
    return vectors.select("content", "descriptors").mapInPandas(_decode, BITMAPS)


def _decode(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for batch in batches:
        for content, descriptors in zip(batch["content"], batch["descriptors"], strict=True):
            for fields in descriptors:
                offset = fields["offset"]
                descriptor = DeletionVectorDescriptor(
                    storage_type=fields["storageType"],
                    path_or_inline_dv=fields["pathOrInlineDv"],
                    offset=None if offset is None else int(offset),
                    size_in_bytes=int(fields["sizeInBytes"]),
                    cardinality=int(fields["cardinality"]),
                )
                words = decode(descriptor, content)
                chunks = [words.get(number) for number in range(max(words, default=-1) + 1)]
                yield pd.DataFrame({"file": [fields["file"]], "chunks": [chunks]})


def is_deleted(chunks: Column, row_index: Column) -> Column:
    """Whether a row is deleted by its file's bitmap.

    Parameters
    ----------
    chunks
        `BITMAPS.chunks` of the row's file; null where the file has no deletion vector.
    row_index
        LONG, the row's position in its file.
    """
    chunk = F.get(chunks, F.shiftright(row_index, 16).cast("int"))
    return F.coalesce(is_deleted_in_chunk(chunk, row_index), F.lit(False))


def is_deleted_in_chunk(words: Column, row_index: Column) -> Column:
    """Whether a row is deleted by the chunk of its file's bitmap that it falls into."""
    word = F.get(words, F.shiftright(row_index, 6).bitwiseAND(1023).cast("int"))
    return F.getbit(word, row_index.bitwiseAND(63).cast("int")) == 1


def chunk_rows(bitmaps: DataFrame, chunks: str) -> DataFrame:
    """Bitmaps cut into rows for a join by shuffle: file_key LONG, chunk INT, words ARRAY<LONG>.

    Only chunks that hold a deleted row are kept.

    Parameters
    ----------
    bitmaps
        file_key LONG, and the column named by `chunks`, as `BITMAPS.chunks`.
    """
    return bitmaps.select("file_key", F.posexplode(chunks).alias("chunk", "words")).filter(
        F.col("words").isNotNull()
    )
