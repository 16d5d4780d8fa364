"""Reading the rows of a snapshot."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sparkdelta.exceptions import ColumnNotFoundError, InvalidArgumentError
from sparkdelta.frames.file_keys import absolute_path
from sparkdelta.protocol.table_features import is_supported
from sparkdelta.table.distributed_scan import DistributedScan
from sparkdelta.table.driver import read_table
from sparkdelta.table.file_scan import (
    ROW_COMMIT_VERSION,
    ROW_ID,
    FileScan,
    partition_column,
    quoted,
)
from sparkdelta.table.state import TableState

MAX_SCAN_FILES = 1_000_000
"""The files of a scan whose list comes to the driver; a scan of more is refused."""

_ROW_TRACKING = {
    "_metadata.row_id": (ROW_ID, "row_id"),
    "_metadata.row_commit_version": (ROW_COMMIT_VERSION, "row_commit_version"),
}


@dataclass(frozen=True)
class Scan:
    """A read of a snapshot, made by `Snapshot.scan`."""

    _state: TableState = field(repr=False)
    where: str | Column | None
    columns: tuple[str, ...] | None

    def files(self) -> DataFrame:
        """The data files that the scan reads: the columns of `Snapshot.add_files` but for `stats`.

        Lazy; it never comes to the driver by itself.
        """
        return self._state.adds(with_json=False)

    def to_df(self) -> DataFrame:
        """The rows, in the columns and types of the table's schema.

        The list of files is read by the driver (one Spark job); the rows stay lazy, pinned to those
        files.

        Raises
        ------
        DataFileNotFoundError
            A file of this version is gone, as after a vacuum.
        ColumnNotFoundError
            `columns` names a column that the table does not have.
        DriverReadTooLargeError
            There are more than `MAX_SCAN_FILES` files.
        """
        output = self._output()
        rows = self._rows()
        if self.where is not None:
            rows = rows.filter(self.where)
        return rows.select(*output)

    def _rows(self) -> DataFrame:
        state = self._state
        scan = FileScan(
            spark=state.log.spark,
            configuration=state.configuration,
            table_root=state.log.store.table_root,
            partition_time_zone=state.partition_time_zone,
            version=state.log.segment.version,
            options=state.log.options,
            with_row_tracking=self._wants_row_tracking,
        )
        return scan.rows(self._read_files())

    def _distributed_rows(self) -> DataFrame:
        """As `_rows`, for a list of files that the driver does not hold."""
        state = self._state
        scan = DistributedScan(
            spark=state.log.spark,
            configuration=state.configuration,
            table_root=state.log.store.table_root,
            partition_time_zone=state.partition_time_zone,
            version=state.log.segment.version,
            options=state.log.options,
            with_row_tracking=self._wants_row_tracking,
        )
        return scan.rows(self._file_list())

    def _read_files(self) -> pa.Table:
        return read_table(
            self._file_list(),
            what="files of a scan",
            bound=MAX_SCAN_FILES,
            version=self._state.log.segment.version,
        )

    def _file_list(self) -> DataFrame:
        """What a scan must know of each file, see `FileScan.rows`."""
        configuration = self._state.configuration
        has_vectors = is_supported(configuration.protocol, "deletionVectors")
        fields = ["path", "partitionValues", "size"]
        if has_vectors:
            fields += ["deletionVector", "stats"]
        if self._wants_row_tracking:
            fields += ["baseRowId", "defaultRowCommitVersion"]
        root = self._state.log.store.table_root
        file = absolute_path(F.col("path"), table_root=root)
        # As text: the scan types them beside their files, without another way through Arrow.
        values = [
            F.try_element_at("partitionValues", F.lit(key))
            for key, _ in configuration.partition_keys
        ]
        columns = [file.alias("file"), F.col("size")]
        columns += [value.alias(partition_column(index)) for index, value in enumerate(values)]
        if has_vectors:
            records = F.get_json_object("stats", "$.numRecords").try_cast("long")
            vector = F.col("deletionVector")
            columns += [
                F.when(vector["storageType"].isNotNull(), vector).alias("deletionVector"),
                F.when(vector["storageType"].isNotNull(), records).alias("numRecords"),
            ]
        if self._wants_row_tracking:
            columns += [F.col("baseRowId"), F.col("defaultRowCommitVersion")]
        return self._state.add_actions(*fields).select(*columns)

    @property
    def _wants_row_tracking(self) -> bool:
        return self.columns is not None and any(name in _ROW_TRACKING for name in self.columns)

    def _output(self) -> list[Column]:
        """The columns asked for, in order; names match in any case and may be quoted or nested."""
        names = self._state.configuration.schema.names
        if self.columns is None:
            return [F.col(quoted(name)) for name in names]
        if self._wants_row_tracking and not self._state.configuration.row_tracking.enabled:
            raise InvalidArgumentError(
                argument="columns",
                problem="row ids and row commit versions need delta.enableRowTracking to be true",
            )
        by_name = {name.lower(): name for name in names}
        output = []
        for name in self.columns:
            if name in _ROW_TRACKING:
                column, alias = _ROW_TRACKING[name]
                output.append(F.col(column).alias(alias))
            elif name.lower() in by_name:
                output.append(F.col(quoted(by_name[name.lower()])))
            elif name.split(".")[0].strip("`").lower() in by_name:
                output.append(F.col(name))
            else:
                raise ColumnNotFoundError(column=name, available=names)
        return output
