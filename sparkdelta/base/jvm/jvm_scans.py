"""File scans with Spark's readers, independent of the settings of the user's session; classic Spark
only.

A scan belongs to a sibling session with this library's settings, its DataFrame to the user's
session.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, Sequence, Set
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.base.jvm.jvm import (
    JvmSession,
    analyzed,
    frame_of,
    hadoop_path,
    jvm_of,
    rebound_rows,
    sequence,
    singleton,
    storage_errors,
    texts,
)
from sparkdelta.base.parquet.parquet_options import (
    WRITE_OPTIONS,
    WRITE_SETTINGS,
    ParquetRelation,
    ParquetScan,
    PartitionDirectories,
    committer_settings,
    is_hidden,
)
from sparkdelta.base.schema.column_mapping import PARQUET_FIELD_ID

_SEPARATOR = "\x1f"

# Greedy, so that the last such fields match even if the path contains similar text.
_STAMP = re.compile(
    r".*; isDirectory=false; length=(?P<length>\d+);.*; modification_time=(?P<modified>\d+);",
    re.DOTALL,
)

_SCAN_SETTINGS = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.recordLevelFilter.enabled": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
}
"""Settings that scans of data files depend on and that have no read option."""

_BY_ID_SETTINGS = {
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "true",
}
"""Required for field ids: the non-vectorized reader takes the setting for them from the session
that runs the query.
"""

_TUNING = {
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.maxPartitionNum",
    "spark.sql.parquet.columnarReaderBatchSize",
    "spark.sql.columnVector.offheap.enabled",
    "spark.sql.parquet.enableVectorizedReader",  # plans also read it from the user's session
    "spark.sql.catalog.spark_catalog",  # Spark 4.3 opens it to look up any function
}
"""The user's settings that affect the performance of a scan, or whether it is planned, but not its
rows.
"""


class JvmScans(JvmSession):
    """The part of a classic engine that reads and writes files with Spark's sources."""

    def read_files(
        self,
        source: str,
        paths: Sequence[str],
        *,
        options: Mapping[str, str],
        schema: StructType | None = None,
    ) -> DataFrame:
        """Return a lazy DataFrame of files read by one of Spark's public sources.

        The files are listed with two tasks per core. By default Spark uses one task per file from
        33 files on, which takes seconds for a thousand files.
        """
        jvm = self.jvm
        reader = scan_session(self.spark, by_id=False).read().format(source)
        if schema is not None:
            reader = reader.schema(java_schema_of(jvm, schema))
        loaded = reader.options(jvm.PythonUtils.toScalaMap(dict(options))).load(
            sequence(jvm, java_texts(jvm, paths))
        )
        return rebound_rows(ClassicDataFrame(loaded, self.spark), self.spark)

    def _copy_hadoop_settings(self, sibling: SparkSession, others: Set[str]) -> None:
        """Copy the session's Hadoop settings to another session, and some other settings."""
        copy_hadoop_settings(self.spark, sibling._jsparkSession, others)

    def parquet_relation(self, scan: ParquetScan) -> ParquetRelation:
        """Return a scan of Parquet files in the user's session, independent of its settings.

        Partition values come from the caller instead of directory names, at no cost per row.

        Raises
        ------
        FileNotFoundError
            A file does not exist; `filename` is its path if Spark reports it.
        """
        if is_hidden(scan.files[0]):
            return _hidden_relation(self.spark, scan)
        jvm, partitions = self.jvm, scan.partitions
        datasources = jvm.org.apache.spark.sql.execution.datasources
        by_id = has_field_ids(scan.schema)
        sibling = scan_session(self.spark, by_id=by_id)
        java_schema = java_schema_of(jvm, scan.schema)
        partition_schema = java_schema_of(jvm, partitions.schema if partitions else StructType())
        scala_options = jvm.PythonUtils.toScalaMap(dict(scan.options))
        specification = jvm.scala.Option.empty()
        if partitions is not None:
            specification = _partition_specification(jvm, partitions, partition_schema)
        index = file_index(jvm, sibling, scan.files, java_schema, scala_options, specification)
        relation = parquet_files(jvm, sibling, index, partition_schema, java_schema, scala_options)
        logical = singleton(datasources, "LogicalRelation$")
        rows = frame_of(logical.apply(relation, scan.is_streaming), self.spark)
        input_files = texts(jvm, index.inputFiles()).splitlines()
        stamps = file_stamps(index, len(input_files))
        if stamps is not None:
            empty = [file for file, (size, _) in zip(input_files, stamps, strict=True) if size == 0]
        else:
            empty = [] if index.sizeInBytes() == scan.size_bytes else empty_files(index)
        return ParquetRelation(rows, rows.metadataColumn("_metadata"), input_files, empty, stamps)

    def write_parquet(
        self,
        rows: DataFrame,
        directory: str,
        *,
        partition_by: Sequence[str],
        options: Mapping[str, str],
        settings: Mapping[str, str],
    ) -> None:
        """Write rows of any session to a new directory with Spark's Parquet writer.

        The write runs in a clone of that session with `WRITE_SETTINGS`; all other settings are
        kept, since the plan of the rows was created with them.

        Parameters
        ----------
        partition_by
            The columns whose values are in directory names and not in the files.
        options
            Options of Spark's Parquet source.
        settings
            Settings of this write only.
        """
        jvm = self.jvm
        gateway: Any = self.spark.sparkContext._gateway
        sibling = rows.sparkSession._jsparkSession.cloneSession()
        sibling_conf = sibling.conf()
        committers = committer_settings(sibling_conf.get)
        for key, value in {**WRITE_SETTINGS, **committers, **settings}.items():
            sibling_conf.set(key, value)
        datasets = jvm.org.apache.spark.sql.classic.Dataset
        writer = datasets.ofRows(sibling, analyzed(rows)).write()
        names = gateway.new_array(jvm.java.lang.String, len(partition_by))
        for index, name in enumerate(partition_by):
            names[index] = name
        for key, value in {**options, **WRITE_OPTIONS}.items():
            writer = writer.option(key, value)
        writer.format("parquet").mode("errorifexists").partitionBy(names).save(directory)


