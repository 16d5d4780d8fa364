"""Transactions and domains as values: what version checksums list is what the log has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta import alter_table, write_delta
from sparkdelta.table.snapshot.listed_actions import (
    find_domain,
    last_transaction_version,
    live_domains,
)
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot

NAMES = {"delta.rowTracking", "delta.clustering"}


@pytest.fixture
def table(spark: SparkSession, table_path: str) -> str:
    """A table with two domains, and transactions of two applications."""
    tracked = {"delta.enableRowTracking": "true"}
    write_delta(spark.range(2), table_path, properties=tracked, cluster_by=["id"])
    for app_id, version in (("a", 3), ("b", 0), ("a", 5)):
        write_delta(
            spark.range(1), table_path, mode="append", txn_app_id=app_id, txn_version=version
        )
    return table_path


def change_checksum(table: str, **fields: Any) -> None:
    """Change fields of the latest version checksum; None removes a field."""
    file = max(Path(table, "_delta_log").glob("*.crc"))
    document = {**json.loads(file.read_text()), **fields}
    kept = {name: value for name, value in document.items() if value is not None}
    file.write_text(json.dumps(kept), encoding="utf-8")


def values_of(snapshot: Snapshot) -> tuple[object, ...]:
    domains = live_domains(snapshot)
    assert [find_domain(snapshot, name) for name in sorted(NAMES)] == [
        domains[name] for name in sorted(NAMES)
    ]
    assert find_domain(snapshot, "delta.other") is None
    return domains, *(last_transaction_version(snapshot, app_id) for app_id in "abc")


def test_a_checksum_lists_what_the_log_has(spark: SparkSession, table: str) -> None:
    """PROTOCOL.md#version-checksum-file-schema: setTransactions and domainMetadata."""
    listed = values_of(open_snapshot(spark, table))
    change_checksum(table, setTransactions=None, domainMetadata=None)
    assert values_of(open_snapshot(spark, table)) == listed
    domains, *versions = listed
    assert isinstance(domains, dict)
    assert set(domains) == NAMES
    assert versions == [5, 0, None]


def test_lists_are_read_without_a_query(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = open_snapshot(spark, table)
    monkeypatch.delattr(Snapshot, "transactions")
    monkeypatch.delattr(Snapshot, "domain_metadata")
    values_of(snapshot)


def test_a_removed_domain_that_is_listed_is_none(spark: SparkSession, table: str) -> None:
    change_checksum(table, domainMetadata=[{"domain": "d", "configuration": "", "removed": True}])
    assert live_domains(open_snapshot(spark, table)) == {}


def test_an_expired_transaction_may_be_in_the_log_alone(spark: SparkSession, table: str) -> None:
    """PROTOCOL.md#transaction-identifiers: a checksum of another writer may leave it out."""
    retention = {"delta.setTransactionRetentionDuration": "interval 1 day"}
    alter_table(spark, table).set_properties(retention)
    change_checksum(table, setTransactions=[])
    assert last_transaction_version(open_snapshot(spark, table), "a") == 5
