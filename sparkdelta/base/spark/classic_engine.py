"""The engine of classic Spark, whose JVM the driver can call."""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import StatusTracker
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.jvm import jvm, jvm_streams
from sparkdelta.base.jvm.hadoop import SessionHadoop
from sparkdelta.base.jvm.hadoop_files import HadoopFiles
from sparkdelta.base.jvm.hadoop_log import HadoopLogStore
from sparkdelta.base.jvm.jvm_aggregates import JvmAggregates
from sparkdelta.base.jvm.jvm_file_index import JvmLateScans
from sparkdelta.base.jvm.jvm_functions import JvmFunctions
from sparkdelta.base.jvm.jvm_scans import JvmScans
from sparkdelta.base.jvm.jvm_streams import JvmStreams
from sparkdelta.base.predicates.predicate_rules import Predicate
from sparkdelta.base.schema.stored_view import StoredView
from sparkdelta.base.spark.classic_conditions import parse_classic_filter, parse_match_terms
from sparkdelta.base.spark.enabled_sessions import sparks_own
from sparkdelta.base.spark.library_sessions import (
    IN_UTC,
    INTERPRETED,
    LISTING_SETTINGS,
    LOG_SETTINGS,
    SHUFFLE_PARTITIONS,
    Evaluation,
    replace_missing_catalog,
    session_time_zone,
    set_up,
    set_up_for_view,
)
from sparkdelta.base.spark.match_terms import MatchTerms
from sparkdelta.base.spark.spark_engine import Ability, Lateness, StreamFunction
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.base.storage.object_log import OBJECT_SCHEMES, ObjectLogStore, open_objects
from sparkdelta.base.storage.worker_files import StoredFiles, WorkerFiles, setting_names

_LOGGER = logging.getLogger(__name__)

_DESCRIPTION = "spark.job.description"
_JOB_GROUP = "spark.jobGroup.id"
_PROGRESS_BAR = "spark.ui.showConsoleProgress"


