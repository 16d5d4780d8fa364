"""Queries that read Delta tables: Spark runs the user's text, in which DataFrames stand for tables.

Spark's own SQL takes DataFrames by name in braces, beside parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.api.reading_and_writing import read_changes, read_delta
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.log_files import MAX_VERSION
from sparkdelta.base.schema.stored_view import StoredView
from sparkdelta.base.schema.table_schema import as_nullable, quoted, quoted_path
from sparkdelta.base.spark.enabled_sessions import sparks_own
from sparkdelta.base.spark.library_sessions import session_time_zone
from sparkdelta.base.spark.spark_builders import builders_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError, InvalidArgumentError, TableNotFoundError
from sparkdelta.sql.grammar.parser import Name, syntax_error
from sparkdelta.sql.grammar.relations import Relation, common_names, relations
from sparkdelta.sql.grammar.row_conditions import row_conditions
from sparkdelta.sql.grammar.tokens import Fragment, Kind, Token, tokenize
from sparkdelta.sql.statements.options import asks_for_changes, names_version
from sparkdelta.sql.statements.reading import latest_rows, read, read_stream_with
from sparkdelta.table.listing.table_names import (
    check_absolute,
    name_in_catalog,
    name_not_found,
    path_in_name,
    table_name,
    table_or_view,
    table_path,
)
from sparkdelta.table.log.path_versions import split_path
from sparkdelta.table.log.session_times import session_time

_NAME = "sparkdelta_{}"


@dataclass(frozen=True, slots=True, eq=False)
class TemporaryView:
    """A temporary view whose rows follow tables only if this library reads it."""

    rows: DataFrame


Place = str | StoredView | TemporaryView | None
"""The path of a table, with the version that its name may end with; a view that reads one; None for
the changes of a table."""

Located = tuple[Relation, Place]
"""A Delta table or view of a query."""

MAX_DEPTH = 100
"""The limit of nested views, as in Spark."""


def sparks_sql(spark: SparkSession) -> Callable[..., DataFrame]:
    """Return PySpark's ``spark.sql`` of a session."""
    return partial(sparks_own(builders_of(spark).classes["SparkSession"], "sql"), spark)


