"""The engine of Spark Connect clients, which have no JVM and use only the public API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from sparkdelta.base.jvm.hadoop import all_hadoop_settings
from sparkdelta.base.parquet.parquet_options import ParquetRelation, ParquetScan, is_hidden
from sparkdelta.base.predicates.aliased_names import parse_aliased
from sparkdelta.base.predicates.condition_text import parse_condition
from sparkdelta.base.predicates.connect_columns import parse_connect_column
from sparkdelta.base.predicates.predicate_rules import Predicate, Unusable
from sparkdelta.base.spark import connect_functions, connect_plans, connect_storage, connect_streams
from sparkdelta.base.spark.connect_conditions import parse_match_terms
from sparkdelta.base.spark.connect_late_rows import (
    hold_late_rows,
    is_retyped,
    reads_kept_rows,
    scan_of_late_rows,
    shared_late_rows,
    with_sent_conditions,
)
from sparkdelta.base.spark.connect_sessions import connect_copy, connect_sibling, rows_in_copy
from sparkdelta.base.spark.connect_sql_functions import ConnectSqlFunctions
from sparkdelta.base.spark.library_sessions import (
    ESCAPED_LITERALS,
    IN_UTC,
    LOG_SETTINGS,
    SHUFFLE_PARTITIONS,
    TABLE_SETTINGS,
    Evaluation,
    session_time_zone,
)
from sparkdelta.base.spark.match_terms import MatchTerms
from sparkdelta.base.spark.server_store import BY_HADOOP, ServerFiles, ServerLogStore
from sparkdelta.base.spark.spark_engine import Ability, Lateness, StreamFunction
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.base.storage.stream_source import StreamSource
from sparkdelta.base.storage.worker_files import StoredFiles, WorkerFiles, setting_names
from sparkdelta.exceptions import InvalidArgumentError

_IN_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)
"""The argument by which PySpark gives Arrow's timestamps the zone that older versions gave them."""


