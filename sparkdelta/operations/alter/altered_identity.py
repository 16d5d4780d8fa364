"""The statement that synchronizes an identity column with the values of the table.

References
----------
PROTOCOL.md#identity-columns
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import functions as F

from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.column_alterations import field_at, path_text, spelled_path
from sparkdelta.base.schema.table_constraints import Identity, row_rules, with_marks
from sparkdelta.base.schema.table_schema import parse_table_schema, quoted
from sparkdelta.base.spark.driver import read_row
from sparkdelta.exceptions import ColumnNotFoundError, DeltaError
from sparkdelta.operations.alter.altered_columns import shown_field
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.definition.alteration import Alteration, alteration
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot


def sync_identity(snapshot: Snapshot, path: ColumnPath) -> Alteration:
    """Return the alteration that moves an identity column's high-water mark past all values."""
    table = snapshot.configuration
    path = spelled_path(table.schema, path)
    field = field_at(table.schema, path)
    if field is None:
        raise ColumnNotFoundError(column=path_text(path), available=table.schema.names)
    rules = row_rules(table.schema, table.protocol, table.properties, path=snapshot.path)
    identity = rules.identities.get(field.name) if len(path) == 1 else None
    if identity is None:
        raise DeltaError.of(
            "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN", column=path_text(path)
        )
    name = quoted(field.name)
    last = F.max(name) if identity.step > 0 else F.min(name)
    rows = snapshot.scan(columns=[field.name]).to_df().agg(last)
    [value] = read_row(rows, what="last value of an identity column")
    mark = None if value is None else synced_mark(identity, value)
    change = DefinitionChange(table, table)
    if mark is not None:
        text = with_marks(table.metadata.schema_string or "", {field.name: mark})
        schema = parse_table_schema(text, path=snapshot.path)
        metadata = replace(table.metadata, schema_string=text)
        change = DefinitionChange(table, TableConfiguration.of(table.protocol, metadata, schema))
    shown = {"column": shown_field(path, field)}
    return alteration(change, "CHANGE COLUMN", shown, ReadSet(whole_table=True))


def synced_mark(identity: Identity, value: int) -> int | None:
    """Return the first value of an identity sequence at or after the last value of the rows.

    None if the present high-water mark is as far. Values before the start do not count, so that the
    start is not left out.

    Examples
    --------
    >>> synced_mark(Identity(10, 3, None, True), 14), synced_mark(Identity(10, 3, 19, True), 14)
    (16, None)
    >>> synced_mark(Identity(10, 3, None, True), 9), synced_mark(Identity(0, -2, -4, True), -7)
    (None, -8)
    """
    if (value - identity.start) * identity.step < 0:
        return None
    steps = -((identity.start - value) // identity.step)
    mark = identity.start + steps * identity.step
    return mark if identity.is_new(mark) else None
