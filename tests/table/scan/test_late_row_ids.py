"""Row ids of files that are chosen when a query runs are values of these files: no row is joined.

PROTOCOL.md#reader-requirements-for-row-tracking
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import load_snapshot, read_delta
from sparkdelta.table.scan import scan as scans
from sparkdelta.table.scan.file_listing_modes import FileListingMode
from tests.support.log_writer import write_commit
from tests.support.snapshots import rows
from tests.support.spark_jobs import files_read, no_jobs, plan
from tests.support.table_builder import (
    ROW_TRACKING,
    field,
    inline_vector,
    metadata,
    protocol,
    write_data,
)

COLUMNS = ["id", "baseRowId", "p", "_metadata.row_id", "_metadata.row_commit_version"]
FEATURES = ["deletionVectors", "rowTracking", "domainMetadata"]


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files of three rows, in one directory: the second with stored ids, the third with a
    deletion vector, the fourth without ids. One of the columns has a name of the log's.
    """
    table = tmp_path_factory.mktemp("tracked") / "table"
    actions = []
    for number in range(4):
        at = [10 * number + row for row in range(3)]
        data = {"id": at, "baseRowId": [-each for each in at]}
        if number == 1:
            data |= {"_row_id": [700, None, 702], "_row_commit_version": [7, None, None]}
        columns = {name: pa.array(values, pa.int64()) for name, values in data.items()}
        more: dict[str, Any] = {"deletionVector": inline_vector([1])} if number == 2 else {}
        if number < 3:
            more |= {"baseRowId": 100 * number, "defaultRowCommitVersion": number}
        values = {"p": str(number % 2)}
        action = write_data(table, f"f{number}", pa.table(columns), values, **more)
        bounds = {"minValues": {"id": at[0]}, "maxValues": {"id": at[-1]}}
        action["add"]["stats"] = json.dumps({"numRecords": 3, **bounds})
        actions.append(action)
    schema = (field("id", "long"), field("baseRowId", "long"), field("p", "integer"))
    first = metadata(*schema, partitioned_by=["p"], configuration=ROW_TRACKING)
    write_commit(table, 0, [protocol(features=FEATURES), first, *actions])
    return table


EXPECTED = [
    (0, 0, 0, 0, 0), (1, -1, 0, 1, 0), (2, -2, 0, 2, 0),
    (10, -10, 1, 700, 7), (11, -11, 1, 101, 1), (12, -12, 1, 702, 1),
    (20, -20, 0, 200, 2), (22, -22, 0, 202, 2),
    (30, -30, 1, None, None), (31, -31, 1, None, None), (32, -32, 1, None, None),
]  # fmt: skip


def _late(spark: SparkSession, table: Path) -> DataFrame:
    scan = load_snapshot(spark, str(table)).scan(columns=COLUMNS)
    assert scan.listing is FileListingMode.LATE
    return scan.to_df()


def _joined(spark: SparkSession, table: Path) -> DataFrame:
    with patch.object(scans, "MAX_FILES_WITH_ROW_IDS", 0):
        scan = load_snapshot(spark, str(table)).scan(columns=COLUMNS)
        assert scan.listing is FileListingMode.ROW_TRACKING
        return scan.to_df()


def test_ids_are_those_of_the_files(spark: SparkSession, tracked: Path) -> None:
    late, joined = _late(spark, tracked), _joined(spark, tracked)
    assert rows(late) == rows(joined) == sorted(EXPECTED, key=repr)
    assert late.schema == joined.schema


def test_no_row_is_joined(spark: SparkSession, tracked: Path) -> None:
    with no_jobs(spark):
        nodes = {node.name for node in plan(_late(spark, tracked))}
    assert not [name for name in nodes if "Join" in name or "Python" in name]


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("id = 11", 1),
        ("p = 1", 2),
        ("row_id = 202", 4),
        ("row_id = 700 AND p = 1", 2),
        ("row_commit_version = 7", 4),
        ("row_id IS NULL AND id > 30", 1),
        ("baseRowId = -2", 4),
    ],
)
def test_filters_choose_files(
    spark: SparkSession, tracked: Path, condition: str, files: int
) -> None:
    """Filters choose files, except those on row ids, as rows may have stored ones."""
    late = _late(spark, tracked).filter(condition)
    assert rows(late) == rows(_joined(spark, tracked).filter(condition)) != []
    assert sum(files_read(late)) == files


def test_commit_versions_choose_files_that_store_none(spark: SparkSession, tmp_path: Path) -> None:
    """Then they are the files' own."""
    table = tmp_path / "table"
    configuration = {"delta.enableRowTracking": "true"}
    first = metadata(field("id", "long"), configuration=configuration)
    write_commit(table, 0, [protocol(features=FEATURES), first])
    for version in range(1, 4):
        data = pa.table({"id": pa.array([version], pa.int64())})
        of_file = {"baseRowId": version - 1, "defaultRowCommitVersion": version}
        write_commit(table, version, [write_data(table, f"f{version}", data, **of_file)])
    columns = ["id", "_metadata.row_commit_version"]
    late = read_delta(spark, str(table), columns=columns).filter("row_commit_version > 2")
    assert rows(late) == [(3, 3)]
    assert files_read(late) == [1]
