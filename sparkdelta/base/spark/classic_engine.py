"""The engine of classic Spark, whose JVM the driver can call."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from pyspark import StatusTracker
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.jvm import jvm, jvm_catalog, jvm_file_index, jvm_scans, jvm_streams
from sparkdelta.base.jvm.hadoop_files import HadoopFiles
from sparkdelta.base.jvm.hadoop_log import HadoopLogStore
from sparkdelta.base.jvm.jvm_plans import (
    columns_used,
    is_local_data,
    with_attributes_of,
    with_columns_of,
)
from sparkdelta.base.parquet.parquet_options import (
    LateRelation,
    ParquetRelation,
    PartitionDirectories,
    UnpushedType,
    is_hidden,
)
from sparkdelta.base.predicates.predicate_rules import Predicate
from sparkdelta.base.spark.classic_conditions import parse_classic_filter, parse_match_terms
from sparkdelta.base.spark.library_sessions import (
    INTERPRETED,
    LISTING_SETTINGS,
    LOG_SETTINGS,
    SHUFFLE_PARTITIONS,
    TABLE_SETTINGS,
    UTC,
    conversion_settings,
    copy_settings,
    session_time_zone,
    set_up,
)
from sparkdelta.base.spark.match_terms import MatchTerms
from sparkdelta.base.storage.local_log import LocalLogStore
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.base.storage.object_log import OBJECT_SCHEMES, ObjectLogStore, open_objects
from sparkdelta.base.storage.stream_source import StreamSource
from sparkdelta.base.storage.worker_files import setting_names

_LOGGER = logging.getLogger(__name__)

_DESCRIPTION = "spark.job.description"
_JOB_GROUP = "spark.jobGroup.id"
_PROGRESS_BAR = "spark.ui.showConsoleProgress"


@dataclass(frozen=True, slots=True)
class ClassicEngine:
    """`SparkEngine` of a classic session."""

    spark: SparkSession

    attaches_partition_values: ClassVar[bool] = True
    matches_field_ids: ClassVar[bool] = True
    reads_hidden_names: ClassVar[bool] = True
    sees_plans: ClassVar[bool] = True
    moves_frames: ClassVar[bool] = True
    runs_streams: ClassVar[bool] = True
    registers_empty_tables: ClassVar[bool] = False
    reads_cached_files: ClassVar[bool] = True

    @property
    def parallelism(self) -> int:
        return self.spark.sparkContext.defaultParallelism

    @property
    def runs_workers_locally(self) -> bool:
        return (self.spark.sparkContext.master or "").startswith("local")

    @property
    def shows_progress_bar(self) -> bool:
        return self.spark.conf.get(_PROGRESS_BAR, "false") == "true"

    @contextmanager
    def named_jobs(self, name: str) -> Iterator[None]:
        """Set the description of the jobs, independent of the job group."""
        context = self.spark.sparkContext
        before = context.getLocalProperty(_DESCRIPTION)
        context.setLocalProperty(_DESCRIPTION, name)
        try:
            yield
        finally:
            # None removes the property.
            context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]

    def task_counter(self) -> RunningTasks:
        return RunningTasks.from_now_on(self.spark)

    def hadoop_settings(
        self, names: Sequence[str], hadoop_conf: Mapping[str, str]
    ) -> dict[str, str]:
        return jvm.settings(self.spark, names, hadoop_conf) if names else {}

    def driver_files(self, hadoop_conf: Mapping[str, str]) -> HadoopFiles:
        return HadoopFiles(self.spark, hadoop_conf)

    def read_files(
        self,
        source: str,
        paths: Sequence[str],
        *,
        options: Mapping[str, str],
        schema: StructType | None = None,
    ) -> DataFrame:
        return jvm_scans.read_files(self.spark, source, paths, options, schema)

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
        if is_hidden(files[0]):
            return jvm_scans.hidden_parquet_relation(
                self.spark, files, schema, options, is_streaming=is_streaming
            )
        return jvm_scans.parquet_relation(
            self.spark,
            files,
            schema,
            options,
            partitions,
            size_bytes,
            is_streaming=is_streaming,
            unpushed=unpushed,
        )

    @property
    def calls_back(self) -> bool:
        if self.spark not in _calling_back:
            listing = self.listing_session(compiles=False)
            problem = jvm_file_index.problem_of_callbacks(self.spark, listing)
            if problem is not None:
                _LOGGER.warning(
                    "Filters after read_delta choose no files in this Spark: %s", problem
                )
            _calling_back[self.spark] = problem is None
        return _calling_back[self.spark]

    def listing_session(self, *, compiles: bool) -> SparkSession:
        settings = {**LISTING_SETTINGS, SHUFFLE_PARTITIONS: str(self.parallelism)}
        if compiles:
            return _sibling(self.spark, _listing_sessions, settings)
        return _sibling(self.spark, _interpreting_sessions, {**settings, **INTERPRETED})

    @contextmanager
    def in_listing_session(self, *, compiles: bool) -> Iterator[SparkSession]:
        listing, before = self.listing_session(compiles=compiles), SparkSession._activeSession
        try:
            with jvm.same_active_session(self.spark):
                yield listing
        finally:
            if SparkSession._activeSession is listing:  # createDataFrame has set it
                SparkSession._activeSession = before

    def reads_batches(self, schema: StructType) -> bool:
        return jvm_file_index.reads_batches(self.spark, schema)

    def late_rows(self, relation: LateRelation, listing: SparkSession) -> DataFrame:
        return jvm_file_index.late_rows(self.spark, listing, relation)

    def write_parquet(
        self,
        rows: DataFrame,
        directory: str,
        *,
        partition_by: Sequence[str],
        options: Mapping[str, str],
        settings: Mapping[str, str],
    ) -> None:
        jvm.write_parquet(
            rows, directory, partition_by=partition_by, options=options, settings=settings
        )

    def open_log(self, path: str, hadoop_conf: Mapping[str, str]) -> LogStore:
        root = jvm.qualify(self.spark, path, hadoop_conf)
        if root.startswith("file:"):
            return LocalLogStore(root)
        return HadoopLogStore(self.spark, root, hadoop_conf)

    def open_log_for_writing(self, path: str, hadoop_conf: Mapping[str, str]) -> LogStore:
        store = self.open_log(path, hadoop_conf)
        if store.table_root.partition(":")[0] in OBJECT_SCHEMES:
            settings = self.hadoop_settings(setting_names(store.table_root), hadoop_conf)
            objects = open_objects(store.table_root, settings)
            store = ObjectLogStore(store.table_root, objects, store)
        store.check_writable()
        return store

    def table_location(self, name: Sequence[str], provider: str) -> str | None:
        return jvm_catalog.table_location(self.spark, name, provider)

    def free_location(self, name: Sequence[str]) -> str:
        return jvm_catalog.free_location(self.spark, name)

    def is_managed(self, name: Sequence[str]) -> bool:
        return jvm_catalog.is_managed(self.spark, name)

    def register_table(
        self, name: Sequence[str], location: str, provider: str, *, is_managed: bool
    ) -> None:
        jvm_catalog.register_table(self.spark, name, location, provider, is_managed=is_managed)

    def rename_table(self, name: Sequence[str], new_name: Sequence[str]) -> None:
        jvm_catalog.rename_table(self.spark, name, new_name)

    def move_table(self, name: Sequence[str], location: str) -> None:
        jvm_catalog.move_table(self.spark, name, location)

    def drop_table(self, name: Sequence[str]) -> None:
        jvm_catalog.drop_table(self.spark, name)

    @contextmanager
    def log_session(self) -> Iterator[SparkSession]:
        sibling = _sibling(self.spark, _log_sessions, LOG_SETTINGS)
        copy_settings(self.spark, sibling)
        before = SparkSession.getActiveSession()
        try:
            yield sibling
        finally:
            if before is not None:  # createDataFrame makes its session the active one
                before.createDataFrame([], "nothing INT")
            else:
                jvm.clear_active_session(self.spark)

    def write_session(self) -> AbstractContextManager[SparkSession]:
        return nullcontext(self.spark)

    def in_table_session(self, rows: DataFrame) -> AbstractContextManager[DataFrame]:
        return jvm.rows_rebound_to(rows, _sibling(self.spark, _table_sessions, TABLE_SETTINGS))

    def in_conversion_session(
        self, rows: DataFrame, time_zone: str
    ) -> AbstractContextManager[DataFrame]:
        if time_zone == UTC:
            return self.in_table_session(rows)
        siblings = _conversion_sessions.setdefault(time_zone, weakref.WeakKeyDictionary())
        settings = conversion_settings(time_zone)
        return jvm.rows_rebound_to(rows, _sibling(self.spark, siblings, settings))

    def in_user_session(self, rows: DataFrame) -> AbstractContextManager[DataFrame]:
        return jvm.rows_rebound_to(rows, self.spark)

    def rebind_to_session(self, rows: DataFrame) -> DataFrame:
        return jvm.rebound_rows(rows, self.spark)

    @contextmanager
    def micro_batch(self, batch: DataFrame) -> Iterator[tuple[DataFrame, str]]:
        with jvm.same_active_session(self.spark):
            yield self.rebind_to_session(batch), jvm_streams.query_id(self.spark)

    def stream(self, source: StreamSource) -> DataFrame:
        return jvm_streams.stream_frame(self.spark, source)

    def analyzed_filter(self, rows: DataFrame, where: str | Column, alias: str) -> DataFrame:
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
        time_zone = session_time_zone(self.spark)
        return parse_match_terms(filtered, target, source, schema, alias=alias, time_zone=time_zone)

    def is_local_data(self, frame: DataFrame) -> bool:
        return is_local_data(frame)

    def columns_used(self, frame: DataFrame, rows: DataFrame) -> list[str]:
        return columns_used(frame, rows)

    def with_attributes_of(self, rows: DataFrame, like: DataFrame) -> DataFrame:
        return with_attributes_of(rows, like)

    def with_columns_of(self, rows: DataFrame, like: DataFrame) -> DataFrame:
        return with_columns_of(rows, like)

    def plan_nodes(self, frame: DataFrame) -> tuple[bool, frozenset[str]]:
        return jvm.plan_nodes(frame)

    def read_options_named(self, rows: DataFrame, name: str) -> set[str]:
        return jvm.read_options_named(rows, name)


_Siblings: TypeAlias = "weakref.WeakKeyDictionary[SparkSession, SparkSession]"
_log_sessions: _Siblings = weakref.WeakKeyDictionary()
_table_sessions: _Siblings = weakref.WeakKeyDictionary()
_conversion_sessions: dict[str, _Siblings] = {}
_listing_sessions: _Siblings = weakref.WeakKeyDictionary()
_interpreting_sessions: _Siblings = weakref.WeakKeyDictionary()
_calling_back: weakref.WeakKeyDictionary[SparkSession, bool] = weakref.WeakKeyDictionary()


def _sibling(spark: SparkSession, siblings: _Siblings, settings: Mapping[str, str]) -> SparkSession:
    """Return the cached session with these settings, which is created next to the user's."""
    sibling = siblings.get(spark)
    if sibling is None:
        sibling = spark.newSession()
        set_up(sibling, settings)
        siblings[spark] = sibling
    return sibling


@dataclass(slots=True)
class RunningTasks:
    """The tasks of the jobs started since a point in time, including those of other threads unless
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
