"""This library's own sessions on a Spark Connect server.

A server starts Python workers, and compiles generated code, for each session anew: a MERGE takes
seconds longer in a new one. So sessions of reads and writes are kept until the user's is released.
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy as shallow_copy
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.spark.connect_commands import may_change_session, starts_stream
from sparkdelta.base.spark.connect_requests import wrap_requests
from sparkdelta.base.spark.library_sessions import ESCAPED_LITERALS, TIME_ZONE
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

_UTC = {"UTC", "ETC/UTC", "GMT", "ETC/GMT", "Z", "+00:00"}
_MAX_KEPT = 4
"""The most sessions that wait for their next use, for a session of a user."""


@dataclass(frozen=True)
class _State:
    """The part of a user's session that a copy has."""

    settings: frozenset[tuple[str, str]]
    changes: int


_Kind: TypeAlias = "frozenset[tuple[str, str]] | _State"
"""The settings that a session was made with, or what it has of the session that it copies."""

_users: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()
"""The users' sessions by our own."""

_copies: WeakSet[SparkSession] = WeakSet()

_before: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
"""The values that settings of sessions in use had before they were changed."""

_kept: dict[str, list[tuple[_Kind, SparkSession]]] = {}
"""The sessions that wait, by the id of the user's session."""

_changes: Counter[str] = Counter()
"""The number of times that a session, by its id, may have got other views, functions or files."""

_shared: set[str] = set()
"""The ids of sessions that processes of the server may change, too: functions of streams."""

_IN_SERVER = "SPARK_CONNECT_LOCAL_URL"
"""A variable of these processes."""

_lock = threading.Lock()


@contextmanager
def connect_sibling(
    spark: SparkSession, settings: Mapping[str, str], *, is_kept: bool = False
) -> Iterator[SparkSession]:
    """Yield another session on the same server.

    Parameters
    ----------
    is_kept
        True for a block that leaves nothing but settings behind in the session, which may be the
        one of an earlier block. Other sessions are released.
    """
    _watch(type(spark.client))
    settings = {**settings, ESCAPED_LITERALS: "false"}
    kind = frozenset(settings.items()) if is_kept else None
    with _session(spark, kind, lambda: _new_session(spark), settings) as sibling:
        yield sibling


@contextmanager
def connect_copy(spark: SparkSession) -> Iterator[SparkSession]:
    """Yield a session with the settings, views and functions of the user's, in which its plans
    mean the same; Spark has such copies since 4.2. It may be the one of an earlier block.
    """
    user: Any = spark
    _watch(type(user.client))
    changes = _changes[user.session_id]  # before the settings: a change meanwhile counts
    is_shared = user.session_id in _shared or _IN_SERVER in os.environ
    kind = None if is_shared else _State(frozenset(user.conf.getAll.items()), changes)
    with _session(spark, kind, user.cloneSession, {}) as copy:
        _copies.add(copy)
        yield copy


def rows_in_copy(rows: DataFrame, copy: SparkSession) -> DataFrame | None:
    """Return rows of the user's session in a `connect_copy` of it; None if the session is none, or
    cannot read them: rows that `localCheckpoint` keeps stay behind.
    """
    if copy not in _copies:
        return None
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    frame: Any = rows
    found = cast(DataFrame, ConnectFrame(frame._plan, cast(Any, copy)))
    try:
        _ = found.schema
    except DeltaError:
        raise
    except PySparkException:
        return None
    return found


@contextmanager
def _session(
    spark: SparkSession,
    kind: _Kind | None,
    make: Callable[[], SparkSession],
    settings: Mapping[str, str],
) -> Iterator[SparkSession]:
    """Yield a kept session of a kind, or a new one with these settings; an error releases it."""
    kept = None if kind is None else _take(spark, kind)
    session, waits = kept or make(), False
    try:
        _users[session] = spark
        if kept is None:
            change_settings(session, settings)
        _before[session] = {}
        yield session
        changed = _before.pop(session)
        if kind is not None:
            _set(session, changed)
            waits = _keep(spark, kind, session)
    finally:
        if not waits:
            _release(session)


def _new_session(spark: SparkSession) -> SparkSession:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    connection: Any = shallow_copy(spark.client._builder)
    # The session's address may name the session.
    connection._params = {**connection._params, connection.PARAM_SESSION_ID: str(uuid4())}
    return cast(SparkSession, ConnectSession(connection=connection))


def _take(spark: SparkSession, kind: _Kind) -> SparkSession | None:
    """Return a kept session that the server still has; release copies of another state."""
    with _lock:
        waiting = _kept.pop(_id(spark), [])
        fitting = [session for each, session in waiting if each == kind]
        outdated = [
            session
            for each, session in waiting
            if each != kind and isinstance(each, _State) and isinstance(kind, _State)
        ]
        found = fitting[-1:]
        _kept[_id(spark)] = [each for each in waiting if each[1] not in (*outdated, *found)]
    for session in outdated:
        _release(session)
    for session in found:
        with suppress(PySparkException):
            settings_of(session, [TIME_ZONE])
            return session
        _release(session)
    return None


