"""Remove all rows of a table, without reading them.

References
----------
PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.rows.removed_files import remove_actions
from sparkdelta.table.rows.row_changes import open_changeable


def truncate(spark: SparkSession, path: str) -> Version:
    """Commit that a table has no files any more, and return the version.

    Raises
    ------
    DELTA_CANNOT_MODIFY_APPEND_ONLY
        The table is append-only.
    DeltaConcurrentModificationException
        Another commit changed the table.
    """
    snapshot = open_changeable(spark, path)
    done = Transaction.of(
        snapshot,
        Operation("TRUNCATE", metrics={}),
        file_actions=remove_actions(snapshot.add_files()),
        read=ReadSet(whole_table=True),
    ).commit()
    run_commit_hooks(done)
    return done.version
