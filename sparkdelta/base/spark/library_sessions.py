"""The settings of this library's own sessions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sparkdelta.base.schema.stored_view import StoredView
from sparkdelta.base.schema.table_schema import quoted_path

TIME_ZONE, _ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"

UTC = "UTC"
"""The time zone of a table's expressions, and of conversions unless an enabled session asks for
them.
"""

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"

_NAMES = {
    "spark.sql.parser.quotedRegexColumnNames": "false",  # else names in backticks are patterns
    "spark.sql.retainGroupColumns": "true",  # else groups have no columns of theirs
}
"""Settings that the names of columns in this library's expressions depend on."""

LOG_SETTINGS = {
    **_NAMES,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.unionOutputPartitioning": "false",  # else adds and removes share partitions
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.filterPushdown": "true",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
}
"""Settings that the contents of log files depend on and that Spark's writers read only from the
session.
"""

TABLE_SETTINGS = {
    **_NAMES,
    _ANSI: "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    TIME_ZONE: UTC,
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.adaptive.enabled": "true",  # else the hint REBALANCE has no effect
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
}
"""Settings that the results of a table's SQL expressions depend on."""


LISTING_SETTINGS = {
    **TABLE_SETTINGS,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
}
"""Settings of queries that run while another one waits for them, in a thread that may belong to a
pool of Spark: they take no thread of these pools, as broadcasts and adaptive execution do.
"""


def session_time_zone(spark: SparkSession) -> str:
    """Return the time zone of a session's casts and literals."""
    return str(spark.conf.get(TIME_ZONE))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The settings by which a table's expressions are evaluated and values converted.

    Attributes
    ----------
    time_zone
        The time zone of casts between timestamps, dates and strings.
    ansi
        False if values that cannot be converted become null, as without ANSI mode.
    """

    time_zone: str = UTC
    ansi: bool = True

    @property
    def settings(self) -> dict[str, str]:
        """All settings of a session that evaluates so."""
        ansi = "true" if self.ansi else "false"
        return {**TABLE_SETTINGS, TIME_ZONE: self.time_zone, _ANSI: ansi}


IN_UTC = Evaluation()
"""The evaluation by our own functions, in every session."""


def session_evaluation(spark: SparkSession) -> Evaluation:
    """Return the evaluation of a session's own expressions."""
    return Evaluation(session_time_zone(spark), str(spark.conf.get(_ANSI)).lower() == "true")


_SESSION_CATALOG = "spark.sql.catalog.spark_catalog"


def replace_missing_catalog(without_jar: SparkSession) -> None:
    """Give a session Spark's own catalog, if its settings name delta-spark's.

    Where that JAR is missing, Spark could not open the catalog, whatever the statement.
    """
    if ".sql.delta." in str(without_jar.conf.get(_SESSION_CATALOG, "")):
        without_jar.conf.unset(_SESSION_CATALOG)


def set_up(sibling: SparkSession, settings: Mapping[str, str]) -> None:
    """Apply the settings of one of this library's own sessions."""
    for key, value in settings.items():
        sibling.conf.set(key, value)
    if sibling.conf.get(ESCAPED_LITERALS) != "false":  # setting it logs a deprecation warning
        sibling.conf.set(ESCAPED_LITERALS, "false")


ESCAPED_LITERALS = "spark.sql.parser.escapedStringLiterals"


_CATALOG = "spark.sql.catalog."
OF_QUERIES = (
    _ANSI, "spark.sql.ansi.doubleQuotedIdentifiers",
    "spark.sql.ansi.enforceReservedKeywords", "spark.sql.caseSensitive", "spark.sql.timestampType",
)  # fmt: skip
"""Settings that change the meaning of queries: a view without them was created with the default."""


def set_up_for_view(sibling: SparkSession, view: StoredView, spark: SparkSession) -> None:
    """Apply the settings and the current database with which a view was created, but the catalogs
    of the user's session: the view's may have classes that are not there, such as delta-spark's.
    """
    present, user = sibling.conf.getAll, spark.conf.getAll.items()
    catalogs = {name: value for name, value in user if name.startswith(_CATALOG)}
    queries = {name: text for name, text in view.settings.items() if not name.startswith(_CATALOG)}
    settings = {**catalogs, **queries}
    for name in OF_QUERIES:
        if name in present and name not in settings:
            sibling.conf.unset(name)
    for name, value in settings.items():
        if present.get(name) != value:
            with suppress(PySparkException):  # another version of Spark has it
                sibling.conf.set(name, value)
    if view.namespace:
        sibling.sql(f"USE {quoted_path(view.namespace)}")


INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings of queries on few rows: to compile a plan takes longer than to interpret it."""


def compile_plans(sibling: SparkSession, *, wanted: bool) -> None:
    """Enable or disable code generation in a `log_session`.

    Concurrent writers share the session and may override each other's choice, which only affects
    speed.
    """
    for key, value in INTERPRETED.items():
        if wanted:
            sibling.conf.unset(key)
        else:
            sibling.conf.set(key, value)
