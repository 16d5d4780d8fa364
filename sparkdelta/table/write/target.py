"""The table that rows are written into: a new one, or one that is there, and what changes of it.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#protocol-evolution
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql.types import FloatType, StructField, StructType

from sparkdelta.exceptions import (
    AppendOnlyTableError,
    InvalidArgumentError,
    MetadataMismatchError,
    MissingNotNullColumnError,
    PartitionColumnNotFoundError,
    TableNotFoundError,
    WriteNotImplementedError,
)
from sparkdelta.protocol.actions import Protocol
from sparkdelta.protocol.iceberg_compatibility import check_iceberg_partitioning, iceberg_version
from sparkdelta.protocol.predicates import ColumnPath
from sparkdelta.protocol.property_rules import CONSTRAINT, requested_properties
from sparkdelta.protocol.protocol_upgrades import GENERATION_EXPRESSION, upgraded_protocol
from sparkdelta.protocol.staged_commit import StagedActions
from sparkdelta.protocol.table_features import TableFeature, is_supported
from sparkdelta.protocol.table_properties import (
    ColumnMappingMode,
    column_mapping_mode,
    is_append_only,
    is_type_widening_enabled,
)
from sparkdelta.protocol.write_support import check_data_writable
from sparkdelta.schema.column_ids import with_ids_of
from sparkdelta.schema.column_mapping import physical_name, physical_path
from sparkdelta.schema.iceberg_types import check_iceberg_types
from sparkdelta.schema.needed_features import field_metadata, needed_features
from sparkdelta.schema.row_rules import Identity, RowRules, row_rules
from sparkdelta.schema.schema_merging import merged_schema
from sparkdelta.schema.statistics_columns import check_statistics_columns, statistics_columns
from sparkdelta.schema.written_schema import (
    check_columns,
    check_partition_columns,
    matched_columns,
    new_table_schema,
)
from sparkdelta.storage.log_store import LogStore
from sparkdelta.table.snapshot import Snapshot
from sparkdelta.table.write.clustering import clustering_columns
from sparkdelta.table.write.definition import defined_table, mapped
from sparkdelta.table.write.options import WriteOptions


@dataclass(frozen=True, slots=True)
class Target:
    """The table that rows are written into, and what of it is new.

    Attributes
    ----------
    schema, partition_columns, configuration, protocol
        As they are once the write is committed.
    columns
        The table's columns, each with the column of the rows that it gets its values from.
    staged
        The actions that make it so.
    rules
        What the table says of its rows.
    clustering_columns
        Their physical paths.
    """

    schema: StructType
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    columns: list[tuple[StructField, str | None]]
    protocol: Protocol
    staged: StagedActions = field(default_factory=StagedActions)
    rules: RowRules = field(default_factory=RowRules)
    clustering_columns: tuple[ColumnPath, ...] = ()

    @property
    def column_mapping(self) -> ColumnMappingMode:
        return column_mapping_mode(self.protocol, self.configuration)

    @property
    def iceberg(self) -> int | None:
        """The version of Iceberg compatibility that is active."""
        return iceberg_version(self.protocol, self.configuration)

    @property
    def numbered(self) -> dict[str, Identity]:
        """The identity columns whose values are generated, as the rows have none."""
        names = [field.name for field, source in self.columns if source is None]
        return {
            name: self.rules.identities[name] for name in names if name in self.rules.identities
        }

    @property
    def statistics_columns(self) -> tuple[ColumnPath, ...]:
        """The physical paths of the columns that get statistics: the table's choice, and those
        whose bounds must be known.
        """
        paths = statistics_columns(self.schema, self.partition_columns, self.configuration)
        needed = [*paths, *((name,) for name in self.numbered)]
        physical = [physical_path(self.schema, path, self.column_mapping) for path in needed]
        return tuple(dict.fromkeys((*physical, *self.clustering_columns)))


def new_table(rows: StructType, options: WriteOptions, store: LogStore) -> Target:
    """The table that begins with these rows."""
    path = store.table_root
    if options.replace_where is not None:
        raise TableNotFoundError(path=path)
    requested = requested_properties(options.properties)
    mode = requested.configuration.get("delta.columnMapping.mode", "none").lower()
    schema = new_table_schema(rows, any_names=mode != "none")
    check_statistics_columns(schema, requested.configuration)
    partition_columns = check_partition_columns(schema, options.partition_by or ())
    definition = defined_table(schema, requested, partition_columns=partition_columns)
    target = Target(
        definition.schema,
        partition_columns,
        definition.metadata.configuration,
        [],
        definition.protocol,
        StagedActions(
            protocols=(definition.protocol,),
            metadata=(definition.metadata,),
            domains=definition.domains,
        ),
    )
    return _matched(target, rows, path)


def existing_table(rows: StructType, options: WriteOptions, snapshot: Snapshot) -> Target:
    """The table as it is, or as the rows change it."""
    path = snapshot.path
    if options.mode == "overwrite" and is_append_only(snapshot.protocol, snapshot.properties):
        raise AppendOnlyTableError(path=path)
    if options.properties:
        problem = "they can only be set when the table is created, and it already exists"
        raise InvalidArgumentError(argument="properties", problem=problem)
    check_data_writable(snapshot.protocol, path=path)
    own = tuple(f.name for f in snapshot.configuration.partition_fields)
    target = Target(
        snapshot.schema,
        own,
        snapshot.properties,
        [],
        snapshot.protocol,
        clustering_columns=clustering_columns(snapshot) or (),
    )
    if options.overwrite_schema:
        target = _overwritten(target, rows, options, snapshot)
    else:
        _check_partitioning(options, own, path)
        if options.merge_schema:
            target = _merged(target, rows, snapshot)
    return _matched(target, rows, path)


def _check_partitioning(options: WriteOptions, own: tuple[str, ...], path: str) -> None:
    asked = options.partition_by
    if asked is not None and [n.lower() for n in asked] != [n.lower() for n in own]:
        problem = (
            f"the table is partitioned by ({', '.join(own)}), not by ({', '.join(asked)}); to "
            "change this, use mode overwrite with overwrite_schema"
        )
        raise MetadataMismatchError(path=path, problem=problem)


def _overwritten(
    target: Target, rows: StructType, options: WriteOptions, snapshot: Snapshot
) -> Target:
    """The table with the schema and the partitioning of the rows instead of its own."""
    is_mapped = target.column_mapping is not ColumnMappingMode.NONE
    schema = new_table_schema(rows, any_names=is_mapped)
    if is_mapped:
        schema = with_ids_of(schema, snapshot.schema)
    partition_columns = check_partition_columns(schema, options.partition_by or ())
    check_iceberg_partitioning(target.iceberg, target.partition_columns, partition_columns)
    changed = _changed(target, schema, snapshot, partition_columns)
    names = {physical_name(f, changed.column_mapping) for f in changed.schema.fields}
    lost = not names.issuperset(path[0] for path in target.clustering_columns)
    if lost or (partition_columns and is_supported(target.protocol, TableFeature.CLUSTERING)):
        problem = "clustering columns of the table must be kept, and cannot be partition columns"
        raise InvalidArgumentError(argument="overwrite_schema", problem=problem)
    return changed


def _merged(target: Target, rows: StructType, snapshot: Snapshot) -> Target:
    """The table with what only the rows have."""
    any_names = target.column_mapping is not ColumnMappingMode.NONE
    check_columns(rows, any_names=any_names)
    schema = merged_schema(target.schema, rows)
    if is_type_widening_enabled(target.protocol, target.configuration):
        wider = merged_schema(target.schema, rows, widening=True)
        _check_widened(target, schema, wider, snapshot.path)
        schema = wider
    return _changed(target, schema, snapshot, target.partition_columns)


def _check_widened(target: Target, schema: StructType, wider: StructType, path: str) -> None:
    """Refuse to widen a column that an expression of the table names, as what it says of old rows
    could change; and FLOAT partitions: their texts are short of the digits that DOUBLE needs.
    """
    widened = [a.name for a, b in zip(schema, wider, strict=True) if a.dataType != b.dataType]
    expressions = [
        text for key, text in target.configuration.items() if key.startswith(CONSTRAINT)
    ] + [
        str(metadata[GENERATION_EXPRESSION])
        for metadata in field_metadata(target.schema).values()
        if GENERATION_EXPRESSION in metadata
    ]
    for name in widened:
        if name in target.partition_columns and isinstance(target.schema[name].dataType, FloatType):
            raise WriteNotImplementedError(
                path=path, missing=(f"changing partition column {name} to DOUBLE",)
            )
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
        for text in filter(word.search, expressions):
            missing = (f"widening the type of column {name}, which {text!r} uses",)
            raise WriteNotImplementedError(path=path, missing=missing)


def _changed(
    target: Target, schema: StructType, snapshot: Snapshot, partition_columns: tuple[str, ...]
) -> Target:
    configuration = target.configuration
    if target.column_mapping is not ColumnMappingMode.NONE:
        schema, configuration = mapped(
            schema, target.protocol, configuration, snapshot.configuration
        )
    if schema.json() == target.schema.json() and partition_columns == target.partition_columns:
        return target
    needed = needed_features(schema, configuration)
    protocol = upgraded_protocol(target.protocol, (feature.value for feature in needed))
    metadata = replace(
        snapshot.metadata,
        schema_string=schema.json(),
        partition_columns=partition_columns,
        configuration=configuration,
    )
    return replace(
        target,
        schema=schema,
        partition_columns=partition_columns,
        configuration=configuration,
        protocol=protocol,
        staged=StagedActions(
            protocols=() if protocol is target.protocol else (protocol,), metadata=(metadata,)
        ),
    )


def _matched(target: Target, rows: StructType, path: str) -> Target:
    """The target, once it is known that the rows can go into it."""
    is_mapped = target.column_mapping is not ColumnMappingMode.NONE
    check_data_writable(target.protocol, path=path)
    check_iceberg_types(target.schema, target.iceberg)
    check_columns(target.schema, any_names=is_mapped)
    columns = matched_columns(target.schema, rows, path=path, any_names=is_mapped)
    rules = row_rules(target.schema, target.protocol, target.configuration, path=path)
    filled = {*rules.defaults, *rules.generated, *rules.identities}
    missing = [
        field.name
        for field, source in columns
        if source is None and not field.nullable and field.name not in filled
    ]
    if missing:
        raise MissingNotNullColumnError(columns=missing)
    given = filled | {column.name for column, source in columns if source is not None}
    for name in target.partition_columns:
        if name not in given:
            raise PartitionColumnNotFoundError(column=name, available=rows.names)
    return replace(target, columns=columns, rules=rules)
