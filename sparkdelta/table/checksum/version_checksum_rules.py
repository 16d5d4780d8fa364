"""Version checksum files, which summarize the state of a version.

References
----------
PROTOCOL.md#version-checksum-file-schema, PROTOCOL.md#action-reconciliation,
PROTOCOL.md#state-validation
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from sparkdelta.base.protocol.actions import Metadata, Protocol
from sparkdelta.base.protocol.exact_json import json_text
from sparkdelta.base.protocol.file_paths import canonical_path
from sparkdelta.base.protocol.file_totals import (
    DELETED_BOUNDARIES,
    FileSizeHistogram,
    FileTotals,
    whole_numbers,
)
from sparkdelta.base.protocol.table_features import (
    READER_FEATURES_VERSION,
    WRITER_FEATURES_VERSION,
    TableFeature,
    is_supported,
)
from sparkdelta.base.protocol.wire_values import optional_integer

MAX_TRANSACTIONS = 100
MAX_DOMAINS = 10
MAX_FILES = 50
"""Highest numbers of transactions, domains and files that a checksum lists.

Beyond its limit, a list is left out of the checksum. delta-spark has the same limits."""

FILE_PRESERVING_OPERATIONS = frozenset(
    {
        "CREATE OR REPLACE TABLE",
        "CREATE OR REPLACE TABLE AS SELECT",
        "CREATE TABLE AS SELECT",
        "DELETE",
        "MERGE",
        "OPTIMIZE",
        "REPLACE TABLE",
        "REPLACE TABLE AS SELECT",
        "STREAMING UPDATE",
        "TRUNCATE",
        "UPDATE",
        "WRITE",
    }
)
"""Operations whose commits only add files that are not live and only remove live files.

Commits of other operations may add a live file again (with new statistics or row ids) or remove a
file that is not live, so that the change of the totals cannot be derived from the commit alone.
"""

WireAction: TypeAlias = Mapping[str, object]
"""The fields of an action in wire form, without the action's name."""


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """The content of a version checksum; missing or unreliable fields are None.

    Attributes
    ----------
    table_size_bytes
        The total size of the live files in bytes.
    in_commit_timestamp
        In milliseconds since the epoch.
    transactions, domain_metadata, all_files
        All live actions of the version, in wire form.
    file_sizes
        `fileSizeHistogram`, or its former name `histogramOpt`.
    deleted_counts
        `deletedRecordCountsHistogramOpt`; the bins are `protocol.file_totals.DELETED_BOUNDARIES`.
    """

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    num_files: int | None = None
    table_size_bytes: int | None = None
    in_commit_timestamp: int | None = None
    txn_id: str | None = None
    transactions: tuple[WireAction, ...] | None = None
    domain_metadata: tuple[WireAction, ...] | None = None
    all_files: tuple[WireAction, ...] | None = None
    file_sizes: FileSizeHistogram | None = None
    num_deletion_vectors: int | None = None
    num_deleted_records: int | None = None
    deleted_counts: tuple[int, ...] | None = None

    @property
    def totals(self) -> FileTotals | None:
        """The totals of the live files; None if one is missing.

        If the protocol does not support deletion vectors, checksums leave out their totals, which
        are 0.
        """
        if self.num_files is None or self.table_size_bytes is None or self.file_sizes is None:
            return None
        vectors = self.num_deletion_vectors, self.num_deleted_records, self.deleted_counts
        if self.protocol is not None and not is_supported(
            self.protocol, TableFeature.DELETION_VECTORS
        ):
            none = (self.num_files, *(0 for _ in DELETED_BOUNDARIES[1:]))
            vectors = (vectors[0] or 0, vectors[1] or 0, vectors[2] or none)
        count, records, histogram = vectors
        if count is None or records is None or histogram is None:
            return None
        return FileTotals(
            num_files=self.num_files,
            size_bytes=self.table_size_bytes,
            num_deletion_vectors=count,
            num_deleted_records=records,
            sizes=self.file_sizes,
            deleted_counts=histogram,
        )

    def is_of_other_commit(self, commit_info: Mapping[str, object]) -> bool:
        """Return True if the checksum was written for another commit than its version has now.

        Commits are sometimes taken back by hand, and their checksums left behind. A checksum
        without `txnId` and in-commit timestamp matches any commit. `commit_info` is the commitInfo
        of the version's commit; empty if it has none.
        """
        timestamp = optional_integer(commit_info.get("inCommitTimestamp"))
        return (self.txn_id is not None and self.txn_id != commit_info.get("txnId")) or (
            None not in (self.in_commit_timestamp, timestamp)
            and self.in_commit_timestamp != timestamp
        )

    def with_totals(self, totals: FileTotals) -> VersionChecksum:
        """Return the checksum with the totals of its live files set."""
        return replace(
            self,
            num_files=totals.num_files,
            table_size_bytes=totals.size_bytes,
            file_sizes=totals.sizes,
            num_deletion_vectors=totals.num_deletion_vectors,
            num_deleted_records=totals.num_deleted_records,
            deleted_counts=totals.deleted_counts,
        )

    def with_actions(
        self,
        *,
        transactions: Sequence[WireAction] | None,
        domain_metadata: Sequence[WireAction] | None,
        all_files: Sequence[WireAction] | None,
    ) -> VersionChecksum:
        """Return the checksum with its lists of actions; a list beyond its limit is None."""
        return replace(
            self,
            transactions=_limited(transactions, "appId", MAX_TRANSACTIONS),
            domain_metadata=_limited(domain_metadata, "domain", MAX_DOMAINS),
            all_files=_limited(all_files, "path", MAX_FILES),
        )


