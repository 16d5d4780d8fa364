"""The session catalog of a Spark Connect server, through SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from sparkdelta.base.predicates.resolved_names import name_parts
from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.connect_sessions import connect_sibling
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.named_source import NamedOnly
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

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
