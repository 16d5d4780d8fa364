"""The order of file actions in sidecars, what tags say of them, and what is skipped by that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.base.predicates.condition_text import parse_condition
from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.action_schemas import ADD, REMOVE
from sparkdelta.base.schema.checkpoint_schema import CheckpointSchema
from sparkdelta.base.schema.statistics_schema import statistics_schema
from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, DataSkipping, StoredFacts
from sparkdelta.base.spark.row_range_frames import RowRanges, range_bounds
from sparkdelta.operations.checkpoint.checkpoint_row_frames import (
    add_rows,
    checkpoint_rows,
    remove_rows,
)
from sparkdelta.operations.checkpoint.sidecar_reuse import sidecars_in_range
from sparkdelta.table.checkpoint.checkpoint_layout_frames import (
    FileOrder,
    by_deletion,
    hashed,
    leading_paths,
)
from sparkdelta.table.checkpoint.sidecar_skipping_frames import SidecarSkipping
from sparkdelta.table.checkpoint.sidecar_summary_frames import sidecar_summaries
from sparkdelta.table.log.reconciliation_frames import keyed_file_actions

SIZE = 1000
COLUMNS = (
    StructType()
    .add("id", "integer")
    .add("ratio", "double")
    .add("name", "string")
    .add("at", "timestamp")
    .add("day", "date")
    .add("zone", "string")
)
KEYS = (("day", COLUMNS["day"]), ("zone", COLUMNS["zone"]))
STATISTICS = statistics_schema(COLUMNS, ("day", "zone"), ColumnMappingMode.NONE)
LEADING = leading_paths(STATISTICS, ())
FORMS = {
    "both": CheckpointSchema(STATISTICS, KEYS),
    "json": CheckpointSchema(STATISTICS, KEYS, with_struct=False),
    "struct": CheckpointSchema(STATISTICS, KEYS, with_json=False),
    "none": CheckpointSchema(STATISTICS, KEYS, with_json=False, with_struct=False),
}


def file(number: int, **values: Any) -> tuple[Any, ...]:
    """An add: of ten days, and of ids that follow each other."""
    least, most = {"id": number * 10, "name": f"n{number}"}, {"id": number * 10 + 9, "name": "x"}
    stats = {
        "numRecords": 10, "minValues": least, "maxValues": most, "nullCount": {"id": 0, "name": 1}
    }  # fmt: skip
    fields = {
        "path": f"f{number}",
        "partitionValues": {"day": f"2024-01-{10 + number % 10}", "zone": "z"},
        "size": SIZE,
        "stats": json.dumps(stats),
        **values,
    }
    return tuple(fields.get(name) for name in ADD.names)


def rows(spark: SparkSession, *files: tuple[Any, ...], form: str = "both") -> DataFrame:
    frame = spark.createDataFrame(list(files), ADD)
    return add_rows(frame, schema=FORMS[form], stored=NOTHING_STORED, time_zone="UTC")


def tombstones(spark: SparkSession, *times: int) -> DataFrame:
    values = [{"path": f"{time}", "deletionTimestamp": time} for time in times]
    return spark.createDataFrame([tuple(v.get(n) for n in REMOVE.names) for v in values], REMOVE)


def order(form: str = "both") -> FileOrder:
    return FileOrder(FORMS[form], LEADING, "UTC")


def test_leading_columns() -> None:
    """The first with bounds that have an order; clustering columns where there are some."""
    assert LEADING == (("id",), ("name",))
    assert leading_paths(STATISTICS, (("at",), ("gone",))) == (("at",),)
    assert leading_paths(STATISTICS, (("ratio",),)) == LEADING
    assert leading_paths(StructType([STATISTICS["numRecords"]]), ()) == ()


@pytest.mark.parametrize("form", FORMS)
def test_clustered_rows_are_in_order(spark: SparkSession, form: str) -> None:
    frame = rows(spark, *(file(number) for number in range(40)), form=form)
    schema, adds = FORMS[form], frame.select("add.*")
    stored = StoredFacts({}, schema.statistics if schema.with_struct else None)
    if not schema.with_json:
        adds = adds.withColumn("stats", F.lit(None).cast("string"))
    keys = order(form).sampled_keys(adds, stored)
    ranges = RowRanges.of(range_bounds(keys, 4).collect()[0])
    clustered = order(form).clustered(frame, ranges)
    ordered = clustered.select("add.path", F.spark_partition_id().alias("p"))
    found = [(row["p"], int(row["path"][1:])) for row in ordered.collect()]
    if form == "none":  # by the days, then by the path as text
        assert [n % 10 for _, n in found] == sorted(n % 10 for n in range(40))
    else:
        assert [n for _, n in found] == sorted(range(40), key=lambda n: (n % 10, n))
    assert [p for p, _ in found] == sorted(p for p, _ in found)
    assert 2 <= len({p for p, _ in found}) <= 4
    assert ordered.columns == ["path", "p"]


def test_other_orders(spark: SparkSession) -> None:
    frame = rows(spark, *(file(number) for number in range(40)))
    spread = hashed(frame, 3).groupBy(F.spark_partition_id()).count().collect()
    assert len(spread) == 3
    times = [5, 3, 9, 1]
    removes = spark.createDataFrame(
        [
            tuple({"path": f"{t}", "deletionTimestamp": t}.get(n) for n in REMOVE.names)
            for t in times
        ],
        REMOVE,
    )
    found = by_deletion(remove_rows(removes, expired_at_ms=0), 2).select("remove.path").collect()
    assert [int(row["path"]) for row in found] == sorted(times)


def summary(spark: SparkSession, *files: tuple[Any, ...], form: str = "both") -> dict[str, Any]:
    frame = checkpoint_rows(rows(spark, *files, form=form), columns=FORMS[form].sidecar_file)
    (row,) = sidecar_summaries(frame, F.lit("f"), order(form)).collect()
    return {
        **row.asDict(),
        "partition_values": json.loads(row["partition_values"]),
        "statistics": json.loads(row["statistics"]),
    }


@pytest.mark.parametrize("form", ["both", "json", "struct"])
def test_tags_have_the_ranges_of_all_files(spark: SparkSession, form: str) -> None:
    """PROTOCOL.md#sidecar-file-information"""
    null_day = file(7, partitionValues={"day": None, "zone": "a"})
    found = summary(spark, file(1), file(23), null_day, form=form)
    assert (found["num_adds"], found["num_removes"], found["num_rows"]) == (3, 0, 3)
    assert found["add_bytes"] == 3 * SIZE
    assert found["partition_values"] == {
        "numRecords": 3,
        "minValues": {"day": "2024-01-11", "zone": "a"},
        "maxValues": {"day": "2024-01-13", "zone": "z"},
        "nullCount": {"day": 1, "zone": 0},
    }
    assert found["statistics"] == {
        "numRecords": 30,
        "minValues": {"id": 10, "name": "n1"},
        "maxValues": {"id": 239, "name": "x"},
        "nullCount": {"id": 0, "name": 3},
    }