def _limited(
    actions: Sequence[WireAction] | None, key: str, limit: int
) -> tuple[WireAction, ...] | None:
    if actions is None or len(actions) > limit:
        return None
    return tuple(sorted(actions, key=lambda action: str(action.get(key))))


def latest_by_key(
    before: Iterable[WireAction] | None, new: Iterable[WireAction], *, key: str
) -> list[WireAction] | None:
    """Return the transactions or domains after a commit; None if the earlier ones are unknown."""
    if before is None:
        return None
    latest = {action[key]: action for action in (*before, *new)}
    return [action for action in latest.values() if action.get("removed") is not True]


def differences(
    recorded: VersionChecksum, computed: VersionChecksum, *, table_root: str
) -> dict[str, tuple[object, object]]:
    """Compare a recorded checksum with the checksum of the table's state.

    Returns the recorded and the computed value of each field that differs, by its name in the file.
    Fields that are missing in either are ignored. The computed histogram has the recorded
    boundaries.
    """
    left, right = _comparable(recorded, table_root), _comparable(computed, table_root)
    return {
        name: (left[name], right[name])
        for name in left
        if left[name] is not None and right[name] is not None and left[name] != right[name]
    }


def _comparable(checksum: VersionChecksum, table_root: str) -> dict[str, object]:
    """Return the fields of a checksum by their wire names, independent of the order of lists."""
    protocol = checksum.protocol
    return {
        "txnId": checksum.txn_id,
        "tableSizeBytes": checksum.table_size_bytes,
        "numFiles": checksum.num_files,
        "numDeletedRecordsOpt": checksum.num_deleted_records,
        "numDeletionVectorsOpt": checksum.num_deletion_vectors,
        "inCommitTimestampOpt": checksum.in_commit_timestamp,
        "setTransactions": _keyed(checksum.transactions, "appId", "version"),
        "domainMetadata": _keyed(checksum.domain_metadata, "domain", "configuration"),
        "metadata": checksum.metadata,
        "protocol": protocol
        and (
            protocol.min_reader_version,
            protocol.min_writer_version,
            sorted(protocol.reader_features or ()),
            sorted(protocol.writer_features or ()),
        ),
        "fileSizeHistogram": checksum.file_sizes,
        "deletedRecordCountsHistogramOpt": checksum.deleted_counts,
        "allFiles": checksum.all_files
        and sorted(
            (canonical_path(str(file["path"]), table_root), str(file.get("size")))
            for file in checksum.all_files
        ),
    }


def _keyed(actions: Iterable[WireAction] | None, key: str, value: str) -> dict[str, object] | None:
    return None if actions is None else {str(a[key]): a.get(value) for a in actions}


