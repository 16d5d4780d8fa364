"""Start of an interpreter in which each Spark session is enabled.

``sparkdelta run`` puts its directory on the path of a program. Nothing is imported before the
program imports PySpark or ``delta``.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_SESSIONS = "pyspark.sql.session"
_PACKAGE = "delta"


class _Enabling(MetaPathFinder):
    """A finder of PySpark's module of sessions, and of the package ``delta``."""

    _is_providing = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == _SESSIONS:
            spec = PathFinder.find_spec(fullname, path, target)
            if spec is not None:
                spec.loader = _calling_after(spec.loader, _enable_builders)
            return spec
        if fullname == _PACKAGE and not self._is_providing:
            self._is_providing = True  # it looks for an installed package
            try:
                import sparkdelta.as_delta  # noqa: F401 - its import provides the package
            finally:
                self._is_providing = False
            provided = sys.modules.get(_PACKAGE)
            return None if provided is None else provided.__spec__
        return None


def _calling_after(loader: Any, function: Callable[[ModuleType], None]) -> Any:
    """Return a loader that calls a function with a module after it has run its code."""
    run = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        run(module)
        function(module)

    # Workers import PySpark from a ZIP file, where all modules of a package share a loader.
    loader = copy.copy(loader)
    loader.exec_module = exec_module
    return loader


def _enable_builders(sessions: ModuleType) -> None:
    builder = sessions.SparkSession.Builder
    for name in ("create", "getOrCreate"):
        setattr(builder, name, _enabled(getattr(builder, name)))


def _enabled(create: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(create)
    def enabled(builder: Any) -> Any:
        from sparkdelta.sql.sessions import enabled_session

        return enabled_session(builder, functools.partial(create, builder))

    return enabled


def _run_the_next() -> None:
    """Run the module of the same name that this one hides."""
    here = Path(__file__).parent
    others = [each for each in sys.path if Path(each) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


sys.meta_path.insert(0, _Enabling())
_run_the_next()
