"""The tables that temporary views of Spark Connect clients have rows of, from the plans that the
clients sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from pyspark.sql import DataFrame

from sparkdelta.base.predicates.resolved_names import UnusableError, name_parts
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.stored_view import TableView


@dataclass(frozen=True)
class RowsMark:
    """The origin of the rows of a relation: a table, a permanent view, or a query of a statement.

    Attributes
    ----------
    root
        Of the table that they are all rows of; None for the other origins.
    version
        The one that they stay at; None if they follow the table.
    columns
        Of the table.
    is_query
        True if a statement defines a view by them.
    """

    root: str | None = None
    version: str | None = None
    columns: tuple[str, ...] = ()
    is_query: bool = False


ViewOf: TypeAlias = Callable[[Any], tuple[Any, Mapping[int, RowsMark]] | None]

_marks: WeakValueDictionary[int, RowsMark] = WeakValueDictionary()
"""By plan id; the DataFrames' plans hold them."""


def mark_rows(rows: DataFrame, mark: RowsMark) -> None:
    """Mark the plan of rows, wherever it stands in the plan of a view."""
    frame: Any = rows
    plan = frame._plan
    plan.mark = mark
    relation = getattr(plan, "_relation", None)  # which the server has made
    _marks[plan._plan_id if relation is None else relation.common.plan_id] = mark


def copy_mark(rows: DataFrame, copy: DataFrame) -> None:
    """Mark the plan of other rows of the same relation as the plan of these is marked."""
    frame: Any = rows
    mark = getattr(frame._plan, "mark", None)
    if mark is not None:
        mark_rows(copy, mark)


def has_marks() -> bool:
    """Return True if the plan of any rows is marked."""
    return bool(_marks)


def marks_in(relations: Iterable[Any], view_of: ViewOf) -> dict[int, RowsMark]:
    """Return the marks of relations by their plan ids.

    Parameters
    ----------
    view_of
        Returns the plan and the marks of the temporary view that a relation names; None for others.
    """
    marks: dict[int, RowsMark] = {}
    for relation in relations:
        number, view = relation.common.plan_id, view_of(relation)
        mark = _marks.get(number) if number else None
        table = None if view is None else table_of_relation(*view)
        if mark is None and table is not None and table.is_by_permanent_view:
            mark = RowsMark()
        if mark is not None:
            marks[number] = mark
    return marks


def is_query(relation: Any, marks: Mapping[int, RowsMark]) -> bool:
    """Return True if a statement defined the view with this plan."""
    mark = marks.get(relation.common.plan_id)
    return mark is not None and mark.is_query


def table_of_relation(relation: Any, marks: Mapping[int, RowsMark]) -> TableView | None:
    """Return the table of which a relation has rows, without a limit or order; None for others.

    Parameters
    ----------
    marks
        Of the relations in it.
    """
    mark, kind = marks.get(relation.common.plan_id), relation.WhichOneof("rel_type")
    if mark is not None and not mark.is_query:
        return _view_of(mark)
    if kind == "subquery_alias":
        return table_of_relation(relation.subquery_alias.input, marks)
    if kind == "filter":
        below = table_of_relation(relation.filter.input, marks)
        is_all = relation.filter.condition.expression_string.expression == "true"
        return below and replace(below, is_frame=False, is_partial=below.is_partial or not is_all)
    if kind == "project":
        source = relation.project.input
        below, alias = table_of_relation(source, marks), source.subquery_alias.alias
        columns = (_column_of(each, alias) for each in relation.project.expressions)
        return below and _selected(below, columns)
    if kind == "to_df":
        below = table_of_relation(relation.to_df.input, marks)
        return below and _renamed(below, relation.to_df.column_names)
    if kind == "with_relations":
        return _table_of_query(relation.with_relations, marks)
    return None


def _view_of(mark: RowsMark) -> TableView:
    return TableView(
        root=mark.root or "",
        version=mark.version,
        columns={name: name for name in mark.columns},
        num_columns=len(mark.columns),
        is_frame=True,
        is_partial=False,
        is_by_permanent_view=mark.root is None,
    )


