"""Deletion vectors: decoding to one bitmap per file, and filtering of deleted rows.

A bitmap is divided into chunks of 65,536 rows, each with 1,024 words of 64 bits. Testing a row
takes one hash lookup and one bit test in generated code, without Python in the scan.

References
----------
PROTOCOL.md#deletion-vectors, PROTOCOL.md#deletion-vector-file-storage-format
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor, decode
from sparkdelta.base.protocol.roaring_bitmaps import PACKED_BITS, Chunks
from sparkdelta.base.storage.worker_files import StoredFiles

if TYPE_CHECKING:
    import pandas as pd

BITMAPS = StructType(
    [
        StructField("file", StringType()),
        StructField("chunks", ArrayType(ArrayType(LongType()))),
    ]
)
"""file: URI of the data file; chunks: for each 65,536 rows, 1,024 words with a bit per row, set for
deleted rows; null if none is deleted. Trailing chunks without deleted rows are omitted."""


def decode_deletion_vectors(vectors: DataFrame) -> DataFrame:
    """Decode and verify the deletion vector of each file on the executors: rows of `BITMAPS`.

    Parameters
    ----------
    vectors
        content BINARY (the deletion vector file; null for inline deletion vectors), descriptors
        ARRAY<STRUCT<file STRING, storageType STRING, pathOrInlineDv STRING, offset, sizeInBytes,
        cardinality>> (the data files with deletion vectors in `content`).
    """
    return vectors.select("content", "descriptors").mapInPandas(_decode, BITMAPS)


def _decode(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    import pandas as pd  # takes a while, and only workers need it

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


def read_deletion_vector(
    descriptor: DeletionVectorDescriptor, *, files: StoredFiles, table_root: str
) -> Chunks:
    """Read and verify one deletion vector, and no other of its file."""
    path = descriptor.absolute_path(table_root)
    if path is None:
        return decode(descriptor)
    with files.open(path) as source:
        size = source.size()
        start = descriptor.offset or 1
        if not (0 < start <= size and descriptor.size_in_bytes >= 0):
            return decode(descriptor, source.read() or None)
        length = min(descriptor.size_in_bytes + 8, size - start)
        return decode(descriptor, source.read_at(1, 0) + source.read_at(length, start), offset=1)


def is_deleted(chunks: str, row_index: str) -> str:
    """Return SQL for a condition that is true if a row is deleted.

    `chunks` is SQL of the file's `BITMAPS.chunks`, null without a deletion vector; `row_index` is
    SQL of the row's index in the file, LONG.
    """
    chunk = f"get({chunks}, CAST(shiftright({row_index}, 16) AS INT))"
    return is_deleted_in_chunk(chunk, row_index)


def is_deleted_in_chunk(words: str, row_index: str) -> str:
    """Return the condition of `is_deleted`, given the words of the row's chunk.

    It is false if the words are null.
    """
    word = f"get({words}, CAST(shiftright({row_index}, 6) & 1023 AS INT))"
    return f"coalesce(getbit({word}, CAST({row_index} & 63 AS INT)) = 1, FALSE)"


_LAST_BYTE = (1 << 31) - 2


def is_deleted_in_packed(bitmap: Column, bits: Column, row_index: Column) -> Column:
    """Return a condition that is true if a row is deleted, given the `packed` bitmap of its file.

    A byte of the bitmap has 1 or `PACKED_BITS` bits. The condition is evaluated in generated code.
    Rows after the bitmap's end are not deleted.
    """

    def byte(number: Column) -> Column:
        return F.substring(bitmap, number.cast("int") + 1, F.lit(1))

    single = byte(F.least(row_index, F.lit(_LAST_BYTE)))
    shared = byte(F.call_function("div", row_index, F.lit(PACKED_BITS)))
    code, at = F.ascii(shared.cast("string")), (row_index % PACKED_BITS).cast("int")
    in_shared = F.call_function("shiftright", code, at).bitwiseAND(1) == 1
    return (
        F.when(bits == 1, single == F.lit(b"\1"))
        .when(shared == F.lit(b"\0"), F.lit(False))
        .otherwise(in_shared)
    )


def chunk_rows(bitmaps: DataFrame, chunks: str) -> DataFrame:
    """Return one row per chunk with deleted rows, for a shuffle join.

    `bitmaps` has file_key LONG, and `chunks` names its column of type `BITMAPS.chunks`.

    Returns
    -------
    DataFrame
        file_key LONG, chunk INT, words ARRAY<LONG>.
    """
    return bitmaps.select("file_key", F.posexplode(chunks).alias("chunk", "words")).filter(
        F.col("words").isNotNull()
    )
