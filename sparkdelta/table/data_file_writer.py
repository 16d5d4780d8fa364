"""Rows to new data files and their add actions; nothing of it is in the table before a commit.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.exceptions import DriverReadTooLargeError
from sparkdelta.frames.conformed_rows import WrittenColumn, conformed_rows, fulfilling, retyped_rows
from sparkdelta.frames.footer_statistics import ADDED, NUM_RECORDS, FooterReader, describe_files
from sparkdelta.frames.physical_rows import physical_rows
from sparkdelta.frames.written_rows import written_rows
from sparkdelta.protocol.file_actions import AddFile
from sparkdelta.protocol.table_properties import ColumnMappingMode
from sparkdelta.schema.column_mapping import physical_name
from sparkdelta.schema.row_rules import RowRules
from sparkdelta.schema.sql_text import from_json_text
from sparkdelta.schema.statistics_columns import DEFAULT_PREFIX_LENGTH
from sparkdelta.schema.table_schema import quoted
from sparkdelta.storage.worker_files import WorkerFiles, setting_names
from sparkdelta.table.driver import our_errors, read_rows, read_table
from sparkdelta.table.few_files import describe_few_files
from sparkdelta.table.job_names import named_jobs
from sparkdelta.table.orphans import orphans_are_told
from sparkdelta.table.sessions import computing_session

MAX_NEW_FILES = 10_000
"""Up to this many new files are known to the driver one by one."""

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

_FILE_LIST = "path STRING, modificationTime TIMESTAMP_LTZ, length LONG, content BINARY"
_LIST_OPTIONS = {
    "recursiveFileLookup": "true",
    "pathGlobFilter": "*.parquet",
    "__globPaths__": "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@dataclass(frozen=True, slots=True)
class NewFiles:
    """Data files that nobody refers to yet.

    Attributes
    ----------
    values
        Their add actions; None if they are many.
    directory
        Where they are.
    """

    count: int
    num_rows: int
    size_bytes: int
    described: Callable[[], DataFrame] = field(repr=False)
    values: tuple[AddFile, ...] | None = None
    directory: str = ""

    @property
    def adds(self) -> DataFrame:
        """Their add actions in a column `add`."""
        fields = [name for name in ADDED.names if name != NUM_RECORDS]
        return self.described().select(F.struct(*fields).alias("add"))

    def last_value(self, column: str, *, is_highest: bool) -> int | None:
        """The highest value of a LONG column, or the lowest; None without rows, and where the
        statistics of a file do not tell.

        References
        ----------
        PROTOCOL.md#per-file-statistics
        """
        bound = "maxValues" if is_highest else "minValues"
        if self.values is not None:
            known = [json.loads(add.stats or "{}").get(bound, {}) for add in self.values]
            if not all(column in each for each in known):
                return None
            return (max if is_highest else min)((int(e[column]) for e in known), default=None)
        found = StructType([StructField(bound, StructType([StructField(column, LongType())]))])
        value = f"{from_json_text('add.stats', found)}.{bound}.{quoted(column)}"
        values = self.adds.selectExpr(f"{value} AS value")
        last = F.max("value") if is_highest else F.min("value")
        (row,) = read_rows(
            values.agg(last, F.count_if(F.isnull("value"))),
            what="last value of an identity column",
            bound=1,
        )
        return None if row[0] is None or row[1] else int(row[0])


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
    """

    spark: SparkSession
    table_root: str
    columns: Sequence[WrittenColumn]
    partition_columns: tuple[str, ...]
    statistics_columns: tuple[tuple[str, ...], ...]
    column_mapping: ColumnMappingMode = ColumnMappingMode.NONE
    prefix_length: int = DEFAULT_PREFIX_LENGTH
    rules: RowRules = field(default_factory=RowRules)
    data_change: bool = True
    target_file_size: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)

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
            What a row breaks; also PySpark's errors of the rows' own query.
        """
        from sparkdelta.storage.hadoop import rows_in, write_parquet  # needs py4j: classic Spark

        directory = f"{self.table_root}/data-{uuid4()}"
        names = self._directory_names()
        columns = [WrittenColumn(c.field, c.source, names.get(c.field.name)) for c in self.columns]
        conformed = self._conformed(rows)
        if where is not None:
            with rows_in(conformed, self.spark) as own:  # the caller's condition, as they mean it
                conformed = fulfilling(own, where)
        if copied is not None:
            conformed = conformed.unionByName(
                retyped_rows(copied, [column.field for column in self.columns], kept),
                allowMissingColumns=True,
            )
        with orphans_are_told(self.table_root, directory):
            with our_errors(None), named_jobs(self.spark, "data files"):
                write_parquet(
                    self._physical(
                        self._shuffled(
                            written_rows(conformed, columns, kept), list(names.values())
                        ),
                        names,
                        kept,
                    ),
                    directory,
                    partition_by=list(names.values()),
                    options={
                        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
                        **self.options,
                    },
                    settings=self._settings(),
                )
            return replace(self._described(directory), directory=directory)

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
        from sparkdelta.storage.hadoop import moved_rows, rows_in  # needs py4j: classic Spark only

        with rows_in(rows, computing_session(self.spark)) as ours:
            shuffled = ours.hint("rebalance", *(F.col(quoted(name)) for name in directories))
        return moved_rows(shuffled, self.spark)

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

    def _conformed(self, rows: DataFrame) -> DataFrame:
        from sparkdelta.storage.hadoop import moved_rows, rows_in  # needs py4j: classic Spark only

        with rows_in(rows, computing_session(self.spark)) as ours:
            conformed = conformed_rows(
                ours,
                self.columns,
                self.rules,
                max_partitions=_TASKS_PER_CORE * self.spark.sparkContext.defaultParallelism,
                path=self.table_root,
            )
        return moved_rows(conformed, self.spark)

    def _physical(
        self, rows: DataFrame, directories: Mapping[str, str], kept: Sequence[str]
    ) -> DataFrame:
        if self.column_mapping is ColumnMappingMode.NONE:
            return rows
        data = [column.field for column in self.columns if column.field.name not in directories]
        return physical_rows(rows, data, [*kept, *directories.values()])

    def _directory_names(self) -> dict[str, str]:
        """The name of each partition column's directories: its own but where Spark would hide them,
        or where it is that of another column of the rows or files.
        """
        fields = {column.field.name: column.field for column in self.columns}
        data = [field for name, field in fields.items() if name not in self.partition_columns]
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

    def _described(self, directory: str) -> NewFiles:
        worker_files = self._worker_files()
        reader = FooterReader(
            worker_files,
            self.table_root,
            self._partition_keys(),
            self.statistics_columns,
            self.data_change,
            self.prefix_length,
        )
        few = describe_few_files(worker_files, directory, reader)
        if few is not None:
            return self._known(few)
        listing = self.spark.read.format("binaryFile").schema(_FILE_LIST)
        files = listing.options(**_LIST_OPTIONS).load(directory)
        described = describe_files(
            files.select(
                "path", "length", F.unix_millis("modificationTime").alias("modificationTime")
            ),
            reader,
        )
        try:
            table = read_table(
                described.limit(MAX_NEW_FILES + 1), what="new data files", bound=MAX_NEW_FILES
            )
        except DriverReadTooLargeError:
            return self._many(described)
        return self._known(table)

    def _known(self, table: pa.Table) -> NewFiles:
        spark = self.spark

        def described() -> DataFrame:
            has_rows = table.num_rows > 0
            return spark.createDataFrame(table) if has_rows else spark.createDataFrame([], ADDED)

        return NewFiles(
            table.num_rows,
            pc.sum(table[NUM_RECORDS], min_count=0).as_py(),
            pc.sum(table["size"], min_count=0).as_py(),
            described,
            tuple(map(_value, table.to_pylist())),
        )

    def _many(self, described: DataFrame) -> NewFiles:
        """As `_described`, for more files than the driver should know; their footers are read by
        each query.
        """
        totals = described.agg(
            F.count("*").alias("count"),
            F.sum(NUM_RECORDS).alias("rows"),
            F.sum("size").alias("size"),
        )
        (row,) = read_rows(totals, what="totals of the new data files", bound=1)
        return NewFiles(row["count"], row["rows"], row["size"], lambda: described)

    def _worker_files(self) -> WorkerFiles:
        from sparkdelta.storage import hadoop  # needs py4j: classic Spark only

        names = setting_names(self.table_root)
        return WorkerFiles(hadoop.settings(self.spark, names, self.options) if names else {})


def _value(row: Mapping[str, Any]) -> AddFile:
    return AddFile(
        path=row["path"],
        partition_values=dict(row["partitionValues"]),
        size=row["size"],
        modification_time=row["modificationTime"],
        data_change=row["dataChange"],
        stats=row["stats"],
    )
