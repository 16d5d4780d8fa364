"""Action Reconciliation: the state of a table from a checkpoint and the commits after it.

::

    SELECT action FROM newest(commits)
    UNION ALL
    SELECT c.action FROM checkpoint c LEFT ANTI JOIN commits k ON c.file = k.file

Only the commits are grouped. A checkpoint is already reconciled, so it is only filtered by the keys
of the commits. It is never grouped, and not shuffled if the keys can be broadcast. Few keys are in
a condition instead of a join, which saves a job.

References
----------
PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.schema.file_key_frames import canonical_path, deletion_vector_id
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.spark.row_groups import grouped

_PATH, _DV, _IS_ADD, _PATH_ADDED, _HASH = "_path", "_dv", "_is_add", "_path_added", "_hash"
_SUPERSEDED_ADD = f"({_DV} = c{_DV} OR {_IS_ADD})"
_SUPERSEDED_REMOVE = f"{_DV} = c{_DV}"


def keyed_file_actions(actions: DataFrame, *, table_root: str, is_local: bool) -> DataFrame:
    """Return the file actions of a range of commits with the keys of their files.

    The result is partitioned by path: `newest_file_actions` and `superseding_keys` of the same
    result reuse one exchange, so the log is parsed once for both.

    Parameters
    ----------
    actions
        version LONG, add STRUCT, remove STRUCT; other columns are ignored.
    is_local
        True if `actions` has a single partition.
    """
    path = canonical_path("coalesce(add.path, remove.path)", table_root=table_root)
    return keyed_actions(actions, path, is_local=is_local)


def keyed_actions(actions: DataFrame, key: str, *, is_local: bool) -> DataFrame:
    """Return the actions whose key (SQL) is not null, partitioned by it."""
    keyed = actions.selectExpr("version", "add", "remove", f"{key} AS {_PATH}").filter(
        f"{_PATH} IS NOT NULL"
    )
    return keyed if is_local else keyed.repartition(_PATH)


def newest_file_actions(keyed: DataFrame) -> DataFrame:
    """Return the newest action of each logical file, from `keyed_file_actions`.

    Within one commit, the protocol allows one action per logical file. If a table violates that, an
    add takes precedence over a remove of the same logical file, and repeated adds count once.

    Returns
    -------
    DataFrame
        One row per logical file: version, add, remove, and key columns. Adds that a later add of
        the same path with another deletion vector replaced are included; `newest_adds` drops them.
    """
    of_file = f"PARTITION BY {_PATH}, {_DV} ORDER BY version DESC, {_IS_ADD} DESC"
    last_add = f"max(CASE WHEN {_IS_ADD} THEN version END) OVER (PARTITION BY {_PATH})"
    return (
        _identified(keyed)
        .selectExpr("*", f"row_number() OVER ({of_file}) AS _rank", f"{last_add} AS {_PATH_ADDED}")
        .filter("_rank = 1")
        .drop("_rank")
    )


def superseding_keys(keyed: DataFrame) -> DataFrame:
    """Return the keys of `keyed_file_actions`, which supersede earlier actions."""
    return _identified(keyed).selectExpr(_PATH, _DV, _IS_ADD, f"xxhash64({_PATH}) AS {_HASH}")


def superseding_files(files: DataFrame) -> DataFrame:
    """Return files without deletion vectors in the columns of `superseding_keys`.

    `files` has path STRING (canonical), is_add BOOLEAN.
    """
    return files.selectExpr(
        f"path AS {_PATH}", f"'' AS {_DV}", f"is_add AS {_IS_ADD}", f"xxhash64(path) AS {_HASH}"
    )


def _identified(keyed: DataFrame) -> DataFrame:
    # Spark reuses an exchange only for the same columns. Whole actions and the version are
    # referenced here so that column pruning does not make the exchanges differ.
    vector = deletion_vector_id(
        "CASE WHEN remove IS NULL THEN add.deletionVector ELSE remove.deletionVector END"
    )
    is_add = "version IS NOT NULL AND add IS NOT NULL AND add.path IS NOT NULL"
    return keyed.selectExpr(
        "version", "add", "remove", _PATH, f"{vector} AS {_DV}", f"{is_add} AS {_IS_ADD}"
    )


def contradicting_commits(actions: DataFrame, *, table_root: str) -> DataFrame:
    """Return the versions (version LONG) with an add and a remove of the same logical file."""
    identified = _identified(keyed_file_actions(actions, table_root=table_root, is_local=True))
    kinds = F.count_distinct(_IS_ADD).alias("kinds")
    return (
        grouped(identified, ["version", _PATH, _DV], kinds)
        .filter("kinds > 1")
        .select("version")
        .distinct()
    )


def newest_adds(newest: DataFrame) -> DataFrame:
    """Return the live add actions of `newest_file_actions`, one row per path."""
    return newest.filter(f"{_IS_ADD} AND version = {_PATH_ADDED}").select("add.*")


def newest_actions(newest: DataFrame) -> DataFrame:
    """Return the union of `newest_adds` and `newest_removes` (add STRUCT, remove STRUCT)."""
    live = f"NOT {_IS_ADD} OR version = {_PATH_ADDED}"
    return newest.filter(live).select("add", "remove")


def newest_removes(newest: DataFrame) -> DataFrame:
    """Return the remove actions (tombstones) of `newest_file_actions`."""
    return newest.filter(f"NOT {_IS_ADD}").select("remove.*")


def surviving_actions(
    actions: DataFrame,
    keys: DataFrame,
    *,
    are_adds: bool,
    table_root: str,
    broadcast_keys: bool,
    join: str = "left_anti",
) -> DataFrame:
    """Return the adds or the removes of a checkpoint that no later commit supersedes.

    Parameters
    ----------
    actions
        The fields of the actions, at least path and deletionVector.
    keys
        The `superseding_keys` of the commits after the checkpoint.
    broadcast_keys
        True to broadcast the keys; False to let Spark choose the join.
    join
        ``left_semi`` for the superseded actions instead.
    """
    superseded = _SUPERSEDED_ADD if are_adds else _SUPERSEDED_REMOVE
    keyed = actions.selectExpr(
        "*",
        f"{canonical_path('path', table_root=table_root)} AS c{_PATH}",
        f"{deletion_vector_id('deletionVector')} AS c{_DV}",
    )
    # Most rows of a checkpoint match no key, and comparing hashes takes half the time of comparing
    # paths. The equality of paths is written so that Spark does not make it a join key.
    same_path = f"startswith(c{_PATH}, {_PATH}) AND length(c{_PATH}) <= length({_PATH})"
    return keyed.join(
        F.broadcast(keys) if broadcast_keys else keys,
        F.expr(f"xxhash64(c{_PATH}) = {_HASH} AND {same_path} AND {superseded}"),
        join,
    ).drop(f"c{_PATH}", f"c{_DV}")


def surviving_actions_by_path(
    actions: DataFrame,
    *,
    added: Sequence[str],
    removed: Sequence[str],
    are_adds: bool,
    table_root: str,
) -> DataFrame:
    """Filter the actions of a checkpoint as `surviving_actions` does, without a join.

    For commits with few files, none of which has a deletion vector.

    Parameters
    ----------
    added, removed
        The canonical paths of the files that the commits after the checkpoint add and remove.
    """
    path = canonical_path("path", table_root=table_root)
    has_no_vector = f"{deletion_vector_id('deletionVector')} = ''"
    if are_adds:  # an add of the path supersedes all, a remove the one of its logical file
        superseded = [_is_one_of(path, added), f"{_is_one_of(path, removed)} AND {has_no_vector}"]
    else:
        superseded = [f"{_is_one_of(path, [*added, *removed])} AND {has_no_vector}"]
    return actions.filter(" AND ".join(f"NOT ({each})" for each in superseded))


def _is_one_of(path: str, paths: Sequence[str]) -> str:
    return f"{path} IN ({', '.join(map(text_literal, paths))})" if paths else "FALSE"


def newest_by_key(actions: DataFrame, *, action: str, key: str) -> DataFrame:
    """Return the newest action of each key: `txn` by appId, or `domainMetadata` by domain.

    Domain metadata with `removed=true` is included.

    Parameters
    ----------
    actions
        version LONG and a struct column named `action`; rows of a checkpoint have version -1.
    """
    newest = "row_number() OVER (PARTITION BY _key ORDER BY version DESC)"
    return (
        actions.selectExpr("version", action, f"{action}.{key} AS _key")
        .filter("_key IS NOT NULL")
        .selectExpr(action, f"{newest} AS _rank")
        .filter("_rank = 1")
        .select(f"{action}.*")
    )
