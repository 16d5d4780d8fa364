"""The table that rows are written into: a new one, or one that is there, and what changes of it.

References
----------
PROTOCOL.md#change-metadata, PROTOCOL.md#protocol-evolution
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

from pyspark.sql.types import StructField, StructType, TimestampNTZType

from sparkdelta.exceptions import (
    AppendOnlyTableError,
    InvalidArgumentError,
    MetadataMismatchError,
    TableNotFoundError,
    WriteNotImplementedError,
)
from sparkdelta.protocol.actions import Metadata, Protocol
from sparkdelta.protocol.isolation_levels import table_isolation_level
from sparkdelta.protocol.staged_commit import StagedActions
from sparkdelta.protocol.table_features import is_supported
from sparkdelta.protocol.table_properties import is_append_only
from sparkdelta.protocol.write_support import check_data_writable, new_protocol
from sparkdelta.schema.row_rules import Identity, RowRules, row_rules
from sparkdelta.schema.written_schema import (
    check_columns,
    check_partition_columns,
    matched_columns,
    merged_schema,
    new_table_schema,
    uses_type,
)
from sparkdelta.storage.log_store import LogStore
from sparkdelta.table.snapshot import Snapshot
from sparkdelta.table.write_options import WriteOptions


@dataclass(frozen=True, slots=True)
class Target:
    """The table that rows are written into, and what of it is new."""

    schema: StructType
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    columns: list[tuple[StructField, str | None]]
    staged: StagedActions = field(default_factory=StagedActions)
    rules: RowRules = field(default_factory=RowRules)

    @property
    def numbered(self) -> dict[str, Identity]:
        """The identity columns whose values are generated, as the rows have none."""
        names = [field.name for field, source in self.columns if source is None]
        return {
            name: self.rules.identities[name] for name in names if name in self.rules.identities
        }


def new_table(rows: StructType, options: WriteOptions, store: LogStore) -> Target:
    """The table that begins with these rows."""
    if options.replace_where is not None:
        raise TableNotFoundError(path=store.table_root)
    schema = new_table_schema(rows)
    partition_columns = check_partition_columns(schema, options.partition_by or ())
    features = {"timestampNtz"} if uses_type(schema, TimestampNTZType) else set()
    protocol: Protocol = new_protocol(options.properties, frozenset(features))
    table_isolation_level(options.properties)
    metadata = Metadata(
        id=str(uuid4()),
        schema_string=schema.json(),
        partition_columns=partition_columns,
        configuration=dict(options.properties),
        created_time=time.time_ns() // 1_000_000,
    )
    return Target(
        schema,
        partition_columns,
        options.properties,
        matched_columns(schema, rows, path=store.table_root),
        StagedActions(protocols=(protocol,), metadata=(metadata,)),
    )


def existing_table(rows: StructType, options: WriteOptions, snapshot: Snapshot) -> Target:
    """The table as it is, or as the rows change it."""
    schema, path = snapshot.schema, snapshot.path
    check_data_writable(snapshot.protocol, snapshot.properties, path=path)
    check_columns(schema)
    if options.mode == "overwrite" and is_append_only(snapshot.protocol, snapshot.properties):
        raise AppendOnlyTableError(path=path)
    own = tuple(f.name for f in snapshot.configuration.partition_fields)
    if options.partition_by is not None and [n.lower() for n in options.partition_by] != [
        name.lower() for name in own
    ]:
        problem = f"the table is partitioned by ({', '.join(own)}) and not as asked for"
        raise MetadataMismatchError(path=path, problem=problem)
    if options.properties:
        problem = "they are set when a table is made, and this one is there"
        raise InvalidArgumentError(argument="properties", problem=problem)
    staged = StagedActions()
    if options.merge_schema and (merged := merged_schema(schema, rows)) != schema:
        if uses_type(merged, TimestampNTZType) and not is_supported(
            snapshot.protocol, "timestampNtz"
        ):
            missing = ("a column of a type that needs another protocol (timestampNtz)",)
            raise WriteNotImplementedError(path=path, missing=missing)
        schema = merged
        staged = StagedActions(metadata=(replace(snapshot.metadata, schema_string=schema.json()),))
    matched = matched_columns(schema, rows, path=path)
    rules = row_rules(schema, snapshot.protocol, snapshot.properties, path=path)
    return Target(schema, own, snapshot.properties, matched, staged, rules)
