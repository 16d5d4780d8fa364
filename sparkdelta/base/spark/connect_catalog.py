"""The session catalog of a Spark Connect server, through SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy as shallow_copy
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakSet

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.predicates.resolved_names import name_parts
from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.library_sessions import ESCAPED_LITERALS, TIME_ZONE
from sparkdelta.base.spark.named_source import NamedOnly
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

_siblings: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()
"""The users' sessions by our own."""

_copies: WeakSet[SparkSession] = WeakSet()

_LINES = re.MULTILINE | re.DOTALL
_LINE = r"^{}: (.*)$"


@dataclass(frozen=True)
class ConnectCatalog:
    """The part of a Spark Connect engine that names tables."""

    spark: SparkSession

    def table_location(self, name: Sequence[str], provider: str) -> str | None:
        return self._location(self._information(name), provider)

    def _location(self, information: str | None, provider: str) -> str | None:
        """Return the location in an answer about a table of a provider; None for others."""
        its_provider, location = line_of(information, "Provider"), line_of(information, "Location")
        is_view = line_of(information, "Type") == "VIEW"  # whose text may have such lines
        if is_view or its_provider is None or location is None or its_provider.lower() != provider:
            return None
        return _plain(location)

    def is_managed(self, name: Sequence[str]) -> bool:
        return line_of(self._information(name), "Type") == "MANAGED"

    def owner(self, name: Sequence[str]) -> str:
        return line_of(self._information(name), "Owner") or ""

    def _information(self, name: Sequence[str]) -> str | None:
        """Return the answer of SHOW TABLE EXTENDED about a table; None if there is none, or if its
        name is without a database and is that of a temporary view.
        """
        if len(name) == 3 and name[0].lower() == SESSION_CATALOG:
            name = name[1:]
        if len(name) > 2 or not re.fullmatch(r"[\w ]+", name[-1]):
            return None  # LIKE has patterns
        database = f" IN {quoted_path(name[:1])}" if len(name) == 2 else ""
        try:
            listed = self.spark.sql(f"SHOW TABLE EXTENDED{database} LIKE '{name[-1]}'")
        except DeltaError:
            raise
        except AnalysisException:  # there is no such database
            return None
        found = listed.select("isTemporary", "information")  # at most a view and a table
        rows = read_rows(found, what="location of a named table", bound=2)
        tables = [row["information"] for row in rows if not row["isTemporary"]]
        is_view = len(name) == 1 and len(tables) < len(rows)
        return str(tables[0]) if tables and not is_view else None

    def _qualified(self, name: Sequence[str]) -> tuple[str, str]:
        """Return database and table of a name.

        Raises
        ------
        InvalidArgumentError
            It is not one of the session catalog.
        """
        is_ours = len(name) < 3 or (len(name) == 3 and name[0].lower() == SESSION_CATALOG)
        if not is_ours or self.spark.catalog.currentCatalog() != SESSION_CATALOG:
            shown = ".".join(name)
            problem = (
                f"{shown} is not a name of {SESSION_CATALOG}, the only catalog that is supported"
            )
            raise InvalidArgumentError(argument="name", problem=problem)
        current = self.spark.catalog.currentDatabase()  # between backticks if it needs them
        return name[-2] if len(name) > 1 else name_parts(current)[0], name[-1]

    def free_location(self, name: Sequence[str]) -> str:
        database, table = self._qualified(name)
        if self._information((database, table)) is not None:
            problem = f"{'.'.join(name)} is a table of another format, or a view"
            raise InvalidArgumentError(argument="name", problem=problem)
        root = self.spark.catalog.getDatabase(quoted_path([database])).locationUri
        return f"{_plain(root)}/{table.lower()}"

    def names_before_files(self, *, is_managed: bool) -> bool:
        return is_managed  # SQL creates no managed table where files are

    def register_table(
        self,
        name: Sequence[str],
        location: str,
        provider: str,
        *,
        is_managed: bool,
        comment: str | None = None,
    ) -> None:
        place = "" if is_managed else f" LOCATION {literal(location)}"
        place += "" if comment is None else f" COMMENT {literal(comment)}"
        self._change(f"CREATE TABLE {self._quoted(name)} USING {provider}{place}")

    def rename_table(self, name: Sequence[str], new_name: Sequence[str]) -> None:
        old, new = self._names_to_rename(name, new_name)
        self._change(f"ALTER TABLE {quoted_path(old)} RENAME TO {quoted_path(new)}")

    def _names_to_rename(
        self, name: Sequence[str], new_name: Sequence[str]
    ) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return database and name of a table or view before and after it is renamed.

        Raises
        ------
        InvalidArgumentError
            The new name is taken, or is in another database or catalog.
        """
        old = self._qualified(name)
        new = self._qualified(new_name) if len(new_name) > 1 else (old[0], new_name[-1])
        if new[0].lower() != old[0].lower():
            problem = f"{'.'.join(new_name)} is not in database {old[0]}, which the table is in"
            raise InvalidArgumentError(argument="RENAME TO", problem=problem)
        if self._information(new) is not None:
            problem = f"{'.'.join(new_name)} is a table or view already"
            raise InvalidArgumentError(argument="RENAME TO", problem=problem).named(
                "TABLE_OR_VIEW_ALREADY_EXISTS", relationName=quoted_path(new)
            )
        return old, new

    def move_table(self, name: Sequence[str], location: str) -> None:
        named, comment = self._qualified(name), comment_of(self._information(name))
        with self._naming_session() as naming:
            naming.sql(f"ALTER TABLE {quoted_path(named)} SET LOCATION {literal(location)}")
            self._restore_comment(naming, named, comment)

    def _restore_comment(
        self, naming: SparkSession, name: Sequence[str], comment: str | None
    ) -> None:
        """Give a table the comment that ALTER TABLE has taken from it, as some versions do."""
        if comment is not None and comment_of(self._information(name)) != comment:
            naming.sql(f"COMMENT ON TABLE {quoted_path(name)} IS {literal(comment)}")

    def _match_location(
        self, naming: SparkSession, name: Sequence[str], information: str | None
    ) -> None:
        """Let a property be the location that a table has, as ALTER TABLE of some versions takes
        the location from it; classic sessions leave the property as it was.
        """
        properties, location = (
            line_of(information, "Table Properties"),
            line_of(information, "Location"),
        )
        stored = re.search(r"[\[ ]location=(.*?)(?:, \w+=|\]$)", properties or "")
        if stored is not None and location is not None and _plain(stored[1]) != _plain(location):
            naming.sql(f"ALTER TABLE {quoted_path(name)} SET LOCATION {literal(location)}")

    def drop_table(self, name: Sequence[str]) -> None:
        self._change(f"DROP TABLE {self._quoted(name)}")

    def _quoted(self, name: Sequence[str]) -> str:
        return quoted_path(self._qualified(name))

    def _change(self, statement: str) -> None:
        with self._naming_session() as naming:
            naming.sql(statement)

    @contextmanager
    def _naming_session(self) -> Iterator[SparkSession]:
        """Yield a session in which Spark knows tables of Delta's format by name."""
        with connect_sibling(self.spark, {}) as naming:
            naming.dataSource.register(NamedOnly)
            yield naming


