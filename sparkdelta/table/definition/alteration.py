"""Alterations of a table by one statement, and how the history describes them.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#protocol-evolution,
PROTOCOL.md#writer-requirements-for-column-mapping, PROTOCOL.md#active-features
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pyspark.sql.types import StructType

from sparkdelta.base.protocol.commit_info import Parameter
from sparkdelta.base.protocol.protocol_upgrades import upgraded_protocol
from sparkdelta.base.schema.needed_features import needed_features
from sparkdelta.table.commit.committer import Committer
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import CommittedTransaction, Transaction
from sparkdelta.table.definition.definition_change import DefinitionChange, with_mapping
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot


class Preparation(Enum):
    """The commits of files that must precede a statement."""

    ROW_IDS = "row ids for files without them"
    NO_MAPPING = "column mapping is removed"
    NO_MAPPING_PROPERTY = "column mapping is removed, with the property"


@dataclass(frozen=True, slots=True)
class Alteration:
    """The change that a statement makes to a table, and its operation in the history.

    Attributes
    ----------
    read
        The rows that the statement depends on, for conflict detection.
    dropped_features
        Names of table features that the protocol loses.
    preparation
        The work to commit first, after which the statement is evaluated again; None if there is
        none.
    """

    change: DefinitionChange
    operation: Operation
    read: ReadSet
    dropped_features: frozenset[str] = frozenset()
    preparation: Preparation | None = None

    def commit(
        self, snapshot: Snapshot, committer: Committer | None = None
    ) -> CommittedTransaction:
        """Commit the change to the table, of which the statement read a snapshot."""
        return Transaction.of(
            snapshot,
            self.operation,
            staged=self.change.actions,
            read=self.read,
            dropped_features=self.dropped_features,
        ).commit(committer)


def alteration(
    change: DefinitionChange,
    name: str,
    parameters: Mapping[str, object],
    read: ReadSet | None = None,
) -> Alteration:
    """Return an alteration; lists and maps among its parameters are shown as JSON texts."""
    shown = {
        key: value if isinstance(value, str | int) else shown_json(value)
        for key, value in parameters.items()
    }
    operation = Operation(name, shown, is_blind_append=read is None)
    return Alteration(change, operation, read or ReadSet())


def shown_definition(
    table: TableConfiguration,
    clustering_columns: Sequence[str] = (),
    *,
    is_managed: bool = False,
) -> dict[str, Parameter]:
    """Return the history's parameters of an operation that creates or replaces a table."""
    return {
        "isManaged": str(is_managed).lower(),
        "description": table.metadata.description,
        "partitionBy": shown_json(table.partition_columns),
        "clusterBy": shown_json(clustering_columns),
        "properties": shown_json(table.properties),
    }


def shown_json(value: object) -> str:
    """Return a value as JSON without blanks, as in the parameters of an operation."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def with_schema(
    table: TableConfiguration,
    schema: StructType,
    *,
    partition_columns: tuple[str, ...] | None = None,
    properties: Mapping[str, str] | None = None,
) -> TableConfiguration:
    """Return a table with another schema, properties and partition columns.

    New columns get ids if columns are mapped; the protocol gets the features that the schema needs.
    """
    properties = table.properties if properties is None else properties
    if table.is_mapped:
        schema, properties = with_mapping(schema, table.protocol, properties, table)
    features = {feature.value for feature in needed_features(schema, properties)}
    metadata = replace(
        table.metadata,
        schema_string=schema.json(),
        partition_columns=(
            table.metadata.partition_columns if partition_columns is None else partition_columns
        ),
        configuration=dict(properties),
    )
    return TableConfiguration.of(upgraded_protocol(table.protocol, features), metadata, schema)
