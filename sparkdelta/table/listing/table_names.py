"""Names of tables in SQL: ``db.table``, and ``delta.`/path` `` for a path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from sparkdelta.base.predicates.resolved_names import UnusableError, name_parts
from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.stored_view import StoredView
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.enabled_sessions import is_enabled
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import (
    ArgumentTypeError,
    DeltaError,
    InvalidArgumentError,
    TableNotFoundError,
)
from sparkdelta.table.listing.listing import open_log

_PATH_QUALIFIER = _PROVIDER = "delta"
_MAX_LOCATIONS = 1_000
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_BACKTICKS = re.compile("`(?:[^`]|``)+`")
_PLAIN_PARTS = re.compile(r"[\w.]*")


def table_name(identifier: str) -> tuple[str, ...]:
    """Return the parts of a name, without their backticks, which a part with other characters than
    letters, digits and underscores must have.
    """
    problem = f"{identifier!r} is not the name of a table"
    if not isinstance(identifier, str):
        raise ArgumentTypeError(argument="identifier", problem=problem)
    if not _PLAIN_PARTS.fullmatch(_BACKTICKS.sub("", identifier.strip())):
        raise InvalidArgumentError(argument="identifier", problem=problem)
    return _parts(identifier)


def column_name(text: str) -> str:
    """Return the name of a column without its backticks."""
    return ".".join(_parts(text))


def _parts(name: str) -> tuple[str, ...]:
    try:
        return tuple(name_parts(name.strip()))
    except UnusableError:
        problem = f"{name!r} is not a name"
        raise InvalidArgumentError(argument="identifier", problem=problem) from None


def table_name_in(spark: SparkSession, identifier: str) -> tuple[str, ...]:
    """Return the parts of a name as `table_name`; Spark explains the error in one, if the session
    is enabled.
    """
    try:
        return table_name(identifier)
    except InvalidArgumentError:
        if is_enabled(spark):
            spark.table(identifier).columns  # noqa: B018 - Spark Connect parses the name here
        raise


def check_absolute(spark: SparkSession, name: Sequence[str]) -> None:
    """Refuse a relative path such as ``delta.`a/b` ``, unless it is the name of a table."""
    if len(name) != 2 or name[0].lower() != _PATH_QUALIFIER or path_in_name(name) is not None:
        return
    if not spark.catalog.tableExists(quoted_path(name)):
        advice = "A path in the place of a name must be absolute"
        raise TableNotFoundError(path=quoted_path(name), advice=advice).named(
            "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY", dataSourceType=name[0]
        )


def path_in_name(name: Sequence[str]) -> str | None:
    """Return the path of a name such as ``delta.`/path` ``, which is absolute; None for others."""
    if len(name) != 2 or name[0].lower() != _PATH_QUALIFIER:
        return None
    return name[1] if _ABSOLUTE.match(name[1]) else None


def table_path(spark: SparkSession, name: Sequence[str]) -> str | None:
    """Return the path of a table by its name, or None if there is no such table.

    The name contains the path, or the session catalog has the location for provider ``delta``.
    """
    path = path_in_name(name)
    if path is not None:
        return path
    return _remembered(name, engine_of(spark).table_location(name, _PROVIDER))


def table_or_view(spark: SparkSession, name: Sequence[str]) -> str | StoredView | None:
    """Return the path of a table by its name, or a permanent view; None for everything else."""
    path = path_in_name(name)
    if path is not None:
        return path
    place = engine_of(spark).table_or_view(name, _PROVIDER)
    return _remembered(name, place) if isinstance(place, str) else place


_names: dict[str, set[tuple[str, ...]]] = {}


def _remembered(name: Sequence[str], location: str | None) -> str | None:
    """Remember the name by which a location was found, see `names_of_location`."""
    if location is not None:
        if len(_names) >= _MAX_LOCATIONS and location not in _names:
            _names.pop(next(iter(_names)), None)
        _names.setdefault(location, set()).add(tuple(name))
    return location


def names_of_location(location: str) -> tuple[tuple[str, ...], ...]:
    """Return the names by which this process has found a table, perhaps without a database.

    A name may refer to another table by now.
    """
    return tuple(_names.get(location, ()))


def with_database(spark: SparkSession, name: Sequence[str]) -> tuple[str, ...]:
    """Add the current database to a name of one part.

    The result names a table even if a temporary view has the short name: queries and changes find
    the view, but statements that create or replace a table find the table.
    """
    # Spark gives the database as SQL: between backticks, if it begins with a digit.
    database = table_name(spark.catalog.currentDatabase())
    return (*database, *name) if len(name) == 1 else tuple(name)


def name_in_catalog(spark: SparkSession, name: Sequence[str]) -> tuple[str, ...] | None:
    """Return the name of a table as the session catalog has it, with catalog and database; None for
    a path.
    """
    if path_in_name(name) is not None:
        return None
    parts = with_database(spark, name)[-2:]
    if spark.conf.get("spark.sql.caseSensitive") != "true":
        parts = table_name(quoted_path(parts).lower())
    return (SESSION_CATALOG, *parts)


@dataclass(frozen=True, slots=True)
class NewTable:
    """The place of a table that is to be created, and its name.

    Attributes
    ----------
    name
        None for a table that has only a path, or a name that the session catalog has already.
    is_managed
        True if dropping the table by its name deletes its files.
    """

    path: str
    name: Sequence[str] | None = None
    is_managed: bool = False

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        name: Sequence[str],
        location: str | None = None,
        *,
        is_optional: bool = False,
        replaces: bool = False,
    ) -> NewTable:
        """Return the place of a table: its path, its location, or a directory in its database.

        The name must not belong to a table of another kind, nor to a path with another location.

        Parameters
        ----------
        is_optional
            True if the caller leaves a table that exists as it is, or refuses it, wherever it is.
        replaces
            True if the caller would replace a table that exists.
        """
        path = path_in_name(name)
        if path is not None:
            is_elsewhere = location is not None and not _is_at(spark, path, location)
            if is_elsewhere and not (is_optional and open_log(spark, path).list_from()):
                raise DeltaError.of(
                    "DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE", path=path, location=location
                )
            return cls(path)
        engine, full_name = engine_of(spark), with_database(spark, name)
        path = _remembered(full_name, engine.table_location(full_name, _PROVIDER))
        if path is not None:
            is_elsewhere = location is not None and not _is_at(spark, path, location)
            if is_elsewhere and not is_optional:
                raise DeltaError.of(
                    "DELTA_TABLE_LOCATION_MISMATCH",
                    table=quoted_path(full_name),
                    path=path,
                    location=location,
                )
            return cls(path, is_managed=engine.is_managed(full_name))
        try:
            free = engine.free_location(name)
        except InvalidArgumentError as error:
            raise _name_taken(error, spark, full_name, replaces=replaces) from None
        return cls(free, name, is_managed=True) if location is None else cls(location, name)

    @contextmanager
    def named(self, spark: SparkSession, comment: str | None = None) -> Iterator[None]:
        """Register the name, with provider, location and comment, for the table that the block
        creates.
        """
        engine, name = engine_of(spark), self.name
        is_first = name is not None and engine.names_before_files(is_managed=self.is_managed)
        if name is not None and is_first:
            engine.register_table(name, self.path, _PROVIDER, is_managed=True, comment=comment)
        try:
            yield
        except BaseException:
            if name is not None and is_first and not open_log(spark, self.path).list_from():
                engine.drop_table(name)
            raise
        if name is not None and not is_first:
            path = open_log(spark, self.path).table_root
            engine.register_table(
                name, path, _PROVIDER, is_managed=self.is_managed, comment=comment
            )


def _name_taken(
    error: InvalidArgumentError, spark: SparkSession, name: Sequence[str], *, replaces: bool
) -> InvalidArgumentError:
    """Name the error of a name that a table cannot get: it is one of a view or of a table of
    another format, or not in the session catalog.
    """
    *catalog, database, table = name
    if catalog and catalog[0].lower() != SESSION_CATALOG:
        return error.named(
            "REQUIRES_SINGLE_PART_NAMESPACE",
            sessionCatalog=SESSION_CATALOG,
            identifier=quoted_path(name),
        )
    shown = quoted_path((database, table))
    if not replaces:
        return error.named("TABLE_OR_VIEW_ALREADY_EXISTS", relationName=shown)
    if isinstance(table_or_view(spark, name), StoredView):
        return error.named("DELTA_CANNOT_WRITE_INTO_VIEW", table=shown)
    return error.named("DELTA_NOT_A_DELTA_TABLE", tableName=table)


def _is_at(spark: SparkSession, path: str, location: str) -> bool:
    """Return True if a location is that of a table."""
    return open_log(spark, location).table_root == open_log(spark, path).table_root


def drop_named_table(spark: SparkSession, name: Sequence[str]) -> None:
    """Drop a name from the session catalog, with the files of a managed table."""
    if path_in_name(name) is not None:
        problem = "it is a path, which has no name to drop; delete the directory"
        raise InvalidArgumentError(argument="DROP TABLE", problem=problem)
    engine_of(spark).drop_table(name)


def rename_named_table(spark: SparkSession, name: Sequence[str], new_name: Sequence[str]) -> None:
    """Rename a table in its database; the directory of a managed table is renamed, too."""
    for each in (name, new_name):
        path = path_in_name(each)
        if path is not None:
            raise DeltaError.of(
                "DELTA_CANNOT_RENAME_PATH", path=path, new_path=quoted_path(new_name)
            )
    engine_of(spark).rename_table(name, new_name)


def move_named_table(spark: SparkSession, name: Sequence[str], location: str) -> None:
    """Give a name the location of another table."""
    path = path_in_name(name)
    if path is not None:
        raise DeltaError.of("DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER", path=path)
    engine_of(spark).move_table(name, location)


def name_not_found(
    spark: SparkSession, name: Sequence[str], *, searches: bool = True, has_builtin: bool = False
) -> TableNotFoundError:
    """Return the error for a name for which `table_path` finds no Delta table.

    Parameters
    ----------
    searches
        False for statements in which delta-spark looks the name up without a search path.
    has_builtin
        True for queries, whose names Spark looks up in the built-in schema, too.
    """
    advice = "The session catalog has no Delta table of this name. Check the name"
    quoted_name = quoted_path(name)
    schemas = (
        *((("system", "builtin"),) if has_builtin else ()),
        ("system", "session"),
        (SESSION_CATALOG, *table_name(spark.catalog.currentDatabase())),
    )
    search_path = f"[{', '.join(map(quoted_path, schemas))}]" if searches else "not available"
    return TableNotFoundError(path=quoted_name, advice=advice).named(
        "TABLE_OR_VIEW_NOT_FOUND", relationName=quoted_name, searchPath=search_path
    )
