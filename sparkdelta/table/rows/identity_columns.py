"""High-water marks of identity columns, from the statistics of the files that a write adds.

References
----------
PROTOCOL.md#identity-columns
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql.types import StructField

from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.column_mapping import physical_path
from sparkdelta.base.schema.declared_columns import IDENTITY_STEP
from sparkdelta.base.schema.table_constraints import HIGH_WATER_MARK, with_marks
from sparkdelta.base.schema.table_schema import parse_table_schema
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.column_binding import ColumnBinding
from sparkdelta.table.rows.new_files import NewFiles


def generated_identities(
    matched: ColumnBinding, table: TableConfiguration
) -> dict[str, ColumnPath]:
    """Return the physical paths of the identity columns with generated values, by name."""
    return {
        name: physical_path(table.schema, (name,), table.column_mapping)
        for name in matched.identities
    }


def with_used_identities(
    change: DefinitionChange, matched: ColumnBinding, files: NewFiles, *, path: str
) -> DefinitionChange:
    """Return the change with the last values of the files as high-water marks."""
    table = change.after
    marks = {}
    for name, (physical,) in generated_identities(matched, table).items():
        identity = matched.identities[name]
        last = files.last_value(physical, is_highest=identity.step > 0)
        if last is not None:
            # The files may have only older values, of rows that they copy, or given ones.
            if identity.is_new(last):
                marks[name] = last
        elif files.num_rows:
            problem = f"the files have no statistics for identity column {name}"
            raise DeltaError.of("DELTA_INVALID_COMMIT", path=path, problem=problem)
    if not marks:
        return change
    text = with_marks(table.metadata.schema_string or "", marks)
    metadata = replace(table.metadata, schema_string=text)
    schema = parse_table_schema(text, path=path)
    return replace(change, after=TableConfiguration.of(table.protocol, metadata, schema))


def identity_marks(before: TableConfiguration, earlier: TableConfiguration) -> dict[str, int]:
    """Return the high-water marks that are beyond the marks of an earlier state or another table.

    The keys are the names of the columns in the latter.
    """
    columns = {physical_path(before.schema, (f.name,), before.column_mapping): f
               for f in before.schema}  # fmt: skip
    marks = {}
    for column in earlier.schema:
        physical = physical_path(earlier.schema, (column.name,), earlier.column_mapping)
        last, own = _mark(columns.get(physical)), _mark(column)
        step = column.metadata.get(IDENTITY_STEP)
        if step is None or last is None:
            continue
        if own is None or (last - own) * step > 0:
            marks[column.name] = last
    return marks


def _mark(column: StructField | None) -> int | None:
    return None if column is None else column.metadata.get(HIGH_WATER_MARK)
