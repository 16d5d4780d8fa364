"""Rows of Spark Connect clients that are chosen when a query is sent to the server.

A client holds its plans, and sends one for each query. The plan of late rows has only their
columns; in a plan that is sent to be executed, the rows themselves stand in its place, as they are
then. The conditions of filters next to the rows can choose files. A plan that is sent in another
way fails.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast
from uuid import uuid4
from weakref import WeakValueDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.base.predicates.predicate_rules import And, Predicate
from sparkdelta.base.spark.connect_commands import is_query, sql_text
from sparkdelta.base.spark.connect_filters import (
    SentCondition,
    children,
    conditions_of_sides,
    relations_in,
)
from sparkdelta.base.spark.connect_requests import wrap_requests
from sparkdelta.base.spark.connect_temporary_views import (
    SentView,
    created_view,
    define_view,
    forget_dropped_view,
    forget_views_in,
    put_view,
    view_of_relation,
)
from sparkdelta.base.spark.connect_view_plans import RowsMark, copy_mark, has_marks, marks_in
from sparkdelta.base.spark.library_sessions import session_time_zone
from sparkdelta.base.spark.typed_values import value_of_field

_FAILURE = (
    "The rows of a Delta table are found when sparkdelta sends a query: run it in the Python "
    "process that made the DataFrame."
)
_KEEPS_ROWS = frozenset(("filter", "sort", "hint", "repartition", "subquery_alias"))
"""Relations whose rows are some or all of those below them, with the same columns."""

_OF_RELATIONS = frozenset(("persist", "unpersist", "get_storage_level"))
_OF_PLANS = frozenset(("explain", "input_files", "same_semantics", "semantic_hash"))


RowsFor: TypeAlias = Callable[[str, Sequence[SentCondition]], DataFrame]
"""Returns the rows that a query reads, given an id of the query, and its filters on them."""


@dataclass(frozen=True, eq=False)
class _LateRows:
    schema: StructType
    rows_for: RowsFor
    scan: object = None


_late_rows: WeakValueDictionary[str, _LateRows] = WeakValueDictionary()
"""By the texts of the errors with which their plans fail; the plans hold them."""

_kept: dict[int, tuple[bytes, Any]] = {}
"""Cached relations by plan id: as the client made them, and as they were sent."""

_operation: ContextVar[str | None] = ContextVar("operation", default=None)


def rows_when_sent(
    spark: SparkSession, schema: StructType, rows_for: RowsFor, scan: object = None
) -> DataFrame:
    """Return rows that are found whenever a query on them is sent.

    Parameters
    ----------
    schema
        Their columns. NOT NULL fields stay so in the schema of a DataFrame made of the rows.
    scan
        What `scan_of_late_rows` returns for them.
    """
    _watch(type(spark.client))
    late, error = _LateRows(schema, rows_for, scan), f"{_FAILURE} ({uuid4()})"
    columns = map(value_of_field, schema.fields)
    rows: Any = spark.range(1).select(*columns).filter(F.raise_error(F.lit(error)).isNull())
    rows._cached_schema, rows._plan.late_rows = schema, late
    _late_rows[error] = late
    found: DataFrame = rows
    return found


def with_sent_conditions(rows: DataFrame, conditions: Sequence[str]) -> DataFrame:
    """Return rows of which a query needs only those for which conditions on their columns are true;
    rows that the server caches, and others than late rows, as they are.
    """
    frame, late = cast(Any, rows), _late_rows_in(rows)
    if late is None or not conditions:
        return rows
    expressions: list[Any] = [F.expr(text) for text in conditions]
    client, found = frame._session.client, late.rows_for
    known = tuple(SentCondition(each._expr.to_plan(client)) for each in expressions)

    def rows_for(query: str, more: Sequence[SentCondition]) -> DataFrame:
        return found(query, (*known, *more))

    result = rows_when_sent(frame._session, late.schema, rows_for)
    copy_mark(rows, result)
    return result


def scan_of_late_rows(rows: DataFrame) -> Any:
    """Return the scan that a DataFrame reads whole; None if it reads anything else, or if the
    server caches it.
    """
    late = _late_rows_in(rows)
    return None if late is None else late.scan


def _late_rows_in(rows: DataFrame) -> _LateRows | None:
    """Return the late rows that a DataFrame consists of; None if it is made in another way, or if
    the server caches it.
    """
    frame: Any = rows
    late = getattr(frame._plan, "late_rows", None)
    return late if isinstance(late, _LateRows) and frame._plan._plan_id not in _kept else None


def hold_late_rows(result: DataFrame, sources: Sequence[DataFrame]) -> None:
    """Keep the late rows of the sources of a query as long as its result, whose plan the server
    made.
    """
    frame: Any = result
    frame._plan.late_rows = sources


@contextmanager
def _with_rows(client: Any, request: Any) -> Iterator[None]:
    """Replace the late rows in the plan of a request; a view that it creates has them, too."""
    created = _replace_in_plan(request.plan, client)
    yield
    if created is not None:
        define_view(client, *created)


def _watch(clients: Any) -> None:
    """Find late rows in the plans that clients of a class send from now on."""
    if not wrap_requests(clients, _with_rows):
        return
    analyze = clients._analyze

    @functools.wraps(analyze)
    def watched_analyze(client: Any, method: str, **named: Any) -> Any:
        for name in ("plan", "other") if method in _OF_PLANS else ():
            if name in named:
                _replace_in_plan(named[name], client)
        if method not in _OF_RELATIONS:
            return analyze(client, method, **named)
        relation = named["relation"]
        number, before = relation.common.plan_id, _as_bytes(relation)
        _Sending(client).replace(relation, ())
        result = analyze(client, method, **named)
        if method == "persist":
            _kept[number] = before, relation
        elif method == "unpersist":
            _kept.pop(number, None)
        return result

    clients._analyze = watched_analyze


def parse_sent(
    spark: SparkSession, conditions: Sequence[SentCondition], schema: StructType
) -> Predicate:
    """Return the predicate of conditions on rows with the columns of a table."""
    from sparkdelta.base.predicates.connect_columns import parse_connect_message  # needs sqlglot

    zone = session_time_zone(spark) if conditions else ""
    terms = (
        parse_connect_message(each.message, schema, time_zone=zone, alias=each.alias)
        for each in conditions
        if each.holds_for(schema.names) and not is_retyped(spark, str(each.message))
    )
    return And(tuple(terms))


def is_retyped(spark: SparkSession, condition: str) -> bool:
    """Return True if a setting changes the meaning of TIMESTAMP in a condition."""
    has_type = "timestamp" in condition.lower()
    return has_type and str(spark.conf.get("spark.sql.timestampType")).upper() != "TIMESTAMP_LTZ"


@contextmanager
def shared_late_rows() -> Iterator[str]:
    """Give all queries in the block, of this thread, one id, which is yielded."""
    outer = _operation.get()
    token = _operation.set(outer or str(uuid4()))
    try:
        yield str(_operation.get())
    finally:
        _operation.reset(token)


def sent_plan(rows: DataFrame) -> Any:
    """Return the plan of rows as it is sent to be executed."""
    frame: Any = rows
    client = frame._session.client
    plan = frame._plan.to_proto(client)
    _replace_in_plan(plan, client)
    return plan


def reads_kept_rows(rows: DataFrame) -> bool:
    """Return True if the server caches some of the relations that rows are made from."""
    frame: Any = rows
    relations = relations_in(frame._plan.plan(frame._session.client))
    return bool(_kept) and any(_kept_relation(relation) is not None for relation in relations)


def _replace_in_plan(plan: Any, client: Any) -> tuple[str, SentView] | None:
    """Replace late rows in a plan that is to be executed; return the temporary view that it
    creates, and its name.
    """
    if not _late_rows and not _kept and not has_marks():
        return None
    sending, created = _Sending(client), None
    kind = plan.WhichOneof("op_type")
    if kind == "compressed_operation":
        _decompress(plan, client)
        kind = plan.WhichOneof("op_type")
    if kind == "root":
        sending.replace(plan.root, ())
    elif kind == "command" and not is_query(plan.command):
        name = created_view(plan.command)
        if name is not None:
            created = name, sending.view_of(plan.command.create_dataframe_view.input)
        forget_views_in(client, sql_text(plan.command))
        for relation in children(plan.command):
            sending.replace(relation, ())
    return created


def _decompress(plan: Any, client: Any) -> None:
    """Undo the compression of a large plan, which clients of Spark 4.2 and newer may do."""
    operation = plan.compressed_operation
    data, kind = client._zstd_module.decompress(operation.data), operation.op_type
    if kind == type(operation).OpType.Value("OP_TYPE_RELATION"):
        plan.root.ParseFromString(data)
    else:
        plan.command.ParseFromString(data)


class _Sending:
    """The replacement of late rows in one plan."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._query = _operation.get() or str(uuid4())

    def replace(self, relation: Any, conditions: tuple[SentCondition, ...]) -> None:
        """Replace the late rows in a relation.

        Parameters
        ----------
        conditions
            Of the filters above it, on its own columns.
        """
        kept, late = _kept_relation(relation), _late_rows_of(relation)
        kind = relation.WhichOneof("rel_type")
        if kept is not None:
            relation.CopyFrom(kept)
        elif put_view(self._client, relation):
            self.replace(relation, conditions)
        elif late is not None:
            number = relation.common.plan_id  # by which columns refer to it
            rows: Any = late.rows_for(self._query, conditions)
            relation.CopyFrom(rows._plan.plan(self._client))
            relation.common.plan_id = number
        else:
            if _clears_cache(relation, kind):
                _kept.clear()
            if kind == "catalog":
                forget_dropped_view(self._client, relation.catalog)
            if kind == "join":
                left, right = conditions_of_sides(relation.join, conditions)
                self.replace(relation.join.left, left)
                self.replace(relation.join.right, right)
                return
            below = _conditions_below(relation, kind, conditions)
            for child in children(relation):
                self.replace(child, below)

    def view_of(self, relation: Any) -> SentView:
        """Return the view of a relation."""
        copy, found = type(relation)(), list[_LateRows]()
        copy.CopyFrom(relation)
        for each in relations_in(copy):
            put_view(self._client, each)  # its rows are those that it has now
            late = _late_rows_of(each)
            found += [] if late is None else [late]
        return SentView(copy, found, marks_in(relations_in(copy), self._view_of))

    def _view_of(self, relation: Any) -> tuple[Any, Mapping[int, RowsMark]] | None:
        view = view_of_relation(self._client, relation)
        return None if view is None else (view.relation, view.marks)


