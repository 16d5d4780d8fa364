"""Changes of a table's protocol, metadata and domains: a table that is created or replaced.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#table-features-for-new-and-existing-tables
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from pyspark.sql.types import StructType

from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.protocol.actions import DomainMetadata, Metadata, Protocol
from sparkdelta.protocol.iceberg_compatibility import (
    NESTED_IDS_VERSION,
    check_iceberg_partitioning,
    iceberg_version,
)
from sparkdelta.protocol.predicates import ColumnPath
from sparkdelta.protocol.property_rules import RequestedProperties
from sparkdelta.protocol.protocol_upgrades import (
    new_protocol,
    upgraded_protocol,
)
from sparkdelta.protocol.staged_commit import StagedActions
from sparkdelta.protocol.table_features import TableFeature, is_supported
from sparkdelta.protocol.table_properties import (
    ENABLE_IN_COMMIT_TIMESTAMPS,
    ENABLE_ROW_TRACKING,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    ColumnMappingMode,
    column_mapping_mode,
    is_on,
)
from sparkdelta.schema.column_ids import MAX_COLUMN_ID, with_column_ids, with_ids_of
from sparkdelta.schema.needed_features import needed_features
from sparkdelta.schema.nested_ids import with_nested_ids
from sparkdelta.schema.row_rules import with_marks
from sparkdelta.table.configuration import TableConfiguration
from sparkdelta.table.write.clustering import clustering_domain


@dataclass(frozen=True, slots=True)
class TableChange:
    """A table as a commit finds it and as it leaves it, beside its files.

    Attributes
    ----------
    before
        None if the commit creates the table.
    domains
        The domain metadata that the commit sets.
    """

    before: TableConfiguration | None
    after: TableConfiguration
    domains: tuple[DomainMetadata, ...] = ()

    @property
    def actions(self) -> StagedActions:
        """The protocol and metaData that differ, and the domains."""
        before, after = self.before, self.after
        return StagedActions(
            protocols=()
            if before is not None and before.protocol == after.protocol
            else (after.protocol,),
            metadata=() if not self.changes_metadata else (after.metadata,),
            domains=self.domains,
        )

    @property
    def changes_metadata(self) -> bool:
        return self.before is None or self.before.metadata != self.after.metadata


def created_table(
    schema: StructType,
    requested: RequestedProperties,
    *,
    partition_columns: Sequence[str] = (),
    clustering_columns: Sequence[ColumnPath] = (),
    description: str | None = None,
) -> TableChange:
    """A new table, with the lowest protocol that it needs.

    References
    ----------
    PROTOCOL.md#table-features-for-new-and-existing-tables
    """
    return _defined_table(
        None, schema, requested, partition_columns, clustering_columns, description
    )


def replaced_table(
    before: TableConfiguration,
    schema: StructType,
    requested: RequestedProperties,
    *,
    partition_columns: Sequence[str] = (),
    clustering_columns: Sequence[ColumnPath] = (),
    description: str | None = None,
) -> TableChange:
    """A table in the place of another: its id stays, its protocol keeps all features, and column
    ids go on from its own.

    Raises
    ------
    InvalidArgumentError
        The table is clustered and would be partitioned.

    References
    ----------
    PROTOCOL.md#table-features-for-new-and-existing-tables,
    PROTOCOL.md#writer-requirements-for-column-mapping,
    PROTOCOL.md#writer-requirements-for-row-tracking
    """
    change = _defined_table(
        before, schema, requested, partition_columns, clustering_columns, description
    )
    was_clustered = is_supported(before.protocol, TableFeature.CLUSTERING)
    if was_clustered and not clustering_columns:
        if partition_columns:
            problem = "a clustered table cannot be replaced by a partitioned one"
            raise InvalidArgumentError(argument="partitionedBy", problem=problem)
        nothing = clustering_domain(schema, (), before.column_mapping)
        change = replace(change, domains=(nothing,))
    check_iceberg_partitioning(
        change.after.iceberg_version, before.partition_columns, partition_columns
    )
    return change


def _defined_table(
    before: TableConfiguration | None,
    schema: StructType,
    requested: RequestedProperties,
    partition_columns: Sequence[str],
    clustering_columns: Sequence[ColumnPath],
    description: str | None,
) -> TableChange:
    properties = _with_lasting_properties(requested.configuration, before)
    features = {f.value for f in needed_features(schema, properties)} | requested.features
    if clustering_columns:
        features.add(TableFeature.CLUSTERING.value)
    protocol = (
        new_protocol(
            features,
            reader_version=requested.reader_version,
            writer_version=requested.writer_version,
        )
        if before is None
        else upgraded_protocol(before.protocol, features)
    )
    if is_on(properties, ENABLE_ROW_TRACKING):
        properties.setdefault(ROW_ID_COLUMN, f"_row-id-col-{uuid4()}")
        properties.setdefault(ROW_COMMIT_VERSION_COLUMN, f"_row-commit-version-col-{uuid4()}")
    mode = column_mapping_mode(protocol, properties)
    if mode is not ColumnMappingMode.NONE:
        if before is not None and before.is_mapped:
            schema = with_ids_of(schema, before.schema)
        schema, properties = with_mapping(schema, protocol, properties, before)
    metadata = Metadata(
        id=str(uuid4()) if before is None else before.metadata.id,
        description=description,
        schema_string=schema.json(),
        partition_columns=tuple(partition_columns),
        configuration=properties,
        created_time=time.time_ns() // 1_000_000,
    )
    after = TableConfiguration.of(protocol, metadata, schema)
    if not clustering_columns:
        return TableChange(before, after)
    return TableChange(before, after, (clustering_domain(schema, clustering_columns, mode),))


def _with_lasting_properties(
    requested: Mapping[str, str], before: TableConfiguration | None
) -> dict[str, str]:
    """The requested properties, and those that a table keeps when it is replaced: since when it has
    in-commit timestamps, and the names of the columns that hold row ids.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-in-commit-timestamps,
    PROTOCOL.md#writer-requirements-for-row-tracking
    """
    if before is None:
        return dict(requested)
    names = [ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN]
    if is_on(requested, ENABLE_IN_COMMIT_TIMESTAMPS) and before.in_commit_timestamps.enabled:
        names += [IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION, IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP]
    own = before.properties
    return {**requested, **{name: own[name] for name in names if name in own}}


def with_mapping(
    schema: StructType,
    protocol: Protocol,
    properties: Mapping[str, str],
    before: TableConfiguration | None,
) -> tuple[StructType, dict[str, str]]:
    """Schema and properties with ids and physical names for the columns that have none.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-column-mapping,
    PROTOCOL.md#writer-requirements-for-icebergcompatv2
    """
    own = {} if before is None else before.properties
    schema, last = with_column_ids(schema, max_id=int(own.get(MAX_COLUMN_ID, "0")))
    if iceberg_version(protocol, properties) == NESTED_IDS_VERSION:
        schema, last = with_nested_ids(schema, max_id=last)
    return schema, {**properties, MAX_COLUMN_ID: str(last)}


def with_high_water_marks(change: TableChange, marks: Mapping[str, int]) -> TableChange:
    """The change with new high-water marks of identity columns.

    References
    ----------
    PROTOCOL.md#identity-columns
    """
    table = change.after
    text = with_marks(table.metadata.schema_string or "", marks)
    metadata = replace(table.metadata, schema_string=text)
    schema = StructType.fromJson(json.loads(text))
    return replace(change, after=TableConfiguration.of(table.protocol, metadata, schema))
