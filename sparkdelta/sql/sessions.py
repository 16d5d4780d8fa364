"""Public: PySpark's own methods for Delta tables, in sessions that ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.spark.enabled_sessions import disable_session, enable_session, sparks_own
from sparkdelta.base.spark.library_sessions import UTC
from sparkdelta.base.spark.session_settings import follow_settings
from sparkdelta.base.spark.spark_builders import builders_of, drop_delta_settings
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.sql.delta_package import provide_delta_package
from sparkdelta.sql.pyspark.pyspark_methods import METHODS
from sparkdelta.sql.pyspark.pyspark_streaming import foreach_batch
from sparkdelta.sql.statements.statement_text import run_sql


def enable(spark: SparkSession, *, sync_catalog: bool = False) -> SparkSession:
    """Make PySpark's readers, writers and SQL of a session work with Delta tables.

    ``spark.read.format("delta")``, ``df.write.format("delta")`` and ``df.writeTo`` take
    delta-spark's options, and ``spark.sql`` does what `sql` does. Other formats and sessions are
    left to PySpark; so are programs outside this Python process. Sessions made by ``newSession``
    are enabled, too. Enabling a session again changes nothing. Where delta-spark is not installed,
    ``import delta`` gives this library's `DeltaTable` and exceptions.

    Parameters
    ----------
    spark
        A classic or Spark Connect session.
    sync_catalog
        True to write the columns, comment and properties of tables into the session catalog after
        each commit that changes them, for programs that read the metastore. The table property
        ``sparkdelta.syncCatalog`` asks for it in each session.

    Returns
    -------
    SparkSession
        The same session.

    Raises
    ------
    DELTA_SPARK_PRESENT
        delta-spark's JAR is there.
    InvalidArgumentError
        `sync_catalog` is set for a Spark Connect client.

    Examples
    --------
    >>> sparkdelta.enable(spark)  # doctest: +SKIP
    >>> spark.read.format("delta").option("versionAsOf", 3).load("/data/people")  # doctest: +SKIP
    """
    if sync_catalog:
        engine_of(spark).check_describes_tables()
    methods = {**METHODS, "DataStreamWriter.foreachBatch": foreach_batch(enable)}
    enable_session(spark, methods, sync_catalog=sync_catalog)
    provide_delta_package(configure)
    return spark


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Make a session builder enable the session that it creates, see `enable`.

    It takes the place of delta-spark's ``configure_spark_with_delta_pip``, and sets nothing: there
    are no JARs, extensions or catalogs to configure. The builder's settings for delta-spark are
    removed.

    Examples
    --------
    >>> spark = configure(SparkSession.builder.appName("a")).getOrCreate()  # doctest: +SKIP
    """
    provide_delta_package(configure)
    create = builder.getOrCreate
    vars(builder)["getOrCreate"] = lambda: enabled_session(builder, create)
    return builder


def enabled_session(
    builder: SparkSession.Builder, create: Callable[[], SparkSession]
) -> SparkSession:
    """Return the session that a builder creates, enabled."""
    drop_delta_settings(builder)
    return enable(create())


def disable(spark: SparkSession) -> None:
    """Undo `enable`: the session's readers and writers are PySpark's again."""
    disable_session(spark)


def sql(
    spark: SparkSession,
    text: str,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    **kwargs: Any,
) -> DataFrame:
    """Run a SQL statement that may read or change Delta tables, on any session.

    Tables are ``delta.`/path` ``, with a version after VERSION AS OF or in the name (``@v3``), or
    names of the session catalog. Queries are Spark's own, with a DataFrame in the place of each
    Delta table. Other statements are passed on to Spark unchanged.

    Parameters
    ----------
    args
        Values of parameters, by name (``:name``) or in order (``?``).
    kwargs
        DataFrames and values for names in braces, as of ``spark.sql``.

    Returns
    -------
    DataFrame
        The rows of a query; for a statement, the same as delta-spark returns.

    Raises
    ------
    StatementSyntaxError
        A statement of Delta is not understood; nothing was done.
    DELTA_STATEMENT_NOT_SUPPORTED
        A statement of Delta is not implemented.
    DeltaError
        As of the function that does the same.

    Examples
    --------
    >>> sql(spark, "DELETE FROM delta.`/people` WHERE age > :age", {"age": 40})  # doctest: +SKIP
    """
    owner = builders_of(spark).classes["SparkSession"]
    run = partial(sparks_own(owner, "sql"), spark)
    with follow_settings(None):
        return run_sql(spark, run, text, args, kwargs, time_zone=UTC)
