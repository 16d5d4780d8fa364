"""Reads of data files by executors: the list of files stays in a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField

from sparkdelta.base.parquet.legacy_calendar_workers import NotConvertibleError
from sparkdelta.base.parquet.parquet_value_workers import arrow_type
from sparkdelta.base.schema.table_schema import quoted, without_void
from sparkdelta.base.spark.driver import read_row, read_table
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.scan.file_split_workers import (
    END,
    OPENING_BYTES,
    START,
    file_splits,
    scan_cost,
    task_count,
)
from sparkdelta.table.scan.scan_request import CHANGE_KIND, ROW_ID_FIELDS, ScanRequest
from sparkdelta.table.scan.split_workers import (
    FILE,
    ONLY,
    VECTOR,
    RowColumn,
    SplitReader,
    split_rows,
)

_NOTHING = StructField("__sparkdelta_nothing", BooleanType())
_MAX_DRIVER_SPLITS = 1_000_000


@dataclass(frozen=True, slots=True)
class DistributedScan:
    """A read of data files by executors, which find them in a DataFrame.

    Spark does not push filters or columns into a Python operator. So only the columns of the
    request are read, and only row groups whose footers overlap its condition's bounds.
    """

    spark: SparkSession
    request: ScanRequest

    def rows(self, files: DataFrame) -> DataFrame:
        """Return the rows that the request asks for, in the columns of its `output`.

        One Spark job sums up the files' sizes, for the number of tasks; the rows stay lazy.

        Parameters
        ----------
        files
            As `NativeScan.rows` takes them, but as a DataFrame.
        """
        request = self.request
        columns = request.row_columns
        for column in columns:
            _check_transferable(column.field)
        splits = file_splits(self._known(files, columns), tasks=self._task_count(files))
        reader = self._reader(columns)
        with worker_python(self.spark):
            rows = split_rows(splits, reader)
        sources = {c.field.name: (F.col(quoted(c.field.name)), c.field.dataType) for c in columns}
        rows, wanted = rows.select(*request.logical_columns(sources)), request.condition
        return rows if wanted is None else wanted.names.given_to(rows).filter(wanted.condition)

    def tasks(self, files: pa.Table | DataFrame) -> list[Callable[[], Iterator[pa.RecordBatch]]]:
        """Return functions for Python workers, which together read the rows of files.

        Parameters
        ----------
        files
            As `NativeScan.rows` takes them, of a number that the driver may have.

        Raises
        ------
        DELTA_UNSUPPORTED_DATA_TYPES
            A column's type cannot pass through a Python operator.
        """
        columns = self.request.row_columns
        self.check_transferable()
        if isinstance(files, pa.Table):
            files = arrow_frame(self.spark, files)
        splits = read_table(
            file_splits(self._known(files, columns), tasks=1),
            what="splits of the files of a batch",
            bound=_MAX_DRIVER_SPLITS,
            version=self.request.version,
        )
        ends = pc.coalesce(splits[END], pc.max_element_wise(splits["size"], splits[START]))
        costs = pc.add(pc.subtract(ends, splits[START]), OPENING_BYTES).to_numpy()
        count, reader = task_count(float(costs.sum())), self._reader(columns)
        numbers = np.minimum(np.cumsum(costs) * count // max(costs.sum(), 1), count - 1)
        return [
            partial(_read, reader, splits.filter(pa.array(numbers == number)).combine_chunks())
            for number in np.unique(numbers)
        ]

    def check_transferable(self) -> None:
        """Raise if a column's type cannot pass through a Python operator."""
        for field in self.request.output.fields:
            if without_void(field.dataType) != field.dataType:
                name = field.dataType.simpleString()
                raise DeltaError.of(
                    "DELTA_UNSUPPORTED_DATA_TYPES", column=field.name, data_type=name
                )
            _check_transferable(field)

    def _reader(self, columns: list[RowColumn]) -> SplitReader:
        request = self.request
        return SplitReader(
            files=worker_files(self.spark, request.table_root, request.options),
            columns=tuple(columns) or (RowColumn(_NOTHING),),
            table_root=request.table_root,
            version=request.version,
            bounds=() if request.condition is None else request.condition.bounds,
        )

    def _task_count(self, files: DataFrame) -> int:
        row = read_row(
            files.agg(scan_cost(F.col("size")).alias("cost")),
            what="size of a scan",
            version=self.request.version,
        )
        return task_count(row["cost"])

    def _known(self, files: DataFrame, columns: list[RowColumn]) -> DataFrame:
        """Return the columns that workers need of each file, with typed partition values."""
        defaults = {c.default for c in columns}
        # A file to be rewritten has a deletion vector in any table.
        has_vectors = VECTOR in files.columns
        tracking = [c for c in ROW_ID_FIELDS if c in defaults]
        if self.request.of_changes:
            tracking += [CHANGE_KIND, ONLY]
        partitions = self.request.typed_partition_values()
        return files.select(
            FILE, "size", *([VECTOR] if has_vectors else []), *tracking, *partitions
        )


def _read(reader: SplitReader, splits: pa.Table) -> Iterator[pa.RecordBatch]:
    return reader.read(iter(splits.to_batches()))


def _check_transferable(field: StructField) -> None:
    try:
        arrow_type(field.dataType)
    except NotConvertibleError as error:
        name = field.dataType.simpleString()
        raise DeltaError.of(
            "DELTA_UNSUPPORTED_DATA_TYPES", column=field.name, data_type=name
        ) from error
