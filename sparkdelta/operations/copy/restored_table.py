"""The definition and the files of a table after RESTORE.

References
----------
PROTOCOL.md#action-reconciliation, PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#row-ids,
PROTOCOL.md#domain-metadata, PROTOCOL.md#identity-columns,
PROTOCOL.md#writer-requirements-for-in-commit-timestamps
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.actions import DomainMetadata
from sparkdelta.base.protocol.protocol_upgrades import upgraded_protocol
from sparkdelta.base.protocol.row_ids import ROW_TRACKING_DOMAIN, high_water_mark
from sparkdelta.base.protocol.table_features import supported_features
from sparkdelta.base.protocol.table_properties import (
    ENABLE_IN_COMMIT_TIMESTAMPS,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
    PROTECTED_VERSION,
)
from sparkdelta.base.schema.column_ids import MAX_COLUMN_ID
from sparkdelta.base.schema.file_key_frames import canonical_path, deletion_vector_id
from sparkdelta.base.schema.table_constraints import with_marks
from sparkdelta.base.schema.table_schema import parse_table_schema
from sparkdelta.base.skipping.path_filter_frames import PathFilter
from sparkdelta.exceptions import VersionsNotContiguousError
from sparkdelta.table.commit.transaction import row_id_high_watermark
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.definition.metadata_domains import live_domains
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import commits_between
from sparkdelta.table.log.commit_line_frames import add_fields
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.identity_columns import identity_marks
from sparkdelta.table.rows.removed_files import remove_fields
from sparkdelta.table.snapshot.snapshot import Snapshot

_PATH, _VECTOR = "__sparkdelta_path", "__sparkdelta_vector"
_KEYS = (f"`{_PATH}`", f"`{_VECTOR}`")
_OF_THE_LOG = (
    ENABLE_IN_COMMIT_TIMESTAMPS,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    PROTECTED_VERSION,
)


def restored_table(now: Snapshot, then: Snapshot) -> DefinitionChange:
    """Return the change to the metadata and domains of an earlier version.

    The protocol keeps all features and gets the earlier version's. Row ids, column ids and identity
    values are never assigned twice, commits keep the kind of their timestamps, and protected
    checkpoints stay protected.
    """
    before, earlier = now.configuration, then.configuration
    features = {feature.value for feature in supported_features(earlier.protocol)}
    properties = {k: v for k, v in earlier.properties.items() if k not in _OF_THE_LOG}
    properties |= {k: before.properties[k] for k in _OF_THE_LOG if k in before.properties}
    ids = [int(table.properties.get(MAX_COLUMN_ID, "0")) for table in (before, earlier)]
    if MAX_COLUMN_ID in properties:
        properties[MAX_COLUMN_ID] = str(max(ids))
    text = earlier.metadata.schema_string or ""
    if marks := identity_marks(before, earlier):
        text = with_marks(text, marks)
    metadata = replace(
        earlier.metadata, id=before.metadata.id, schema_string=text, configuration=properties
    )
    after = TableConfiguration.of(
        upgraded_protocol(before.protocol, features),
        metadata,
        parse_table_schema(text, path=now.path),
    )
    return DefinitionChange(before, after, _restored_domains(now, then))


def differing_files(now: Snapshot, then: Snapshot) -> DataFrame:
    """Return the actions that turn the table's files into the files of an earlier version.

    add STRUCT, remove STRUCT; one of them is null in each row. A file with another deletion vector
    is both removed and added. A file whose row ids differ, for example because row tracking was
    dropped since, gets the earlier ids, without `dataChange`. Both snapshots are in one session.
    """
    between = _files_between(then, now)
    of_then, of_now = _keyed(then, between), _keyed(now, between)
    add = add_fields(then.configuration.statistics, dataChange="TRUE")
    both = of_then.selectExpr(*_KEYS, f"{add} AS add").join(
        of_now.selectExpr(*_KEYS, f"{remove_fields()} AS remove"), [_PATH, _VECTOR], "full"
    )
    # An id that a file without one has got since is unique, unless ids began anew in between.
    has_other_ids = (
        "NOT add.baseRowId <=> remove.baseRowId AND "
        f"(add.baseRowId IS NOT NULL OR remove.baseRowId <= {row_id_high_watermark(then)}L)"
    )
    return both.filter(f"add IS NULL OR remove IS NULL OR {has_other_ids}").select(
        F.col("add").withField("dataChange", F.expr("remove IS NULL")).alias("add"),
        F.expr("CASE WHEN add IS NULL THEN remove END AS remove"),
    )


def _files_between(then: Snapshot, now: Snapshot) -> PathFilter | None:
    """Return the files in which two versions can differ; None if commits between them are gone.

    With these, each version is read once, and only differing files are shuffled.
    """
    log = now.log
    try:
        commits = commits_between(
            list_log_files(log.store), then.version + 1, now.version, path=now.path
        )
    except VersionsNotContiguousError:
        return None
    between = CommitRange.read(log.reader, commits)
    paths = between.changes("add", "remove").selectExpr("coalesce(add.path, remove.path) AS path")
    return PathFilter(paths, now.path, is_broadcast=between.broadcasts_keys)


def _keyed(snapshot: Snapshot, chosen: PathFilter | None) -> DataFrame:
    path = canonical_path("path", table_root=snapshot.path)
    vector = deletion_vector_id("deletionVector")
    adds = snapshot.state.adds(skipping=chosen)
    return adds.selectExpr("*", f"{path} AS `{_PATH}`", f"{vector} AS `{_VECTOR}`")


def _restored_domains(now: Snapshot, then: Snapshot) -> tuple[DomainMetadata, ...]:
    """Return the domains in which two versions differ.

    The greater high-water mark of row ids is kept: the earlier version may have it if row tracking
    was dropped since.
    """
    of_now, of_then = live_domains(now), live_domains(then)
    marks = [of[ROW_TRACKING_DOMAIN] for of in (of_now, of_then) if ROW_TRACKING_DOMAIN in of]
    if marks:
        of_then[ROW_TRACKING_DOMAIN] = max(
            marks, key=lambda mark: high_water_mark(mark, path=now.path, version=now.version)
        )
    changed = [domain for name, domain in of_then.items() if of_now.get(name) != domain]
    gone = [replace(d, removed=True) for name, d in of_now.items() if name not in of_then]
    return (*changed, *gone)
