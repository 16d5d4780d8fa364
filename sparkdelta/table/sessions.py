"""Which kind of Spark session this is, and how its failures look."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

SPARK_ERRORS: tuple[type[Exception], ...]
"""What a failed query raises: PySpark leaves some of the JVM's exceptions as py4j brings them."""

try:
    from py4j.protocol import Py4JJavaError
except ImportError:  # a client of Spark Connect alone
    SPARK_ERRORS = (PySparkException,)
else:
    SPARK_ERRORS = (PySparkException, Py4JJavaError)


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a client of Spark Connect, which has no JVM at hand."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
