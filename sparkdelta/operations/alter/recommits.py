"""Commits that add live files again with changed fields, a bounded number at a time.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.spark.driver import count_rows
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaConcurrentModificationException
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction, Transaction
from sparkdelta.table.log.commit_line_frames import add_fields
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import staging

MAX_BATCH_FILES = 100_000
"""The approximate maximum number of files in a commit."""

MAX_ROUNDS = 20
"""Rounds that may fail because another commit removed files."""

_BATCH = "batch"


def recommit(
    snapshot: Snapshot,
    select_files: Callable[[Snapshot], DataFrame],
    facts: Mapping[str, str],
    operation: str,
) -> Iterator[CommittedTransaction]:
    """Commit files again with changed fields, until a function selects none.

    A commit has only adds, without `dataChange`. It does not conflict with other commits that only
    add files; if one removed a file, the remaining files are selected anew.

    Parameters
    ----------
    select_files
        Returns the files of a version with the columns of `Snapshot.add_files`.
    facts
        SQL of the changed fields of an add, by name.
    operation
        The name of the operation in history.
    """
    number = rounds = 0
    while True:
        failure = None
        with (
            engine_of(snapshot.log.spark).log_session() as session,
            staging(session, snapshot.log.store) as stage,
        ):
            looked_up = select_files(snapshot.in_session(session))
            count = count_rows(looked_up, what="number of files to commit again")
            if not count:
                return
            batches = -(-count // MAX_BATCH_FILES)
            add = add_fields(snapshot.configuration.statistics, dataChange="false", **facts)
            actions = looked_up.selectExpr(
                f"pmod(xxhash64(path), {batches}L) AS {_BATCH}", f"{add} AS add"
            )
            if batches > 1:  # each commit then reads the files of its own batch
                actions = actions.repartitionByRange(batches, _BATCH)
            staged = stage.compute_once(actions, "files")
            read = snapshot  # files removed after it conflict, and are not added again
            for batch in range(batches):
                files = staged.filter(F.col(_BATCH) == batch).select("add")
                try:
                    done = _commit(read, files, Operation(operation, {"batchId": str(number)}))
                except DeltaConcurrentModificationException as error:
                    failure = error
                    break
                number += 1
                yield done
                snapshot = done.snapshot
                if snapshot.version == read.version + 1:  # no other writer committed in between
                    read = snapshot
        if failure is not None:
            rounds += 1
            if rounds == MAX_ROUNDS:
                raise failure
            before, snapshot = snapshot, snapshot.refresh()
            if snapshot.is_altered_since(before):
                raise failure


def _commit(snapshot: Snapshot, files: DataFrame, operation: Operation) -> CommittedTransaction:
    read = files.select("add.path")
    return Transaction.of(snapshot, operation, file_actions=files, read_files=read).commit()
