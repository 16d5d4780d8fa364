"""Log lines and totals of the file actions in a commit.

References
----------
PROTOCOL.md#delta-log-entries, PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#add-cdc-file,
PROTOCOL.md#append-only-tables, PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.schema.action_schemas import ADD, CHANGES
from sparkdelta.base.schema.checkpoint_schema import STATS_PARSED
from sparkdelta.base.schema.file_key_frames import canonical_path, deletion_vector_id
from sparkdelta.base.schema.sql_text import type_text
from sparkdelta.base.schema.statistics_frames import statistics_text
from sparkdelta.base.spark.row_groups import grouped

LINE = "line"


def conformed_actions(actions: DataFrame, stored: StructType) -> DataFrame:
    """Return file actions with all fields of the protocol, in its order and types.

    Parameters
    ----------
    actions
        add STRUCT, remove STRUCT, cdc STRUCT, or some of them; one is not null in each row.
    stored
        The schema of `actions`; missing columns and fields are null in the result.

    Returns
    -------
    DataFrame
        add STRUCT, remove STRUCT, cdc STRUCT.
    """
    return actions.selectExpr(*(_conformed(action, stored) for action in CHANGES.fields))


def add_fields(statistics: StructType, **facts: str) -> str:
    """Return SQL for the add action of a live file.

    Parameters
    ----------
    statistics
        The type of `stats_parsed`, of which JSON is made where a checkpoint has none.
    facts
        SQL of fields that differ, by their names.
    """
    in_struct = statistics_text(STATS_PARSED, statistics=statistics)
    facts = {
        "stats": f"coalesce(stats, {in_struct})",
        "deletionVector": "CASE WHEN deletionVector.storageType IS NOT NULL "
        "THEN deletionVector END",
        **facts,
    }
    return f"struct({', '.join(f'{facts.get(name, name)} AS {name}' for name in ADD.names)})"


def file_action_lines(actions: DataFrame) -> DataFrame:
    """Return one JSON line (line STRING) per file action, from `conformed_actions`.

    Null fields are omitted; null partition values are kept.
    """
    options = "map('ignoreNullFields', 'true', 'timeZone', 'UTC')"
    return actions.selectExpr(f"to_json(struct(add, remove, cdc), {options}) AS {LINE}")


def action_totals(actions: DataFrame) -> DataFrame:
    """Aggregate file actions, see `conformed_actions`, for the checks and metrics of a commit.

    Returns
    -------
    DataFrame
        One row: adds_data BOOLEAN, removes_data BOOLEAN, has_vectors BOOLEAN,
        has_change_files BOOLEAN, num_removes LONG, removed_bytes LONG.
    """
    facts = {
        "adds_data": _is_data("add"),
        "removes_data": _is_data("remove"),
        "has_vectors": "add.deletionVector.storageType IS NOT NULL",
        "has_change_files": "cdc.path IS NOT NULL",
    }
    return actions.selectExpr(
        *(f"coalesce(bool_or({fact}), FALSE) AS {name}" for name, fact in facts.items()),
        "count(remove.path) AS num_removes",
        "coalesce(sum(remove.size), 0L) AS removed_bytes",
    )


def repeated_files(actions: DataFrame, *, table_root: str) -> DataFrame:
    """Return the paths (path STRING) of logical files with more than one add or remove."""
    keys = actions.select(_key("add", table_root), _key("remove", table_root))
    key = F.coalesce("add", "remove").alias("key")
    keyed = keys.select(key).filter("key IS NOT NULL")
    counted = grouped(keyed, ["key"], F.count("*").alias("actions"))
    return counted.filter("actions > 1").select("key.path")


def _conformed(field: StructField, stored: StructType) -> str:
    action, field_type = field.name, field.dataType
    assert isinstance(field_type, StructType)
    data_type = stored[action].dataType if action in stored.names else None
    names = data_type.names if isinstance(data_type, StructType) else []
    if "path" not in names:
        return f"CAST(NULL AS {type_text(field_type)}) AS {action}"
    fields = (
        f"CAST({f'{action}.{f.name}' if f.name in names else 'NULL'} AS {type_text(f.dataType)}) "
        f"AS {f.name}"
        for f in field_type.fields
    )
    value = f"CASE WHEN {action}.path IS NOT NULL THEN struct({', '.join(fields)}) END"
    return f"CAST({value} AS {type_text(field_type)}) AS {action}"


def _is_data(action: str) -> str:
    return f"{action}.path IS NOT NULL AND coalesce({action}.dataChange, TRUE)"


def _key(action: str, table_root: str) -> Column:
    path = canonical_path(f"{action}.path", table_root=table_root)
    vector = deletion_vector_id(f"{action}.deletionVector")
    key = f"struct({path} AS path, {vector} AS vector)"
    return F.expr(f"CASE WHEN {action}.path IS NOT NULL THEN {key} END AS {action}")
