"""Functions that a Spark Connect server runs in Python processes of its own.

Such a process has PySpark, but not this library. PySpark would pickle the library by value, as it
does for tasks; modules with state, such as locks and replaced methods, cannot be pickled so. A
shipped function brings the library's source instead, which the process imports from memory.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import io
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from uuid import uuid4

import sqlglot
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.spark import worker_python
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.enabled_sessions import enable_session, is_enabled
from sparkdelta.base.spark.spark_engine import StreamFunction, engine_of

_LIBRARY = worker_python.__name__.partition(".")[0]
_SHIPPED = (_LIBRARY, sqlglot.__name__)
"""The packages in the archive. PySpark itself needs all others that this library imports."""


@dataclass(frozen=True)
class ShippedFunction:
    """A function that brings the library with it where it is unpickled."""

    function: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __reduce__(self) -> Any:
        archive = _archive()
        return _load, (hashlib.sha256(archive).hexdigest(), archive, _pickled(self.function))


def stream_function(
    spark: SparkSession, function: StreamFunction
) -> Callable[[DataFrame, int], None]:
    """Return a function for ``foreachBatch`` that calls another one in the server's process."""
    return ShippedFunction(functools.partial(_call, function, enables=is_enabled(spark)))


def _call(function: StreamFunction, batch: DataFrame, number: int, *, enables: bool) -> None:
    number_plans_apart()
    if enables:
        enable_session(batch.sparkSession, {})
    function(engine_of(batch.sparkSession), batch, number)


@functools.cache
def number_plans_apart() -> None:
    """Number the plans of this process as no other process does.

    Spark 4.0 runs their plans in one session, which caches an analyzed plan by its number, and with
    it the files that it listed.
    """
    from pyspark.sql.connect.plan import LogicalPlan

    LogicalPlan._nextPlanId = uuid4().int >> 66  # a positive LONG with room above


def query_id(spark: SparkSession, checkpoint: str) -> str:
    """Return the id of the streaming query with a checkpoint."""
    metadata = spark.read.schema("id STRING").json(f"{checkpoint.rstrip('/')}/metadata")
    rows = read_rows(metadata, what="id of a streaming query", bound=1)
    return str(rows[0]["id"])


@functools.cache
def _archive() -> bytes:
    """Return the source of the shipped packages as a ZIP file."""
    loader: Any = getattr(sys.modules[_LIBRARY], "__loader__", None)
    if hasattr(loader, "archive"):  # this process has it from another one
        return bytes(loader.archive)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _SHIPPED:
            (root,) = sys.modules[name].__path__
            for file in sorted(Path(root).rglob("*.py")):
                inside = file.relative_to(Path(root).parent).as_posix()
                archive.writestr(zipfile.ZipInfo(inside), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


class _Pickler(cloudpickle.Pickler):
    """A pickler of the library's functions, classes and modules by name."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, ModuleType) and _is_shipped(value.__name__):
            return importlib.import_module, (value.__name__,)
        if isinstance(value, (FunctionType, type)) and _is_shipped(value.__module__):
            found: Any = sys.modules.get(value.__module__)
            for part in value.__qualname__.split("."):
                found = getattr(found, part, None)
            if found is value:
                return NotImplemented  # by name
        return super().reducer_override(value)  # type: ignore[no-untyped-call]


def _is_shipped(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _SHIPPED


def _pickled(function: Callable[..., Any]) -> bytes:
    with io.BytesIO() as file:
        _Pickler(file).dump(function)  # type: ignore[no-untyped-call]
        return file.getvalue()


def _load(digest: str, archive: bytes, pickled: bytes) -> Any:
    """Load a pickled function with the library of an archive.

    It is pickled by value, and refers to nothing of this module.
    """
    import io
    import pickle
    import sys
    import zipfile
    from importlib.abc import InspectLoader
    from importlib.machinery import ModuleSpec
    from importlib.util import spec_from_loader

    class ArchiveImporter(InspectLoader):
        """A finder and loader of modules in an archive."""

        def __init__(self) -> None:
            self.archive, self.digest = archive, digest
            self._files = zipfile.ZipFile(io.BytesIO(archive))
            self._names = set(self._files.namelist())

        def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
            is_there = self._file(name) is not None
            return spec_from_loader(name, self, origin=digest) if is_there else None

        def is_package(self, name: str) -> bool:
            return (self._file(name) or "").endswith("/__init__.py")

        def get_source(self, name: str) -> str:
            return self._files.read(self._file(name) or "").decode()

        def _file(self, name: str) -> str | None:
            base = name.replace(".", "/")
            names = (f"{base}/__init__.py", f"{base}.py")
            return next((file for file in names if file in self._names), None)

    present = [each for each in sys.meta_path if hasattr(each, "digest")]
    if all(each.digest != digest for each in present):
        # A process that is used again may have another release.
        for each in present:
            sys.meta_path.remove(each)
        importer = ArchiveImporter()
        packages = {name.partition("/")[0] for name in importer._names}
        for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
            del sys.modules[name]
        sys.meta_path.insert(0, importer)
    return pickle.loads(pickled)  # noqa: S301 - of the client, as the function itself
