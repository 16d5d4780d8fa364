"""Writing with delta-spark's options, of which ``replaceUsing`` and ``replaceOn`` let rows take the
place of those that they match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame

from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.api.reading_and_writing import load_snapshot
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.library_sessions import session_time_zone
from sparkdelta.base.spark.session_settings import evolves_schemas, follow_settings
from sparkdelta.base.spark.spark_builders import WriterState
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.operations.write.write import write
from sparkdelta.sql.statements.options import WRITE, arguments, table_properties, with_settings
from sparkdelta.sql.statements.replaced_rows import replace_equal, replace_matching
from sparkdelta.table.definition.schema_changes import with_merged_schema
from sparkdelta.table.definition.write_options import WriteOptions
from sparkdelta.table.rows.column_binding import match_rows
from sparkdelta.table.rows.row_changes import unchanged_definition
from sparkdelta.table.snapshot.snapshot import Snapshot

_FUNCTION = 'df.write.format("delta")'
_USING, _ON, _ALIAS = "replaceUsing", "replaceOn", "targetAlias"
_MERGE_SCHEMA = "mergeSchema"
_NAMES = {name.lower(): name for name in (_USING, _ON, _ALIAS, _MERGE_SCHEMA)}


def save(state: WriterState, path: str, **more: Any) -> None:
    """Write the rows of a ``DataFrameWriter`` to a table.

    Parameters
    ----------
    more
        Members of `WriteOptions`.

    Raises
    ------
    DELTA_UNKNOWN_ARGUMENT, InvalidArgumentError
        An option is unknown, or its value.
    DeltaError
        Nothing was committed; see `sparkdelta.write_delta`.
    """
    if state.other_layout is not None:
        problem = "a Delta table has no buckets; use partitionBy or clusterBy"
        raise InvalidArgumentError(argument=state.other_layout, problem=problem)
    with follow_settings(state.rows.sparkSession, "save"):
        _save(state, path, more)


def _save(state: WriterState, path: str, more: Mapping[str, Any]) -> None:
    mode = state.mode or "error"
    spark = state.rows.sparkSession
    exists = DeltaTable.isDeltaTable(spark, path)
    if not {_USING.lower(), _ON.lower()}.isdisjoint(map(str.lower, state.options)):
        if exists:
            _replace_rows(state, path)
            return
        dropped = _NAMES.keys() - {_MERGE_SCHEMA.lower()}
        others = {n: text for n, text in state.options.items() if n.lower() not in dropped}
        state = replace(state, options=others)
    found = _arguments(state, mode=mode)
    if exists:
        found["properties"] = {}  # they count when the table is created
    options = WriteOptions.spelled(
        mode=mode,
        partition_by=state.partition_by,
        cluster_by=state.cluster_by,
        **found,
        **more,
    )
    write(state.rows, path, options)


def _arguments(state: WriterState, *, mode: str) -> dict[str, Any]:
    """Return the options of a writer. Other modes than overwrite ignore ``overwriteSchema``,
    ``replaceWhere`` and dynamic partition overwrite, which many programs set for all writes, and
    ``replaceWhere`` counts more than ``overwriteSchema``.
    """
    spark = state.rows.sparkSession
    options, properties = table_properties(state.options)
    found = arguments(options, WRITE, function=_FUNCTION)
    overwrites = mode.lower() == "overwrite"
    if not overwrites:
        found.pop("replace_where", None)
        if found.get("partition_overwrite_mode", "").lower() == "dynamic":
            del found["partition_overwrite_mode"]
    if not overwrites or "replace_where" in found:
        found.pop("overwrite_schema", None)
    return {
        "compression": None,
        **with_settings(found, overwrites=overwrites, partition_by=state.partition_by),
        "properties": {**properties, **state.properties},
        "time_zone": session_time_zone(spark),
    }


def create_as(state: WriterState, path: str, *, mode: str, **more: Any) -> None:
    """Create or replace a table with the rows of a ``DataFrameWriterV2``.

    Parameters
    ----------
    mode
        As of `sparkdelta.write_delta`; ``overwrite`` defines the table anew, or with
        ``replaceWhere`` overwrites rows of it.
    more
        Members of `WriteOptions`.
    """
    spark = state.rows.sparkSession
    with follow_settings(spark):
        found = _arguments(state, mode=mode)
        defines = mode == "overwrite" and "replace_where" not in found
        if mode == "overwrite" and not defines and DeltaTable.isDeltaTable(spark, path):
            found["properties"] = {}
        options = WriteOptions.spelled(
            **{
                **found,
                "mode": mode,
                "partition_overwrite_mode": "static",
                "partition_by": state.partition_by,
                "cluster_by": state.cluster_by,
                "defines_table": True,
                "replaces_table": defines,
                **more,
            }
        )
        write(state.rows, path, options)


def write_into(
    state: WriterState,
    path: str,
    *,
    replace_where: Column | None = None,
    overwrites_partitions: bool = False,
) -> None:
    """Append the rows of a ``DataFrameWriterV2`` to a table, or overwrite rows of it."""
    overwrites = overwrites_partitions or replace_where is not None
    mode = "overwrite" if overwrites else "append"
    with follow_settings(state.rows.sparkSession):
        found = _arguments(state, mode=mode)
        found["partition_overwrite_mode"] = "dynamic" if overwrites_partitions else "static"
        if replace_where is not None:
            found["replace_where"] = replace_where
        found.update(mode=mode, requires_table=True, properties={}, converts=True)
        write(state.rows, path, WriteOptions.spelled(**found))


def _replace_rows(state: WriterState, path: str) -> None:
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
    known = (*known, _MERGE_SCHEMA)
    writes = {name.lower() for name in (*WRITE, _USING, _ON, _ALIAS)}
    others = [name for name in options if name not in known and name.lower() in writes]
    if state.partition_by is not None or state.cluster_by is not None:
        others.append("partitionBy or clusterBy")
    if others or (state.mode or "").lower() != "overwrite":
        problem = f"it cannot be given with {others[0]}" if others else "it needs mode overwrite"
        raise InvalidArgumentError(argument=asked, problem=problem)
    found = arguments(
        {_MERGE_SCHEMA: options[_MERGE_SCHEMA]} if _MERGE_SCHEMA in options else {},
        WRITE,
        function=_FUNCTION,
    )
    evolves = bool(found.get("merge_schema", evolves_schemas()))
    spark = state.rows.sparkSession
    snapshot = load_snapshot(spark, path)
    values = _values(state.rows, snapshot, evolves=evolves)
    table = DeltaTable.forPath(spark, path)
    if on is None:
        replace_equal(
            state.rows,
            table,
            snapshot,
            options[_USING].split(","),
            values=values,
            time_zone=session_time_zone(spark),
            evolves=evolves,
        )
        return
    table = table if alias is None else table.alias(alias)
    replace_matching(state.rows, table, on, values=values, evolves=evolves)


def _values(rows: DataFrame, snapshot: Snapshot, *, evolves: bool) -> dict[str, str]:
    """Return the columns of rows, by the table's columns into which an append would write them."""
    change, path = unchanged_definition(snapshot), snapshot.path
    if evolves:
        change = with_merged_schema(change, rows.schema, path=path)
    matched = match_rows(rows.schema, change.after, path=path)
    return {
        quoted(column.field.name): quoted(column.source)
        for column in matched.columns
        if column.source is not None
    }