@dataclass(frozen=True, slots=True)
class SparkSql:
    """Spark's own SQL of a session.

    Attributes
    ----------
    run
        PySpark's ``spark.sql``.
    frames
        The DataFrames that the user gave for names in braces.
    fixed_time_zone
        In which statements convert values to the types of columns, if it is not the session's.
    views
        The views whose text it runs, the innermost one last.
    user
        The session that reads the tables, if it is another one.
    defined
        The key of the name of the view that is being defined, which it must not read.
    run_of
        Returns ``spark.sql`` of a session with the settings of a view.
    """

    spark: SparkSession
    run: Callable[..., DataFrame]
    frames: Mapping[str, DataFrame]
    fixed_time_zone: str | None = None
    views: tuple[StoredView, ...] = ()
    user: SparkSession | None = None
    defined: Name | None = None
    run_of: Callable[[SparkSession], Callable[..., DataFrame]] = sparks_sql

    @property
    def time_zone(self) -> str:
        """The time zone in which statements convert values to the types of columns."""
        return self.fixed_time_zone or session_time_zone(self.spark)

    def query(self, *parts: str | Fragment) -> DataFrame:
        """Return the rows of a query, given as parts of its text.

        Tables are looked for in the parts that are fragments of a statement.
        """
        return self.spliced(self.tables(*parts), *parts)

    def tables(self, *parts: str | Fragment) -> list[Located]:
        """Return the Delta tables that the parts of a query read, and the paths of named ones.

        Raises
        ------
        StatementSyntaxError
            A version or time is not understood.
        """
        fragments = [part for part in parts if isinstance(part, Fragment)]
        if not fragments:
            return []
        tokens = [token for each in fragments for token in each.tokens]
        known, found = common_names(fragments[0].whole, tokens), list[Located]()
        for relation in (each for fragment in fragments for each in relations(fragment)):
            path: Place = None
            if relation.arguments is None:
                path = self._located(relation, known)
            if path is not None or relation.arguments is not None:
                found.append((relation, path))
        return found

    def view_of_delta(self, name: Name) -> StoredView | None:
        """Return the permanent view of a name, if it reads a Delta table; None for the rest."""
        view = table_or_view(self.spark, name)
        return view if isinstance(view, StoredView) and self.reads_delta(view) else None

    def reads_delta(self, view: StoredView) -> bool:
        """Return True if a view, or one that it reads, reads a Delta table."""
        if view in self.views or self.defined == tuple(map(name_key, view.name)):
            raise DeltaError.of(
                "DELTA_STATEMENT_NOT_SUPPORTED",
                statement=f"the view {'.'.join(view.name)}, which reads itself",
            )
        query = tokenize(view.text) if len(self.views) < MAX_DEPTH else None
        return query is not None and bool(self.within(view).tables(query))

    def paths_of(self, view: StoredView) -> list[str]:
        """Return the paths of the tables of which a view reads the latest version."""
        query, paths = tokenize(view.text), dict[str, None]()
        assert query is not None
        within = self.within(view)
        for relation, named in within.tables(query):
            if isinstance(named, StoredView):
                paths |= dict.fromkeys(within.paths_of(named))
            elif isinstance(named, str) and not (relation.version or relation.timestamp):
                path, version, time = split_path(self.spark, named)
                if version is None and time is None:
                    paths[path] = None
        return list(paths)

    def view_rows(self, view: StoredView) -> DataFrame:
        """Return the rows of a view that reads a Delta table."""
        query = tokenize(view.text)
        assert query is not None
        with engine_of(self.user or self.spark).view_session(view) as session:
            within = replace(self.within(view), spark=session, run=self.run_of(session))
            rows = _columns_of_view(within.query(query), view)
            if view.mode.endswith("EVOLUTION"):
                engine_of(self.user or self.spark).update_columns_of_view(view, rows.schema)
            return engine_of(self.spark).rows_of_view(rows)

    def within(self, view: StoredView) -> SparkSql:
        """Return the SQL of the text of a view."""
        user = self.user or self.spark
        return replace(self, frames={}, views=(*self.views, view), user=user)

    def _located(self, relation: Relation, known: Mapping[str, Sequence[range]]) -> Place:
        """Return the path of a table with the version that its name may end with, or a view that
        reads Delta tables; None for others.

        Parameters
        ----------
        known
            The names of queries of the same text, and the places where they are known.
        """
        name = relation.name
        places = known.get(name[0].lower(), ()) if len(name) == 1 else ()
        if any(relation.start in each for each in places):
            return None
        rows = None if self.views else engine_of(self.spark).following_view(name)
        if rows is not None:
            return TemporaryView(rows)
        name = self.qualified(name)
        path = table_or_view(self.spark, name)
        if isinstance(path, StoredView):
            return path if self.reads_delta(path) else None
        named, _, version = name[-1].rpartition("@")
        if path is not None:
            return path
        path = table_path(self.spark, (*name[:-1], named)) if named else None
        if path is None:
            check_absolute(self.spark, name)
            return None
        return f"{path}@{version}"

    def qualified(self, name: Name) -> Name:
        """Return a name in the text of a view with the view's catalog and database."""
        namespace = self.views[-1].namespace if self.views else ()
        if not namespace or len(name) > 2 or path_in_name(name) is not None:
            return name
        return (*namespace, *name) if len(name) == 1 else (namespace[0], *name)

    def spliced(self, tables: Sequence[Located], *parts: str | Fragment) -> DataFrame:
        """Return the rows of a query, or run a statement of Spark's that holds one.

        Parameters
        ----------
        tables
            Those that it reads, see `tables`.
        """
        if not tables and not self.frames:
            return self.run(" ".join(p if isinstance(p, str) else p.text for p in parts))
        # The filter makes it another query than one that the user may have cached: PySpark gives
        # DataFrames to SQL by views, and Spark uncaches the query of a view that is dropped.
        engine, frames = engine_of(self.spark), dict[str, DataFrame]()
        for number, (relation, path) in enumerate(tables):
            conditions = partial(_row_conditions, relation, parts)
            rows = engine.with_conditions(self.rows_of(relation, path), conditions)
            frames[_NAME.format(number)] = rows.where("true")
        spots = [(relation, name) for (relation, _), name in zip(tables, frames, strict=True)]
        text = " ".join(
            part if isinstance(part, str) else _spliced(part, spots, _braces(part, self.frames))
            for part in parts
        )
        result = self.run(text, **frames, **self.frames)
        engine.keep_sources(result, [*frames.values(), *self.frames.values()])
        return result

    def rows_of(self, relation: Relation, named: Place) -> DataFrame:
        """Return the rows of a view, or of a Delta table at a path: a version's rows or changes."""
        if isinstance(named, StoredView | TemporaryView):
            is_plain = not (relation.version or relation.timestamp or relation.is_stream)
            if not is_plain or relation.options is not None:
                view = "permanent" if isinstance(named, StoredView) else "temporary"
                kind = f"a stream, version, time or option of a {view} view"
                name = relation.name if isinstance(named, TemporaryView) else named.name
                raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=kind).named(
                    "UNSUPPORTED_FEATURE.TIME_TRAVEL", relationId=quoted_path(name)
                )
            if isinstance(named, TemporaryView):
                return named.rows
            rows = self.view_rows(named)
            engine_of(self.spark).mark_rows_of_view(rows)
            return rows
        rows = self._rows_of_table(relation, named)
        return rows if self.user is None else engine_of(self.spark).rebind_to_session(rows)

    def _rows_of_table(self, relation: Relation, named: str | None) -> DataFrame:
        if named is None:
            return self._changes(relation, relation.arguments or ())
        if relation.is_stream:
            return read_stream_with(self.spark, named, relation.options or {})
        user = self.user or self.spark
        has_one = relation.version is not None or relation.timestamp is not None
        if relation.options is not None and not has_one:
            return read(user, named, relation.options, function="WITH")
        path, version, time = split_path(self.spark, named)
        options = relation.options or {}
        if has_one and (version is not None or time is not None or names_version(options)):
            error = DeltaError.of("DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS")
            raise error.named("MULTIPLE_TIME_TRAVEL_SPEC") if names_version(options) else error
        if asks_for_changes(options):
            problem = "changes are read between two versions; give startingVersion"
            raise InvalidArgumentError(argument="readChangeFeed", problem=problem)
        if relation.version is not None:
            version = _version(relation.version)
        elif relation.timestamp is not None:
            time = session_time(self.spark, relation.timestamp.text)
        if version is None and time is None:
            return latest_rows(user, path)
        return read_delta(user, path, version=version, timestamp=time)

    def _changes(self, relation: Relation, arguments: tuple[Fragment, ...]) -> DataFrame:
        """Return the rows of ``table_changes('t', 1, 2)`` or ``table_changes_by_path``."""
        name, *bounds = arguments
        place, after = name.tokens[:2]
        if (place.kind, after.kind) != (Kind.STRING, Kind.END) or not 1 <= len(bounds) <= 2:
            problem = "a name or path as a string, and one or two bounds are expected"
            raise syntax_error(name.whole, name.start, problem)
        path: str | None = place.text
        if relation.name == ("table_changes",):
            path = table_path(self.spark, self.qualified(table_name(place.text)))
        if path is None:
            raise self._no_changes(self.qualified(table_name(place.text)))
        found: dict[str, Any] = {}
        for side, bound in zip(("start", "end"), bounds, strict=False):
            if bound.text.removeprefix("-").isdigit():
                found[f"{side}_version"] = int(bound.text)
                continue
            try:
                found[f"{side}_timestamp"] = session_time(self.spark, bound.text)
            except DeltaError as error:
                if error.error_class == "DELTA_TIMESTAMP_INVALID":
                    error.named("DELTA_TIMESTAMP_INVALID", expr=bound.text)
                raise
        try:
            return read_changes(self.user or self.spark, path, **found)
        except TableNotFoundError as error:
            raise error.named("DELTA_MISSING_DELTA_TABLE", path=place.text) from None

    def _no_changes(self, name: Name) -> DeltaError:
        """Return the error of ``table_changes`` of a name that is not of a Delta table."""
        error = name_not_found(self.spark, name, has_builtin=True)
        full_name = name_in_catalog(self.spark, name)
        if full_name is None or not self.spark.catalog.tableExists(quoted_path(name)):
            return error
        return error.named("DELTA_TABLE_ONLY_OPERATION", path=full_name, statement="table_changes")


