"""delta-spark in a process and a JVM of its own, as an independent writer and reader.

sparkdelta's tests run in a session without delta-spark, so that nothing of delta-spark can help
sparkdelta to pass. A test that needs the other engine asks :class:`DeltaSpark` to run a function
of the test suite inside a worker process; rows travel as Parquet files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from tests.support.spark_worker import SparkWorker, SparkWorkerError

VERSION = "4.4.0"
PACKAGE = f"io.delta:delta-spark_4.2_2.13:{VERSION}"
PYSPARK_SERIES = "4.2."
DELTA_SETTINGS = {
    "spark.jars.packages": PACKAGE,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

_UNRESOLVED = ("unresolved dependency", "Server access error", "download failed")


class DeltaSparkUnavailable(Exception):
    """delta-spark cannot be started here: another PySpark, or its JARs cannot be resolved."""


class DeltaSpark(SparkWorker):
    """A worker process with a delta-spark session.

    Parameters
    ----------
    scratch
        A directory for the session's warehouse and Derby files; a temporary one by default.
    session
        The function that makes the session, see `SparkWorker`; `delta_session` by default.
    """

    def __init__(
        self,
        scratch: Path | None = None,
        session: str = "tests.support.delta_spark:delta_session",
        **options: Any,
    ) -> None:
        super().__init__(session, scratch, **options)

    def start(self) -> None:
        """Start the worker and wait until its session is up.

        Raises
        ------
        DeltaSparkUnavailable
            The installed PySpark is not the one delta-spark needs, or the JARs cannot be resolved.
        """
        if not pyspark.__version__.startswith(PYSPARK_SERIES):
            raise DeltaSparkUnavailable(
                f"{PACKAGE} needs pyspark {PYSPARK_SERIES}x, found {pyspark.__version__}"
            )
        try:
            super().start()
        except SparkWorkerError as error:
            if any(sign in str(error) for sign in _UNRESOLVED):
                raise DeltaSparkUnavailable(f"the JARs of {PACKAGE} cannot be resolved") from error
            raise


def delta_session(scratch: Path) -> SparkSession:
    """Build the one delta-spark session of this process: UTC, two cores, few partitions, no
    console.
    """
    settings = {
        **DELTA_SETTINGS,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.leafNodeDefaultParallelism": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM: 10,000 tasks
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.driver.memory": "1g",
        # Files with the old hybrid calendar depend on the JVM's own time zone. The others as in
        # `spark_conf/spark-defaults.conf`, which this replaces.
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1"
        " -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:NewRatio=1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]").appName("delta-spark oracle")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