def test_a_bound_that_a_file_lacks_is_not_known(spark: SparkSession) -> None:
    without = file(5, stats=json.dumps({"numRecords": 10, "minValues": {"name": "a"}}))
    found = summary(spark, file(1), without)["statistics"]
    assert found["minValues"] == {"name": "a"}
    assert found["maxValues"] == {}
    assert found["nullCount"] == {}
    assert found["numRecords"] == 20
    assert summary(spark, file(1), file(5, stats=None))["statistics"] == {
        "minValues": {}, "maxValues": {}, "nullCount": {}
    }  # fmt: skip


def test_a_column_of_nulls_hides_no_bound(spark: SparkSession) -> None:
    nulls = file(5, stats=json.dumps({"numRecords": 10, "nullCount": {"id": 10, "name": 10}}))
    found = summary(spark, file(1), nulls)["statistics"]
    assert found["minValues"] == {"id": 10, "name": "n1"}
    assert found["nullCount"] == {"id": 10, "name": 11}


def test_long_texts_are_no_bounds(spark: SparkSession) -> None:
    found = summary(spark, file(1, partitionValues={"day": "2024-01-01", "zone": "z" * 200}))
    assert found["partition_values"]["minValues"] == {"day": "2024-01-01"}


def test_tombstones_have_their_times(spark: SparkSession) -> None:
    removes = remove_rows(tombstones(spark, 7, 5), expired_at_ms=0)
    frame = checkpoint_rows(removes, columns=FORMS["both"].sidecar_file)
    (row,) = sidecar_summaries(frame, F.lit("f"), order()).collect()
    assert (row["num_adds"], row["num_removes"]) == (0, 2)
    assert (row["first_deletion"], row["last_deletion"]) == (5, 7)


