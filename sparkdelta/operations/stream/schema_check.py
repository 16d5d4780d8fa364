"""Comparison of later versions' metadata with the schema that a stream reads the table with."""

from __future__ import annotations

from dataclasses import dataclass

from sparkdelta.base.protocol.actions import Metadata
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.table_properties import (
    ENABLE_CHANGE_DATA_FEED,
    ColumnMappingMode,
    is_on,
    named_column_mapping_mode,
)
from sparkdelta.base.schema.read_compatibility import is_read_compatible
from sparkdelta.base.schema.table_schema import parse_table_schema
from sparkdelta.exceptions import (
    DeltaError,
    DifferentStreamTableError,
    MissingChangeDataError,
    StreamColumnsChangedError,
    StreamSchemaChangedError,
    StreamStartSchemaChangedError,
)
from sparkdelta.table.log.configuration import TableConfiguration


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """The schema that a stream reads a table with.

    Attributes
    ----------
    read, read_version
        The table when the stream was made.
    reads_changes
        True if it reads the change data feed.
    has_start
        True if the user chose where the stream starts.
    """

    read: TableConfiguration
    read_version: Version
    path: str
    reads_changes: bool
    has_start: bool

    def problem(self, version: Version, found: Metadata) -> DeltaError | None:
        """Return the error for a version whose metadata the stream cannot follow; else None."""
        read = self.read
        if found.id != read.metadata.id:
            return DifferentStreamTableError(path=self.path, old=read.metadata.id, new=found.id)
        if self.reads_changes and not is_on(found.configuration, ENABLE_CHANGE_DATA_FEED):
            return MissingChangeDataError(
                path=self.path, start=version, end=version, version=version
            )
        if read.reads_rows_of(found, path=self.path):
            return None
        schema = parse_table_schema(found.schema_string, path=self.path)
        mode = named_column_mapping_mode(found.configuration)
        helps_to_restart = version > self.read_version and is_read_compatible(
            read.schema, schema, read.column_mapping, mode
        )
        is_mapped = read.is_mapped or mode is not ColumnMappingMode.NONE
        error: type[StreamSchemaChangedError | StreamColumnsChangedError]
        if is_mapped and not helps_to_restart:
            error = StreamColumnsChangedError
        else:
            error = StreamStartSchemaChangedError if self.has_start else StreamSchemaChangedError
        return error(
            path=self.path,
            version=version,
            read_version=self.read_version,
            old=read.schema.simpleString(),
            new=schema.simpleString(),
        )
