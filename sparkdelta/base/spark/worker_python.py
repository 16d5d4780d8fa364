"""The Python interpreter of workers that run functions of this library.

The package does not have to be installed on executors: its code is pickled by value.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import cloudpickle
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.spark.connect_sessions import users_session
from sparkdelta.base.spark.driver import read_row
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError

_package = sys.modules[__name__.partition(".")[0]]
cloudpickle.register_pickle_by_value(_package)  # type: ignore[no-untyped-call] # has no types

_PACKAGES = ("numpy", "pandas", "pyarrow")

_checked: weakref.WeakSet[SparkSession] = weakref.WeakSet()
_lock = threading.RLock()


@contextmanager
def worker_python(spark: SparkSession) -> Iterator[None]:
    """Ensure that Python functions in DataFrames created in the block run in an interpreter with
    the required packages.

    A local master uses the driver's interpreter; by default PySpark would use ``python3`` from the
    PATH, which differs in a virtual environment that is not activated. On other masters one task
    per session checks that the packages are installed.

    Raises
    ------
    DELTA_PYTHON_WORKER_NOT_USABLE
        A required package is missing on the workers.
    """
    if not engine_of(spark).runs_workers_locally:
        _check(users_session(spark))
        yield
        return
    context = spark.sparkContext
    with _lock:  # PySpark reads the name when a DataFrame with a function is created
        before = context.pythonExec
        context.pythonExec = sys.executable or before
        try:
            yield
        finally:
            context.pythonExec = before


def _check(spark: SparkSession) -> None:
    if spark in _checked:
        return

    def missing(packages: str) -> str:
        import importlib.util
        import sys

        absent = [name for name in packages.split() if importlib.util.find_spec(name) is None]
        return f"{sys.executable} has no {', '.join(absent)}" if absent else ""

    packages = F.lit(" ".join(_PACKAGES))
    look = F.udf(missing, "string", useArrow=False)  # needs neither pandas nor pyarrow
    try:
        row = read_row(
            spark.range(1).select(look(packages).alias("problem")),
            what="packages of Python workers",
        )
    except DeltaError:
        raise
    except PythonException as error:
        lines = [line for line in str(error).splitlines() if "Error: " in line]
        problem = lines[-1].strip() if lines else str(error).partition("\n")[0]
        raise DeltaError.of("DELTA_PYTHON_WORKER_NOT_USABLE", problem=problem.rstrip(".")) from None
    if row["problem"]:
        raise DeltaError.of("DELTA_PYTHON_WORKER_NOT_USABLE", problem=row["problem"])
    _checked.add(spark)