SIDECARS = {
    # name: the numbers of its files
    "first": [0, 1],  # 10 and 11 January, ids 0 to 19
    "last": [8, 19],  # 18 and 19 January, ids 80 to 199
}


@pytest.fixture
def tags(spark: SparkSession) -> DataFrame:
    """Two sidecars with ranges, one without, and one of files in no partition."""
    found = []
    for name, numbers in SIDECARS.items():
        facts = summary(spark, *(file(number) for number in numbers))
        found.append((name, json.dumps(facts["partition_values"]), json.dumps(facts["statistics"])))
    nulls = summary(spark, file(4, partitionValues={"day": None, "zone": ""}))
    found.append(("null", json.dumps(nulls["partition_values"]), json.dumps(nulls["statistics"])))
    found.append(("unknown", "{}", "{}"))
    return spark.createDataFrame(found, "name STRING, partition_values STRING, statistics STRING")


ALL = {"first", "last", "null", "unknown"}


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("day = DATE'2024-01-10'", {"first", "unknown"}),
        ("day = DATE'2024-01-15'", {"unknown"}),
        ("day > DATE'2024-01-11'", {"last", "unknown"}),
        ("day IN (DATE'2024-01-11', DATE'2024-01-18')", {"first", "last", "unknown"}),
        ("day IS NULL", {"null", "unknown"}),
        ("day IS NOT NULL", {"first", "last", "unknown"}),
        ("zone LIKE 'z%'", {"first", "last", "unknown"}),
        ("zone = 'y'", {"unknown"}),
        ("id = 15", {"first", "unknown"}),
        ("id BETWEEN 30 AND 45", {"null", "unknown"}),
        ("id > 19", {"last", "null", "unknown"}),
        ("id IS NULL", {"unknown"}),
        ("name IS NULL", ALL),
        ("day = DATE'2024-01-18' AND id < 80", {"unknown"}),
        ("day = DATE'2024-01-10' OR id = 199", {"first", "last", "unknown"}),
        ("NOT (id <= 19)", {"last", "null", "unknown"}),
        ("ratio > 7", ALL),
        ("at = TIMESTAMP'2024-01-01 00:00:00Z'", ALL),
    ],
)
def test_sidecars_are_skipped_by_their_tags(
    spark: SparkSession, tags: DataFrame, where: str, wanted: set[str]
) -> None:
    """PROTOCOL.md#per-file-statistics"""
    predicate = parse_condition(where, COLUMNS, time_zone="UTC")
    skipping = DataSkipping.of(predicate, COLUMNS, [key for key, _ in KEYS])
    kept = SidecarSkipping(skipping).keep(tags)
    found = ALL if kept is None else {row["name"] for row in kept.collect()}
    assert found == wanted


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"day": "2024-01-10", "zone": "z"}, {"first", "unknown"}),
        ({"day": "2024-01-15", "zone": "z"}, {"unknown"}),
        ({"day": "2024-01-10", "zone": "a"}, {"unknown"}),
        ({"day": None, "zone": None}, {"null", "unknown"}),
        ({"day": "", "zone": ""}, {"null", "unknown"}),
        ({"day": "2024-01-10"}, ALL),  # it does not say all
        ({}, ALL),
        (None, ALL),
    ],
)
def test_sidecars_that_a_commit_may_touch(
    spark: SparkSession, tags: DataFrame, values: dict[str, Any] | None, wanted: set[str]
) -> None:
    """PROTOCOL.md#action-reconciliation"""
    fields = {"path": "x", "partitionValues": values}
    removes = spark.createDataFrame(
        [(1, None, tuple(fields.get(name) for name in REMOVE.names))],
        StructType().add("version", "long").add("add", ADD).add("remove", REMOVE),
    )
    keyed = keyed_file_actions(removes, table_root="file:/t", is_local=True)
    found = sidecars_in_range(tags.select("name", "partition_values"), keyed, order()).collect()
    assert {row["name"] for row in found} == wanted
