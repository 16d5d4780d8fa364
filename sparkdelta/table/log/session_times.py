"""SQL timestamp expressions of a user, evaluated in the user's session."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.spark_errors import SPARK_ERRORS
from sparkdelta.exceptions import DeltaError


def session_time(spark: SparkSession, expression: str) -> datetime:
    """Evaluate a SQL timestamp in the session's time zone, without a Spark job.

    The expression must be valid, deterministic and not null.
    """
    engine = engine_of(spark)
    # Spark replaces words such as 'yesterday' where a constant is cast, but not in its time travel.
    cast = "unix_micros(CAST(time AS TIMESTAMP_LTZ)) AS micros"
    try:
        frame = spark.sql("VALUES (0)").selectExpr(f"({expression}) AS time")
        if not engine.plan_nodes(frame)[0]:
            error = DeltaError.of("DELTA_TIMESTAMP_INVALID", value=expression)
            raise error.named(
                "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.NON_DETERMINISTIC", expr=f'"{expression}"'
            )
        rows = read_rows(frame.selectExpr(cast), what="time of a time travel", bound=1)
    except DeltaError:
        raise
    except SPARK_ERRORS as refusal:
        raise DeltaError.of("DELTA_TIMESTAMP_INVALID", value=expression) from refusal
    if rows[0]["micros"] is None:
        raise DeltaError.of("DELTA_TIMESTAMP_INVALID", value=expression)
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    return epoch + timedelta(microseconds=rows[0]["micros"])
