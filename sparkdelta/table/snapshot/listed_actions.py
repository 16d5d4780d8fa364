"""Transactions and metadata domains of a version, as values. Where its version checksum lists them,
no query reads them.

References
----------
PROTOCOL.md#transaction-identifiers, PROTOCOL.md#domain-metadata, PROTOCOL.md#version-checksum-file
"""

from __future__ import annotations

from pyspark.sql import functions as F

from sparkdelta.base.protocol.actions import DomainMetadata, TransactionIdentifier
from sparkdelta.base.protocol.retention import SET_TRANSACTION_RETENTION
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.table.snapshot.snapshot import Snapshot

MAX_DOMAINS = 10_000
"""The most metadata domains of a table that the driver compares."""


def last_transaction_version(snapshot: Snapshot, app_id: str) -> int | None:
    """Return the version of the last transaction that an application committed; None if it has
    none.
    """
    checksum = snapshot.version_checksum
    if checksum is not None and checksum.transactions is not None:
        listed = map(TransactionIdentifier.from_dict, checksum.transactions)
        versions = [each.version for each in listed if each.app_id == app_id]
        # Other writers may leave out a transaction that has expired and is still in the log.
        if versions or SET_TRANSACTION_RETENTION not in snapshot.properties:
            return max(versions, default=None)
    rows = read_rows(
        snapshot.transactions().filter(F.col("appId") == app_id),
        what="transaction of an application",
        bound=1,
        version=snapshot.version,
    )
    return int(rows[0]["version"]) if rows else None


def find_domain(snapshot: Snapshot, name: str) -> DomainMetadata | None:
    """Return a metadata domain of a version; None if the version does not have it."""
    listed = _listed_domains(snapshot)
    if listed is not None:
        return listed.get(name)
    rows = read_rows(
        snapshot.domain_metadata().filter(F.col("domain") == name),
        what="metadata domain",
        bound=1,
        version=snapshot.version,
    )
    return DomainMetadata.from_dict(rows[0].asDict()) if rows else None


def live_domains(snapshot: Snapshot) -> dict[str, DomainMetadata]:
    """Return the metadata domains of a version, by name."""
    listed = _listed_domains(snapshot)
    if listed is not None:
        return listed
    rows = read_rows(
        snapshot.domain_metadata(),
        what="metadata domains",
        bound=MAX_DOMAINS,
        version=snapshot.version,
    )
    return {row["domain"]: DomainMetadata.from_dict(row.asDict()) for row in rows}


def _listed_domains(snapshot: Snapshot) -> dict[str, DomainMetadata] | None:
    """Return the domains that the version checksum lists; None if it has no list."""
    checksum = snapshot.version_checksum
    if checksum is None or checksum.domain_metadata is None:
        return None
    domains = map(DomainMetadata.from_dict, checksum.domain_metadata)
    return {each.domain: each for each in domains if not each.removed}
