"""Conditions on rows of a table and a source, as far as a Spark Connect client understands them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column as SparkColumn
from pyspark.sql.connect import functions as F
from pyspark.sql.types import DataType, StructType

from sparkdelta.base.predicates.aliased_names import (
    AliasedRows,
    named_columns,
    own_path,
    without_alias,
)
from sparkdelta.base.predicates.connect_columns import parse_connect_column
from sparkdelta.base.predicates.predicate_rules import (
    Column,
    Comparison,
    columns,
    conjuncts,
    is_usable,
    without_not,
)
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.table_schema import as_nullable, quoted_path, type_of_path
from sparkdelta.base.spark.match_terms import EqualKey, MatchTerms


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
    sides = AliasedRows(target, alias), AliasedRows(source, source_alias)
    both, side_of = named_columns(*sides)
    parsed = without_not(parse_connect_column(condition, both, time_zone=time_zone))
    terms, on_target, keys = [*conjuncts(parsed)], [], []
    for term in terms:
        used = {path: side_of[path[0]] for path in columns(term)}
        if any(path == (sides[side].alias,) for path, side in used.items()):
            continue  # a column of the other side has the name of this alias
        if {*used.values()} == {0} and is_usable(term):
            on_target.append(without_alias(term, alias))
        elif isinstance(term, Comparison) and term.operator == "=":
            key = _equal_key(term, sides, side_of)
            keys += [] if key is None else [key]
    are_all = len(on_target) + len(keys) == len(terms)
    return MatchTerms(tuple(on_target), keys=tuple(keys), are_all=are_all)


def _equal_key(
    term: Comparison, sides: tuple[AliasedRows, AliasedRows], side_of: Mapping[str, int]
) -> EqualKey | None:
    found: dict[int, ColumnPath] = {}
    for expression in (term.left, term.right):
        if isinstance(expression, Column):
            side = side_of[expression.path[0]]
            found[side] = own_path(expression.path, sides[side].alias)
    if len(found) < 2 or _type(sides[0], found[0]) != _type(sides[1], found[1]):
        return None
    path, source = found[1], sides[1]
    name = quoted_path(path if source.alias is None else (source.alias, *path))
    number = source.schema.names.index(path[0]) if len(path) == 1 else None
    return EqualKey(Column(found[0]), F.col(name), number)


def _type(side: AliasedRows, path: ColumnPath) -> DataType:
    return as_nullable(type_of_path(side.schema, path))
