"""The session catalog of a Spark Connect server, through SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.exceptions import InvalidArgumentError

_LINE = r"^{}: (.*)$"


def table_location(spark: SparkSession, name: Sequence[str], provider: str) -> str | None:
    """Return the location of a table of a provider; None for others, views, and what is not there.

    Parameters
    ----------
    name
        Of the table alone, or after a database, or after catalog and database.
    """
    text = _information(spark, name)
    its_provider, location = _line(text, "Provider"), _line(text, "Location")
    if its_provider is None or location is None or its_provider.lower() != provider:
        return None
    return _plain(location)


def is_managed(spark: SparkSession, name: Sequence[str]) -> bool:
    """True if dropping a table deletes its files."""
    return _line(_information(spark, name), "Type") == "MANAGED"


def _information(spark: SparkSession, name: Sequence[str]) -> str | None:
    """Return what SHOW TABLE EXTENDED tells of a table; None if there is none, or if its name is
    without a database and is that of a temporary view.
    """
    if len(name) == 3 and name[0].lower() == SESSION_CATALOG:
        name = name[1:]
    if len(name) > 2 or not re.fullmatch(r"[\w ]+", name[-1]):
        return None  # LIKE has patterns
    database = f" IN {quoted_path(name[:1])}" if len(name) == 2 else ""
    try:
        listed = spark.sql(f"SHOW TABLE EXTENDED{database} LIKE '{name[-1]}'")
    except AnalysisException:  # there is no such database
        return None
    found = listed.select("isTemporary", "information")  # at most a view and a table
    rows = read_rows(found, what="location of a named table", bound=2)
    tables = [row["information"] for row in rows if not row["isTemporary"]]
    is_view = len(name) == 1 and len(tables) < len(rows)
    return str(tables[0]) if tables and not is_view else None


def _line(text: str | None, key: str) -> str | None:
    found = re.search(_LINE.format(key), text or "", re.MULTILINE)
    return None if found is None else found[1]


def _plain(location: str) -> str:
    return location.removeprefix("file:") if location.startswith("file:/") else location


def qualified(spark: SparkSession, name: Sequence[str]) -> tuple[str, str]:
    """Return database and table of a name.

    Raises
    ------
    InvalidArgumentError
        It is not one of the session catalog.
    """
    is_ours = len(name) < 3 or (len(name) == 3 and name[0].lower() == SESSION_CATALOG)
    if not is_ours or spark.catalog.currentCatalog() != SESSION_CATALOG:
        shown = ".".join(name)
        problem = f"{shown} is not a name of {SESSION_CATALOG}, the only catalog that is supported"
        raise InvalidArgumentError(argument="name", problem=problem)
    return name[-2] if len(name) > 1 else spark.catalog.currentDatabase(), name[-1]


def free_location(spark: SparkSession, name: Sequence[str]) -> str:
    """Return the location that a new managed table gets.

    Raises
    ------
    InvalidArgumentError
        The name is taken, or is not one of the session catalog.
    """
    database, table = qualified(spark, name)
    if _information(spark, (database, table)) is not None:
        problem = f"{'.'.join(name)} is a table of another format, or a view"
        raise InvalidArgumentError(argument="name", problem=problem)
    root = spark.catalog.getDatabase(quoted_path([database])).locationUri
    return f"{_plain(root)}/{table.lower()}"


def register_table(
    naming: SparkSession, name: Sequence[str], location: str | None, provider: str
) -> None:
    """Add a table without columns, which its log has, to the session catalog.

    Parameters
    ----------
    naming
        A session that knows the provider.
    location
        None for a managed table.
    """
    place = "" if location is None else f" LOCATION {_literal(location)}"
    naming.sql(f"CREATE TABLE {quoted_path(name)} USING {provider}{place}")


def names_of_renaming(
    spark: SparkSession, name: Sequence[str], new_name: Sequence[str]
) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return both names with their database.

    Raises
    ------
    InvalidArgumentError
        The new name is taken, or is in another database or catalog.
    """
    old = qualified(spark, name)
    new = qualified(spark, new_name) if len(new_name) > 1 else (old[0], new_name[-1])
    if new[0].lower() != old[0].lower():
        problem = f"{'.'.join(new_name)} is not in database {old[0]}, which the table is in"
        raise InvalidArgumentError(argument="RENAME TO", problem=problem)
    if _information(spark, new) is not None:
        problem = f"{'.'.join(new_name)} is a table or view already"
        raise InvalidArgumentError(argument="RENAME TO", problem=problem)
    return old, new


def rename_table(naming: SparkSession, name: Sequence[str], new_name: Sequence[str]) -> None:
    """Rename a table; the directory of a managed one is renamed, too."""
    naming.sql(f"ALTER TABLE {quoted_path(name)} RENAME TO {quoted_path(new_name)}")


def drop_table(naming: SparkSession, name: Sequence[str]) -> None:
    """Remove a table from the session catalog, and the files of a managed one."""
    naming.sql(f"DROP TABLE {quoted_path(name)}")


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
