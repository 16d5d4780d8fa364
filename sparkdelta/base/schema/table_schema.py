"""Conversion of a table's `schemaString` to a Spark StructType.

References
----------
PROTOCOL.md#schema-serialization-format, PROTOCOL.md#void-type
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    UserDefinedType,
)

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.spatial_types import as_spark_spells, is_unreadable
from sparkdelta.base.schema.type_folds import parts, transformed, types_within, with_parts
from sparkdelta.exceptions import DeltaError

RESERVED_PREFIX = "__sparkdelta_"
"""The names of sparkdelta's own columns begin with it. They have letters, digits and underscores
only: Spark takes other names in backticks for patterns if `spark.sql.parser.quotedRegexColumnNames`
is set.
"""

_RESERVED_NAMES = ("_tmp_metadata_row_index",)
"""Spark's Parquet reader fills columns of these names with values of its own."""

PICKLED_CLASS = "serializedClass"
"""The key of a pickled class in a user-defined type; others name a class that can be imported."""

_UNREADABLE_TYPES = ("interval", "timestamp_nanos", "timestampNanos")
_MALFORMED = (
    ValueError, KeyError, TypeError, AttributeError, RecursionError, ImportError, PySparkException,
    AssertionError,  # of PySpark 4.0.0 about a type that it does not know
)  # fmt: skip


def parse_table_schema(schema_string: str | None, *, path: str) -> StructType:
    """Return the table's schema with nullability and metadata as declared at every level."""
    if not schema_string:
        raise DeltaError.of("DELTA_SCHEMA_NOT_SET", path=path)
    try:
        has_geography = "geography(" in schema_string
        document = json.loads(schema_string, object_hook=as_spark_spells if has_geography else None)
        _reject_unreadable(document, "")
        schema = StructType.fromJson(document)
    except DeltaError:
        raise
    except _MALFORMED as error:
        raise DeltaError.of(
            "DELTA_INVALID_SCHEMA", problem=f"schemaString of {path} cannot be parsed: {error}"
        ) from error
    _reject_ambiguous_names(schema)
    return schema


def check_not_reserved(name: str) -> None:
    """Refuse a column name that sparkdelta or Spark may use in the same rows."""
    key = name_key(name)
    if key.startswith(RESERVED_PREFIX):
        raise DeltaError.of("DELTA_RESERVED_COLUMN_NAME", column=name, prefix=RESERVED_PREFIX)
    if key in _RESERVED_NAMES:
        raise DeltaError.of("DELTA_RESERVED_COLUMN_NAME", column=name, prefix=key)


def _reject_unreadable(document: Any, column: str) -> None:
    """Raise for the column of an unsupported type, which Spark's parser would not name."""
    if isinstance(document, str):
        if document.startswith(_UNREADABLE_TYPES) or is_unreadable(document):
            raise DeltaError.of("DELTA_UNSUPPORTED_DATA_TYPES", column=column, data_type=document)
        return
    if PICKLED_CLASS in document:  # PySpark would run it
        text = "user-defined type that brings its class"
        raise DeltaError.of("DELTA_UNSUPPORTED_DATA_TYPES", column=column, data_type=text)
    for field in document.get("fields", ()):
        _reject_unreadable(field["type"], f"{column}.{field['name']}".lstrip("."))
    for part in ("elementType", "keyType", "valueType"):
        if part in document:
            _reject_unreadable(document[part], column)


def _reject_ambiguous_names(schema: StructType) -> None:
    for path, data_type in types_within(schema):
        seen: dict[str, str] = {}
        for name in data_type.names if isinstance(data_type, StructType) else ():
            twin = seen.get(name_key(name))
            if twin is not None:
                raise DeltaError.of(
                    "DELTA_INVALID_SCHEMA",
                    problem=f"columns {twin!r} and {name!r} of {'.'.join(path) or 'the table'} "
                    "have the same name, ignoring case",
                )
            seen[name_key(name)] = name


def partition_fields(schema: StructType, partition_columns: Sequence[str]) -> list[StructField]:
    """Return the fields of `metaData.partitionColumns` in that order, in any case."""
    by_name = {name_key(field.name): field for field in schema.fields}
    fields = []
    for name in partition_columns:
        if name_key(name) not in by_name:
            raise DeltaError.of(
                "DELTA_PARTITION_COLUMN_NOT_FOUND", column=name, available=schema.names
            )
        fields.append(by_name[name_key(name)])
    return fields


