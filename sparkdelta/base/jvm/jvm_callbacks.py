"""Interfaces of Spark that Python objects implement: the JVM calls Python for their methods.

A newer Spark may add methods that this library does not know. They keep their default body, as in a
Java class; a method without one is refused by its name, once Spark calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from sparkdelta.base.jvm.jvm import jvm_of
from sparkdelta.exceptions import DeltaError


def complete_interfaces(spark: SparkSession, implementation: type) -> Sequence[str]:
    """Give a class the methods of its interfaces that it lacks; return the names of those without
    a default body.

    Parameters
    ----------
    implementation
        A class whose inner class ``Java`` names the interfaces that it ``implements``.
    """
    interfaces: Sequence[str] = getattr(implementation, "Java").implements  # noqa: B009
    return [
        name for interface in interfaces for name in _complete(spark, implementation, interface)
    ]


def _complete(spark: SparkSession, implementation: type, interface: str) -> Sequence[str]:
    jvm = jvm_of(spark)
    is_static = jvm.java.lang.reflect.Modifier.isStatic
    lacking: dict[str, list[Any]] = {}
    for method in jvm.java.lang.Class.forName(interface).getMethods():
        name = str(method.getName())
        if not hasattr(implementation, name) and not is_static(method.getModifiers()):
            lacking.setdefault(name, []).append(method)
    refused = []
    for name, methods in lacking.items():
        defaults = [method for method in methods if method.isDefault()]
        if not defaults:
            refused.append(name)
        body = _default_body(spark, defaults) if defaults else _refusal(spark, interface, name)
        setattr(implementation, name, body)
    return refused


def _default_body(spark: SparkSession, methods: Sequence[Any]) -> Callable[..., Any]:
    jvm: Any = jvm_of(spark)
    gateway: Any = spark.sparkContext._gateway
    by_count = {int(method.getParameterCount()): method for method in methods}

    def call(self: object, *arguments: Any) -> Any:
        values = gateway.new_array(jvm.java.lang.Object, len(arguments))
        for number, argument in enumerate(arguments):
            values[number] = argument
        handler = jvm.java.lang.reflect.InvocationHandler
        return handler.invokeDefault(self, by_count[len(arguments)], values)

    return call


def _refusal(spark: SparkSession, interface: str, name: str) -> Callable[..., Any]:
    method = f"{interface.rpartition('.')[2]}.{name}"
    error = DeltaError.of("DELTA_SPARK_METHOD_NOT_SUPPORTED", method=method, version=spark.version)

    def refuse(self: object, *arguments: Any) -> Any:  # noqa: ARG001
        raise error

    return refuse
