"""Version checksums, derived from the previous one and a commit if that is exact, else from the
state.

References
----------
PROTOCOL.md#version-checksum-file, PROTOCOL.md#state-validation
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.base.protocol.arguments import checked_version
from sparkdelta.base.protocol.file_paths import canonical_path
from sparkdelta.base.protocol.file_totals import SIZE_BOUNDARIES, FileBin, FileTotals
from sparkdelta.base.protocol.log_files import LogFile, Version, version_checksum_name
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.protocol.retention import transaction_retention_ms
from sparkdelta.base.protocol.table_properties import has_in_commit_timestamp
from sparkdelta.base.schema.action_schemas import ADD, DOMAIN_METADATA, TXN, actions
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.upkeep.checksum_chain import delete_foreign_checksum, put_checksum
from sparkdelta.table.checksum.version_checksum_frames import IS_PLAIN, changed_bins, wire_text
from sparkdelta.table.checksum.version_checksum_rules import (
    FILE_PRESERVING_OPERATIONS,
    MAX_DOMAINS,
    MAX_FILES,
    MAX_TRANSACTIONS,
    VersionChecksum,
    WireAction,
    differences,
    latest_by_key,
)
from sparkdelta.table.definition.writable import open_writable
from sparkdelta.table.listing.log_line_frames import may_name, parse_log_lines
from sparkdelta.table.log.checksums import checksum_of_commit, stored_commit_info
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.snapshot.snapshot import Snapshot

_MOST_ACTIONS = 10_000


@dataclass(frozen=True, slots=True)
class ChecksumResult(Result):
    """The result of writing a version checksum.

    Attributes
    ----------
    written
        True if the file is new, or replaces that of a commit that was taken back.
    incremental
        True if it was computed from the version before and one commit.
    """

    version: Version
    name: str
    written: bool
    incremental: bool = False


def write_version_checksum(
    spark: SparkSession, path: str, *, version: int | None = None
) -> ChecksumResult:
    """Write the version checksum file (`.crc`) of a version, the latest by default.

    It is derived from the previous version's checksum and the commit if these are sufficient,
    otherwise from the table's state. An existing file is not replaced, unless its `txnId` or
    in-commit timestamp is that of another commit, which was taken back. Lists of at most 100
    transactions, 10 domains and 50 files are included; longer lists are omitted.

    Raises
    ------
    DeltaError
        The log cannot be read, or this engine cannot write it; nothing was written.

    References
    ----------
    PROTOCOL.md#version-checksum-file
    """
    snapshot = open_writable(spark, path, version=checked_version(version))
    with jobs_of(snapshot.path, snapshot.version):
        return add_version_checksum(snapshot)


def add_version_checksum(
    snapshot: Snapshot, *, from_state: bool = True, from_previous: bool = True
) -> ChecksumResult:
    """Write the checksum of a snapshot whose table is known to be writable, unless it is there and
    of the snapshot's commit.

    Parameters
    ----------
    from_state
        False to write nothing where the version before and the commit do not suffice, instead of
        replaying the state.
    from_previous
        False to compute it from the state in any case, as the version before may be wrong too.
    """
    name = version_checksum_name(snapshot.version)
    store, commit = snapshot.log.store, _commit(snapshot)
    if snapshot.version_checksum is not None:
        return ChecksumResult(snapshot.version, name, written=False)
    checksum = checksum_after_commit(snapshot) if from_previous else None
    incremental = checksum is not None
    if not incremental and not from_state:
        info = None if commit is None else stored_commit_info(store, commit.name)
        if info is not None and snapshot.segment.version_checksum is not None:
            delete_foreign_checksum(store, snapshot.version, info)
        return ChecksumResult(snapshot.version, name, written=False)
    checksum = checksum or checksum_of_state(snapshot)
    if not put_checksum(store, snapshot.version, checksum):
        return ChecksumResult(snapshot.version, name, written=False)
    return ChecksumResult(snapshot.version, name, written=True, incremental=incremental)


def checksum_of_state(
    snapshot: Snapshot, size_boundaries: tuple[int, ...] = SIZE_BOUNDARIES
) -> VersionChecksum:
    """Return the checksum by Action Reconciliation alone: one aggregate over the live files."""
    rows = read_rows(
        snapshot.file_bins(size_boundaries),
        what="totals of the live files",
        bound=_MOST_ACTIONS,
        version=snapshot.version,
    )
    totals = FileTotals.of(map(_file_bin, rows), size_boundaries)
    transactions = snapshot.transactions().limit(MAX_TRANSACTIONS + 1)
    domains = snapshot.domain_metadata().limit(MAX_DOMAINS + 1)
    return (
        _from_snapshot(snapshot)
        .with_totals(totals)
        .with_actions(
            transactions=_wire_actions(transactions, TXN, bound=MAX_TRANSACTIONS + 1),
            domain_metadata=_wire_actions(domains, DOMAIN_METADATA, bound=MAX_DOMAINS + 1),
            all_files=_all_files(snapshot) if totals.num_files <= MAX_FILES else None,
        )
    )


def checksum_differences(
    recorded: VersionChecksum, snapshot: Snapshot
) -> dict[str, tuple[object, object]]:
    """Return the recorded and the actual value of each field of a checksum that differs from the
    state.
    """
    sizes = recorded.file_sizes
    boundaries = SIZE_BOUNDARIES if sizes is None else sizes.boundaries
    computed = checksum_of_state(snapshot, boundaries)
    if transaction_retention_ms(snapshot.properties) is not None:
        computed = _without_expired(computed, recorded)
    return differences(recorded, computed, table_root=snapshot.path)


def _without_expired(computed: VersionChecksum, recorded: VersionChecksum) -> VersionChecksum:
    """Remove transactions that the recorded checksum does not list, since they may have expired."""
    if computed.transactions is None or recorded.transactions is None:
        return computed
    recorded_ids = {action["appId"] for action in recorded.transactions}
    transactions = tuple(a for a in computed.transactions if a["appId"] in recorded_ids)
    return replace(computed, transactions=transactions)


def checksum_after_commit(snapshot: Snapshot) -> VersionChecksum | None:
    """Return the checksum of a version, derived from that of the previous version and the commit
    alone; None where these do not determine it exactly.

    Costs one Spark job, for a commit of up to `line_reader.DRIVER_LOG_BYTES`.
    """
    commit, store = _commit(snapshot), snapshot.log.store
    previous = next(
        (f for f in snapshot.segment.commits if f.version == snapshot.version - 1), None
    )
    before = None if previous is None else checksum_of_commit(store, previous)
    totals = None if before is None else before.totals
    if commit is None or before is None or totals is None:
        return None
    lines = CommitRange.read(snapshot.log.reader, [commit]).lines
    table_root, boundaries = snapshot.path, totals.sizes.boundaries
    file_actions = parse_log_lines(lines.coalesce(1), actions=actions("add", "remove"))
    rows = read_rows(
        changed_bins(file_actions, table_root=table_root, size_boundaries=boundaries),
        what="totals of one commit",
        bound=_MOST_ACTIONS,
        version=snapshot.version,
    )
    info = _commit_info(lines)
    tells = not rows or info["operation"] in FILE_PRESERVING_OPERATIONS
    if not tells or not all(row[IS_PLAIN] for row in rows):
        return None
    after = totals.plus(FileTotals.of(map(_file_bin, rows), boundaries))
    if after is None:
        return None
    domains = _named(lines, "domainMetadata")
    return (
        _from_snapshot(snapshot)
        .with_totals(after)
        .with_actions(
            transactions=latest_by_key(before.transactions, _named(lines, "txn"), key="appId"),
            domain_metadata=latest_by_key(before.domain_metadata, domains, key="domain"),
            all_files=(
                _files_after(before.all_files, lines, table_root)
                if before.all_files is not None and after.num_files <= MAX_FILES
                else None
            ),
        )
    )


def _commit(snapshot: Snapshot) -> LogFile | None:
    commits = snapshot.segment.commits
    return commits[-1] if commits and commits[-1].version == snapshot.version else None


def _from_snapshot(snapshot: Snapshot) -> VersionChecksum:
    """Return the fields that follow from the snapshot and its commit alone."""
    checksum = VersionChecksum(protocol=snapshot.protocol, metadata=snapshot.metadata)
    commit = _commit(snapshot)
    if commit is not None:
        info = _commit_info(CommitRange.read(snapshot.log.reader, [commit]).lines)
        checksum = replace(checksum, txn_id=info["txnId"])
    if not has_in_commit_timestamp(snapshot.configuration.in_commit_timestamps, snapshot.version):
        return checksum
    if snapshot.timestamp_ms is None:
        raise DeltaError.of(
            "DELTA_MISSING_COMMIT_TIMESTAMP", version=snapshot.version, path=snapshot.path
        )
    return replace(checksum, in_commit_timestamp=snapshot.timestamp_ms)


def _commit_info(lines: DataFrame) -> dict[str, str | None]:
    """Return the operation and txnId of a commit."""
    names = ("operation", "txnId")
    fields = [F.get_json_object("line", f"$.commitInfo.{name}").alias(name) for name in names]
    rows = read_rows(
        lines.filter(F.contains("line", F.lit('"commitInfo"'))).select(*fields),
        what="provenance of one commit",
        bound=_MOST_ACTIONS,
    )
    return {name: next((row[name] for row in rows if row[name]), None) for name in names}


def _named(lines: DataFrame, name: str) -> list[WireAction]:
    """Return the actions of a kind in one commit."""
    schema = actions(name)
    named = lines.filter(may_name(name))
    found = parse_log_lines(named, actions=schema, few=True).filter(F.col(name).isNotNull())
    fields = schema[name].dataType
    assert isinstance(fields, StructType)
    return _wire_actions(found.select(f"{name}.*"), fields, bound=_MOST_ACTIONS)


def _wire_actions(rows: DataFrame, action: StructType, *, bound: int) -> list[WireAction]:
    texts = rows.select(wire_text(action).alias("text"))
    found = read_rows(texts, what="actions of a version checksum", bound=bound)
    return [json.loads(row["text"]) for row in found]


def _all_files(snapshot: Snapshot) -> list[WireAction] | None:
    """Return the live adds; None where a checkpoint has statistics as columns alone."""
    adds = snapshot.add_files().withColumn("dataChange", F.lit(False))
    only_columns = F.col("stats").isNull() & F.col("stats_parsed").isNotNull()
    rows = read_rows(
        adds.select(F.when(~only_columns, wire_text(ADD)).alias("text")),
        what="actions of a version checksum",
        bound=MAX_FILES,
        version=snapshot.version,
    )
    texts = [row["text"] for row in rows]
    return None if None in texts else [json.loads(text) for text in texts]


def _files_after(
    before: tuple[WireAction, ...], lines: DataFrame, table_root: str
) -> list[WireAction]:
    """Return the live adds after a commit, given those before it; the commit must say exactly what
    it changes, and both lists must be short enough for a checksum.
    """
    file_actions = parse_log_lines(lines, actions=actions("add", "remove"), few=True)
    adds = file_actions.filter("add IS NOT NULL").select("add.*")
    adds = adds.withColumn("dataChange", F.lit(False))
    added = _wire_actions(adds, ADD, bound=2 * MAX_FILES)
    rows = read_rows(
        file_actions.filter("remove IS NOT NULL").select("remove.path"),
        what="actions of a version checksum",
        bound=2 * MAX_FILES,
    )
    removed = {canonical_path(row["path"], table_root) for row in rows}
    kept = [add for add in before if canonical_path(str(add["path"]), table_root) not in removed]
    return kept + added


def _file_bin(row: Row) -> FileBin:
    return FileBin(**{name: row[name] for name in FileBin.__slots__})
