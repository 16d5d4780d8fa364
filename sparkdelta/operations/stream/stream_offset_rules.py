"""Offsets of streams that read a table, in the JSON of delta-spark.

A checkpoint that holds them can be continued by either engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.exceptions import DeltaError

BEFORE_FILES = -1
"""The index before all files of a version."""

_NEWEST_FORMAT = 3
_FORMATS = (1, _NEWEST_FORMAT)


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The place up to which a stream has read a table.

    Attributes
    ----------
    table_id
        `metaData.id` of the table.
    index
        The last file that was read of the version: of a commit, its place among the adds with
        `dataChange`; of an initial snapshot, its place by modification time and path.
    is_initial
        True while the whole table at the version is read, not only what its commit added.
    """

    table_id: str
    version: Version
    index: int = BEFORE_FILES
    is_initial: bool = False

    @property
    def place(self) -> tuple[Version, int]:
        return self.version, self.index

    @property
    def json(self) -> str:
        """The text in a checkpoint; equal offsets have equal texts."""
        document = {
            "sourceVersion": 1,
            "reservoirId": self.table_id,
            "reservoirVersion": self.version,
            "index": self.index,
            "isStartingVersion": self.is_initial,
        }
        return json.dumps(document, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str, *, table_id: str, path: str) -> StreamOffset:
        """Parse the offset in a checkpoint.

        An offset of another table, or of a newer format, is an error.
        """
        try:
            document = json.loads(text)
            source_version = int(document["sourceVersion"])
            offset = cls(
                str(document["reservoirId"]),
                int(document["reservoirVersion"]),
                int(document["index"]),
                bool(document["isStartingVersion"]),
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DeltaError.of(
                "DELTA_INVALID_SOURCE_OFFSET_FORMAT", path=path, offset=text
            ) from error
        if source_version > _NEWEST_FORMAT:
            raise DeltaError.of(
                "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION", path=path, version=source_version
            )
        if source_version not in _FORMATS:
            raise DeltaError.of("DELTA_INVALID_SOURCE_VERSION", path=path, version=source_version)
        if offset.table_id != table_id:
            raise DeltaError.of(
                "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
                path=path,
                old=offset.table_id,
                new=table_id,
            )
        # Lower ones are marks of delta-spark before the first file.
        return cls(table_id, offset.version, max(offset.index, BEFORE_FILES), offset.is_initial)
