"""Names of tables as SQL writes them: ``db.table``, and ``delta.`/path` `` for a path."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.predicates.names import UnusableError, name_parts

_PATH_QUALIFIER = _PROVIDER = "delta"


def table_name(identifier: str) -> tuple[str, ...]:
    """Return the parts of a name, without their backticks.

    Raises
    ------
    InvalidArgumentError
        It is not a name.
    """
    try:
        return tuple(name_parts(identifier.strip()))
    except UnusableError:
        problem = f"{identifier!r} is not the name of a table"
        raise InvalidArgumentError(argument="identifier", problem=problem) from None


def path_in_name(name: Sequence[str]) -> str | None:
    """Return the path of a name such as ``delta.`/path` ``; None for other names."""
    return name[1] if len(name) == 2 and name[0].lower() == _PATH_QUALIFIER else None


def table_path(spark: SparkSession, name: Sequence[str]) -> str | None:
    """Return the path of a table by its name: the path that it is, or the location that the
    session catalog has for a table of provider ``delta``; None if there is no such table.
    """
    path = path_in_name(name)
    return engine_of(spark).table_location(name, _PROVIDER) if path is None else path


def quoted_name(name: Sequence[str]) -> str:
    """Return a name as SQL text, with all parts in backticks."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in name)
