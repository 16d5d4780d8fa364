"""What workers find wrong with a file, without Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sparkdelta.frames.file_checks import FileChecker, _findings
from tests.support.table_builder import bitmap, inline_vector, vector_file

ROOT = "file:/t"
CONTENT, (FIRST, SECOND) = vector_file(bitmap([1]), bitmap([1, 2, 3]))
SIZE, END = len(bitmap([1, 2, 3])), len(CONTENT)


class Files:
    """Files in memory; a size of None is one that may not be looked at."""

    def __init__(self, **contents: bytes | None) -> None:
        self.contents = {f"{ROOT}/{name}": data for name, data in contents.items()}

    def size(self, path: str) -> int | None:
        if path not in self.contents:
            return None
        return len(self._data(path))

    def open(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self._data(path))

    def _data(self, path: str) -> bytes:
        data = self.contents[path]
        if data is None:
            raise PermissionError("forbidden")
        return data


def found(files: Files, *, footers: bool = False, **fields: Any) -> list[tuple[str, str]]:
    row = {"file": f"{ROOT}/f", "size": 3, "numRecords": None, "deletionVector": None, **fields}
    checker = FileChecker(files=files, table_root=ROOT, with_footers=footers)
    return [(check, problem.partition(" (of")[0]) for check, _, problem in _findings(row, checker)]


def test_a_file_that_is_there() -> None:
    assert found(Files(f=b"abc")) == []


def test_one_that_is_not() -> None:
    """PROTOCOL.md#add-file-and-remove-file"""
    assert found(Files()) == [("data file", "is missing")]
    assert found(Files(f=b"ab")) == [("data file", "has 2 bytes instead of 3")]
    assert found(Files(f=None)) == [("data file", "cannot be accessed: forbidden")]


def test_a_footer_that_is_none() -> None:
    ((check, problem),) = found(Files(f=b"abc"), footers=True, numRecords=1)
    assert (check, problem.split(":")[0]) == ("footer", "cannot be read")
    ((check, _),) = found(Files(f=b"abc"), footers=True)
    assert check == "footer", "also where the log does not say how many rows there are"
    assert found(Files(f=b"abc")) == []


@pytest.mark.parametrize(
    ("content", "offset", "problem"),
    [
        (CONTENT, SECOND, None),
        (CONTENT, FIRST, f"{len(bitmap([1]))} bytes instead of {SIZE}"),
        (CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]), SECOND, "its CRC-32 is"),
        (b"\2" + CONTENT[1:], SECOND, "format version is 2"),
        (CONTENT[:-1], SECOND, f"has {END - 1} bytes, but the vector ends at {END}"),
        (None, SECOND, "cannot be accessed: forbidden"),
    ],
)  # fmt: skip
def test_deletion_vectors_in_files(content: bytes | None, offset: int, problem: str | None) -> None:
    """PROTOCOL.md#deletion-vector-file-storage-format"""
    descriptor = {
        "storageType": "p", "pathOrInlineDv": f"{ROOT}/dv", "offset": offset, "sizeInBytes": SIZE,
        "cardinality": 3,
    }  # fmt: skip
    problems = found(Files(f=b"abc", dv=content), deletionVector=descriptor)
    assert [check for check, _ in problems] == ([] if problem is None else ["deletion vector"])
    assert all(str(problem) in text for _, text in problems)


def test_other_descriptors() -> None:
    assert found(Files(f=b"abc"), deletionVector=inline_vector([1])) == []
    other = {**inline_vector([1]), "cardinality": 2}
    ((check, problem),) = found(Files(f=b"abc"), deletionVector=other)
    assert (check, "1 rows instead of 2" in problem) == ("deletion vector", True)
    missing = {"storageType": "p", "pathOrInlineDv": f"{ROOT}/dv", "offset": 1, "sizeInBytes": 1,
               "cardinality": 1}  # fmt: skip
    assert found(Files(f=b"abc"), deletionVector=missing) == [("deletion vector", "is missing")]
    torn = {**missing, "storageType": "u", "pathOrInlineDv": "short"}
    ((check, _),) = found(Files(f=b"abc"), deletionVector=torn)
    assert check == "deletion vector"
