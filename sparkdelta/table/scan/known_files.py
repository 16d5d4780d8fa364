"""The file list of a scan, built from add actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.base.protocol.file_paths import resolve
from sparkdelta.base.protocol.wide_statistics import num_records
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.scan_request import (
    BASE_ROW_ID,
    DEFAULT_ROW_COMMIT_VERSION,
    partition_column,
)
from sparkdelta.table.vectors.deletion_vector_writing_workers import VECTOR_ARROW


def known_files(
    adds: Sequence[AddFile],
    configuration: TableConfiguration,
    table_root: str,
    *,
    has_vectors: bool,
    tracks_rows: bool = False,
) -> pa.Table:
    """Return the columns that scans need of each file, see `NativeScan.rows`.

    Parameters
    ----------
    has_vectors, tracks_rows
        True for the columns about deletion vectors, and about row ids.
    """
    keys = [key for key, _ in configuration.partition_keys]
    fields = [("file", pa.string()), ("size", pa.int64())]
    fields += [(partition_column(number), pa.string()) for number in range(len(keys))]
    if has_vectors:
        fields += [("deletionVector", VECTOR_ARROW), ("numRecords", pa.int64())]
    if tracks_rows:
        fields += [(BASE_ROW_ID, pa.int64()), (DEFAULT_ROW_COMMIT_VERSION, pa.int64())]

    def row(add: AddFile) -> dict[str, Any]:
        vector = add.deletion_vector
        return {
            "file": resolve(table_root, add.path),
            "size": add.size,
            **{partition_column(n): add.partition_values.get(key) for n, key in enumerate(keys)},
            "deletionVector": None if vector is None else vector.to_dict(),
            "numRecords": None if vector is None else num_records(add.stats),
            BASE_ROW_ID: add.base_row_id,
            DEFAULT_ROW_COMMIT_VERSION: add.default_row_commit_version,
        }

    return pa.Table.from_pylist([row(add) for add in adds], schema=pa.schema(fields))
