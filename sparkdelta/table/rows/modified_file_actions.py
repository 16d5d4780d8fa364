"""The actions of data files whose rows an operation deletes.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_actions import AddFile, RemoveFile
from sparkdelta.base.schema.action_schemas import ADD as ADD_TYPE
from sparkdelta.base.schema.sql_text import from_json_text
from sparkdelta.table.rows.removed_files import remove_actions
from sparkdelta.table.vectors.deletion_vector_writing_workers import ADD, NUM_RECORDS, STATS, VECTOR


def adds_before(touched: pa.Table) -> list[AddFile]:
    """Return the add actions of `TOUCHED`, as they were."""
    return [AddFile.from_dict(json.loads(text)) for text in touched[ADD].to_pylist()]


def new_actions(
    touched: pa.Table, before: Sequence[AddFile]
) -> tuple[tuple[AddFile, ...], tuple[RemoveFile, ...]]:
    """Return the actions of `TOUCHED`: an add of each file that keeps its vector, a remove of each
    file.

    Parameters
    ----------
    before
        As `adds_before` gives them.
    """
    rows = touched.select([VECTOR, STATS, NUM_RECORDS]).to_pylist()
    pairs = [*zip(before, rows, strict=True)]
    return (
        tuple(_with_vector(add, row) for add, row in pairs if row[STATS] is not None),
        tuple(_removed(add, row[NUM_RECORDS]) for add, row in pairs),
    )


def action_rows(touched: DataFrame) -> DataFrame:
    """Return the actions of `TOUCHED` as a DataFrame with columns `remove` and `add`."""
    parsed = touched.selectExpr(
        f"{from_json_text(ADD, ADD_TYPE)} AS {ADD}", VECTOR, STATS, NUM_RECORDS
    )
    changed = {"dataChange": "TRUE", "stats": STATS, "deletionVector": VECTOR}
    fields = ", ".join(f"{changed.get(n, f'{ADD}.{n}')} AS {n}" for n in ADD_TYPE.names)
    adds = parsed.filter(f"{STATS} IS NOT NULL").selectExpr(f"struct({fields}) AS add")
    removes = remove_actions(parsed.select(f"{ADD}.*", NUM_RECORDS), num_records=NUM_RECORDS)
    return removes.unionByName(adds, allowMissingColumns=True)


def _with_vector(add: AddFile, row: Mapping[str, Any]) -> AddFile:
    vector = DeletionVectorDescriptor.from_dict(row[VECTOR])
    return replace(add, data_change=True, stats=row[STATS], deletion_vector=vector)


def _removed(add: AddFile, num_records: int) -> RemoveFile:
    return RemoveFile(
        path=add.path,
        deletion_timestamp=None,
        data_change=True,
        extended_file_metadata=True,
        partition_values=add.partition_values,
        size=add.size,
        deletion_vector=add.deletion_vector,
        base_row_id=add.base_row_id,
        default_row_commit_version=add.default_row_commit_version,
        stats=json.dumps({NUM_RECORDS: num_records}, separators=(",", ":")),
    )
