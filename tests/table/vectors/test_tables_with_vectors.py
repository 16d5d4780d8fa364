"""Rows of files with deletion vectors, by both joins, and vectors that are damaged.

PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaError, load_snapshot, read_delta
from sparkdelta.table.scan import native_scan
from tests.support.distributed import distributed_scans, listed_at_once
from tests.support.log_writer import write_commit
from tests.support.snapshots import raised_by, rows
from tests.support.spark_jobs import plan
from tests.support.table_builder import (
    field,
    ids,
    inline_vector,
    metadata,
    protocol,
    vector_path,
    write_data,
    write_vectors,
)


@pytest.fixture(params=["broadcast", "shuffle", "workers"], autouse=True)
def join(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The ways by which rows meet bitmaps."""
    if request.param == "shuffle":
        monkeypatch.setattr(native_scan, "DELETION_VECTOR_BROADCAST_BYTES", -1)
    with distributed_scans() if request.param == "workers" else listed_at_once():
        yield request.param


def _create(table: Path, *actions: Any, **metadata_fields: Any) -> None:
    schema = metadata_fields.pop("schema", ())
    first = [protocol(features=["deletionVectors"]), metadata(*schema, **metadata_fields)]
    write_commit(table, 0, [*first, *actions])


@pytest.mark.full
def test_every_kind_of_vector(spark: SparkSession, table: Path) -> None:
    """Two in one file, with a prefix, by an absolute path, inline, empty, and files without."""
    shared = write_vectors(table, [0, 1], [2], number=1)
    (prefixed,) = write_vectors(table, [9], number=2, prefix="ab")
    (absolute,) = write_vectors(table, list(range(10)), number=3, prefix="c d")
    file = table / "c d" / "deletion_vector_00000000-0000-0000-0000-000000000003.bin"
    absolute.update(storageType="p", pathOrInlineDv=file.as_uri())
    vectors = [*shared, prefixed, absolute, inline_vector([5]), inline_vector([]), None]
    actions = [
        write_data(
            table, f"f {n}", ids(10 * n, 10 * n + 10), **({"deletionVector": v} if v else {})
        )
        for n, v in enumerate(vectors)
    ]
    _create(table, *actions)
    deleted = {0, 1, 12, 29, *range(30, 40), 45}
    frame = read_delta(spark, str(table))
    assert rows(frame) == sorted([(n,) for n in range(70) if n not in deleted], key=repr)
    assert frame.filter("id >= 40").count() == 29


@pytest.mark.full
def test_many_chunks_in_a_file_of_many_row_groups(spark: SparkSession, table: Path) -> None:
    count = 200_000
    deleted = [0, 65_535, 65_536, 131_071, 199_999, *range(70_000, 80_000)]
    vectors = write_vectors(table, deleted)
    everything = pa.table({"id": pa.array(range(count), pa.int64())})
    _create(table, write_data(table, "f", everything, deletionVector=vectors[0]))
    found = {row[0] for row in read_delta(spark, str(table)).collect()}
    assert found == set(range(count)) - set(deleted)


@pytest.mark.full
def test_with_partitions_and_columns_left_out(spark: SparkSession, table: Path) -> None:
    actions = [
        write_data(table, f"p={p}/f", ids(0, 4), {"p": str(p)}, deletionVector=inline_vector([p]))
        for p in (1, 2)
    ]
    schema = (field("p", "integer"), field("id", "long"))
    _create(table, *actions, schema=schema, partitioned_by=["p"])
    frame = read_delta(spark, str(table))
    assert rows(frame) == [(1, 0), (1, 2), (1, 3), (2, 0), (2, 1), (2, 3)]
    assert rows(frame.select("p").distinct()) == [(1,), (2,)]
    assert frame.count() == 6
    assert rows(read_delta(spark, str(table), where="p = 2 AND id > 0", columns=["id"])) == [
        (1,), (3,),
    ]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("form", ["text", "column"])
def test_no_condition_is_evaluated_on_deleted_rows(
    spark: SparkSession, table: Path, join: str, form: str
) -> None:
    """PROTOCOL.md#reader-requirements-for-deletion-vectors: a value that was deleted fails no
    query.
    """
    numbers = pa.table({"id": [0, 1, 2, 3], "n": ["1", "bad", "7", "3"]})
    actions = [
        write_data(table, "f", numbers, deletionVector=inline_vector([1])),
        write_data(table, "g", pa.table({"id": [4], "n": ["4"]})),
    ]
    _create(table, *actions, schema=(field("id", "long"), field("n", "string")))
    text = "cast(n as int) < 5 AND id > 0 AND 1 / (cast(n as int) - 9) < 0"
    where = text if form == "text" else F.expr(text)
    scan = load_snapshot(spark, str(table)).scan(where)
    assert rows(scan.to_df()) == [(3, "3"), (4, "4")]
    if join != "workers":
        scans = [node.text for node in plan(scan.to_df()) if "PushedFilters" in node.text]
        assert [text.count("GreaterThan(id,0)") for text in scans] == [1, 1]


