"""The table that the files of a Parquet directory become.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.partition_value_frames import is_invalid_partition_value
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.library_sessions import SPARK_ERRORS
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.exceptions import (
    EmptyDirectoryError,
    FileSchemaMergeError,
    InvalidArgumentError,
    PartitionColumnCountError,
    PartitionValueCastError,
)
from sparkdelta.operations.copy.conversion_workers import (
    CONVERTED,
    ConvertedFileReader,
    converted_files,
)
from sparkdelta.operations.copy.file_schemas import UnmergeableTypesError, merged_file_schemas
from sparkdelta.table.definition.table_change import TableChange, TableDescription, created_table
from sparkdelta.table.snapshot.staging import Staging

MAX_SCHEMAS = 1_000
"""The most schemas that the files of a directory may have."""

_FILES_PER_TASK = 200
_INFERRED: tuple[DataType, ...] = (IntegerType(), LongType(), DateType(), StringType())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions:
    """The options of a conversion.

    Attributes
    ----------
    partition_schema
        The partition columns; none by default.
    infers_partitions
        True to take them from the names of directories instead.
    collects_statistics
        True to read statistics from footers.
    properties
        Of the table.
    """

    partition_schema: StructType = field(default_factory=StructType)
    infers_partitions: bool = False
    collects_statistics: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedFiles:
    """The files of a directory as those of a table.

    Attributes
    ----------
    change
        The table that they become.
    adds
        Their add actions in a column `add`.
    """

    change: TableChange
    adds: DataFrame
    num_files: int
    num_bytes: int


def convert_files(
    root: str, files: DataFrame, stage: Staging, options: ConvertOptions
) -> ConvertedFiles:
    """Read the footers of files by workers, and merge their schemas.

    Parameters
    ----------
    files
        path STRING (absolute, decoded), length LONG, modificationTime LONG.

    Raises
    ------
    EmptyDirectoryError
        There are no files.
    FileFooterError, ConvertNonParquetError, FileSchemaMergeError
        The files are not those of one Parquet data set.
    PartitionColumnCountError, PartitionColumnNameError, PartitionValueCastError
        The names of directories do not fit the partition columns.
    DeltaError
        No table can have this schema.
    """
    spark = stage.spark
    (totals,) = read_rows(
        files.agg(F.count("*").alias("files"), F.sum("length").alias("bytes")),
        what="totals of files to convert",
        bound=1,
    )
    if not totals["files"]:
        raise EmptyDirectoryError(directory=root)
    reader = ConvertedFileReader(
        files=worker_files(spark, root, {}),
        root=root,
        partition_columns=None if options.infers_partitions else _names(options.partition_schema),
        collects_statistics=options.collects_statistics,
        properties=dict(options.properties),
    )
    tasks = max(totals["files"] // _FILES_PER_TASK, engine_of(spark).parallelism)
    with worker_python(spark):
        read = converted_files(files.repartition(min(tasks, totals["files"])), reader)
    stage.write_parquet(read, "converted", {})
    converted, _ = stage.read_parquet("converted", CONVERTED)
    partition = options.partition_schema
    if options.infers_partitions:
        partition = _inferred_partition(converted)
    _check_values(converted, partition)
    data = _merged_schema(converted)
    description = TableDescription(
        columns=_with_partition(data, partition),
        partition_by=_names(partition),
        properties=options.properties,
    )
    change = created_table(description)
    if change.after.is_mapped:
        problem = "the files of a converted table cannot have other names of columns"
        raise InvalidArgumentError(argument="properties", problem=problem)
    return ConvertedFiles(
        change=change,
        adds=_adds(converted, _names(partition)),
        num_files=totals["files"],
        num_bytes=totals["bytes"],
    )


def checked_partition_schema(given: StructType | str | None, argument: str) -> StructType:
    """Return the partition columns that a user gives, as a schema or as the text of one.

    Raises
    ------
    InvalidArgumentError
    """
    if given is None:
        return StructType()
    schema: object = given
    if isinstance(given, str):
        try:
            schema = DataType.fromDDL(given)
        except SPARK_ERRORS:
            problem = f"{given!r} is not a schema such as 'date DATE, id INT'"
            raise InvalidArgumentError(argument=argument, problem=problem) from None
    if not isinstance(schema, StructType):
        problem = f"it must be a StructType or a text such as 'date DATE, id INT', not {given!r}"
        raise InvalidArgumentError(argument=argument, problem=problem)
    return schema


def _names(schema: StructType) -> tuple[str, ...]:
    return tuple(schema.names)


def _inferred_partition(files: DataFrame) -> StructType:
    """The partition columns that all files have, with types that fit all of their values."""
    rows = read_rows(
        files.groupBy("names").agg(F.min("path").alias("path")).orderBy("path").limit(2),
        what="partition columns of files",
        bound=2,
    )
    names = rows[0]["names"]
    if len(rows) > 1:
        raise PartitionColumnCountError(
            path=rows[1]["path"], expected=", ".join(names), found=", ".join(rows[1]["names"])
        )
    if not names:
        return StructType()
    fits = [
        F.count_if(F.expr(_is_invalid(index, StructField(name, kind)))).alias(f"{index}-{number}")
        for index, name in enumerate(names)
        for number, kind in enumerate(_INFERRED)
    ]
    known = [F.count(F.col("values")[index]).alias(str(index)) for index in range(len(names))]
    (counts,) = read_rows(files.agg(*fits, *known), what="types of partition columns", bound=1)
    types = [
        next(
            kind
            for number, kind in enumerate(_INFERRED)
            if isinstance(kind, StringType)
            or (counts[str(index)] and not counts[f"{index}-{number}"])
        )
        for index in range(len(names))
    ]
    return StructType([StructField(n, kind) for n, kind in zip(names, types, strict=True)])


def _check_values(files: DataFrame, partition: StructType) -> None:
    for index, column in enumerate(partition.fields):
        if isinstance(column.dataType, StringType):
            continue
        wrong = files.filter(_is_invalid(index, column)).select(
            F.col("values")[index].alias("value")
        )
        for row in read_rows(wrong.limit(1), what="partition value of another type", bound=1):
            data_type = column.dataType.simpleString()
            raise PartitionValueCastError(
                column=column.name, value=row["value"], data_type=data_type
            )


def _is_invalid(index: int, column: StructField) -> str:
    return is_invalid_partition_value(f"get(values, {index})", column, time_zone="UTC")


def _merged_schema(files: DataFrame) -> StructType:
    rows = read_rows(
        files.groupBy("schema").agg(F.min("path").alias("path")),
        what="schemas of files",
        bound=MAX_SCHEMAS,
    )
    merged = StructType()
    for row in sorted(rows, key=lambda row: row["path"]):
        try:
            merged = merged_file_schemas(merged, StructType.fromJson(json.loads(row["schema"])))
        except UnmergeableTypesError as error:
            raise FileSchemaMergeError(file=row["path"], problem=str(error)) from None
    return merged


def _with_partition(data: StructType, partition: StructType) -> tuple[StructField, ...]:
    """The columns of files, with the types of the partition columns for those that directories have
    too, then the other partition columns.
    """
    own = {name_key(column.name): column for column in partition.fields}
    columns = [own.pop(name_key(column.name), column) for column in data.fields]
    return (*columns, *own.values())


def _adds(files: DataFrame, names: Sequence[str]) -> DataFrame:
    literals = ", ".join(map(text_literal, names))
    values = f"map_from_arrays(array({literals}), values)" if names else "map()"
    return files.selectExpr(
        f"struct(path, CAST({values} AS MAP<STRING, STRING>) AS partitionValues, size, "
        "modificationTime, TRUE AS dataChange, stats) AS add"
    )
