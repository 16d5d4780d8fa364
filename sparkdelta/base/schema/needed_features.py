"""Table features required by a table's types, columns and properties.

References
----------
PROTOCOL.md#active-features, PROTOCOL.md#timestamp-without-timezone-timestampntz,
PROTOCOL.md#variant-data-type
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import DataType, StructType, TimestampNTZType, VariantType

from sparkdelta.base.protocol.protocol_upgrades import metadata_features
from sparkdelta.base.protocol.table_features import TableFeature
from sparkdelta.base.schema.spatial_types import SPATIAL_TYPES
from sparkdelta.base.schema.type_folds import fields_within, types_within

_TYPE_FEATURES: dict[type[DataType], TableFeature] = {
    TimestampNTZType: TableFeature.TIMESTAMP_NTZ,
    VariantType: TableFeature.VARIANT_TYPE,
    **dict.fromkeys(SPATIAL_TYPES, TableFeature.GEOSPATIAL),
}


def needed_features(schema: StructType, configuration: Mapping[str, str]) -> set[TableFeature]:
    """Return the features that a table with this schema and these properties must support."""
    kinds = {type(data_type) for _, data_type in types_within(schema)}
    type_features = {feature for kind, feature in _TYPE_FEATURES.items() if kind in kinds}
    return type_features | metadata_features(configuration, field_metadata(schema))


def field_metadata(data_type: DataType) -> dict[str, Mapping[str, object]]:
    """Return the metadata of the columns at every level, by dotted name."""
    return {".".join(path): field.metadata or {} for path, field, _ in fields_within(data_type)}
