"""The interface to Spark where classic sessions and clients of Spark Connect differ.

Callers ask for behaviour; only this package knows which kind of session it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, Protocol

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.protocol.predicates import Predicate
from sparkdelta.storage.log_store import LogStore
from sparkdelta.storage.parquet import ParquetRelation, PartitionDirectories


class TaskCounter(Protocol):
    """Counts the tasks of the jobs started since it was created."""

    def counts(self) -> tuple[int, int]:
        """Return the number of finished tasks and of all known tasks."""


class DriverFiles(Protocol):
    """Lists, opens and deletes data files on the driver, by absolute, decoded paths."""

    def data_files(self, directory: str) -> list[tuple[str, int, int]]: ...

    def open(self, path: str) -> pa.NativeFile: ...

    def size(self, path: str) -> int | None: ...

    def delete_directory(self, directory: str) -> None: ...


class SparkEngine(Protocol):
    """A Spark session, classic or of Spark Connect.

    Attributes
    ----------
    attaches_partition_values
        Scans take partition values by directory, at no cost per row.
    matches_field_ids
        Scans match columns of data files by their field ids.
    reads_hidden_names
        Files whose names begin with ``_`` or ``.`` can be read.
    sees_plans
        The analyzed plan of a frame can be looked at.
    moves_frames
        A frame can be moved to another session and keeps its meaning there.
    """

    attaches_partition_values: ClassVar[bool]
    matches_field_ids: ClassVar[bool]
    reads_hidden_names: ClassVar[bool]
    sees_plans: ClassVar[bool]
    moves_frames: ClassVar[bool]

    @property
    def spark(self) -> SparkSession: ...

    @property
    def parallelism(self) -> int:
        """The approximate number of tasks that run in parallel."""

    @property
    def runs_workers_locally(self) -> bool:
        """True if the driver starts the Python workers, on its own machine."""

    @property
    def shows_progress_bar(self) -> bool:
        """True if Spark shows a progress bar of its own in a terminal."""

    def named_jobs(self, name: str) -> AbstractContextManager[None]:
        """Describe the Spark jobs that this thread starts in a block, and restore the user's
        description afterwards.
        """

    def task_counter(self) -> TaskCounter | None:
        """A counter of tasks that are started from now on; None where they cannot be seen."""

    def hadoop_settings(
        self, names: Sequence[str], hadoop_conf: Mapping[str, str]
    ) -> dict[str, str]:
        """The Hadoop settings of these names that the session has, with `hadoop_conf` above it."""

    def driver_files(self, hadoop_conf: Mapping[str, str]) -> DriverFiles | None:
        """Files of any storage, for the driver alone; None where it has no way to them."""

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
    ) -> ParquetRelation:
        """A scan of Parquet files that the settings of the user's session cannot change.

        Parameters
        ----------
        files
            Absolute, decoded paths; all with hidden names, or none.
        partitions
            Partition values by directory, where the engine attaches them.
        size_bytes
            The sum of the files' sizes in the log.

        Raises
        ------
        FileNotFoundError
            A file is gone; its `filename` is the path, as far as Spark tells.
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
        """Write rows into a new directory by Spark's own Parquet writer.

        Parameters
        ----------
        rows
            A frame of the session; on Spark Connect, of a `write_session`.
        partition_by
            Columns whose values name directories, and are not in the files.
        options
            Options of Spark's Parquet source.
        settings
            Of this write alone.
        """

    def open_log(self, path: str, hadoop_conf: Mapping[str, str]) -> LogStore:
        """The store of a table's log, by the path's scheme."""

    def open_log_for_writing(self, path: str) -> LogStore:
        """As `open_log`, with the store's own client where Spark cannot commit.

        Raises
        ------
        StoreNotWritableError
            There is no way to commit there; nothing was written.
        """

    def log_session(self) -> AbstractContextManager[SparkSession]:
        """A session that writes the same files of the log independent of the user's settings. It
        has the user's Hadoop settings and number of shuffle partitions.
        """

    def write_session(self) -> AbstractContextManager[SparkSession]:
        """The session that reads and writes a table during a write: on classic Spark the user's; on
        Spark Connect another one, in which a table's SQL expressions do not depend on the user's
        settings.
        """

    def in_table_session(self, rows: DataFrame) -> AbstractContextManager[DataFrame]:
        """The same rows in a session in which a table's SQL expressions do not depend on the user's
        settings.
        """

    def in_user_session(self, rows: DataFrame) -> AbstractContextManager[DataFrame]:
        """The same rows in the user's session, in which their conditions have their meaning, if the
        engine moves frames.
        """

    def moved_here(self, rows: DataFrame) -> DataFrame:
        """The rows of a frame made by `in_table_session`, as a frame of this session."""

    def analyzed_filter(self, rows: DataFrame, where: str | Column, alias: str) -> DataFrame:
        """The rows that a condition selects, in a form that `parse_condition` takes.

        Raises
        ------
        AnalysisException
            The condition is none of these rows.
        """

    def parse_condition(
        self, filtered: DataFrame, where: str | Column, schema: StructType, *, time_zone: str
    ) -> Predicate:
        """Return the predicate of a condition.

        Parameters
        ----------
        filtered
            An `analyzed_filter` of an empty frame by `where`, under the alias
            `analyzed_text.qualifier_of(schema)`.
        schema
            The table's columns.
        time_zone
            The session time zone, for strings that are cast to timestamps.
        """

    def plan_nodes(self, frame: DataFrame) -> tuple[bool, frozenset[str]]:
        """Return True if a plan is deterministic, and the class names of its operators and
        expressions, if the engine sees plans.
        """

    def read_options_named(self, rows: DataFrame, name: str) -> set[str]:
        """The values that a read option has in the plan of a frame."""


def engine_of(spark: SparkSession) -> SparkEngine:
    """The engine of a session."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from sparkdelta.engine.connect import ConnectEngine

        return ConnectEngine(spark)
    from sparkdelta.engine.classic import ClassicEngine  # needs py4j

    return ClassicEngine(spark)
