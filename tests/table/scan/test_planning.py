"""From a condition to files: the same files from every layout of the log, and plans that skip."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta import Snapshot, load_snapshot, read_delta, write_delta
from sparkdelta.exceptions import ColumnNotFoundError, InvalidConditionError
from tests.support.errors import raises
from tests.support.log_writer import (
    ADD,
    METADATA,
    PROTOCOL,
    Action,
    log_directory,
    set_time,
    write_checkpoint,
    write_commit,
)
from tests.support.settings import settings
from tests.support.spark_jobs import counted_jobs, no_jobs, plan
from tests.support.table_builder import (
    add,
    create,
    field,
    ids,
    metadata,
    protocol,
    remove,
    write_data,
)

DAYS = [f"2024-01-{day:02}" for day in range(1, 11)]
FILES_PER_DAY = 20
SCHEMA = (field("id", "long"), field("x", "double"), field("day", "date"))
OPENING = [protocol(), metadata(*SCHEMA, partitioned_by=["day"])]
_COUNTS = pa.struct([("id", pa.int64()), ("x", pa.int64())])
_BOUNDS = pa.struct([("id", pa.int64()), ("x", pa.float64())])
_STATS = pa.struct(
    [
        ("numRecords", pa.int64()),
        ("minValues", _BOUNDS),
        ("maxValues", _BOUNDS),
        ("nullCount", _COUNTS),
    ]
)


def file(number: int) -> Action:
    """Ten rows of one day; ids grow with the number."""
    low = number * 10
    stats = {
        "numRecords": 10,
        "minValues": {"id": low, "x": 0.5},
        "maxValues": {"id": low + 9, "x": 1.5},
        "nullCount": {"id": 0, "x": 0},
    }
    day = DAYS[number // FILES_PER_DAY]
    name = f"day={day}/{number:05}"
    return add(name, partitionValues={"day": day}, stats=json.dumps(stats))


FILES = [file(number) for number in range(len(DAYS) * FILES_PER_DAY)]
WHERE = "day = DATE'2024-01-03' AND id BETWEEN 455 AND 472"
WANTED = [f"day=2024-01-03/{number:05}" for number in (45, 46, 47)]


def write_typed_checkpoint(
    table: Path, actions: Sequence[Action], *, with_json: bool, rows_per_group: int
) -> None:
    """A checkpoint at version 0 with `stats_parsed` and `partitionValues_parsed`."""
    fields = [ADD.field(index) for index in range(ADD.num_fields)]
    typed = pa.struct(
        [*fields, ("partitionValues_parsed", pa.struct([("day", pa.date32())])),
         ("stats_parsed", _STATS)]
    )  # fmt: skip
    adds = []
    for action in actions:
        values = dict(action["add"])
        day = values["partitionValues"]["day"]
        values["partitionValues_parsed"] = {"day": dt.date.fromisoformat(day)}
        values["stats_parsed"] = json.loads(values["stats"])
        values["partitionValues"] = list(values["partitionValues"].items())
        values["stats"] = values["stats"] if with_json else None
        adds.append(values)
    write_adds(table, OPENING, adds, typed, row_group_size=rows_per_group)


def write_adds(
    table: Path, opening: Sequence[Action], adds: Sequence[Any], typed: pa.DataType, **options: int
) -> None:
    """A checkpoint at version 0 of a protocol, a metaData and adds of a type of their own."""
    nothing: list[Any] = [None] * len(adds)
    described = opening[1]["metaData"] | {"configuration": [], "format": None}
    columns = {
        "add": pa.array([*adds, None, None], typed),
        "metaData": pa.array([*nothing, described, None], METADATA),
        "protocol": pa.array([*nothing, None, opening[0]["protocol"]], PROTOCOL),
    }
    target = log_directory(table) / f"{0:020d}.checkpoint.parquet"
    pq.write_table(pa.table(columns), target, **options)


LAYOUTS = [
    "commits",
    "JSON checkpoint",
    "typed checkpoint",
    "typed checkpoint without JSON",
    "tail",
]


def make(table: Path, layout: str) -> None:
    """The files of `FILES` in one of `LAYOUTS`."""
    write_commit(table, 0, [*OPENING, *FILES])
    if layout == "JSON checkpoint":
        write_checkpoint(table, 0, [*OPENING, *FILES])
    elif layout.startswith("typed"):
        has_json = not layout.endswith("without JSON")
        write_typed_checkpoint(table, FILES, with_json=has_json, rows_per_group=20)
    elif layout == "tail":
        other = [remove(a["add"]["path"]) for a in FILES[40:60:2]]
        again = [*FILES[40:60:2]]
        write_typed_checkpoint(table, [*FILES[:50], *FILES[50:]], with_json=True, rows_per_group=20)
        write_commit(table, 1, other)
        write_commit(table, 2, again)
        set_time(log_directory(table) / f"{0:020d}.json", 1)


def kept(snapshot: Snapshot, where: Any) -> list[str]:
    return sorted(row["path"] for row in snapshot.scan(where).files().select("path").collect())


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_files_from_every_layout(
    spark: SparkSession, table: Path, layout: str, cached: bool
) -> None:
    make(table, layout)
    snapshot = load_snapshot(spark, str(table))
    if cached:
        snapshot = snapshot.cache()
    assert kept(snapshot, WHERE) == WANTED
    column = (F.col("DAY") == F.lit(dt.date(2024, 1, 3))) & F.col("id").between(455, 472)
    assert kept(snapshot, column) == WANTED
    assert len(kept(snapshot, "id < 100 OR day > '2024-01-09'")) == 10 + FILES_PER_DAY
    assert kept(snapshot, "id < 0") == []
    assert len(kept(snapshot, None)) == len(FILES)
    if cached:
        snapshot.uncache()


def _scan(frame: Any) -> str:
    (text,) = [n.text for n in plan(frame) if n.name == "FileScan" and "add" in n.text]
    return text


def test_conditions_are_pushed_into_the_checkpoint(spark: SparkSession, table: Path) -> None:
    make(table, "typed checkpoint")
    files = load_snapshot(spark, str(table)).scan(WHERE).files()
    with settings(spark, {"spark.sql.maxMetadataStringLength": "5000"}):
        text = _scan(files.select("path"))
    (pushed,) = text.split("PushedFilters: ")[1].split(", ReadSchema")[:1]
    assert "Or(IsNull(add.partitionValues_parsed.day),EqualTo(" in pushed
    assert "Or(IsNull(add.stats_parsed.minValues.id),LessThanOrEqual(" in pushed
    assert "Or(IsNull(add.stats_parsed.maxValues.id),GreaterThanOrEqual(" in pushed
    schema = text.split("ReadSchema: ")[1]
    assert "stats:string" not in schema, "JSON statistics are not needed"
    assert "partitionValues:map" not in schema
    assert "modificationTime" not in schema


def test_row_groups_are_skipped(spark: SparkSession, table: Path) -> None:
    """One of ten row groups holds the day."""
    make(table, "typed checkpoint")
    files = load_snapshot(spark, str(table)).scan(WHERE).files().select("path")
    assert len(files.collect()) == 3
    text = files._jdf.queryExecution().executedPlan().toString()
    assert "FileScan" in text
    (metrics,) = _scan_metrics(files)
    assert metrics <= FILES_PER_DAY + 2


def _scan_metrics(frame: Any) -> list[int]:
    """The numbers of rows that the scans of a frame's executed plan gave out."""
    executed = frame._jdf.queryExecution().executedPlan()
    found, nodes = [], [executed]
    while nodes:
        node = nodes.pop()
        if node.nodeName().startswith("Scan parquet"):
            found.append(int(node.metrics().apply("numOutputRows").value()))
        if node.nodeName() == "AdaptiveSparkPlan":
            nodes.append(node.executedPlan())
        children = node.children()
        nodes += [children.apply(index) for index in range(children.size())]
    return found


