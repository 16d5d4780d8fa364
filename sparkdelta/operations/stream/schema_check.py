"""Comparison of later versions' metadata with the schema that a stream reads the table with."""

from __future__ import annotations

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
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.stream.stream_options import StreamOptions
from sparkdelta.table.snapshot.snapshot import Snapshot


def schema_problem(
    opened: Snapshot, options: StreamOptions, version: Version, metadata: Metadata
) -> DeltaError | None:
    """Return the error for a version whose metadata a stream cannot follow, or None.

    `opened` is the table when the stream was made, with the schema that the stream reads.
    """
    read, path = opened.configuration, opened.path
    if metadata.id != read.metadata.id:
        return DeltaError.of(
            "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            path=path,
            old=read.metadata.id,
            new=metadata.id,
        )
    if options.read_change_feed and not is_on(metadata.configuration, ENABLE_CHANGE_DATA_FEED):
        return DeltaError.of(
            "DELTA_MISSING_CHANGE_DATA", path=path, start=version, end=version, version=version
        )
    if read.reads_rows_of(metadata, path=path):
        return None
    schema = parse_table_schema(metadata.schema_string, path=path)
    mode = named_column_mapping_mode(metadata.configuration)
    helps_to_restart = version > opened.version and is_read_compatible(
        read.schema, schema, read.column_mapping, mode
    )
    is_mapped = read.is_mapped or mode is not ColumnMappingMode.NONE
    if is_mapped and not helps_to_restart:
        error = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    elif options.has_start:
        error = "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
    else:
        error = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    return DeltaError.of(
        error,
        path=path,
        version=version,
        read_version=opened.version,
        old=read.schema.simpleString(),
        new=schema.simpleString(),
    )
