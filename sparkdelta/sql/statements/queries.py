"""Queries that read Delta tables: Spark runs the user's text, in which DataFrames stand for tables.

Spark's own SQL takes DataFrames by name in braces, beside parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sparkdelta.api.reading_and_writing import read_changes, read_delta
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.exceptions import StatementNotSupportedError, TimeTravelMultipleFormatsError
from sparkdelta.sql.grammar.cursor import syntax_error
from sparkdelta.sql.grammar.relations import Relation, Slice, common_names, relations
from sparkdelta.sql.grammar.tokens import Kind, Token, tokenize
from sparkdelta.sql.statements.reading import latest_rows, read
from sparkdelta.table.listing.table_names import name_not_found, table_name, table_path
from sparkdelta.table.log.path_versions import split_path
from sparkdelta.table.log.session_times import session_time

_NAME = "sparkdelta_{}"

Located = tuple[Relation, str | None]
"""A Delta table of a query and its path, with the version that its name may end with; None for its
changes."""


@dataclass(frozen=True, slots=True)
class SparkSql:
    """Spark's own SQL of a session.

    Attributes
    ----------
    run
        PySpark's ``spark.sql``.
    frames
        The DataFrames that the user gave for names in braces.
    time_zone
        In which statements convert values to the types of columns.
    """

    spark: SparkSession
    run: Callable[..., DataFrame]
    frames: Mapping[str, DataFrame]
    time_zone: str

    def query(self, text: str) -> DataFrame:
        """Return the rows of a query."""
        tokens = tokenize(text)
        if tokens is None:
            return self.run(text)
        return self.spliced(text, tokens, self.tables(text, tokens))

    def tables(self, text: str, tokens: tuple[Token, ...]) -> list[Located]:
        """Return the Delta tables that a query reads, and the paths of named ones.

        Raises
        ------
        StatementSyntaxError
            A version or time is not understood.
        """
        known, found = common_names(text, tokens), list[Located]()
        for relation in relations(text, tokens):
            path = None
            if relation.arguments is None:
                path = _located(self.spark, relation, known)
            if path is not None or relation.arguments is not None:
                found.append((relation, path))
        return found

    def spliced(self, text: str, tokens: tuple[Token, ...], tables: Sequence[Located]) -> DataFrame:
        """Return the rows of a query, or run a statement of Spark's that holds one.

        Parameters
        ----------
        tables
            Those that it reads, see `tables`.
        """
        frames, spots = dict[str, DataFrame](), []
        for relation, path in tables:
            name = _NAME.format(len(frames))
            frames[name] = self._rows(text, relation, path)
            spots.append((relation, name))
        if not frames and not self.frames:
            return self.run(text)
        spliced = _spliced(text, spots, _braces(tokens, self.frames))
        return self.run(spliced, **frames, **self.frames)

    def _rows(self, text: str, relation: Relation, named: str | None) -> DataFrame:
        """Return the rows of a Delta table at a path, perhaps with a version, or its changes."""
        if named is None:
            return self._changes(text, relation, relation.arguments or ())
        has_one = relation.version is not None or relation.timestamp is not None
        if relation.options is not None:
            if has_one:
                raise StatementNotSupportedError(statement="a version or time beside WITH")
            return read(self.spark, named, relation.options, function="WITH")
        path, version, time = split_path(self.spark, named)
        if has_one and (version is not None or time is not None):
            raise TimeTravelMultipleFormatsError()
        if relation.version is not None:
            version = _version(text, relation.version)
        elif relation.timestamp is not None:
            time = session_time(self.spark, relation.timestamp.text)
        if version is None and time is None:
            return latest_rows(self.spark, path)
        return read_delta(self.spark, path, version=version, timestamp=time)

    def _changes(self, text: str, relation: Relation, arguments: tuple[Slice, ...]) -> DataFrame:
        """Return the rows of ``table_changes('t', 1, 2)`` or ``table_changes_by_path``."""
        name, *bounds = arguments
        tokens = tokenize(name.text)
        kinds = [] if tokens is None else [token.kind for token in tokens[:2]]
        if tokens is None or kinds != [Kind.STRING, Kind.END] or not 1 <= len(bounds) <= 2:
            problem = "a name or path as a string, and one or two bounds are expected"
            raise syntax_error(text, name.start, problem)
        path: str | None = tokens[0].text
        if relation.name == ("table_changes",):
            path = table_path(self.spark, table_name(tokens[0].text))
        if path is None:
            raise name_not_found(tokens[0].text)
        found: dict[str, Any] = {}
        for side, bound in zip(("start", "end"), bounds, strict=False):
            if bound.text.isdigit():
                found[f"{side}_version"] = int(bound.text)
            else:
                found[f"{side}_timestamp"] = session_time(self.spark, bound.text)
        return read_changes(self.spark, path, **found)


def _located(
    spark: SparkSession, relation: Relation, known: Mapping[str, Sequence[range]]
) -> str | None:
    """Return the path of a table with the version that its name may end with; None for others.

    Parameters
    ----------
    known
        The names of queries of the same text, and the places where they are known.
    """
    name = relation.name
    places = known.get(name[0].lower(), ()) if len(name) == 1 else ()
    if any(relation.start in each for each in places):
        return None
    path = table_path(spark, name)
    named, _, version = name[-1].rpartition("@")
    if path is not None or not named:
        return path
    path = table_path(spark, (*name[:-1], named))
    return None if path is None else f"{path}@{version}"


def _version(text: str, given: Slice) -> int:
    number = given.text.strip("'\"")
    if not number.isdigit():
        raise syntax_error(text, given.start, "the number of a version is expected")
    return int(number)


def _braces(tokens: tuple[Token, ...], frames: Mapping[str, DataFrame]) -> set[int]:
    """Return the places of the braces around the names of the user's DataFrames."""
    return {
        brace.start
        for opening, name, closing in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if opening.is_symbol("{") and closing.is_symbol("}") and name.text in frames
        for brace in (opening, closing)
    }


def _spliced(text: str, spots: list[tuple[Relation, str]], braces: Container[int]) -> str:
    """Return a query with a name in braces for each relation.

    Parameters
    ----------
    braces
        The places of braces around names; all others are doubled, so that Spark keeps them.
    """

    def kept(start: int, end: int | None = None) -> str:
        return "".join(
            char * 2 if char in "{}" and at not in braces else char
            for at, char in enumerate(text[start:end], start)
        )

    parts, place = [], 0
    for relation, name in spots:
        parts += [kept(place, relation.start), f"{{{name}}}"]
        parts.append(kept(relation.end, relation.alias_at))
        if relation.needs_alias and relation.arguments is None:
            parts.append(f" AS {quoted(relation.name[-1])}")
        place = relation.alias_at
    return "".join([*parts, kept(place)])
