"""Statements that set and unset table properties, and thereby enable table features.

References
----------
PROTOCOL.md#table-features-for-new-and-existing-tables, PROTOCOL.md#active-features,
PROTOCOL.md#change-metadata, PROTOCOL.md#writer-requirements-for-icebergcompatv1,
PROTOCOL.md#writer-requirements-for-icebergcompatv2,
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.iceberg_compatibility import (
    ENABLE_ICEBERG,
    ROW_TRACKING_VERSION,
    check_enabled_later,
    check_files,
    check_still_compatible,
    iceberg_version,
)
from sparkdelta.base.protocol.manifest_files import check_manifest_properties
from sparkdelta.base.protocol.protocol_upgrades import upgraded_protocol, with_versions
from sparkdelta.base.protocol.retention import DELETED_FILE_RETENTION, LOG_RETENTION
from sparkdelta.base.protocol.settable_properties import (
    COMMENT,
    CONSTRAINT,
    PREFIX,
    RequestedProperties,
    changed_properties,
    check_retention,
    check_row_tracking,
    without_comment,
)
from sparkdelta.base.protocol.table_features import TableFeature
from sparkdelta.base.protocol.table_properties import (
    APPEND_ONLY,
    COLUMN_MAPPING_MODE,
    ENABLE_ROW_TRACKING,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    ColumnMappingMode,
    assigns_row_ids,
    column_mapping_mode,
    is_on,
)
from sparkdelta.base.schema.column_ids import MAX_COLUMN_ID, with_own_names, without_ids
from sparkdelta.base.schema.needed_features import needed_features
from sparkdelta.base.schema.statistics_columns import check_statistics_columns
from sparkdelta.base.spark.driver import has_rows, read_row
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.operations.alter.unmapped_table import unmapped_table
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.definition.alteration import (
    Alteration,
    Preparation,
    alteration,
    with_schema,
)
from sparkdelta.table.definition.definition_change import DefinitionChange, with_row_id_columns
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot

_OF_ENGINES = frozenset(
    (
        MAX_COLUMN_ID, ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN,
        IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION, IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
        "delta.requireCheckpointProtectionBeforeVersion",
    )
)  # fmt: skip
"""Properties with which engines interpret the files of the table."""


def set_properties(snapshot: Snapshot, properties: Mapping[str, str]) -> Alteration:
    """Return the alteration that sets properties and enables the features that they require."""
    if not properties:
        raise InvalidArgumentError(argument="properties", problem="there are none")
    others, comment = without_comment(properties)
    requested = changed_properties(others)
    for name in requested.configuration:
        if name.startswith(CONSTRAINT):
            raise DeltaError.of("DELTA_ADD_CONSTRAINTS", name=name.removeprefix(CONSTRAINT))
    if TableFeature.CLUSTERING.value in requested.features:
        raise DeltaError.of(
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED", path=snapshot.path
        )
    table, preparation = snapshot.configuration, None
    features = requested.features
    if requested.configuration.get(COLUMN_MAPPING_MODE, "").lower() == "none" and table.is_mapped:
        table, preparation = unmapped_table(snapshot).after, Preparation.NO_MAPPING
    if is_on(requested.configuration, APPEND_ONLY):
        features |= {TableFeature.APPEND_ONLY.value}
    configuration = {**table.properties, **requested.configuration}
    if is_on(requested.configuration, ENABLE_ICEBERG[ROW_TRACKING_VERSION]):
        tracking = requested.configuration.get(ENABLE_ROW_TRACKING, "true")
        configuration[ENABLE_ROW_TRACKING] = tracking
    after = with_properties(
        table, replace(requested, configuration=configuration, features=features)
    )
    read = None
    if after.row_tracking.enabled and not table.row_tracking.enabled:
        if _has_files_without_row_ids(snapshot):
            preparation = preparation or Preparation.ROW_IDS
        elif not assigns_row_ids(table.protocol, table.properties):
            read = ReadSet(whole_table=True)  # others write files without ids until this commit
    if after.iceberg_version not in (None, table.iceberg_version):
        _check_files(snapshot, after)
        read = ReadSet(whole_table=True)
    if after.row_tracking.enabled:
        configuration = with_row_id_columns(after.properties)
        after = with_schema(after, after.schema, properties=configuration)
    if comment is not None:
        after = replace(after, metadata=replace(after.metadata, description=comment))
    shown = {"properties": dict(properties)}
    statement = alteration(DefinitionChange(table, after), "SET TBLPROPERTIES", shown, read)
    return replace(statement, preparation=preparation)


def unset_properties(
    snapshot: Snapshot, names: Collection[str], *, if_exists: bool = False
) -> Alteration:
    """Return the alteration that removes properties; the table's features stay."""
    if not names or isinstance(names, str):
        raise InvalidArgumentError(argument="names", problem="it must be a list of properties")
    table = snapshot.configuration
    spelled = {_own_spelling(table, name) for name in names}
    missing = sorted(spelled - table.properties.keys() - {COLUMN_MAPPING_MODE, COMMENT})
    if missing and not if_exists:
        raise DeltaError.of(
            "DELTA_UNSET_NON_EXISTENT_PROPERTY", property=missing[0], path=snapshot.path
        )
    for name in sorted(spelled & _OF_ENGINES):
        problem = "engines need it to read the table, and it cannot be unset"
        raise InvalidArgumentError(argument=name, problem=problem)
    preparation = None
    if COLUMN_MAPPING_MODE in spelled and table.is_mapped:
        table, preparation = unmapped_table(snapshot).after, Preparation.NO_MAPPING_PROPERTY
    rest = {name: value for name, value in table.properties.items() if name not in spelled}
    after = with_properties(table, RequestedProperties(rest))
    if COMMENT in spelled:
        after = replace(after, metadata=replace(after.metadata, description=None))
    shown = {"properties": list(names), "ifExists": True}  # as delta-spark, whatever was asked for
    statement = alteration(DefinitionChange(table, after), "UNSET TBLPROPERTIES", shown)
    return replace(statement, preparation=preparation)


