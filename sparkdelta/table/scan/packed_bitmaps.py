"""Deletion vectors as values of the files of a scan: bitmaps that the driver reads.

References
----------
PROTOCOL.md#deletion-vectors, PROTOCOL.md#deletion-vector-descriptor-schema
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from sparkdelta.base.protocol.roaring_bitmaps import PACKED_BITS, Chunks, last_row, packed
from sparkdelta.exceptions import DriverReadTooLargeError
from sparkdelta.table.scan.deletion_vector_files import vectors_of_driver
from sparkdelta.table.scan.scan_request import ScanRequest

MAX_PACKED_VECTORS = 100
"""Up to this many deletion vectors are read by the driver when a query runs: a byte for each row of
their files up to the last deleted one, or a bit and an eighth."""

MAX_PACKED_BYTES = 256 << 20

MAX_WIDE_BYTES = 32 << 20
"""Bitmaps of up to this total size have a byte for each row: Spark finds a row's bit in a third of
the time."""


def packed_bitmaps(
    spark: SparkSession, vectors: pa.ChunkedArray, request: ScanRequest
) -> tuple[pa.Array, int]:
    """Return the `packed` bitmap of each deletion vector descriptor, read as `vectors_of_driver`
    does, and the bits of their bytes.

    Raises
    ------
    DriverReadTooLargeError
        They take more than `MAX_PACKED_BYTES`.
    """
    bitmaps: list[bytes] = []
    not_packed: list[Chunks] = []
    num_rows = 0
    for chunks in vectors_of_driver(spark, vectors, request):
        num_rows += (last_row(chunks) or 0) + 1
        size = num_rows // PACKED_BITS
        if size > MAX_PACKED_BYTES:
            what, bound = "bytes of bitmaps of deletion vectors", MAX_PACKED_BYTES
            raise DriverReadTooLargeError(what=what, rows=size, bound=bound)
        not_packed.append(chunks)
        if num_rows > MAX_WIDE_BYTES:
            bitmaps += map(packed, not_packed)
            not_packed.clear()
    if num_rows > MAX_WIDE_BYTES:
        return pa.array(bitmaps, pa.binary()), PACKED_BITS
    return pa.array([packed(chunks, 1) for chunks in not_packed], pa.binary()), 1
