"""The types GEOMETRY and GEOGRAPHY of the table feature `geospatial`.

The feature is a proposal (delta-io/delta#4726), which delta-spark 4.4 implements. A type has the
coordinate system of its values; values have no order, no equality and no bounds.

References
----------
PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

from typing import Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import types
from pyspark.sql.types import DataType

from sparkdelta.base.schema.type_folds import types_within
from sparkdelta.exceptions import DeltaError

_FIRST_SPARK = (4, 2)
"""The first version of Spark that reads and writes the types in Parquet; 4.1 only has them."""

_HAS_TYPES = tuple(int(n) for n in pyspark.__version__.split(".")[:2]) >= _FIRST_SPARK

SPATIAL_TYPES: tuple[type[DataType], ...] = (
    (types.GeometryType, types.GeographyType) if _HAS_TYPES else ()
)
"""The classes of the types; none before Spark 4.2."""

UNORDERED_TYPES: tuple[type[DataType], ...] = (types.VariantType, *SPATIAL_TYPES)
"""The types whose values have no order, no bounds and no literals, and cannot be compared."""

_UNKNOWN = (PySparkException,)
"""The errors of PySpark about a coordinate system or an algorithm that it lacks."""


def as_spark_spells(part: dict[str, Any]) -> dict[str, Any]:
    """Return an object of a schema's JSON with the algorithm of GEOGRAPHY in capitals.

    PySpark reads only these; delta-kernel writes ``geography(OGC:CRS84, spherical)``.
    """
    for key in ("type", "elementType", "keyType", "valueType"):
        name = part.get(key)
        if isinstance(name, str) and name.startswith("geography("):
            system, comma, algorithm = name.partition(",")
            part[key] = f"{system}{comma}{algorithm.upper()}"
    return part


def is_unreadable(name: str) -> bool:
    """Return True if this Spark lacks a spatial type, given by its name in a table's schema."""
    if not name.startswith(("geometry", "geography")):
        return False
    if not SPATIAL_TYPES:
        return True
    field = {"name": "g", "type": name, "nullable": True, "metadata": {}}
    try:
        types.StructType.fromJson({"fields": [field]})
    except _UNKNOWN:
        return True
    return False


def is_spatial(data_type: DataType) -> bool:
    """Return True if a type is GEOMETRY or GEOGRAPHY itself."""
    return isinstance(data_type, SPATIAL_TYPES)


def has_spatial(data_type: DataType) -> bool:
    """Return True if a type is GEOMETRY or GEOGRAPHY, or has one inside."""
    return any(is_spatial(inner) for _, inner in types_within(data_type))


def check_fixed_system(data_type: DataType) -> None:
    """Refuse a type of ANY coordinate system, in which each value brings its own."""
    if is_spatial(data_type) and data_type.simpleString().endswith("(any)"):
        raise DeltaError.of(
            "DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED", data_type=data_type.simpleString()
        )


def check_not_spatial(column: str, data_type: DataType, operation: str) -> None:
    """Refuse an operation for a column that is GEOMETRY or GEOGRAPHY, or has one inside."""
    if has_spatial(data_type):
        raise DeltaError.of(
            "DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES",
            operation=operation,
            column=column,
            data_type=data_type.simpleString(),
        )