def parquet_files(
    jvm: Any, sibling: Any, index: Any, partition_schema: Any, schema: Any, scala_options: Any
) -> Any:
    """Return Spark's relation of the Parquet files of an index."""
    datasources = jvm.org.apache.spark.sql.execution.datasources
    return datasources.HadoopFsRelation(
        index,
        partition_schema,
        schema,
        jvm.scala.Option.empty(),
        datasources.parquet.ParquetFileFormat(),
        scala_options,
        sibling,
    )


def file_index(
    jvm: Any,
    sibling: Any,
    files: Sequence[str],
    java_schema: Any,
    scala_options: Any,
    specification: Any,
) -> Any:
    """Return Spark's index of some files, which asks the storage for each.

    Parameters
    ----------
    sibling
        As `scan_session` returns it.
    files
        Qualified, decoded paths.
    specification
        An option with the partition values of directories.
    """
    datasources = jvm.org.apache.spark.sql.execution.datasources
    return datasources.InMemoryFileIndex(
        sibling,
        _java_paths(jvm, files),
        scala_options,
        jvm.scala.Option.apply(java_schema),
        singleton(datasources, "NoopCache$"),
        specification,
        jvm.scala.Option.empty(),
    )


def file_stamps(index: Any, count: int) -> list[tuple[int, int]] | None:
    """Return the sizes and modification times of an index's files with a single JVM call."""
    statuses = str(index.allFiles().mkString(_SEPARATOR)).split(_SEPARATOR)
    matches = [match for match in map(_STAMP.match, statuses) if match is not None]
    if len(matches) != count or len(statuses) != count:
        return None
    return [(int(match["length"]), int(match["modified"])) for match in matches]


def empty_files(index: Any) -> list[str]:
    """Return the files of an index that have 0 bytes."""
    statuses = index.allFiles().iterator()
    empty = []
    while statuses.hasNext():
        status = statuses.next()
        if status.getLen() == 0:
            empty.append(str(status.getPath().toString()))
    return empty


def _hidden_relation(spark: SparkSession, scan: ParquetScan) -> ParquetRelation:
    """Return a scan of files whose names Spark's file sources ignore: the same Parquet reader over
    an explicit list of files, with one task per file and without filter pushdown.
    """
    jvm = jvm_of(spark)
    datasources = jvm.org.apache.spark.sql.execution.datasources
    sibling = scan_session(spark, by_id=has_field_ids(scan.schema))
    scala_options = jvm.PythonUtils.toScalaMap({**scan.options, "returning_batch": "false"})
    configuration = sibling.sessionState().newHadoopConfWithOptions(scala_options)
    with_index = StructType([*scan.schema.fields, StructField(_ROW_INDEX, LongType())])
    java_schema = java_schema_of(jvm, with_index)
    none_of = jvm.PythonUtils.toSeq([])
    nothing = jvm.PythonUtils.toScalaMap({})
    reader = datasources.parquet.ParquetFileFormat().buildReaderWithPartitionValues(
        sibling,
        java_schema,
        java_schema_of(jvm, StructType()),
        java_schema,
        none_of,
        scala_options,
        configuration,
    )
    frames, uris = [], []
    for file in scan.files:
        uri, split = _whole_file(spark, file, configuration)
        rdd = datasources.FileScanRDD(
            sibling,
            reader,
            jvm.PythonUtils.toSeq([split]),
            java_schema,
            none_of,
            nothing,
            jvm.org.apache.spark.sql.catalyst.FileSourceOptions(scala_options),
        )
        internal = spark._jsparkSession.internalCreateDataFrame(rdd, java_schema, scan.is_streaming)
        metadata = F.struct(F.lit(uri).alias("file_path"), F.col(_ROW_INDEX).alias("row_index"))
        rows = ClassicDataFrame(internal, spark).withColumn(_METADATA, metadata)
        frames.append(rows.drop(_ROW_INDEX))
        uris.append(uri)
    rows = reduce(DataFrame.unionAll, frames)
    return ParquetRelation(rows, rows[_METADATA], uris)


