"""Deletion vectors as values of the files of a scan: bitmaps that the driver reads.

References
----------
PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import SparkSession

from sparkdelta.exceptions import DriverReadTooLargeError
from sparkdelta.protocol.log_files import Version
from sparkdelta.protocol.roaring_bitmaps import PACKED_BITS, last_row, packed
from sparkdelta.table.scan.deletion_vector_files import vectors_of_driver

MAX_PACKED_VECTORS = 100
"""Up to this many deletion vectors are read by the driver when a query runs: a bit, and an eighth,
for each row of their files up to the last deleted one."""

MAX_PACKED_BYTES = 256 << 20


def packed_bitmaps(
    spark: SparkSession,
    vectors: pa.ChunkedArray,
    *,
    table_root: str,
    version: Version,
    options: Mapping[str, str],
) -> pa.Array:
    """Return the `packed` bitmap of each deletion vector descriptor.

    Raises
    ------
    DataFileNotFoundError
        A deletion vector file is gone.
    DeletionVectorError
        A deletion vector is damaged.
    DriverReadTooLargeError
        They take more than `MAX_PACKED_BYTES`.

    References
    ----------
    PROTOCOL.md#deletion-vector-descriptor-schema
    """
    found = vectors_of_driver(
        spark, vectors, table_root=table_root, version=version, options=options
    )
    bitmaps, size = [], 0
    for chunks in found:
        size += (last_row(chunks) or 0) // PACKED_BITS + 1
        if size > MAX_PACKED_BYTES:
            what, bound = "bytes of bitmaps of deletion vectors", MAX_PACKED_BYTES
            raise DriverReadTooLargeError(what=what, rows=size, bound=bound)
        bitmaps.append(packed(chunks))
    return pa.array(bitmaps, pa.binary())
