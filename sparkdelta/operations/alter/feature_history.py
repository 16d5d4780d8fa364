"""Traces of a feature in the versions that a log still has.

References
----------
PROTOCOL.md#supported-features
"""

from __future__ import annotations

from sparkdelta.base.protocol.feature_rules import TableFeature
from sparkdelta.base.protocol.log_files import LogFileKind
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.operations.alter.dropped_features import has_traces
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import readable_commits
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot

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


def history_has_traces(snapshot: Snapshot, feature: TableFeature) -> bool:
    """True if a commit in the log, or the earliest version that it has, uses a feature."""
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
    found = actions.filter(condition).select("version").limit(1)
    return bool(read_rows(found, what="version that uses a feature", bound=1))
