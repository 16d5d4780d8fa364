"""Enabled sessions, in which PySpark's own methods support Delta tables, and the replaced methods.

A method is replaced in its class once the first session asks for it, and put back after the last
one. It leaves everything to PySpark's method unless its session asked, and the call is about a
Delta table.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from sparkdelta.base.spark.library_sessions import (
    UTC,
    replace_missing_catalog,
    session_time_zone,
)
from sparkdelta.base.spark.spark_builders import builders_of
from sparkdelta.exceptions import DeltaError

Original = Callable[..., Any]
Replacement = Callable[..., Any]
"""A function of the original method and its arguments."""

_sessions: weakref.WeakSet[SparkSession] = weakref.WeakSet()
_parents: weakref.WeakKeyDictionary[SparkSession, SparkSession] = weakref.WeakKeyDictionary()
"""The session that was enabled by the user, for each one that others made."""

_synced: weakref.WeakSet[SparkSession] = weakref.WeakSet()
"""The sessions whose commits describe tables in the session catalog, too."""

_originals: dict[tuple[Any, str], Original] = {}
_lock = threading.Lock()


def is_enabled(spark: SparkSession) -> bool:
    """Return True if a session is enabled, or was cloned from an enabled one."""
    return _includes(_sessions, spark)


def syncs_catalog(spark: SparkSession) -> bool:
    """Return True if commits of a session describe their tables in the session catalog, too."""
    return _includes(_synced, spark)


def _includes(sessions: weakref.WeakSet[SparkSession], spark: SparkSession) -> bool:
    """Return True if a session is one of the sessions, or was cloned from one of them."""
    if spark in sessions:
        return True
    builders = builders_of(spark)
    return any(builders.is_clone(spark, other) for other in sessions)


def conversion_time_zone(spark: SparkSession) -> str:
    """Return the time zone in which delta-spark's interfaces convert values: that of an enabled
    session, as with delta-spark, else UTC.
    """
    return session_time_zone(spark) if is_enabled(spark) else UTC


def enable_session(
    spark: SparkSession, methods: Mapping[str, Replacement], *, sync_catalog: bool = False
) -> None:
    """Add a session, and replace the methods of its kind of session.

    Parameters
    ----------
    methods
        Replacements by ``Class.method``.
    sync_catalog
        True to describe tables in the session catalog after commits.

    Raises
    ------
    DELTA_SPARK_PRESENT
        delta-spark is there.
    """
    builders = builders_of(spark)
    if builders.has_delta_spark(spark):
        raise DeltaError.of("DELTA_SPARK_PRESENT")
    replace_missing_catalog(spark)
    with _lock:
        for qualified, replacement in methods.items():
            owner, _, name = qualified.partition(".")
            if owner in builders.classes:
                _replace(builders.classes[owner], name, replacement)
        _sessions.add(spark)
        if sync_catalog:
            _synced.add(spark)


def enable_child(spark: SparkSession, parent: SparkSession) -> SparkSession:
    """Add a session that was made by another one, if that is enabled, and return it."""
    if is_enabled(parent):
        replace_missing_catalog(spark)
        with _lock:
            _sessions.add(spark)
            _parents[spark] = _parents.get(parent, parent)
            if syncs_catalog(parent):
                _synced.add(spark)
    return spark


def disable_session(spark: SparkSession) -> None:
    """Disable a session and its children; after the last session, restore PySpark's methods."""
    with _lock:
        builders = builders_of(spark)
        for other in list(_sessions):
            parent = _parents.get(other, other)
            if builders.is_clone(spark, parent) or builders.is_clone(spark, other):
                _sessions.discard(other)
                _synced.discard(other)
        if _sessions:
            return
        for (owner, name), original in _originals.items():
            setattr(owner, name, original)
        _originals.clear()


def sparks_own(owner: type, name: str) -> Original:
    """Return PySpark's method of a class, replaced or not."""
    return _originals.get((owner, name)) or getattr(owner, name)


def _replace(owner: Any, name: str, replacement: Replacement) -> None:
    if (owner, name) in _originals or not hasattr(owner, name):  # a method of later versions
        return
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        return replacement(original, *args, **kwargs)

    setattr(owner, name, method)
    _originals[owner, name] = original