def type_of_path(schema: StructType, path: tuple[str, ...]) -> DataType:
    """Return the type of a column or nested field, given by names spelled as in the schema."""
    data_type: DataType = schema
    for name in path:
        assert isinstance(data_type, StructType)
        data_type = data_type[name].dataType
    return data_type


def field_named(data_type: DataType, name: str) -> StructField | None:
    """Return the field of a struct by its name in any case; None if there is none."""
    fields = data_type.fields if isinstance(data_type, StructType) else ()
    return next((field for field in fields if name_key(field.name) == name_key(name)), None)


def known_path(schema: StructType, names: Iterable[str]) -> tuple[str, ...]:
    """Return the longest part of a path, from its start, that the schema has, spelled as there."""
    path: list[str] = []
    data_type: DataType = schema
    for name in names:
        field = field_named(data_type, name)
        if field is None:
            break
        path.append(field.name)
        data_type = field.dataType
    return tuple(path)


def quoted(name: str) -> str:
    """Return a name in backticks."""
    return f"`{name.replace('`', '``')}`"


def quoted_path(names: Iterable[str]) -> str:
    """Return the name of a nested field, or of a table in its database, each part in backticks."""
    return ".".join(map(quoted, names))


def as_nullable(data_type: DataType) -> DataType:
    """Return the type as Parquet scans return it: nullable at every level, without metadata."""
    return transformed(data_type, field=plain_field, leaf=_plain_leaf, nullable=True)


def nullable_as(data_type: DataType, other: DataType) -> DataType:
    """Return the type with the nullability of another type of the same shape, for fields outside of
    arrays and maps.
    """
    if not isinstance(data_type, StructType) or not isinstance(other, StructType):
        return data_type
    return StructType(
        [
            StructField(
                field.name,
                nullable_as(field.dataType, like.dataType),
                like.nullable,
                field.metadata,
            )
            for field, like in zip(data_type.fields, other.fields, strict=True)
        ]
    )


def without_collations(data_type: DataType) -> DataType:
    """Return the type with plain strings at every level."""
    return transformed(data_type, leaf=_plain_leaf)


def has_collations(data_type: DataType) -> bool:
    """Return True if a string at any level has a collation."""
    return without_collations(data_type) != data_type


def has_user_defined_types(schema: DataType) -> bool:
    """Return True if a type at any level is a user-defined one, such as a vector of MLlib."""
    return any(isinstance(inner, UserDefinedType) for _, inner in types_within(schema))


def plain_field(field: StructField) -> StructField:
    """Return a field as nullable and without metadata."""
    return StructField(field.name, field.dataType)


def _plain_leaf(data_type: DataType) -> DataType:
    # A collation affects comparisons but not the stored values.
    return StringType() if isinstance(data_type, StringType) else data_type


def stored_schema(schema: StructType) -> StructType:
    """Return the part of a table's schema that new data files hold."""
    for path, data_type in types_within(schema):
        column = ".".join(path) or "the table"
        error = None
        if isinstance(data_type, ArrayType | MapType):
            if any(isinstance(inner, NullType) for _, inner in types_within(data_type)):
                error = "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"
        elif isinstance(data_type, StructType) and without_void(data_type) is None:
            error = "DELTA_CANNOT_WRITE_EMPTY_SCHEMA"
        if error is not None:
            raise DeltaError.of(error, column=column, data_type=data_type.simpleString())
    stored = without_void(without_collations(schema))
    assert isinstance(stored, StructType)
    return stored


def without_void(data_type: DataType) -> DataType | None:
    """Return a type without `void` fields and structs of nothing else; None if nothing is left."""
    if isinstance(data_type, NullType):
        return None
    if isinstance(data_type, StructType):
        fields = [
            StructField(field.name, stored, field.nullable, field.metadata)
            for field in data_type.fields
            if (stored := without_void(field.dataType)) is not None
        ]
        return StructType(fields) if fields else None
    inner = [without_void(part) for _, part in parts(data_type)]
    kept = [part for part in inner if part is not None]
    return with_parts(data_type, kept) if len(kept) == len(inner) else None
