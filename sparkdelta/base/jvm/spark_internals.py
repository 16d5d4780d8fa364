"""The internal classes of classic Spark that this library reaches by name, and what needs them.

They may change with any version. Each is checked when it is first used, and reported by name if it
is missing; `tests/base/jvm/test_spark_internals.py` looks for all of them in the Spark under test.
"""

from __future__ import annotations

from dataclasses import dataclass

_SQL = "org.apache.spark.sql"
_SOURCES = f"{_SQL}.execution.datasources"
_CATALYST = f"{_SQL}.catalyst"


@dataclass(frozen=True, slots=True)
class SparkInternals:
    """Classes that one part of the library needs.

    Attributes
    ----------
    purpose
        The use of the classes, after the words "sparkdelta needs it to".
    classes
        Full names. A tuple in place of a name has alternatives, for different versions.
    first_check
        The function in which their absence is noticed first.
    without
        The behaviour of the library where a class is missing or has another form.
    """

    purpose: str
    classes: tuple[str | tuple[str, ...], ...]
    first_check: str = "jvm.SparkClass"
    without: str = "DELTA_SPARK_MEMBER_NOT_FOUND, before anything is read or written"


INTERNALS = (
    SparkInternals(
        purpose="move DataFrames between sessions",
        classes=(f"{_SQL}.classic.Dataset", f"{_SQL}.classic.SparkSession"),
    ),
    SparkInternals(
        purpose="read exactly the files of a version",
        classes=(
            f"{_CATALYST}.InternalRow",
            f"{_SOURCES}.HadoopFsRelation",
            f"{_SOURCES}.InMemoryFileIndex",
            f"{_SOURCES}.LogicalRelation$",
            f"{_SOURCES}.NoopCache$",
            f"{_SOURCES}.PartitionPath",
            f"{_SOURCES}.PartitionSpec",
            f"{_SOURCES}.parquet.ParquetFileFormat",
            f"{_SQL}.types.DataType",
            f"{_SQL}.types.StructType",
        ),
    ),
    SparkInternals(
        purpose="read files whose names Spark hides",
        classes=(
            f"{_CATALYST}.FileSourceOptions",
            f"{_SOURCES}.FilePartition",
            f"{_SOURCES}.FileScanRDD",
            f"{_SOURCES}.PartitionedFile",
            "org.apache.spark.paths.SparkPath",
        ),
    ),
    SparkInternals(
        purpose="choose files by filters that come after a read",
        classes=(
            f"{_SOURCES}.FileIndex",
            f"{_SOURCES}.FileStatusWithMetadata",
            f"{_SOURCES}.PartitionDirectory",
            f"{_SQL}.execution.WholeStageCodegenExec",
        ),
        first_check="JvmLateScans.problem_of_callbacks",
        without="a warning; files are chosen when the DataFrame is made, and filters are Spark's",
    ),
    SparkInternals(
        purpose="answer aggregates by the log",
        classes=(
            f"{_SOURCES}.v2.DataSourceV2Relation$",
            f"{_SQL}.connector.catalog.SupportsRead",
            f"{_SQL}.connector.catalog.TableCapability",
            f"{_SQL}.connector.read.LocalScan",
            f"{_SQL}.connector.read.ScanBuilder",
        ),
        first_check="JvmAggregates.rows_when_planned",
        without="SQL reads the files",
    ),
    SparkInternals(
        purpose="store permanent SQL functions that read Delta tables",
        classes=(
            f"{_CATALYST}.FunctionIdentifier",
            f"{_CATALYST}.catalog.CatalogFunction",
            f"{_CATALYST}.catalog.FileResource$",
            f"{_CATALYST}.catalog.FunctionResource",
            f"{_CATALYST}.catalog.UserDefinedFunction$",
        ),
    ),
    SparkInternals(
        purpose="report errors of a listing to a query",
        classes=("org.apache.spark.QueryContext", "org.apache.spark.SparkRuntimeException"),
        first_check="jvm_query_callbacks._to_raise",
        without="a java.lang.IllegalArgumentException with the same text",
    ),
    SparkInternals(
        purpose="evaluate conditions on the columns of another DataFrame",
        classes=(
            f"{_CATALYST}.expressions.Alias",
            f"{_CATALYST}.expressions.And",
            f"{_CATALYST}.plans.logical.Filter",
            f"{_CATALYST}.plans.logical.Project",
            f"{_SQL}.classic.ExpressionUtils",
        ),
    ),
    SparkInternals(
        purpose="register tables in the session catalog",
        classes=(
            f"{_CATALYST}.TableIdentifier",
            f"{_CATALYST}.catalog.CatalogStorageFormat",
            f"{_CATALYST}.catalog.CatalogTable$",
            f"{_CATALYST}.catalog.CatalogTableType",
        ),
    ),
    SparkInternals(
        purpose="find the table of a temporary view",
        classes=(f"{_CATALYST}.trees.TreeNodeTag",),
    ),
    SparkInternals(
        purpose="read a table as a stream",
        classes=(
            f"{_CATALYST}.plans.logical.LocalRelation",
            f"{_CATALYST}.types.DataTypeUtils",
            f"{_SQL}.connector.read.streaming.ReadLimit",
            f"{_SQL}.connector.read.streaming.SupportsAdmissionControl",
            f"{_SQL}.connector.read.streaming.SupportsTriggerAvailableNow",
            *(
                (f"{_SQL}.execution.streaming.runtime.{name}", f"{_SQL}.execution.streaming.{name}")
                for name in ("SerializedOffset", "StreamingExecutionRelation")
            ),
            f"{_SQL}.execution.streaming.Source",
        ),
        first_check="JvmStreams.stream",
        without="DELTA_STREAM_NOT_SUPPORTED, before the stream starts",
    ),
)

OPTIONAL_CLASSES = (f"{_CATALYST}.streaming.Unassigned$",)
"""Classes of some versions only: the name of a stream's source exists since Spark 4.2."""


def purpose_of(name: str) -> str:
    """Return the use of a class, after the words "sparkdelta needs it to"."""
    for internals in INTERNALS:
        for each in internals.classes:
            if name in (each if isinstance(each, tuple) else (each,)):
                return internals.purpose
    return "work on classic Spark"
