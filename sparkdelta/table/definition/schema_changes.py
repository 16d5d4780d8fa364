"""Changes that a write makes to a table: creation, a merged schema, an overwritten schema.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#protocol-evolution
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql.types import FloatType, StructType

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.protocol.iceberg_compatibility import check_iceberg_partitioning
from sparkdelta.base.protocol.table_features import TableFeature, check_data_writable, is_supported
from sparkdelta.base.protocol.table_properties import is_append_only, is_type_widening_enabled
from sparkdelta.base.schema.column_ids import with_ids_of
from sparkdelta.base.schema.column_mapping import physical_name, physical_path
from sparkdelta.base.schema.declared_columns import check_clustering_columns
from sparkdelta.base.schema.schema_merging import merged_schema
from sparkdelta.base.schema.table_constraints import row_rules
from sparkdelta.base.schema.written_schema import (
    check_columns,
    check_partition_columns,
    new_table_schema,
)
from sparkdelta.exceptions import DeltaError, InvalidArgumentError, TableNotFoundError
from sparkdelta.table.definition.alteration import with_schema
from sparkdelta.table.definition.clustering import clustering_columns
from sparkdelta.table.definition.definition_change import (
    DefinitionChange,
    TableDescription,
    created_table,
    replaced_table,
)
from sparkdelta.table.definition.write_options import WriteOptions
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot


def written_table(
    rows: StructType, options: WriteOptions, snapshot: Snapshot | None, *, path: str
) -> DefinitionChange:
    """Return the change that a write makes to a table, or that creates it without a snapshot."""
    partition_by = options.partition_by
    if snapshot is None:
        if options.requires_table:
            if options.replaces_table:
                raise DeltaError.of("DELTA_CANNOT_REPLACE_MISSING_TABLE", path=path)
            raise TableNotFoundError(path=path)
        return created_table(_description(rows, options))
    table = snapshot.configuration
    if options.mode == "overwrite" and is_append_only(table.protocol, table.properties):
        raise DeltaError.of("DELTA_CANNOT_MODIFY_APPEND_ONLY", path=path)
    if options.replaces_table:
        change = replaced_table(table, _description(rows, options))
        check_data_writable(change.after.protocol, path=path)
        return change
    if options.properties and options.output_mode is None:  # a stream may have created the table
        problem = "they can only be set when the table is created, and it already exists"
        raise InvalidArgumentError(argument="properties", problem=problem)
    check_data_writable(table.protocol, path=path)
    change = DefinitionChange(table, table, clustering_columns=clustering_columns(snapshot) or ())
    if options.cluster_by is not None:
        _check_same_clustering(change, options.cluster_by, path)
    if options.overwrite_schema:
        return with_overwritten_schema(change, rows, partition_by or ())
    present = table.partition_columns
    if partition_by is not None and [name_key(n) for n in partition_by] != [
        name_key(n) for n in present
    ]:
        problem = (
            f"the table is partitioned by ({', '.join(present)}), not by ({', '.join(partition_by)}"
            "); to change this, use mode overwrite with overwrite_schema (overwriteSchema), and "
            "without replace_where (replaceWhere)"
        )
        raise DeltaError.of("DELTA_METADATA_MISMATCH", path=path, problem=problem)
    return with_merged_schema(change, rows, path=path) if options.merge_schema else change


def _description(rows: StructType, options: WriteOptions) -> TableDescription:
    return TableDescription(
        columns=tuple(new_table_schema(rows, any_names=True)),
        partition_by=tuple(options.partition_by or ()),
        clustering_columns=tuple(options.cluster_by or ()),
        comment=options.comment,
        properties=options.properties,
    )


def _check_same_clustering(change: DefinitionChange, names: Sequence[str], path: str) -> None:
    """Refuse clustering columns that differ from the table's."""
    table = change.after
    paths = check_clustering_columns(table.schema, names, table.partition_columns)
    physical = tuple(physical_path(table.schema, each, table.column_mapping) for each in paths)
    if physical != change.clustering_columns:
        problem = (
            f"the table is not clustered by ({', '.join(names)}); to change this, use "
            "cluster_by of alter_table"
        )
        raise DeltaError.of("DELTA_METADATA_MISMATCH", path=path, problem=problem)