@contextmanager
def connect_sibling(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield another session on the same server and release it afterwards; an open session would
    keep the program from ending.
    """
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    connection: Any = shallow_copy(spark.client._builder)
    # The session's address may name the session.
    connection._params = {**connection._params, connection.PARAM_SESSION_ID: str(uuid4())}
    sibling = cast(SparkSession, ConnectSession(connection=connection))
    with _released(sibling, spark):
        change_settings(sibling, {**settings, ESCAPED_LITERALS: "false"})
        yield sibling


@contextmanager
def connect_copy(spark: SparkSession) -> Iterator[SparkSession]:
    """Yield a session with the settings, views and functions of the user's, in which its plans
    mean the same; Spark has such copies since 4.2.
    """
    user: Any = spark
    copy: SparkSession = user.cloneSession()
    with _released(copy, spark):
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
def _released(sibling: SparkSession, spark: SparkSession) -> Iterator[None]:
    """Release a session of this library after a block."""
    try:
        _siblings[sibling] = spark
        yield
    finally:
        client = sibling.client
        client.release_session()
        client.close()
        # PySpark closes it again when the session is collected. In 4.0.0, in a thread of gRPC, that
        # waits forever for a request of another session.
        client.close = lambda: None  # type: ignore[method-assign]


def users_session(spark: SparkSession) -> SparkSession:
    """Return the user's session for one of ours, else the session itself. Python tasks start sooner
    in it, as each session of a server has Python workers of its own.
    """
    return _siblings.get(spark, spark)


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
    for key, value in settings.items():
        current = before.get(key)
        if current is None or is_same_setting(key, current, value):
            continue
        try:
            sibling.conf.set(key, value)
        except DeltaError:
            raise
        except PySparkException as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            problem = f"this needs the value {value}, which the server refuses: {reason}"
            raise InvalidArgumentError(argument=key, problem=problem) from None


def copy_sql_settings(spark: SparkSession, sibling: SparkSession) -> None:
    """Give a session of this library the settings of SQL that the user's session has."""
    theirs, ours = spark.conf.getAll, sibling.conf.getAll
    for name, value in theirs.items():
        if name.startswith("spark.sql.") and ours.get(name) != value:
            sibling.conf.set(name, value)
    for name in ours.keys() - theirs.keys():
        if name.startswith("spark.sql."):
            sibling.conf.unset(name)


def is_same_setting(name: str, value: str, other: str) -> bool:
    """Return True if two values of a setting mean the same."""
    one, two = value.upper(), other.upper()
    return one == two or (name == TIME_ZONE and {one, two} <= _UTC)


_UTC = {"UTC", "ETC/UTC", "GMT", "ETC/GMT", "Z", "+00:00"}


def is_sibling(spark: SparkSession) -> bool:
    """Return True if a session is of this library, see `connect_sibling`."""
    return spark in _siblings


def line_of(text: str | None, key: str) -> str | None:
    """Return the value of a key in an answer of SHOW TABLE EXTENDED; None if it has none."""
    found = re.search(_LINE.format(key), text or "", re.MULTILINE)
    return None if found is None else found[1]


def comment_of(information: str | None) -> str | None:
    """Return the comment of a table, which may have several lines."""
    found = re.search(
        r"^Comment: (.*?)\n(?:Table Properties|Location): ", information or "", _LINES
    )
    return None if found is None else found[1]


def _plain(location: str) -> str:
    return location.removeprefix("file:") if location.startswith("file:/") else location


def literal(text: str) -> str:
    """Return a string for a session of this library, in which it has no variables."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"
