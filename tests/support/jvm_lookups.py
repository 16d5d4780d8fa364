"""Classes of the JVM and their members, looked up once instead of at each use.

PySpark asks the JVM for ``functions.col`` whenever a column is made, and py4j for each part of
``org.apache.spark``. A name that is no class is searched for in each of Spark's JARs: without
this, a quarter of what the JVM does for a test is that search.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

_found: dict[tuple[object, ...], Any] = {}


def remember_lookups() -> None:
    """Keep the classes, packages and static methods that this process looks up in its JVMs."""
    _remember(JVMView, lambda view: (view._gateway_client, view._id))
    _remember(JavaPackage, lambda package: (package._gateway_client, package._fqn))
    _remember(JavaClass, lambda found: (found._gateway_client, found._fqn))


def _remember(kind: type[Any], identity: Any) -> None:
    look_up = kind.__getattr__

    def remembered(self: Any, name: str) -> Any:
        key = (kind, *identity(self), name)
        if key in _found:
            return _found[key]
        found = look_up(self, name)
        if isinstance(found, JavaClass | JavaPackage | JavaMember):  # not the value of a field
            _found[key] = found
        return found

    kind.__getattr__ = remembered
