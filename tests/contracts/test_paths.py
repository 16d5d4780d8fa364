"""Paths as values (`protocol.file_paths`) and as columns (`frames.log.file_keys`)."""

from __future__ import annotations

from hypothesis import strategies as st
from pyspark.sql import SparkSession

from sparkdelta.frames.log.file_keys import (
    absolute_path,
    canonical_path,
    deletion_vector_id,
    plain_path,
)
from sparkdelta.protocol import file_paths
from sparkdelta.protocol.deletion_vectors import DeletionVectorDescriptor
from tests.support.drawn import drawn

PATHS = [
    "part.parquet", "p=1/part.parquet", "p=a%20b/x.parquet", "p=a%2520b/x.parquet", "a+b.parquet",
    "a%2Bb.parquet", "a%zz.parquet", "100%.parquet", "t=12:30/f", "t=12%3A30/f", "é/€.parquet",
    "%C3%A9/%E2%82%AC.parquet", "/abs/f", "/abs/f%20g", "file:/abs/f", "file:///abs/f",
    "file:////abs/f", "file:/abs/f%20g", "s3a://bucket/a%20b", "s3a://bucket/a+b", "%2Fnot/abs",
    "a//b", "//abs//f", "a#b", "a?b=c", "a%23b", "x\u2028y", "C:f", "hdfs://h:8020/f",
]  # fmt: skip
ROOTS = ["file:/t", "file:/my table", "s3a://bucket/t", "s3a://bucket", "hdfs://h:8020/a/t"]
STARTS = ["", "/", "//", "file:/", "file:///", "s3a://b/", "hdfs://h:8020/", "p=12:30/"]
PIECES = ["a", "B", "/", "//", ":", "=", "+", " ", "é", "%20", "%25", "%2F", "%2B", "%C3%A9", "'"]


def test_columns_follow_the_values(spark: SparkSession) -> None:
    """PROTOCOL.md#add-file-and-remove-file"""
    pieces = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
    made = drawn(st.builds("{}{}".format, st.sampled_from(STARTS), pieces), 300)
    paths = list(dict.fromkeys([*PATHS, *made]))
    frame = spark.createDataFrame([(path,) for path in paths], "path STRING")
    keys = [canonical_path("path", table_root=root) for root in ROOTS]
    places = [absolute_path("path", table_root=root) for root in ROOTS]
    spelled = [plain_path(place) for place in places]
    found = {
        row[0]: tuple(row[1:])
        for row in frame.selectExpr("path", *keys, *places, *spelled).collect()
    }
    assert found == {
        path: (
            *(file_paths.canonical_path(path, root) for root in ROOTS),
            *(file_paths.resolve(root, path) for root in ROOTS),
            *(file_paths.plain_path(file_paths.resolve(root, path)) for root in ROOTS),
        )
        for path in paths
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
    ids = [row[0] for row in frame.selectExpr(deletion_vector_id("dv")).collect()]
    assert ids == [*expected, ""]
