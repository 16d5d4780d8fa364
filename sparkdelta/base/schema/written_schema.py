"""Schema of the rows of a write, for a new table or matched with an existing one.

References
----------
PROTOCOL.md#schema-serialization-format, PROTOCOL.md#column-mapping,
PROTOCOL.md#partition-value-serialization, PROTOCOL.md#struct-field
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import ParseException
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    UserDefinedType,
    VarcharType,
    VariantType,
)

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.schema.row_checks import CHAR_OR_VARCHAR, OtherTypeError, declared_type
from sparkdelta.base.schema.spatial_types import (
    SPATIAL_TYPES,
    UNORDERED_TYPES,
    check_fixed_system,
)
from sparkdelta.base.schema.store_assignment import StoreAssignment, can_store
from sparkdelta.base.schema.table_schema import (
    PICKLED_CLASS,
    check_not_reserved,
    has_collations,
    plain_field,
    quoted,
)
from sparkdelta.base.schema.type_folds import parts, transformed, types_within
from sparkdelta.error_names import sql_type
from sparkdelta.exceptions import DeltaError, InvalidColumnNameError

_INVALID_CHARACTERS = set(" ,;{}()\n\t=")
_WRITABLE = (
    BinaryType, BooleanType, ByteType, DateType, DecimalType, DoubleType, FloatType, IntegerType,
    LongType, NullType, ShortType, StringType, TimestampNTZType, TimestampType,
    VariantType, *SPATIAL_TYPES,
)  # fmt: skip


def new_table_schema(schema: StructType, *, any_names: bool = False) -> StructType:
    """Return the schema of a new table: all columns nullable, each as `clean_field` returns it.

    With `any_names`, column mapping allows any character in names.
    """
    check_columns(schema, any_names=any_names)
    return StructType([clean_field(field) for field in schema.fields])


def check_columns(schema: StructType, *, any_names: bool = False) -> None:
    """Raise if names differ only in case or are invalid in Parquet, or a type cannot be written.

    `void` is written by leaving it out, see `stored_schema`.
    """
    for path, data_type in types_within(schema):
        if isinstance(data_type, StructType):
            _check_names(data_type, path, any_names=any_names)
        elif not (parts(data_type) or _is_writable(data_type)):
            raise DeltaError.of(
                "DELTA_UNSUPPORTED_DATA_TYPES",
                column=".".join(path),
                data_type=data_type.simpleString(),
            )
        check_fixed_system(data_type)


def check_collations(schema: StructType, protocol: Protocol) -> None:
    """Raise if a column has a collation, and the table does not support them."""
    if is_supported(protocol, TableFeature.COLLATIONS):
        return
    for field in schema.fields:
        if has_collations(field.dataType):
            raise DeltaError.of(
                "DELTA_UNSUPPORTED_DATA_TYPES",
                column=field.name,
                data_type=f"{field.dataType.simpleString()} (without the table feature collations)",
            )


def _check_names(struct: StructType, path: ColumnPath, *, any_names: bool) -> None:
    if not struct.fields:
        column = ".".join(path) or "the rows"
        raise DeltaError.of("DELTA_UNSUPPORTED_DATA_TYPES", column=column, data_type="struct<>")
    seen: set[str] = set()
    for name in struct.names:
        column = ".".join((*path, name))
        if name_key(name) in seen:
            raise DeltaError.of("DELTA_DUPLICATE_COLUMNS_FOUND", columns=(column,))
        if not (any_names or _INVALID_CHARACTERS.isdisjoint(name)) or not name:
            raise InvalidColumnNameError(column=column)
        if not path:
            check_not_reserved(name)
        seen.add(name_key(name))


def check_partition_columns(schema: StructType, names: Sequence[str]) -> tuple[str, ...]:
    """Return the partition columns, spelled as in the schema, after checks of names and types."""
    by_name = {name_key(field.name): field for field in schema.fields}
    spelled: list[str] = []
    for name in names:
        field = by_name.get(name_key(name))
        if field is None:
            raise DeltaError.of(
                "DELTA_INVALID_PARTITION_COLUMN", column=name, problem="the data has no such column"
            ).named(
                "DELTA_PARTITION_COLUMN_NOT_FOUND",
                columnName=quoted(name),
                schemaMap=", ".join(schema.names),
            )
        if field.name in spelled:
            raise DeltaError.of(
                "DELTA_INVALID_PARTITION_COLUMN", column=name, problem="it is listed more than once"
            )
        if not isinstance(field.dataType, AtomicType) or isinstance(
            field.dataType, (BinaryType, *UNORDERED_TYPES)
        ):
            problem = (
                f"its type {field.dataType.simpleString()} is not allowed for partition columns"
            )
            error = DeltaError.of("DELTA_INVALID_PARTITION_COLUMN", column=name, problem=problem)
            raise error.named(
                "INVALID_PARTITION_COLUMN_DATA_TYPE",
                type=f'"{sql_type(field.dataType.simpleString())}"',
            )
        spelled.append(field.name)
    if spelled and len(spelled) == len(schema.fields):
        raise DeltaError.of(
            "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
            column=", ".join(spelled),
            problem="these are all the columns of the table",
        )
    return tuple(spelled)


def matched_columns(
    table: StructType,
    rows: StructType,
    *,
    path: str,
    any_names: bool = False,
    policy: StoreAssignment = StoreAssignment.EXACT,
) -> list[tuple[StructField, str | None]]:
    """Pair each column of the table with the name of the row column that it is filled from, whose
    values may be stored in it by a policy.

    Names match case-insensitively; None means that the rows lack the column, which is then null.
    """
    check_columns(rows, any_names=any_names)
    row_fields = {name_key(field.name): field for field in rows.fields}
    table_names = {name_key(field.name) for field in table.fields}
    unknown = [field.name for name, field in row_fields.items() if name not in table_names]
    if unknown:
        problem = f"the table has no column {', '.join(unknown)}"
        raise DeltaError.of("DELTA_METADATA_MISMATCH", path=path, problem=problem)
    matched: list[tuple[StructField, str | None]] = []
    for field in table.fields:
        source = row_fields.get(name_key(field.name))
        if source is not None and not can_store(source.dataType, field.dataType, policy):
            error = DeltaError.of(
                "CANNOT_UP_CAST_DATATYPE"
                if can_store(source.dataType, field.dataType, StoreAssignment.ANSI)
                and policy is StoreAssignment.STRICT
                else "DELTA_FAILED_TO_MERGE_FIELDS",
                column=field.name,
                table_type=field.dataType.simpleString(),
                row_type=source.dataType.simpleString(),
            )
            are_structs = isinstance(source.dataType, StructType) and isinstance(
                field.dataType, StructType
            )
            raise error.named("DELTA_METADATA_MISMATCH") if are_structs else error
        matched.append((field, None if source is None else source.name))
    return matched


def _is_writable(data_type: DataType) -> bool:
    if isinstance(data_type, StringType):
        return not isinstance(data_type, CharType | VarcharType)
    if isinstance(data_type, UserDefinedType):
        return PICKLED_CLASS not in data_type.jsonValue()
    return type(data_type) in _WRITABLE


def clean_field(field: StructField) -> StructField:
    """Return a field as a new column of a table: nullable at every level, of its metadata with the
    comment and the declared CHAR or VARCHAR type.
    """
    kept = ("comment", CHAR_OR_VARCHAR) if _has_declared_type(field) else ("comment",)
    metadata = {key: value for key, value in (field.metadata or {}).items() if key in kept}
    return StructField(field.name, _clean_type(field.dataType), True, metadata)


def _has_declared_type(field: StructField) -> bool:
    """Return True if a field has the CHAR or VARCHAR types that its metadata declares."""
    try:
        return declared_type(field) != field.dataType
    except DeltaError:
        raise
    except (ParseException, OtherTypeError):
        return False


def _clean_type(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return StructType([clean_field(field) for field in data_type.fields])
    return transformed(data_type, field=plain_field, nullable=True)
