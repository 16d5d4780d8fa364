"""The files that VACUUM may delete, those that a version needs, and why it keeps the others.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vector-descriptor-schema,
PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-files, PROTOCOL.md#change-data-files
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol import file_paths
from sparkdelta.base.protocol.log_files import LOG_DIRECTORY
from sparkdelta.base.schema.file_key_frames import canonical_path, is_absolute, plain_path
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.table.log.absolute_file_frames import vector_uri

LIVE, REMOVED, VECTOR = "live", "removed", "deletion vector"
"""The reasons why a file is needed: it is a data file of the version, was removed within the
retention period, or has the deletion vectors of such a file."""


UNNEEDED, YOUNG, DIRECTORY = "unneeded", "young", "directory"
"""Outcomes besides the reasons of `needed_files`: to be deleted; younger than the retention
period; a directory that has contents or is young."""
TO_RESOLVE = "to resolve"
"""Not an outcome: the row is the local path of a needed file, which may lead through symbolic links
to a file below the root."""

MAX_OUTCOMES = 20
"""An upper bound of the outcomes of files and directories together."""

_REASONS = (VECTOR, LIVE, REMOVED)
"""The reasons in order of precedence, for a file that is needed several times."""

_REASON_NAMES = f"array({', '.join(map(text_literal, _REASONS))})"


def needed_files(actions: DataFrame, *, since_ms: int) -> DataFrame:
    """Return the files that the live files and the tombstones of a retention period refer to.

    Parameters
    ----------
    actions
        add STRUCT, remove STRUCT: the live files and the tombstones.
    since_ms
        The begin of the retention period.

    Returns
    -------
    DataFrame
        uri STRING (as in the log), reason STRING; several rows for a file that is needed twice.
    """
    files = (
        ("path", LIVE),
        (vector_uri("vector"), VECTOR),
        ("IF(is_kept, removed_path, NULL)", REMOVED),
        (f"IF(is_kept, {vector_uri('removed_vector')}, NULL)", VECTOR),
    )
    structs = (f"struct({uri} AS uri, {text_literal(reason)} AS reason)" for uri, reason in files)
    return actions.selectExpr(  # a projection of its own, so that Spark reads nothing else
        "add.path",
        "add.deletionVector AS vector",
        "remove.path AS removed_path",
        "remove.deletionVector AS removed_vector",
        f"remove.deletionTimestamp >= {since_ms}L AS is_kept",
    ).selectExpr(f"inline(filter(array({', '.join(structs)}), f -> f.uri IS NOT NULL))")


def files_of(actions: DataFrame, *columns: str) -> DataFrame:
    """Return the data files of actions, and the files of their deletion vectors.

    Parameters
    ----------
    actions
        path STRING, size LONG, deletionVector STRUCT.
    columns
        SQL of columns to keep.

    Returns
    -------
    DataFrame
        The columns, uri STRING (as in the log), length LONG, is_vector BOOLEAN.
    """
    file = "struct(path AS uri, size AS length, FALSE AS is_vector)"
    size = "CAST(deletionVector.sizeInBytes AS LONG)"
    vector = f"struct({vector_uri('deletionVector')} AS uri, {size} AS length, TRUE AS is_vector)"
    return actions.selectExpr(
        *columns, f"inline(filter(array({file}, {vector}), f -> f.uri IS NOT NULL))"
    )


def relative_path(uri: str, *, table_root: str) -> str:
    """Return SQL for the decoded path of a file relative to the table's root (STRING); null if an
    absolute path leads elsewhere.

    Scheme and authority of absolute paths are not compared: an alias of the storage, such as
    ``s3:`` for ``s3a:``, may name a file of this table. A path with the segment ``..``, which no
    engine writes, fails the query.

    Parameters
    ----------
    uri
        SQL expression of type STRING, as in the log.
    """
    decoded = canonical_path(uri, table_root=table_root)
    without_scheme = f"regexp_replace({decoded}, '^[a-zA-Z][a-zA-Z0-9+.-]*:(//[^/]*)?(?=/)', '')"
    within = f"IF({is_absolute(uri)}, {without_scheme}, {decoded})"
    single = f"regexp_replace({within}, '/([.]?/)*', '/')"
    authority = file_paths.scheme_and_authority(table_root)
    root = file_paths.plain_path(table_root).removeprefix(authority).rstrip("/")
    start = text_literal(f"{root}/")
    problem = f"concat('the path ', {uri}, ' in the log leads through .., which VACUUM refuses')"
    special = " OR ".join(f"contains({uri}, '{part}')" for part in ("%", ":", "//", "/."))
    return (
        f"CASE WHEN NOT (left({uri}, 1) IN ('/', '.') OR {special}) THEN {uri} "
        f"WHEN contains({uri}, '..') AND regexp_like({decoded}, '(^|/)[.][.](/|$)') "
        f"THEN CAST(raise_error({problem}) AS STRING) "
        f"WHEN NOT {is_absolute(uri)} THEN regexp_replace({single}, '^([.]?/)+', '') "
        f"WHEN startswith({single}, {start}) THEN substring({single}, {len(root) + 2}) END"
    )


def outcomes(
    entries: DataFrame, needed: DataFrame, *, before_ms: int, root: str | None = None
) -> DataFrame:
    """Return the outcome of each file and directory: that it is not needed, or why it is kept.

    Parameters
    ----------
    entries
        path STRING (relative to the root, decoded), length LONG, isDir BOOLEAN, modificationTime
        LONG (null if unknown), isEmpty BOOLEAN (of a directory). Of several rows of a path the
        newest counts.
    needed
        path STRING, reason STRING; or, of a file elsewhere on the local disk, place STRING: its
        absolute path.
    before_ms
        The begin of the retention period: only older files can be deleted.
    root
        The path of the table on the local disk, if its needed files are to be resolved, too.

    Returns
    -------
    DataFrame
        path, length, isDir, and outcome STRING; also the absolute paths `TO_RESOLVE`.
    """
    time = "coalesce(modificationTime, 9223372036854775807) AS time"
    found = entries.selectExpr("path", "length", "isDir", time, "isEmpty")
    # Numbers, as Spark would sort all rows for the least of texts.
    known = needed.selectExpr("path", "place", f"array_position({_REASON_NAMES}, reason) AS reason")
    by_path = grouped(
        found.unionByName(known, allowMissingColumns=True),  # a join would shuffle both
        ["path", "place"],
        F.min("reason").alias("reason"),
        F.expr("max(length) FILTER (WHERE NOT isDir) AS length"),
        F.expr("max(time) FILTER (WHERE NOT isDir) AS file_time"),
        F.expr("max(time) FILTER (WHERE isDir) AS directory_time"),
        F.expr("bool_and(isEmpty) FILTER (WHERE isDir) AS isEmpty"),
    )
    kept = f"WHEN reason IS NOT NULL THEN element_at({_REASON_NAMES}, CAST(reason AS INT))"
    old, directory = text_literal(UNNEEDED), text_literal(DIRECTORY)
    of_file = f"CASE {kept} WHEN file_time < {before_ms}L THEN {old} ELSE {text_literal(YOUNG)} END"
    of_directory = (
        f"CASE {kept} WHEN isEmpty AND directory_time < {before_ms}L THEN {old} "
        f"ELSE {directory} END"
    )
    inside = "NULL"
    if root is not None:
        inside = f"IF(reason IS NOT NULL, concat({text_literal(root)}, '/', path), NULL)"
    rows = (
        f"IF(file_time IS NOT NULL, {_row('path', 'length', 'FALSE', of_file)}, NULL)",
        f"IF(directory_time IS NOT NULL, {_row('path', '0L', 'TRUE', of_directory)}, NULL)",
        _row(f"coalesce(place, {inside})", "0L", "FALSE", text_literal(TO_RESOLVE)),
    )
    return by_path.selectExpr(f"inline(filter(array({', '.join(rows)}), r -> r.path IS NOT NULL))")


def _row(path: str, length: str, is_directory: str, outcome: str) -> str:
    return (
        f"struct({path} AS path, {length} AS length, {is_directory} AS isDir, {outcome} AS outcome)"
    )


def removed_files(removes: DataFrame, *, table_root: str) -> DataFrame:
    """Return the files below the table's root that remove actions and their deletion vectors name,
    as `entries` of `outcomes`; as old as the action.

    Parameters
    ----------
    removes
        path STRING, size LONG, deletionTimestamp LONG, deletionVector STRUCT.
    """
    files = files_of(removes, "coalesce(deletionTimestamp, 0L) AS modificationTime")
    return _entries(files, table_root)


def change_files(changes: DataFrame, *, table_root: str) -> DataFrame:
    """Return the change data files of cdc actions, as `entries` of `outcomes`.

    Parameters
    ----------
    changes
        path STRING, size LONG; of commits before the retention period.
    """
    files = changes.selectExpr("0L AS modificationTime", "path AS uri", "size AS length")
    return _entries(files, table_root)


def inventory_entries(inventory: DataFrame, *, table_root: str, visible: str) -> DataFrame:
    """Return the files of an inventory below the table's root, as `entries` of `outcomes`.

    Parameters
    ----------
    inventory
        path STRING (absolute, not encoded), length LONG, isDir BOOLEAN, modificationTime LONG.
    visible
        See `visible_paths`.
    """
    root = f"{file_paths.plain_path(table_root).rstrip('/')}/"
    return (
        inventory.withColumn("path", F.expr(plain_path("path")))
        .filter(f"startswith(path, {text_literal(root)}) AND NOT isDir")
        .withColumn("path", F.expr(f"substring(path, {len(root) + 1})"))
        .filter(f"path != '' AND path RLIKE {text_literal(visible)}")
        .selectExpr("path", "length", "isDir", "modificationTime", "FALSE AS isEmpty")
    )


def _entries(files: DataFrame, table_root: str) -> DataFrame:
    path = relative_path("uri", table_root=table_root)
    return files.selectExpr(
        f"{path} AS path", "length", "FALSE AS isDir", "modificationTime", "FALSE AS isEmpty"
    ).filter(f"path != '' AND substring_index(path, '/', 1) != {text_literal(LOG_DIRECTORY)}")
