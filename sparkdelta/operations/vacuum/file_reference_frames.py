"""The files below a table's root that a version needs, by their paths relative to it.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vector-descriptor-schema,
PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-files
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from sparkdelta.base.protocol.file_paths import plain_path, scheme_and_authority
from sparkdelta.base.schema.file_key_frames import canonical_path
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.table.log.vector_path_frames import vector_uri

LIVE, REMOVED, VECTOR = "live", "removed", "deletion vector"
"""The reasons why a file is needed: it is a data file of the version, was removed within the
retention period, or has the deletion vectors of such a file."""


def needed_files(actions: DataFrame, *, since_ms: int) -> DataFrame:
    """The files that the live files and the tombstones of a retention period refer to.

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
    """The data files of actions, and the files of their deletion vectors.

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
    root = plain_path(table_root).removeprefix(scheme_and_authority(table_root)).rstrip("/")
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


def is_absolute(uri: str) -> str:
    """Return SQL (BOOLEAN) for `base.protocol.file_paths.is_absolute`."""
    return f"regexp_like({uri}, '^(/|[a-zA-Z][a-zA-Z0-9+.-]*:/)')"