def serialize_version_checksum(checksum: VersionChecksum) -> bytes:
    """Serialize a checksum without the fields that are None."""
    if checksum.protocol is None or checksum.metadata is None:
        raise ValueError("a version checksum has a protocol and a metaData")
    if checksum.num_files is None or checksum.table_size_bytes is None:
        raise ValueError("a version checksum has numFiles and tableSizeBytes")
    document = {
        "txnId": checksum.txn_id,
        "tableSizeBytes": checksum.table_size_bytes,
        "numFiles": checksum.num_files,
        "numDeletedRecordsOpt": checksum.num_deleted_records,
        "numDeletionVectorsOpt": checksum.num_deletion_vectors,
        "numMetadata": 1,
        "numProtocol": 1,
        "inCommitTimestampOpt": checksum.in_commit_timestamp,
        "setTransactions": checksum.transactions,
        "domainMetadata": checksum.domain_metadata,
        "metadata": checksum.metadata.to_dict(),
        "protocol": checksum.protocol.to_dict(),
        "fileSizeHistogram": checksum.file_sizes and checksum.file_sizes.to_dict(),
        "deletedRecordCountsHistogramOpt": (
            checksum.deleted_counts and {"deletedRecordCounts": checksum.deleted_counts}
        ),
        "allFiles": checksum.all_files,
    }
    present = {name: value for name, value in document.items() if value is not None}
    return json_text(present).encode()


def parse_version_checksum(data: bytes) -> VersionChecksum | None:
    """Parse a version checksum; return None if it is not a JSON object.

    Protocol and metadata are used only if the file counts exactly one of each and the action is
    complete, because old writers left out fields.
    """
    try:
        document = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    counts = (
        optional_integer(document.get("numProtocol")),
        optional_integer(document.get("numMetadata")),
    )
    sizes = document.get("fileSizeHistogram", document.get("histogramOpt"))
    txn_id = document.get("txnId")
    return VersionChecksum(
        protocol=_complete_protocol(document.get("protocol")) if counts == (1, 1) else None,
        metadata=_complete_metadata(document.get("metadata")) if counts == (1, 1) else None,
        num_files=optional_integer(document.get("numFiles")),
        table_size_bytes=optional_integer(document.get("tableSizeBytes")),
        in_commit_timestamp=optional_integer(document.get("inCommitTimestampOpt")),
        txn_id=txn_id if isinstance(txn_id, str) else None,
        transactions=_actions(document.get("setTransactions"), "appId"),
        domain_metadata=_actions(document.get("domainMetadata"), "domain"),
        all_files=_actions(document.get("allFiles"), "path"),
        file_sizes=FileSizeHistogram.from_dict(sizes),
        num_deletion_vectors=optional_integer(document.get("numDeletionVectorsOpt")),
        num_deleted_records=optional_integer(document.get("numDeletedRecordsOpt")),
        deleted_counts=_deleted_counts(document.get("deletedRecordCountsHistogramOpt")),
    )


def _actions(value: object, key: str) -> tuple[WireAction, ...] | None:
    if not isinstance(value, list):
        return None
    complete = all(isinstance(item, dict) and isinstance(item.get(key), str) for item in value)
    return tuple(value) if complete else None


def _deleted_counts(value: object) -> tuple[int, ...] | None:
    counts = whole_numbers(value.get("deletedRecordCounts")) if isinstance(value, dict) else None
    return counts if counts is not None and len(counts) == len(DELETED_BOUNDARIES) else None


def _complete_protocol(document: object) -> Protocol | None:
    if not isinstance(document, Mapping):
        return None
    reader = optional_integer(document.get("minReaderVersion"))
    writer = optional_integer(document.get("minWriterVersion"))
    if reader is None or writer is None:
        return None
    for name, has_list in (
        ("readerFeatures", reader >= READER_FEATURES_VERSION),
        ("writerFeatures", writer >= WRITER_FEATURES_VERSION),
    ):
        if has_list and not _is_list_of_strings(document.get(name)):
            return None
    return Protocol.from_dict(document)


def _complete_metadata(document: object) -> Metadata | None:
    if not isinstance(document, Mapping):
        return None
    data_format = document.get("format")
    is_complete = (
        isinstance(document.get("id"), str)
        and isinstance(document.get("schemaString"), str)
        and isinstance(data_format, Mapping)
        and isinstance(data_format.get("provider"), str)
        and _is_list_of_strings(document.get("partitionColumns"))
        and isinstance(document.get("configuration"), Mapping)
    )
    return Metadata.from_dict(document) if is_complete else None


def _is_list_of_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
