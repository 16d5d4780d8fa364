"""Conflicts with the file actions of a large winning commit.

`table.commit.conflict_rules.file_conflicts` implements the same rules in Python for actions that
fit on the driver; `tests/table/commit/test_conflict_frames.py` compares the two.

References
----------
PROTOCOL.md#action-reconciliation, PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.schema.file_key_frames import canonical_path
from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, DataSkipping
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.table.commit.conflict_rules import (
    Conflict,
    conflict_of_added_file,
    conflict_of_removed_file,
)

CONFLICT, SUBJECT, KEY = "conflict", "subject", "key"


def conflicting_files(
    actions: DataFrame,
    *,
    adds_rows: bool = True,
    reads_whole_table: bool,
    leaves_rows: bool,
    skipping: Sequence[DataSkipping],
    read_files: DataFrame | None,
    removed_files: DataFrame | None,
    is_blind_append: bool,
    table_root: str,
) -> DataFrame:
    """Return the conflicts with the file actions of a commit, each with the path of one file.

    Parameters
    ----------
    actions
        add STRUCT, remove STRUCT: the file actions of one commit.
    adds_rows
        False if the added files were there before, with the same rows.
    reads_whole_table
        True if the transaction read the whole table: any added or removed file is a conflict.
    leaves_rows
        See `ReadSet.leaves_rows`: any removed file is a conflict.
    skipping
        The predicates of the transaction's reads. An added file that may match is a conflict.
    read_files, removed_files
        key STRING: canonical paths of the files that the transaction read or removes; None if it
        has none.
    is_blind_append
        True if the commit is a blind append.

    Returns
    -------
    DataFrame
        conflict STRING (unique, the name of a `Conflict`), subject STRING (a path).
    """
    adds = actions.filter("add.path IS NOT NULL").select("add.*")
    removes = actions.filter("remove.path IS NOT NULL").select("remove.path")
    keyed = removes.withColumn(KEY, F.expr(canonical_path("path", table_root=table_root)))
    added = conflict_of_added_file(is_blind_append=is_blind_append)
    conflicts = []
    if reads_whole_table and adds_rows:
        conflicts.append(_as_conflict(adds, added))
    elif adds_rows:
        conflicts += [_as_conflict(each.keep(adds, NOTHING_STORED), added) for each in skipping]
    if reads_whole_table or leaves_rows:
        conflicts.append(_as_conflict(removes, Conflict.REMOVED_WHAT_WAS_READ))
    reads_files = reads_whole_table or leaves_rows or bool(skipping) or read_files is not None
    for files, conflict in (
        (read_files, Conflict.REMOVED_WHAT_WAS_READ),
        (removed_files, conflict_of_removed_file(reads_files=reads_files)),
    ):
        if files is not None:
            conflicts.append(_as_conflict(keyed.join(files, KEY, "left_semi"), conflict))
    nothing = _as_conflict(removes.filter(F.lit(False)), Conflict.REMOVED_WHAT_WAS_READ)
    found = reduce(DataFrame.unionAll, conflicts, nothing)
    return grouped(found, [CONFLICT], F.min(SUBJECT).alias(SUBJECT))


def _as_conflict(files: DataFrame, conflict: Conflict) -> DataFrame:
    return files.select(F.lit(conflict.name).alias(CONFLICT), F.col("path").alias(SUBJECT))
