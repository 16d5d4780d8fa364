"""Reads of data files by Spark's own source (`native_scan`) and by executors (`distributed_scan`):
the same rows, columns and types for the same request.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import load_snapshot
from sparkdelta.table.scan.distributed_scan import DistributedScan
from sparkdelta.table.scan.live_files import LiveFiles
from sparkdelta.table.scan.native_scan import NativeScan
from sparkdelta.table.scan.scan_request import MetadataColumn, RowCondition, ScanRequest
from tests.support.log_writer import write_commit
from tests.support.table_builder import (
    ROW_TRACKING,
    field,
    inline_vector,
    metadata,
    protocol,
    write_data,
)

FILES = ("p=a/f", "p=a/a b%20c+é.parquet", "_hidden", "p=b//g")
"""The files of each table; row `n` of file `m` has the id ``100 * m + n``."""
DELETED = {0: [1, 7], 2: [0]}
ROWS = 10


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def _write(table: Path, number: int, data: pa.Table, **fields: Any) -> dict[str, Any]:
    """A file of several row groups, and its add action."""
    action = write_data(table, FILES[number].replace("//", "/"), data, **fields)
    pq.write_table(data, table / FILES[number], row_group_size=4)
    action["add"]["size"] = (table / FILES[number]).stat().st_size
    action["add"]["path"] = FILES[number].replace("%", "%25").replace(" ", "%20")
    return action


def _ids(number: int) -> list[int]:
    return [100 * number + n for n in range(ROWS)]


def _with_everything(table: Path) -> None:
    """Partitions that share a directory, deletion vectors, row tracking and a column of `void`."""
    adds = []
    for number in range(len(FILES)):
        data = pa.table({"id": pa.array(_ids(number), pa.int64())})
        if number == 1:
            data = data.append_column("_row_id", pa.array([7_000, None] * 5, pa.int64()))
        vector = DELETED.get(number)
        fields = {} if vector is None else {"deletionVector": inline_vector(vector)}
        fields |= {"baseRowId": 1_000 * number, "defaultRowCommitVersion": number}
        adds.append(_write(table, number, data, partition_values={"p": str(number)}, **fields))
    schema = (field("p", "integer"), field("v", "void"), field("id", "long"))
    features = ["deletionVectors", "rowTracking", "domainMetadata"]
    first = metadata(*schema, partitioned_by=["p"], configuration=ROW_TRACKING)
    write_commit(table, 0, [protocol(features=features), first, *adds])


def _mapped(mode: str) -> Callable[[Path], None]:
    """Columns that data files call otherwise."""

    def write(table: Path) -> None:
        column = pa.field("c1", pa.int64(), metadata={b"PARQUET:field_id": b"1"})
        data = [pa.table([pa.array(_ids(n), pa.int64())], pa.schema([column])) for n in range(2)]
        mapping = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c1"}
        first = metadata(
            field("id", "long", metadata=mapping),
            configuration={
                "delta.columnMapping.mode": mode,
                "delta.columnMapping.maxColumnId": "1",
            },
        )
        adds = [_write(table, number, part) for number, part in enumerate(data)]
        write_commit(table, 0, [protocol(features=["columnMapping"]), first, *adds])

    return write


def _both(spark: SparkSession, table: Path, **wanted: Any) -> tuple[DataFrame, DataFrame]:
    tracked = MetadataColumn.ROW_ID in wanted.get("metadata_columns", ())
    state = load_snapshot(spark, str(table)).state
    files = LiveFiles(state, None, None, tracks_rows=tracked)
    request = ScanRequest(
        configuration=state.configuration,
        table_root=state.log.store.table_root,
        version=0,
        options={},
        partition_time_zone="UTC",
        **wanted,
    )
    native = NativeScan(spark, request).rows(files.listed(100))
    distributed = DistributedScan(spark, request).rows(files.frame())
    for frame in (native, distributed):
        assert [(f.name, f.dataType) for f in frame.schema] == [
            (f.name, f.dataType) for f in request.output
        ]
    return native, distributed


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


POSITION = frozenset([MetadataColumn.FILE, MetadataColumn.ROW_POSITION])


@pytest.mark.parametrize("mode", ["name", "id"])
def test_files_and_positions_of_mapped_columns(spark: SparkSession, table: Path, mode: str) -> None:
    """Reader Requirements for Column Mapping"""
    _mapped(mode)(table)
    wanted = [(100 * m + n, f"file:{table}/{FILES[m]}", n) for m in range(2) for n in range(ROWS)]
    for frame in _both(spark, table, metadata_columns=POSITION):
        assert _rows(frame) == sorted(wanted)


def test_every_column_of_a_table_with_everything(spark: SparkSession, table: Path) -> None:
    """Deletion Vectors, Reader Requirements for Row Tracking"""
    _with_everything(table)
    wanted = [
        (
            m,
            None,
            100 * m + n,
            f"file:{table}/{FILES[m].replace('//', '/')}",
            n,
            7_000 if m == 1 and n % 2 == 0 else 1_000 * m + n,
            m,
        )
        for m in range(len(FILES))
        for n in range(ROWS)
        if n not in DELETED.get(m, [])
    ]
    for frame in _both(spark, table, metadata_columns=frozenset(MetadataColumn)):
        assert _rows(frame) == sorted(wanted)


def test_some_columns_of_some_rows(spark: SparkSession, table: Path) -> None:
    _with_everything(table)
    wanted = [(f"file:{table}/{FILES[2]}", n) for n in range(5, ROWS)]
    condition = RowCondition("p = 2 AND id > 204", "p = 2 AND id > 204", is_infallible=True)
    columns = frozenset(["p", "id"])
    for frame in _both(
        spark, table, columns=columns, metadata_columns=POSITION, condition=condition
    ):
        assert _rows(frame.select(*sorted(name.value for name in POSITION))) == sorted(wanted)


def test_metadata_alone(spark: SparkSession, table: Path) -> None:
    """No column is read of the files."""
    _with_everything(table)
    for frame in _both(spark, table, columns=frozenset(), metadata_columns=POSITION):
        assert _rows(frame) == sorted(
            (f"file:{table}/{name.replace('//', '/')}", n)
            for m, name in enumerate(FILES)
            for n in range(ROWS)
            if n not in DELETED.get(m, [])
        )
