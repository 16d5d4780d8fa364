"""Deletion vectors as values of the files of a scan: bitmaps that the driver reads.

References
----------
PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import SparkSession

from sparkdelta.engine.worker_storage import driver_files
from sparkdelta.exceptions import DataFileNotFoundError, DriverReadTooLargeError
from sparkdelta.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.protocol.log_files import Version
from sparkdelta.protocol.roaring_bitmaps import PACKED_BITS, last_row, packed
from sparkdelta.workers.deletion_vectors import read_deletion_vector

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
    files = driver_files(spark, table_root, options)
    bitmaps, size = [], 0
    for fields in vectors.to_pylist():
        descriptor = DeletionVectorDescriptor.from_dict(fields)
        try:
            chunks = read_deletion_vector(descriptor, files=files, table_root=table_root)
        except FileNotFoundError as error:
            file = str(descriptor.absolute_path(table_root))
            raise DataFileNotFoundError(file=file, version=version) from error
        size += (last_row(chunks) or 0) // PACKED_BITS + 1
        if size > MAX_PACKED_BYTES:
            what, bound = "bytes of bitmaps of deletion vectors", MAX_PACKED_BYTES
            raise DriverReadTooLargeError(what=what, rows=size, bound=bound)
        bitmaps.append(packed(chunks))
    return pa.array(bitmaps, pa.binary())