_METADATA = "__sparkdelta_metadata"
_ROW_INDEX = "_tmp_metadata_row_index"  # Spark's Parquet reader fills in a column of this name


def _whole_file(spark: SparkSession, file: str, configuration: Any) -> tuple[str, Any]:
    """Return a file's URI and a scan partition that reads the whole file."""
    jvm = jvm_of(spark)
    gateway: Any = spark.sparkContext._gateway
    datasources = jvm.org.apache.spark.sql.execution.datasources
    path = hadoop_path(jvm, file)
    with storage_errors(file):
        status = path.getFileSystem(configuration).getFileStatus(path)
    spark_path = jvm.org.apache.spark.paths.SparkPath.fromPath(path)
    whole = gateway.new_array(datasources.PartitionedFile, 1)
    whole[0] = datasources.PartitionedFile(
        jvm.org.apache.spark.sql.catalyst.InternalRow.empty(),
        spark_path,
        0,
        status.getLen(),
        gateway.new_array(jvm.java.lang.String, 0),
        status.getModificationTime(),
        status.getLen(),
        jvm.PythonUtils.toScalaMap({}),
    )
    return str(spark_path.urlEncoded()), datasources.FilePartition(0, whole)


def _partition_specification(
    jvm: Any, partitions: PartitionDirectories, partition_schema: Any
) -> Any:
    rows = partitions.values._jdf.queryExecution().executedPlan().executeCollect()
    entry = jvm.org.apache.spark.sql.execution.datasources.PartitionPath.apply
    entries = jvm.java.util.ArrayList()
    for row, directory in zip(rows, partitions.directories, strict=True):
        entries.add(entry(row, directory))
    specification = jvm.org.apache.spark.sql.execution.datasources.PartitionSpec(
        partition_schema, jvm.PythonUtils.toSeq(entries)
    )
    return jvm.scala.Option.apply(specification)


def _java_paths(jvm: Any, files: Sequence[str]) -> Any:
    """Return Hadoop paths with a few JVM calls instead of several per file."""
    names = java_texts(jvm, files)
    return sequence(jvm, jvm.org.apache.hadoop.util.StringUtils.stringToPath(names))


def java_texts(jvm: Any, files: Sequence[str]) -> Any:
    """Return an array of texts with a single JVM call."""
    return jvm.org.apache.commons.lang3.StringUtils.split("\0".join(files), "\0")


def java_schema_of(jvm: Any, schema: StructType) -> Any:
    """Return a schema as an object of the JVM."""
    return jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())


def has_field_ids(schema: StructType) -> bool:
    """Return True if columns are matched by field id."""
    return any(PARQUET_FIELD_ID in field.metadata for field in schema.fields)


_siblings: weakref.WeakKeyDictionary[SparkSession, dict[bool, Any]]
_siblings = weakref.WeakKeyDictionary()


def scan_session(spark: SparkSession, *, by_id: bool) -> Any:
    """Return the session of scans, with this library's settings and the user's Hadoop and tuning
    settings.

    Filters are not pushed down to a scan by field ids: Spark would apply them to the column of that
    name, whatever its id, and skip row groups with matching rows.
    """
    siblings = _siblings.setdefault(spark, {})
    if by_id not in siblings:
        sibling = siblings[by_id] = spark._jsparkSession.newSession()
        settings = {
            **_SCAN_SETTINGS,
            **(_BY_ID_SETTINGS if by_id else {}),
            "spark.sql.parquet.filterPushdown": str(not by_id).lower(),
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(
                2 * spark.sparkContext.defaultParallelism
            ),
        }
        for key, value in settings.items():
            sibling.conf().set(key, value)
    sibling = siblings[by_id]
    tuning = _TUNING - _BY_ID_SETTINGS.keys() if by_id else _TUNING
    copy_hadoop_settings(spark, sibling, tuning)
    return sibling


def copy_hadoop_settings(spark: SparkSession, sibling: Any, others: Set[str] = frozenset()) -> None:
    """Copy the user's Hadoop settings to another session, and some other settings."""
    user_settings, current = _settings(spark._jsparkSession), _settings(sibling)
    for key, value in user_settings.items():
        if (key in others or not key.startswith("spark.")) and current.get(key) != value:
            sibling.conf().set(key, value)
    for key in others & current.keys() - user_settings.keys():
        sibling.conf().unset(key)


def _settings(session: Any) -> dict[str, str]:
    """Return all settings of a session with a single JVM call; one per setting would take longer
    than planning a small scan.
    """
    settings = str(session.conf().getAll().mkString(_SEPARATOR)).split(_SEPARATOR)
    return dict(setting.split(" -> ", 1) for setting in settings if " -> " in setting)
