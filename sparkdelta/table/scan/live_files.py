"""The files that a scan reads, as the log lists them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from sparkdelta.base.predicates.predicate_rules import Predicate
from sparkdelta.base.protocol.log_files import Version, version_checksum_name
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.skipping.data_skipping_frames import DataSkipping
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.library_sessions import session_time_zone
from sparkdelta.exceptions import (
    DriverReadTooLargeError,
    LogFileNotFoundError,
    MalformedLogFileError,
    StorageError,
)
from sparkdelta.table.checksum.version_checksum_rules import VersionChecksum
from sparkdelta.table.log.loading import load_without_checkpoint
from sparkdelta.table.log.state import NUM_RECORDS, TableState
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.known_files import known_files
from sparkdelta.table.scan.scan_request import (
    ROW_ID_FIELDS,
    FileList,
    partition_column,
    row_id_columns,
)


@dataclass(frozen=True)
class LiveFiles:
    """The live files of a version, of which data skipping chooses those to read.

    Attributes
    ----------
    tracks_rows
        True for the columns that row ids need.
    """

    state: TableState
    checksum: VersionChecksum | None
    skipping: DataSkipping | None
    tracks_rows: bool

    def listed(self, bound: int) -> FileList:
        """Return the list of files, on the driver if there are at most as many as a bound."""
        state, log = self.state, self.state.log
        if state.known is not None:
            return known_files(
                state.known.values,
                state.configuration,
                log.store.table_root,
                has_vectors=self._has_vectors,
                tracks_rows=self.tracks_rows,
            )
        listed = log.file_lists.find(self._key)
        if listed is not None and listed.num_rows <= bound:
            return listed
        try:
            files = self.frame()
            listed = read_list(files, bound, log.segment.version, few=state.has_few_files(bound))
            if listed is None:
                return files
            if self.skipping is None:
                self.check_totals(listed.num_rows, pc.sum(listed["size"]).as_py() or 0)
        except LogFileNotFoundError:  # deleted since, and the commits with it
            raise
        except StorageError as problem:
            state = replace(state, log=load_without_checkpoint(log, problem))
            return replace(self, state=state, checksum=None).listed(bound)
        log.file_lists.keep(self._key, listed)
        return listed

    def frame(self) -> DataFrame:
        """Return the list of files as a lazy DataFrame."""
        fields = ["path", "partitionValues", "size"]
        if self._has_vectors:
            fields += ["deletionVector"]
        if self.tracks_rows:
            fields += ROW_ID_FIELDS.values()
        return self.state.scan_files(*fields, skipping=self.skipping).selectExpr(*self._columns)

    @property
    def _key(self) -> Hashable:
        """All that the list depends on beside the log."""
        predicate, zone = None, None
        if self.skipping is not None:
            predicate = repr(self.skipping.predicate)
            zone = session_time_zone(self.state.log.spark)  # of its casts
        return predicate, zone, self.state.partition_time_zone, *self._columns

    @property
    def _columns(self) -> list[str]:
        return file_columns(
            self.state.configuration,
            self.state.log.store.table_root,
            has_vectors=self._has_vectors,
            tracks_rows=self.tracks_rows,
        )

    @property
    def _has_vectors(self) -> bool:
        return has_vectors(self.state.configuration)

    def check_totals(self, num_files: int, size_bytes: int) -> None:
        """Compare all files with the version checksum, if they depend on a checkpoint.

        References
        ----------
        PROTOCOL.md#state-validation
        """
        log, checksum, totals = self.state.log, self.checksum, []
        if log.checkpoint is None or checksum is None:
            return
        if checksum.num_files is not None:
            totals.append(("files", num_files, checksum.num_files))
        if checksum.table_size_bytes is not None:
            totals.append(("bytes of files", size_bytes, checksum.table_size_bytes))
        for what, count, expected in totals:
            if count != expected:
                problem = (
                    f"{log.checkpoint.checkpoint.files[0].name} and the commits after it give "
                    f"{count} {what}, {version_checksum_name(log.segment.version)} {expected}; "
                    "it is to be deleted if it is the wrong one"
                )
                root, version = log.store.table_root, log.segment.version
                raise MalformedLogFileError(path=root, version=version, problem=problem)


def skipping_of(state: TableState, predicate: Predicate | None) -> DataSkipping | None:
    """Return data skipping by a predicate; None without one."""
    if predicate is None:
        return None
    configuration = state.configuration
    return DataSkipping.of(
        predicate,
        configuration.schema,
        configuration.partition_columns,
        column_mapping=configuration.column_mapping,
        time_zone=state.partition_time_zone,
    )


def has_vectors(configuration: TableConfiguration) -> bool:
    """Return True if files may have deletion vectors."""
    return is_supported(configuration.protocol, TableFeature.DELETION_VECTORS)


def read_list(files: DataFrame, bound: int, version: Version, *, few: bool) -> pa.Table | None:
    """Read a list of files; None if it is longer than a bound.

    Parameters
    ----------
    few
        True if it surely is not: a limit, with which the driver stops in time, costs a shuffle.
    """
    limited = files if few else files.limit(bound + 1)
    try:
        return read_table(limited, what="files of a scan", bound=bound, version=version)
    except DriverReadTooLargeError:
        return None


def file_columns(
    configuration: TableConfiguration,
    table_root: str,
    *,
    has_vectors: bool,
    tracks_rows: bool = False,
) -> list[str]:
    """Return SQL of the columns that scans need of each file, see `NativeScan.rows`, of rows with
    the fields of add actions and NUM_RECORDS.
    """
    columns = [f"{absolute_path('path', table_root=table_root)} AS file", "size"]
    columns += partition_texts(configuration)
    if has_vectors:
        has_vector = "deletionVector.storageType IS NOT NULL"
        columns += [
            f"CASE WHEN {has_vector} THEN {name} END AS {name}"
            for name in ("deletionVector", NUM_RECORDS)
        ]
    if tracks_rows:
        columns += row_id_columns()
    return columns


def partition_texts(configuration: TableConfiguration) -> list[str]:
    """Return SQL of the partition values of a file, as text: the scan types them beside its files,
    without another way through Arrow.
    """
    return [
        f"try_element_at(partitionValues, {text_literal(key)}) AS {quoted(partition_column(index))}"
        for index, (key, _) in enumerate(configuration.partition_keys)
    ]
