"""Settings of the user's session that must not change what is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

HOSTILE: dict[str, dict[str, str]] = {
    "time zone, no ANSI": {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
    },
    "case, missing and corrupt files": {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.files.ignoreCorruptFiles": "true",
        "spark.sql.json.enablePartialResults": "false",
    },
    "Parquet": {
        "spark.sql.parquet.fieldId.read.enabled": "true",
        "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
        "spark.sql.parquet.int96TimestampConversion": "true",
        "spark.sql.parquet.int96AsTimestamp": "false",
        "spark.sql.parquet.binaryAsString": "true",
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
        "spark.sql.parquet.mergeSchema": "true",
        "spark.sql.parquet.filterPushdown": "false",
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.session.timeZone": "Asia/Kolkata",
    },
    "plans": {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.join.preferSortMergeJoin": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "spark.sql.execution.arrow.localRelationThreshold": "0",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "0",
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.files.maxPartitionBytes": "1000",
    },
}
"""Groups of settings that do not contradict each other."""


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set settings of a session, and put back what was there."""
    before = dict(spark.conf.getAll)
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in values:
            if key in before:
                spark.conf.set(key, before[key])
            else:
                spark.conf.unset(key)
