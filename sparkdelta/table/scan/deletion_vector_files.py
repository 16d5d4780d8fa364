"""The bitmaps of a scan's files, read by their deletion vector descriptors.

References
----------
PROTOCOL.md#deletion-vector-descriptor-schema
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.parquet.parquet_options import is_hidden
from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_paths import plain_path
from sparkdelta.base.protocol.roaring_bitmaps import Chunks
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import delta_errors
from sparkdelta.base.spark.local_data import arrow_frame, empty_frame
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import driver_files
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.scan.scan_request import ScanRequest
from sparkdelta.table.vectors.deletion_vector_workers import (
    BITMAPS,
    decode_deletion_vectors,
    read_deletion_vector,
)

MAX_KNOWN_VECTORS = 16
"""Up to this many deletion vectors of a scan are read by the driver: a query takes longer."""

_MAX_KNOWN_BYTES = 1 << 20  # of their decoded bitmaps

_CHUNK_BYTES = 8 * 1024
_ROWS_PER_CHUNK = 65_536
_SMALLEST_CONTAINER_BYTES = 10
_DESCRIPTOR = ["file", "storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality"]
_OPTIONS = {"__globPaths__": "false", "ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}


def decoded_bytes(files: pa.Table) -> int:
    """Return an upper bound of the size of the decoded bitmaps of files.

    A chunk with a deleted row takes `_CHUNK_BYTES`. There are at most as many as deleted rows, as
    containers that fit the serialized size, and as chunks of the file's rows.

    Parameters
    ----------
    files
        deletionVector STRUCT, numRecords LONG (null where unknown).
    """
    vectors = pc.struct_field(files["deletionVector"], "cardinality")
    sizes = pc.struct_field(files["deletionVector"], "sizeInBytes").cast(pa.int64())
    by_size = pc.add(pc.divide(sizes, _SMALLEST_CONTAINER_BYTES), 1)
    by_rows = pc.add(pc.divide(files["numRecords"], _ROWS_PER_CHUNK), 1)
    chunks = pc.min_element_wise(vectors, by_size, by_rows, skip_nulls=True)
    return int(pc.sum(chunks).as_py() or 0) * _CHUNK_BYTES


def vectors_of_driver(
    spark: SparkSession, vectors: pa.ChunkedArray, request: ScanRequest
) -> Iterator[Chunks]:
    """Read the bitmaps of deletion vector descriptors, one after the other.

    Raises
    ------
    DELTA_FILE_NOT_FOUND
        A deletion vector file is gone.
    DeletionVectorError
        A deletion vector is damaged.
    """
    root = request.table_root
    files = driver_files(spark, root, request.options)
    for fields in vectors.to_pylist():
        descriptor = DeletionVectorDescriptor.from_dict(fields)
        try:
            yield read_deletion_vector(descriptor, files=files, table_root=root)
        except FileNotFoundError as error:
            file = str(descriptor.absolute_path(root))
            raise DeltaError.of(
                "DELTA_FILE_NOT_FOUND", file=file, version=request.version
            ) from error


def known_bitmaps(spark: SparkSession, files: pa.Table, request: ScanRequest) -> pa.Array | None:
    """Return `BITMAPS.chunks` of each file, or None if they are too large for the driver.

    Parameters
    ----------
    files
        deletionVector STRUCT, numRecords LONG (null where unknown).
    """
    is_many = files.num_rows > MAX_KNOWN_VECTORS or decoded_bytes(files) > _MAX_KNOWN_BYTES
    if is_many or not engine_of(spark).can("see plans"):
        return None
    found = vectors_of_driver(spark, files["deletionVector"], request)
    chunks = [[each.get(number) for number in range(max(each, default=-1) + 1)] for each in found]
    return pa.array(chunks, pa.list_(pa.list_(pa.int64())))


def read_bitmaps(spark: SparkSession, files: pa.Table, request: ScanRequest) -> DataFrame:
    """Return `BITMAPS` of data files, decoded when the query runs.

    Every deletion vector file is read once, as a whole.

    Parameters
    ----------
    files
        file STRING (the URI that becomes `BITMAPS.file`), deletionVector STRUCT.
    """
    if not files.num_rows:
        return empty_frame(spark, BITMAPS)
    vectors = files["deletionVector"].combine_chunks()
    columns = [files["file"], *(pc.struct_field(vectors, name) for name in _DESCRIPTOR[1:])]
    descriptors = pa.table(columns, names=_DESCRIPTOR)
    paths = [
        _path(row, request.table_root) for row in descriptors.drop_columns(["file"]).to_pylist()
    ]
    grouped = (
        descriptors.append_column("path", pa.array(paths, pa.string()))
        .group_by("path", use_threads=False)
        .aggregate([(name, "list") for name in _DESCRIPTOR])
    )
    frame = arrow_frame(spark, grouped.rename_columns(["wanted", *_DESCRIPTOR]))
    lists = ", ".join(map(quoted, _DESCRIPTOR))
    frame = frame.selectExpr("wanted", f"arrays_zip({lists}) AS descriptors")
    stored = sorted({path for path in paths if path is not None})
    if not stored:
        inline = frame.selectExpr("CAST(NULL AS BINARY) AS content", "descriptors")
        with worker_python(spark):
            return decode_deletion_vectors(inline)
    contents = _contents(spark, stored, request)
    is_of = F.expr("path = wanted")
    found = contents.join(F.broadcast(frame), is_of, "inner").select("content", "descriptors")
    # Inline ones, and any whose file Spark passed over, as it does with empty files: to decode the
    # latter without a content is an error, to leave them out would bring deleted rows back.
    others = frame.join(F.broadcast(contents.select("path")), is_of, "left_anti")
    without_content = others.selectExpr("CAST(NULL AS BINARY) AS content", "descriptors")
    with worker_python(spark):
        return decode_deletion_vectors(found.unionByName(without_content))


def _path(fields: Mapping[str, object], table_root: str) -> str | None:
    path = DeletionVectorDescriptor.from_dict(fields).absolute_path(table_root)
    return None if path is None else plain_path(path)


def _contents(spark: SparkSession, paths: list[str], request: ScanRequest) -> DataFrame:
    hidden = [path for path in paths if is_hidden(path)]
    if hidden:
        raise DeltaError.of("DELTA_DATA_FILE_NOT_READ", files=hidden, version=request.version)
    options = {**request.options, **_OPTIONS}
    with delta_errors(request.version):
        files = engine_of(spark).read_files("binaryFile", paths, options=options)
    return files.select("path", "content")
