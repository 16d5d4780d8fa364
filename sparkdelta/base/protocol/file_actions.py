"""Value classes for add, remove and cdc actions: staged by a transaction, or of one small commit.

The live files of a table are rows of DataFrames instead; see `frames`.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#add-cdc-file
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_paths import canonical_path
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.wire_values import optional_integer, optional_string

FileKey: TypeAlias = tuple[str, str | None]
"""The key of a logical file: its canonical path and the unique id of its deletion vector."""


@dataclass(frozen=True, slots=True)
class AddFile:
    """An add action: `path` is URI-encoded, `stats` is JSON."""

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: Version | None = None
    clustering_provider: str | None = None

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> AddFile:
        """Parse the wire form."""
        return cls(
            path=str(document["path"]),
            partition_values=_texts(document.get("partitionValues")) or {},
            size=optional_integer(document.get("size")) or 0,
            modification_time=optional_integer(document.get("modificationTime")) or 0,
            data_change=document.get("dataChange") is not False,
            stats=optional_string(document.get("stats")),
            tags=_texts(document.get("tags")),
            deletion_vector=_vector(document.get("deletionVector")),
            base_row_id=optional_integer(document.get("baseRowId")),
            default_row_commit_version=optional_integer(document.get("defaultRowCommitVersion")),
            clustering_provider=optional_string(document.get("clusteringProvider")),
        )


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """A remove action, which remains in the log as a tombstone."""

    path: str
    deletion_timestamp: int | None
    data_change: bool
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: Version | None = None
    stats: str | None = None

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> RemoveFile:
        """Parse the wire form."""
        extended = document.get("extendedFileMetadata")
        return cls(
            path=str(document["path"]),
            deletion_timestamp=optional_integer(document.get("deletionTimestamp")),
            data_change=document.get("dataChange") is not False,
            extended_file_metadata=extended if isinstance(extended, bool) else None,
            partition_values=_texts(document.get("partitionValues")),
            size=optional_integer(document.get("size")),
            deletion_vector=_vector(document.get("deletionVector")),
            base_row_id=optional_integer(document.get("baseRowId")),
            default_row_commit_version=optional_integer(document.get("defaultRowCommitVersion")),
            stats=optional_string(document.get("stats")),
        )


@dataclass(frozen=True, slots=True)
class AddCDCFile:
    """A cdc action, which adds a change data file; `path` is URI-encoded.

    `data_change` must be false, because the rows are not part of the table's data.
    """

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    data_change: bool = False
    tags: Mapping[str, str | None] | None = None

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> AddCDCFile:
        """Parse the wire form."""
        return cls(
            path=str(document["path"]),
            partition_values=_texts(document.get("partitionValues")) or {},
            size=optional_integer(document.get("size")) or 0,
            data_change=document.get("dataChange") is True,
            tags=_texts(document.get("tags")),
        )


def file_key(action: AddFile | RemoveFile, table_root: str) -> FileKey:
    """Return the key of the logical file that an action refers to."""
    vector = action.deletion_vector
    return canonical_path(action.path, table_root), None if vector is None else vector.unique_id


def _vector(document: object) -> DeletionVectorDescriptor | None:
    return (
        DeletionVectorDescriptor.from_dict(document)
        if isinstance(document, Mapping) and document
        else None
    )


def _texts(value: object) -> dict[str, str | None] | None:
    if not isinstance(value, Mapping):
        return None
    return {str(name): optional_string(item) for name, item in value.items()}
