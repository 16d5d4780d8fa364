"""The files that an operation on rows writes: copied and new rows, and change data.

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
from typing import overload

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.change_types import CHANGE_TYPE
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.protocol.table_features import check_data_writable
from sparkdelta.base.protocol.table_properties import (
    compression,
    has_change_data_feed,
    is_append_only,
)
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.table.definition.clustering import clustering_columns
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.listing.listing import open_log_for_writing, read_options
from sparkdelta.table.rows.conformed_row_frames import retyped_rows
from sparkdelta.table.rows.data_files import write_data_files
from sparkdelta.table.rows.file_descriptions import FileDescriber
from sparkdelta.table.rows.layout import lay_out
from sparkdelta.table.rows.modified_files import NO_FILES, ModifiedFiles
from sparkdelta.table.rows.new_files import NewFiles
from sparkdelta.table.rows.orphans import report_orphans
from sparkdelta.table.rows.removed_files import commit_tags, row_id_columns
from sparkdelta.table.scan.scan_request import FileList, MetadataColumn
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


class Stopwatch:
    """Times the phases of an operation, in milliseconds."""

    def __init__(self) -> None:
        self._start = self._last = time.monotonic_ns()
        self._phases: dict[str, int] = {}

    def lap(self, name: str) -> None:
        """Close the current phase under this name and begin the next."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChangeWriter:
    """The writer of one operation's data files and change data files, see `row_change_writer`.

    Attributes
    ----------
    spark
        A `write_session`.
    snapshot
        The table as it was read; None where there is no table yet.
    places
        Of the files that were written so far, see `orphans.report_orphans`.
    identities
        The physical paths of identity columns whose values are generated.
    data_change
        False if the files hold the rows of the table as they were.
    target_file_size
        The approximate size in bytes: rows are shuffled so that a partition gets one file for each
        such amount; None to write them where they are.
    parquet_options
        Of Spark's Parquet writer, for the data files.
    settings
        Spark's, for the data files.
    """

    spark: SparkSession
    store: LogStore
    snapshot: Snapshot | None
    change: DefinitionChange
    places: list[str] = field(default_factory=list)
    identities: tuple[ColumnPath, ...] = ()
    data_change: bool = True
    target_file_size: int | None = None
    parquet_options: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def writes_change_data(self) -> bool:
        after = self.change.after
        return has_change_data_feed(after.protocol, after.properties)

    @overload
    def write(
        self, new: DataFrame, modified: ModifiedFiles = ..., *, has_row_ids: bool = ...
    ) -> NewFiles: ...

    @overload
    def write(self, new: None, modified: ModifiedFiles) -> NewFiles | None: ...

    def write(
        self,
        new: DataFrame | None,
        modified: ModifiedFiles = NO_FILES,
        *,
        has_row_ids: bool = True,
    ) -> NewFiles | None:
        """Write the new rows and the rows that stay of rewritten files; None if there are none.

        Parameters
        ----------
        new
            Conformed rows of the table's columns, and `file_columns` if they have row ids.
        """
        rows, table, file_columns = new, self.change.after, self.file_columns
        rewritten = modified.rewritten
        moves_frames = engine_of(self.spark).can("move frames")
        if isinstance(rewritten, DataFrame) and not moves_frames:
            problem = "it selects rows of too many files; change them from a classic session"
            raise InvalidArgumentError(argument="condition", problem=problem)
        if rewritten is not None:
            kept = self.rows_of(rewritten)
            rows = kept if rows is None else kept.unionByName(rows, allowMissingColumns=True)
        elif not has_row_ids:
            file_columns = ()
        if rows is None:
            return None
        laid_out = lay_out(
            rows,
            table,
            spark=self.spark,
            file_columns=file_columns,
            target_file_size=self.target_file_size,
            # A task that is run again could number its rows otherwise, which a shuffle would mix
            # with those that the first run had sent.
            is_shuffled=not self.identities,
        )
        laid_out = replace(laid_out, settings={**laid_out.settings, **self.settings})
        options = {**self._options, **self.parquet_options}
        files = write_data_files(laid_out, self.store, self._describer, options)
        self.places.extend(files.places)
        return files

    def rows_of(self, files: FileList) -> DataFrame:
        """Return the rows of the table's files, see `Scan.rows_of`, in its new columns and
        `file_columns`; lazy.
        """
        assert self.snapshot is not None
        rows = self.with_file_columns(self.snapshot.scan().rows_of(files, *self.row_ids))
        return retyped_rows(rows, self.change.after.schema.fields, self.file_columns)

    def write_changes(self, rows: DataFrame) -> NewFiles:
        """Write rows of the table with `CHANGE_TYPE` as change data files."""
        describer = replace(self._describer, statistics_columns=(), data_change=False)
        table, kind = self.change.after, [CHANGE_TYPE]
        laid_out = lay_out(rows, table, spark=self.spark, file_columns=kind)
        files = write_data_files(
            laid_out, self.store, describer, self._options, is_change_data=True
        )
        self.places.extend(files.places)
        return files

    @property
    def row_ids(self) -> tuple[MetadataColumn, ...]:
        """The metadata columns of rows that keep their ids: none if the table has no row ids."""
        return ROW_IDS if self.file_columns else ()

    @property
    def file_columns(self) -> tuple[str, ...]:
        """The columns of data files that hold `row_ids`."""
        return () if self.snapshot is None else row_id_columns(self.snapshot)

    @property
    def tags(self) -> dict[str, str]:
        """The tags of a commit that writes rows again."""
        return commit_tags(self.change.after, keeps_row_ids=bool(self.row_ids))

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
            table_root=self.store.table_root,
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
        return read_options(self.store, {} if self.snapshot is None else self.snapshot.log.options)


