"""Protocol, metadata and domains of a table that is made, or made anew in its place.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#table-features-for-new-and-existing-tables
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from pyspark.sql.types import StructType

from sparkdelta.protocol.actions import DomainMetadata, Metadata, Protocol
from sparkdelta.protocol.iceberg_compatibility import NESTED_IDS_VERSION, iceberg_version
from sparkdelta.protocol.predicates import ColumnPath
from sparkdelta.protocol.property_rules import RequestedProperties
from sparkdelta.protocol.protocol_upgrades import (
    new_protocol,
    upgraded_protocol,
)
from sparkdelta.protocol.table_features import TableFeature
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
from sparkdelta.table.configuration import TableConfiguration
from sparkdelta.table.write.clustering import clustering_domain


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What a table is, beside its files.

    Attributes
    ----------
    schema
        As the metadata spells it, with ids and physical names where columns are mapped.
    domains
        Those that come with it.
    """

    protocol: Protocol
    metadata: Metadata
    schema: StructType
    domains: tuple[DomainMetadata, ...] = ()


def defined_table(
    schema: StructType,
    requested: RequestedProperties,
    *,
    partition_columns: Sequence[str] = (),
    clustering_columns: Sequence[ColumnPath] | None = None,
    description: str | None = None,
    earlier: TableConfiguration | None = None,
) -> TableDefinition:
    """The definition of a table with the lowest protocol that it needs.

    Parameters
    ----------
    clustering_columns
        None for a table that is not clustered.
    earlier
        The table in whose place it comes: its id stays, its protocol loses nothing, and column ids
        go on from its own.

    References
    ----------
    PROTOCOL.md#table-features-for-new-and-existing-tables,
    PROTOCOL.md#writer-requirements-for-column-mapping,
    PROTOCOL.md#writer-requirements-for-row-tracking
    """
    configuration = _kept(requested.configuration, earlier)
    features = {f.value for f in needed_features(schema, configuration)} | requested.features
    if clustering_columns is not None:
        features.add(TableFeature.CLUSTERING.value)
    protocol = (
        new_protocol(
            features,
            reader_version=requested.reader_version,
            writer_version=requested.writer_version,
        )
        if earlier is None
        else upgraded_protocol(earlier.protocol, features)
    )
    if is_on(configuration, ENABLE_ROW_TRACKING):
        configuration.setdefault(ROW_ID_COLUMN, f"_row-id-col-{uuid4()}")
        configuration.setdefault(ROW_COMMIT_VERSION_COLUMN, f"_row-commit-version-col-{uuid4()}")
    mode = column_mapping_mode(protocol, configuration)
    if mode is not ColumnMappingMode.NONE:
        if earlier is not None and earlier.column_mapping is not ColumnMappingMode.NONE:
            schema = with_ids_of(schema, earlier.schema)
        schema, configuration = mapped(schema, protocol, configuration, earlier)
    now = time.time_ns() // 1_000_000
    metadata = Metadata(
        id=str(uuid4()) if earlier is None else earlier.metadata.id,
        description=description,
        schema_string=schema.json(),
        partition_columns=tuple(partition_columns),
        configuration=configuration,
        created_time=now,
    )
    if clustering_columns is None:
        return TableDefinition(protocol, metadata, schema)
    domain = clustering_domain(schema, clustering_columns, mode)
    return TableDefinition(protocol, metadata, schema, (domain,))


def _kept(requested: Mapping[str, str], earlier: TableConfiguration | None) -> dict[str, str]:
    """The properties asked for, with what no successor of a table may forget: since when it has
    in-commit timestamps, and the names of the columns that keep row ids.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-in-commit-timestamps,
    PROTOCOL.md#writer-requirements-for-row-tracking
    """
    if earlier is None:
        return dict(requested)
    names = [ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN]
    if is_on(requested, ENABLE_IN_COMMIT_TIMESTAMPS) and earlier.in_commit_timestamps.enabled:
        names += [IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION, IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP]
    before = earlier.properties
    return {**requested, **{name: before[name] for name in names if name in before}}


def mapped(
    schema: StructType,
    protocol: Protocol,
    configuration: Mapping[str, str],
    earlier: TableConfiguration | None,
) -> tuple[StructType, dict[str, str]]:
    """Schema and properties with ids and physical names for the columns that have none.

    References
    ----------
    PROTOCOL.md#writer-requirements-for-column-mapping,
    PROTOCOL.md#writer-requirements-for-icebergcompatv2
    """
    before = {} if earlier is None else earlier.properties
    max_id = int(before.get(MAX_COLUMN_ID, "0"))
    schema, last = with_column_ids(schema, max_id=max_id)
    if iceberg_version(protocol, configuration) == NESTED_IDS_VERSION:
        schema, last = with_nested_ids(schema, max_id=last)
    return schema, {**configuration, MAX_COLUMN_ID: str(last)}
