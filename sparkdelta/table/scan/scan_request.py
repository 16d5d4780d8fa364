"""The description of a read of data files, which native and distributed scans share.

References
----------
PROTOCOL.md#reader-requirements-for-row-tracking
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from sparkdelta.base.parquet.row_group_workers import RowGroupBound
from sparkdelta.base.protocol.change_types import CHANGE_TYPE
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.schema.column_mapping import physical_field
from sparkdelta.base.schema.partition_value_frames import typed_partition_value
from sparkdelta.base.schema.row_checks import CHAR_OR_VARCHAR, declared_type, has_char_type
from sparkdelta.base.schema.table_schema import as_nullable, nullable_as, quoted, without_void
from sparkdelta.base.spark.session_settings import CharTypes
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.logical_row_frames import (
    has_hidden_values,
    logical_column,
    with_hidden_values,
    with_padding,
)
from sparkdelta.table.scan.row_names import NO_NAMES, RowNames
from sparkdelta.table.scan.split_workers import FILE, RowColumn

FileList: TypeAlias = pa.Table | DataFrame
"""A list of files with the columns of `NativeScan.rows`: a table if the driver holds it, else a
DataFrame, whose files a distributed scan reads."""

CHANGE_KIND = "__sparkdelta_change_kind"
BASE_ROW_ID = "__sparkdelta_base_row_id"
DEFAULT_ROW_COMMIT_VERSION = "__sparkdelta_default_row_commit_version"
ROW_ID_FIELDS = {
    BASE_ROW_ID: "baseRowId",
    DEFAULT_ROW_COMMIT_VERSION: "defaultRowCommitVersion",
}
"""The columns of a file list for row ids, with the fields of the log that give their values."""

_INTERNAL_METADATA = ("delta.", "parquet.", "__")


class MetadataColumn(str, Enum):
    """A column that a scan can return after the table's own; the value is its name.

    Attributes
    ----------
    FILE
        STRING, the absolute, decoded path of the row's data file, spelled as
        `base.protocol.file_paths.plain_path` spells it.
    ROW_POSITION
        LONG, the row's index in its data file, in which deleted rows count.
    ROW_ID, ROW_COMMIT_VERSION
        LONG, of tables with row tracking.
    """

    FILE = "__sparkdelta_file"
    ROW_POSITION = "__sparkdelta_row_position"
    ROW_ID = "__sparkdelta_row_id"
    ROW_COMMIT_VERSION = "__sparkdelta_row_commit_version"


_ROW_TRACKING = {MetadataColumn.ROW_ID, MetadataColumn.ROW_COMMIT_VERSION}


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition on the logical rows.

    Attributes
    ----------
    names
        Of the rows in it.
    infallible_part
        The terms of it that fail for no row, as SQL text, which may be evaluated before deleted
        rows are left out.
    is_infallible
        True if that is all of it.
    bounds
        Bounds of the rows that match it: a scan may pass over row groups outside them.
    """

    condition: str | Column
    infallible_part: str | None = None
    is_infallible: bool = False
    bounds: tuple[RowGroupBound, ...] = ()
    names: RowNames = NO_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """A read of data files of one version of a table.

    Attributes
    ----------
    options
        Of the read, for the storage.
    partition_time_zone
        The zone of timestamps in partition values that name none.
    columns
        Logical names of the table's columns to return; None for all.
    metadata_columns
        The columns to return beside them.
    of_changes
        True if the file list has the changes of commits, and perhaps several of one file: each has
        its own partition values, and CHANGE_KIND, which stands where files have no `_change_type`.
    is_streaming
        True if the rows are a batch of a stream; only for files that the driver knows.
    condition
        The rows to return; it is evaluated on no deleted row unless it fails for none.
    hidden
        The columns on which Spark must not filter row groups, see `hidden_columns`.
    keeps_not_null
        True if files are read with NOT NULL columns, see `not_null_columns`.
    char_types
        How columns declared as CHAR and VARCHAR are read.
    """

    configuration: TableConfiguration
    table_root: str
    version: Version
    options: Mapping[str, str]
    partition_time_zone: str
    columns: frozenset[str] | None = None
    metadata_columns: frozenset[MetadataColumn] = frozenset()
    of_changes: bool = False
    is_streaming: bool = False
    condition: RowCondition | None = None
    hidden: frozenset[ColumnPath] = frozenset()
    keeps_not_null: bool = False
    char_types: CharTypes = CharTypes.PLAIN

    @property
    def wants_row_tracking(self) -> bool:
        """True if row ids or row commit versions are asked for."""
        return not _ROW_TRACKING.isdisjoint(self.metadata_columns)

    @property
    def partition_columns(self) -> dict[str, StructField]:
        """The wanted partition columns, by the file list's column that has the value's text."""
        return {
            partition_column(index): field
            for index, field in enumerate(self.configuration.partition_fields)
            if self.columns is None or field.name in self.columns
        }

    @property
    def row_columns(self) -> list[RowColumn]:
        """The source of each column of the result in data files and in the file list.

        Columns of type `void` are not among them: `logical_columns` adds them.
        """
        return [*self.table_columns, *self.other_columns]

    @property
    def table_columns(self) -> list[RowColumn]:
        """The table's columns among `row_columns`."""
        partitions = {field.name: name for name, field in self.partition_columns.items()}
        columns = []
        for field in self._fields:
            data_type = without_void(field.dataType)
            if data_type is None:
                continue
            logical = StructField(field.name, as_nullable(data_type))
            if field.name in partitions:
                columns.append(RowColumn(logical, default=partitions[field.name]))
            else:
                visible = StructField(field.name, data_type, True, field.metadata)
                stored = physical_field(visible, self.configuration.column_mapping)
                if self.keeps_not_null:
                    stored_type = nullable_as(stored.dataType, data_type)
                    stored = StructField(stored.name, stored_type, field.nullable, stored.metadata)
                has_kind = self.of_changes and field.name == CHANGE_TYPE
                columns.append(RowColumn(logical, stored, CHANGE_KIND if has_kind else None))
        return columns

    @property
    def other_columns(self) -> list[RowColumn]:
        """The metadata columns among `row_columns`."""
        columns = []
        tracking = self.configuration.row_tracking
        sources = {
            MetadataColumn.FILE: (None, FILE, False),
            MetadataColumn.ROW_POSITION: (None, None, True),
            MetadataColumn.ROW_ID: (tracking.row_id_column, BASE_ROW_ID, True),
            MetadataColumn.ROW_COMMIT_VERSION: (
                tracking.row_commit_version_column,
                DEFAULT_ROW_COMMIT_VERSION,
                False,
            ),
        }
        for field in self._metadata_fields:
            stored_name, default, adds_position = sources[MetadataColumn(field.name)]
            materialized = None if stored_name is None else StructField(stored_name, LongType())
            columns.append(RowColumn(field, materialized, default, adds_position))
        return columns

    @property
    def output(self) -> StructType:
        """The columns of the result: the table's in the schema's order, then metadata columns."""
        fields = [
            StructField(field.name, as_nullable(field.dataType), True, self._metadata(field))
            for field in self._fields
        ]
        return StructType([*fields, *self._metadata_fields])

    def may_be_null(self, field: StructField) -> bool:
        """Return True if a column of the table is read as nullable."""
        return field.nullable or not self.keeps_not_null

    def typed_partition_values(self) -> list[Column]:
        """Return the wanted partition values of a file list, under the same names."""
        return [
            F.expr(
                typed_partition_value(quoted(name), field, time_zone=self.partition_time_zone)
            ).alias(name)
            for name, field in self.partition_columns.items()
        ]

    def logical_columns(
        self, sources: Mapping[str, tuple[Column | str, DataType]]
    ) -> list[Column | str]:
        """Return the columns of `output`.

        Parameters
        ----------
        sources
            The value of each of `row_columns` and its type, by the column's name. As a text it is
            the quoted name, of a column without metadata: what needs no Column takes no calls.
        """
        columns: list[Column | str] = []
        for field in self._fields:
            value, data_type = sources.get(field.name, ("NULL", None))
            metadata = self._metadata(field)
            is_stored = field.name not in self.configuration.partition_columns
            path = (field.name,)
            is_hidden = is_stored and has_hidden_values(path, field.dataType, self.hidden)
            if isinstance(value, str) and not is_hidden:
                is_same = data_type and as_nullable(data_type) == as_nullable(field.dataType)
                if is_same and not metadata:
                    columns.append(value)
                    continue
            if isinstance(value, str):
                value = F.expr(value)
            value = logical_column(value, stored=data_type, logical=field.dataType)
            if self.char_types is CharTypes.PADDED and has_char_type(field):
                value = with_padding(value, declared_type(field))
            if is_hidden:
                value = with_hidden_values(value, path, field.dataType, self.hidden)
            columns.append(value.alias(field.name, metadata=metadata))
        return columns + [self._named(sources[f.name][0], f.name) for f in self._metadata_fields]

    def _metadata(self, field: StructField) -> dict[str, object]:
        """Return a field's metadata as delta-spark shows it, without what only the log needs."""
        shown = () if self.char_types is CharTypes.PLAIN else (CHAR_OR_VARCHAR,)
        return {
            key: value
            for key, value in (field.metadata or {}).items()
            if key in shown or not key.startswith(_INTERNAL_METADATA)
        }

    @staticmethod
    def _named(value: Column | str, name: str) -> Column | str:
        return value if isinstance(value, str) else value.alias(name)

    @property
    def _fields(self) -> list[StructField]:
        fields = self.configuration.schema.fields
        return [f for f in fields if self.columns is None or f.name in self.columns]

    @property
    def _metadata_fields(self) -> list[StructField]:
        return [
            StructField(column.value, StringType() if column is MetadataColumn.FILE else LongType())
            for column in MetadataColumn
            if column in self.metadata_columns
        ]


def partition_column(index: int) -> str:
    """Return the column of a file list that has the text of a partition value."""
    return f"__sparkdelta_partition_{index}"


def default_value(column: RowColumn, row_index: Column) -> Column:
    """Return the value of a column in rows whose data file has none."""
    default = F.col(str(column.default))
    return default + row_index if column.adds_position else default


def row_id_columns(action: str = "") -> list[str]:
    """Return SQL of the columns of a file list for row ids, given rows with the fields of the log,
    or with a struct that has them.
    """
    prefix = f"{action}." if action else ""
    return [f"{prefix}{field} AS {quoted(column)}" for column, field in ROW_ID_FIELDS.items()]