@contextmanager
def row_change_writer(
    spark: SparkSession,
    snapshot: Snapshot | None,
    change: DefinitionChange,
    modified: ModifiedFiles = NO_FILES,
    *,
    store: LogStore | None = None,
) -> Iterator[RowChangeWriter]:
    """Return a block that writes the files of one operation; all of them are deleted if it fails,
    with the new deletion vectors.

    Parameters
    ----------
    spark
        The session of the write, see `SparkEngine.write_session`.
    store
        By default, that of the snapshot.
    """
    if store is None:
        assert snapshot is not None
        store = snapshot.log.store
    writer = RowChangeWriter(spark=spark, store=store, snapshot=snapshot, change=change)
    writer.places.extend(modified.places)
    with report_orphans(store.table_root, writer.places, store.table_files()):
        yield writer


def open_changeable(
    spark: SparkSession,
    path: str,
    options: Mapping[str, str] | None = None,
    *,
    only_inserts: bool = False,
) -> Snapshot:
    """Return the latest version of a table whose rows may be changed.

    Parameters
    ----------
    only_inserts
        True if rows are only inserted, which append-only tables allow.
    """
    store = open_log_for_writing(spark, path, options)
    snapshot = open_snapshot(spark, path, store=store, options=options or {})
    check_data_writable(snapshot.protocol, path=snapshot.path)
    if not only_inserts and is_append_only(snapshot.protocol, snapshot.properties):
        raise DeltaError.of("DELTA_CANNOT_MODIFY_APPEND_ONLY", path=snapshot.path)
    return snapshot


def unchanged_definition(snapshot: Snapshot) -> DefinitionChange:
    """Return the change of an operation that keeps the table's schema and properties."""
    table = snapshot.configuration
    return DefinitionChange(table, table, clustering_columns=clustering_columns(snapshot) or ())


def check_row_count(
    written: NewFiles | None, expected: int | None, *, path: str, operation: str
) -> None:
    """Check that the number of written rows agrees with the deletion vectors."""
    found = 0 if written is None else written.num_rows
    if found != expected:
        raise DeltaError.of(
            "DELTA_NUM_RECORDS_MISMATCH",
            path=path,
            operation=operation,
            expected=expected,
            found=found,
        )
