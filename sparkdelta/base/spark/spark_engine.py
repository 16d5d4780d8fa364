"""Interface to a Spark session that hides the differences between classic Spark and Spark Connect.

Only this package distinguishes the two kinds of sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.parquet.parquet_options import (
    LateRelation,
    ParquetRelation,
    PartitionDirectories,
    UnpushedType,
)
from sparkdelta.base.predicates.predicate_rules import Predicate
from sparkdelta.base.spark.match_terms import MatchTerms
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.base.storage.stream_source import StreamSource
from sparkdelta.base.storage.worker_files import StoredFiles


class TaskCounter(Protocol):
    """Counts the tasks of the jobs started since it was created."""

    def counts(self) -> tuple[int, int]:
        """Return the number of finished tasks and of all known tasks."""


class SparkEngine(Protocol):
    """A Spark session, either classic or a Spark Connect client.

    Attributes
    ----------
    attaches_partition_values
        True if scans accept partition values by directory, at no cost per row.
    matches_field_ids
        True if scans can match columns of data files by field id.
    reads_hidden_names
        True if files with names that begin with ``_`` or ``.`` can be read.
    sees_plans
        True if the analyzed plan of a DataFrame is accessible.
    moves_frames
        True if a DataFrame can be moved to another session without changing its meaning.
    runs_streams
        True if functions of a streaming query run in this process.
    registers_empty_tables
        True if the session catalog takes a managed table only as long as it has no files.
    reads_cached_files
        True if files can be read again while Spark's cache has their rows.
    """

    attaches_partition_values: ClassVar[bool]
    matches_field_ids: ClassVar[bool]
    reads_hidden_names: ClassVar[bool]
    sees_plans: ClassVar[bool]
    moves_frames: ClassVar[bool]
    runs_streams: ClassVar[bool]
    registers_empty_tables: ClassVar[bool]
    reads_cached_files: ClassVar[bool]

    @property
    def spark(self) -> SparkSession: ...

    @property
    def parallelism(self) -> int:
        """The approximate number of tasks that run in parallel."""

    @property
    def runs_workers_locally(self) -> bool:
        """True if Python workers run on the driver's machine and are started by the driver."""

    @property
    def shows_progress_bar(self) -> bool:
        """True if Spark shows its own progress bar in a terminal."""

    def named_jobs(self, name: str) -> AbstractContextManager[None]:
        """Describe the Spark jobs that this thread starts in a block, and restore the user's
        description afterwards.
        """

    def task_counter(self) -> TaskCounter | None:
        """Return a counter of the tasks that are started from now on; None if tasks are not
        accessible.
        """

    def hadoop_settings(
        self, names: Sequence[str], hadoop_conf: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the values of the named Hadoop settings that are set in the session or in
        `hadoop_conf`, which takes precedence.
        """

    def driver_files(self, hadoop_conf: Mapping[str, str]) -> StoredFiles | None:
        """Return access to files of any storage from the driver; None if the driver has none."""

    def read_files(
        self,
        source: str,
        paths: Sequence[str],
        *,
        options: Mapping[str, str],
        schema: StructType | None = None,
    ) -> DataFrame:
        """Return a lazy DataFrame of files read by a Spark data source.

        On classic Spark the files are listed with two tasks per core. By default Spark uses one
        task per file from 33 files on, which takes seconds for a thousand files.

        Parameters
        ----------
        source
            ``parquet``, ``text`` or ``binaryFile``.
        """

    def parquet_relation(
        self,
        files: Sequence[str],
        schema: StructType,
        options: Mapping[str, str],
        partitions: PartitionDirectories | None,
        size_bytes: int,
        *,
        is_streaming: bool = False,
        unpushed: frozenset[UnpushedType] = frozenset(),
    ) -> ParquetRelation:
        """Return a scan of Parquet files, independent of the settings of the user's session.

        Parameters
        ----------
        files
            Absolute, decoded paths; Spark's file sources must ignore the names of all of them or of
            none.
        partitions
            Partition values by directory, if `attaches_partition_values`.
        size_bytes
            The sum of the files' sizes in the log.
        is_streaming
            True if the rows are a batch of a `stream`.
        unpushed
            The types on which row groups are not filtered; classic Spark only.

        Raises
        ------
        FileNotFoundError
            A file does not exist; `filename` is its path if Spark reports it.
        """

    @property
    def calls_back(self) -> bool:
        """True if Spark can ask Python for the files of a scan when a query runs."""

    def listing_session(self, *, compiles: bool) -> SparkSession:
        """Return the session of queries that find the files of a scan while another query waits;
        requires `calls_back`.

        Parameters
        ----------
        compiles
            False for few rows: to compile a plan takes longer than to interpret it.
        """

    def in_listing_session(self, *, compiles: bool) -> AbstractContextManager[SparkSession]:
        """Use a `listing_session` in a block; the active session is the same after it."""

    def reads_batches(self, schema: StructType) -> bool:
        """Return True if Spark's Parquet reader gives batches of columns, not rows, of this schema;
        requires `calls_back`.
        """

    def late_rows(self, relation: LateRelation, listing: SparkSession) -> DataFrame:
        """Return the rows of a scan whose files are chosen when a query runs, independent of the
        settings of the user's session; requires `calls_back`.

        Parameters
        ----------
        listing
            A `listing_session`, that of the lister's frames.
        """

    def write_parquet(
        self,
        rows: DataFrame,
        directory: str,
        *,
        partition_by: Sequence[str],
        options: Mapping[str, str],
        settings: Mapping[str, str],
    ) -> None:
        """Write rows to a new directory with Spark's Parquet writer.

        Parameters
        ----------
        rows
            A DataFrame of the session; on Spark Connect, of a `write_session`.
        partition_by
            The columns whose values are in directory names and not in the files.
        options
            Options of Spark's Parquet source.
        settings
            Settings of this write only.
        """

    def open_log(self, path: str, hadoop_conf: Mapping[str, str]) -> LogStore:
        """Return the log store of a table, chosen by the scheme of its path."""

    def open_log_for_writing(self, path: str, hadoop_conf: Mapping[str, str]) -> LogStore:
        """Same as `open_log`, but with the object store's own client if Spark cannot commit.

        Raises
        ------
        StoreNotWritableError
            Commits to the storage are not possible; nothing was written.
        """

    def table_location(self, name: Sequence[str], provider: str) -> str | None:
        """Return the location of a table in the session catalog; None for tables of another
        provider, views, and what is not there.
        """

    def is_managed(self, name: Sequence[str]) -> bool:
        """True if the session catalog manages the files of a table that it has."""

    def free_location(self, name: Sequence[str]) -> str:
        """Return the location of a new table of the session catalog.

        Raises
        ------
        InvalidArgumentError
            The name is taken, or tables with names cannot be created in this session.
        """

    def register_table(
        self, name: Sequence[str], location: str, provider: str, *, is_managed: bool
    ) -> None:
        """Add a table to the session catalog, which has `free_location`."""

    def rename_table(self, name: Sequence[str], new_name: Sequence[str]) -> None:
        """Rename a table of the session catalog, and the directory of a managed one.

        Raises
        ------
        InvalidArgumentError
            The new name is taken or in another database, or this session cannot rename.
        """

    def move_table(self, name: Sequence[str], location: str) -> None:
        """Give a table of the session catalog another location.

        Raises
        ------
        InvalidArgumentError
            This session cannot do that.
        """

    def drop_table(self, name: Sequence[str]) -> None:
        """Remove a table from the session catalog, and the files of a managed one."""

    def log_session(self) -> AbstractContextManager[SparkSession]:
        """Yield a session that writes the same log files independent of the user's settings. It has
        the user's Hadoop settings and number of shuffle partitions.
        """

    def write_session(self) -> AbstractContextManager[SparkSession]:
        """Yield the session that reads and writes a table during a write: on classic Spark the
        user's; on Spark Connect another one, in which a table's SQL expressions do not depend on
        the user's settings.
        """

    def in_table_session(self, rows: DataFrame) -> AbstractContextManager[DataFrame]:
        """Yield the same rows in a session in which a table's SQL expressions do not depend on the
        user's settings.
        """

    def in_conversion_session(
        self, rows: DataFrame, time_zone: str
    ) -> AbstractContextManager[DataFrame]:
        """Yield rows of this session in one in which casts depend on a time zone alone; on Spark
        Connect the same session, whose time zone it must be.
        """

    def in_user_session(self, rows: DataFrame) -> AbstractContextManager[DataFrame]:
        """Yield the same rows in the user's session, in which the user's conditions are evaluated;
        requires `moves_frames`.
        """

    def rebind_to_session(self, rows: DataFrame) -> DataFrame:
        """Return the rows of a DataFrame of `in_table_session` as a DataFrame of this session."""

    def micro_batch(self, batch: DataFrame) -> AbstractContextManager[tuple[DataFrame, str]]:
        """Yield the rows of a micro-batch as a DataFrame of this session, and the id of the
        streaming query that calls; requires `runs_streams`.
        """

    def stream(self, source: StreamSource) -> DataFrame:
        """Return the streaming DataFrame of a source, which streaming queries call in this process;
        requires `runs_streams`.

        Raises
        ------
        StreamNotSupportedError
            This version of Spark has no such sources.
        """

    def analyzed_filter(self, rows: DataFrame, where: str | Column, alias: str) -> DataFrame:
        """Return the rows that a condition selects, as an argument for `parse_condition`.

        Raises
        ------
        AnalysisException
            The condition is invalid for these rows.
        """

    def parse_condition(
        self,
        filtered: DataFrame,
        where: str | Column,
        schema: StructType,
        *,
        time_zone: str,
        alias: str | None = None,
    ) -> Predicate:
        """Return the predicate of a condition.

        Parameters
        ----------
        filtered
            An `analyzed_filter` of an empty frame by `where`.
        schema
            The table's columns.
        time_zone
            The session time zone, for strings that are cast to timestamps.
        alias
            Of the empty frame; `analyzed_text.qualifier_of(schema)` by default.
        """

    def match_terms(
        self,
        filtered: DataFrame,
        target: DataFrame,
        source: DataFrame,
        schema: StructType,
        *,
        alias: str,
    ) -> MatchTerms:
        """Return what a condition says about the rows of a table; requires `sees_plans`.

        Parameters
        ----------
        filtered
            A filter by the condition on the rows of `target` and `source`.
        target
            Rows with the columns of `schema`, under the alias.
        """

    def is_local_data(self, frame: DataFrame) -> bool:
        """Return True if Spark has all rows of a DataFrame before a job starts."""

    def columns_used(self, frame: DataFrame, rows: DataFrame) -> list[str]:
        """Return the columns of `rows` that the last operator of `frame`, whose plan contains
        theirs, refers to; requires `sees_plans`.
        """

    def with_attributes_of(self, rows: DataFrame, like: DataFrame) -> DataFrame:
        """Return rows whose first columns stand for all those of another DataFrame, so that
        expressions of it, and its own columns, can be evaluated on them; requires `sees_plans`.
        """

    def with_columns_of(self, rows: DataFrame, like: DataFrame) -> DataFrame:
        """Return rows whose columns stand for those of another DataFrame that have their names and
        types, so that its own columns can be evaluated on them; the same rows without `sees_plans`.
        """

    def plan_nodes(self, frame: DataFrame) -> tuple[bool, frozenset[str]]:
        """Return True if a plan is deterministic, and the class names of its operators and
        expressions; of a filter, those of its condition alone. Requires `sees_plans`.
        """

    def read_options_named(self, rows: DataFrame, name: str) -> set[str]:
        """Return the values of a read option in the plan of a DataFrame."""


def engine_of(spark: SparkSession) -> SparkEngine:
    """Return the engine of a session."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from sparkdelta.base.spark.connect_engine import ConnectEngine

        return ConnectEngine(spark)
    from sparkdelta.base.spark.classic_engine import ClassicEngine  # needs py4j

    return ClassicEngine(spark)
