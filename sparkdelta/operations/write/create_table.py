"""Create a table without rows, or replace one.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#protocol-evolution,
PROTOCOL.md#table-features-for-new-and-existing-tables
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.table_properties import is_append_only
from sparkdelta.base.schema.table_constraints import row_rules
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.copy.cloned_table import cloned_table
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.definition.alteration import shown_definition
from sparkdelta.table.definition.definition_change import (
    DefinitionChange,
    TableDescription,
    created_table,
    replaced_table,
)
from sparkdelta.table.definition.rule_expressions import check_default, check_expressions
from sparkdelta.table.definition.writable import check_table_writable
from sparkdelta.table.listing.listing import open_log_for_writing
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.removed_files import remove_actions
from sparkdelta.table.snapshot.snapshot import Snapshot, find_snapshot, open_snapshot


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
) -> None:
    """Commit a table without rows, unless one exists that is to be left as it is.

    Raises
    ------
    DELTA_TABLE_ALREADY_EXISTS, TableNotFoundError
        The table exists already, or there is none to replace.
    DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION
        The location has other files and no table.
    DeltaError
        The description is not valid, or the commit failed.
    """
    store = open_log_for_writing(spark, path)
    snapshot = find_snapshot(spark, store)
    if not _is_wanted(store, snapshot, creation):
        return
    if snapshot is None:
        change = created_table(description)
    else:
        change = replaced_table(snapshot.configuration, description)
    shown = shown_definition(
        change.after, description.clustering_columns, is_managed=description.is_managed
    )
    operation = Operation(_OPERATIONS.get(creation, "CREATE TABLE"), shown)
    _commit(spark, store, snapshot, change, operation)


def create_table_like(
    spark: SparkSession,
    source: str,
    path: str,
    properties: Mapping[str, str],
    creation: Creation,
    *,
    is_managed: bool,
) -> None:
    """Commit a table without rows that has the schema, features, description and properties of
    another table; the given properties take precedence. Nothing is committed if a table exists that
    is to be left.
    """
    like = open_snapshot(spark, source)
    store = open_log_for_writing(spark, path)
    if not _is_wanted(store, find_snapshot(spark, store), creation):
        return
    change = cloned_table(like, None, properties)
    metadata = replace(change.after.metadata, description=like.metadata.description)
    change = replace(change, after=replace(change.after, metadata=metadata))
    operation = Operation("CREATE TABLE", shown_definition(change.after, is_managed=is_managed))
    _commit(spark, store, None, change, operation)


def _is_wanted(store: LogStore, snapshot: Snapshot | None, creation: Creation) -> bool:
    """Return True if the table is to be created or replaced; False if it exists and stays as it is.

    Raises
    ------
    DELTA_TABLE_ALREADY_EXISTS, TableNotFoundError, DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION
    """
    if snapshot is not None:
        if creation is Creation.CREATE:
            raise DeltaError.of("DELTA_TABLE_ALREADY_EXISTS", path=store.table_root)
        return creation is not Creation.CREATE_IF_NOT_EXISTS
    if creation is Creation.REPLACE:
        raise DeltaError.of("DELTA_CANNOT_REPLACE_MISSING_TABLE", path=store.table_root)
    if not store.is_alone():
        raise DeltaError.of("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", path=store.table_root)
    return True


def _commit(
    spark: SparkSession,
    store: LogStore,
    snapshot: Snapshot | None,
    change: DefinitionChange,
    operation: Operation,
) -> None:
    # The commit must follow the features that it enables.
    check_table_writable(change.after, path=store.table_root)
    _check_rules(spark, change.after, path=store.table_root)
    removes = None
    if snapshot is not None:
        if is_append_only(snapshot.protocol, snapshot.properties):
            raise DeltaError.of("DELTA_CANNOT_MODIFY_APPEND_ONLY", path=snapshot.path)
        removes = remove_actions(snapshot.add_files())
    done = Transaction(
        spark=spark,
        store=store,
        snapshot=snapshot,
        operation=operation,
        staged=change.actions,
        file_actions=removes,
        read=ReadSet(whole_table=snapshot is not None),
    ).commit()
    run_commit_hooks(done)


def _check_rules(spark: SparkSession, table: TableConfiguration, *, path: str) -> None:
    rules = row_rules(table.schema, table.protocol, table.properties, path=path)
    for field in table.schema.fields:
        if field.name in rules.defaults:
            check_default(spark, field, statement="CREATE TABLE")
    if rules.generated or rules.constraints:
        with engine_of(spark).write_session() as session:
            check_expressions(session, table.schema, rules)
