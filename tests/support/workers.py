"""Readers of data files as Python workers use them, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.schema.table_schema import as_nullable
from sparkdelta.base.storage.worker_files import ArrowFiles
from sparkdelta.table.scan.file_split_workers import END, START
from sparkdelta.table.scan.split_workers import RowColumn, SplitReader
from tests.support.table_builder import struct_of


def read_batches(file: Path, *fields: dict[str, Any], **reader: Any) -> list[pa.RecordBatch]:
    """The rows of a whole file as its only split.

    Parameters
    ----------
    fields
        Fields of a schemaString, none of them mapped.
    reader
        Fields of `SplitReader`.
    """
    schema = StructType.fromJson(json.loads(json.dumps(struct_of(*fields))))
    columns = [RowColumn(StructField(f.name, as_nullable(f.dataType)), f) for f in schema.fields]
    split = {"file": [f"file:{file}"], START: [0], END: pa.array([None], pa.int64())}
    given = {"files": ArrowFiles(), "table_root": f"file:{file.parent}", "version": 0, **reader}
    worker = SplitReader(columns=tuple(columns), **given)
    return list(worker.read(iter([pa.RecordBatch.from_pydict(split)])))


def read_rows(file: Path, *fields: dict[str, Any], **reader: Any) -> list[tuple[Any, ...]]:
    """Read the rows of a file as tuples, with the arguments of `read_batches`."""
    batches = read_batches(file, *fields, **reader)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
