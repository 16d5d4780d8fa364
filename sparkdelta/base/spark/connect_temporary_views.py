"""Temporary views of Spark Connect clients whose rows are chosen when a query is sent.

The server has a view with the rows of one version, which other clients read. In plans that are
sent, the DataFrame that the view was made of stands in its place, see `connect_late_rows`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from sparkdelta.base.predicates.resolved_names import UnusableError, name_parts
from sparkdelta.base.spark.connect_view_plans import RowsMark

_GLOBAL = "global_temp"
_OF_VIEWS = re.compile(r"\bVIEW\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SentView:
    """A temporary view.

    Attributes
    ----------
    relation
        The plan of its rows.
    late_rows
        The late rows in the plan, which are kept by it.
    marks
        Of the relations in the plan, see `connect_view_plans`.
    """

    relation: Any
    late_rows: Sequence[Any]
    marks: Mapping[int, RowsMark]


_views: WeakKeyDictionary[Any, dict[str, SentView]] = WeakKeyDictionary()
"""By client, and by name in lower case; after a prefix for global ones."""


def created_view(command: Any) -> str | None:
    """Return the name of the temporary view that a command creates from a DataFrame."""
    if command.WhichOneof("command_type") != "create_dataframe_view":
        return None
    view = command.create_dataframe_view
    name = _parts(view.name)[-1:]
    return _key([_GLOBAL, *name] if view.is_global else name)


def define_view(client: Any, name: str, view: SentView) -> None:
    """Remember a view that has been created, or forget one that has other rows now."""
    if view.late_rows or view.marks:
        _views.setdefault(client, {})[name] = view
    else:
        _views.get(client, {}).pop(name, None)


def put_view(client: Any, relation: Any) -> bool:
    """Put the rows of a view in the place of a relation that names it; return True if it does."""
    view = view_of_relation(client, relation)
    if view is None or not view.late_rows:
        return False
    number = relation.common.plan_id  # by which columns refer to it
    name = _parts(relation.read.named_table.unparsed_identifier)
    relation.Clear()
    relation.common.plan_id = number
    relation.subquery_alias.alias = name[-1]
    relation.subquery_alias.input.CopyFrom(view.relation)
    return True


def view_of_relation(client: Any, relation: Any) -> SentView | None:
    """Return the view that a relation names; None for other relations and views."""
    views, read = _views.get(client), relation.read
    if not views or relation.WhichOneof("rel_type") != "read" or read.is_streaming:
        return None
    if read.WhichOneof("read_type") != "named_table" or read.named_table.options:
        return None
    return views.get(_key(_parts(read.named_table.unparsed_identifier)))


def sent_view(client: Any, name: Sequence[str]) -> SentView | None:
    """Return the view with a name; None if it has no rows of Delta tables, or is not known here."""
    return _views.get(client, {}).get(_key(name))


def forget_dropped_view(client: Any, catalog: Any) -> None:
    """Forget the view that a call of ``spark.catalog`` drops."""
    kind = catalog.WhichOneof("cat_type")
    if kind == "drop_temp_view":
        _forget(client, [catalog.drop_temp_view.view_name])
    elif kind == "drop_global_temp_view":
        forget_global_view(client, catalog.drop_global_temp_view.view_name)


def forget_global_view(client: Any, name: str) -> None:
    """Forget a global view: in plans that are sent, its name stands for the server's own view."""
    _forget(client, [_GLOBAL, name])


def forget_views_in(client: Any, text: str) -> None:
    """Forget the views that a statement on views names, such as ``DROP VIEW``."""
    if _OF_VIEWS.search(text):
        words = text.lower()
        for name in [*_views.get(client, {})]:
            if name.rpartition("\0")[2] in words:
                _views[client].pop(name, None)


def _forget(client: Any, name: Sequence[str]) -> None:
    _views.get(client, {}).pop(_key(name), None)


def _parts(identifier: str) -> Sequence[str]:
    try:
        return name_parts(identifier)
    except UnusableError:  # the server says what is wrong
        return [identifier]


def _key(name: Sequence[str]) -> str:
    return "\0".join(name).lower()
