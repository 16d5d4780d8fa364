"""Conditions in which the alias of rows may precede the names of their columns.

They are parsed as if the alias were a struct that has the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from pyspark.sql.types import StructField, StructType

from sparkdelta.base.predicates.predicate_rules import (
    And,
    Column,
    Expression,
    Predicate,
    Unusable,
    columns,
    conjuncts,
    without_not,
)
from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.schema.table_schema import as_nullable


class AliasedRows(NamedTuple):
    """The columns of rows, and their alias, if they have one."""

    schema: StructType
    alias: str | None


def parse_aliased(
    parse: Callable[[StructType], Predicate], schema: StructType, alias: str | None
) -> Predicate:
    """Return the predicate of a condition on rows that have an alias.

    Parameters
    ----------
    parse
        Parses the condition, given the names that it may use.
    """
    if alias is None:
        return parse(schema)
    named, _ = named_columns(AliasedRows(schema, alias))
    terms = (
        Unusable(alias, "a column has the name of the alias")
        if (alias,) in columns(term)
        else without_alias(term, alias)
        for term in conjuncts(without_not(parse(named)))
    )
    return And(tuple(terms))


def named_columns(*sides: AliasedRows) -> tuple[StructType, Mapping[str, int]]:
    """Return a schema with all names that a condition on some rows may use, and the number of the
    rows that each name is of.

    Ambiguous names are left out, and columns with the name of an alias, which goes first.
    """
    aliases: dict[str, list[tuple[StructField, int]]] = {}
    named: dict[str, list[tuple[StructField, int]]] = {}
    for number, side in enumerate(sides):
        if side.alias is not None:
            own = StructField(side.alias, side.schema)
            aliases.setdefault(name_key(side.alias), []).append((own, number))
        for field in side.schema.fields:
            named.setdefault(name_key(field.name), []).append((field, number))
    clear = [found[0] for found in {**named, **aliases}.values() if len(found) == 1]
    schema = as_nullable(StructType([field for field, _ in clear]))
    assert isinstance(schema, StructType)
    return schema, {field.name: number for field, number in clear}


def own_path(path: ColumnPath, alias: str | None) -> ColumnPath:
    """Return the path of a column without the alias of the rows."""
    return path[1:] if path[0] == alias else path


def without_alias(node: Any, alias: str) -> Any:
    """Return a predicate or expression in which the alias precedes no name."""
    if isinstance(node, Column):
        return Column(own_path(node.path, alias))
    if isinstance(node, tuple):
        return tuple(without_alias(each, alias) for each in node)
    if isinstance(node, Predicate | Expression):
        values = {f.name: getattr(node, f.name) for f in fields(node)}
        return replace(node, **{name: without_alias(each, alias) for name, each in values.items()})
    return node
