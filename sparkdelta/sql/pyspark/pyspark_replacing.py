"""delta-spark's options ``replaceUsing`` and ``replaceOn`` of overwrites: rows take the place of
those that they match.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.reading_and_writing import load_snapshot
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.spark_builders import WriterState
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.sql.statements.replaced_rows import replace_equal, replace_matching
from sparkdelta.table.listing.table_names import table_name
from sparkdelta.table.rows.column_binding import match_rows

_USING, _ON, _ALIAS = "replaceUsing", "replaceOn", "targetAlias"
_NAMES = {name.lower(): name for name in (_USING, _ON, _ALIAS)}


def replaces_rows(options: Mapping[str, str]) -> bool:
    """True if the options include ``replaceUsing`` or ``replaceOn``."""
    return not {_USING.lower(), _ON.lower()}.isdisjoint(map(str.lower, options))


def without_replacing(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options without ``replaceUsing``, ``replaceOn`` and ``targetAlias``."""
    return {name: text for name, text in options.items() if name.lower() not in _NAMES}


def replace_rows(state: WriterState, path: str) -> None:
    """Delete the rows of a table that the rows of a ``DataFrameWriter`` match, and insert these, as
    one version.

    Raises
    ------
    InvalidArgumentError
        The mode is not overwrite, or something else is asked for, too.
    DeltaError
        Nothing was committed; see `sparkdelta.exceptions`.
    """
    options = {_NAMES.get(name.lower(), name): text for name, text in state.options.items()}
    on, alias = options.get(_ON), options.get(_ALIAS)
    asked, known = (_USING, (_USING,)) if on is None else (_ON, (_ON, _ALIAS))
    others = [name for name in options if name not in known and name.lower() != "path"]
    if state.partition_by is not None or state.cluster_by is not None:
        others.append("partitionBy or clusterBy")
    if others or (state.mode or "").lower() != "overwrite":
        problem = f"it cannot be given with {others[0]}" if others else "it needs mode overwrite"
        raise InvalidArgumentError(argument=asked, problem=problem)
    values, table = _values(state.rows, path), DeltaTable.forPath(state.rows.sparkSession, path)
    if on is None:
        names = (".".join(table_name(name)) for name in options[_USING].split(","))
        replace_equal(state.rows, table, {name: name for name in names}, values=values)
        return
    table = table if alias is None else table.alias(alias)
    replace_matching(state.rows, table, on, values=values)


def _values(rows: DataFrame, path: str) -> dict[str, str]:
    """Return the columns of rows by those of the table that an append would write them into."""
    table = load_snapshot(rows.sparkSession, path).configuration
    matched = match_rows(rows.schema, table, path=path)
    return {
        quoted(column.field.name): quoted(column.source)
        for column in matched.columns
        if column.source is not None
    }
