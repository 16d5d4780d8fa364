"""The session catalog of a Spark Connect server, through SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4
from weakref import WeakSet

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.library_sessions import set_up
from sparkdelta.base.spark.named_source import NamedOnly
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

_siblings: WeakSet[SparkSession] = WeakSet()

_LINE = r"^{}: (.*)$"


@dataclass(frozen=True)
class ConnectCatalog:
    """The part of a Spark Connect engine that names tables."""

    spark: SparkSession

    def table_location(self, name: Sequence[str], provider: str) -> str | None:
        text = self._information(name)
        its_provider, location = _line(text, "Provider"), _line(text, "Location")
        if its_provider is None or location is None or its_provider.lower() != provider:
            return None
        return _plain(location)

    def table_or_view(self, name: Sequence[str], provider: str) -> str | None:
        """Return the location of a table of a provider; the server alone reads its views."""
        return self.table_location(name, provider)

    def is_managed(self, name: Sequence[str]) -> bool:
        return _line(self._information(name), "Type") == "MANAGED"

    def owner(self, name: Sequence[str]) -> str:
        return _line(self._information(name), "Owner") or ""

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
        return name[-2] if len(name) > 1 else self.spark.catalog.currentDatabase(), name[-1]

    def free_location(self, name: Sequence[str]) -> str:
        database, table = self._qualified(name)
        if self._information((database, table)) is not None:
            problem = f"{'.'.join(name)} is a table of another format, or a view"
            raise InvalidArgumentError(argument="name", problem=problem)
        root = self.spark.catalog.getDatabase(quoted_path([database])).locationUri
        return f"{_plain(root)}/{table.lower()}"

    def register_table(
        self,
        name: Sequence[str],
        location: str,
        provider: str,
        *,
        is_managed: bool,
        comment: str | None = None,
    ) -> None:
        place = "" if is_managed else f" LOCATION {_literal(location)}"
        place += "" if comment is None else f" COMMENT {_literal(comment)}"
        self._change(f"CREATE TABLE {self._quoted(name)} USING {provider}{place}")

    def rename_table(self, name: Sequence[str], new_name: Sequence[str]) -> None:
        old = self._qualified(name)
        new = self._qualified(new_name) if len(new_name) > 1 else (old[0], new_name[-1])
        if new[0].lower() != old[0].lower():
            problem = f"{'.'.join(new_name)} is not in database {old[0]}, which the table is in"
            raise InvalidArgumentError(argument="RENAME TO", problem=problem)
        if self._information(new) is not None:
            problem = f"{'.'.join(new_name)} is a table or view already"
            raise InvalidArgumentError(argument="RENAME TO", problem=problem)
        self._change(f"ALTER TABLE {quoted_path(old)} RENAME TO {quoted_path(new)}")

    def move_table(self, name: Sequence[str], location: str) -> None:  # noqa: ARG002
        problem = (
            f"{'.'.join(name)} cannot get another location from a Spark Connect client; drop the "
            "name and create it with the location"
        )
        raise InvalidArgumentError(argument="name", problem=problem)

    def drop_table(self, name: Sequence[str]) -> None:
        self._change(f"DROP TABLE {self._quoted(name)}")

    def _quoted(self, name: Sequence[str]) -> str:
        return quoted_path(self._qualified(name))

    def _change(self, statement: str) -> None:
        """Run a statement in a session in which Spark knows tables of Delta's format by name."""
        with connect_sibling(self.spark, {}) as naming:
            naming.dataSource.register(NamedOnly)
            naming.sql(statement)


@contextmanager
def connect_sibling(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield another session on the same server and release it afterwards; an open session would
    keep the program from ending.
    """
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    connection: Any = copy(spark.client._builder)
    # The session's address may name the session.
    connection._params = {**connection._params, connection.PARAM_SESSION_ID: str(uuid4())}
    sibling = cast(SparkSession, ConnectSession(connection=connection))
    try:
        set_up(sibling, settings)
        _siblings.add(sibling)
        yield sibling
    finally:
        client = sibling.client
        client.release_session()
        client.close()
        # PySpark closes it again when the session is collected. In 4.0.0, in a thread of gRPC, that
        # waits forever for a request of another session.
        client.close = lambda: None  # type: ignore[method-assign]


def is_sibling(spark: SparkSession) -> bool:
    """Return True if a session is of this library, see `connect_sibling`."""
    return spark in _siblings


def _line(text: str | None, key: str) -> str | None:
    found = re.search(_LINE.format(key), text or "", re.MULTILINE)
    return None if found is None else found[1]


def _plain(location: str) -> str:
    return location.removeprefix("file:") if location.startswith("file:/") else location


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
