"""The definition of a table after a commit, and the creation and replacement of tables.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#table-features-for-new-and-existing-tables,
PROTOCOL.md#change-data-files, PROTOCOL.md#writer-requirements-for-column-mapping,
PROTOCOL.md#writer-requirements-for-row-tracking, PROTOCOL.md#clustered-table,
PROTOCOL.md#writer-requirements-for-icebergcompatv2,
PROTOCOL.md#writer-requirements-for-in-commit-timestamps
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

from pyspark.sql.types import StructField, StructType

from sparkdelta.base.protocol.actions import DomainMetadata, Metadata, Protocol
from sparkdelta.base.protocol.change_types import CHANGE_COLUMNS
from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.protocol.iceberg_compatibility import (
    check_iceberg_partitioning,
    check_still_compatible,
    has_nested_ids,
    iceberg_version,
)
from sparkdelta.base.protocol.manifest_files import check_manifest_properties
from sparkdelta.base.protocol.protocol_upgrades import (
    new_protocol,
    upgraded_protocol,
)
from sparkdelta.base.protocol.settable_properties import (
    FEATURE,
    requested_properties,
    without_comment,
)
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.protocol.table_properties import (
    APPEND_ONLY,
    COLUMN_MAPPING_MODE,
    ENABLE_IN_COMMIT_TIMESTAMPS,
    ENABLE_ROW_TRACKING,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
    PROTECTED_VERSION,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    ColumnMappingMode,
    column_mapping_mode,
    has_change_data_feed,
    is_on,
)
from sparkdelta.base.schema.column_ids import (
    MAX_COLUMN_ID,
    with_column_ids,
    with_ids_of,
    without_ids,
)
from sparkdelta.base.schema.column_mapping import physical_path
from sparkdelta.base.schema.declared_columns import check_clustering_columns, check_declared
from sparkdelta.base.schema.needed_features import needed_features
from sparkdelta.base.schema.nested_ids import with_nested_ids
from sparkdelta.base.schema.statistics_columns import check_statistics_columns
from sparkdelta.base.schema.type_folds import fields_within
from sparkdelta.base.schema.written_schema import check_columns, check_partition_columns
from sparkdelta.base.spark.session_settings import default_properties
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.table.commit.staged_commit_rules import StagedActions
from sparkdelta.table.definition.clustering import clustering_domain
from sparkdelta.table.log.table_configuration import TableConfiguration


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """A table's definition before and after a commit.

    Raises DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS if the commit brings the change data feed and a
    column with one of its names together.

    Attributes
    ----------
    before
        None if the commit creates the table.
    domains
        The domain metadata that the commit sets.
    clustering_columns
        The physical paths of the columns that the table is clustered by.
    """

    before: TableConfiguration | None
    after: TableConfiguration
    domains: tuple[DomainMetadata, ...] = ()
    clustering_columns: tuple[ColumnPath, ...] = ()

    def __post_init__(self) -> None:
        earlier = () if self.before is None else _columns_of_changes(self.before)
        new = [name for name in _columns_of_changes(self.after) if name not in earlier]
        if new:
            raise DeltaError.of("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", columns=tuple(new))

    @property
    def actions(self) -> StagedActions:
        """The protocol and metaData that differ, and the domains."""
        return StagedActions(
            protocols=(self.after.protocol,) if self.changes_protocol else (),
            metadata=(self.after.metadata,) if self.changes_metadata else (),
            domains=self.domains,
        )

    @property
    def changes_protocol(self) -> bool:
        return self.before is None or self.before.protocol != self.after.protocol

    @property
    def changes_metadata(self) -> bool:
        return self.before is None or self.before.metadata != self.after.metadata

    @property
    def statistics_columns(self) -> tuple[ColumnPath, ...]:
        """The physical paths of the columns whose statistics new files need."""
        return tuple(dict.fromkeys((*self.after.statistics_columns, *self.clustering_columns)))


def _columns_of_changes(table: TableConfiguration) -> list[str]:
    """Return the columns with names of the change data feed, if the feed is enabled."""
    if not has_change_data_feed(table.protocol, table.properties):
        return []
    return [name for name in table.schema.names if name_key(name) in CHANGE_COLUMNS]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    """The user's description of a table.

    Attributes
    ----------
    columns
        With the metadata that makes them generated, identity or default columns, and comments.
    clustering_columns
        Names of columns, with dots for nested columns.
    is_managed
        True if the session catalog manages the table, which history shows.
    """

    columns: tuple[StructField, ...]
    partition_by: tuple[str, ...] = ()
    clustering_columns: tuple[str, ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    is_managed: bool = False


def created_table(description: TableDescription) -> DefinitionChange:
    """Return the change that creates a table, with the lowest protocol that it needs."""
    return _described_table(description, None)


def replaced_table(before: TableConfiguration, description: TableDescription) -> DefinitionChange:
    """Return the change that replaces a table; its id, features and column ids continue."""
    change = _described_table(description, before)
    after = change.after
    check_replaceable(before, after)
    if is_supported(before.protocol, TableFeature.CLUSTERING) and not change.domains:
        change = replace(change, domains=(clustering_domain(()),))
    return change


def check_replaceable(before: TableConfiguration, after: TableConfiguration) -> None:
    """Refuse a replacement with a partitioning or Iceberg version that cannot follow."""
    if is_supported(before.protocol, TableFeature.CLUSTERING) and after.partition_columns:
        problem = "a clustered table cannot be replaced by a partitioned one"
        raise InvalidArgumentError(argument="partitionedBy", problem=problem)
    check_still_compatible(before.iceberg_version, after.iceberg_version)
    check_iceberg_partitioning(
        after.iceberg_version, before.partition_columns, after.partition_columns
    )


def _described_table(
    description: TableDescription, before: TableConfiguration | None
) -> DefinitionChange:
    others, comment = without_comment(description.properties)
    requested = requested_properties(others, default_properties())
    schema = without_ids(StructType(list(description.columns)))  # they may be another table's
    mapping_mode = requested.configuration.get(COLUMN_MAPPING_MODE, "none").lower()
    if schema.fields:  # else they are added later
        check_columns(schema, any_names=mapping_mode != "none")
    check_statistics_columns(schema, requested.configuration)
    partition_columns = check_partition_columns(schema, description.partition_by)
    clustering = check_clustering_columns(schema, description.clustering_columns, partition_columns)
    check_declared(schema, partition_columns)
    properties = with_lasting_properties(requested.configuration, before)
    features = {f.value for f in needed_features(schema, properties)} | requested.features
    if is_on(properties, APPEND_ONLY):
        features.add(TableFeature.APPEND_ONLY.value)
    if any(not field.nullable for _, field, _ in fields_within(schema)):
        features.add(TableFeature.INVARIANTS.value)
    if clustering:
        features.add(TableFeature.CLUSTERING.value)
    elif TableFeature.CLUSTERING.value in requested.features:
        raise DeltaError.of(
            "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
            property=f"{FEATURE}{TableFeature.CLUSTERING.value}",
        )
    protocol = (
        new_protocol(
            features,
            reader_version=requested.reader_version,
            writer_version=requested.writer_version,
        )
        if before is None
        else upgraded_protocol(before.protocol, features)
    )
    check_manifest_properties(protocol, properties)
    if is_on(properties, ENABLE_ROW_TRACKING):
        properties = with_row_id_columns(properties)
    mode = column_mapping_mode(protocol, properties)
    if mode is not ColumnMappingMode.NONE:
        if before is not None and before.is_mapped:
            schema = with_ids_of(schema, before.schema)
        schema, properties = with_mapping(schema, protocol, properties, before)
    metadata = Metadata(
        id=str(uuid4()) if before is None else before.metadata.id,
        description=comment if description.comment is None else description.comment,
        schema_string=schema.json(),
        partition_columns=partition_columns,
        configuration=properties,
        created_time=time.time_ns() // 1_000_000,
    )
    after = TableConfiguration.of(protocol, metadata, schema)
    if not clustering:
        return DefinitionChange(before, after)
    physical = tuple(physical_path(schema, path, mode) for path in clustering)
    return DefinitionChange(before, after, (clustering_domain(physical),), physical)


def with_lasting_properties(
    requested: Mapping[str, str], before: TableConfiguration | None
) -> dict[str, str]:
    """Add to requested properties the values that survive a replacement of the table.

    These are the enablement of in-commit timestamps, the names of row id columns, and the protected
    checkpoints.
    """
    if before is None:
        return dict(requested)
    names = [ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN, PROTECTED_VERSION]
    if is_on(requested, ENABLE_IN_COMMIT_TIMESTAMPS) and before.in_commit_timestamps.enabled:
        names += [IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION, IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP]
    earlier = before.properties
    return {**requested, **{name: earlier[name] for name in names if name in earlier}}


def with_row_id_columns(properties: Mapping[str, str]) -> dict[str, str]:
    """Name the columns that store row ids and row commit versions, unless they are named."""
    names = {
        ROW_ID_COLUMN: f"_row-id-col-{uuid4()}",
        ROW_COMMIT_VERSION_COLUMN: f"_row-commit-version-col-{uuid4()}",
    }
    return {**names, **properties}


def with_mapping(
    schema: StructType,
    protocol: Protocol,
    properties: Mapping[str, str],
    before: TableConfiguration | None,
) -> tuple[StructType, dict[str, str]]:
    """Assign ids and physical names to the columns that have none."""
    earlier = {} if before is None else before.properties
    schema, last = with_column_ids(schema, max_id=int(earlier.get(MAX_COLUMN_ID, "0")))
    if has_nested_ids(iceberg_version(protocol, properties)):
        schema, last = with_nested_ids(schema, max_id=last)
    return schema, {**properties, MAX_COLUMN_ID: str(last)}
