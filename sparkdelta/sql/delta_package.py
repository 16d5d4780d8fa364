"""delta-spark's package ``delta``, from the objects of this library where it is not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from pyspark.sql import SparkSession

from sparkdelta import exceptions, tables
from sparkdelta.exceptions import ArgumentTypeError

Configure = Callable[[SparkSession.Builder], SparkSession.Builder]

_VERSION = "4.4.0"
"""The version of delta-spark whose interface the package has."""

_EXCEPTIONS = (
    "DeltaConcurrentModificationException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
)
_PACKAGES = ("delta", "delta.exceptions", "delta.connect")


def provide_delta_package(configure: Configure) -> None:
    """Make ``import delta`` work, unless there is a package of this name.

    A directory ``delta`` without Python code, such as one of data, is not such a package.

    Parameters
    ----------
    configure
        Makes a builder enable its session.
    """
    if "delta" in sys.modules:
        return
    installed = find_spec("delta")
    if installed is not None and installed.origin is not None:
        return
    contents = _contents(configure)
    modules = {name: _module(name, members) for name, members in contents.items()}
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    sys.modules.update(modules)


def _contents(configure: Configure) -> dict[str, Mapping[str, Any]]:
    """Return the public names of each module, with packages before their modules."""

    def configure_spark_with_delta_pip(
        spark_session_builder: SparkSession.Builder, extra_packages: Sequence[str] | None = None
    ) -> SparkSession.Builder:
        """Make a builder enable its session; delta-spark's function adds its JAR instead."""
        if not isinstance(spark_session_builder, SparkSession.Builder):
            problem = f"it must be a SparkSession builder, not {type(spark_session_builder)}"
            raise ArgumentTypeError(argument="spark_session_builder", problem=problem)
        if extra_packages:
            spark_session_builder.config("spark.jars.packages", ",".join(extra_packages))
        return configure(spark_session_builder)

    pip_utils = {"configure_spark_with_delta_pip": configure_spark_with_delta_pip}
    errors = {name: getattr(exceptions, name) for name in _EXCEPTIONS}
    builders = {name: getattr(tables, name) for name in tables.__all__}
    table, version = {"DeltaTable": tables.DeltaTable}, {"__version__": _VERSION}
    return {
        "delta": table | pip_utils | version,
        "delta.tables": builders,
        "delta.pip_utils": pip_utils,
        "delta.version": version,
        "delta.exceptions": errors,
        "delta.exceptions.base": errors,
        "delta.connect": table,
        "delta.connect.tables": builders,
        "delta.connect.exceptions": errors,
    }


class _Provided(Loader):
    """A loader of a module that exists already."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002 - importlib's name
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Skip: the module exists already."""


def _module(name: str, members: Mapping[str, Any]) -> ModuleType:
    module, is_package = ModuleType(name), name in _PACKAGES
    module.__doc__ = f"{name} as sparkdelta provides it."
    module.__spec__ = ModuleSpec(
        name, _Provided(module), origin="sparkdelta", is_package=is_package
    )
    vars(module).update(members, __all__=list(members), __package__=name.rpartition(".")[0])
    if is_package:
        module.__path__, module.__package__ = [], name
    return module
