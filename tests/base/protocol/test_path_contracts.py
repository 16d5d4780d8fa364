"""Paths as values (`base.protocol.file_paths`) and as columns (`base.schema.file_key_frames`)."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from sparkdelta.base.protocol import file_paths
from sparkdelta.base.protocol.deletion_vectors import (
    DeletionVectorDescriptor,
    dv_file_name,
    z85_encode,
)
from sparkdelta.base.protocol.log_files import (
    data_directory,
    is_write_directory,
    staged_data_directory,
)
from sparkdelta.base.schema.action_schemas import DELETION_VECTOR
from sparkdelta.base.schema.file_key_frames import (
    absolute_path,
    canonical_path,
    decoded_path,
    deletion_vector_id,
    plain_path,
)
from sparkdelta.base.schema.sql_text import text_literal, type_text
from sparkdelta.operations.vacuum.vacuum_outcome_frames import relative_path
from sparkdelta.operations.vacuum.vacuum_rules import visible_paths
from sparkdelta.table.log.absolute_file_frames import absolute_uri, absolute_vector, vector_uri
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


@pytest.mark.slow
def test_relative_paths(spark: SparkSession) -> None:
    """A path without anything special is what the rules for all paths make of it.

    PROTOCOL.md#add-file-and-remove-file
    """
    pieces = st.lists(st.sampled_from([*PIECES, ".", "a.b"]), min_size=1, max_size=6).map("".join)
    paths = [
        path
        for path in dict.fromkeys([*PATHS, *drawn(pieces, 300), ".a", "a..b", "a/.b", "a./b"])
        if not file_paths.is_absolute(path) and "%" not in path and ".." not in path.split("/")
    ]
    frame = spark.createDataFrame(
        [(path, f"./{path}") for path in paths], "path STRING, other STRING"
    )
    for root in ROOTS:
        columns = (relative_path(name, table_root=root) for name in ("path", "other"))
        found = frame.selectExpr("path", *columns).collect()
        assert [row for row in found if row[1] != row[2]] == []


def test_relative_paths_that_look_absolute_when_they_are_decoded(spark: SparkSession) -> None:
    """PROTOCOL.md#add-file-and-remove-file: VACUUM would delete their files."""
    paths = {
        "C%3A/f": "C:/f", "s3a%3A//b/f": "s3a:/b/f", "%2Fa/f": "a/f", "file%3A/a%20b": "file:/a b",
        "p=1%3A0/f": "p=1:0/f",
    }  # fmt: skip
    frame = spark.createDataFrame([(path,) for path in paths], "path STRING")
    for root in ROOTS:
        rows = frame.selectExpr("path", relative_path("path", table_root=root)).collect()
        assert {row[0]: row[1] for row in rows} == paths


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


@pytest.mark.full
def test_files_of_deletion_vectors(spark: SparkSession) -> None:
    """PROTOCOL.md#derived-fields: the file of a vector, as a URI."""
    encoded = drawn(st.builds(z85_encode, st.binary(min_size=16, max_size=16)), 50)
    named = [prefix + name for name in encoded for prefix in ("", "ab", "a/b%20 é")]
    rows = [("u", name) for name in named] + [("p", "file:/a%20b"), ("i", "xyz"), (None, None)]
    frame = spark.createDataFrame(rows, "storageType STRING, pathOrInlineDv STRING")
    path = decoded_path(vector_uri("struct(storageType, pathOrInlineDv)"))
    found = frame.selectExpr(path).collect()
    expected = [dv_file_name(name) for name in named]
    assert [row[0] for row in found] == [*expected, "file:/a b", None, None]


def _is_hidden(name: str, directory: str, *, is_uniform: bool) -> bool:
    """True if VACUUM leaves alone a file or directory of a table with partition columns."""
    if is_write_directory(name):
        return False
    if name == "_temporary" and any(map(is_write_directory, directory.split("/"))):
        return False
    if name == "metadata":
        return is_uniform
    known = ("_change_data", "_delta_index", "_c=", "_d'é+=")
    return name.startswith(("_", ".")) and not name.startswith(known)


def test_paths_that_vacuum_leaves_alone(spark: SparkSession) -> None:
    """PROTOCOL.md#data-files"""
    names = ["_a", ".a", "a", "_c=1", "_change_data", "_delta_index_x", "_delta_log", "metadata",
             "_d'é+=x", "_", ".", "_temporary", "_temporary_", "metadata_", "", "a\n"]  # fmt: skip
    written, staged = data_directory(str(uuid4())), staged_data_directory(str(uuid4()))
    directories = ["", "a", written, f"_change_data/{written}/_temporary/0", f"x{written}/a",
                   f"{written}\n", staged, f"{staged}/_temporary/0", f"{staged}x", "metadata",
                   "a//b"]  # fmt: skip
    paths = [f"{d}/{n}" if d else n for d in directories for n in names if d or n]
    frame = spark.createDataFrame([(path,) for path in paths], "path STRING")
    for is_uniform in (True, False):
        properties = {"delta.universalFormat.enabledFormats": "iceberg"} if is_uniform else {}
        pattern = visible_paths(["_c", "_d'é+"], properties)
        found = frame.selectExpr(f"path RLIKE {text_literal(pattern)}").collect()
        expected = [
            not any(
                _is_hidden(name, "/".join(path.split("/")[:number]), is_uniform=is_uniform)
                for number, name in enumerate(path.split("/"))
            )
            for path in paths
        ]
        assert [row[0] for row in found] == expected
        assert [re.match(pattern, path) is not None for path in paths] == expected
        assert 0 < sum(expected) < len(expected)


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


def test_absolute_paths_of_the_files_of_a_clone(spark: SparkSession) -> None:
    """PROTOCOL.md#add-file-and-remove-file: encoded, and of the same file from any table."""
    frame = spark.createDataFrame([(path,) for path in PATHS], "path STRING")
    uris = [absolute_uri("path", table_root=root) for root in ROOTS]
    for path, *found in frame.selectExpr("path", *uris).collect():
        for root, uri in zip(ROOTS, found, strict=True):
            assert file_paths.resolve("other:/root", uri) == file_paths.resolve(root, path)
            assert " " not in uri


@pytest.mark.full
def test_absolute_paths_of_deletion_vectors(spark: SparkSession) -> None:
    """PROTOCOL.md#derived-fields"""
    names = [z85_encode(uuid4().bytes) for _ in range(20)]
    vectors = [
        *(("u", prefix + name, 4, 10, 2) for name in names for prefix in ("", "a b/c%")),
        ("p", "/abs/f%20g", 1, 10, 2), ("p", "file:///abs/f", None, 10, 2),
        ("i", names[0], None, 20, 2), (None, None, None, None, None),
    ]  # fmt: skip
    frame = spark.createDataFrame(
        [(vector,) for vector in vectors], f"v {type_text(DELETION_VECTOR)}"
    )
    for root in ROOTS:
        made = frame.selectExpr("v", f"{absolute_vector('v', table_root=root)} AS made").collect()
        for before, after in made:
            if before.storageType is None:
                assert after is None
                continue
            own, other = (DeletionVectorDescriptor.from_dict(v.asDict()) for v in (before, after))
            assert other.absolute_path("other:/root") == own.absolute_path(root)
            assert after[2:] == before[2:]
            assert other.is_inline == own.is_inline
