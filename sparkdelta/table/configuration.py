"""Protocol and metaData taken together and found readable: what every later layer may rely on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructField, StructType

from sparkdelta.exceptions import UnsupportedFormatError
from sparkdelta.protocol.actions import Metadata, Protocol
from sparkdelta.protocol.table_features import check_readable
from sparkdelta.protocol.table_properties import (
    ColumnMappingMode,
    InCommitTimestamps,
    RowTracking,
    column_mapping_mode,
    in_commit_timestamps,
    row_tracking,
)
from sparkdelta.schema.column_mapping import physical_name
from sparkdelta.schema.statistics_schema import statistics_schema
from sparkdelta.schema.table_schema import parse_table_schema, partition_fields
from sparkdelta.schema.type_widening import check_type_changes


@dataclass(frozen=True, slots=True)
class TableConfiguration:
    """A table's validated protocol, metadata and schema at one version.

    Attributes
    ----------
    schema
        The logical schema as declared.
    partition_fields
        The partition columns in the order of `metaData.partitionColumns`.
    """

    protocol: Protocol
    metadata: Metadata
    schema: StructType
    partition_fields: tuple[StructField, ...]
    column_mapping: ColumnMappingMode
    in_commit_timestamps: InCommitTimestamps
    row_tracking: RowTracking

    @classmethod
    def validate(cls, protocol: Protocol, metadata: Metadata, *, path: str) -> TableConfiguration:
        """Refuse what this engine cannot read before anything else is read.

        Raises
        ------
        UnsupportedReaderFeaturesError, InvalidProtocolVersionError, InvalidProtocolError,
        CatalogManagedTableError, UnsupportedTypeChangeError, UnsupportedDataTypeError,
        SchemaNotSetError, InvalidSchemaError, PartitionColumnNotFoundError, UnsupportedFormatError

        References
        ----------
        PROTOCOL.md#supported-features, PROTOCOL.md#format-specification
        """
        check_readable(protocol, path=path)
        if metadata.format.provider.lower() != "parquet":
            raise UnsupportedFormatError(path=path, provider=metadata.format.provider)
        schema = parse_table_schema(metadata.schema_string, path=path)
        check_type_changes(schema)
        configuration = metadata.configuration
        return cls(
            protocol=protocol,
            metadata=metadata,
            schema=schema,
            partition_fields=tuple(partition_fields(schema, metadata.partition_columns)),
            column_mapping=column_mapping_mode(protocol, configuration),
            in_commit_timestamps=in_commit_timestamps(protocol, configuration),
            row_tracking=row_tracking(protocol, configuration),
        )

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.configuration

    @property
    def partition_keys(self) -> list[tuple[str, StructField]]:
        """Each partition column with its key in `partitionValues`."""
        return [
            (physical_name(field, self.column_mapping), field) for field in self.partition_fields
        ]

    @property
    def data_fields(self) -> list[StructField]:
        """The columns that data files hold, in the schema's order."""
        partitions = {field.name for field in self.partition_fields}
        return [field for field in self.schema.fields if field.name not in partitions]

    @property
    def statistics(self) -> StructType:
        """The type of `stats_parsed`."""
        return statistics_schema(self.schema, self.metadata.partition_columns, self.column_mapping)
