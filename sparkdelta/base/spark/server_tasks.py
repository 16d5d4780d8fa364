"""Functions of this library in a Python task on a Spark Connect server.

Workers do not have the library. Each task brings its code, as bytes that are made once in a client,
and a worker loads them once: to pickle and to load the code takes longer than most tasks.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import io
import sys
import zlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from sparkdelta.base.spark import worker_python  # noqa: F401 - pickles the package by value
from sparkdelta.base.spark.connect_sessions import users_session
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.storage import server_store_workers as workers
from sparkdelta.base.storage.server_store_workers import DELTA_ERROR, Item, outcome
from sparkdelta.exceptions import DeltaError, from_message

NO_PYTHON = "DELTA_PYTHON_WORKER_NOT_USABLE"
_NOT_USABLE = ("PYTHON_VERSION_MISMATCH", "Cannot run program", "ModuleNotFoundError")
_ITEM = StructType(
    [
        StructField("name", StringType()),
        StructField("size", LongType()),
        StructField("time", LongType()),
        StructField("content", BinaryType()),
    ]
)
_OUTCOME = StructType(  # DDL would be parsed by the server
    [
        StructField("error", ArrayType(StringType())),
        StructField("items", ArrayType(_ITEM)),
    ]
)
_ERRORS = {
    "FileNotFoundError": (FileNotFoundError, errno.ENOENT, "no such file on the server"),
    "FileExistsError": (FileExistsError, errno.EEXIST, "exists on the server"),
}


def on_server(spark: SparkSession, function: Callable[[], list[Item]], *, what: str) -> list[Item]:
    """Return what a function returns in a task on the server.

    Raises
    ------
    FileNotFoundError, FileExistsError
        Of the function; `filename` is the same.
    DELTA_PYTHON_WORKER_NOT_USABLE
        The server cannot run functions of the client's Python.
    """
    task = F.udf(_task(function), _OUTCOME, useArrow=False).asNondeterministic()
    try:
        frame = users_session(spark).range(0, 1, 1, 1).select(task("id").alias("outcome"))
        [done] = read_table(frame, what=what, bound=1)["outcome"].to_pylist()
    except DeltaError:
        raise
    except PySparkException as error:
        lines = str(error).splitlines()
        problems = [line for line in lines if any(sign in line for sign in _NOT_USABLE)]
        if not problems:
            raise
        problem = problems[-1].rpartition("] ")[2].strip().rstrip(".")
        raise DeltaError.of(NO_PYTHON, problem=problem) from None
    if done["error"]:
        kind, name = done["error"]
        raised = from_message(name) if kind == DELTA_ERROR else None
        if raised is not None:
            raise raised
        error_class, number, problem = _ERRORS[kind]
        raise error_class(number, problem, name)
    return [tuple(item.values()) for item in done["items"]]


def _task(function: Callable[[], list[Item]]) -> Callable[[int], Any]:
    """Return the outcome of a function as a function for workers that is pickled in no time."""
    with io.BytesIO() as file:
        pickler = _Pickler(file)
        pickler.dump(functools.partial(outcome, function))  # type: ignore[no-untyped-call]
        pickled = file.getvalue()
    digest, code = _code(tuple(pickler.named))

    def task(_: int) -> Any:
        import io
        import pickle
        import sys
        import zlib

        from pyspark import cloudpickle

        class Unpickler(pickle.Unpickler):
            def persistent_load(self, number: int) -> Any:
                return named[number]

        kept = sys.__dict__.setdefault("_sparkdelta_code", {})
        named = kept.get(digest)
        if named is None:
            while len(kept) >= 16:  # of other functions and other releases
                kept.pop(next(iter(kept)), None)
            named = kept[digest] = cloudpickle.loads(zlib.decompress(code))
        return Unpickler(io.BytesIO(pickled)).load()()

    return task


@functools.lru_cache(maxsize=64)
def _code(named: tuple[Any, ...]) -> tuple[str, bytes]:
    """Return functions and classes of the library, pickled by value, after a digest of them."""
    pickled = cloudpickle.dumps(named)  # type: ignore[no-untyped-call]
    return hashlib.sha256(pickled).hexdigest(), zlib.compress(pickled)


class _Pickler(cloudpickle.Pickler):
    """A pickler of the library's functions and classes as their places in `named`."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        operations = dict.fromkeys(filter(_is_of_library, vars(workers).values()))
        self.named = {value: number for number, value in enumerate(operations)}  # share their code

    def persistent_id(self, value: Any) -> int | None:
        if _is_of_library(value):
            return self.named.setdefault(value, len(self.named))
        return None


def _is_of_library(value: Any) -> bool:
    """Return True if a value is a function or class that the library has by its name."""
    if not isinstance(value, (FunctionType, type)):
        return False
    module = str(value.__module__)
    is_inside = module.partition(".")[0] == __name__.partition(".")[0]
    return is_inside and getattr(sys.modules.get(module), value.__qualname__, None) is value