def _columns_of_view(rows: DataFrame, view: StoredView) -> DataFrame:
    """Return the rows of a view's query with the names and types of the view's columns.

    Raises
    ------
    DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS
        The query has not all of the columns any more.
    """
    if view.mode == "EVOLUTION":
        return rows
    given = rows.schema.fields
    places = {name_key(name): list[int]() for name in rows.columns}
    for number, name in enumerate(rows.columns):
        places[name_key(name)].append(number)
    numbered = rows.toDF(*(f"c{number}" for number in range(len(given))))
    columns = []
    for number, column in enumerate(view.schema.fields):
        place: int | None = number
        if view.query_columns:
            key = name_key(view.query_columns[number])
            place = places[key].pop(0) if places.get(key) else None
        if place is None or place >= len(given):
            problem = f"its query has no column for {column.name}"
            raise DeltaError.of(
                "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS", path=".".join(view.name), problem=problem
            )
        value, data_type = F.col(f"c{place}"), as_nullable(column.dataType)
        if view.mode != "TYPE EVOLUTION" and as_nullable(given[place].dataType) != data_type:
            value = value.cast(data_type)
        columns.append(value.alias(column.name, metadata=column.metadata or {}))
    return numbered.select(*columns)


def _row_conditions(relation: Relation, parts: Sequence[str | Fragment]) -> list[str]:
    """Return the conditions on the rows of a table in the part of a query that reads it."""
    fragments = (part for part in parts if isinstance(part, Fragment))
    query = next((each for each in fragments if each.start <= relation.start < each.end), None)
    return [] if query is None else row_conditions(query, relation)


