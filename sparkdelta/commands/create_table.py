"""A table without rows: made, or made anew in the place of one that is there.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#protocol-evolution
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from sparkdelta.engine.sessions import is_connect
from sparkdelta.exceptions import (
    AppendOnlyTableError,
    InvalidArgumentError,
    MissingReplacedTableError,
    NonEmptyLocationError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from sparkdelta.protocol.conflicts import ReadSet
from sparkdelta.protocol.iceberg_compatibility import check_iceberg_partitioning, iceberg_version
from sparkdelta.protocol.log_files import Version
from sparkdelta.protocol.property_rules import requested_properties
from sparkdelta.protocol.staged_commit import Operation, StagedActions
from sparkdelta.protocol.table_features import TableFeature, is_supported
from sparkdelta.protocol.table_properties import COLUMN_MAPPING_MODE, is_append_only
from sparkdelta.protocol.write_support import check_data_writable
from sparkdelta.schema.column_ids import without_ids
from sparkdelta.schema.declared_columns import check_clustering_columns, check_declared
from sparkdelta.schema.iceberg_types import check_iceberg_types
from sparkdelta.schema.row_rules import row_rules
from sparkdelta.schema.statistics_columns import check_statistics_columns
from sparkdelta.schema.written_schema import check_columns, check_partition_columns
from sparkdelta.storage.log_store import LogStore
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.log.listing import open_log_for_writing
from sparkdelta.table.maintenance.commit_hooks import run_commit_hooks
from sparkdelta.table.snapshot import Snapshot, open_snapshot
from sparkdelta.table.write.clustering import clustering_domain
from sparkdelta.table.write.definition import TableDefinition, defined_table
from sparkdelta.table.write.options import WriteOptions
from sparkdelta.table.write.replacement import replacement
from sparkdelta.table.write.rule_expressions import check_expressions


class Creation(Enum):
    """What to do about a table that is there."""

    CREATE = "create"
    CREATE_IF_NOT_EXISTS = "create if not exists"
    REPLACE = "replace"
    CREATE_OR_REPLACE = "create or replace"


_OPERATIONS = {
    Creation.REPLACE: "REPLACE TABLE",
    Creation.CREATE_OR_REPLACE: "CREATE OR REPLACE TABLE",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    """A table as a user describes it.

    Attributes
    ----------
    columns
        With the metadata that makes them generated, identity or default columns, and comments.
    clustering_columns
        As text: names, with dots in between for nested ones.
    """

    columns: tuple[StructField, ...]
    partition_by: tuple[str, ...] = ()
    clustering_columns: tuple[str, ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def create_table(
    spark: SparkSession,
    path: str,
    description: TableDescription,
    creation: Creation,
) -> Version | None:
    """Commit a table without rows; None where there was nothing to do.

    Raises
    ------
    TableAlreadyExistsError, TableNotFoundError
        There is a table and none may be, or there is none to replace.
    NonEmptyLocationError
        There is no table, but something else.
    DeltaError
        What is described can be no table, or nothing could be committed.

    References
    ----------
    PROTOCOL.md#table-features-for-new-and-existing-tables
    """
    store = open_log_for_writing(spark, path)
    try:
        snapshot = open_snapshot(spark, path, store=store)
    except TableNotFoundError:
        if creation is Creation.REPLACE:
            raise MissingReplacedTableError(path=store.table_root) from None
        snapshot = None
        if not store.is_alone():
            raise NonEmptyLocationError(path=store.table_root) from None
    if snapshot is not None and creation is Creation.CREATE:
        raise TableAlreadyExistsError(path=store.table_root)
    if snapshot is not None and creation is Creation.CREATE_IF_NOT_EXISTS:
        return None
    definition = _definition(description, snapshot)
    # What a table is asked to be from its first version on must be carried out by whoever makes it.
    check_data_writable(definition.protocol, path=store.table_root)
    _check_iceberg(definition, snapshot)
    rules = row_rules(
        definition.schema,
        definition.protocol,
        definition.metadata.configuration,
        path=store.table_root,
    )
    if is_connect(spark) and (rules.generated or rules.constraints):
        problem = (
            "a Spark Connect client cannot check that an expression depends only on the row; "
            "create the table from a classic session"
        )
        raise InvalidArgumentError(argument="generatedAlwaysAs", problem=problem)
    check_expressions(spark, definition.schema, rules)
    transaction = _transaction(spark, store, snapshot, definition, description, creation)
    done = transaction.commit()
    run_commit_hooks(done)
    return done.version


def _definition(description: TableDescription, snapshot: Snapshot | None) -> TableDefinition:
    requested = requested_properties(description.properties)
    schema = without_ids(StructType(list(description.columns)))  # they may be another table's
    mode = requested.configuration.get(COLUMN_MAPPING_MODE, "none").lower()
    check_columns(schema, any_names=mode != "none")
    check_statistics_columns(schema, requested.configuration)
    partition_columns = check_partition_columns(schema, description.partition_by)
    clustering = check_clustering_columns(schema, description.clustering_columns, partition_columns)
    check_declared(schema, partition_columns)
    definition = defined_table(
        schema,
        requested,
        partition_columns=partition_columns,
        clustering_columns=clustering or None,
        description=description.comment,
        earlier=None if snapshot is None else snapshot.configuration,
    )
    if (
        snapshot is None
        or clustering
        or not is_supported(snapshot.protocol, TableFeature.CLUSTERING)
    ):
        return definition
    if partition_columns:
        problem = "a clustered table cannot be replaced by a partitioned one"
        raise InvalidArgumentError(argument="partitionedBy", problem=problem)
    nothing = clustering_domain(schema, (), snapshot.configuration.column_mapping)
    return replace(definition, domains=(nothing,))


def _check_iceberg(definition: TableDefinition, snapshot: Snapshot | None) -> None:
    metadata = definition.metadata
    version = iceberg_version(definition.protocol, metadata.configuration)
    check_iceberg_types(definition.schema, version)
    if snapshot is not None:
        before = [field.name for field in snapshot.configuration.partition_fields]
        check_iceberg_partitioning(version, before, metadata.partition_columns)


def _transaction(
    spark: SparkSession,
    store: LogStore,
    snapshot: Snapshot | None,
    definition: TableDefinition,
    description: TableDescription,
    creation: Creation,
) -> Transaction:
    replaced = None
    if snapshot is not None:
        if is_append_only(snapshot.protocol, snapshot.properties):
            raise AppendOnlyTableError(path=snapshot.path)
        replaced = replacement(snapshot, WriteOptions(mode="overwrite"))
    is_changed = snapshot is None or definition.protocol != snapshot.protocol
    return Transaction(
        spark=spark,
        store=store,
        snapshot=snapshot,
        operation=Operation(
            _OPERATIONS.get(creation, "CREATE TABLE"), _parameters(definition, description)
        ),
        staged=StagedActions(
            protocols=(definition.protocol,) if is_changed else (),
            metadata=(definition.metadata,),
            domains=definition.domains,
        ),
        file_actions=None if replaced is None else replaced.removes,
        read=ReadSet() if replaced is None else replaced.read,
    )


def _parameters(definition: TableDefinition, description: TableDescription) -> dict[str, str]:
    def text(value: object) -> str:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    comment = {} if description.comment is None else {"description": description.comment}
    return {
        "isManaged": "false",
        **comment,
        "partitionBy": text(list(definition.metadata.partition_columns)),
        "clusterBy": text(list(description.clustering_columns)),
        "properties": text(dict(description.properties)),
    }
