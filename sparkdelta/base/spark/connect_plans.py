"""Properties of conditions in the plans of Spark Connect clients, which the server analyzes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.connect import functions as F
from sqlglot import TokenType, tokenize
from sqlglot.errors import SqlglotError

from sparkdelta.base.predicates.resolved_names import name_parts
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.spark.connect_late_rows import sent_plan
from sparkdelta.exceptions import DeltaError

_STARTS = (TokenType.SELECT, TokenType.WITH)
_STARTS_BEFORE_OPERAND = (TokenType.VALUES, TokenType.TABLE, TokenType.FROM)  # also names
_OPERANDS = (TokenType.L_PAREN, TokenType.NUMBER, TokenType.STRING, TokenType.VAR)
_NODES = {
    "current_catalog": "CurrentCatalog",
    "current_timezone": "CurrentTimeZone",
    "current_time": "CurrentTime",
    **dict.fromkeys(("current_database", "current_schema"), "CurrentDatabase"),
    **dict.fromkeys(("current_user", "session_user", "user"), "CurrentUser"),
    **dict.fromkeys(("current_date", "curdate"), "CurrentDate"),
    **dict.fromkeys(("current_timestamp", "now", "localtimestamp"), "CurrentTimestamp"),
}
"""The class names of functions that depend on the session or the moment."""

_NON_DETERMINISTIC = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
_OTHER_COLUMN = "1 AS __sparkdelta_other"


def expression_nodes(frame: DataFrame) -> tuple[bool, frozenset[str]]:
    """Return True if the condition of a filter, or the only column of a projection, is
    deterministic, and the class names of nodes that its text or tree shows.

    Functions of the user are not among them.

    Raises
    ------
    AnalysisException
        It is not valid.
    """
    _ = frame.schema
    connect: Any = frame
    plan = connect._plan
    condition: Any = plan.filter if _is(plan, "Filter") else F.isnull(plan._columns[0])
    rows: Any = type(frame)(plan._child, connect._session)
    nodes = _named_nodes(condition.to_plan(connect._session.client), rows)
    others = frame.sparkSession.range(1).selectExpr(_OTHER_COLUMN)
    try:  # Spark refuses other expressions as the condition of a join
        _ = rows.join(others, condition).schema
    except DeltaError:
        raise
    except AnalysisException as error:
        if str(error.getCondition()).startswith(_NON_DETERMINISTIC):
            return False, nodes
        return True, nodes | {"AggregateExpression"}
    return True, nodes


def _named_nodes(expression: Any, rows: DataFrame) -> frozenset[str]:
    nodes: set[str] = set()
    for message in _messages_within(expression):
        kind = message.DESCRIPTOR.name
        if kind == "SubqueryExpression":
            nodes.add("ScalarSubquery")
        elif kind == "Window":
            nodes.add("WindowExpression")
        elif kind == "ExpressionString":
            nodes |= _nodes_in_text(message.expression, rows)
        elif kind == "UnresolvedFunction":
            nodes.add(_NODES.get(message.function_name.lower(), ""))
    return frozenset(nodes - {""})


def standing_for(rows: DataFrame, like: DataFrame) -> DataFrame:
    """Return rows whose first columns stand for the columns of another DataFrame: by its names,
    aliases and name of a table, and as its own columns, such as ``like["id"]``.
    """
    names = [*like.columns, *rows.columns[len(like.columns) :]]
    renamed, (base, aliases) = rows.toDF(*names), _aliases(like)
    _identify(renamed, base)
    name = _name_of_columns(base)
    if name is not None:
        renamed = renamed.alias(name)
    for plan in reversed(aliases):
        renamed = renamed.alias(plan._alias)
        _identify(renamed, plan)
    return renamed


def with_columns_of(rows: DataFrame, like: DataFrame) -> DataFrame:
    """Return rows whose columns also are the columns of another DataFrame, such as
    ``like["id"]``.
    """
    base, _ = _aliases(like)
    frame: Any = rows
    same: DataFrame = frame.select("*")
    _identify(same, base)
    cast(Any, same)._cached_schema = frame._cached_schema  # which knows NOT NULL
    return same


def alias_of(rows: DataFrame) -> str | None:
    """Return the alias of a DataFrame; None if it has none."""
    connect: Any = rows
    return _name_of_columns(connect._plan)


_KEEPING_NAMES = {
    "Deduplicate", "Drop", "Filter", "Hint", "Limit", "NADrop", "Offset", "Project", "Repartition",
    "RepartitionByExpression", "Sample", "Sort", "Tail", "WithColumns",
}  # fmt: skip
"""The plans whose columns keep the alias, or the name of the table, that they have below."""


def _name_of_columns(plan: Any) -> str | None:
    while type(plan).__name__ in _KEEPING_NAMES:
        plan = plan._child
    if _is(plan, "SubqueryAlias"):
        return str(plan._alias)
    return name_parts(plan.table_name)[-1] if _is(plan, "Read") else None


def _aliases(rows: DataFrame) -> tuple[Any, list[Any]]:
    """Return the plan of a DataFrame without its aliases, and their plans, the outermost first."""
    connect: Any = rows
    plan, aliases = connect._plan, []
    while _is(plan, "SubqueryAlias"):
        aliases.append(plan)
        plan = plan._child
    return plan, aliases


def _is(plan: Any, kind: str) -> bool:
    return type(plan).__name__ == kind


def _identify(rows: DataFrame, plan: Any) -> None:
    """Give a DataFrame the identity of a plan, by which columns refer to it."""
    connect: Any = rows
    connect._plan._root_plan_id = plan._plan_id


def read_options_named(rows: DataFrame, name: str) -> set[str]:
    """Return the values of a read option in the plan of a DataFrame."""
    return {
        options[name]
        for message in _messages_within(sent_plan(rows))
        for described, options in message.ListFields()
        if _is_map(described) and name in options
    }


def _messages_within(message: Any) -> Iterator[Any]:
    """Yield a message of a plan and all messages in it."""
    messages = [message]
    while messages:
        current = messages.pop()
        yield current
        for described, value in current.ListFields():
            if described.message_type is not None and not _is_map(described):
                messages.extend(value if described.is_repeated else [value])


def _is_map(described: Any) -> bool:
    return described.message_type is not None and described.message_type.GetOptions().map_entry


def _nodes_in_text(text: str, rows: DataFrame) -> set[str]:
    try:
        tokens = tokenize(text, dialect="spark")
    except (SqlglotError, ValueError):
        return {"ScalarSubquery"} if "select" in text.lower() else set()
    nodes = set()
    kinds = [*(token.token_type for token in tokens), None, None]
    for number, token in enumerate(tokens):
        kind, after, next_after = kinds[number : number + 3]
        name = token.text.lower()
        if kind is TokenType.L_PAREN and (
            after in _STARTS or (after in _STARTS_BEFORE_OPERAND and next_after in _OPERANDS)
        ):
            nodes.add("ScalarSubquery")
        elif kind is TokenType.OVER:
            nodes.add("WindowExpression")
        elif (
            name in _NODES
            and kind not in (TokenType.STRING, TokenType.IDENTIFIER)
            and (after is TokenType.L_PAREN or name not in map(name_key, rows.columns))
        ):
            nodes.add(_NODES[name])
    return nodes
