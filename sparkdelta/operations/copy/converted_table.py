"""The definition of the table that the files of a Parquet directory become.

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
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from sparkdelta.base.protocol.column_names import name_key, stored_name_key
from sparkdelta.base.schema.partition_value_frames import is_invalid_partition_value
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.schema.type_folds import parts_together, with_parts
from sparkdelta.base.spark.driver import read_row, read_rows
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.spark_errors import SPARK_ERRORS
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.operations.copy.conversion_workers import (
    CONVERTED,
    ConvertedFileReader,
    converted_files,
)
from sparkdelta.table.definition.definition_change import (
    DefinitionChange,
    TableDescription,
    created_table,
)
from sparkdelta.table.snapshot.staging import Staging

MAX_SCHEMAS = 1_000
"""The most schemas that the files of a directory may have."""

_FILES_PER_TASK = 200
_INFERRED: tuple[DataType, ...] = (IntegerType(), LongType(), DateType(), StringType())
_FIELD_ID = "parquet.field.id"
_STORED_AS_INT32 = (ByteType, ShortType, IntegerType)


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
    """

    partition_schema: StructType = field(default_factory=StructType)
    infers_partitions: bool = False
    collects_statistics: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedFiles:
    """The files of a directory as files of a table.

    Attributes
    ----------
    change
        The table that they become.
    adds
        Their add actions in a column `add`.
    """

    change: DefinitionChange
    adds: DataFrame
    num_files: int
    num_bytes: int


class UnmergeableTypesError(Exception):
    """An error for a column whose types in two files cannot be read as one type."""


def convert_files(
    root: str, files: DataFrame, stage: Staging, options: ConvertOptions
) -> ConvertedFiles:
    """Read the footers of files by workers, and merge their schemas.

    `files` has path STRING (absolute, decoded), length LONG, modificationTime LONG.
    """
    spark = stage.spark
    totals = read_row(
        files.agg(F.count("*").alias("files"), F.sum("length").alias("bytes")),
        what="totals of files to convert",
    )
    if not totals["files"]:
        raise DeltaError.of("DELTA_EMPTY_DIRECTORY", directory=root)
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
    converted = stage.compute_once(read, "converted", CONVERTED)
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


def checked_partition_schema(value: StructType | str | None, argument: str) -> StructType:
    """Return the user's partition columns, from a schema or its text."""
    if value is None:
        return StructType()
    schema: object = value
    if isinstance(value, str):
        try:
            schema = DataType.fromDDL(value)
        except DeltaError:
            raise
        except SPARK_ERRORS:
            problem = f"{value!r} is not a schema such as 'date DATE, id INT'"
            raise InvalidArgumentError(argument=argument, problem=problem) from None
    if not isinstance(schema, StructType):
        problem = f"it must be a StructType or a text such as 'date DATE, id INT', not {value!r}"
        raise InvalidArgumentError(argument=argument, problem=problem)
    return schema


def _names(schema: StructType) -> tuple[str, ...]:
    return tuple(schema.names)


def _inferred_partition(files: DataFrame) -> StructType:
    """Return the partition columns that all files have, with types that fit all of their values."""
    rows = read_rows(
        grouped(files, ["names"], F.min("path").alias("path")).orderBy("path").limit(2),
        what="partition columns of files",
        bound=2,
    )
    names = rows[0]["names"]
    if len(rows) > 1:
        raise DeltaError.of(
            "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
            path=rows[1]["path"],
            expected=", ".join(names),
            found=", ".join(rows[1]["names"]),
        )
    if not names:
        return StructType()
    fits = [
        F.count_if(F.expr(_is_invalid(index, StructField(name, kind)))).alias(f"{index}-{number}")
        for index, name in enumerate(names)
        for number, kind in enumerate(_INFERRED)
    ]
    present = [F.count(F.col("values")[index]).alias(str(index)) for index in range(len(names))]
    counts = read_row(files.agg(*fits, *present), what="types of partition columns")
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
            raise DeltaError.of(
                "DELTA_FAILED_CAST_PARTITION_VALUE",
                column=column.name,
                value=row["value"],
                data_type=data_type,
            )


def _is_invalid(index: int, column: StructField) -> str:
    return is_invalid_partition_value(f"get(values, {index})", column, time_zone="UTC")


def _merged_schema(files: DataFrame) -> StructType:
    rows = read_rows(
        grouped(files, ["schema"], F.min("path").alias("path")),
        what="schemas of files",
        bound=MAX_SCHEMAS,
    )
    merged = StructType()
    for row in sorted(rows, key=lambda row: row["path"]):
        try:
            merged = merged_file_schemas(merged, StructType.fromJson(json.loads(row["schema"])))
        except UnmergeableTypesError as error:
            raise DeltaError.of(
                "DELTA_FAILED_MERGE_SCHEMA_FILE", file=row["path"], problem=str(error)
            ) from None
    return merged


def merged_file_schemas(schema: StructType, other: StructType) -> StructType:
    """Return a schema that files of two schemas can be read with.

    Columns of the first precede the others; integers that Parquet stores alike become the widest. A
    column keeps its field id if both have it.

    Examples
    --------
    >>> ones, others = (StructType.fromDDL(ddl) for ddl in ("a INT, b STRING", "A SHORT, c DATE"))
    >>> merged_file_schemas(ones, others).simpleString()
    'struct<a:int,b:string,c:date>'
    """
    by_name = {stored_name_key(field.name): field for field in other.fields}
    merged = [
        _merged_field(field, by_name.pop(stored_name_key(field.name), None))
        for field in schema.fields
    ]
    return StructType([*merged, *by_name.values()])


def _merged_field(field: StructField, other: StructField | None) -> StructField:
    if other is None:
        return field
    try:
        data_type = _merged_type(field.dataType, other.dataType)
    except UnmergeableTypesError as error:
        raise UnmergeableTypesError(f"{field.name}: {error}") from None
    metadata = dict(field.metadata or {})
    if metadata.get(_FIELD_ID) != (other.metadata or {}).get(_FIELD_ID):
        metadata.pop(_FIELD_ID, None)
    return StructField(field.name, data_type, True, metadata)


def _merged_type(one: DataType, other: DataType) -> DataType:
    if isinstance(one, StructType) and isinstance(other, StructType):
        return merged_file_schemas(one, other)
    if inner := parts_together(one, other):
        return with_parts(one, [_merged_type(a, b) for _, a, b in inner])
    if isinstance(one, _STORED_AS_INT32) and isinstance(other, _STORED_AS_INT32):
        return max(one, other, key=lambda kind: _STORED_AS_INT32.index(type(kind)))
    if one != other:
        raise UnmergeableTypesError(f"{one.simpleString()} and {other.simpleString()}")
    return one


def _with_partition(data: StructType, partition: StructType) -> tuple[StructField, ...]:
    """Return the columns of files, then of directories alone; partition types have precedence."""
    partitions = {name_key(column.name): column for column in partition.fields}
    columns = [partitions.pop(name_key(column.name), column) for column in data.fields]
    return (*columns, *partitions.values())


def _adds(files: DataFrame, names: Sequence[str]) -> DataFrame:
    literals = ", ".join(map(text_literal, names))
    values = f"map_from_arrays(array({literals}), values)" if names else "map()"
    return files.selectExpr(
        f"struct(path, CAST({values} AS MAP<STRING, STRING>) AS partitionValues, size, "
        "modificationTime, TRUE AS dataChange, stats) AS add"
    )
