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

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from sparkdelta.frames.file_keys import canonical_path, deletion_vector_id

_PATH, _DV, _IS_ADD, _PATH_ADDED = "_path", "_dv", "_is_add", "_path_added"


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
    path = canonical_path(F.coalesce("add.path", "remove.path"), table_root=table_root)
    return keyed_actions(actions, path, is_local=is_local)


def keyed_actions(actions: DataFrame, key: Column, *, is_local: bool) -> DataFrame:
    """As `keyed_file_actions`, by any key: what has none is left out."""
    keyed = actions.select("version", "add", "remove", key.alias(_PATH)).filter(
        F.col(_PATH).isNotNull()
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
    of_file = Window.partitionBy(_PATH, _DV).orderBy(F.desc("version"), F.desc(_IS_ADD))
    of_path = Window.partitionBy(_PATH)
    last_add = F.max(F.when(F.col(_IS_ADD), F.col("version"))).over(of_path)
    return (
        _identified(keyed)
        .select("*", F.row_number().over(of_file).alias("_rank"), last_add.alias(_PATH_ADDED))
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
    return _identified(keyed).select(_PATH, _DV, _IS_ADD)


def _identified(keyed: DataFrame) -> DataFrame:
    # Users of one frame share its exchange only if they ask for the same columns of it: hence the
    # add as a whole, and its version, although they could be known not to be null.
    vector = F.coalesce("add.deletionVector", "remove.deletionVector")
    is_add = F.col("version").isNotNull() & F.col("add").isNotNull() & F.col("add.path").isNotNull()
    return keyed.select(
        "version",
        "add",
        "remove",
        _PATH,
        deletion_vector_id(vector).alias(_DV),
        is_add.alias(_IS_ADD),
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
    live = F.col(_IS_ADD) & (F.col("version") == F.col(_PATH_ADDED))
    return newest.filter(live).select("add.*")


def newest_actions(newest: DataFrame) -> DataFrame:
    """add STRUCT, remove STRUCT: `newest_adds` and `newest_removes` in one, a row for each."""
    live = ~F.col(_IS_ADD) | (F.col("version") == F.col(_PATH_ADDED))
    return newest.filter(live).select("add", "remove")


def newest_removes(newest: DataFrame) -> DataFrame:
    """The remove actions of `newest_file_actions`: its tombstones."""
    return newest.filter(~F.col(_IS_ADD)).select("remove.*")


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
    superseded = (F.col(_DV) == F.col(f"c{_DV}")) | F.col(_IS_ADD)
    return _surviving(
        checkpoint_adds, keys, superseded, table_root=table_root, broadcast_keys=broadcast_keys
    )


def surviving_removes(
    checkpoint_removes: DataFrame, keys: DataFrame, *, table_root: str, broadcast_keys: bool
) -> DataFrame:
    """The tombstones of a checkpoint that the commits after it say nothing about."""
    superseded = F.col(_DV) == F.col(f"c{_DV}")
    return _surviving(
        checkpoint_removes, keys, superseded, table_root=table_root, broadcast_keys=broadcast_keys
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
    superseded = F.col(_DV) == F.col(f"c{_DV}")
    return _surviving(
        checkpoint_actions,
        keys,
        superseded | F.col(_IS_ADD) if are_adds else superseded,
        table_root=table_root,
        broadcast_keys=broadcast_keys,
        join="left_semi",
    )


def _surviving(
    checkpoint: DataFrame,
    keys: DataFrame,
    superseded: Column,
    *,
    table_root: str,
    broadcast_keys: bool,
    join: str = "left_anti",
) -> DataFrame:
    keyed = checkpoint.select(
        "*",
        canonical_path(F.col("path"), table_root=table_root).alias(f"c{_PATH}"),
        deletion_vector_id(F.col("deletionVector")).alias(f"c{_DV}"),
    )
    return keyed.join(
        F.broadcast(keys) if broadcast_keys else keys,
        (F.col(f"c{_PATH}") == F.col(_PATH)) & superseded,
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
    newest = Window.partitionBy("_key").orderBy(F.desc("version"))
    return (
        actions.filter(F.col(f"{action}.{key}").isNotNull())
        .select("version", action, F.col(f"{action}.{key}").alias("_key"))
        .select(action, F.row_number().over(newest).alias("_rank"))
        .filter("_rank = 1")
        .select(f"{action}.*")
    )
