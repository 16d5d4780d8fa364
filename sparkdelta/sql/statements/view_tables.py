"""The Delta tables of a view as a Spark Connect server has to know them when it analyzes the text.

The server has names of tables, but neither paths nor versions: a version becomes an option, which
reads the same and which the server need not understand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from sparkdelta.base.schema.stored_view import StoredView, TablesOfView
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError
from sparkdelta.sql.grammar.parser import Name, Parser
from sparkdelta.sql.grammar.relations import Relation
from sparkdelta.sql.grammar.tokens import Fragment, Kind, tokenize
from sparkdelta.sql.statements.options import names_version
from sparkdelta.sql.statements.queries import Place, SparkSql, TemporaryView
from sparkdelta.table.listing.table_names import path_in_name, with_database
from sparkdelta.table.log.session_times import session_time

_QUOTES = "'\""


def tables_of_view(sql: SparkSql, view: StoredView) -> TablesOfView:
    """Return the tables of a view that is there.

    Raises
    ------
    DELTA_STATEMENT_NOT_SUPPORTED
        As of `tables_of_text`; or its text has a version that is not an option.
    """
    read = TablesOfView()
    _add(sql, view, read)
    return replace(read, has_versions=read.has_inner_versions)


def tables_of_text(sql: SparkSql, query: Fragment) -> TablesOfView:
    """Return the tables of the query of a view that is to be defined.

    Raises
    ------
    DELTA_STATEMENT_NOT_SUPPORTED
        It reads a path or changes, or a table with the columns of two versions.
    """
    read = TablesOfView()
    _add_tables(sql, query, read)
    return read


def text_without_versions(sql: SparkSql, query: Fragment) -> str:
    """Return the text of a query with options in the place of versions and times.

    Raises
    ------
    DELTA_STATEMENT_NOT_SUPPORTED
        A time is not a constant.
    """
    parts, place = [], query.start
    for relation, named in sql.tables(query):
        name, at = relation.name, _version_at_end(relation, named)
        if relation.version is not None:
            option = f"'versionAsOf' = '{relation.version.text.strip(_QUOTES)}'"
        elif relation.timestamp is not None:
            _check_constant(relation.timestamp)
            time = session_time(sql.spark, relation.timestamp.text)
            option = f"'timestampAsOf' = '{time.isoformat()}'"
        elif at is not None:
            option = f"'versionAsOf' = '{at}'"
            name = _without_version(relation, at)
        else:
            continue
        if relation.options is not None:
            raise _refused("options beside a version")
        parts.append(query.whole[place : relation.start])
        parts.append(f"{quoted_path(name)} WITH ({option})")
        place = relation.end
    return "".join([*parts, query.whole[place : query.end]])


def _version_at_end(relation: Relation, named: Place) -> str | None:
    """Return the version that the name of a table ends with, as in ``t@v1``."""
    _, _, version = relation.name[-1].rpartition("@v")
    is_at = isinstance(named, str) and relation.name[-1] != version
    return version if is_at and str(named).endswith(f"@v{version}") else None


def _without_version(relation: Relation, version: str) -> Name:
    return (*relation.name[:-1], relation.name[-1].removesuffix(f"@v{version}"))


def _check_constant(time: Fragment) -> None:
    """Refuse a time that is not a string."""
    words = [token for token in time.tokens if token.kind is not Kind.END]
    is_string = words[-1].kind is Kind.STRING and len(words) <= 2
    if not is_string or not all(word.is_word("TIMESTAMP", "DATE") for word in words[:-1]):
        raise _refused("TIMESTAMP AS OF an expression")


def _refused(kind: str) -> DeltaError:
    statement = f"a permanent view of {kind}, on Spark Connect"
    return DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=statement)


def _add(sql: SparkSql, view: StoredView, read: TablesOfView) -> None:
    """Add the tables of a view that is there."""
    query = tokenize(view.text)
    if query is not None:
        _add_tables(sql.within(view), query, read)


def _add_tables(sql: SparkSql, query: Fragment, read: TablesOfView) -> None:
    """Add the tables of a query, of the views that it reads and of the functions that it calls."""
    for text in (query, *called_texts(sql, query)):
        for relation, named in sql.tables(text):
            _add_table(sql, relation, named, read)


def _add_table(sql: SparkSql, relation: Relation, named: Place, read: TablesOfView) -> None:
    if isinstance(named, StoredView):
        _add(sql, named, read)
        return
    if isinstance(named, TemporaryView):
        raise _refused("a temporary view")
    at = _version_at_end(relation, named)
    parts = relation.name if at is None else _without_version(relation, at)
    if named is None or path_in_name(parts) is not None:
        raise _refused("changes" if named is None else "a path")
    has_version = bool(relation.version or relation.timestamp or at)
    if has_version and sql.views:
        raise _refused("a view with a version")
    has_version = has_version or names_version(relation.options or {})
    read.has_versions |= has_version
    read.has_inner_versions |= has_version and bool(sql.views)
    table = with_database(sql.spark, sql.qualified(parts))[-2:]
    schema = sql.rows_of(relation, named).schema
    if read.columns.setdefault(table, schema) != schema:
        raise _refused("versions of a table that have other columns")


def called_texts(sql: SparkSql, text: Fragment) -> Iterator[Fragment]:
    """Yield the texts of the permanent functions that a text calls, and that these call."""
    engine, seen, texts = engine_of(sql.spark), set[Name](), [text]
    while texts:
        for name in {name for name, _, _ in called_names(texts.pop())} - seen:
            seen.add(name)
            stored = engine.function_text(name)
            called = None if stored is None else tokenize(stored)
            if called is not None:
                texts.append(called)
                yield called


def called_names(text: Fragment) -> Iterator[tuple[Name, int, int]]:
    """Yield the names before parentheses, and where they begin and end."""
    for place, (token, after) in enumerate(pairwise(text.tokens)):
        if token.is_name and after.is_symbol("("):
            start = place
            while start >= 2 and text.tokens[start - 1].is_symbol("."):
                start -= 2
            name = Parser(text.whole, text.tokens, start).name()
            yield name, text.tokens[start].start, token.end