def _late_rows_of(relation: Any) -> _LateRows | None:
    """Return the late rows that a relation stands for; None if it is another one."""
    if relation.WhichOneof("rel_type") != "filter":
        return None
    is_null = relation.filter.condition.unresolved_function
    fails = is_null.arguments[0].unresolved_function if len(is_null.arguments) == 1 else None
    if fails is None or fails.function_name != "raise_error" or len(fails.arguments) != 1:
        return None
    return _late_rows.get(fails.arguments[0].literal.string)


def _kept_relation(relation: Any) -> Any:
    """Return a relation as the server caches it; None if it does not. Others may have its id."""
    before, sent = _kept.get(relation.common.plan_id, (b"", None))
    return sent if sent is not None and _as_bytes(relation) == before else None


def _as_bytes(relation: Any) -> bytes:
    text: bytes = relation.SerializeToString(deterministic=True)
    return text


def _clears_cache(relation: Any, kind: str | None) -> bool:
    """Return True for ``spark.catalog.clearCache()`` and ``CLEAR CACHE``."""
    if kind == "sql":
        return str(relation.sql.query).upper().split()[:2] == ["CLEAR", "CACHE"]
    return kind == "catalog" and relation.catalog.WhichOneof("cat_type") == "clear_cache"


def _conditions_below(
    relation: Any, kind: str | None, conditions: tuple[SentCondition, ...]
) -> tuple[SentCondition, ...]:
    """Return the conditions that hold for all needed rows of the only relation below another."""
    if kind == "project" and all(map(_is_plain_column, relation.project.expressions)):
        # A condition above a join may name a column of the other side that is not selected here.
        kept = (each for each in conditions if not each.is_above_join)
        return tuple(replace(each, is_above_select=True) for each in kept)
    if kind not in _KEEPS_ROWS:
        return ()
    if kind == "subquery_alias":
        alias = relation.subquery_alias.alias
        return tuple(replace(each, alias=each.alias or alias) for each in conditions)
    if kind == "filter":
        return (*conditions, SentCondition(relation.filter.condition))
    return conditions


def _is_plain_column(expression: Any) -> bool:
    """Return True for all columns, or one under its own name."""
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_star":
        return not expression.unresolved_star.unparsed_target
    return kind == "unresolved_attribute" and "." not in (
        expression.unresolved_attribute.unparsed_identifier
    )
