"""The row ids that a table has assigned.

References
----------
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

from sparkdelta.base.protocol.actions import DomainMetadata
from sparkdelta.base.protocol.row_ids import NO_ROW_IDS, ROW_TRACKING_DOMAIN, high_water_mark
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.table.snapshot.snapshot import Snapshot


def row_id_high_watermark(snapshot: Snapshot) -> int:
    """Return the highest row id that was assigned up to a version, or -1 if none was."""
    if not is_supported(snapshot.protocol, TableFeature.ROW_TRACKING):
        return NO_ROW_IDS
    rows = read_rows(
        snapshot.domain_metadata().filter(f"domain = '{ROW_TRACKING_DOMAIN}'"),
        what="row id high-water mark",
        bound=1,
        version=snapshot.version,
    )
    domains = [DomainMetadata.from_dict(row.asDict(recursive=True)) for row in rows]
    domain = domains[0] if domains else None
    return high_water_mark(domain, path=snapshot.path, version=snapshot.version)
