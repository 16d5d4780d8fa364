"""The files to read for the changes of commits.

References
----------
PROTOCOL.md#add-cdc-file, PROTOCOL.md#change-data-files, PROTOCOL.md#add-file-and-remove-file,
PROTOCOL.md#deletion-vectors, PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.change_types import ChangeType
from sparkdelta.base.schema.file_key_frames import canonical_path, deletion_vector_id
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.spark.row_groups import grouped

_ENTRY = (
    "kind", "path", "partitionValues", "size", "stats", "deletionVector", "only", "baseRowId",
    "defaultRowCommitVersion",
)  # fmt: skip


def derived_changes(actions: DataFrame, *, table_root: str, is_partitioned: bool) -> DataFrame:
    """Return the changes of versions without change data files.

    The rows of added files are inserted, the rows of removed files are deleted.

    A version that removes and adds a file changes only rows that one of the two deletion vectors
    has and the other has not.

    Parameters
    ----------
    actions
        version LONG, add STRUCT, remove STRUCT: a row per action of these versions.
    is_partitioned
        True if the table has partition columns, whose values a remove may lack.

    Returns
    -------
    DataFrame
        version LONG, kind STRING (`ChangeType`), path STRING, partitionValues MAP<STRING, STRING>,
        size LONG, stats STRING (of a file that has all of these rows), deletionVector STRUCT (of
        rows that are not part of the change), only STRUCT (the vector of the only rows that may be
        part of it; null for all), baseRowId LONG, defaultRowCommitVersion LONG.
    """
    key = canonical_path("coalesce(add.path, remove.path)", table_root=table_root)
    changing = actions.filter("coalesce(add.dataChange, remove.dataChange, FALSE)")
    sides = (F.expr(f"any_value({side}, TRUE) AS {side}") for side in ("add", "remove"))
    keyed = changing.selectExpr("version", f"{key} AS key", "add", "remove")
    files = grouped(keyed, ["version", "key"], *sides)
    return changes_of_pairs(files, is_partitioned=is_partitioned)


def changes_of_pairs(files: DataFrame, *, is_partitioned: bool) -> DataFrame:
    """Return the changes of files, in the columns of `derived_changes`, given the add and the
    remove of each file as a pair.

    Parameters
    ----------
    files
        version LONG, add STRUCT, remove STRUCT: a row per file and version.
    """
    if is_partitioned:
        values = F.when(F.col("remove.path").isNotNull(), F.expr(_partition_values_of_remove()))
        files = files.withColumn("remove", F.col("remove").withField("partitionValues", values))
    alone = f"IF(add.path IS NULL, {_removed('NULL')}, {_added('NULL')})"
    both = f"array({_removed('add.deletionVector')}, {_added('remove.deletionVector')})"
    # Without a vector, no row of it can be deleted or back.
    added, removed = (deletion_vector_id(f"{one}.deletionVector") for one in ("add", "remove"))
    different = f"filter({both}, e -> {added} != {removed} AND e.only.storageType IS NOT NULL)"
    is_pair = "add.path IS NOT NULL AND remove.path IS NOT NULL"
    return files.selectExpr("version", f"inline(IF({is_pair}, {different}, array({alone})))")


def recorded_changes(actions: DataFrame) -> DataFrame:
    """Return the change data files of versions that have some, in the columns of `derived_changes`;
    their rows have a change type each, and `kind` is null.

    Parameters
    ----------
    actions
        version LONG, cdc STRUCT.
    """
    entry = _entry("NULL", "cdc", stats="NULL", has_row_ids=False)
    return actions.filter("cdc.path IS NOT NULL").selectExpr("version", f"inline(array({entry}))")


def net_pairs(before: DataFrame, after: DataFrame, *, table_root: str, is_small: bool) -> DataFrame:
    """Return the files that only one of two states of a table has, or that they have with different
    deletion vectors, as pairs of actions that lead from one to the other.

    Parameters
    ----------
    before, after
        file STRUCT: the live files as add actions.
    is_small
        True if one task does all of it soonest.

    Returns
    -------
    DataFrame
        version LONG (0), add STRUCT, remove STRUCT (of the type of add), as `changes_of_pairs`
        takes them.
    """
    removes, adds = before.selectExpr("file AS remove"), after.selectExpr("file AS add")
    files = adds.unionByName(removes, allowMissingColumns=True)
    path = canonical_path("coalesce(add.path, remove.path)", table_root=table_root)
    pairs = grouped(
        files.coalesce(1) if is_small else files,
        [F.expr(path)],
        F.expr("any_value(add, TRUE) AS add"),
        F.expr("any_value(remove, TRUE) AS remove"),
    )
    added, removed = (deletion_vector_id(f"{one}.deletionVector") for one in ("add", "remove"))
    differs = f"add.path IS NULL OR remove.path IS NULL OR {added} != {removed}"
    return pairs.filter(differs).selectExpr("0L AS version", "add", "remove")


def _added(only: str) -> str:
    kind = text_literal(ChangeType.INSERT.value)
    return _entry(kind, "add", vector="add.deletionVector", only=only)


def _removed(only: str) -> str:
    kind = text_literal(ChangeType.DELETE.value)
    return _entry(kind, "remove", vector="remove.deletionVector", only=only)


def _partition_values_of_remove() -> str:
    problem = (
        "concat('[DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA] Cannot read the rows that a "
        "commit removed: its remove action of ', remove.path, ' has no partitionValues. The "
        "writer left them out; read a range without this version.')"
    )
    missing = f"CAST(raise_error({problem}) AS MAP<STRING, STRING>)"
    return f"coalesce(remove.partitionValues, add.partitionValues, {missing})"


_VECTOR_TYPE = (
    "STRUCT<storageType: STRING, pathOrInlineDv: STRING, offset: INT, sizeInBytes: INT, "
    "cardinality: BIGINT>"
)


def _entry(
    kind: str,
    action: str,
    *,
    stats: str | None = None,
    vector: str = "NULL",
    only: str = "NULL",
    has_row_ids: bool = True,
) -> str:
    """Return SQL for the struct of one change."""
    row_ids = (f"{action}.{name}" if has_row_ids else "NULL" for name in _ENTRY[-2:])
    values = (
        f"CAST({kind} AS STRING)",
        f"{action}.path",
        f"{action}.partitionValues",
        f"{action}.size",
        f"CAST({stats or f'{action}.stats'} AS STRING)",
        f"CAST({vector} AS {_VECTOR_TYPE})",
        f"CAST({only} AS {_VECTOR_TYPE})",
        *(f"CAST({value} AS LONG)" for value in row_ids),
    )
    fields = ", ".join(f"{value} AS {name}" for value, name in zip(values, _ENTRY, strict=True))
    return f"struct({fields})"
