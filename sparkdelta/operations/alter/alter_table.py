"""Commit the changes of an ``ALTER TABLE`` statement.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#protocol-evolution
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.write_support import check_data_writable
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.operations.alter.alteration_commits import commit_alteration
from sparkdelta.operations.alter.preparations import prepare
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.definition.alteration import Alteration
from sparkdelta.table.definition.writable import check_table_writable
from sparkdelta.table.listing.listing import open_log_for_writing
from sparkdelta.table.listing.missing_tables import with_not_found_hint
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot

Statement = Callable[[Snapshot], Alteration]


def alter(
    spark: SparkSession,
    path: str,
    statement: Statement,
    options: Mapping[str, str] | None = None,
) -> Version | None:
    """Commit the changes of a statement to a table; return None if it changes nothing.

    Preparations of the statement are committed first, each in a commit of its own.

    Raises
    ------
    TableNotFoundError
    DeltaConcurrentModificationException
        Another commit changed the table, or rows that the statement depends on.
    DeltaError
        The statement is not valid for the table, or the table cannot be written.
    """
    with with_not_found_hint(spark, path):
        store = open_log_for_writing(spark, path, options)
        snapshot = open_snapshot(spark, path, store=store, options=options or {})
    check_data_writable(snapshot.protocol, path=snapshot.path)
    with jobs_of(snapshot.path, snapshot.version):
        alteration = statement(snapshot)
        while alteration.preparation is not None:
            for prepared in prepare(snapshot, alteration.preparation):
                run_commit_hooks(prepared)
                snapshot = prepared.snapshot
            snapshot = snapshot.refresh()
            alteration = statement(snapshot)
        change = alteration.change
        # The commit must follow the features that it enables.
        check_table_writable(change.after, path=snapshot.path)
        if not (change.changes_protocol or change.changes_metadata or change.domains):
            return None
        done = commit_alteration(snapshot, alteration)
    run_commit_hooks(done)
    return done.version
