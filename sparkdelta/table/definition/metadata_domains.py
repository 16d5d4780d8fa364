"""Metadata domains of a version, as values.

References
----------
PROTOCOL.md#domain-metadata
"""

from __future__ import annotations

from sparkdelta.base.protocol.actions import DomainMetadata
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.table.snapshot.snapshot import Snapshot

MAX_DOMAINS = 10_000
"""The most metadata domains of a table that the driver compares."""


def live_domains(snapshot: Snapshot) -> dict[str, DomainMetadata]:
    """Read the domains of a version, by name."""
    rows = read_rows(
        snapshot.domain_metadata(),
        what="metadata domains",
        bound=MAX_DOMAINS,
        version=snapshot.version,
    )
    return {row["domain"]: DomainMetadata(row["domain"], row["configuration"]) for row in rows}
