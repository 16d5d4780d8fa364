"""Conditions on rows of a table and a source, as far as a Spark Connect client understands them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from pyspark.sql import Column as SparkColumn
from pyspark.sql.connect import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from sparkdelta.base.predicates.connect_columns import parse_connect_column
from sparkdelta.base.predicates.predicate_rules import (
    Column,
    Comparison,
    Expression,
    Predicate,
    columns,
    conjuncts,
    is_usable,
    without_not,
)
from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.schema.table_schema import as_nullable, quoted_path, type_of_path
from sparkdelta.base.spark.match_terms import EqualKey, MatchTerms


class _Side(NamedTuple):
    """The table or the source, with the name that may precede its columns."""

    schema: StructType
    alias: str | None


def parse_match_terms(
    condition: SparkColumn,
    target: StructType,
    source: StructType,
    *,
    alias: str,
    source_alias: str | None,
    time_zone: str,
) -> MatchTerms:
    """Return what a condition on rows of a target and a source says about the target.

    Only comparisons of a column with a column of the same type are keys.
    """
    sides = _Side(target, alias), _Side(source, source_alias)
    both, side_of = _named_columns(*sides)
    parsed = without_not(parse_connect_column(condition, both, time_zone=time_zone))
    terms, on_target, keys = [*conjuncts(parsed)], [], []
    for term in terms:
        used = {path: side_of[path[0]] for path in columns(term)}
        if any(path == (sides[side].alias,) for path, side in used.items()):
            continue  # a column of the other side has the name of this alias
        if {*used.values()} == {0} and is_usable(term):
            on_target.append(_unqualified(term, alias))
        elif isinstance(term, Comparison) and term.operator == "=":
            key = _equal_key(term, sides, side_of)
            keys += [] if key is None else [key]
    are_all = len(on_target) + len(keys) == len(terms)
    return MatchTerms(tuple(on_target), keys=tuple(keys), are_all=are_all)


def _named_columns(target: _Side, source: _Side) -> tuple[StructType, Mapping[str, int]]:
    """Return a schema with all names that a condition may use, of aliases as of structs, and the
    side of each: 0 for the target, 1 for the source.

    Ambiguous names are left out, and columns with the name of an alias, which goes first.
    """
    aliases: dict[str, list[tuple[StructField, int]]] = {}
    named: dict[str, list[tuple[StructField, int]]] = {}
    for number, side in enumerate((target, source)):
        if side.alias is not None:
            own = StructField(side.alias, side.schema)
            aliases.setdefault(name_key(side.alias), []).append((own, number))
        for field in side.schema.fields:
            named.setdefault(name_key(field.name), []).append((field, number))
    clear = [found[0] for found in {**named, **aliases}.values() if len(found) == 1]
    schema = as_nullable(StructType([field for field, _ in clear]))
    assert isinstance(schema, StructType)
    return schema, {field.name: number for field, number in clear}


def _equal_key(
    term: Comparison, sides: tuple[_Side, _Side], side_of: Mapping[str, int]
) -> EqualKey | None:
    found: dict[int, ColumnPath] = {}
    for expression in (term.left, term.right):
        if isinstance(expression, Column):
            side = side_of[expression.path[0]]
            found[side] = _own_path(expression.path, sides[side].alias)
    if len(found) < 2 or _type(sides[0], found[0]) != _type(sides[1], found[1]):
        return None
    path, source = found[1], sides[1]
    name = quoted_path(path if source.alias is None else (source.alias, *path))
    number = source.schema.names.index(path[0]) if len(path) == 1 else None
    return EqualKey(Column(found[0]), F.col(name), number)


def _type(side: _Side, path: ColumnPath) -> DataType:
    return as_nullable(type_of_path(side.schema, path))


def _own_path(path: ColumnPath, alias: str | None) -> ColumnPath:
    return path[1:] if path[0] == alias else path


def _unqualified(node: Any, alias: str) -> Any:
    """Return a predicate or expression with its columns named without the table's alias."""
    if isinstance(node, Column):
        return Column(_own_path(node.path, alias))
    if isinstance(node, tuple):
        return tuple(_unqualified(each, alias) for each in node)
    if isinstance(node, Predicate | Expression):
        values = {f.name: getattr(node, f.name) for f in fields(node)}
        return replace(node, **{name: _unqualified(each, alias) for name, each in values.items()})
    return node
