"""Column types that Iceberg compatibility allows.

References
----------
PROTOCOL.md#writer-requirements-for-icebergcompatv1,
PROTOCOL.md#writer-requirements-for-icebergcompatv2
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.exceptions import IcebergCompatError
from sparkdelta.protocol.iceberg_compatibility import is_iceberg_type_change
from sparkdelta.schema.needed_features import field_metadata
from sparkdelta.schema.type_folds import types_within
from sparkdelta.schema.type_widening import TYPE_CHANGES

_ATOMIC = (
    BinaryType, BooleanType, ByteType, DateType, DecimalType, DoubleType, FloatType, IntegerType,
    LongType, ShortType, StringType, TimestampNTZType, TimestampType,
)  # fmt: skip


def check_iceberg_types(schema: StructType, version: int | None) -> None:
    """Raise if the schema has a type or a recorded type change that Iceberg does not support.

    Parameters
    ----------
    version
        The version of Iceberg compatibility; None if it is not enabled.

    Raises
    ------
    IcebergCompatError

    References
    ----------
    PROTOCOL.md#writer-requirements-for-icebergcompatv1,
    PROTOCOL.md#writer-requirements-for-icebergcompatv2
    """
    if version is None:
        return
    for path, data_type in types_within(schema):
        if not _is_supported(data_type, version):
            problem = f"column {path[0]} has the type {data_type.simpleString()}"
            raise IcebergCompatError(
                version=version, violation="UNSUPPORTED_DATA_TYPE", problem=problem
            )
    for name, metadata in field_metadata(schema).items():
        changes = metadata.get(TYPE_CHANGES, ())
        for change in changes if isinstance(changes, list) else ():
            from_type, to_type = str(change["fromType"]), str(change["toType"])
            if not is_iceberg_type_change(from_type, to_type):
                problem = f"column {name} was changed from {from_type} to {to_type}"
                raise IcebergCompatError(
                    version=version, violation="UNSUPPORTED_TYPE_WIDENING", problem=problem
                )


def _is_supported(data_type: DataType, version: int) -> bool:
    if isinstance(data_type, ArrayType | MapType):
        return version > 1
    return isinstance(data_type, (StructType, *_ATOMIC))
