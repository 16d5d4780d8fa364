"""The table features, and the rules of each.

References
----------
PROTOCOL.md#table-features, PROTOCOL.md#valid-feature-names-in-table-features
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Writing(Enum):
    """The kinds of writes to a log."""

    LOG_FILES = "checkpoints, version checksums and log compactions"
    CLEANUP = "deleting old log files"
    COMMIT = "commits"
    MAINTENANCE = "OPTIMIZE, REORG, VACUUM and repairs"


ALL_WRITING = frozenset(Writing)


class TableFeature(Enum):
    """A table feature; its value is its final name.

    `TableFeature(name)` also accepts aliases, and raises ValueError for unknown names.
    """

    APPEND_ONLY = "appendOnly"
    INVARIANTS = "invariants"
    CHECK_CONSTRAINTS = "checkConstraints"
    CHANGE_DATA_FEED = "changeDataFeed"
    GENERATED_COLUMNS = "generatedColumns"
    COLUMN_MAPPING = "columnMapping"
    IDENTITY_COLUMNS = "identityColumns"
    DELETION_VECTORS = "deletionVectors"
    TIMESTAMP_NTZ = "timestampNtz"
    V2_CHECKPOINT = "v2Checkpoint"
    VACUUM_PROTOCOL_CHECK = "vacuumProtocolCheck"
    TYPE_WIDENING = "typeWidening"
    VARIANT_TYPE = "variantType"
    VARIANT_SHREDDING = "variantShredding"
    ALLOW_COLUMN_DEFAULTS = "allowColumnDefaults"
    ROW_TRACKING = "rowTracking"
    DOMAIN_METADATA = "domainMetadata"
    ICEBERG_COMPAT_V1 = "icebergCompatV1"
    ICEBERG_COMPAT_V2 = "icebergCompatV2"
    ICEBERG_COMPAT_V3 = "icebergCompatV3"
    ICEBERG_WRITER_COMPAT_V1 = "icebergWriterCompatV1"
    ICEBERG_WRITER_COMPAT_V3 = "icebergWriterCompatV3"
    CLUSTERING = "clustering"
    IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
    CHECKPOINT_PROTECTION = "checkpointProtection"
    COORDINATED_COMMITS = "coordinatedCommits-preview"
    MATERIALIZE_PARTITION_COLUMNS = "materializePartitionColumns"
    REDIRECT_WRITER_ONLY = "redirectWriterOnly-preview"
    COLLATIONS = "collations"
    CATALOG_MANAGED = "catalogManaged"
    GEOSPATIAL = "geospatial"
    ADAPTIVE_METADATA = "adaptiveMetadata-preview"
    REDIRECT_READER_WRITER = "redirectReaderWriter-preview"

    @classmethod
    def _missing_(cls, value: object) -> TableFeature | None:
        return _ALIASES.get(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """The traces that a feature leaves in a table, and the way in which dropping it removes them.

    Attributes
    ----------
    removes
        The traces that are removed before the protocol loses the feature, for documents.
    stops
        The properties that a first commit sets, or unsets where they are None, so that writers no
        longer use the feature.
    unsets
        The properties that the commit that removes the feature from the protocol unsets.
    hides_history
        True if earlier versions can only be read with the feature. Readers without it must not
        need them, so they are behind checkpoints, or are deleted.
    """

    removes: str = "nothing"
    stops: Mapping[str, str | None] = field(default_factory=dict)
    unsets: tuple[str, ...] = ()
    hides_history: bool = False


@dataclass(frozen=True, slots=True)
class FeatureRules:
    """The protocol's rules for a feature, and the extent to which it is implemented.

    Attributes
    ----------
    aliases
        Other names of the feature, most from before it was final.
    min_reader_version, min_writer_version
        The lowest legacy versions that imply it; None if it must be listed.
    needs
        The features that a table must also support.
    forbids
        The features that must not be active beside it.
    enabled_by
        The table properties that ask for it, each with the value that does, in lower case.
    column_key
        The key in the metadata of a column that asks for it.
    drop
        The way to drop it; None if it cannot be dropped.
    readable
        True if tables with the feature can be read.
    writable
        The kinds of writes to the log that are implemented for tables with the feature. See
        `table_features.check_data_writable` for requirements on data files and rows.
    reason
        The reason why reading or some kinds of writes are not implemented.
    """

    aliases: tuple[str, ...] = ()
    reader_writer: bool = False
    min_reader_version: int | None = None
    min_writer_version: int | None = None
    needs: tuple[TableFeature, ...] = ()
    forbids: tuple[TableFeature, ...] = ()
    enabled_by: tuple[tuple[str, str], ...] = ()
    column_key: str | None = None
    drop: Drop | None = None
    readable: bool = True
    writable: frozenset[Writing] = ALL_WRITING
    reason: str = "readers can ignore it"


def _unreadable(*aliases: str, reason: str) -> FeatureRules:
    return FeatureRules(
        aliases, reader_writer=True, readable=False, writable=_NO_WRITING, reason=reason
    )


def _reader(
    *aliases: str,
    needs: tuple[TableFeature, ...] = (),
    enabled_by: tuple[tuple[str, str], ...] = (),
    drop: Drop | None = None,
) -> FeatureRules:
    return FeatureRules(
        aliases,
        reader_writer=True,
        needs=needs,
        enabled_by=enabled_by,
        drop=drop,
        reason="implemented",
    )


def _on(name: str) -> tuple[tuple[str, str], ...]:
    return ((name, "true"),)


_NO_WRITING: frozenset[Writing] = frozenset()
_NOT_IN_PROTOCOL = "not part of the protocol specification"
_MODE = "delta.columnMapping.mode"

FEATURES: dict[TableFeature, FeatureRules] = {
    TableFeature.APPEND_ONLY: FeatureRules(min_writer_version=2),
    TableFeature.INVARIANTS: FeatureRules(min_writer_version=2, column_key="delta.invariants"),
    TableFeature.CHECK_CONSTRAINTS: FeatureRules(
        min_writer_version=3, drop=Drop(removes="nothing; constraints must be dropped first")
    ),
    TableFeature.CHANGE_DATA_FEED: FeatureRules(
        min_writer_version=4, enabled_by=_on("delta.enableChangeDataFeed")
    ),
    TableFeature.GENERATED_COLUMNS: FeatureRules(
        min_writer_version=4, column_key="delta.generationExpression"
    ),
    TableFeature.COLUMN_MAPPING: FeatureRules(
        reader_writer=True,
        min_reader_version=2,
        min_writer_version=5,
        enabled_by=((_MODE, "id"), (_MODE, "name")),
        drop=Drop(removes="the names of columns in files: all are rewritten", hides_history=True),
        reason="implemented",
    ),
    TableFeature.IDENTITY_COLUMNS: FeatureRules(
        min_writer_version=6, column_key="delta.identity.start"
    ),
    TableFeature.DELETION_VECTORS: _reader(
        enabled_by=_on("delta.enableDeletionVectors"),
        drop=Drop(
            removes="deletion vectors: their files are rewritten",
            stops={"delta.enableDeletionVectors": None},
            hides_history=True,
        ),
    ),
    TableFeature.TIMESTAMP_NTZ: _reader("timestampWithoutTimezone"),
    TableFeature.V2_CHECKPOINT: _reader(
        enabled_by=(("delta.checkpointPolicy", "v2"),),
        drop=Drop(
            removes="V2 checkpoints, in favor of classic ones",
            stops={"delta.checkpointPolicy": "classic"},
            hides_history=True,
        ),
    ),
    TableFeature.VACUUM_PROTOCOL_CHECK: _reader(drop=Drop(hides_history=True)),
    TableFeature.TYPE_WIDENING: _reader(
        "typeWidening-preview",
        enabled_by=_on("delta.enableTypeWidening"),
        drop=Drop(
            removes="narrower types: files that have them are rewritten",
            stops={"delta.enableTypeWidening": None},
            hides_history=True,
        ),
    ),
    TableFeature.VARIANT_TYPE: _reader("variantType-preview"),
    TableFeature.VARIANT_SHREDDING: _reader(
        "variantShredding-preview",
        needs=(TableFeature.VARIANT_TYPE,),
        enabled_by=_on("delta.enableVariantShredding"),
    ),
    TableFeature.ALLOW_COLUMN_DEFAULTS: FeatureRules(column_key="CURRENT_DEFAULT"),
    TableFeature.ROW_TRACKING: FeatureRules(
        needs=(TableFeature.DOMAIN_METADATA,),
        enabled_by=_on("delta.enableRowTracking"),
        drop=Drop(
            removes="row ids of all files",
            stops={"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"},
            unsets=(
                "delta.enableRowTracking",
                "delta.rowTrackingSuspended",
                "delta.rowTracking.materializedRowIdColumnName",
                "delta.rowTracking.materializedRowCommitVersionColumnName",
            ),
        ),
    ),
    TableFeature.DOMAIN_METADATA: FeatureRules(drop=Drop(removes="all metadata domains")),
    TableFeature.ICEBERG_COMPAT_V1: FeatureRules(
        needs=(TableFeature.COLUMN_MAPPING,),
        forbids=(
            TableFeature.DELETION_VECTORS,
            TableFeature.ICEBERG_COMPAT_V2,
            TableFeature.ICEBERG_COMPAT_V3,
        ),
        enabled_by=_on("delta.enableIcebergCompatV1"),
    ),
    TableFeature.ICEBERG_COMPAT_V2: FeatureRules(
        needs=(TableFeature.COLUMN_MAPPING,),
        forbids=(
            TableFeature.DELETION_VECTORS,
            TableFeature.ICEBERG_COMPAT_V1,
            TableFeature.ICEBERG_COMPAT_V3,
        ),
        enabled_by=_on("delta.enableIcebergCompatV2"),
    ),
    TableFeature.ICEBERG_COMPAT_V3: FeatureRules(
        needs=(TableFeature.COLUMN_MAPPING, TableFeature.ROW_TRACKING),
        forbids=(TableFeature.ICEBERG_COMPAT_V1, TableFeature.ICEBERG_COMPAT_V2),
        enabled_by=_on("delta.enableIcebergCompatV3"),
    ),
    TableFeature.ICEBERG_WRITER_COMPAT_V1: FeatureRules(),
    TableFeature.ICEBERG_WRITER_COMPAT_V3: FeatureRules(),
    TableFeature.CLUSTERING: FeatureRules(needs=(TableFeature.DOMAIN_METADATA,)),
    TableFeature.IN_COMMIT_TIMESTAMP: FeatureRules(
        ("inCommitTimestamp-preview",),
        enabled_by=_on("delta.enableInCommitTimestamps"),
        drop=Drop(
            unsets=(
                "delta.enableInCommitTimestamps",
                "delta.inCommitTimestampEnablementVersion",
                "delta.inCommitTimestampEnablementTimestamp",
            )
        ),
    ),
    TableFeature.CHECKPOINT_PROTECTION: FeatureRules(
        drop=Drop(
            removes="the protected versions, by truncating the history",
            unsets=("delta.requireCheckpointProtectionBeforeVersion",),
        )
    ),
    TableFeature.COORDINATED_COMMITS: FeatureRules(
        writable=_NO_WRITING,
        reason="only the coordinator knows which commits are part of the table",
    ),
    TableFeature.MATERIALIZE_PARTITION_COLUMNS: FeatureRules(
        enabled_by=_on("delta.enableMaterializePartitionColumnsFeature"),
        drop=Drop(unsets=("delta.enableMaterializePartitionColumnsFeature",)),
    ),
    TableFeature.REDIRECT_WRITER_ONLY: FeatureRules(
        writable=_NO_WRITING,
        reason="writes must go to another table",
    ),
    TableFeature.COLLATIONS: FeatureRules(
        ("collations-preview",), needs=(TableFeature.DOMAIN_METADATA,)
    ),
    TableFeature.CATALOG_MANAGED: FeatureRules(
        ("catalogManaged-preview", "catalogOwned", "catalogOwned-preview"),
        reader_writer=True,
        needs=(TableFeature.IN_COMMIT_TIMESTAMP,),
        writable=frozenset((Writing.LOG_FILES, Writing.COMMIT)),
        reason="through its catalog, which does the maintenance",
    ),
    TableFeature.GEOSPATIAL: _reader("geospatial-dev", drop=Drop()),
    TableFeature.ADAPTIVE_METADATA: _unreadable(reason=_NOT_IN_PROTOCOL),
    TableFeature.REDIRECT_READER_WRITER: _unreadable(reason=_NOT_IN_PROTOCOL),
}
"""The rules of each table feature, for upgrades, `dropFeatureSupport`, reads and writes."""

_ALIASES: dict[object, TableFeature] = {
    alias: feature for feature, rules in FEATURES.items() for alias in rules.aliases
}
_BY_NAME = {feature.value: feature for feature in TableFeature} | _ALIASES


def known_feature(name: str) -> TableFeature | None:
    """Return the feature with a name or alias, case-sensitively; None if it is unknown."""
    return _BY_NAME.get(name)
