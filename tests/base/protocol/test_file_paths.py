"""Paths of the log: decoding, absolute ones, and the spellings of one path."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdelta.base.protocol.file_paths import (
    canonical_path,
    decode_path,
    is_absolute,
    plain_path,
    resolve,
)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("part-0.parquet", "part-0.parquet"),
        ("a%20b/c.parquet", "a b/c.parquet"),
        ("p=1%252F2/c.parquet", "p=1%2F2/c.parquet"),
        ("a+b%2Bc", "a+b+c"),
        ("100%", "100%"),
        ("%C3%A9%E2%82%AC", "é€"),
        ("s3a://b/t%20u", "s3a://b/t u"),
    ],
)
def test_decode(uri, path):
    assert decode_path(uri) == path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a", True),
        ("file:/a", True),
        ("file:///a", True),
        ("s3a://b/a", True),
        ("abfss://c@a.dfs.core.windows.net/t", True),
        ("a/b", False),
        ("t=2024-01-01 12:30:00/f", False),
        ("t=12%3A30/f", False),
        ("a:b", False),
        ("", False),
    ],
)
def test_is_absolute(path, expected):
    assert is_absolute(path) == expected


@pytest.mark.parametrize(
    ("root", "path", "location"),
    [
        ("file:/x y", "a%20b/f", "file:/x y/a b/f"),
        ("file:/x y/", "f", "file:/x y/f"),
        ("file:/x", "/a%20b/f", "file:/a b/f"),
        ("file:/x", "file:///a/f", "file:/a/f"),
        ("file:/x", "file:/a/f", "file:/a/f"),
        ("s3a://b/t", "f", "s3a://b/t/f"),
        ("s3a://b/t", "/u/f", "s3a://b/u/f"),
        ("s3a://b/t", "s3a://other/u%20v", "s3a://other/u v"),
        ("s3a://b/t", "file:///a", "file:/a"),
        ("hdfs://host:8020/t", "/u/f", "hdfs://host:8020/u/f"),
        ("file:/x%20y", "f", "file:/x%20y/f"),
        ("file:/x", "t=12:30/f", "file:/x/t=12:30/f"),
    ],
)
def test_resolve(root, path, location):
    assert resolve(root, path) == location


@pytest.mark.parametrize(
    ("root", "spellings"),
    [
        ("file:/t", ["file:///a%20b/c", "file:/a b/c", "/a%20b/c", "/a b/c", "FILE:///a%20b/c"]),
        ("s3a://b/t", ["/u/f", "s3a://b/u/f", "s3a://b/u/%66"]),
        ("s3a://b/t", ["a%20b", "a b", "%61 b"]),
    ],
)
def test_spellings_of_one_path(root, spellings):
    assert len({canonical_path(path, root) for path in spellings}) == 1


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("file:///t//p=1///f", "file:/t/p=1/f"),
        ("file:/t/f", "file:/t/f"),
        ("hdfs:////t//f", "hdfs:/t/f"),
        ("s3a://b//t//f", "s3a://b/t/f"),
        ("s3a://b", "s3a://b"),
        ("abfss://c@a.dfs.core.windows.net//t", "abfss://c@a.dfs.core.windows.net/t"),
        ("//t//t=12:30//f", "/t/t=12:30/f"),
        ("a//b/", "a/b/"),
        ("t=12:30://f", "t=12:30:/f"),
        ("", ""),
    ],
)
def test_plain_path(path, plain):
    assert plain_path(path) == plain
    assert plain_path(plain) == plain


def test_different_paths_stay_different():
    paths = ["a+b", "a b", "a%2520b", "/a b", "file:/t/a b", "b/a b"]
    assert len({canonical_path(path, "file:/t") for path in paths}) == len(paths)


@given(st.text(st.characters(exclude_characters=":", exclude_categories=["Cs"]), min_size=1))
def test_encoded_paths_are_decoded(path):
    assert decode_path(quote(path)) == path
    assert canonical_path(quote(path), "file:/t") == canonical_path(
        path.replace("%", "%25"), "file:/t"
    )
