"""The features that a table's types, columns and properties ask for.

References
----------
PROTOCOL.md#active-features
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    TimestampNTZType,
    VariantType,
)

from sparkdelta.protocol.protocol_upgrades import metadata_features
from sparkdelta.protocol.table_features import TableFeature

_TYPE_FEATURES = {
    TimestampNTZType: TableFeature.TIMESTAMP_NTZ,
    VariantType: TableFeature.VARIANT_TYPE,
}


def needed_features(schema: StructType, configuration: Mapping[str, str]) -> set[TableFeature]:
    """The features that a table must support to be what its schema and properties say.

    References
    ----------
    PROTOCOL.md#active-features, PROTOCOL.md#timestamp-without-timezone-timestampntz,
    PROTOCOL.md#variant-data-type
    """
    of_types = {feature for wanted, feature in _TYPE_FEATURES.items() if uses_type(schema, wanted)}
    return of_types | metadata_features(configuration, field_metadata(schema))


def uses_type(data_type: DataType, wanted: type[DataType]) -> bool:
    """Whether a type is, or holds, another."""
    if isinstance(data_type, StructType):
        return any(uses_type(field.dataType, wanted) for field in data_type.fields)
    if isinstance(data_type, ArrayType):
        return uses_type(data_type.elementType, wanted)
    if isinstance(data_type, MapType):
        return uses_type(data_type.keyType, wanted) or uses_type(data_type.valueType, wanted)
    return isinstance(data_type, wanted)


def field_metadata(data_type: DataType, path: str = "") -> dict[str, Mapping[str, object]]:
    """The metadata of the columns at every level, by their names."""
    found: dict[str, Mapping[str, object]] = {}
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            name = f"{path}.{field.name}".lstrip(".")
            found[name] = field.metadata or {}
            found |= field_metadata(field.dataType, name)
    elif isinstance(data_type, ArrayType):
        found |= field_metadata(data_type.elementType, path)
    elif isinstance(data_type, MapType):
        found |= field_metadata(data_type.keyType, path)
        found |= field_metadata(data_type.valueType, path)
    return found
