"""A table as catalogs and statements describe it."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

from sparkdelta.base.protocol.settable_properties import (
    FEATURE,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
)
from sparkdelta.base.schema.type_folds import with_fields
from sparkdelta.table.definition.alteration import shown_json
from sparkdelta.table.definition.clustering import clustering_columns, logical_columns
from sparkdelta.table.snapshot.snapshot import Snapshot

_SHOWN = ("comment", "__CHAR_VARCHAR_TYPE_STRING")


def described_schema(schema: StructType) -> StructType:
    """Return a schema with no other metadata than comments and the lengths of strings."""

    def shown(field: StructField) -> StructField:
        metadata = {name: value for name, value in field.metadata.items() if name in _SHOWN}
        return StructField(field.name, field.dataType, field.nullable, metadata)

    return with_fields(schema, shown)


def all_properties(snapshot: Snapshot) -> dict[str, str]:
    """Return a table's properties, with its protocol versions and features as properties."""
    protocol, clustering = snapshot.protocol, clustering_columns(snapshot)
    columns = logical_columns(snapshot.configuration, clustering or ())
    clustered = shown_json(columns)
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return {
        **snapshot.properties,
        **({} if clustering is None else {"clusteringColumns": clustered}),
        **{f"{FEATURE}{name}": "supported" for name in features},
        MIN_READER_VERSION: str(protocol.min_reader_version),
        MIN_WRITER_VERSION: str(protocol.min_writer_version),
    }
