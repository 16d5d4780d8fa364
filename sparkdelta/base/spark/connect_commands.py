"""The commands in the plans that Spark Connect clients send."""

from __future__ import annotations

import re
from typing import Any

_QUERY = re.compile(r"[\s(]*(SELECT|WITH|FROM|VALUES|TABLE)\b")
_INSERT = re.compile(r"\bINSERT\b")
_ANSWERS = re.compile("(current|get|list|is)_|.*_exists")
_WITHOUT_EFFECT = frozenset(
    ("checkpoint_command", "get_resources_command", "remove_cached_remote_relation_command",
     "streaming_query_command", "streaming_query_manager_command", "write_operation",
     "write_operation_v2", "write_stream_operation_start")
)  # fmt: skip
"""Commands after which a session has the views, functions and current database that it had."""


def sql_text(command: Any) -> str:
    """Return the text of a command in SQL; an empty one for others."""
    if command.WhichOneof("command_type") != "sql_command":
        return ""
    relation = command.sql_command.input
    if relation.WhichOneof("rel_type") == "with_relations":
        relation = relation.with_relations.root
    return str(relation.sql.query)


def is_query(command: Any) -> bool:
    """Return True for the text of a query: the server returns its plan, which is sent later."""
    text = sql_text(command).upper()
    return bool(_QUERY.match(text)) and not _INSERT.search(text)  # as in WITH ... INSERT


def starts_stream(plan: Any) -> bool:
    """Return True for the start of a streaming query."""
    is_command = plan.WhichOneof("op_type") == "command"
    kind = "write_stream_operation_start"
    return bool(is_command and plan.command.WhichOneof("command_type") == kind)


def may_change_session(plan: Any) -> bool:
    """Return True if a session may have other views, functions or variables, or another current
    database, after a plan has run in it.
    """
    kind = plan.WhichOneof("op_type")
    if kind == "root":
        is_of_catalog = plan.root.WhichOneof("rel_type") == "catalog"
        return is_of_catalog and not _ANSWERS.match(plan.root.catalog.WhichOneof("cat_type"))
    if kind != "command":  # a compressed one
        return True
    is_known = plan.command.WhichOneof("command_type") in _WITHOUT_EFFECT
    return not is_known and not is_query(plan.command)
