"""The files that DELETE, UPDATE and MERGE write: copied and new rows, and change data.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#add-cdc-file, PROTOCOL.md#data-files,
PROTOCOL.md#deletion-vector-files, PROTOCOL.md#change-data-files, PROTOCOL.md#append-only-tables,
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.protocol.table_properties import (
    compression,
    has_change_data_feed,
    is_append_only,
)
from sparkdelta.base.protocol.write_support import check_data_writable
from sparkdelta.exceptions import AppendOnlyTableError, NumRecordsMismatchError
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.definition.clustering import clustering_columns
from sparkdelta.table.definition.table_change import TableChange
from sparkdelta.table.listing.listing import open_log_for_writing, read_options
from sparkdelta.table.rows.change_files import ChangeFiles, write_change_files
from sparkdelta.table.rows.conformed_row_frames import retyped_rows
from sparkdelta.table.rows.data_files import write_data_files
from sparkdelta.table.rows.file_descriptions import FileDescriber
from sparkdelta.table.rows.layout import lay_out
from sparkdelta.table.rows.modified_files import ModifiedFiles
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.orphans import report_orphans
from sparkdelta.table.rows.rewriting import row_id_columns, union_of_actions
from sparkdelta.table.scan.scan_request import MetadataColumn
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot

ROW_IDS = (MetadataColumn.ROW_ID, MetadataColumn.ROW_COMMIT_VERSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeResult(Result):
    """The outcome of DELETE or UPDATE.

    Attributes
    ----------
    version
        The version that it committed; None if no row matched.
    num_deleted_rows
        None if whole files were deleted whose statistics lack the number of rows.
    num_copied_rows
        Unchanged rows of rewritten files.
    num_deletion_vectors
        Files that got a new deletion vector.
    retries
        The number of attempts at which another commit was first.
    """

    version: int | None = None
    num_deleted_rows: int | None = 0
    num_updated_rows: int = 0
    num_copied_rows: int = 0
    num_added_files: int = 0
    num_removed_files: int = 0
    num_deletion_vectors: int = 0
    num_added_bytes: int = 0
    num_removed_bytes: int = 0
    retries: int = 0
    milliseconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """Changes of rows that are written and not committed.

    Attributes
    ----------
    read
        The data that they depend on, for conflict detection.
    tags
        Tags of the commit.
    """

    snapshot: Snapshot
    change: TableChange
    touched: ModifiedFiles
    read: ReadSet
    new: NewFiles | None = None
    change_files: ChangeFiles | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def actions(self) -> DataFrame | None:
        """The file actions that are not values, in columns `add`, `remove` and `cdc`."""
        return union_of_actions(
            self.touched.actions,
            None if self.new is None or self.new.values is not None else self.new.adds,
            None if self.change_files is None else self.change_files.actions,
        )

    @property
    def directories(self) -> list[str]:
        """The directories of all new files."""
        written = (self.touched, self.new, self.change_files)
        return [files.directory for files in written if files is not None and files.directory]

    @property
    def file_metrics(self) -> dict[str, int]:
        """The metrics of DELETE and UPDATE about files, by their names in history."""
        new, changed, touched = self.new, self.change_files, self.touched
        return {
            "numRemovedFiles": touched.num_removed_files,
            "numRemovedBytes": touched.num_removed_bytes,
            "numAddedFiles": 0 if new is None else new.count,
            "numAddedBytes": 0 if new is None else new.size_bytes,
            "numAddedChangeFiles": 0 if changed is None else changed.count,
            "numDeletionVectorsAdded": touched.num_vectors_added,
            "numDeletionVectorsRemoved": touched.num_vectors_removed,
            "numDeletionVectorsUpdated": touched.num_vectors_updated,
        }

    def result(
        self,
        version: Version,
        attempts: int,
        milliseconds: int,
        *,
        num_deleted_rows: int | None = 0,
        num_updated_rows: int = 0,
    ) -> ChangeResult:
        """The outcome once the changes are committed."""
        new, touched = self.new, self.touched
        return ChangeResult(
            version=version,
            num_deleted_rows=num_deleted_rows,
            num_updated_rows=num_updated_rows,
            num_copied_rows=touched.num_copied_rows,
            num_added_files=0 if new is None else new.count,
            num_removed_files=touched.num_removed_files,
            num_deletion_vectors=touched.num_vectors_added,
            num_added_bytes=0 if new is None else new.size_bytes,
            num_removed_bytes=touched.num_removed_bytes,
            retries=attempts - 1,
            milliseconds=milliseconds,
        )


class Stopwatch:
    """Times the phases of an operation, in milliseconds."""

    def __init__(self) -> None:
        self._start = self._last = time.monotonic_ns()
        self._phases: dict[str, int] = {}

    def lap(self, name: str) -> None:
        """End the phase of this name; the next begins."""
        now = time.monotonic_ns()
        self._phases[name] = (now - self._last) // 1_000_000
        self._last = now

    @property
    def total_ms(self) -> int:
        return (time.monotonic_ns() - self._start) // 1_000_000

    @property
    def metrics(self) -> dict[str, int]:
        """The phases, and the total as `executionTimeMs`."""
        return {"executionTimeMs": self.total_ms, **self._phases}


@dataclass(frozen=True, slots=True)
class ChangeWriter:
    """Writes the data files and change data files of one operation, see `change_writer`.

    Attributes
    ----------
    directories
        Of the files that were written so far.
    identities
        The physical paths of identity columns whose values are generated.
    data_change
        False if the files hold the rows of the table as they were.
    settings
        Spark's, for the data files.
    """

    spark: SparkSession
    snapshot: Snapshot
    change: TableChange
    directories: list[str]
    identities: tuple[ColumnPath, ...] = ()
    data_change: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def writes_change_data(self) -> bool:
        after = self.change.after
        return has_change_data_feed(after.protocol, after.properties)

    def write(self, new: DataFrame | None, touched: ModifiedFiles) -> NewFiles | None:
        """Write the new rows and the rows that stay of rewritten files; None if there are none.

        Parameters
        ----------
        new
            Conformed rows of the table's columns, and the columns of `row_ids`.

        Raises
        ------
        DeltaError
            The rule that a row breaks, or the likely cause of a failed job.
        """
        rows, table = new, self.change.after
        if touched.rewritten is not None:
            kept = self.snapshot.scan().rows_of(touched.rewritten, *self.row_ids)
            kept = retyped_rows(
                self.with_file_columns(kept), table.schema.fields, self.file_columns
            )
            rows = kept if rows is None else kept.unionByName(rows)
        if rows is None:
            return None
        laid_out = lay_out(
            rows, table, spark=self.spark, file_columns=self.file_columns, is_shuffled=False
        )
        laid_out = replace(laid_out, settings={**laid_out.settings, **self.settings})
        store = self.snapshot.log.store
        files = write_data_files(laid_out, store, self._describer, self._options)
        self.directories.append(files.directory)
        return files

    def write_changes(self, rows: DataFrame) -> ChangeFiles:
        """Write rows of the table with `CHANGE_TYPE` as change data files."""
        store = self.snapshot.log.store
        files = write_change_files(rows, store, self._describer, self._options)
        self.directories.append(files.directory)
        return files

    @property
    def row_ids(self) -> tuple[MetadataColumn, ...]:
        """The metadata columns of rows that keep their ids: none if the table has no row ids."""
        return ROW_IDS if row_id_columns(self.snapshot) else ()

    @property
    def file_columns(self) -> tuple[str, ...]:
        """The columns of data files that hold `row_ids`."""
        return tuple(row_id_columns(self.snapshot).values())

    @property
    def tags(self) -> dict[str, str]:
        """The tags of the commit, which tell if rows that are written again keep their ids."""
        if not is_supported(self.change.after.protocol, TableFeature.ROW_TRACKING):
            return {}
        return {"delta.rowTracking.preserved": str(bool(self.row_ids)).lower()}

    def with_file_columns(self, rows: DataFrame) -> DataFrame:
        """Rename `row_ids` to `file_columns`."""
        names = [column.value for column in self.row_ids]
        return rows.withColumnsRenamed(dict(zip(names, self.file_columns, strict=True)))

    def with_kept_ids(self, rows: DataFrame) -> DataFrame:
        """Rename `row_ids` of rows that get other values: they keep their ids, and null stands for
        the version of the commit.
        """
        if not self.row_ids:
            return rows
        _, version = self.file_columns
        return self.with_file_columns(rows).withColumn(version, F.lit(None).cast("long"))

    @property
    def _describer(self) -> FileDescriber:
        return FileDescriber(
            spark=self.spark,
            table_root=self.snapshot.path,
            table=self.change.after,
            statistics_columns=(*self.change.statistics_columns, *self.identities),
            data_change=self.data_change,
            options=self._hadoop_options,
        )

    @property
    def _options(self) -> dict[str, str]:
        codec = compression(self.change.after.properties)
        return {**self._hadoop_options, "compression": codec}

    @property
    def _hadoop_options(self) -> dict[str, str]:
        return read_options(self.snapshot.log.store, self.snapshot.log.options)


@contextmanager
def change_writer(
    spark: SparkSession, snapshot: Snapshot, change: TableChange, touched: ModifiedFiles
) -> Iterator[ChangeWriter]:
    """A block that writes the files of one operation; all of them are deleted if it fails, with
    the new deletion vectors.

    Parameters
    ----------
    spark
        The session of the write, see `SparkEngine.write_session`.
    """
    directories = [] if touched.directory is None else [touched.directory]
    delete = snapshot.log.store.table_files().delete_directory
    with report_orphans(snapshot.path, directories, delete):
        yield ChangeWriter(spark, snapshot, change, directories)


def open_changeable(
    spark: SparkSession,
    path: str,
    options: Mapping[str, str] | None = None,
    *,
    only_inserts: bool = False,
) -> Snapshot:
    """The latest version of a table whose rows may be changed.

    Parameters
    ----------
    only_inserts
        True if rows are only inserted, which append-only tables allow.

    Raises
    ------
    AppendOnlyTableError
        The table is append-only.
    WriteNotImplementedError
        No rows can be written into the table.
    DeltaError
        The table cannot be read or written.
    """
    store = open_log_for_writing(spark, path, options)
    snapshot = open_snapshot(spark, path, store=store, options=options or {})
    check_data_writable(snapshot.protocol, path=snapshot.path)
    if not only_inserts and is_append_only(snapshot.protocol, snapshot.properties):
        raise AppendOnlyTableError(path=snapshot.path)
    return snapshot


def unchanged_table(snapshot: Snapshot) -> TableChange:
    """The change of an operation that leaves the table's schema and properties as they are."""
    table = snapshot.configuration
    return TableChange(table, table, clustering_columns=clustering_columns(snapshot) or ())


def check_row_count(
    written: NewFiles | ChangeFiles | None, expected: int | None, *, path: str, operation: str
) -> None:
    """Refuse to commit another number of rows than the bitmaps of the touched files tell.

    Raises
    ------
    NumRecordsMismatchError
        The rows that were found and those that were written differ, as those of a condition that
        is not deterministic, or of a file that changed meanwhile.
    """
    found = 0 if written is None else written.num_rows
    if found != expected:
        raise NumRecordsMismatchError(
            path=path, operation=operation, expected=expected, found=found
        )
