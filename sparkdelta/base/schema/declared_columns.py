"""Validation of the columns that a user declares when creating a table.

References
----------
PROTOCOL.md#identity-columns, PROTOCOL.md#generated-columns, PROTOCOL.md#clustered-table,
PROTOCOL.md#column-metadata, PROTOCOL.md#writer-requirements-for-clustered-table
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from sparkdelta.base.protocol.column_lists import column_list
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.protocol_upgrades import GENERATION_EXPRESSION, IDENTITY_START
from sparkdelta.base.schema.row_checks import CHAR_OR_VARCHAR
from sparkdelta.base.schema.spatial_types import UNORDERED_TYPES
from sparkdelta.base.schema.sql_text import type_text
from sparkdelta.base.schema.statistics_columns import found_column
from sparkdelta.base.schema.table_schema import quoted_path, type_of_path
from sparkdelta.base.schema.type_folds import fields_within, transformed
from sparkdelta.error_names import sql_type
from sparkdelta.exceptions import ColumnNotFoundError, InvalidArgumentError

IDENTITY_STEP = "delta.identity.step"
ALLOW_EXPLICIT_INSERT = "delta.identity.allowExplicitInsert"
MAX_CLUSTERING_COLUMNS = 4


def declared_type(given: str | DataType) -> DataType:
    """Return a type, given as such or by its SQL name."""
    if isinstance(given, DataType):
        return given
    data_type, text = DataType.fromDDL(given), given.strip().lower()
    if isinstance(data_type, StructType) and not text.startswith("struct"):
        raise _invalid("dataType", f"{given} is a column, not a type")
    if "collate" in text:  # Spark 4.0.0 keeps the collation of columns alone
        columns = DataType.fromDDL(f"c {given}")
        assert isinstance(columns, StructType)
        return columns.fields[0].dataType
    return data_type


def identity_metadata(start: int, step: int, *, allows_explicit_values: bool) -> dict[str, object]:
    """Return the field metadata that defines an identity column."""
    return {
        IDENTITY_START: start,
        IDENTITY_STEP: step,
        ALLOW_EXPLICIT_INSERT: allows_explicit_values,
    }


def bounded_text(field: StructField) -> StructField:
    """Return a column with STRING for each CHAR and VARCHAR, and the declared type in its metadata,
    as Spark keeps it.
    """
    stored = transformed(field.dataType, leaf=_without_length)
    if stored == field.dataType:
        return field
    is_plain = all(name.isidentifier() for name in _names_within(field.dataType))
    text = field.dataType.simpleString() if is_plain else type_text(field.dataType)
    metadata = {**(field.metadata or {}), CHAR_OR_VARCHAR: text}
    return StructField(field.name, stored, field.nullable, metadata)


def _without_length(leaf: DataType) -> DataType:
    return StringType() if isinstance(leaf, CharType | VarcharType) else leaf


def _names_within(data_type: DataType) -> list[str]:
    return [each.field.name for each in fields_within(data_type)]


def check_declared(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Raise if an identity or generated column is declared incorrectly."""
    for field in schema.fields:
        metadata = field.metadata or {}
        if IDENTITY_START in metadata:
            _check_identity(field, is_partition=field.name in partition_columns)
            if GENERATION_EXPRESSION in metadata:
                raise _invalid(
                    "generatedAlwaysAs", f"{field.name} is both a generated and an identity column"
                )
    generated = [GENERATION_EXPRESSION in (field.metadata or {}) for field in schema.fields]
    if generated and all(generated):
        raise _invalid("generatedAlwaysAs", "at least one column must not be generated")


def check_clustering_columns(
    schema: StructType, names: Sequence[str], partition_columns: Sequence[str]
) -> tuple[ColumnPath, ...]:
    """Return the clustering columns, spelled as in the schema, after checks of number and types."""
    try:
        paths = [
            found_column(schema, path) for name in names for path in column_list(_CLUSTER_BY, name)
        ]
    except ColumnNotFoundError as error:
        error.named(
            "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
            columnName=error.column,
            tableSchema=schema.treeString(),
        )
        raise
    if paths and partition_columns:
        raise _invalid(_CLUSTER_BY, "a table cannot be both clustered and partitioned")
    for path in paths:
        if paths.count(path) > 1:
            raise _invalid(_CLUSTER_BY, f"{'.'.join(path)} is listed more than once").named(
                "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY", duplicateCols=quoted_path(path)
            )
    if len(paths) > MAX_CLUSTERING_COLUMNS:
        raise _invalid(
            _CLUSTER_BY, f"there may be at most {MAX_CLUSTERING_COLUMNS} clustering columns"
        ).named(
            "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            numColumnsLimit=str(MAX_CLUSTERING_COLUMNS),
            actualNumColumns=str(len(paths)),
        )
    for path in paths:
        data_type = type_of_path(schema, path)
        if not _has_bounds(data_type):
            raise _invalid(
                _CLUSTER_BY,
                f"{'.'.join(path)} is {data_type.simpleString()}, a type without min/max values",
            ).named(
                "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
                columnsWithDataTypes=f"{'.'.join(path)} : {sql_type(data_type.simpleString())}",
            )
    return tuple(paths)


_CLUSTER_BY = "clusterBy"


def _has_bounds(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and not isinstance(
        data_type, (BinaryType, BooleanType, *UNORDERED_TYPES)
    )


def _check_identity(field: StructField, *, is_partition: bool) -> None:
    argument = "generatedAlwaysAs"
    if field.dataType != LongType():
        problem = (
            f"identity column {field.name} must be BIGINT, not {field.dataType.simpleString()}"
        )
        raise _invalid(argument, problem).named(
            "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE", dataType=field.dataType.typeName()
        )
    if field.metadata.get(IDENTITY_STEP) == 0:
        raise _invalid(argument, f"the step of {field.name} must not be 0").named(
            "IDENTITY_COLUMNS_ILLEGAL_STEP"
        )
    if is_partition:
        raise _invalid(argument, f"identity column {field.name} cannot be a partition column")


def _invalid(argument: str, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(argument=argument, problem=problem)
