"""No setting of the user's session changes a row, set before or after the frame was made."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta import DeltaError, load_snapshot, read_delta
from tests.support.log_writer import write_checkpoint, write_commit
from tests.support.settings import HOSTILE, settings
from tests.support.snapshots import SPARK_ERRORS, rows
from tests.support.table_builder import (
    add,
    create,
    field,
    ids,
    inline_vector,
    metadata,
    protocol,
    remove,
    write_data,
)

OLD = datetime(1500, 3, 1, 12, tzinfo=timezone.utc)
NEW = datetime(2024, 3, 10, 7, 30, tzinfo=timezone.utc)


def _micros(moment: datetime) -> int:
    return round((moment - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds()) * 1_000_000


def _types(table: Path) -> None:
    """Timestamps of both physical types, old dates, binary, names of another case."""
    schema = [
        field("ID", "long"), field("t", "timestamp"), field("n", "timestamp_ntz"),
        field("d", "date"), field("b", "binary"), field("s", "string"), field("p", "timestamp"),
        field("o", {"type": "struct", "fields": [field("Q", "integer")]}),
    ]  # fmt: skip
    data = pa.table(
        {
            "id": pa.array([1, 2]),
            "t": pa.array([OLD, NEW], pa.timestamp("us", "UTC")),
            "n": pa.array([OLD.replace(tzinfo=None), NEW.replace(tzinfo=None)], pa.timestamp("us")),
            "d": pa.array([date(1500, 3, 1), date(2024, 3, 10)]),
            "b": pa.array([b"\xff", b"a"]),
            "s": ["x", "é"],
            "o": pa.array([{"q": 1}, None], pa.struct([("q", pa.int32())])),
        }
    )
    value = {"p": "2024-06-01 12:00:00"}
    files = [
        write_data(table, "p/f", data, value),
        write_data(table, "p/g", data, value, deletionVector=inline_vector([0])),
    ]
    pq.write_table(
        data.drop_columns(["n"]), table / "p" / "h", use_deprecated_int96_timestamps=True
    )
    features = protocol(features=["deletionVectors", "timestampNtz"])
    write_commit(table, 0, [features, metadata(*schema, partitioned_by=["p"]), *files])
    write_commit(table, 1, [add("p/h", partitionValues=value), add("gone"), remove("gone")])
    write_commit(table, 2, [remove("gone")])
    write_checkpoint(
        table, 0, [features, metadata(*schema, partitioned_by=["p"]), *files, add("gone")]
    )


def _comparable(frame: DataFrame) -> list[Any]:
    """The columns without any that are shown in the session's time zone, under names as a session
    that minds case has them.
    """
    shown = frame.select(
        "id", F.unix_micros("t"), F.col("n").cast("string"), F.col("d").cast("string"), F.hex("b"),
        "s", F.unix_micros("p"), F.col("o").getField("Q"),
    )  # fmt: skip
    return rows(shown)


PARTITION = _micros(datetime(2024, 6, 1, 12, tzinfo=timezone.utc))
ROWS = {
    1: (1, _micros(OLD), "1500-03-01 12:00:00", "1500-03-01", "FF", "x", PARTITION, 1),
    2: (2, _micros(NEW), "2024-03-10 07:30:00", "2024-03-10", "61", "é", PARTITION, None),
}
WITHOUT_NTZ = {key: (*row[:2], None, *row[3:]) for key, row in ROWS.items()}
WANTED = sorted([ROWS[1], ROWS[2], ROWS[2], *WITHOUT_NTZ.values()], key=repr)


def _read(spark: SparkSession, table: Path) -> DataFrame:
    return read_delta(spark, str(table)).toDF("id", "t", "n", "d", "b", "s", "p", "o")


@pytest.mark.full
def test_the_table_reads_as_it_is_expected_to(spark: SparkSession, table: Path) -> None:
    _types(table)
    assert _comparable(_read(spark, table)) == WANTED


@pytest.mark.slow
@pytest.mark.parametrize("group", HOSTILE)
@pytest.mark.parametrize("when", ["before", "after"])
def test_types_and_values(spark: SparkSession, table: Path, group: str, when: str) -> None:
    _types(table)
    made = _read(spark, table)
    with settings(spark, HOSTILE[group]):
        frame = made if when == "after" else _read(spark, table)
        assert _comparable(frame) == WANTED


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("read_ids", ["true", "false"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_field_ids(spark: SparkSession, table: Path, mode: str, read_ids: str, when: str) -> None:
    """Columns are found by ids in `id` mode, where the names are wrong, and by names in `name`
    mode, where the ids are wrong.
    """
    mapped = [
        field(n, "long", metadata={
            "delta.columnMapping.id": i, "delta.columnMapping.physicalName": f"col-{n}"})
        for i, n in enumerate("ab", 1)
    ]  # fmt: skip
    right, wrong = ["col-a", "col-b"], ["col-b", "col-a"]
    names, numbers = (right, [2, 1]) if mode == "name" else (wrong, [1, 2])
    fields = [
        pa.field(n, pa.int64(), metadata={b"PARQUET:field_id": str(i).encode()})
        for n, i in zip(names, numbers, strict=True)
    ]
    data = pa.table([pa.array([1]), pa.array([2])], schema=pa.schema(fields))
    configuration = {"delta.columnMapping.mode": mode}
    files = [write_data(table, "f", data), write_data(table, "_g", data)]
    write_commit(
        table,
        0,
        [
            protocol(features=["columnMapping"]),
            metadata(*mapped, configuration=configuration),
            *files,
        ],
    )
    values = {
        "spark.sql.parquet.fieldId.read.enabled": read_ids,
        "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
    }
    made = read_delta(spark, str(table))
    with settings(spark, values):
        frame = made if when == "after" else read_delta(spark, str(table))
        assert rows(frame) == [(1, 2), (1, 2)]
        assert frame.filter("b = 2").count() == 2


IGNORING = {
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
}


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("f", "missing"),
        ("f", "corrupt"),
        ("_f", "missing"),
        ("_f", "corrupt"),
    ],
)
def test_files_are_never_ignored(spark: SparkSession, table: Path, damage: str, name: str) -> None:
    create(table, write_data(table, name, ids(0, 1)), write_data(table, "g", ids(1, 2)))
    made = read_delta(spark, str(table))
    if damage == "missing":
        (table / name).unlink()
    else:
        (table / name).write_bytes(b"x" * 500)
    with settings(spark, IGNORING):
        with pytest.raises(SPARK_ERRORS):
            made.collect()
        with pytest.raises((DeltaError, *SPARK_ERRORS)):
            read_delta(spark, str(table)).collect()


@pytest.mark.parametrize("damage", ["missing", "corrupt"])
def test_checkpoints_are_never_ignored(spark: SparkSession, table: Path, damage: str) -> None:
    create(table, write_data(table, "f", ids(0, 1)))
    file = write_checkpoint(table, 0, [protocol(), metadata(), add("f")])
    write_commit(table, 1, [add("g")])
    with settings(spark, IGNORING):
        snapshot = load_snapshot(spark, str(table))
        frame = snapshot.add_files()
        if damage == "missing":
            file.unlink()
        else:
            file.write_bytes(b"x" * 500)
        with pytest.raises((DeltaError, *SPARK_ERRORS)):
            frame.collect()
