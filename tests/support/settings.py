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
        "spark.sql.retainGroupColumns": "false",
    },
}
"""Groups of settings that do not contradict each other."""

RUN_TIME = {
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.legacy.disableMapKeyNormalization": "true",
    "spark.sql.legacy.raiseErrorWithoutErrorClass": "true",
    "spark.sql.legacy.castComplexTypesToString.enabled": "true",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.legacy.javaCharsets": "true",
    "spark.sql.legacy.codingErrorAction": "true",
    "spark.sql.legacy.nullValueWrittenAsQuotedEmptyStringCsv": "true",
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": "false",
    "spark.sql.icu.caseMappings.enabled": "false",
    "spark.sql.binaryOutputStyle": "HEX",
    "spark.sql.alwaysInlineCommonExpr": "true",
    "spark.sql.jsonGenerator.ignoreNullFields": "false",
    "spark.sql.json.enablePartialResults": "false",
    "spark.sql.json.enableExactStringParsing": "false",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.annotateVariantLogicalType": "true",
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "true",
    "spark.sql.variant.writeShredding.enabled": "true",
    "spark.sql.variant.inferShreddingSchema": "true",
    "spark.sql.sources.partitionOverwriteMode": "DYNAMIC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.files.maxRecordsPerFile": "1",
    "spark.sql.maxConcurrentOutputFileWriters": "2",
    "spark.sql.optimizer.plannedWrite.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.pyspark.binaryAsBytes": "false",
    "spark.sql.session.timeZone": "Asia/Kolkata",
}
"""The other values of settings that Spark's expressions, its Parquet source and its Python workers
read when a job runs.
"""


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
