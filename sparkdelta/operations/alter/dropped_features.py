"""The statement that drops a table feature, and the traces of features in a table's versions.

References
----------
PROTOCOL.md#supported-features, PROTOCOL.md#active-features, PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.actions import DomainMetadata
from sparkdelta.base.protocol.feature_registry import FEATURES, Drop, TableFeature, known_feature
from sparkdelta.base.protocol.log_files import LogFileKind
from sparkdelta.base.protocol.protocol_upgrades import upgraded_protocol, without_feature
from sparkdelta.base.protocol.row_ids import ROW_TRACKING_DOMAIN
from sparkdelta.base.protocol.settable_properties import CONSTRAINT, PREFIX
from sparkdelta.base.protocol.table_features import is_supported, supported_features
from sparkdelta.base.protocol.table_properties import PROTECTED_VERSION
from sparkdelta.base.schema.column_mapping import COLUMN_ID
from sparkdelta.base.schema.spatial_types import has_spatial
from sparkdelta.base.schema.type_folds import fields_within
from sparkdelta.base.schema.type_widening import TYPE_CHANGES
from sparkdelta.base.spark.driver import has_rows
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.definition.alteration import Alteration, alteration, with_schema
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import readable_commits
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.snapshot.listed_actions import find_domain
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot

DROPPABLE = {feature: rules.drop for feature, rules in FEATURES.items() if rules.drop is not None}
"""The features that can be dropped."""

_COLUMN_KEYS = {
    TableFeature.COLUMN_MAPPING: COLUMN_ID,
    TableFeature.TYPE_WIDENING: TYPE_CHANGES,
}
"""The keys that a feature leaves in the metadata of columns."""

_TRACES = {
    TableFeature.COLUMN_MAPPING: (
        "lower(metaData.configuration['delta.columnMapping.mode']) != 'none'"
    ),
    TableFeature.DELETION_VECTORS: (
        "add.deletionVector.storageType IS NOT NULL "
        "OR remove.deletionVector.storageType IS NOT NULL "
        "OR lower(metaData.configuration['delta.enableDeletionVectors']) = 'true'"
    ),
    TableFeature.TYPE_WIDENING: "contains(metaData.schemaString, '\"delta.typeChanges\"')",
    TableFeature.V2_CHECKPOINT: "lower(metaData.configuration['delta.checkpointPolicy']) = 'v2'",
}
"""Conditions on the actions of commits, as SQL. `vacuumProtocolCheck` leaves nothing in the log."""


def checked_drop(snapshot: Snapshot, name: str, *, truncates_history: bool) -> TableFeature:
    """Return the feature of this name, if it can be dropped from the table."""
    table, feature = snapshot.configuration, known_feature(name)
    if feature is None and name.lower().startswith(PREFIX):
        raise DeltaError.of("DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY", property=name)
    if feature is None:
        raise DeltaError.of("DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE", feature=name)
    if not is_supported(table.protocol, feature):
        raise DeltaError.of(
            "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", feature=name, path=snapshot.path
        )
    drop = FEATURES[feature].drop
    if drop is None:
        droppable = tuple(each.value for each in DROPPABLE)
        raise DeltaError.of(
            "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", feature=name, droppable=droppable
        )
    is_protection = feature is TableFeature.CHECKPOINT_PROTECTION
    if truncates_history and not (drop.hides_history or is_protection):
        raise DeltaError.of("DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED", feature=name)
    if is_protection and not truncates_history:
        raise DeltaError.of(
            "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
            path=snapshot.path,
        )
    dependents = [
        other.value
        for other in sorted(supported_features(table.protocol), key=lambda each: each.value)
        if feature in FEATURES[other].needs
    ]
    if dependents:
        raise DeltaError.of(
            "DELTA_FEATURE_DROP_DEPENDENT_FEATURE", feature=name, dependents=tuple(dependents)
        )
    constraints = tuple(
        key.removeprefix(CONSTRAINT) for key in table.properties if key.startswith(CONSTRAINT)
    )
    if feature is TableFeature.CHECK_CONSTRAINTS and constraints:
        raise DeltaError.of("DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE", constraints=constraints)
    spatial = tuple(f.name for f in table.schema.fields if has_spatial(f.dataType))
    if feature is TableFeature.GEOSPATIAL and spatial:
        raise DeltaError.of("DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE", columns=spatial)
    return feature


def stopped_use(snapshot: Snapshot, feature: TableFeature) -> Alteration | None:
    """Return the alteration that keeps writers from using a feature; None if none is needed."""
    table, stops = snapshot.configuration, _drop(feature).stops
    if not stops or not _is_enabled(table, feature):
        return None
    values = {name: value for name, value in stops.items() if value is not None}
    rest = {name: value for name, value in table.properties.items() if name not in stops}
    after = with_schema(table, table.schema, properties={**rest, **values})
    change = DefinitionChange(table, after)
    if values:
        return alteration(change, "SET TBLPROPERTIES", {"properties": values})
    shown = {"properties": list(stops), "ifExists": True}
    return alteration(change, "UNSET TBLPROPERTIES", shown)


def uses(table: TableConfiguration, feature: TableFeature) -> bool:
    """Return True if the properties or the columns of a table use a feature.

    Properties that are dropped with the feature do not count.
    """
    key = _COLUMN_KEYS.get(feature)
    if key is not None and any(
        key in (f.metadata or {}) for _, f, _ in fields_within(table.schema)
    ):
        return True
    lasts = bool(_drop(feature).stops) or feature is TableFeature.COLUMN_MAPPING
    return lasts and _is_enabled(table, feature)


def _is_enabled(table: TableConfiguration, feature: TableFeature) -> bool:
    properties, stops = table.properties, _drop(feature).stops
    if feature is TableFeature.ROW_TRACKING:  # writers use it unless it is suspended
        return any(properties.get(name) != value for name, value in stops.items())
    return any(
        properties.get(name, "").lower() == value for name, value in FEATURES[feature].enabled_by
    )


def files_with_traces(snapshot: Snapshot, feature: TableFeature) -> DataFrame | None:
    """Return the live files that use a feature; None if actions do not show its use.

    The columns are those that `Snapshot.add_files` returns.
    """
    condition = {
        TableFeature.DELETION_VECTORS: "deletionVector.storageType IS NOT NULL",
        TableFeature.ROW_TRACKING: "baseRowId IS NOT NULL OR defaultRowCommitVersion IS NOT NULL",
    }.get(feature)
    return None if condition is None else snapshot.add_files().filter(condition)


def has_traces(snapshot: Snapshot, feature: TableFeature) -> bool:
    """Return True if the version uses a feature, by its properties, columns or files."""
    if uses(snapshot.configuration, feature):
        return True
    files = files_with_traces(snapshot, feature)
    if files is None:
        return False
    traces = files.select(F.lit(1))
    return has_rows(traces, what="file that uses a feature", version=snapshot.version)


def history_has_traces(snapshot: Snapshot, feature: TableFeature) -> bool:
    """Return True if a commit in the log, or its earliest readable version, uses a feature."""
    log = snapshot.log
    files = [f for f in list_log_files(log.store) if f.version <= snapshot.version]
    if feature is TableFeature.V2_CHECKPOINT and any(
        file.kind is LogFileKind.UUID_CHECKPOINT for file in files
    ):
        return True
    commits = readable_commits(files, path=snapshot.path)
    first = commits[0].version
    if first > 0:
        earliest = open_snapshot(log.spark, snapshot.path, version=first, store=log.store)
        if has_traces(earliest, feature):
            return True
    condition = _TRACES.get(feature)
    if condition is None:
        return False
    actions = CommitRange.read(log.reader, commits).actions("add", "remove", "metaData")
    versions = actions.filter(condition).select("version")
    return has_rows(versions, what="version that uses a feature")


def dropped_feature(
    snapshot: Snapshot, name: str, feature: TableFeature, *, truncates_history: bool
) -> Alteration:
    """Return the alteration that drops a feature without traces in the table.

    If earlier versions need the feature and stay, they are hidden behind checkpoints that other
    writers must not delete; the commit must follow `snapshot` immediately.
    """
    table, drop = snapshot.configuration, _drop(feature)
    properties = {k: v for k, v in table.properties.items() if k not in drop.unsets}
    protocol = table.protocol
    if drop.hides_history and not truncates_history:
        protection = TableFeature.CHECKPOINT_PROTECTION.value
        protocol = upgraded_protocol(protocol, (protection,))
        properties[PROTECTED_VERSION] = str(snapshot.version + 1)
    unused = with_schema(replace(table, protocol=protocol), table.schema, properties=properties)
    after = replace(unused, protocol=without_feature(unused.protocol, feature))
    domains = _removed_domain(snapshot) if feature is TableFeature.ROW_TRACKING else ()
    shown = {"featureName": name, "truncateHistory": truncates_history}
    statement = alteration(DefinitionChange(table, after, domains), "DROP FEATURE", shown)
    return replace(statement, dropped_features=frozenset((feature.value,)))


def _removed_domain(snapshot: Snapshot) -> tuple[DomainMetadata, ...]:
    """Return the removal of the domain of row tracking, if the table has it."""
    domain = find_domain(snapshot, ROW_TRACKING_DOMAIN)
    return () if domain is None else (replace(domain, removed=True),)


def _drop(feature: TableFeature) -> Drop:
    drop = FEATURES[feature].drop
    assert drop is not None
    return drop
