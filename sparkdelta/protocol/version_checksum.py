"""The version checksum: facts about a version that its writer left beside the commit.

References
----------
PROTOCOL.md#version-checksum-file-schema
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sparkdelta.protocol.actions import Metadata, Protocol
from sparkdelta.protocol.table_features import READER_FEATURES_VERSION, WRITER_FEATURES_VERSION


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """What a version checksum says; None for what it does not say, or not reliably."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    num_files: int | None = None
    table_size_bytes: int | None = None
    in_commit_timestamp: int | None = None


def parse_version_checksum(data: bytes) -> VersionChecksum | None:
    """The checksum, or None if it does not parse.

    Protocol and metadata are taken over only where the file says that there is exactly one of each
    and the action is complete: old writers left fields out.

    References
    ----------
    PROTOCOL.md#version-checksum-file-schema
    """
    try:
        document = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    counts = (_integer(document.get("numProtocol")), _integer(document.get("numMetadata")))
    return VersionChecksum(
        protocol=_complete_protocol(document.get("protocol")) if counts == (1, 1) else None,
        metadata=_complete_metadata(document.get("metadata")) if counts == (1, 1) else None,
        num_files=_integer(document.get("numFiles")),
        table_size_bytes=_integer(document.get("tableSizeBytes")),
        in_commit_timestamp=_integer(document.get("inCommitTimestampOpt")),
    )


def _complete_protocol(document: object) -> Protocol | None:
    if not isinstance(document, Mapping):
        return None
    reader = _integer(document.get("minReaderVersion"))
    writer = _integer(document.get("minWriterVersion"))
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


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
