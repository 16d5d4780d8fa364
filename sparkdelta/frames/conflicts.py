"""What the many file actions of a winning commit did to a transaction's ground.

The same findings as `protocol.conflicts.file_findings`, by names, for more actions than a driver
should hold.

References
----------
PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.frames.data_skipping import NOTHING_STORED, DataSkipping
from sparkdelta.frames.file_keys import canonical_path
from sparkdelta.protocol.conflicts import Finding, added_finding

FINDING, SUBJECT, KEY = "finding", "subject", "key"


def conflicting_files(
    actions: DataFrame,
    *,
    reads_whole_table: bool,
    skipping: Sequence[DataSkipping],
    read_files: DataFrame | None,
    removed_files: DataFrame | None,
    is_blind_append: bool,
    table_root: str,
) -> DataFrame:
    """The findings about file actions, each with a file that shows it.

    Parameters
    ----------
    actions
        add STRUCT, remove STRUCT of one commit.
    skipping
        The predicates of what the transaction read: a file that may hold a match counts.
    read_files, removed_files
        key STRING, the canonical paths of what the transaction read and removes; None for nothing.

    Returns
    -------
    DataFrame
        finding STRING, the name of a `Finding`, unique; subject STRING.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    adds = actions.filter("add.path IS NOT NULL").select("add.*")
    removes = actions.filter("remove.path IS NOT NULL").select("remove.path")
    keyed = removes.withColumn(KEY, F.expr(canonical_path("path", table_root=table_root)))
    added = added_finding(is_blind_append=is_blind_append)
    found = []
    if reads_whole_table:
        found += [_named(adds, added), _named(removes, Finding.REMOVED_WHAT_WAS_READ)]
    else:
        found += [_named(each.keep(adds, NOTHING_STORED), added) for each in skipping]
    for files, finding in (
        (read_files, Finding.REMOVED_WHAT_WAS_READ),
        (removed_files, Finding.REMOVED_WHAT_IS_REMOVED),
    ):
        if files is not None:
            found.append(_named(keyed.join(files, KEY, "left_semi"), finding))
    nothing = _named(removes.filter(F.lit(False)), Finding.REMOVED_WHAT_WAS_READ)
    return (
        reduce(DataFrame.unionAll, found, nothing)
        .groupBy(FINDING)
        .agg(F.min(SUBJECT).alias(SUBJECT))
    )


def _named(files: DataFrame, finding: Finding) -> DataFrame:
    return files.select(F.lit(finding.name).alias(FINDING), F.col("path").alias(SUBJECT))
