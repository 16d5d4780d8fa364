"""Random histories of DELETE, UPDATE and MERGE: a table has the rows of a list in every version.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors, PROTOCOL.md#add-cdc-file,
PROTOCOL.md#row-ids
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from sparkdelta import DeltaTable, read_changes, read_delta, verify, write_delta
from tests.support.row_model import (
    COLUMNS,
    Change,
    Row,
    Statement,
    all_conditions,
    all_values,
    applied,
    rows_of,
    statements,
)

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
EXAMPLES = {"dev": 1, "ci": 4, "nightly": 50}[PROFILE]
HISTORIES = 100
STEPS = {"dev": 3, "ci": 3, "nightly": 4}[PROFILE]
KINDS = ["DELETE", "UPDATE", "MERGE"]
ROWS = 8
ON = {
    "vectors": "delta.enableDeletionVectors",
    "changes": "delta.enableChangeDataFeed",
    "row ids": "delta.enableRowTracking",
}


@pytest.mark.slow
@settings(
    deadline=None,
    print_blob=True,
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    seed=st.integers(0, 1 << 64),
    without=st.sets(st.sampled_from(sorted(ON))),
    partitioned=st.booleans(),
    files=st.integers(1, 5).map(lambda number: 6 - number),
)
def test_tables_change_as_lists_do(
    spark: SparkSession, seed: int, without: set[str], partitioned: bool, files: int
) -> None:
    random = Random(seed)
    histories = [rows_of(random, number, ROWS) for number in range(HISTORIES)]
    directory = tempfile.mkdtemp()
    path = str(Path(directory, "table"))
    try:
        rows = spark.createDataFrame(_all(histories), COLUMNS)
        write_delta(
            rows.repartition(files, random.choice(["history", "key"])),
            path,
            partition_by=["part"] if partitioned else None,
            properties={name: "true" for key, name in ON.items() if key not in without},
        )
        versions = [_all(histories)]
        all_changes = [Counter(Change("insert", row) for row in versions[0])]
        kinds = [*random.sample(KINDS, len(KINDS)), random.choice(KINDS)]
        for step, kind in enumerate(kinds[:STEPS], start=1):
            all_statements = statements(random, kind, histories, first_key=100 * step)
            histories, changes = _applied(all_statements, histories)
            _change(spark, path, kind, all_statements, changes)
            if changes:
                versions.append(_all(histories))
                all_changes.append(Counter(changes))
                _assert_change_data(path, len(versions) - 1, changes)
        start = random.randrange(len(versions))
        _assert_net_changes(spark, path, versions, start, random.randrange(start, len(versions)))
        if "changes" not in without:
            start = random.randrange(len(versions))
            _assert_changes(spark, path, all_changes, start, random.randrange(start, len(versions)))
        _assert_versions(spark, path, versions, has_row_ids="row ids" not in without)
        assert verify(spark, path, footers=True).is_clean
    finally:
        shutil.rmtree(directory)


def _all(histories: list[list[Row]]) -> list[Row]:
    return sorted((row for rows in histories for row in rows), key=repr)


def _applied(
    all_statements: list[Statement], histories: list[list[Row]]
) -> tuple[list[list[Row]], list[Change]]:
    done = [applied(*one) for one in zip(all_statements, histories, strict=True)]
    return [rows for rows, _ in done], [change for _, changes in done for change in changes]


def _change(
    spark: SparkSession,
    path: str,
    kind: str,
    all_statements: list[Statement],
    changes: list[Change],
) -> None:
    """Carry out the statements of all histories by one, which tells how many rows it changed."""
    table = DeltaTable.forPath(spark, path)
    num = Counter(change.kind for change in changes)
    if kind == "MERGE":
        counts = [num["update_postimage"], num["delete"], num["insert"]]
        assert _merge(spark, table, all_statements) == (sum(counts), *counts)
        return
    clauses = [statement.clauses[0] for statement in all_statements]
    where = all_conditions([clause.condition for clause in clauses], "")
    if kind == "UPDATE":
        assert table.update(where, all_values(clauses)).num_updated_rows == num["update_postimage"]
    else:
        assert table.delete(where).num_deleted_rows == num["delete"]


def _merge(
    spark: SparkSession, table: DeltaTable, all_statements: list[Statement]
) -> tuple[int, ...]:
    """The numbers of affected, updated, deleted and inserted rows."""
    rows = [(*each.row, each.match) for statement in all_statements for each in statement.source]
    source = spark.createDataFrame(rows, f"{COLUMNS}, match INT")
    on = f"t.history = s.history AND t.{all_statements[0].column} = s.match"
    condition = all_conditions([statement.condition for statement in all_statements], "t.")
    on += f" AND ({condition})" if condition else ""
    builder = table.alias("t").merge(source.alias("s"), on)
    for clauses in zip(*(statement.clauses for statement in all_statements), strict=True):
        kind, action, prefix = clauses[0].rows, clauses[0].action, clauses[0].prefix
        condition = all_conditions([clause.condition for clause in clauses], prefix)
        values = all_values(clauses)
        arguments: dict[str, Any] = {"condition": condition}
        if action == "Update":
            arguments["set"] = values
        if action == "Insert":
            arguments["values"] = {"history": "s.history", "key": "s.key", **values}
        builder = getattr(builder, f"when{kind}{action}")(**arguments)
    (counts,) = builder.execute().collect()
    return tuple(counts)


def _assert_versions(
    spark: SparkSession, path: str, versions: list[list[Row]], *, has_row_ids: bool
) -> None:
    """Each version has its rows; a row keeps its id in all of them, and no other ever has it."""
    ids: dict[tuple[int, int], int] = {}
    columns = [*Row._fields, *(["_metadata.row_id"] if has_row_ids else [])]
    for version, wanted in enumerate(versions):
        found = read_delta(spark, path, version=version, columns=columns).collect()
        assert sorted((Row(*row[:5]) for row in found), key=repr) == wanted, version
        if has_row_ids:
            mine = {(row["history"], row["key"]): row[5] for row in found}
            assert all(ids.setdefault(key, number) == number for key, number in mine.items())
            assert len({*ids.values()}) == len(ids)


def _assert_changes(
    spark: SparkSession, path: str, changes: list[Counter[Change]], start: int, end: int
) -> None:
    """A range of versions has the changes of each of them."""
    found = read_changes(spark, path, start_version=start, end_version=end)
    by_version: list[Counter[Change]] = [Counter() for _ in changes]
    for row in found.select(*Row._fields, "_change_type", "_commit_version").collect():
        by_version[row["_commit_version"]][Change(row["_change_type"], Row(*row[:5]))] += 1
    assert by_version[start : end + 1] == changes[start : end + 1]
    assert not any(by_version[:start] + by_version[end + 1 :])


def _assert_net_changes(
    spark: SparkSession, path: str, versions: list[list[Row]], start: int, end: int
) -> None:
    """The net changes of a range are the difference of the rows after it and before it."""
    net = read_changes(spark, path, start_version=start, end_version=end, net=True)
    found: Counter[Row] = Counter()
    for *values, kind in net.select(*Row._fields, "_change_type").collect():
        found[Row(*values)] += 1 if kind in ("insert", "update_postimage") else -1
    found.update(versions[start - 1] if start else [])
    assert found == Counter(versions[end])


def _assert_change_data(path: str, version: int, changes: list[Change]) -> None:
    """Change data files, if a version has any, hold all of its changes."""
    log = Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines()
    files = [action["cdc"] for action in map(json.loads, log) if "cdc" in action]
    if files:
        found = [change for file in files for change in _changes(path, file)]
        assert sorted(found, key=repr) == sorted(changes, key=repr)


def _changes(path: str, file: dict[str, Any]) -> list[Change]:
    with pa.OSFile(str(Path(path, file["path"]))) as source:
        rows = pq.ParquetFile(source).read().to_pylist()
    part = file["partitionValues"]
    return [
        Change(
            row.pop("_change_type"),
            Row(**{**row, **{name: value and int(value) for name, value in part.items()}}),
        )
        for row in rows
    ]
