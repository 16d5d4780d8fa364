"""Imaginary data files: what a log says of them.

File `n` is in the partition of day `n % DAYS` and holds the next `ROWS` values of `id`, so
`date = X AND id BETWEEN a AND b` needs both: a day has files all over the ids, and a range of ids
is spread over the days.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import date, timedelta
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PARTITION = "date"
FIRST_DAY = date(2024, 1, 1)
DAYS = 367
"""Prime, so that files removed at any stride are of all days."""
ROWS, BYTES, TIME = 1000, 123_456, 1_700_000_000_000

Statistics = Literal["json", "struct", "both"]
"""The form of a checkpoint's statistics: JSON text, a struct beside parsed partition values, or
both."""

COLUMNS = {
    "id": ("long", "n * 1000", "n * 1000 + 999"),
    "quantity": (
        "integer",
        "CAST(pmod(xxhash64(n, 1), 50) AS INT)",
        "CAST(950 + pmod(xxhash64(n, 2), 50) AS INT)",
    ),
    "weight": (
        "double",
        "pmod(xxhash64(n, 3), 1000) / 1000D",
        "1 + pmod(xxhash64(n, 4), 1000) / 10D",
    ),
    "amount": (
        "decimal(18,2)",
        "CAST(pmod(xxhash64(n, 5), 100000) / 100D AS DECIMAL(18, 2))",
        "CAST(1000000 + pmod(xxhash64(n, 6), 100000) / 100D AS DECIMAL(18, 2))",
    ),
    "city": (
        "string",
        "concat('A', substr(md5(concat('first', n)), 1, 8))",
        "concat('Z', substr(md5(concat('last', n)), 1, 8))",
    ),
    "line": (
        "short",
        "CAST(pmod(xxhash64(n, 7), 10) AS SMALLINT)",
        "CAST(90 + pmod(xxhash64(n, 8), 10) AS SMALLINT)",
    ),
    "shipped": (
        "date",
        "date_add(day, 1)",
        "date_add(day, CAST(1 + pmod(xxhash64(n, 9), 30) AS INT))",
    ),
    "at": (
        "timestamp",
        f"timestamp_millis({TIME} + n * 1000)",
        f"timestamp_millis({TIME} + n * 1000 + pmod(xxhash64(n, 10), 1000000))",
    ),
}
"""The table's columns but for the partition's: type, and in SQL the least and greatest of file
`n`."""
FEW = tuple(COLUMNS)[:2]
"""The columns with statistics in the logs of the growth benchmark."""

_DAY = f"date_add(DATE'{FIRST_DAY}', CAST(n % {DAYS} AS INT))"
_PATH = (
    f"concat('{PARTITION}=', day, '/part-', lpad(CAST(named % 100000 AS STRING), 5, '0'), '-', "
    r"regexp_replace(md5(CAST(named AS STRING)), r'^(.{8})(.{4})(.{4})(.{4})', '$1-$2-$3-$4-'), "
    "'.c000.snappy.parquet')"
)
_VECTOR = (
    "STRUCT<storageType: STRING, pathOrInlineDv: STRING, offset: INT, sizeInBytes: INT, "
    "cardinality: BIGINT>"
)
_JSON = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "dateFormat": "yyyy-MM-dd",
    "ignoreNullFields": "true",
}


def schema_string() -> str:
    """The table's schema as `metaData` holds it."""
    types = {name: data_type for name, (data_type, _, _) in COLUMNS.items()} | {PARTITION: "date"}
    fields = [
        {"name": name, "type": data_type, "nullable": True, "metadata": {}}
        for name, data_type in types.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


def day_of(number: int) -> date:
    """The partition of file `number`."""
    return FIRST_DAY + timedelta(days=number % DAYS)


def path_of(number: int, named: int | None = None) -> str:
    """The path of file `number`: an oracle of what Spark makes of the same.

    Parameters
    ----------
    named
        The number in its name, where the file replaces another with the same rows.
    """
    named = number if named is None else named
    identity = uuid.UUID(hashlib.md5(str(named).encode()).hexdigest())
    directory = f"{PARTITION}={day_of(number)}"
    return f"{directory}/part-{named % 100_000:05}-{identity}.c000.snappy.parquet"


def with_path(numbers: DataFrame) -> DataFrame:
    """`n` and `named` with the day and the path of the file."""
    return numbers.selectExpr("n", "named", f"{_DAY} AS day").selectExpr("*", f"{_PATH} AS path")


def add_actions(
    files: DataFrame, statistics: Statistics, *, data_change: bool = False
) -> DataFrame:
    """The add of each file of `with_path`: one column `add`."""
    parsed = _statistics()
    text = F.to_json(parsed, _JSON)
    fields = [
        F.col("path"),
        F.create_map(F.lit(PARTITION), F.col("day").cast("string")).alias("partitionValues"),
        F.lit(BYTES).cast("long").alias("size"),
        F.lit(TIME).cast("long").alias("modificationTime"),
        F.lit(data_change).alias("dataChange"),
        (text if statistics in ("json", "both") else F.lit(None).cast("string")).alias("stats"),
        F.lit(None).cast("MAP<STRING, STRING>").alias("tags"),
        F.lit(None).cast(_VECTOR).alias("deletionVector"),
    ]
    if statistics != "json":
        fields += [
            F.struct(F.col("day").alias(PARTITION)).alias("partitionValues_parsed"),
            parsed.alias("stats_parsed"),
        ]
    return files.select(F.struct(*fields).alias("add"))


def remove_actions(files: DataFrame) -> DataFrame:
    """The remove of each file of `with_path`: one column `remove`."""
    return files.select(
        F.struct(
            F.col("path"),
            F.lit(TIME).cast("long").alias("deletionTimestamp"),
            F.lit(True).alias("dataChange"),
            F.lit(True).alias("extendedFileMetadata"),
            F.create_map(F.lit(PARTITION), F.col("day").cast("string")).alias("partitionValues"),
            F.lit(BYTES).cast("long").alias("size"),
        ).alias("remove")
    )


def as_lines(actions: DataFrame) -> list[str]:
    """The rows as lines of a commit, in the driver's memory."""
    lines = actions.select(F.to_json(F.struct("*"), _JSON).alias("line"))
    return [row.line for row in lines.collect()]


def _statistics() -> Column:
    def bound(which: int) -> Column:
        return F.struct(*(F.expr(COLUMNS[column][which]).alias(column) for column in COLUMNS))

    counts = F.struct(*(F.lit(0).cast("long").alias(column) for column in COLUMNS))
    return F.struct(
        F.lit(ROWS).cast("long").alias("numRecords"),
        bound(1).alias("minValues"),
        bound(2).alias("maxValues"),
        counts.alias("nullCount"),
    )