_ALL = "*"


def _selected(below: TableView, columns: Iterable[tuple[str, str | None]]) -> TableView:
    """Return the view with columns, each given by its name and the name that it has below; `_ALL`
    for all of them.
    """
    known = {name_key(name): column for name, column in below.columns.items()}
    found: dict[str, str | None] = {}
    for name, source in columns:
        new = below.columns if source == _ALL else {name: known.get(name_key(source or ""))}
        found |= {each: None if each in found else column for each, column in new.items()}
    return replace(below, columns=found, is_frame=False)


def _renamed(below: TableView, names: Iterable[str]) -> TableView:
    columns = dict(zip(names, below.columns.values(), strict=False))
    return replace(below, columns=columns, is_frame=False)


def _column_of(expression: Any, alias: str) -> tuple[str, str | None]:
    """Return the name of an expression of a projection, and of the column that it is as it is.

    Parameters
    ----------
    alias
        Of the rows below, which the first part of a name may be.
    """
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_star":
        return _ALL, _ALL
    if kind == "alias" and len(expression.alias.name) == 1:
        _, source = _column_of(expression.alias.expr, alias)
        return expression.alias.name[0], source
    if kind == "unresolved_attribute":
        text = expression.unresolved_attribute.unparsed_identifier
    elif kind == "expression_string":
        text = expression.expression_string.expression
    else:
        return str(expression), None
    try:
        *qualifier, name = name_parts(text)
    except UnusableError:
        return text, None
    return name, name if _is_of(alias, qualifier) else None


def _is_of(alias: str, qualifier: Sequence[str]) -> bool:
    """Return False if the first part of a name may be a struct."""
    return not qualifier or [name_key(each) for each in qualifier] == [name_key(alias)]


def _table_of_query(query: Any, marks: Mapping[int, RowsMark]) -> TableView | None:
    """Return the table that a SQL text with relations of the client selects rows of."""
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    if query.root.WhichOneof("rel_type") != "sql":
        return None
    try:
        tree = parse_one(query.root.sql.query, dialect="spark")
    except (SqlglotError, RecursionError):
        return None
    relations = {each.subquery_alias.alias: each.subquery_alias.input for each in query.references}
    return _table_of_select(tree, relations, marks)


_OF_SELECT = frozenset(("expressions", "from_", "where"))
"""The parts of a SELECT that has rows of a table as they are."""


def _table_of_select(
    tree: Any, relations: Mapping[str, Any], marks: Mapping[int, RowsMark]
) -> TableView | None:
    from sqlglot import exp

    parts = {name for name, value in tree.args.items() if value}
    if isinstance(tree, exp.Subquery | exp.Table):
        if parts - {"this", "alias"} or (tree.args.get("alias") and tree.args["alias"].columns):
            return None
        if isinstance(tree, exp.Subquery):
            return _table_of_select(tree.this, relations, marks)
        relation = relations.get(tree.name)
        return None if relation is None else table_of_relation(relation, marks)
    if not isinstance(tree, exp.Select) or "from_" not in parts or parts - _OF_SELECT:
        return None
    source = tree.args["from_"].this
    below = _table_of_select(source, relations, marks)
    if below is None:
        return None
    columns = (_column_of_tree(each, source.alias_or_name) for each in tree.expressions)
    is_partial = below.is_partial or "where" in parts
    return replace(_selected(below, columns), is_partial=is_partial)


def _column_of_tree(tree: Any, alias: str) -> tuple[str, str | None]:
    from sqlglot import exp

    if tree.is_star:
        star = tree.this if isinstance(tree, exp.Column) else tree
        qualifier = [tree.table] if isinstance(tree, exp.Column) else []
        is_all = _is_of(alias, qualifier) and not any(star.args.values())
        return _ALL, _ALL if is_all else None
    if isinstance(tree, exp.Alias):
        _, source = _column_of_tree(tree.this, alias)
        return tree.alias, source
    if isinstance(tree, exp.Column):
        qualifier = [part.name for part in tree.parts[:-1]]
        return tree.name, tree.name if _is_of(alias, qualifier) else None
    return tree.sql(), None
