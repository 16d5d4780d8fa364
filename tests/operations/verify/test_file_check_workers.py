"""Tests of the checks by which workers find damaged files, without Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkdelta.operations.verify.file_check_workers import FileChecker, _findings
from tests.support.table_builder import bitmap, inline_vector, vector_file

ROOT = "file:/t"
DAY = 86_400_000_000
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


def found(
    files: Files, *, footers: bool = False, columns: Any = (), **fields: Any
) -> list[tuple[str, str]]:
    row = {"file": f"{ROOT}/f", "size": 3, "numRecords": None, "deletionVector": None, **fields}
    checker = FileChecker(files=files, table_root=ROOT, with_footers=footers, columns=columns)
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


M = dt.datetime(2024, 2, 29, 1, 2, 3, 4567)
LARGE = Decimal("12345678901234567890.123456789012345678")


@pytest.mark.parametrize(
    ("data_type", "value", "right", "wrong"),
    [
        (pa.decimal128(38, 18), LARGE, (LARGE, LARGE),
         [(LARGE, Decimal("12345678901234567890.12345678")),  # as 28 digits round it
          (Decimal("12345678901234567890.123456789012345679"), LARGE)]),
        (pa.decimal128(9, 2), Decimal("-1.50"), (Decimal("-1.5"), Decimal(-1)),
         [(Decimal("-1.49"), None), (None, Decimal("-1.51"))]),
        (pa.int64(), 2**62 + 1, (2**62 + 1, None), [(None, 2**62), (2**62 + 2, None)]),
        (pa.int32(), 5, (Decimal("4.9"), 5.0), [(None, Decimal("4.99")), (5.5, None)]),  # widened
        (pa.float32(), 1.5, (1.5, float("nan")), [(None, 1.4), (1.6, None)]),
        (pa.float64(), float("inf"), (None, float("inf")), [(None, 1.0)]),
        (pa.date32(), dt.date(1, 1, 1), (-719162 * DAY, -719162 * DAY), [(None, -719163 * DAY)]),
        (pa.timestamp("us", "UTC"), M, (1709168523004000, 1709168523004000),
         [(1709168523005000, None), (None, 1709168523003000)]),
        (pa.timestamp("ms"), M.replace(microsecond=4000), (1709168523004000, 1709168523004000),
         [(1709168523004001, None)]),
        (pa.string(), "b\U0001f600", ("b", "b\ufffd"), [("c", None), (None, "b\uffff")]),
        (pa.string(), "b\U0001f600", ("b?", "b?\ufffd"), [(None, "a\ufffd"), (None, "b")]),
        (pa.string(), "x" * 70, ("y", "y"), []),  # footers may have cut it
        (pa.bool_(), True, (None, None), []),
    ],
)  # fmt: skip
def test_bounds_that_leave_out_values(
    data_type: pa.DataType, value: Any, right: tuple[Any, Any], wrong: list[tuple[Any, Any]]
) -> None:
    """PROTOCOL.md#per-file-statistics: also of tables that an earlier writer has damaged."""
    array = pa.array([value, None], data_type)
    table = pa.table({"s": pa.StructArray.from_arrays([array], ["c"]), "s.c": [1, 2], "c": array})
    data = parquet(table)
    vector = inline_vector([1])

    def problems(low: Any, high: Any, nulls: int = 1, **fields: Any) -> list[str]:
        bounds = {"low": {"c0": None, "c1": low}, "high": {"c0": None, "c1": high},
                  "nulls": {"c0": None, "c1": nulls}, "is_tight": None}  # fmt: skip
        row = {"size": len(data), "bounds": {**bounds, **fields.pop("bounds", {})}, **fields}
        of_bounds = found(Files(f=data), footers=True, columns=(("gone",), ("c",)), **row)
        return [check for check, _ in of_bounds]

    assert problems(*right) == []
    assert problems(*right, nulls=0) == ["footer"]
    for low, high in wrong:
        assert problems(low, high) == ["footer"]
        assert problems(low, high, deletionVector=vector) == []
        assert problems(low, high, deletionVector=vector, bounds={"is_tight": False}) == ["footer"]


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


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
