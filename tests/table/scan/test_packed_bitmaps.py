"""Filters that come after `read_delta` choose files with deletion vectors, whose bitmaps are values
of these files.

PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, load_snapshot, read_delta, write_delta
from sparkdelta.exceptions import DriverReadTooLargeError
from sparkdelta.table.scan import packed_bitmaps
from sparkdelta.table.scan.file_listing_modes import FileListingMode
from tests.support.log_writer import write_commit
from tests.support.settings import settings
from tests.support.snapshots import SPARK_ERRORS, rows
from tests.support.spark_jobs import files_read, no_jobs, plan
from tests.support.table_builder import (
    create,
    field,
    ids,
    inline_vector,
    metadata,
    protocol,
    write_data,
    write_vectors,
)
from tests.table.scan.test_deferred_scan import CONDITIONS, FIELDS, FILES, write_file

VECTORS = protocol(features=["deletionVectors"])


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of `test_late_filters`: a file of all of whose rows but one are deleted, others
    without 25 and 77, and files without vectors.
    """
    table = tmp_path_factory.mktemp("late vectors") / "table"
    (stored,) = write_vectors(table, [7])
    vectors = {1: inline_vector(range(9)), 2: inline_vector([5]), 7: stored}
    files = [write_file(table, number) for number in range(FILES)]
    for number, vector in vectors.items():
        files[number]["add"]["deletionVector"] = vector
    write_commit(table, 0, [VECTORS, metadata(*FIELDS, partitioned_by=["p"]), *files])
    return table


@pytest.mark.slow
def test_the_files_and_rows_of_where(spark: SparkSession, known: Path) -> None:
    assert load_snapshot(spark, str(known)).scan().listing is FileListingMode.LATE
    table = read_delta(spark, str(known))
    assert {row["id"] for row in table.collect()} == {*range(80)} - {*range(10, 19), 25, 77}
    for condition, files in list(CONDITIONS.items())[::4]:
        late, given = table.filter(condition), read_delta(spark, str(known), where=condition)
        assert rows(late) == rows(given), condition
        assert sum(files_read(late)) == files, condition
        assert late.schema == given.schema


def test_no_row_is_joined_or_goes_through_python(spark: SparkSession, known: Path) -> None:
    with no_jobs(spark):
        table = read_delta(spark, str(known)).filter("p = 1")
        nodes = {node.name for node in plan(table)}
    assert not [name for name in nodes if "Join" in name or "Python" in name or "Arrow" in name]
    small = spark.createDataFrame([(1, 7)], "q INT, k INT")
    table = read_delta(spark, str(known))
    joined = table.join(small, small.q == table.p)
    assert {row["p"] for row in joined.collect()} == {1}


@pytest.mark.parametrize("mode", ["name", "none"])
def test_a_later_filter_does_not_see_deleted_rows(
    spark: SparkSession, table: Path, mode: str
) -> None:
    """A filter that fails for a deleted row, as it would with ANSI, does not see it. A column may
    have the name of Spark's own.
    """
    columns = (field("_metadata", "long"), field("row_index", "long"))
    data = ids(0, 3).rename_columns(["_metadata"]).append_column("row_index", pa.array([7, 8, 9]))
    add = write_data(table, "f", data, deletionVector=inline_vector([0]))
    write_commit(table, 0, [VECTORS, metadata(*columns), add])
    with settings(spark, {"spark.sql.ansi.enabled": str(mode == "name").lower()}):
        found = read_delta(spark, str(table)).filter("1 / _metadata > 0")
        assert rows(found) == [(1, 8), (2, 9)]


@pytest.mark.full
def test_wide_tables(spark: SparkSession, table: Path) -> None:
    """Files of wide tables are listed at once: where Spark reads row by row, each row would have a
    copy of its file's bitmap.
    """
    columns = [field("id", "long"), *(field(f"c{number}", "long") for number in range(120))]
    rows = {f"c{number}": pa.array(range(5), pa.int64()) for number in range(120)}
    data = pa.table({"id": ids(0, 5)["id"], **rows})
    for name, count in (("narrow", 2), ("wide", 121)):
        file = write_data(table / name, "f", data.select(range(count)))
        file["add"]["deletionVector"] = inline_vector([1])
        write_commit(table / name, 0, [VECTORS, metadata(*columns[:count]), file])
    narrow, wide = (load_snapshot(spark, str(table / name)) for name in ("narrow", "wide"))
    assert narrow.scan().listing is FileListingMode.LATE
    assert wide.scan().listing is FileListingMode.ROW_READER
    assert [row["id"] for row in wide.scan().to_df().filter("c7 < 4").collect()] == [0, 2, 3]
    with settings(spark, {"spark.sql.parquet.enableVectorizedReader": "false"}):
        assert narrow.scan().listing is FileListingMode.ROW_READER
        assert narrow.scan().to_df().count() == 4


@pytest.mark.slow
def test_large_vectors(spark: SparkSession, table_path: str) -> None:
    """Over several chunks of bitmaps, and several splits of a file."""
    properties = {"delta.enableDeletionVectors": "true", "sparkdelta.maxDeletedShare": "1"}
    count = 200_000
    write_delta(spark.range(count).coalesce(1), table_path, properties=properties)
    DeltaTable.forPath(spark, table_path).delete("pmod(hash(id), 3) = 0 OR id > 190000")
    wanted = spark.range(count).filter("NOT (pmod(hash(id), 3) = 0 OR id > 190000)")
    for most in (packed_bitmaps.MAX_WIDE_BYTES, 1000):
        with (
            settings(spark, {"spark.sql.files.maxPartitionBytes": "100000"}),
            patch.object(packed_bitmaps, "MAX_WIDE_BYTES", most),
        ):
            found = read_delta(spark, table_path)
            assert found.exceptAll(wanted).isEmpty()
            assert found.count() == wanted.count()
    with patch.object(packed_bitmaps, "MAX_PACKED_BYTES", 1000):
        frame = read_delta(spark, table_path).filter("id > 5")
        with pytest.raises(SPARK_ERRORS, match=DriverReadTooLargeError.error_class):
            frame.collect()


def test_a_missing_and_a_damaged_vector(spark: SparkSession, table: Path) -> None:
    (vector,) = write_vectors(table, [1])
    create(table, VECTORS, metadata(field("id", "long")))
    add = write_data(table, "f", ids(0, 5), deletionVector=vector)
    write_commit(table, 1, [add])
    frame = read_delta(spark, str(table))
    (file,) = table.glob("deletion_vector*.bin")
    content = file.read_bytes()
    file.write_bytes(content[:-2] + b"xx")
    with pytest.raises(SPARK_ERRORS, match="DELTA_DELETION_VECTOR"):
        frame.collect()
    file.unlink()
    with pytest.raises(SPARK_ERRORS, match=file.name):
        frame.filter("id > 1").collect()
