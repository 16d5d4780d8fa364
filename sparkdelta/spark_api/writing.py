"""Writing with delta-spark's options."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column

from sparkdelta.commands.write import WriteResult, write
from sparkdelta.engine.builders import WriterState
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.spark_api.options import WRITE, arguments, table_properties
from sparkdelta.table.write.options import WriteOptions
from sparkdelta.table.write.overwrite_setting import check_overwrite_setting
from sparkdelta.tables import DeltaTable

_FUNCTION = 'df.write.format("delta")'


def save(state: WriterState, path: str, *, defines_table: bool = False) -> WriteResult:
    """Write the rows of a ``DataFrameWriter`` to a table.

    Parameters
    ----------
    defines_table
        See `WriteOptions`.

    Raises
    ------
    UnknownArgumentError, InvalidArgumentError
        An option is unknown, or its value.
    DeltaError
        Nothing was committed; see `sparkdelta.write_delta`.
    """
    if state.other_layout is not None:
        problem = "a Delta table has no buckets; use partitionBy or clusterBy"
        raise InvalidArgumentError(argument=state.other_layout, problem=problem)
    mode = state.mode or "error"
    found = _arguments(state)
    if found["properties"] and DeltaTable.isDeltaTable(state.rows.sparkSession, path):
        found["properties"] = {}  # they count when the table is created
    options = WriteOptions.spelled(
        mode=mode,
        partition_by=state.partition_by,
        cluster_by=state.cluster_by,
        defines_table=defines_table,
        **found,
    )
    check_overwrite_setting(state.rows.sparkSession, options)
    return write(state.rows, path, options)


def _arguments(state: WriterState) -> dict[str, Any]:
    options, properties = table_properties(state.options)
    defaults = {"partition_overwrite_mode": "static", "compression": None}
    return {
        **defaults,
        **arguments(options, WRITE, function=_FUNCTION),
        "properties": {**properties, **state.properties},
    }


def create_as(state: WriterState, path: str, *, mode: str, **more: Any) -> WriteResult:
    """Create or replace a table with the rows of a ``DataFrameWriterV2``.

    Parameters
    ----------
    mode
        As of `sparkdelta.write_delta`; ``overwrite`` defines the table anew.
    """
    options = WriteOptions.spelled(
        **{
            **_arguments(state),
            "mode": mode,
            "partition_by": state.partition_by,
            "cluster_by": state.cluster_by,
            "defines_table": True,
            "replaces_table": mode == "overwrite",
            **more,
        }
    )
    return write(state.rows, path, options)


def write_into(
    state: WriterState,
    path: str,
    *,
    replace_where: Column | None = None,
    overwrites_partitions: bool = False,
) -> WriteResult:
    """Append the rows of a ``DataFrameWriterV2`` to a table, or overwrite rows of it."""
    found = _arguments(state)
    if overwrites_partitions:
        found["partition_overwrite_mode"] = "dynamic"
    if replace_where is not None:
        found["replace_where"] = replace_where
    overwrites = overwrites_partitions or replace_where is not None
    found.update(mode="overwrite" if overwrites else "append", requires_table=True, properties={})
    return write(state.rows, path, WriteOptions.spelled(**found))