def test_columns_with_the_names_of_ours(spark: SparkSession, table: Path) -> None:
    names = [
        "_metadata",
        "file",
        "chunks",
        "__file",
        "__file_key",
        "__row_index",
        "__key",
        "__words",
    ]
    data = pa.table({name: pa.array([1, 2, 3]) for name in names})
    _create(
        table,
        write_data(table, "f", data, deletionVector=inline_vector([1])),
        write_data(table, "g", data),
        schema=[field(name, "long") for name in names],
    )
    wanted = [(value,) * len(names) for value in (1, 1, 2, 3, 3)]
    assert rows(read_delta(spark, str(table))) == wanted


def test_without_the_feature_there_are_no_vectors(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#reader-requirements-for-deletion-vectors: by the feature, not by the action."""
    action = write_data(table, "f", ids(0, 2))
    write_commit(table, 0, [protocol(), metadata(), action])
    assert rows(read_delta(spark, str(table))) == [(0,), (1,)]


def _damaged(spark: SparkSession, table: Path, **changes: Any) -> DeltaError:
    (vector,) = write_vectors(table, [1])
    action = write_data(table, "f", ids(0, 4), deletionVector={**vector, **changes})
    _create(table, action)
    return raised_by(lambda: read_delta(spark, str(table)).collect())


def _with_content(spark: SparkSession, table: Path, change: Any) -> DeltaError:
    (vector,) = write_vectors(table, [1])
    file = vector_path(table, vector)
    file.write_bytes(change(bytearray(file.read_bytes())))
    _create(table, write_data(table, "f", ids(0, 4), deletionVector=vector))
    return raised_by(lambda: read_delta(spark, str(table)).collect())


def _flipped(index: int) -> Any:
    def change(content: bytearray) -> bytearray:
        content[index] ^= 0xFF
        return content

    return change


class TestDamage:
    """Never rows that were deleted: an error that names the vector."""

    def test_cardinality(self, spark: SparkSession, table: Path) -> None:
        error = _damaged(spark, table, cardinality=2)
        assert error.getCondition() == "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH"

    def test_size(self, spark: SparkSession, table: Path) -> None:
        assert (
            _damaged(spark, table, sizeInBytes=7).getCondition()
            == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"
        )

    def test_offset(self, spark: SparkSession, table: Path) -> None:
        assert (
            _damaged(spark, table, offset=500).getCondition()
            == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"
        )

    def test_storage_type(self, spark: SparkSession, table: Path) -> None:
        assert (
            _damaged(spark, table, storageType="x").getCondition()
            == "DELTA_DELETION_VECTOR_INVALID_FORMAT"
        )

    def test_checksum(self, spark: SparkSession, table: Path) -> None:
        error = _with_content(spark, table, _flipped(-1))
        assert error.getCondition() == "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"

    def test_format_version(self, spark: SparkSession, table: Path) -> None:
        error = _with_content(spark, table, _flipped(0))
        assert error.getCondition() == "DELTA_DELETION_VECTOR_INVALID_FORMAT"

    def test_a_file_cut_short(self, spark: SparkSession, table: Path) -> None:
        error = _with_content(spark, table, lambda content: content[:10])
        assert error.getCondition() == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"

    def test_an_empty_file(self, spark: SparkSession, table: Path) -> None:
        """Spark's file sources leave out files without content."""
        error = _with_content(spark, table, lambda content: b"")
        assert error.getCondition() == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"

    def test_a_file_that_is_gone(self, spark: SparkSession, table: Path) -> None:
        (vector,) = write_vectors(table, [1])
        vector_path(table, vector).unlink()
        _create(table, write_data(table, "f", ids(0, 4), deletionVector=vector))
        error = raised_by(lambda: read_delta(spark, str(table)).collect())
        assert error.getCondition() == "DELTA_FILE_NOT_FOUND"
        assert "deletion_vector" in str(error)


@pytest.mark.full
def test_an_absolute_path_with_two_slashes(spark: SparkSession, table: Path) -> None:
    """File systems fold them; the vector must not be lost by its spelling."""
    (vector,) = write_vectors(table, [1])
    spelled = vector_path(table, vector).as_uri().replace("/table/", "//table//")
    vector.update(storageType="p", pathOrInlineDv=spelled)
    _create(table, write_data(table, "f", ids(0, 4), deletionVector=vector))
    assert rows(read_delta(spark, str(table))) == [(0,), (2,), (3,)]


@pytest.mark.full
@pytest.mark.parametrize("prefix", ["_x", ".x", "a b", "a%20b"])
def test_prefixes_of_any_name(spark: SparkSession, table: Path, prefix: str) -> None:
    (vector,) = write_vectors(table, [1], prefix=prefix)
    _create(table, write_data(table, "f", ids(0, 4), deletionVector=vector))
    assert rows(read_delta(spark, str(table))) == [(0,), (2,), (3,)]
