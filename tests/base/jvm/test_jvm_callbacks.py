"""Interfaces of the JVM that Python objects implement."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from sparkdelta.base.jvm.jvm_callbacks import complete_interfaces


class _ByLength:
    """A comparator that knows only how to compare."""

    class Java:
        implements = ("java.util.Comparator",)

    def compare(self, left: str, right: str) -> int:
        return len(left) - len(right)

    def equals(self, other: object) -> bool:
        return other is self


class _Endless:
    """An iterator without `next`."""

    class Java:
        implements = ("java.util.Iterator",)

    def hasNext(self) -> bool:
        return True


@pytest.fixture
def calls(spark: SparkSession) -> Any:
    """A function that calls a method of an interface on a Python object, from within the JVM."""
    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)
    jvm: Any = spark._jvm

    def call(target: object, interface: str, name: str) -> Any:
        method = jvm.java.lang.Class.forName(interface).getMethod(
            name, gateway.new_array(jvm.java.lang.Class, 0)
        )
        return method.invoke(target, gateway.new_array(jvm.java.lang.Object, 0))

    return call


def test_a_method_that_python_lacks_keeps_its_default_body(spark: SparkSession, calls: Any) -> None:
    assert complete_interfaces(spark, _ByLength) == []
    longest_first: JavaObject = calls(_ByLength(), "java.util.Comparator", "reversed")
    words = spark._jvm.java.util.ArrayList()
    for word in ("a", "ccc", "bb"):
        words.add(word)
    spark._jvm.java.util.Collections.sort(words, longest_first)
    assert list(words) == ["ccc", "bb", "a"]


def test_an_abstract_method_that_python_lacks_is_refused_by_name(
    spark: SparkSession, calls: Any
) -> None:
    assert complete_interfaces(spark, _Endless) == ["next"]
    with pytest.raises(Py4JJavaError, match=r"DELTA_SPARK_METHOD_NOT_SUPPORTED.*Iterator\.next"):
        calls(_Endless(), "java.util.Iterator", "next")
    with pytest.raises(Py4JJavaError, match="UnsupportedOperationException"):
        calls(_Endless(), "java.util.Iterator", "remove")