def with_overwritten_schema(
    change: DefinitionChange, rows: StructType, partition_by: Sequence[str]
) -> DefinitionChange:
    """Return the change with the schema of the rows in place of the table's, and this partitioning.

    Clustering columns must be kept, and must not become partition columns.
    """
    table = change.after
    schema = new_table_schema(rows, any_names=table.is_mapped)
    if table.is_mapped:
        schema = with_ids_of(schema, table.schema)
    partition_columns = check_partition_columns(schema, partition_by)
    check_iceberg_partitioning(table.iceberg_version, table.partition_columns, partition_columns)
    after = _with_schema(table, schema, partition_columns)
    names = {physical_name(field, after.column_mapping) for field in after.schema.fields}
    is_lost = not names.issuperset(path[0] for path in change.clustering_columns)
    if is_lost or (partition_columns and is_supported(table.protocol, TableFeature.CLUSTERING)):
        problem = "clustering columns of the table must be kept, and cannot be partition columns"
        raise InvalidArgumentError(argument="overwrite_schema", problem=problem)
    return replace(change, after=after)


def with_merged_schema(
    change: DefinitionChange, rows: StructType, *, path: str
) -> DefinitionChange:
    """Return the change with the columns that only the rows have and, if enabled, wider types."""
    table = change.after
    check_columns(rows, any_names=table.is_mapped)
    schema = merged_schema(table.schema, rows)
    if is_type_widening_enabled(table.protocol, table.properties):
        wider = merged_schema(table.schema, rows, widening=True)
        _check_widened(table, schema, wider, path)
        schema = wider
    return replace(change, after=_with_schema(table, schema, table.partition_columns))


def _check_widened(
    table: TableConfiguration, schema: StructType, wider: StructType, path: str
) -> None:
    """Refuse to widen columns used in expressions, identity columns and FLOAT partition columns.

    The value of an expression could change for old rows; identity columns are LONG; the texts of
    FLOAT partition values lack the digits that DOUBLE needs.

    References
    ----------
    PROTOCOL.md#type-widening
    """
    widened = [(a, b) for a, b in zip(schema, wider, strict=True) if a.dataType != b.dataType]
    if not widened:
        return
    rules = row_rules(table.schema, table.protocol, table.properties, path=path)
    constraints = {each.name: each.expression for each in rules.constraints}
    for old, new in widened:
        name = old.name
        if name in table.partition_columns and isinstance(old.dataType, FloatType):
            raise DeltaError.of(
                "DELTA_WRITE_NOT_IMPLEMENTED",
                path=path,
                missing=(f"changing partition column {name} to DOUBLE",),
            )
        if name in rules.identities:
            missing = (f"widening the type of identity column {name}",)
            raise DeltaError.of("DELTA_WRITE_NOT_IMPLEMENTED", path=path, missing=missing)
        if users := _expressions_with(name, constraints):
            raise DeltaError.of(
                "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH",
                column=name,
                column_type=old.dataType.simpleString(),
                data_type=new.dataType.simpleString(),
                constraints=users,
            )
        if users := _expressions_with(name, rules.generated):
            raise DeltaError.of(
                "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH",
                column=name,
                column_type=old.dataType.simpleString(),
                data_type=new.dataType.simpleString(),
                generated_columns=users,
            )


def _expressions_with(column: str, expressions: Mapping[str, str]) -> str:
    """Return a line for each expression that has the name of a column, after its own name."""
    word = re.compile(rf"(?<!\w){re.escape(name_key(column.replace('`', '``')))}(?!\w)")
    return "\n".join(
        f"{name} -> {text}" for name, text in expressions.items() if word.search(name_key(text))
    )


def _with_schema(
    table: TableConfiguration, schema: StructType, partition_columns: tuple[str, ...]
) -> TableConfiguration:
    after = with_schema(table, schema, partition_columns=partition_columns)
    is_same = after.schema.json() == table.schema.json()
    return table if is_same and partition_columns == table.partition_columns else after
