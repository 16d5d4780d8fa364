"""Net changes: the rows that two versions differ in, against the rows of both versions.

PROTOCOL.md#deletion-vectors, PROTOCOL.md#row-tracking, PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkdelta import (
    DeltaTable,
    alter_table,
    load_snapshot,
    optimize,
    read_changes,
    read_delta,
    write_checkpoint,
    write_delta,
)
from sparkdelta.base.protocol.file_paths import decode_path
from sparkdelta.exceptions import ColumnNotFoundError, InvalidArgumentError, VersionNotFoundError
from tests.support.errors import raises
from tests.support.rows import python_rows, spark_rows
from tests.support.settings import HOSTILE, settings

VECTORS = {"delta.enableDeletionVectors": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
COMPARED_BY = "sparkdelta.comparedBy"
ROWS = """
    SELECT id, CAST(id % 2 AS INT) AS part, id % 4 AS `n.é`,
      CASE id % 5 WHEN 0 THEN CAST('NaN' AS DOUBLE) WHEN 1 THEN NULL ELSE 0.5D END AS d,
      IF(id % 3 = 0, NULL, named_struct(
        'x', id % 2, 'm', map('a', named_struct('t', id % 3)))) AS s,
      IF(id % 4 = 1, NULL, map_from_arrays(
        IF(id % 2 = 0, array('é', 'b'), array('b', 'é')), array(array(1.5D, NULL), array()))) AS m,
      array(map(id % 2, X'00'), NULL) AS a
    FROM range({start}, {end}, 1, {files})
