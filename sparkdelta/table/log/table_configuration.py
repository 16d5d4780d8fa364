"""Protocol and metaData of a table, with the schema and the settings that they define.

References
----------
PROTOCOL.md#supported-features, PROTOCOL.md#format-specification,
PROTOCOL.md#writer-requirements-for-icebergcompatv1,
protocol_rfcs/materialize-partition-columns.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructField, StructType

from sparkdelta.base.protocol.actions import Metadata, Protocol
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.iceberg_compatibility import iceberg_version
from sparkdelta.base.protocol.table_features import TableFeature, check_readable, is_supported
from sparkdelta.base.protocol.table_properties import (
    WRITE_PARTITION_COLUMNS,
    ColumnMappingMode,
    InCommitTimestamps,
    RowTracking,
    column_mapping_mode,
    in_commit_timestamps,
    is_on,
    named_column_mapping_mode,
    row_tracking,
)
from sparkdelta.base.schema.column_mapping import PHYSICAL_NAME, physical_name, physical_path
from sparkdelta.base.schema.read_compatibility import is_read_compatible
from sparkdelta.base.schema.statistics_columns import statistics_columns
from sparkdelta.base.schema.statistics_schema import statistics_schema
from sparkdelta.base.schema.table_schema import (
    check_not_reserved,
    parse_table_schema,
    partition_fields,
)
from sparkdelta.base.schema.type_widening import check_type_changes
from sparkdelta.exceptions import DeltaError


@dataclass(frozen=True, slots=True)
class TableConfiguration:
    """A table's protocol, metadata and schema at one version, or after a commit.

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
    def validate(
        cls, protocol: Protocol, metadata: Metadata, *, path: str, has_catalog: bool = False
    ) -> TableConfiguration:
        """Return the configuration of a table; refuse a table that cannot be read."""
        check_readable(protocol, path=path, has_catalog=has_catalog)
        if metadata.format.provider.lower() != "parquet":
            raise DeltaError.of(
                "DELTA_UNSUPPORTED_FORMAT", path=path, provider=metadata.format.provider
            )
        schema = parse_table_schema(metadata.schema_string, path=path)
        check_type_changes(schema)
        for field in schema.fields:
            check_not_reserved(field.name)
            check_not_reserved(str((field.metadata or {}).get(PHYSICAL_NAME, "")))
        return cls.of(protocol, metadata, schema)

    @classmethod
    def of(cls, protocol: Protocol, metadata: Metadata, schema: StructType) -> TableConfiguration:
        """Return the configuration of metadata whose `schema_string` is parsed already."""
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
    def partition_columns(self) -> tuple[str, ...]:
        """The names of the partition columns as the schema spells them."""
        return tuple(field.name for field in self.partition_fields)

    @property
    def is_mapped(self) -> bool:
        """True if column mapping is active: columns have physical names in data files."""
        return self.column_mapping is not ColumnMappingMode.NONE

    def reads_rows_of(self, written: Metadata, *, path: str) -> bool:
        """Return True if rows written with other metadata can be read with this schema."""
        if tuple(written.partition_columns) != tuple(self.metadata.partition_columns):
            return False
        schema = parse_table_schema(written.schema_string, path=path)
        mode = named_column_mapping_mode(written.configuration)
        return is_read_compatible(schema, self.schema, mode, self.column_mapping)

    @property
    def iceberg_version(self) -> int | None:
        """The active version of Iceberg compatibility."""
        return iceberg_version(self.protocol, self.properties)

    @property
    def stores_partition_columns(self) -> bool:
        """True if new data files contain the partition columns, by a feature or a property."""
        return (
            self.iceberg_version is not None
            or is_supported(self.protocol, TableFeature.MATERIALIZE_PARTITION_COLUMNS)
            or is_on(self.properties, WRITE_PARTITION_COLUMNS)
        )

    @property
    def statistics_columns(self) -> tuple[ColumnPath, ...]:
        """The physical paths of the columns whose statistics the table's properties ask for."""
        paths = statistics_columns(self.schema, self.partition_columns, self.properties)
        return tuple(physical_path(self.schema, path, self.column_mapping) for path in paths)

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