@pytest.mark.parametrize("is_short", [True, False])
def test_a_table_without_a_checkpoint_is_planned_in_one_job_at_most(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, is_short: bool
) -> None:
    if not is_short:
        monkeypatch.setattr("sparkdelta.table.log.commit_range._SHORT_LINES", 0)
    make(table, "commits")
    snapshot = load_snapshot(spark, str(table))
    with no_jobs(spark):
        files = snapshot.scan(WHERE).files()
    with counted_jobs(spark) as jobs:
        files.select("path").collect()
    assert jobs.count == (0 if is_short else 1)


def test_json_is_parsed_below_the_partition_filter(spark: SparkSession, table: Path) -> None:
    """JSON is parsed only for files that are left: Spark would otherwise parse it as a common
    subexpression.
    """
    make(table, "JSON checkpoint")
    files = load_snapshot(spark, str(table)).scan(WHERE).files().select("path")
    (condition,) = [n.text for n in plan(files) if n.name == "Filter" and "from_json" in n.text]
    assert condition.index("day") < condition.index("exists(array(from_json(")
    assert "numRecords" in condition
    assert "StructField(x," not in condition, "only the columns that the condition names"


def test_rows_are_those_of_the_condition(spark: SparkSession, table: Path) -> None:
    files = []
    for number in range(4):
        stats = {
            "numRecords": 5,
            "minValues": {"id": number * 5},
            "maxValues": {"id": number * 5 + 4},
        }
        action = write_data(table, f"f{number}", ids(number * 5, number * 5 + 5))
        action["add"]["stats"] = json.dumps(stats)
        files.append(action)
    create(table, *files)
    (table / "f3").unlink()
    frame = read_delta(spark, str(table), where="id >= 7 AND id < 12")
    assert {row["id"] for row in frame.collect()} == set(range(7, 12))
    assert sorted(name.rpartition("/")[2] for name in frame.inputFiles()) == ["f1", "f2"]


