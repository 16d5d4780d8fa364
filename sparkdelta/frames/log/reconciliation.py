"""Action Reconciliation: what of a checkpoint and the commits after it is the state of the table.

::

    SELECT action FROM newest(commits)
    UNION ALL
    SELECT c.action FROM checkpoint c LEFT ANTI JOIN commits k ON c.file = k.file

Only the commits are grouped. The checkpoint is reconciled in itself, so it is only filtered by the
commits' keys: it is never grouped, and not shuffled where the keys can be broadcast.

References
----------
PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.frames.log.file_keys import canonical_path, deletion_vector_id

_PATH, _DV, _IS_ADD, _PATH_ADDED, _HASH = "_path", "_dv", "_is_add", "_path_added", "_hash"
_SUPERSEDED_ADD = f"({_DV} = c{_DV} OR {_IS_ADD})"
_SUPERSEDED_REMOVE = f"{_DV} = c{_DV}"


def keyed_file_actions(actions: DataFrame, *, table_root: str, is_local: bool) -> DataFrame:
    """The file actions of a range of commits, with the keys that say which file they speak of.

    What must be together is brought together here, whole and once: `newest_file_actions` and
    `superseding_keys` of one such frame share the exchange, and the log is parsed once for both.

    Parameters
    ----------
    actions
        version LONG, add STRUCT, remove STRUCT; other columns are ignored.
    is_local
        Whether it is one partition already.
    """
    path = canonical_path("coalesce(add.path, remove.path)", table_root=table_root)
    return keyed_actions(actions, path, is_local=is_local)


def keyed_actions(actions: DataFrame, key: str, *, is_local: bool) -> DataFrame:
    """As `keyed_file_actions`, by any key, in SQL: what has none is left out."""
    keyed = actions.selectExpr("version", "add", "remove", f"{key} AS {_PATH}").filter(
        f"{_PATH} IS NOT NULL"
    )
    return keyed if is_local else keyed.repartition(_PATH)


def newest_file_actions(keyed: DataFrame) -> DataFrame:
    """The newest reference to each logical file in a range of commits.

    Inside one commit the protocol allows one action of a kind per file; where a real table breaks
    that, the add wins over the remove of the same logical file, and equal adds count once.

    Parameters
    ----------
    keyed
        As `keyed_file_actions` gives them.

    Returns
    -------
    DataFrame
        One row per logical file: version, add, remove, and key columns. Adds that a later add of
        the same path with another deletion vector replaced are kept, as keys only.
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
    """The keys of all file actions of a range of commits: what they say replaces what was before.

    Parameters
    ----------
    keyed
        As `keyed_file_actions` gives them.
    """
    return _identified(keyed).selectExpr(_PATH, _DV, _IS_ADD, f"xxhash64({_PATH}) AS {_HASH}")


def _identified(keyed: DataFrame) -> DataFrame:
    # Users of one frame share its exchange only if they ask for the same columns of it: hence both
    # actions as a whole, and the version, although they could be known not to be null.
    vector = deletion_vector_id(
        "CASE WHEN remove IS NULL THEN add.deletionVector ELSE remove.deletionVector END"
    )
    is_add = "version IS NOT NULL AND add IS NOT NULL AND add.path IS NOT NULL"
    return keyed.selectExpr(
        "version", "add", "remove", _PATH, f"{vector} AS {_DV}", f"{is_add} AS {_IS_ADD}"
    )


def doubled_files(actions: DataFrame, *, table_root: str) -> DataFrame:
    """version LONG: the versions that hold an add and a remove of the same logical file.

    Parameters
    ----------
    actions
        version LONG, add STRUCT, remove STRUCT.
    """
    return (
        _identified(keyed_file_actions(actions, table_root=table_root, is_local=True))
        .groupBy("version", _PATH, _DV)
        .agg(F.count_distinct(_IS_ADD).alias("kinds"))
        .filter("kinds > 1")
        .select("version")
        .distinct()
    )


