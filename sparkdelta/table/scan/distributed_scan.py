"""A DataFrame of data files to a DataFrame of the table's rows: the list of files stays in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, LongType, StructField

from sparkdelta.engine.driver import read_rows
from sparkdelta.engine.worker_python import worker_python
from sparkdelta.engine.worker_storage import worker_files
from sparkdelta.exceptions import UnsupportedDataTypeError
from sparkdelta.frames.log.partition_values import typed_partition_value
from sparkdelta.frames.rows.logical_rows import logical_column
from sparkdelta.protocol.log_files import Version
from sparkdelta.protocol.table_features import TableFeature, is_supported
from sparkdelta.schema.column_mapping import physical_field
from sparkdelta.schema.table_schema import as_nullable, quoted, without_void
from sparkdelta.table.configuration import TableConfiguration
from sparkdelta.table.scan.native_scan import (
    ROW_COMMIT_VERSION,
    ROW_ID,
    partition_column,
    visible_metadata,
)
from sparkdelta.workers.file_splits import file_splits, scan_cost, task_count
from sparkdelta.workers.legacy_calendar import NotConvertibleError
from sparkdelta.workers.parquet_values import arrow_type
from sparkdelta.workers.row_groups import RowGroupBound
from sparkdelta.workers.split_rows import FILE, VECTOR, RowColumn, SplitReader, split_rows

_NOTHING = StructField("sparkdelta:nothing", BooleanType())
_BASE_ROW_ID, _COMMIT_VERSION = "baseRowId", "defaultRowCommitVersion"


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributedScan:
    """How executors read data files of one version of a table by themselves.

    Attributes
    ----------
    columns
        Logical names of the columns to read, all by default: Spark tells a Python operator nothing
        of what is needed above it.
    bounds
        What rows are needed at most: row groups that hold none of them are passed over.
    """

    spark: SparkSession
    configuration: TableConfiguration
    table_root: str
    partition_time_zone: str
    version: Version
    options: Mapping[str, str]
    with_row_tracking: bool
    columns: frozenset[str] | None = None
    bounds: tuple[RowGroupBound, ...] = ()

    def rows(self, files: DataFrame) -> DataFrame:
        """The logical rows, and ROW_ID and ROW_COMMIT_VERSION where they are asked for.

        One Spark job sums up the files' sizes, for the number of tasks; the rows stay lazy.

        Parameters
        ----------
        files
            As `FileScan.rows` takes them, but as a DataFrame: file STRING (absolute, decoded), size
            LONG, a text column for each partition column; deletionVector STRUCT where the table may
            have deletion vectors; baseRowId LONG and defaultRowCommitVersion LONG with row
            tracking.

        Returns
        -------
        DataFrame
            The wanted columns in the schema's order, then those of row tracking.

        Raises
        ------
        UnsupportedDataTypeError
            A column's type cannot pass through a Python operator.
        """
        columns = self._row_columns()
        splits = file_splits(self._known(files, columns), tasks=self._task_count(files))
        reader = SplitReader(
            files=worker_files(self.spark, self.table_root, self.options),
            columns=tuple(columns) or (RowColumn(_NOTHING),),
            table_root=self.table_root,
            version=self.version,
            bounds=self.bounds,
        )
        with worker_python(self.spark):
            rows = split_rows(splits, reader)
        return rows.select(*self._logical_columns())

    def _task_count(self, files: DataFrame) -> int:
        (row,) = read_rows(
            files.agg(scan_cost(F.col("size")).alias("cost")),
            what="size of a scan",
            bound=1,
            version=self.version,
        )
        return task_count(row["cost"])

    def _known(self, files: DataFrame, columns: list[RowColumn]) -> DataFrame:
        """What workers must know of each file, with typed partition values."""
        needed = {column.default for column in columns}
        partitions = [
            F.expr(
                typed_partition_value(quoted(name), field, time_zone=self.partition_time_zone)
            ).alias(name)
            for name, field in self._partitions.values()
            if name in needed
        ]
        has_vectors = is_supported(self.configuration.protocol, TableFeature.DELETION_VECTORS)
        vectors = [VECTOR] if has_vectors else []
        tracking = [_BASE_ROW_ID, _COMMIT_VERSION] if self.with_row_tracking else []
        return files.select(FILE, "size", *vectors, *tracking, *partitions)

    @property
    def _partitions(self) -> dict[str, tuple[str, StructField]]:
        """By logical name: the column of the files that has the value's text, and the field."""
        return {
            field.name: (partition_column(index), field)
            for index, field in enumerate(self.configuration.partition_fields)
        }

    @property
    def _fields(self) -> list[StructField]:
        fields = self.configuration.schema.fields
        return [f for f in fields if self.columns is None or f.name in self.columns]

    def _row_columns(self) -> list[RowColumn]:
        """What workers give back; columns of `void` alone are added after them."""
        partitions, mapping = self._partitions, self.configuration.column_mapping
        columns = []
        for field in self._fields:
            data_type = without_void(field.dataType)
            if data_type is None:
                continue
            wanted = StructField(field.name, _transferable(field.name, as_nullable(data_type)))
            if field.name in partitions:
                columns.append(RowColumn(wanted, default=partitions[field.name][0]))
            else:
                visible = StructField(field.name, data_type, True, field.metadata)
                columns.append(RowColumn(wanted, physical_field(visible, mapping)))
        return columns + (self._row_tracking_columns() if self.with_row_tracking else [])

    def _row_tracking_columns(self) -> list[RowColumn]:
        """Materialized values where a file holds them, else the default generated ones.

        References
        ----------
        PROTOCOL.md#reader-requirements-for-row-tracking
        """
        tracking = self.configuration.row_tracking
        return [
            RowColumn(
                StructField(name, LongType()),
                None if column is None else StructField(column, LongType()),
                default,
                adds_position=name == ROW_ID,
            )
            for name, column, default in (
                (ROW_ID, tracking.row_id_column, _BASE_ROW_ID),
                (ROW_COMMIT_VERSION, tracking.row_commit_version_column, _COMMIT_VERSION),
            )
        ]

    def _logical_columns(self) -> list[Column]:
        columns = []
        for field in self._fields:
            data_type = without_void(field.dataType)
            column = logical_column(
                F.col(quoted(field.name)) if data_type is not None else F.lit(None),
                stored=None if data_type is None else as_nullable(data_type),
                logical=field.dataType,
            )
            columns.append(column.alias(field.name, metadata=visible_metadata(field)))
        tracking = [ROW_ID, ROW_COMMIT_VERSION] if self.with_row_tracking else []
        return columns + [F.col(name) for name in tracking]


def _transferable(column: str, data_type: DataType) -> DataType:
    try:
        arrow_type(data_type)
    except NotConvertibleError as error:
        name = data_type.simpleString()
        raise UnsupportedDataTypeError(column=column, data_type=name) from error
    return data_type
