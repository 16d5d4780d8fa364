"""Python objects that Spark asks while it plans or runs a query; classic Spark only.

An error of theirs ends the query, with its own text. They work in a session of this library, whose
settings are fixed.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

from py4j.java_gateway import JavaObject, is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from sparkdelta.base.jvm.jvm import jvm_of, same_active_sessions
from sparkdelta.exceptions import DeltaError, SparkMemberNotFoundError

OPERATION = "sparkdelta.operation"
"""The property of a thread that names the operation of which its queries are parts."""

_EXECUTION = "spark.sql.execution.id"  # Spark hands it on to all threads that a query uses
_Method = TypeVar("_Method", bound=Callable[..., Any])


class _CallbackError(Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """The error with which a callback raises an exception in the JVM."""


class _ErrorsOfListings:
    """A setting of py4j that is true while a `_CallbackError` is handled, and otherwise as it was:
    the JVM gets the exception itself, and callbacks of the user end as they did.
    """

    def __init__(self, before: object) -> None:
        self.before = before

    def __bool__(self) -> bool:
        return isinstance(sys.exc_info()[1], _CallbackError) or bool(self.before)


def let_errors_pass(gateway: Any) -> None:
    """Let the JVM get the errors of callbacks as they are."""
    parameters = gateway.python_parameters
    before = parameters.propagate_java_exceptions
    if not isinstance(before, _ErrorsOfListings):
        parameters.propagate_java_exceptions = _ErrorsOfListings(before)


_last = threading.local()


def answer(method: _Method) -> _Method:
    """Decorate a callback so that it always answers: if it ended with a KeyboardInterrupt, the JVM
    would wait for ever.
    """

    @wraps(method)
    def answered(self: QueryCallback, *arguments: Any) -> Any:
        try:
            result = method(self, *arguments)
        except BaseException as error:  # noqa: BLE001 - as above
            result = _to_raise(self.listing, error)
        # The JVM gets an id of the result, and asks for the object later: it must still exist.
        _last.result = result
        if isinstance(result, _CallbackError):
            raise result from None
        return result

    return cast(_Method, answered)


def _to_raise(spark: SparkSession, error: BaseException) -> _CallbackError:
    """Return an error as an unchecked exception of the JVM, whose text is the error's."""
    jvm = jvm_of(spark)
    gateway: Any = spark.sparkContext._gateway
    cause = java_exception(error)
    if cause is not None and any(is_instance_of(gateway, cause, kind) for kind in _UNCHECKED):
        return _CallbackError("", cause)
    text = str(error) if cause is None else _text(cause)
    if cause is None and not isinstance(error, DeltaError):
        text = f"{type(error).__name__}: {text}"
    try:
        exception = jvm.org.apache.spark.SparkRuntimeException(
            "USER_RAISED_EXCEPTION",
            jvm.PythonUtils.toScalaMap({"errorMessage": text}),
            cause,
            gateway.new_array(jvm.org.apache.spark.QueryContext, 0),
            "",
        )
    except SparkMemberNotFoundError:
        exception = jvm.java.lang.IllegalArgumentException(text, cause)
    return _CallbackError(text, exception)


_UNCHECKED = ("java.lang.RuntimeException", "java.lang.Error")


def java_exception(error: BaseException) -> Any:
    """Return the exception of the JVM that an error stands for; None without one."""
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    return error._origin if isinstance(error, CapturedException) else None


def _text(exception: Any) -> str:
    """Return the message of the first Spark error among an exception and its causes; without one,
    the text of the exception.
    """
    cause = exception
    while cause is not None:
        if str(cause.getMessage()).startswith("["):
            return str(cause.getMessage())
        cause = cause.getCause()
    return str(exception.toString())


class QueryCallback:
    """An object that implements an interface of Spark. It has no way to a plan that it is part of:
    the two heaps would keep each other.

    Attributes
    ----------
    listing
        A `listing_session`, in which it works.
    identity
        A text that only equal objects have.
    """

    def __init__(self, spark: SparkSession, listing: SparkSession, identity: str) -> None:
        self.jvm = jvm_of(listing)
        self.listing = listing
        self.identity = identity
        self._user = weakref.ref(spark)

    @answer
    def toString(self) -> str:  # noqa: N802
        return self.identity

    @answer
    def hashCode(self) -> int:  # noqa: N802
        return hash(self.identity) & 0x7FFFFFFF

    @answer
    def equals(self, other: Any) -> bool:
        """Return True if the other object is the JVM's proxy of an object of this identity."""
        is_proxy = isinstance(other, JavaObject)
        return is_proxy and str(other.toString()) == self.identity

    def query_id(self) -> str | None:
        """Return the operation of this thread, see `shared_reads`, or else the query that runs."""
        context = self.listing.sparkContext
        operation = context.getLocalProperty(OPERATION)
        execution = None if operation else context.getLocalProperty(_EXECUTION)
        # Each application counts its executions from 0, and one process may start several.
        return f"{self._application} {execution}" if execution else operation

    @cached_property
    def _application(self) -> str:
        return str(self.listing.sparkContext.applicationId)

    @contextmanager
    def in_listing_session(self) -> Iterator[Any]:
        """Make the listing session the active one in a block; yield the JVM's session that it was
        before, or None.
        """
        with same_active_sessions(self.listing, self._user):
            sessions = self.jvm.org.apache.spark.sql.classic.SparkSession
            active = sessions.getActiveSession()
            sessions.setActiveSession(self.listing._jsparkSession)
            yield active.get() if active.isDefined() else None
