"""Resolution of column names in a condition against the table's schema."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql.types import StructType

from sparkdelta.base.predicates.predicate_rules import Column, Expression
from sparkdelta.base.schema.row_checks import has_char_type
from sparkdelta.base.schema.table_schema import known_path


class UnusableError(Exception):
    """The error for a part of a condition that the predicate tree cannot represent."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_NAME_PART = re.compile(r"`((?:[^`]|``)*)`|([^`.]+)")


def name_parts(name: str) -> list[str]:
    """Split a column name at dots that are not in backticks, as Spark's API does."""
    parts, end = [], 0
    for found in _NAME_PART.finditer(name):
        if found.start() != end:
            break
        quoted, plain = found.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        end = found.end() + 1
        if name[found.end() : end] not in ("", "."):
            break
    if end != len(name) + 1:
        raise UnusableError(f"{name} is not the name of a column")
    return parts


def find_column(schema: StructType, names: Sequence[str]) -> Column:
    """Return the column of a name, which matches case-insensitively, as the schema spells it."""
    path = known_path(schema, names)
    if len(path) < len(names):
        raise UnusableError(f"{'.'.join(names)} is not a column or struct field of the table")
    return Column(path)


def find_comparable_column(schema: StructType, names: Sequence[str]) -> Column:
    """Return the column of a name, if Spark compares its values as they are stored.

    CHAR values are padded before they are compared, while statistics describe stored values.
    """
    column = find_column(schema, names)
    if has_char_type(schema[column.path[0]]):
        raise UnusableError(f"{column.path[0]} has the type CHAR, whose values are padded")
    return column


def extract_field(schema: StructType, child: Expression, name: str) -> Column:
    """Return a field of a struct column."""
    if not isinstance(child, Column):
        raise UnusableError("a field of something other than a column")
    return find_comparable_column(schema, [*child.path, name])