@pytest.mark.parametrize(
    ("where", "spark_condition"),
    [
        ("idd = 5", None),
        ("id = DATE'2024-01-01'", "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
        ("id", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        ("id =", "PARSE_SYNTAX_ERROR"),
        ("idd(id) = 1", "UNRESOLVED_ROUTINE"),
    ],
)
def test_a_wrong_condition(
    spark: SparkSession, table: Path, where: str, spark_condition: str | None
) -> None:
    make(table, "commits")
    snapshot = load_snapshot(spark, str(table))
    empty = spark.createDataFrame([], snapshot.schema)
    uses = [snapshot.scan(where).files, snapshot.scan(where).to_df]
    if spark_condition is None:
        uses.append(snapshot.scan(F.col("idd") == 5).files)
        replaced = {"mode": "overwrite", "replace_where": where}
        uses.append(lambda: write_delta(empty, str(table), **replaced))  # type: ignore[arg-type,return-value]
    for use in uses:
        with pytest.raises((ColumnNotFoundError, InvalidConditionError)) as raised:
            use()
        found = raised.value
        assert found.__cause__ is None
        assert found.__suppress_context__
        if isinstance(found, InvalidConditionError):
            assert found.spark_condition == spark_condition
            assert "\n" not in found.problem
        else:
            assert spark_condition is None
            assert (found.column, found.available) == ("idd", ["id", "x", "day"])


def test_a_minimum_that_is_no_number(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#per-file-statistics: NaN, which some writers take into bounds, is no bound."""
    file = write_data(table, "f", pa.table({"x": [float("nan"), 102.0]}))
    stats = {"numRecords": 2, "minValues": {"x": "NaN"}, "maxValues": {"x": 10000.0}}
    file["add"]["stats"] = json.dumps({**stats, "nullCount": {"x": 0}})
    write_commit(table, 0, [protocol(), metadata(field("x", "double")), file])
    pairs = (f"{number}, {number + 1}" for number in range(101, 1702, 100))
    for condition in ("x = 102", f"x IN (1, 2, {', '.join(pairs)})"):
        assert read_delta(spark, str(table), where=condition).count() == 1, condition
        assert read_delta(spark, str(table)).filter(condition).count() == 1, condition


@pytest.mark.parametrize(
    "name",
    ["__sparkdelta_partition_0", "__SparkDelta_place", "_tmp_Metadata_row_index",
     "_tmp_metadata_row_index"],
)  # fmt: skip
def test_names_of_columns_that_are_added_to_rows_are_refused(
    spark: SparkSession, table: Path, name: str
) -> None:
    with raises("DELTA_RESERVED_COLUMN_NAME"):
        write_delta(spark.range(1).withColumnRenamed("id", name), str(table))
    assert not table.exists()
    fields = metadata(field(name, "long"), field("p", "integer"), partitioned_by=["p"])
    write_commit(table, 0, [protocol(), fields])
    with raises("DELTA_RESERVED_COLUMN_NAME", match=name):
        load_snapshot(spark, str(table))
    named = {"delta.columnMapping.physicalName": name, "delta.columnMapping.id": 1}
    physical = field("id", "long", metadata=named)
    mapped = metadata(physical, configuration={"delta.columnMapping.mode": "name"})
    write_commit(table, 0, [protocol(2, 5), mapped])
    with raises("DELTA_RESERVED_COLUMN_NAME", match=name):
        load_snapshot(spark, str(table))


def test_statistics_have_physical_names(spark: SparkSession, table: Path) -> None:
    """PROTOCOL.md#column-mapping"""
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    schema = metadata(
        field("id", "long", metadata=mapped), configuration={"delta.columnMapping.mode": "name"}
    )
    files = [
        add(f"f{n}", stats=json.dumps({"minValues": {"col-1": n}, "maxValues": {"col-1": n}}))
        for n in range(3)
    ]
    write_commit(table, 0, [protocol(2, 5), schema, *files])
    assert kept(load_snapshot(spark, str(table)), "id = 1") == ["f1"]


@pytest.mark.parametrize(("name", "stored"), [("timestamp", None), ("timestamp_ntz", "UTC")])
def test_bounds_that_ask_for_a_time_zone_leave_out_nothing(
    spark: SparkSession, table: Path, name: str, stored: str | None
) -> None:
    """PROTOCOL.md#per-file-statistics: moments that a checkpoint has stored as those without a
    zone, or the other way round.
    """
    opening = [protocol(features=["timestampNtz"]), metadata(field("at", name))]
    write_commit(table, 0, [*opening, add("f")])
    bounds = pa.struct([("at", pa.timestamp("us", stored))])
    typed = pa.struct(
        [*ADD, ("stats_parsed", pa.struct([("minValues", bounds), ("maxValues", bounds)]))]
    )
    noon = {"at": dt.datetime(2024, 1, 1, 12)}
    one = {**add("f")["add"], "partitionValues": [], "stats": None}
    one["stats_parsed"] = {"minValues": noon, "maxValues": noon}
    write_adds(table, opening, [one], typed)
    literal = "TIMESTAMP" if name == "timestamp" else "TIMESTAMP_NTZ"
    zone = "Z" if name == "timestamp" else ""
    with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        assert kept(
            load_snapshot(spark, str(table)), f"at = {literal}'2024-01-01 12:00:00{zone}'"
        ) == ["f"]


GENERATED = {
    "CAST(ts AS DATE)": ("date", [f"2024-03-{day:02}" for day in range(1, 31)]),
    "YEAR(ts)": ("integer", [str(year) for year in range(2010, 2040)]),
    "DATE_FORMAT(ts, 'yyyy-MM')": ("string", [f"2024-{month:02}" for month in range(1, 13)]),
    "DATE_TRUNC('MONTH', ts)": ("timestamp", [f"2024-{m:02}-01 00:00:00" for m in range(1, 13)]),
}


@pytest.mark.parametrize("expression", GENERATED)
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12", "UTC"])
def test_generated_partition_columns(
    spark: SparkSession, table: Path, expression: str, zone: str
) -> None:
    """PROTOCOL.md#generated-columns: a filter on the source chooses partitions, whatever the zones
    of writer and reader are."""
    data_type, values = GENERATED[expression]
    source = field("ts", "timestamp")
    part = field("part", data_type, metadata={"delta.generationExpression": expression})
    files = [add(value, partitionValues={"part": value}) for value in [*values, None or ""]]
    schema = metadata(source, part, partitioned_by=["part"])
    write_commit(table, 0, [protocol(1, 4), schema, *files])
    snapshot = load_snapshot(spark, str(table))
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        found = kept(snapshot, "ts = TIMESTAMP'2024-03-15 12:00:00Z'")
        after = kept(snapshot, "ts > TIMESTAMP'2024-03-15 12:00:00Z'")
        neither = kept(snapshot, "month(ts) = 3")
    everything = {*values, ""}
    at_least = {v for v in values if v.startswith(("2024-03-15", "2024-03-14", "2024-03-16"))}
    assert len(neither) == len(everything)
    assert set(found) < everything
    assert "" in found, "an empty text is null as a partition value"
    assert len(found) <= 5
    if expression == "CAST(ts AS DATE)":
        assert at_least <= set(found)
    assert set(found) <= set(after) < everything


# What a filter on the source must not leave out: the type of the source, the expression, its values
# by files, the filter, and the files that may match.
NOT_IMPLIED: dict[str, tuple[str, str, str, dict[str, str], str, set[str]]] = {
    "days of texts": (
        "string", "CAST(src AS DATE)", "date", {"f": "2024-01-05"}, "src >= '2024-01-10'", {"f"},
    ),
    "a text that is no day": (
        "string", "CAST(src AS DATE)", "date", {"f": "2024-01-05"}, "src <= '2024-02-31'", {"f"},
    ),
    "years of texts": ("string", "YEAR(src)", "integer", {"f": "999"}, "src >= '1000'", {"f"}),
    "days of moments, without a cast": (
        "timestamp", "src", "date", {"f": "2024-01-05"}, "src >= TIMESTAMP'2024-01-05 10:00:00Z'",
        {"f"},
    ),
    "digits of numbers": (
        "integer", "SUBSTRING(src, 1, 2)", "string", {"f": "10"}, "src >= 20", {"f"},
    ),
    "days of local times as moments": (
        "timestamp_ntz", "DATE_TRUNC('DAY', src)", "timestamp",
        {"f": "2024-01-01T00:00:00Z"}, "src <= TIMESTAMP_NTZ'2024-01-01 05:00:00'", {"f"},
    ),
    "days of moments, by the clocks of Tokyo": (
        "timestamp", "DATE_TRUNC('DAY', src)", "timestamp",
        {"f": "2024-01-02 00:00:00", "g": "2024-02-02 00:00:00"},
        "src <= TIMESTAMP'2024-01-01 15:30:00Z'", {"f"},
    ),
    "hours of moments, by the clocks of Tokyo": (
        "timestamp", "DATE_TRUNC('HOUR', src)", "timestamp",
        {"f": "2024-01-02 00:00:00", "g": "2024-02-02 00:00:00", "h": "2023-12-02 00:00:00"},
        "src = TIMESTAMP'2024-01-01 15:30:00Z'", {"f"},
    ),
    "moments by the clocks of Tokyo": (
        "timestamp", "src", "timestamp",
        {"f": "2024-01-02 00:30:00", "g": "2024-02-02 00:00:00", "h": "2023-12-02 00:00:00"},
        "src = TIMESTAMP'2024-01-01 15:30:00Z'", {"f"},
    ),
    "a day that clocks have left out": (
        "timestamp_ntz", "DATE_FORMAT(src, 'yyyy-MM-dd')", "string",
        {"f": "2011-12-31", "g": "2012-01-01"}, "src <= TIMESTAMP_NTZ'2011-12-30 10:00:00'", {"f"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("expression", ["src", "DATE_TRUNC('MINUTE', src)"])
def test_zones_of_writer_and_reader_are_a_day_apart(
    spark: SparkSession, table: Path, expression: str
) -> None:
    """PROTOCOL.md#partition-value-serialization: written in Kiritimati, and read as if it were from
    the other side of the date line, and the other way round.
    """
    part = field("part", "timestamp", metadata={"delta.generationExpression": expression})
    texts = {"2024-06-02 02:00:00": "Etc/GMT+12", "2024-05-31 23:59:00": "Pacific/Kiritimati"}
    files = [add(text, partitionValues={"part": text}) for text in (*texts, "2024-06-10 00:00:00")]
    schema = metadata(field("src", "timestamp"), part, partitioned_by=["part"])
    write_commit(table, 0, [protocol(1, 4), schema, *files])
    for text, zone in texts.items():
        snapshot = load_snapshot(spark, str(table), partition_time_zone=zone)
        moment = "12:00:00" if zone == "Etc/GMT+12" else "11:59:00"
        found = kept(snapshot, f"src = TIMESTAMP'2024-06-01 {moment}Z'")
        assert text in found
        assert "2024-06-10 00:00:00" not in found


@pytest.mark.parametrize("name", NOT_IMPLIED)
def test_sources_of_another_order_imply_nothing(
    spark: SparkSession, table: Path, name: str
) -> None:
    """PROTOCOL.md#generated-columns"""
    source, expression, generated, values, where, wanted = NOT_IMPLIED[name]
    part = field("part", generated, metadata={"delta.generationExpression": expression})
    files = [add(path, partitionValues={"part": value}) for path, value in values.items()]
    features = ["timestampNtz"] if source == "timestamp_ntz" else []
    opening = protocol(3, 7, features=[*features, "generatedColumns"])
    schema = metadata(field("src", source), part, partitioned_by=["part"])
    write_commit(table, 0, [opening, schema, *files])
    with settings(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        assert set(kept(load_snapshot(spark, str(table)), where)) == wanted


DAYS_OF_MARCH = [f"2024-03-{day:02}" for day in range(1, 31)]
HOURS = ", ".join(f"TIMESTAMP'2024-03-15 {hour:02}:00:00'" for hour in range(20))


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("ts >= '2024-03-15' AND ts < '2024-03-17'", DAYS_OF_MARCH[14:16]),
        ("ts >= DATE'2024-03-15' AND ts < DATE'2024-03-17'", DAYS_OF_MARCH[14:16]),
        ("CAST(ts AS DATE) = DATE'2024-03-15'", DAYS_OF_MARCH[14:15]),
        ("date(ts) BETWEEN '2024-03-15' AND '2024-03-16'", DAYS_OF_MARCH[14:16]),
        (f"ts IN ({HOURS})", DAYS_OF_MARCH[14:15]),
    ],
)
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "UTC"])
def test_texts_and_days_stand_for_moments(
    spark: SparkSession, table: Path, where: str, wanted: list[str], zone: str
) -> None:
    """PROTOCOL.md#generated-columns"""
    expression = {"delta.generationExpression": "CAST(ts AS DATE)"}
    schema = (field("ts", "timestamp"), field("part", "date", metadata=expression))
    files = [add(day, partitionValues={"part": day}) for day in DAYS_OF_MARCH]
    described = metadata(*schema, partitioned_by=["part"])
    write_commit(table, 0, [protocol(1, 4), described, *files])
    snapshot = load_snapshot(spark, str(table))
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        found = kept(snapshot, where)
        by_column = kept(snapshot, F.expr(where))
    assert set(wanted) <= set(by_column)
    around = {"2024-03-13", "2024-03-14", "2024-03-16", "2024-03-17", "2024-03-18"}
    assert set(wanted) <= set(found) <= {*wanted, *around}


def test_year_month_and_day_in_columns_of_their_own(spark: SparkSession, table: Path) -> None:
    parts = [
        field(name, "integer", metadata={"delta.generationExpression": f"{name.upper()}(ts)"})
        for name in ("year", "month", "day")
    ]
    schema = metadata(field("ts", "timestamp"), *parts, partitioned_by=["year", "month", "day"])
    days = [dt.date(2023, 12, 25) + dt.timedelta(days=n) for n in range(20)]
    files = [
        add(str(day), partitionValues={"year": str(day.year), "month": str(day.month),
                                       "day": str(day.day)})
        for day in days
    ]  # fmt: skip
    write_commit(table, 0, [protocol(1, 4), schema, *files])
    snapshot = load_snapshot(spark, str(table))
    where = "ts >= TIMESTAMP'2023-12-31 12:00:00Z' AND ts < TIMESTAMP'2024-01-02 12:00:00Z'"
    found = kept(snapshot, where)
    assert {"2023-12-31", "2024-01-01", "2024-01-02"} <= set(found)
    assert len(found) <= 5


def test_another_meaning_of_timestamp(spark: SparkSession, table: Path) -> None:
    """New York had no such local time."""
    schema = (field("p", "timestamp_ntz"), field("id", "long"))
    actions = [
        protocol(features=["timestampNtz"]), metadata(*schema, partitioned_by=["p"]),
        write_data(table, "f", ids(0, 1), {"p": "2024-03-10 02:30:00"}),
    ]  # fmt: skip
    write_commit(table, 0, actions)
    where = "p = TIMESTAMP'2024-03-10 02:30:00'"
    conf = {"spark.sql.timestampType": "TIMESTAMP_NTZ",
            "spark.sql.session.timeZone": "America/New_York"}  # fmt: skip
    with settings(spark, conf):
        assert read_delta(spark, str(table), where=where).count() == 1