def _own_spelling(table: TableConfiguration, name: str) -> str:
    """Return a property's name as the table spells it; names of the protocol match in any case."""
    spellings = {key.lower(): key for key in table.properties if key.lower().startswith(PREFIX)}
    return spellings.get(name.lower(), name)


def with_properties(
    table: TableConfiguration, requested: RequestedProperties
) -> TableConfiguration:
    """Return the table with these properties instead of its own, and the features they need."""
    configuration = requested.configuration
    periods = LOG_RETENTION, DELETED_FILE_RETENTION
    if any(configuration.get(each) != table.properties.get(each) for each in periods):
        check_retention(configuration)
    check_row_tracking(configuration)
    check_statistics_columns(table.schema, configuration)
    protocol = with_versions(
        table.protocol,
        reader_version=requested.reader_version,
        writer_version=requested.writer_version,
    )
    needed = {feature.value for feature in needed_features(table.schema, configuration)}
    protocol = upgraded_protocol(protocol, needed | requested.features)
    mode, schema = column_mapping_mode(protocol, configuration), table.schema
    if mode is not table.column_mapping:
        if mode is not ColumnMappingMode.NAME or table.is_mapped:
            raise DeltaError.of(
                "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
                before=table.column_mapping.value,
                after=mode.value,
            )
        schema = with_own_names(without_ids(schema))
    version = iceberg_version(protocol, configuration)
    check_still_compatible(table.iceberg_version, version)
    if version is not None and version != table.iceberg_version:
        check_enabled_later(version, tracks_rows=table.row_tracking.enabled)
    check_manifest_properties(protocol, configuration)
    return with_schema(
        TableConfiguration.of(
            protocol, replace(table.metadata, configuration=configuration), schema
        ),
        schema,
    )


def _check_files(snapshot: Snapshot, after: TableConfiguration) -> None:
    """Check that the files allow the Iceberg compatibility that the table gets."""
    has_vector = F.col("deletionVector.storageType").isNotNull()
    files = snapshot.add_files().agg(F.max(has_vector))
    [has_vectors] = read_row(files, what="file with a deletion vector")  # null without files
    check_files(
        after.iceberg_version or 0,
        has_vectors=bool(has_vectors),
        lacks_partition_columns=has_vectors is not None and bool(after.partition_columns),
    )


def _has_files_without_row_ids(snapshot: Snapshot) -> bool:
    """Return True if files must get row ids before row tracking is enabled."""
    return has_rows(files_without_row_ids(snapshot).select("path"), what="file without row ids")


def files_without_row_ids(snapshot: Snapshot) -> DataFrame:
    """Return the live files without row ids, with the columns of `Snapshot.add_files`."""
    return snapshot.add_files().filter(F.col("baseRowId").isNull())