@dataclass(frozen=True)
class ConnectEngine(ConnectSqlFunctions):
    """A Spark Connect client."""

    late_scans: ClassVar[None] = None
    lateness: ClassVar[Lateness] = "sent"
    runs_workers_locally: ClassVar[bool] = False
    shows_progress_bar: ClassVar[bool] = False

    def can(self, ability: Ability) -> bool:  # noqa: ARG002 - it has none
        return False

    def to_arrow(self, rows: DataFrame, collect: Callable[[], pa.Table]) -> pa.Table:  # noqa: ARG002
        connect: Any = rows
        table, schema = connect._to_table()  # PySpark's asks for the schema first
        return table.cast(to_arrow_schema(schema, **_IN_UTC))

    def empty_frame(self, columns: Sequence[str]) -> DataFrame:
        return self.spark.range(1).where("FALSE").selectExpr(*columns)  # `sql` is a request

    def scan_of_rows(self, rows: DataFrame) -> Any:
        return scan_of_late_rows(rows)

    @property
    def parallelism(self) -> int:
        return int(str(self.spark.conf.get(SHUFFLE_PARTITIONS)))

    @contextmanager
    def named_jobs(self, name: str) -> Iterator[None]:
        """Set a tag on the operations."""
        tag = name.replace(",", ";")  # tags must not contain commas
        is_new = tag not in self.spark.getTags()
        if is_new:
            self.spark.addTag(tag)
        try:
            yield
        finally:
            if is_new:
                self.spark.removeTag(tag)

    def task_counter(self) -> None:
        return None

    def hadoop_settings(
        self, names: Sequence[str], hadoop_conf: Mapping[str, str]
    ) -> dict[str, str]:
        settings = connect_storage.hadoop_settings(self.spark, names) if names else {}
        return settings | {name: hadoop_conf[name] for name in names if name in hadoop_conf}

    def driver_files(self, hadoop_conf: Mapping[str, str]) -> None:  # noqa: ARG002
        return None

    def read_files(
        self,
        source: str,
        paths: Sequence[str],
        *,
        options: Mapping[str, str],
        schema: StructType | None = None,
    ) -> DataFrame:
        reader = self.spark.read.format(source).options(**options)
        return (reader if schema is None else reader.schema(schema)).load(list(paths))

    def parquet_relation(self, scan: ParquetScan) -> ParquetRelation | None:
        if is_hidden(scan.files[0]):
            return None
        return connect_storage.parquet_relation(self.spark, scan)

    def write_parquet(
        self,
        rows: DataFrame,
        directory: str,
        *,
        partition_by: Sequence[str],
        options: Mapping[str, str],
        settings: Mapping[str, str],
    ) -> None:
        connect_storage.write_parquet(
            rows, directory, partition_by=partition_by, options=options, settings=settings
        )

    def reachable_files(
        self,
        files: WorkerFiles,
        table_root: str,  # noqa: ARG002 - all are on the server
        hadoop_conf: Mapping[str, str],  # noqa: ARG002 - the workers have what they need
    ) -> StoredFiles:
        return ServerFiles(self.spark, files)

    def open_log(self, path: str, hadoop_conf: Mapping[str, str]) -> LogStore:
        """Return a store whose operations run on the server."""
        root = connect_storage.qualified_root(self.spark, path)
        settings = (
            all_hadoop_settings(self.spark, hadoop_conf)
            if root.partition(":")[0] in BY_HADOOP
            else self.hadoop_settings(setting_names(root), hadoop_conf)
        )
        return ServerLogStore(self.spark, root, settings)

    def open_log_for_writing(self, path: str, hadoop_conf: Mapping[str, str]) -> LogStore:
        store = self.open_log(path, hadoop_conf)
        store.check_writable()
        return store

    def log_session(self) -> AbstractContextManager[SparkSession]:
        settings = {**LOG_SETTINGS, SHUFFLE_PARTITIONS: str(self.parallelism)}
        return connect_sibling(self.spark, settings, is_kept=True)

    @contextmanager
    def write_session(
        self, needed: Callable[[], Mapping[str, str]] | None = None
    ) -> Iterator[SparkSession]:
        with connect_storage.know_files(), self._write_session(needed) as session:
            yield session

    def _write_session(
        self, needed: Callable[[], Mapping[str, str]] | None
    ) -> AbstractContextManager[SparkSession]:
        if needed is None:
            return connect_sibling(self.spark, TABLE_SETTINGS, is_kept=True)
        others = connect_storage.other_settings(self.spark, needed())
        if not others:
            return nullcontext(self.spark)
        if others.isdisjoint((*TABLE_SETTINGS, ESCAPED_LITERALS)) and self._can_be_copied:
            return connect_copy(self.spark)
        return connect_sibling(self.spark, TABLE_SETTINGS, is_kept=True)

    @property
    def _can_be_copied(self) -> bool:
        return hasattr(self.spark, "cloneSession")

    def with_conditions(
        self, rows: DataFrame, conditions: Callable[[], Sequence[str]]
    ) -> DataFrame:
        return with_sent_conditions(rows, conditions())

    def keep_sources(self, result: DataFrame, sources: Sequence[DataFrame]) -> None:
        hold_late_rows(result, sources)

    def rows_in_copy(self, rows: DataFrame) -> DataFrame | None:
        return rows_in_copy(rows, self.spark)

    def in_table_session(
        self,
        rows: DataFrame,
        evaluation: Evaluation = IN_UTC,  # noqa: ARG002 - rows of a `write_session`, which has it
    ) -> AbstractContextManager[DataFrame]:
        return nullcontext(rows)

    def rebind_to_session(self, rows: DataFrame) -> DataFrame:
        return rows

    def analyzed_filter(
        self,
        rows: DataFrame,
        where: str | Column,
        alias: str,  # noqa: ARG002 - only needed for plans
    ) -> DataFrame:
        filtered = rows.filter(where)
        _ = filtered.schema  # analyzes the plan on the server
        return filtered

    def parse_condition(
        self,
        filtered: DataFrame,  # noqa: ARG002 - its plan is not accessible
        where: str | Column,
        schema: StructType,
        *,
        time_zone: str,
        alias: str | None = None,
    ) -> Predicate:
        if is_retyped(self.spark, str(where)):
            return Unusable(str(where), "spark.sql.timestampType changes the meaning of TIMESTAMP")
        if isinstance(where, str):
            return parse_aliased(
                lambda named: parse_condition(where, named, time_zone=time_zone), schema, alias
            )
        return parse_connect_column(where, schema, time_zone=time_zone, alias=alias)

    def is_local_data(self, frame: DataFrame) -> bool:  # noqa: ARG002
        return False

    def with_columns_of(self, rows: DataFrame, like: DataFrame) -> DataFrame:
        return connect_plans.with_columns_of(rows, like)

    def with_attributes_of(self, rows: DataFrame, like: DataFrame) -> DataFrame:
        return connect_plans.standing_for(rows, like)

    def columns_used(self, frame: DataFrame, rows: DataFrame) -> list[str]:  # noqa: ARG002
        return rows.columns  # Spark leaves out those that are not used

    def match_terms(
        self,
        filtered: DataFrame,
        target: DataFrame,  # noqa: ARG002 - only needed for plans
        source: DataFrame,
        schema: StructType,
        *,
        alias: str,
    ) -> MatchTerms:
        plan: Any = filtered
        if is_retyped(self.spark, str(plan._plan.filter)):
            return MatchTerms()
        columns = source.schema.fields[: len(source.columns) // 2]
        return parse_match_terms(
            plan._plan.filter,
            schema,
            StructType(columns),
            alias=alias,
            source_alias=connect_plans.alias_of(source),
            time_zone=session_time_zone(self.spark),
        )

    def read_options_named(self, rows: DataFrame, name: str) -> set[str]:
        return connect_plans.read_options_named(rows, name)

    def columns_frame(self, rows: DataFrame) -> None:  # noqa: ARG002
        return None

    def plan_nodes(self, frame: DataFrame) -> tuple[bool, frozenset[str]]:
        return connect_plans.expression_nodes(frame)

    def stream_function(self, function: StreamFunction) -> Callable[[DataFrame, int], None]:
        return connect_functions.stream_function(self.spark, function)

    def stream(
        self, source: StreamSource, reopen: Callable[[SparkSession], StreamSource]
    ) -> DataFrame:
        source.check_transferable()
        return connect_streams.stream(self.spark, source, reopen)

    @contextmanager
    def micro_batch(self, batch: DataFrame, checkpoint: str) -> Iterator[tuple[DataFrame, str]]:
        yield batch, connect_functions.query_id(self.spark, checkpoint)

    def listing_session(self, *, compiles: bool) -> SparkSession:  # noqa: ARG002
        return self.spark

    def in_listing_session(self, *, compiles: bool) -> AbstractContextManager[SparkSession]:
        return nullcontext(self.listing_session(compiles=compiles))

    def shared_reads(self) -> AbstractContextManager[str]:
        return shared_late_rows()

    def has_cached_read(self, rows: DataFrame, name: str, value: str) -> bool:  # noqa: ARG002
        return reads_kept_rows(rows)

    def check_describes_tables(self) -> None:
        problem = "a Spark Connect client cannot change the server's catalog; use a classic session"
        raise InvalidArgumentError(argument="sync_catalog", problem=problem)

    def describe_table(self, *_: Any, **__: Any) -> None:
        self.check_describes_tables()

    def in_user_session(self, rows: DataFrame) -> None:  # noqa: ARG002
        return None