def newest_adds(newest: DataFrame) -> DataFrame:
    """The add actions of `newest_file_actions` that are live after it: one row per path."""
    return newest.filter(f"{_IS_ADD} AND version = {_PATH_ADDED}").select("add.*")


def newest_actions(newest: DataFrame) -> DataFrame:
    """add STRUCT, remove STRUCT: `newest_adds` and `newest_removes` in one, a row for each."""
    live = f"NOT {_IS_ADD} OR version = {_PATH_ADDED}"
    return newest.filter(live).select("add", "remove")


def newest_removes(newest: DataFrame) -> DataFrame:
    """The remove actions of `newest_file_actions`: its tombstones."""
    return newest.filter(f"NOT {_IS_ADD}").select("remove.*")


def surviving_adds(
    checkpoint_adds: DataFrame, keys: DataFrame, *, table_root: str, broadcast_keys: bool
) -> DataFrame:
    """The adds of a checkpoint that the commits after it say nothing about.

    Parameters
    ----------
    checkpoint_adds
        The fields of the add action, at least path and deletionVector.
    keys
        `superseding_keys` of the commits after the checkpoint.
    broadcast_keys
        Whether the keys are known to be few enough; else Spark chooses.
    """
    return _surviving(
        checkpoint_adds, keys, _SUPERSEDED_ADD, table_root=table_root, broadcast_keys=broadcast_keys
    )


def surviving_removes(
    checkpoint_removes: DataFrame, keys: DataFrame, *, table_root: str, broadcast_keys: bool
) -> DataFrame:
    """The tombstones of a checkpoint that the commits after it say nothing about."""
    return _surviving(
        checkpoint_removes,
        keys,
        _SUPERSEDED_REMOVE,
        table_root=table_root,
        broadcast_keys=broadcast_keys,
    )


def superseded_actions(
    checkpoint_actions: DataFrame,
    keys: DataFrame,
    *,
    are_adds: bool,
    table_root: str,
    broadcast_keys: bool,
) -> DataFrame:
    """The adds or removes of a checkpoint that do not survive the commits after it."""
    return _surviving(
        checkpoint_actions,
        keys,
        _SUPERSEDED_ADD if are_adds else _SUPERSEDED_REMOVE,
        table_root=table_root,
        broadcast_keys=broadcast_keys,
        join="left_semi",
    )


def _surviving(
    checkpoint: DataFrame,
    keys: DataFrame,
    superseded: str,
    *,
    table_root: str,
    broadcast_keys: bool,
    join: str = "left_anti",
) -> DataFrame:
    keyed = checkpoint.selectExpr(
        "*",
        f"{canonical_path('path', table_root=table_root)} AS c{_PATH}",
        f"{deletion_vector_id('deletionVector')} AS c{_DV}",
    )
    # Most of a checkpoint meets no key, and a hash tells so in half the time that a path takes.
    # What follows says that the paths are equal, in a way that makes them no key of the join.
    same_path = f"startswith(c{_PATH}, {_PATH}) AND length(c{_PATH}) <= length({_PATH})"
    return keyed.join(
        F.broadcast(keys) if broadcast_keys else keys,
        F.expr(f"xxhash64(c{_PATH}) = {_HASH} AND {same_path} AND {superseded}"),
        join,
    ).drop(f"c{_PATH}", f"c{_DV}")


def newest_by_key(actions: DataFrame, *, action: str, key: str) -> DataFrame:
    """The newest action of each key: `txn` by appId, `domainMetadata` by domain, tombstones
    included.

    Parameters
    ----------
    actions
        version LONG and a struct column named `action`; a checkpoint's rows have version -1.

    Returns
    -------
    DataFrame
        The fields of the action, one row per key.
    """
    newest = "row_number() OVER (PARTITION BY _key ORDER BY version DESC)"
    return (
        actions.selectExpr("version", action, f"{action}.{key} AS _key")
        .filter("_key IS NOT NULL")
        .selectExpr(action, f"{newest} AS _rank")
        .filter("_rank = 1")
        .select(f"{action}.*")
    )