class ClassicEngine(JvmFunctions, JvmAggregates, JvmScans, JvmLateScans, JvmStreams):
    """A classic session."""

    def can(self, ability: Ability) -> bool:  # noqa: ARG002 - it has all
        """Return True if the session has an ability."""
        return True

    def to_arrow(self, rows: DataFrame, collect: Callable[[], pa.Table]) -> pa.Table:  # noqa: ARG002
        """Return the Arrow table of rows, by PySpark's method or a faster way."""
        return collect()

    def empty_frame(self, columns: Sequence[str]) -> DataFrame:
        """Return an empty DataFrame of columns, given as SQL; local data."""
        return self.spark.sql(f"SELECT {', '.join(columns)} WHERE FALSE")

    @property
    def parallelism(self) -> int:
        """The approximate number of tasks that run in parallel."""
        return self.spark.sparkContext.defaultParallelism

    @property
    def runs_workers_locally(self) -> bool:
        """True if Python workers run on the driver's machine and are started by the driver."""
        return (self.spark.sparkContext.master or "").startswith("local")

    @property
    def shows_progress_bar(self) -> bool:
        """True if Spark shows its own progress bar in a terminal."""
        return self.spark.conf.get(_PROGRESS_BAR, "false") == "true"

    @contextmanager
    def named_jobs(self, name: str) -> Iterator[None]:
        """Describe the Spark jobs that this thread starts in a block, and restore the user's
        description, which is independent of the job group.
        """
        context = self.spark.sparkContext
        before = context.getLocalProperty(_DESCRIPTION)
        context.setLocalProperty(_DESCRIPTION, name)
        try:
            yield
        finally:
            # None removes the property.
            context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]

    def task_counter(self) -> RunningTasks:
        """Return a counter of the tasks that are started from now on."""
        return RunningTasks.from_now_on(self.spark)

    def hadoop_settings(
        self, names: Sequence[str], hadoop_conf: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the values of the named Hadoop settings that are set in the session or in
        `hadoop_conf`, which takes precedence.
        """
        return jvm.settings(self.spark, names, hadoop_conf) if names else {}

    def driver_files(self, hadoop_conf: Mapping[str, str]) -> HadoopFiles:
        """Return access to files of any storage from the driver."""
        return HadoopFiles(SessionHadoop(self.spark), hadoop_conf)

    def reachable_files(
        self, files: WorkerFiles, table_root: str, hadoop_conf: Mapping[str, str]
    ) -> StoredFiles:
        """Return a table's files as the driver reaches them: on HDFS, through its JVM; on Spark
        Connect, by tasks on the server.
        """
        return files if files.is_near(table_root) else self.driver_files(hadoop_conf)

    @property
    def _calls_back(self) -> bool:
        if self.spark not in _calling_back:
            listing = self.listing_session(compiles=False)
            problem = self.problem_of_callbacks(listing)
            if problem is not None:
                _LOGGER.warning(
                    "Filters after read_delta choose no files in this Spark: %s", problem
                )
            _calling_back[self.spark] = problem is None
        return _calling_back[self.spark]

    @property
    def late_scans(self) -> ClassicEngine:
        """The scans whose files Spark asks for when a query runs; None on Spark Connect."""
        return self

    @property
    def lateness(self) -> Lateness:
        """When the files of a scan can be chosen by all conditions of a query."""
        return "late" if self._calls_back else "never"

    def listing_session(self, *, compiles: bool) -> SparkSession:
        """Return the session of queries that find the files of a scan while another query waits.

        Parameters
        ----------
        compiles
            False for few rows: to compile a plan takes longer than to interpret it.
        """
        settings = {**LISTING_SETTINGS, SHUFFLE_PARTITIONS: str(self.parallelism)}
        if compiles:
            return _sibling(self.spark, settings)
        return _sibling(self.spark, {**settings, **INTERPRETED})

    @contextmanager
    def in_listing_session(self, *, compiles: bool) -> Iterator[SparkSession]:
        """Use a `listing_session` in a block; the active session is the same after it."""
        listing = self.listing_session(compiles=compiles)
        with jvm.same_active_sessions(listing, lambda: self.spark):
            yield listing

    def open_log(self, path: str, hadoop_conf: Mapping[str, str]) -> LogStore:
        """Return the log store of a table, chosen by the scheme of its path."""
        root = jvm.qualify(self.spark, path, hadoop_conf)
        if root.startswith("file:"):
            return LocalLogStore(root)
        return HadoopLogStore(SessionHadoop(self.spark), root, hadoop_conf)

    def open_log_for_writing(self, path: str, hadoop_conf: Mapping[str, str]) -> LogStore:
        """Open a log, with the object store's own client if Spark cannot commit.

        Raises
        ------
        StoreNotWritableError
            Commits to the storage are not possible; nothing was written.
        """
        store = self.open_log(path, hadoop_conf)
        if store.table_root.partition(":")[0] in OBJECT_SCHEMES:
            settings = self.hadoop_settings(setting_names(store.table_root), hadoop_conf)
            objects = open_objects(store.table_root, settings)
            store = ObjectLogStore(store.table_root, objects, store)
        store.check_writable()
        return store

    @contextmanager
    def log_session(self) -> Iterator[SparkSession]:
        """Yield a session that writes the same log files independent of the user's settings. It has
        the user's Hadoop settings and number of shuffle partitions.
        """
        sibling = _sibling(self.spark, LOG_SETTINGS)
        self._copy_hadoop_settings(sibling, {SHUFFLE_PARTITIONS})
        with jvm.same_active_sessions(sibling, lambda: self.spark):
            yield sibling

    def write_session(
        self,
        needed: Callable[[], Mapping[str, str]] | None = None,  # noqa: ARG002 - all are rebound
    ) -> AbstractContextManager[SparkSession]:
        """Yield the session that reads and writes a table during a write: the user's; on Spark
        Connect, another one if the user's has other settings than the write needs.

        Parameters
        ----------
        needed
            Returns the settings that rows and files of the write depend on; only Spark Connect asks
            for them. By default, all that ours do.
        """
        return nullcontext(self.spark)

    def in_table_session(
        self, rows: DataFrame, evaluation: Evaluation = IN_UTC
    ) -> AbstractContextManager[DataFrame]:
        """Yield the same rows in a session in which a table's SQL expressions and conversions
        depend on these settings alone; on Spark Connect in the same session, which has `IN_UTC`.
        """
        return jvm.rows_rebound_to(rows, _sibling(self.spark, evaluation.settings))

    def in_user_session(self, rows: DataFrame) -> AbstractContextManager[DataFrame] | None:
        """Yield the same rows in the user's session, in which the user's conditions are evaluated;
        None if rows cannot be moved there.
        """
        return jvm.rows_rebound_to(rows, self.spark)

    def rows_in_copy(self, rows: DataFrame) -> DataFrame | None:
        """Return the rows of the user's session in this `write_session`, if it is a copy of it;
        only on Spark Connect.
        """
        return rows if rows.sparkSession is self.spark else None

    def rebind_to_session(self, rows: DataFrame) -> DataFrame:
        """Return the rows of a DataFrame of `in_table_session` as a DataFrame of this session."""
        return jvm.rebound_rows(rows, self.spark)

    @contextmanager
    def view_session(self, view: StoredView) -> Iterator[SparkSession]:
        """Yield a session with the settings and the current database of a view, and without
        temporary views.
        """
        siblings = _siblings.setdefault(self.spark, {})
        key = view.namespace, frozenset(view.settings.items())
        if key not in siblings:
            sibling = _new_session(self.spark)
            set_up_for_view(sibling, view, self.spark)
            siblings[key] = sibling
        yield siblings[key]

    def with_conditions(
        self,
        rows: DataFrame,
        conditions: Callable[[], Sequence[str]],  # noqa: ARG002 - Spark passes them itself
    ) -> DataFrame:
        """Return rows of a table of which a query needs only those for which conditions on their
        columns are true.
        """
        return rows

    def keep_sources(self, result: DataFrame, sources: Sequence[DataFrame]) -> None:
        """Keep the sources of a query in SQL as long as its result."""

    def following_view(self, name: Sequence[str]) -> DataFrame | None:  # noqa: ARG002
        """Return the rows of a temporary view that Spark itself does not find again at each query;
        None for others.
        """
        return None

    def rows_of_view(self, rows: DataFrame) -> DataFrame:
        """Return rows of a `view_session` as a DataFrame of this session."""
        return self.rebind_to_session(rows)

    def stream_function(self, function: StreamFunction) -> Callable[[DataFrame, int], None]:
        """Return a function for ``foreachBatch`` that calls another one where it can be called,
        with an engine of that place, the micro-batch and its number.
        """
        return functools.partial(function, self)

    @contextmanager
    def micro_batch(
        self,
        batch: DataFrame,
        checkpoint: str,  # noqa: ARG002 - the thread knows the query
    ) -> Iterator[tuple[DataFrame, str]]:
        """Yield the rows of a micro-batch as a DataFrame of this session, and the id of the
        streaming query that calls.

        Parameters
        ----------
        checkpoint
            The directory of the query's checkpoint.
        """
        with jvm.same_active_session(self.spark):
            yield self.rebind_to_session(batch), jvm_streams.query_id(self.spark)

    def analyzed_filter(self, rows: DataFrame, where: str | Column, alias: str) -> DataFrame:
        """Return the rows that a condition selects, as an argument for `parse_condition`.

        Raises
        ------
        AnalysisException
            The condition is invalid for these rows.
        """
        return rows.alias(alias).filter(where)

    def parse_condition(
        self,
        filtered: DataFrame,
        where: str | Column,  # noqa: ARG002 - taken from the plan
        schema: StructType,
        *,
        time_zone: str,
        alias: str | None = None,
    ) -> Predicate:
        """Return the predicate of a condition, see `parse_classic_filter`.

        Parameters
        ----------
        filtered
            An `analyzed_filter` of an empty frame by `where`.
        """
        return parse_classic_filter(filtered, schema, time_zone=time_zone, alias=alias)

    def match_terms(
        self,
        filtered: DataFrame,
        target: DataFrame,
        source: DataFrame,
        schema: StructType,
        *,
        alias: str,
    ) -> MatchTerms:
        """Return the terms of a condition about rows of a table, see `parse_match_terms`; requires
        the ability "see plans".
        """
        time_zone = session_time_zone(self.spark)
        return parse_match_terms(filtered, target, source, schema, alias=alias, time_zone=time_zone)


_siblings: weakref.WeakKeyDictionary[SparkSession, dict[object, SparkSession]]
_siblings = weakref.WeakKeyDictionary()
_calling_back: weakref.WeakKeyDictionary[SparkSession, bool] = weakref.WeakKeyDictionary()


def _sibling(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return the cached session with these settings, which is created next to the user's."""
    siblings, key = _siblings.setdefault(spark, {}), frozenset(settings.items())
    if key not in siblings:
        sibling = _new_session(spark)
        set_up(sibling, settings)
        siblings[key] = sibling
    return siblings[key]


def _new_session(spark: SparkSession) -> SparkSession:
    """Return a session next to the user's, which is never enabled."""
    session: SparkSession = sparks_own(SparkSession, "newSession")(spark)
    replace_missing_catalog(session)
    return session


@dataclass(slots=True)
class RunningTasks:
    """The tasks of the jobs started since a point in time, including jobs of other threads unless
    the thread has a job group.

    Attributes
    ----------
    others
        Ids of jobs that were already running.
    group
        The job group of the calling thread.
    stages
        The number of finished tasks and of all tasks, by stage id.
    """

    tracker: StatusTracker
    others: frozenset[int]
    group: str | None
    stages: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def from_now_on(cls, spark: SparkSession) -> RunningTasks:
        context = spark.sparkContext
        tracker = context.statusTracker()
        others = frozenset(tracker.getActiveJobsIds())
        return cls(tracker, others, context.getLocalProperty(_JOB_GROUP))

    def counts(self) -> tuple[int, int]:
        """Return the number of finished tasks and of all known tasks."""
        jobs = set(self.tracker.getActiveJobsIds()) - self.others
        if self.group is not None:
            jobs &= set(self.tracker.getJobIdsForGroup(self.group))
        self.stages = {stage: (total, total) for stage, (_, total) in self.stages.items()}
        for job in jobs:
            info = self.tracker.getJobInfo(job)
            for stage in info.stageIds if info is not None else ():
                stage_info = self.tracker.getStageInfo(stage)
                if stage_info is not None:
                    self.stages[stage] = (stage_info.numCompletedTasks, stage_info.numTasks)
        finished = sum(finished for finished, _ in self.stages.values())
        return finished, sum(total for _, total in self.stages.values())
