"""The definition of a clone, and the files of a shallow clone.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#add-file-and-remove-file,
PROTOCOL.md#table-features-for-new-and-existing-tables, PROTOCOL.md#identity-columns,
PROTOCOL.md#writer-requirements-for-row-tracking, PROTOCOL.md#deletion-vector-descriptor-schema
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

from pyspark.sql import DataFrame

from sparkdelta.base.protocol.actions import DomainMetadata
from sparkdelta.base.protocol.iceberg_compatibility import check_same_version
from sparkdelta.base.protocol.protocol_upgrades import upgraded_protocol, without_feature
from sparkdelta.base.protocol.settable_properties import CONSTRAINT, changed_properties
from sparkdelta.base.protocol.table_features import TableFeature, is_supported, supported_features
from sparkdelta.base.protocol.table_properties import (
    COLUMN_MAPPING_MODE,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
)
from sparkdelta.base.schema.column_ids import MAX_COLUMN_ID
from sparkdelta.base.schema.table_constraints import with_marks
from sparkdelta.base.schema.table_schema import parse_table_schema
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.alter.altered_properties import with_properties
from sparkdelta.table.definition.clustering import clustering_columns, clustering_domain
from sparkdelta.table.definition.definition_change import (
    DefinitionChange,
    check_replaceable,
    with_lasting_properties,
    with_row_id_columns,
)
from sparkdelta.table.log.absolute_file_frames import absolute_uri, absolute_vector
from sparkdelta.table.log.commit_line_frames import add_fields
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.identity_columns import identity_marks
from sparkdelta.table.snapshot.snapshot import Snapshot

NO_ROW_IDS = {
    "baseRowId": "CAST(NULL AS LONG)",
    "defaultRowCommitVersion": "CAST(NULL AS LONG)",
    "dataChange": "true",
}
"""The facts of an add action whose rows are new to the table."""

_OF_ONE_TABLE = frozenset(
    (
        ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN,
        IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION, IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
        "delta.requireCheckpointProtectionBeforeVersion",
    )
)  # fmt: skip
"""Properties that depend on the versions or row ids of a table."""


def cloned_table(
    source: Snapshot, target: Snapshot | None, properties: Mapping[str, str]
) -> DefinitionChange:
    """Return the definition of a clone of the source, as a new table or a replacement.

    A replaced table keeps its id, name, description and features, and its column ids and identity
    values continue. Rows of new files get new row ids.
    """
    before = None if target is None else target.configuration
    after = _with_overrides(source.configuration, properties)
    schema_text, protocol = after.metadata.schema_string or "", after.protocol
    configuration = {k: v for k, v in after.properties.items() if k not in _OF_ONE_TABLE}
    configuration = with_lasting_properties(configuration, before)
    if before is not None:
        features = {feature.value for feature in supported_features(protocol)}
        protocol = upgraded_protocol(before.protocol, features)
        if before.column_mapping is not after.column_mapping:
            raise DeltaError.of(
                "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
                before=before.column_mapping.value,
                after=after.column_mapping.value,
            )
        if marks := identity_marks(before, after):
            schema_text = with_marks(schema_text, marks)
        if MAX_COLUMN_ID in configuration:
            ids = (table.properties.get(MAX_COLUMN_ID, "0") for table in (before, after))
            configuration[MAX_COLUMN_ID] = str(max(map(int, ids)))
    if after.row_tracking.enabled:
        configuration = with_row_id_columns(configuration)
    replaced = None if before is None else before.metadata
    metadata = replace(
        after.metadata,
        id=str(uuid4()) if replaced is None else replaced.id,
        name=None if replaced is None else replaced.name,
        description=None if replaced is None else replaced.description,
        created_time=time.time_ns() // 1_000_000 if replaced is None else replaced.created_time,
        schema_string=schema_text,
        configuration=configuration,
    )
    schema = parse_table_schema(schema_text, path=source.path)
    after = TableConfiguration.of(protocol, metadata, schema)
    if before is not None:
        check_replaceable(before, after)
    return DefinitionChange(before, after, _domains(source, before))


def shallow_files(source: Snapshot) -> DataFrame:
    """Return add actions (add STRUCT) that name files and deletion vectors by absolute paths."""
    root = source.path
    add = add_fields(
        source.configuration.statistics,
        path=absolute_uri("path", table_root=root),
        deletionVector=absolute_vector("deletionVector", table_root=root),
        **NO_ROW_IDS,
    )
    return source.add_files().selectExpr(f"{add} AS add")


def _with_overrides(
    source: TableConfiguration, properties: Mapping[str, str]
) -> TableConfiguration:
    requested = changed_properties(properties)
    for name in requested.configuration:
        if name.startswith(CONSTRAINT):
            raise DeltaError.of("DELTA_ADD_CONSTRAINTS", name=name.removeprefix(CONSTRAINT))
    configuration = {**source.properties, **requested.configuration}
    source_mode = source.column_mapping.value
    mode = requested.configuration.get(COLUMN_MAPPING_MODE, source_mode).lower()
    if mode != source_mode:
        raise DeltaError.of(
            "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", before=source_mode, after=mode
        )
    # A catalog manages the tables that it was told of, not their clones.
    if is_supported(source.protocol, TableFeature.CATALOG_MANAGED):
        protocol = without_feature(source.protocol, TableFeature.CATALOG_MANAGED)
        source = replace(source, protocol=protocol)
    after = with_properties(source, replace(requested, configuration=configuration))
    check_same_version(source.iceberg_version, after.iceberg_version)
    return after


def _domains(source: Snapshot, before: TableConfiguration | None) -> tuple[DomainMetadata, ...]:
    """Return the domains of a clone: clustering columns alone, as other domains are unknown."""
    columns = clustering_columns(source)
    if columns is None and before is not None:
        is_clustered = is_supported(before.protocol, TableFeature.CLUSTERING)
        columns = () if is_clustered else None
    return () if columns is None else (clustering_domain(columns),)