def _keep(spark: SparkSession, kind: _Kind, session: SparkSession) -> bool:
    """Let a session wait for its next use, unless enough do."""
    with _lock:
        waiting = _kept.setdefault(_id(spark), [])
        if len(waiting) >= _MAX_KEPT or spark.client.is_closed:
            return False
        waiting.append((kind, session))
    return True


def _id(spark: SparkSession) -> str:
    user: Any = spark
    return str(user.session_id)


def _release(session: SparkSession) -> None:
    client = session.client
    with suppress(PySparkException):  # the server may have released it
        client.release_session()
    client.close()
    # PySpark closes it again when the session is collected. In 4.0.0, in a thread of gRPC, that
    # waits forever for a request of another session.
    client.close = lambda: None  # type: ignore[method-assign]


def _release_kept() -> None:
    """Release the sessions that wait, before the process ends: gRPC's threads end with it, and
    PySpark, which closes each session as it is collected, could wait for them forever.
    """
    for user in [*_kept]:
        for _, session in _kept.pop(user):
            session.client.set_retry_policies([])  # the server may have gone first
            _release(session)


@contextmanager
def _counted(_: Any, request: Any) -> Iterator[None]:
    """Count the changes of the session that a request makes."""
    if starts_stream(request.plan):
        _shared.add(request.session_id)
    changes = may_change_session(request.plan)
    _changes[request.session_id] += changes
    try:
        yield
    finally:  # a copy that was made meanwhile may have it or not
        _changes[request.session_id] += changes


def _watch(clients: Any) -> None:
    """Count the changes of the sessions of a class of clients from now on, and release ours with
    them.
    """
    if not wrap_requests(clients, _counted):
        return
    atexit.register(_release_kept)
    add, release = clients.add_artifacts, clients.release_session

    @functools.wraps(add)
    def watched_add(client: Any, *args: Any, **named: Any) -> Any:
        _changes[client._session_id] += 1
        return add(client, *args, **named)

    @functools.wraps(release)
    def watched_release(client: Any) -> None:
        with _lock:
            ours = _kept.pop(client._session_id, [])
            _changes.pop(client._session_id, None)
            _shared.discard(client._session_id)
        for _, session in ours:
            _release(session)
        release(client)

    clients.add_artifacts, clients.release_session = watched_add, watched_release


def users_session(spark: SparkSession) -> SparkSession:
    """Return the user's session for one of ours, else the session itself. Python tasks start sooner
    in it, as each session of a server has Python workers of its own.
    """
    return _users.get(spark, spark)


def is_sibling(spark: SparkSession) -> bool:
    """Return True if a session is of this library."""
    return spark in _users


def settings_of(spark: SparkSession, names: Iterable[str]) -> dict[str, str | None]:
    """Return settings of a session, with their defaults, in one request; None if the server's
    version does not have them.
    """
    import pyspark.sql.connect.proto as pb2

    option = pb2.ConfigRequest.GetOption(keys=sorted(set(names)))
    client: Any = spark.client
    return dict(client.config(pb2.ConfigRequest.Operation(get_option=option)).pairs)


def change_settings(sibling: SparkSession, settings: Mapping[str, str]) -> None:
    """Set the settings of a session of this library that have other values; a setting that the
    server's version does not have means nothing.

    Raises
    ------
    InvalidArgumentError
        The server refuses one.
    """
    before = settings_of(sibling, settings)
    changed = {
        name: value
        for name, value in settings.items()
        if (old := before.get(name)) is not None and not is_same_setting(name, old, value)
    }
    try:
        _set(sibling, changed)
    except DeltaError:
        raise
    except PySparkException as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        refused = [name for name in changed if name in reason] or [*changed]
        values = ", ".join(changed[name] for name in refused)
        problem = f"this needs the value {values}, which the server refuses: {reason}"
        raise InvalidArgumentError(argument=", ".join(refused), problem=problem) from None
    if sibling in _before:
        _before[sibling] = {**{name: str(before[name]) for name in changed}, **_before[sibling]}


def _set(sibling: SparkSession, settings: Mapping[str, str]) -> None:
    """Set settings in one request."""
    import pyspark.sql.connect.proto as pb2

    if settings:
        pairs = [pb2.KeyValue(key=name, value=value) for name, value in settings.items()]
        client: Any = sibling.client
        client.config(pb2.ConfigRequest.Operation(set=pb2.ConfigRequest.Set(pairs=pairs)))


def copy_sql_settings(spark: SparkSession, sibling: SparkSession) -> None:
    """Give a session of this library the settings of SQL that the user's session has."""
    theirs, ours = spark.conf.getAll, sibling.conf.getAll
    changed = (pair for pair in theirs.items() if ours.get(pair[0]) != pair[1])
    _set(sibling, {name: value for name, value in changed if name.startswith("spark.sql.")})
    for name in ours.keys() - theirs.keys():
        if name.startswith("spark.sql."):
            sibling.conf.unset(name)


def is_same_setting(name: str, value: str, other: str) -> bool:
    """Return True if two values of a setting mean the same."""
    one, two = value.upper(), other.upper()
    return one == two or (name == TIME_ZONE and {one, two} <= _UTC)
