"""Column types and defaults that Iceberg compatibility allows.

References
----------
PROTOCOL.md#writer-requirements-for-icebergcompatv1,
PROTOCOL.md#writer-requirements-for-icebergcompatv2, protocol_rfcs/iceberg-compat-v3.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
    VariantType,
)

from sparkdelta.base.protocol.iceberg_compatibility import is_iceberg_type_change
from sparkdelta.base.protocol.protocol_upgrades import CURRENT_DEFAULT
from sparkdelta.base.schema.needed_features import field_metadata
from sparkdelta.base.schema.type_folds import types_within
from sparkdelta.base.schema.type_widening import TYPE_CHANGES
from sparkdelta.exceptions import DeltaError

_ATOMIC = (
    BinaryType, BooleanType, ByteType, DateType, DecimalType, DoubleType, FloatType, IntegerType,
    LongType, ShortType, StringType, TimestampNTZType, TimestampType,
)  # fmt: skip


_WITHOUT_VARIANTS = 2
_ONLY_LITERAL_DEFAULTS = 3
_LITERAL = re.compile(
    r"""[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?(l|s|y|f|d|bd)? | true | false
        | (x|date|timestamp|timestamp_ntz)?\s*('([^'\\]|\\.)*'|"([^"\\]|\\.)*")""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def check_iceberg_types(schema: StructType, version: int | None) -> None:
    """Raise if Iceberg lacks a type, a recorded type change or a default of the schema.

    `version` is the version of Iceberg compatibility; None if it is not enabled.
    """
    if version is None:
        return
    for path, data_type in types_within(schema):
        if not _is_supported(data_type, version):
            problem = f"column {path[0]} has the type {data_type.simpleString()}"
            raise DeltaError.of(
                "DELTA_ICEBERG_COMPAT_VIOLATION",
                version=version,
                violation="UNSUPPORTED_DATA_TYPE",
                problem=problem,
            )
    for name, metadata in field_metadata(schema).items():
        if version >= _ONLY_LITERAL_DEFAULTS:
            _check_default(name, metadata, version)
        changes = metadata.get(TYPE_CHANGES, ())
        for change in changes if isinstance(changes, list) else ():
            from_type, to_type = str(change["fromType"]), str(change["toType"])
            if not is_iceberg_type_change(from_type, to_type):
                problem = f"column {name} was changed from {from_type} to {to_type}"
                raise DeltaError.of(
                    "DELTA_ICEBERG_COMPAT_VIOLATION",
                    version=version,
                    violation="UNSUPPORTED_TYPE_WIDENING",
                    problem=problem,
                )


def _check_default(name: str, metadata: Mapping[str, object], version: int) -> None:
    default = metadata.get(CURRENT_DEFAULT)
    if default is not None and not _LITERAL.fullmatch(str(default).strip()):
        problem = f"the default of column {name}, {default}, is not a literal"
        raise DeltaError.of(
            "DELTA_ICEBERG_COMPAT_VIOLATION",
            version=version,
            violation="UNSUPPORTED_DEFAULT",
            problem=problem,
        )


def _is_supported(data_type: DataType, version: int) -> bool:
    if isinstance(data_type, ArrayType | MapType):
        return version > 1
    if isinstance(data_type, VariantType):
        return version > _WITHOUT_VARIANTS
    return isinstance(data_type, (StructType, *_ATOMIC))