"""
Change = tuple[Hashable, ...]


def rows(spark: SparkSession, start: int, end: int, files: int = 2) -> DataFrame:
    """Rows of all types of columns, of which many are equal but for the id."""
    return spark.sql(ROWS.format(start=start, end=end, files=files))


def found(frame: DataFrame) -> Counter[Change]:
    return Counter(python_rows(spark_rows(frame)))


def check(spark: SparkSession, path: str, start: int, end: int, by: str, **options: Any) -> None:
    """The changes of versions lead from the rows before them to those after them."""
    changes = read_changes(spark, path, start_version=start, end_version=end, net=True, **options)
    assert changes.schema["_change_type"].metadata == {COMPARED_BY: by}
    moved: Counter[Change] = Counter()
    kinds: dict[str, Counter[Change]] = {}
    for row in found(changes).elements():
        *values, kind = row
        kinds.setdefault(str(kind), Counter())[tuple(values)] += 1
        moved[tuple(values)] += 1 if kind in ("insert", "update_postimage") else -1
    expected = found(read_delta(spark, path, version=end, **options))
    if start:
        expected.subtract(found(read_delta(spark, path, version=start - 1, **options)))
    assert {k: n for k, n in moved.items() if n} == {k: n for k, n in expected.items() if n}
    if by == "values":
        assert kinds.keys() <= {"insert", "delete"}
        assert not kinds.get("insert", Counter()) & kinds.get("delete", Counter())
    else:
        images = [kinds.get(f"update_{image}", Counter()) for image in ("preimage", "postimage")]
        assert sum(images[0].values()) == sum(images[1].values())


def history(spark: SparkSession, path: str, seed: int, steps: int) -> None:
    """Random versions of a table that exists."""
    random, table = Random(seed), DeltaTable.forPath(spark, path)

    def step() -> object:
        number, base = random.randint(0, 30), random.randint(0, 40)
        return random.choice(
            (
                lambda: write_delta(rows(spark, base, base + 5, 1), path, mode="append"),
                lambda: table.delete(f"id % {random.randint(5, 9)} = 1 AND id > {number}"),
                lambda: table.update(f"id BETWEEN {number} AND {number + 3}", {"d": "d + 1"}),
                lambda: table.update(f"id = {number}", {"m": "map('z', array())"}),
                lambda: write_delta(rows(spark, 0, 60, 2).where(f"part = {number % 2}"), path,
                                    mode="overwrite", replace_where=f"part = {number % 2}"),
                lambda: optimize(spark, path),
                lambda: table.restoreToVersion(0),
            )
        )()  # fmt: skip

    for _ in range(steps):
        if random.random() < 0.1:
            write_checkpoint(spark, path)
        step()


@pytest.mark.parametrize(
    ("properties", "partition_by", "seed"),
    [
        pytest.param(VECTORS, ["part"], 1, id="values"),
        pytest.param(MAPPED, None, 2, id="without vectors"),
        pytest.param({**ROW_IDS, **MAPPED}, None, 3, id="ids without vectors"),
        pytest.param({**VECTORS, **ROW_IDS}, ["part"], 4, id="ids"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_random_histories(
    spark: SparkSession, table_path: str, properties: dict[str, str], partition_by: Any, seed: int
) -> None:
    """Always the difference of both versions' rows, of tables without change data feed."""
    write_delta(rows(spark, 0, 40, 4), table_path, properties=properties, partition_by=partition_by)
    history(spark, table_path, seed, 4)
    latest = load_snapshot(spark, table_path).version
    by = "row_id" if "delta.enableRowTracking" in properties else "values"
    for start, end in ((0, latest - 1), (latest // 2, latest)):
        check(spark, table_path, start, end, by)
    with settings(spark, HOSTILE["plans"]):
        check(spark, table_path, 1, latest, by, where="id % 2 = 1 OR m IS NULL",
              columns=["m", "id"], max_driver_files=0)  # fmt: skip


@pytest.mark.slow
def test_only_files_that_differ_are_read(spark: SparkSession, table_path: str) -> None:
    """PROTOCOL.md#deletion-vectors: of a file with another vector, only the rows it differs in."""
    write_delta(spark.range(0, 100, 1, 10), table_path, properties={**VECTORS, **ROW_IDS})
    before = {row.path for row in load_snapshot(spark, table_path).add_files().collect()}
    table = DeltaTable.forPath(spark, table_path)
    table.delete("id = 7")
    table.update("id = 17", {"id": "1700"})
    write_delta(spark.range(100, 101, 1, 1), table_path, mode="append")
    table.delete("id = 100")
    changes = read_changes(spark, table_path, start_version=1, net=True)
    read = {
        decode_path(file).removeprefix(f"file://{table_path}/")
        for file in changes.inputFiles()
        if file.endswith(".parquet")
    }
    live = {row.path for row in load_snapshot(spark, table_path).add_files().collect()}
    assert len(read & before) == 2
    assert read - before == live - before
    assert len(read) == 3
    assert sorted(map(tuple, changes.collect())) == [
        (7, "delete"), (17, "update_preimage"), (1700, "update_postimage"),
    ]  # fmt: skip
    # The same by values, of files that are written again although no row changes.
    alter_table(spark, table_path).set_properties({"delta.enableRowTracking": "false"})
    optimize(spark, table_path)
    changes = read_changes(spark, table_path, start_version=1, net=True)
    assert changes.schema["_change_type"].metadata == {COMPARED_BY: "values"}
    assert sorted(map(tuple, changes.collect())) == [
        (7, "delete"), (17, "delete"), (1700, "insert"),
    ]  # fmt: skip
    assert read_changes(spark, table_path, start_version=6, net=True).count() == 0
    assert read_changes(spark, table_path, start_version=0, net=True).count() == 99


@pytest.mark.full
def test_equal_maps_and_nans_are_no_change(spark: SparkSession, table_path: str) -> None:
    """Rows count as often as they occur; maps have no order, and NaN is equal to NaN."""
    texts = (
        "SELECT map('a', CAST('NaN' AS FLOAT), 'b', NULL) AS m, 'x' AS v",
        "SELECT map('b', NULL, 'a', CAST('NaN' AS FLOAT)) AS m, 'x' AS v",
        "SELECT CAST(NULL AS MAP<STRING, FLOAT>) AS m, NULL AS v",
    )
    for text in (texts[0], texts[0], texts[2]):
        write_delta(spark.sql(text).coalesce(1), table_path, mode="append")
    write_delta(spark.sql(texts[1]).coalesce(1), table_path, mode="overwrite")
    write_delta(spark.sql(texts[2]).coalesce(1), table_path, mode="append")
    changes = read_changes(spark, table_path, start_version=3, net=True).collect()
    assert [(list(row.m), row.v, row["_change_type"]) for row in changes] == [
        (["a", "b"], "x", "delete")
    ]
    assert read_changes(spark, table_path, start_version=3, net=True, columns=["v"]).count() == 1
    assert (
        read_changes(spark, table_path, start_version=3, net=True, where="v IS NULL").count() == 0
    )


@pytest.mark.full
def test_refusals(spark: SparkSession, table_path: str, tmp_path: Path) -> None:
    write_delta(spark.sql("SELECT 1 AS n, 2 AS m"), table_path, properties={**MAPPED, **VECTORS})
    alter_table(spark, table_path).add_column("k", "INT")
    write_delta(spark.sql("SELECT 3 AS n, 4 AS m, 5 AS k"), table_path, mode="append")
    assert sorted(
        map(tuple, read_changes(spark, table_path, start_version=0, net=True).collect()), key=str
    ) == [(1, 2, None, "insert"), (3, 4, 5, "insert")]
    with pytest.raises(ColumnNotFoundError):
        read_changes(spark, table_path, start_version=1, net=True, where="_change_type = 'insert'")
    with pytest.raises(VersionNotFoundError):
        read_changes(spark, table_path, start_version=-3, net=True)
    with pytest.raises(InvalidArgumentError, match="metadata columns"):
        read_changes(spark, table_path, start_version=1, net=True, columns=["_metadata.row_id"])
    alter_table(spark, table_path).drop_columns("m")
    with raises("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"):
        read_changes(spark, table_path, start_version=1, net=True)
    with pytest.raises(InvalidArgumentError, match="net"):
        read_changes(spark, table_path, start_version=1, net=1)  # type: ignore[arg-type]
    other = str(tmp_path / "other")
    write_delta(spark.sql("SELECT 1 AS n, 'x' AS _change_type"), other)
    with raises("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"):
        read_changes(spark, other, start_version=0, net=True)
    variants = str(tmp_path / "variants")
    write_delta(spark.sql("SELECT 1 AS n, parse_json('1') AS v"), variants)
    with pytest.raises(InvalidArgumentError, match="cannot be compared"):
        read_changes(spark, variants, start_version=0, net=True)
    changes = read_changes(spark, variants, start_version=0, net=True, columns=["n"])
    assert changes.collect() == [(1, "insert")]