def _version(given: Fragment) -> int:
    number = given.text.strip("'\"")
    if number.isdigit() and int(number) <= MAX_VERSION:
        return int(number)
    if number.isdigit() or number != given.text:
        raise DeltaError.of("DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", version=given.text)
    raise syntax_error(given.whole, given.start, "the number of a version is expected")


def _braces(query: Fragment, frames: Mapping[str, DataFrame]) -> set[int]:
    """Return the places of the braces around the names of the user's DataFrames."""
    tokens: Sequence[Token] = query.tokens
    return {
        brace.start
        for opening, name, closing in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if opening.is_symbol("{") and closing.is_symbol("}") and name.text in frames
        for brace in (opening, closing)
    }


def text_with_views(query: Fragment, tables: Sequence[Located], views: Sequence[str]) -> str:
    """Return the text of a query with the name of a view in the place of each table."""
    names = {_NAME.format(number): quoted(view) for number, view in enumerate(views)}
    spots = [(relation, name) for (relation, _), name in zip(tables, names, strict=True)]
    return _spliced(query, spots, ()).format_map(names)


def _spliced(query: Fragment, spots: Sequence[tuple[Relation, str]], braces: Container[int]) -> str:
    """Return a query with a name in braces for each relation.

    Parameters
    ----------
    spots
        The relations of the query, and of other parts of its text.
    braces
        The places of braces around names; all others are doubled, so that Spark keeps them.
    """

    def kept(start: int, end: int) -> str:
        return "".join(
            char * 2 if char in "{}" and at not in braces else char
            for at, char in enumerate(query.whole[start:end], start)
        )

    parts, place = [], query.start
    for relation, name in spots:
        if query.start <= relation.start < query.end:
            parts += [kept(place, relation.start), f"{{{name}}}"]
            parts.append(kept(relation.end, relation.alias_at))
            if relation.needs_alias and relation.arguments is None:
                parts.append(f" AS {quoted(relation.name[-1])}")
            place = relation.alias_at
    return "".join([*parts, kept(place, query.end)])
