"""Paths as columns say the same as paths as values."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta.frames.file_keys import absolute_path, canonical_path, deletion_vector_id
from sparkdelta.protocol import file_paths
from sparkdelta.protocol.deletion_vectors import DeletionVectorDescriptor

PATHS = [
    "part.parquet", "p=1/part.parquet", "p=a%20b/x.parquet", "p=a%2520b/x.parquet", "a+b.parquet",
    "a%2Bb.parquet", "a%zz.parquet", "100%.parquet", "t=12:30/f", "t=12%3A30/f", "é/€.parquet",
    "%C3%A9/%E2%82%AC.parquet", "/abs/f", "/abs/f%20g", "file:/abs/f", "file:///abs/f",
    "file:////abs/f", "file:/abs/f%20g", "s3a://bucket/a%20b", "s3a://bucket/a+b", "%2Fnot/abs",
    "a//b", "//abs//f", "a#b", "a?b=c", "a%23b", "x\u2028y", "C:f", "hdfs://h:8020/f",
]  # fmt: skip
ROOTS = ["file:/t", "file:/my table", "s3a://bucket/t", "s3a://bucket", "hdfs://h:8020/a/t"]


@pytest.mark.parametrize("root", ROOTS)
def test_columns_follow_the_values(spark: SparkSession, root: str) -> None:
    """PROTOCOL.md#add-file-and-remove-file"""
    frame = spark.createDataFrame([(path,) for path in PATHS], "path STRING")
    keys = F.expr(canonical_path("path", table_root=root))
    places = F.expr(absolute_path("path", table_root=root))
    found = {row[0]: (row[1], row[2]) for row in frame.select("path", keys, places).collect()}
    assert found == {
        path: (file_paths.canonical_path(path, root), file_paths.resolve(root, path))
        for path in PATHS
    }


def test_unique_ids_of_deletion_vectors(spark: SparkSession) -> None:
    """PROTOCOL.md#derived-fields"""
    vectors = [
        ("u", "abc", 4),
        ("u", "abc", None),
        ("u", "abc", 0),
        ("i", "xyz", None),
        ("p", "/f", 1),
    ]
    frame = spark.createDataFrame(
        [(v,) for v in [*vectors, None]],
        "dv STRUCT<storageType: STRING, pathOrInlineDv: STRING, offset: INT>",
    )
    expected = [DeletionVectorDescriptor(*v, 1, 1).unique_id for v in vectors]
    ids = [row[0] for row in frame.select(F.expr(deletion_vector_id("dv"))).collect()]
    assert ids == [*expected, ""]
