"""Scans whose files are chosen when a query runs, by all its filters; classic Spark only.

Spark asks the `FileIndex` of a scan for files once the query is planned, and hands over the filters
of the scan, wherever they were written. The index is a Python object that the JVM calls back. These
interfaces of Spark are private: `problem_of_callbacks` checks them. The index keeps nothing: the
list of files keeps their statuses in the storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any
from uuid import uuid4

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import StructType

from sparkdelta.base.jvm.jvm import (
    JvmSession,
    hadoop_path,
    jvm_of,
    scala_items,
    storage_errors,
    texts,
)
from sparkdelta.base.jvm.jvm_callbacks import complete_interfaces
from sparkdelta.base.jvm.jvm_plans import calls_user_functions, joined, rows_matching
from sparkdelta.base.jvm.jvm_query_callbacks import (
    OPERATION,
    QueryCallback,
    answer,
    java_exception,
    let_errors_pass,
)
from sparkdelta.base.jvm.jvm_scans import (
    copy_hadoop_settings,
    empty_files,
    file_index,
    has_field_ids,
    java_schema_of,
    java_texts,
    parquet_files,
    scan_session,
)
from sparkdelta.base.parquet.parquet_options import LateRelation, ListedFiles, is_hidden
from sparkdelta.exceptions import DeltaError, SparkMemberNotFoundError

_INTERFACE = "org.apache.spark.sql.execution.datasources.FileIndex"
_KEPT_STATUSES = 4


class JvmLateScans(JvmSession):
    """The part of a classic engine that reads files chosen when a query runs."""

    def late_rows(self, relation: LateRelation, listing: SparkSession) -> DataFrame:
        """Return the rows of a scan whose files are chosen when a query runs, independent of the
        settings of the user's session; requires the ability "call back".

        Parameters
        ----------
        listing
            A `listing_session`, that of the frames of listed files.
        """
        copy_hadoop_settings(self.spark, listing._jsparkSession)
        rows = self.java.baseRelationToDataFrame(self._relation(relation, listing))
        return ClassicDataFrame(rows, self.spark)

    def problem_of_callbacks(self, listing: SparkSession) -> str | None:
        """Return the reason why Spark cannot ask Python for files; None if it can."""
        if not isinstance(self.spark.sparkContext._gateway, ClientServer):
            return (
                "with PYSPARK_PIN_THREAD=false, a thread of Python has no thread of the JVM to "
                "itself"
            )
        try:
            complete_interfaces(self.spark, _FileIndex)
            nothing = LateRelation(
                lambda *_: ListedFiles([], [], None, lambda *_: None),
                identity="nothing",
                size_bytes=lambda _: 0,
                schema=StructType(),
                partitions=StructType(),
                options={},
                root="/",
            )
            none = self.jvm.PythonUtils.toSeq([])
            listed = self._relation(nothing, listing).location().listFiles(none, none)
            return None if not listed.size() else "its FileIndex answers otherwise"
        except (
            Py4JError, TypeError, AttributeError, OSError, CapturedException, DeltaError
        ) as error:  # fmt: skip
            exception = java_exception(error)
            return str(error if exception is None else exception.toString()).partition("\n")[0]

    def reads_batches(self, schema: StructType) -> bool:
        """Return True if Spark's Parquet reader gives batches of columns, not rows, of this schema;
        False if that is unknown.
        """
        jvm, conf = self.jvm, self.java.sessionState().conf()
        execution, java_schema = jvm.org.apache.spark.sql.execution, java_schema_of(jvm, schema)
        try:
            if execution.WholeStageCodegenExec.isTooManyFields(conf, java_schema):
                return False
            parquet = execution.datasources.parquet.ParquetFileFormat()
            return bool(parquet.supportBatch(self.java, java_schema))
        except (Py4JError, TypeError, CapturedException, SparkMemberNotFoundError):
            return False

    def _relation(self, scan: LateRelation, listing: SparkSession) -> Any:
        gateway: Any = self.spark.sparkContext._gateway
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # PySpark's
        let_errors_pass(gateway)
        index = _FileIndex(self.spark, listing, scan)
        return parquet_files(
            self.jvm, index.sibling, index, index.partitions, index.schema, index.options
        )

    @contextmanager
    def shared_reads(self) -> Iterator[str]:
        """Make the queries that this thread runs in a block parts of one operation, and yield the
        operation's id, which their scans get.
        """
        context = self.spark.sparkContext
        before = context.getLocalProperty(OPERATION)
        operation = before or f"operation {uuid4()}"
        context.setLocalProperty(OPERATION, operation)
        try:
            yield operation
        finally:
            # None removes the property.
            context.setLocalProperty(OPERATION, before)  # type: ignore[arg-type]


class _FileIndex(QueryCallback):
    """Spark's `FileIndex`."""

    class Java:
        implements = (_INTERFACE,)

    def __init__(self, spark: SparkSession, listing: SparkSession, scan: LateRelation) -> None:
        super().__init__(spark, listing, scan.identity)
        jvm: Any = self.jvm
        self.sibling = scan_session(spark, by_id=has_field_ids(scan.schema))
        self.schema = java_schema_of(jvm, scan.schema)
        self.partitions = java_schema_of(jvm, scan.partitions)
        self.options = jvm.PythonUtils.toScalaMap(dict(scan.options))
        self._scan = scan
        self._datasources = jvm.org.apache.spark.sql.execution.datasources
        self._root = jvm.PythonUtils.toSeq([hadoop_path(jvm, scan.root)])

    @answer
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802
        """Return the files that may match filters; Spark does not evaluate the partition filters
        again.
        """
        with self.in_listing_session() as user:  # it formats timestamps of texts in UTC
            of_partitions = scala_items(partition_filters)
            filters = [*of_partitions, *scala_items(data_filters)]
            text, condition = None, None
            if filters:
                condition = joined(self.jvm, filters)
                text = str(condition.sql())
            listed = self._scan.list_files(
                text, lambda: calls_user_functions(condition), self.query_id
            )
            session = user or self.listing._jsparkSession
            return self._directories(listed, of_partitions, session)

    @answer
    def inputFiles(self) -> Any:  # noqa: N802
        """Return the URIs of all files."""
        with self.in_listing_session():
            listed = self._scan.list_files(None, lambda: False, self.query_id)
            visible, hidden = _by_visibility(listed.files)
            _, uris = self._statuses(visible, listed)
            uris += (self._uri(hadoop_path(jvm_of(self.listing), file)) for file in hidden)
            return java_texts(self.jvm, uris)

    @answer
    def sizeInBytes(self) -> int:  # noqa: N802
        with self.in_listing_session():
            size = self._scan.size_bytes(self.query_id)
        if size is None:
            return int(self.sibling.sessionState().conf().defaultSizeInBytes())
        return size

    @answer
    def rootPaths(self) -> Any:  # noqa: N802
        return self._root

    @answer
    def partitionSchema(self) -> Any:  # noqa: N802
        return self.partitions

    @answer
    def refresh(self) -> None:
        """Pass: files of a version never change, and each query finds later versions."""

    @answer
    def metadataOpsTimeNs(self) -> Any:  # noqa: N802
        return self.jvm.scala.Option.empty()

    def _directories(self, listed: ListedFiles, filters: list[Any], session: Any) -> Any:
        """Return Spark's `PartitionDirectory` of each row of partition values that filters are true
        of.
        """
        rows, numbers = None, list(range(len(listed.counts)))
        if listed.values is not None:
            rows, numbers = rows_matching(listed.values, filters, session)
        kept, key = listed.statuses, tuple(numbers)
        statuses = kept.get(key)
        if statuses is None:
            statuses = self._read_statuses(listed, rows, numbers)
            if len(kept) >= _KEPT_STATUSES:
                kept.clear()
            kept[key] = statuses
        return statuses

    def _read_statuses(
        self, listed: ListedFiles, rows: list[Any] | None, numbers: list[int]
    ) -> Any:
        ends = [0, *accumulate(listed.counts)]
        groups = [listed.files[ends[number] : ends[number + 1]] for number in numbers]
        visible, hidden = zip(*map(_by_visibility, groups), strict=True) if groups else ((), ())
        statuses, _ = self._statuses([file for group in visible for file in group], listed)
        directory = self._datasources.PartitionDirectory.apply
        nothing = self.jvm.org.apache.spark.sql.catalyst.InternalRow.empty()
        directories, start = self.jvm.java.util.ArrayList(), 0
        for index in range(len(groups)):
            row = nothing if rows is None else rows[index]
            end = start + len(visible[index])
            if end > start:
                directories.add(directory(row, statuses.slice(start, end)))
            for file in hidden[index]:
                directories.add(directory(row, self._hidden_status(file, listed)))
            start = end
        return self.jvm.PythonUtils.toSeq(directories)

    def _statuses(self, files: list[str], listed: ListedFiles) -> tuple[Any, list[str]]:
        """Return a Scala sequence of the storage's status of each file, and the URIs."""
        jvm: Any = self.jvm
        nothing = jvm.PythonUtils.toSeq([])
        if not files:
            return nothing, []
        specification = self._datasources.PartitionSpec(java_schema_of(jvm, StructType()), nothing)
        partitions = jvm.scala.Option.apply(specification)
        index = file_index(jvm, self.sibling, files, self.schema, self.options, partitions)
        found = index.listFiles(nothing, nothing).apply(0).files()
        uris = texts(jvm, index.inputFiles()).splitlines()
        empty = [] if int(found.size()) == len(files) else empty_files(index)
        listed.check(files, uris, empty)
        return found, uris

    def _hidden_status(self, file: str, listed: ListedFiles) -> Any:
        """Return a Scala sequence with the status of a file whose name Spark's index ignores."""
        path = hadoop_path(jvm_of(self.listing), file)
        configuration = self.sibling.sessionState().newHadoopConfWithOptions(self.options)
        try:
            with storage_errors(file):
                status = path.getFileSystem(configuration).getFileStatus(path)
        except FileNotFoundError:
            listed.check([file], [], [])
            raise
        listed.check([file], [self._uri(path)], [] if status.getLen() else [file])
        nothing = self.jvm.PythonUtils.toScalaMap({})
        status = self._datasources.FileStatusWithMetadata(status, nothing)
        return self.jvm.PythonUtils.toSeq([status])

    def _uri(self, path: Any) -> str:
        return str(self.jvm.org.apache.spark.paths.SparkPath.fromPath(path).urlEncoded())


def _by_visibility(files: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split files into visible ones and ones with names that Spark's file sources ignore."""
    hidden = [file for file in files if is_hidden(file)]
    return ([file for file in files if not is_hidden(file)] if hidden else list(files)), hidden
