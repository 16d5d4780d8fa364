"""Create a table without rows, or replace one.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#protocol-evolution
"""

from __future__ import annotations

import json
from enum import Enum

from pyspark.sql import SparkSession

from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.exceptions import (
    AppendOnlyTableError,
    InvalidArgumentError,
    MissingReplacedTableError,
    NonEmptyLocationError,
    TableAlreadyExistsError,
)
from sparkdelta.protocol.conflicts import ReadSet
from sparkdelta.protocol.log_files import Version
from sparkdelta.protocol.staged_commit import Operation
from sparkdelta.protocol.table_properties import is_append_only
from sparkdelta.protocol.write_support import check_data_writable
from sparkdelta.schema.iceberg_types import check_iceberg_types
from sparkdelta.schema.row_rules import row_rules
from sparkdelta.storage.log_store import LogStore
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.configuration import TableConfiguration
from sparkdelta.table.log.listing import open_log_for_writing
from sparkdelta.table.maintenance.commit_hooks import run_commit_hooks
from sparkdelta.table.snapshot import Snapshot, find_snapshot
from sparkdelta.table.write.rewriting import rewrite_all
from sparkdelta.table.write.rule_expressions import check_expressions
from sparkdelta.table.write.table_change import (
    TableChange,
    TableDescription,
    created_table,
    replaced_table,
)


class Creation(Enum):
    """The ways to create a table, which differ if one exists."""

    CREATE = "create"
    CREATE_IF_NOT_EXISTS = "create if not exists"
    REPLACE = "replace"
    CREATE_OR_REPLACE = "create or replace"


_OPERATIONS = {
    Creation.REPLACE: "REPLACE TABLE",
    Creation.CREATE_OR_REPLACE: "CREATE OR REPLACE TABLE",
}


def create_table(
    spark: SparkSession,
    path: str,
    description: TableDescription,
    creation: Creation,
) -> Version | None:
    """Commit a table without rows; return None if there was nothing to do.

    Raises
    ------
    TableAlreadyExistsError, TableNotFoundError
        The table exists already, or there is none to replace.
    NonEmptyLocationError
        The location has other files and no table.
    DeltaError
        The description is not valid, or the commit failed.

    References
    ----------
    PROTOCOL.md#table-features-for-new-and-existing-tables
    """
    store = open_log_for_writing(spark, path)
    snapshot = find_snapshot(spark, store)
    if snapshot is None:
        if creation is Creation.REPLACE:
            raise MissingReplacedTableError(path=store.table_root)
        if not store.is_alone():
            raise NonEmptyLocationError(path=store.table_root)
        change = created_table(description)
    elif creation is Creation.CREATE:
        raise TableAlreadyExistsError(path=store.table_root)
    elif creation is Creation.CREATE_IF_NOT_EXISTS:
        return None
    else:
        change = replaced_table(snapshot.configuration, description)
    # The commit must follow the features that it enables.
    check_data_writable(change.after.protocol, path=store.table_root)
    check_iceberg_types(change.after.schema, change.after.iceberg_version)
    _check_rules(spark, change.after, path=store.table_root)
    transaction = _transaction(spark, store, snapshot, change, description, creation)
    done = transaction.commit()
    run_commit_hooks(done)
    return done.version


def _check_rules(spark: SparkSession, table: TableConfiguration, *, path: str) -> None:
    rules = row_rules(table.schema, table.protocol, table.properties, path=path)
    if not engine_of(spark).sees_plans and (rules.generated or rules.constraints):
        problem = (
            "a Spark Connect client cannot check that an expression depends only on the row; "
            "create the table from a classic session"
        )
        raise InvalidArgumentError(argument="generatedAlwaysAs", problem=problem)
    check_expressions(spark, table.schema, rules)


def _transaction(
    spark: SparkSession,
    store: LogStore,
    snapshot: Snapshot | None,
    change: TableChange,
    description: TableDescription,
    creation: Creation,
) -> Transaction:
    rewrite = None
    if snapshot is not None:
        if is_append_only(snapshot.protocol, snapshot.properties):
            raise AppendOnlyTableError(path=snapshot.path)
        rewrite = rewrite_all(snapshot)
    return Transaction(
        spark=spark,
        store=store,
        snapshot=snapshot,
        operation=Operation(
            _OPERATIONS.get(creation, "CREATE TABLE"), _parameters(change.after, description)
        ),
        staged=change.actions,
        file_actions=None if rewrite is None else rewrite.removes,
        read=ReadSet() if rewrite is None else rewrite.read,
    )


def _parameters(table: TableConfiguration, description: TableDescription) -> dict[str, str]:
    def text(value: object) -> str:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    comment = {} if description.comment is None else {"description": description.comment}
    return {
        "isManaged": "false",
        **comment,
        "partitionBy": text(list(table.partition_columns)),
        "clusterBy": text(list(description.clustering_columns)),
        "properties": text(dict(description.properties)),
    }
