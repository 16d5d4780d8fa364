"""Rows to new data files and their add actions; nothing of it is in the table before a commit.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.engine.driver import our_errors, read_table
from sparkdelta.engine.file_readers import read_files
from sparkdelta.engine.job_names import named_jobs
from sparkdelta.engine.sessions import parallelism
from sparkdelta.engine.worker_python import worker_python
from sparkdelta.engine.worker_storage import worker_files
from sparkdelta.exceptions import DriverReadTooLargeError
from sparkdelta.frames.rows.conformed_rows import (
    WrittenColumn,
    conformed_rows,
    fulfilling,
    retyped_rows,
)
from sparkdelta.frames.rows.physical_rows import physical_rows
from sparkdelta.frames.rows.written_rows import written_rows
from sparkdelta.protocol.iceberg_compatibility import NESTED_IDS_VERSION
from sparkdelta.protocol.log_files import data_directory
from sparkdelta.protocol.table_properties import ColumnMappingMode
from sparkdelta.schema.column_mapping import physical_name
from sparkdelta.schema.nested_ids import ParquetPath, nested_field_ids
from sparkdelta.schema.row_rules import RowRules
from sparkdelta.schema.statistics_columns import DEFAULT_PREFIX_LENGTH
from sparkdelta.schema.table_schema import quoted
from sparkdelta.storage.log_store import LogStore, log_path
from sparkdelta.table.staging import staging
from sparkdelta.table.write.few_files import MAX_DRIVER_FOOTERS, DriverFiles, describe_few_files
from sparkdelta.table.write.job_failures import write_failures
from sparkdelta.table.write.new_files import MAX_NEW_FILES, NewFiles
from sparkdelta.table.write.orphans import report_orphans
from sparkdelta.table.write.row_sessions import (
    computed,
    meant_by_the_user,
    moved_back,
    parquet_writer,
)
from sparkdelta.workers.copied_files import FileCopier, copied_files
from sparkdelta.workers.files import WorkerFiles
from sparkdelta.workers.footer_statistics import FooterReader, describe_files

MAX_COPIED_FILES = 100_000
"""Up to this many files are written where the field ids of elements, keys and values must be
written after Spark's writer; the driver learns their names, as others of failed tasks lie beside.
"""

_TASKS_PER_CORE = 4
_SHUFFLED_BYTES_PER_BYTE = 2  # rows that are shuffled are larger than in columns, by about so much
_SHUFFLE_SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1",
    "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
}
"""Spark measures what was shuffled, and cuts and joins tasks to the size that is asked for."""

_LIST_OPTIONS = {
    "recursiveFileLookup": "true",
    "pathGlobFilter": "*.parquet",
    "__globPaths__": "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileWriter:
    """Writes rows below the root of one table.

    Attributes
    ----------
    columns
        The table's columns in its order, with where their values come from.
    partition_columns
        In the order of `metaData.partitionColumns`.
    statistics_columns
        The physical paths of the columns that get statistics.
    rules
        What the table says of its rows.
    target_file_size
        In bytes, about: rows are shuffled so that each partition gets a file for so many; None to
        write them where they are.
    options
        Options of Spark's Parquet writer, and Hadoop's settings.
    iceberg
        The version of Iceberg compatibility that the table has: files hold the partition columns,
        and ids of elements, keys and values.
    """

    spark: SparkSession
    store: LogStore
    columns: Sequence[WrittenColumn]
    partition_columns: tuple[str, ...]
    statistics_columns: tuple[tuple[str, ...], ...]
    column_mapping: ColumnMappingMode = ColumnMappingMode.NONE
    prefix_length: int = DEFAULT_PREFIX_LENGTH
    rules: RowRules = field(default_factory=RowRules)
    data_change: bool = True
    target_file_size: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    iceberg: int | None = None

    @property
    def table_root(self) -> str:
        return self.store.table_root

    def write(
        self,
        rows: DataFrame,
        *,
        where: str | Column | None = None,
        copied: DataFrame | None = None,
        kept: Sequence[str] = (),
    ) -> NewFiles:
        """Write the rows into a directory of their own, and describe its files.

        Simultaneous writes into one directory would lose rows: Spark's committer shares its
        temporary files.

        Parameters
        ----------
        where
            What every row must fulfil, in the table's columns.
        copied
            Rows that were in the table before, which nothing is asked of.
        kept
            LONG columns of `copied` that the files hold besides, null for new rows.

        Raises
        ------
        DeltaError
            What a row breaks, or why the job failed.
        """
        directory = f"{self.table_root}/{data_directory(str(uuid4()))}"
        names = self._directory_names()
        columns = [WrittenColumn(c.field, c.source, names.get(c.field.name)) for c in self.columns]
        conformed = self._conformed(rows, columns)
        if where is not None:
            with meant_by_the_user(conformed, self.spark) as own:
                conformed = fulfilling(own, where)
        if copied is not None:
            conformed = conformed.unionByName(
                retyped_rows(copied, [column.field for column in self.columns], kept),
                allowMissingColumns=True,
            )
        written = written_rows(conformed, columns, kept, with_partitions=self.iceberg is not None)
        files = self._physical(self._shuffled(written, list(names.values())), names, kept)

        def write_into(place: str) -> None:
            with (
                write_failures(self.table_root),
                our_errors(None),
                named_jobs(self.spark, "data files"),
            ):
                parquet_writer(self.spark)(
                    files,
                    place,
                    partition_by=list(names.values()),
                    options=self.options,
                    settings=self._settings(),
                )

        nested_ids = self._nested_ids()
        with report_orphans(self.table_root, directory, self._driver_files().delete_directory):
            if nested_ids:
                with staging(self.spark, self.store) as stage:
                    place = log_path(self.table_root, f"{stage.name}/data")
                    write_into(place)
                    new = self._copied(place, directory, nested_ids)
            else:
                write_into(directory)
                new = self._described(directory)
            return replace(new, directory=directory)

    def _nested_ids(self) -> Mapping[ParquetPath, int]:
        if self.iceberg != NESTED_IDS_VERSION:
            return {}
        return nested_field_ids(StructType([column.field for column in self.columns]))

    def _copied(self, source: str, target: str, ids: Mapping[ParquetPath, int]) -> NewFiles:
        """The files below another directory as they must be in this one."""
        copier = FileCopier(self._worker_files(), source, target, ids)
        with worker_python(self.spark):
            copied = copied_files(self._listed(source).select("path"), copier, self._reader())
        with named_jobs(self.spark, "field ids of data files"):
            table = read_table(copied, what="copied data files", bound=MAX_COPIED_FILES)
        if table.num_rows <= MAX_NEW_FILES:
            return NewFiles.known(self.spark, table)
        return NewFiles.many(self.spark.createDataFrame(table))

    def _shuffled(self, rows: DataFrame, directories: Sequence[str]) -> DataFrame:
        """The rows of each directory together, in as many tasks as their size asks for.

        Numbered rows stay where they are: a task that is run again could number them otherwise,
        which a shuffle would mix with what the first run had sent.
        """
        if self.target_file_size is None or any(
            column.source is None and column.field.name in self.rules.identities
            for column in self.columns
        ):
            return rows
        with computed(rows, self.spark) as ours:
            shuffled = ours.hint("rebalance", *(F.col(quoted(name)) for name in directories))
        return moved_back(shuffled, self.spark)

    def _settings(self) -> Mapping[str, str]:
        with_ids = self.column_mapping is not ColumnMappingMode.NONE
        ids = {"spark.sql.parquet.fieldId.write.enabled": str(with_ids).lower()}
        if self.target_file_size is None:
            return ids
        size = self.target_file_size * _SHUFFLED_BYTES_PER_BYTE
        return {
            **ids,
            **_SHUFFLE_SETTINGS,
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(size),
        }

    def _conformed(self, rows: DataFrame, columns: Sequence[WrittenColumn]) -> DataFrame:
        with computed(rows, self.spark) as ours:
            conformed = conformed_rows(
                ours,
                columns,
                self.rules,
                max_partitions=_TASKS_PER_CORE * parallelism(self.spark),
                path=self.table_root,
            )
        return moved_back(conformed, self.spark)

    def _physical(
        self, rows: DataFrame, directories: Mapping[str, str], kept: Sequence[str]
    ) -> DataFrame:
        if self.column_mapping is ColumnMappingMode.NONE:
            return rows
        data = [column.field for column in self.columns if column.field.name not in directories]
        if self.iceberg is not None:  # after the others, as the first version asks for
            data += [column.field for column in self.columns if column.field.name in directories]
        return physical_rows(rows, data, [*kept, *directories.values()])

    def _directory_names(self) -> dict[str, str]:
        """The name of each partition column's directories: its own but where Spark would hide them,
        or where it is that of another column of the rows or files.
        """
        fields = {column.field.name: column.field for column in self.columns}
        data = [
            field
            for name, field in fields.items()
            if self.iceberg is not None or name not in self.partition_columns
        ]
        taken = {f.name.lower() for f in data}
        taken |= {physical_name(f, self.column_mapping).lower() for f in data}
        names: dict[str, str] = {}
        for index, column in enumerate(self.partition_columns):
            name = physical_name(fields[column], self.column_mapping)
            if name[0] not in _PLAIN:
                name = f"p{index}"
            while name.lower() in taken:
                name += "_"
            taken.add(name.lower())
            names[column] = name
        return names

    def _partition_keys(self) -> tuple[str, ...]:
        fields = {column.field.name: column.field for column in self.columns}
        return tuple(
            physical_name(fields[name], self.column_mapping) for name in self.partition_columns
        )

    def _reader(self) -> FooterReader:
        return FooterReader(
            self._worker_files(),
            self.table_root,
            self._partition_keys(),
            self.statistics_columns,
            self.data_change,
            self.prefix_length,
        )

    def _listed(self, directory: str) -> DataFrame:
        return read_files(self.spark, "binaryFile", [directory], options=_LIST_OPTIONS)

    def _described(self, directory: str) -> NewFiles:
        reader, files = self._reader(), self._driver_files()
        most = MAX_DRIVER_FOOTERS if isinstance(files, WorkerFiles) else MAX_NEW_FILES
        few = describe_few_files(files, directory, reader, most)
        if few is not None:
            return NewFiles.known(self.spark, few)
        listed = self._listed(directory).select(
            "path", "length", F.unix_millis("modificationTime").alias("modificationTime")
        )
        with worker_python(self.spark):
            described = describe_files(listed, reader)
        try:
            table = read_table(
                described.limit(MAX_NEW_FILES + 1), what="new data files", bound=MAX_NEW_FILES
            )
        except DriverReadTooLargeError:
            return NewFiles.many(described)
        return NewFiles.known(self.spark, table)

    def _driver_files(self) -> DriverFiles:
        files = self._worker_files()
        if files.is_near(self.table_root):
            return files
        from sparkdelta.storage.hadoop_files import HadoopFiles  # workers would need libhdfs

        return HadoopFiles(self.spark, self.options)

    def _worker_files(self) -> WorkerFiles:
        return worker_files(self.spark, self.table_root, self.options)
