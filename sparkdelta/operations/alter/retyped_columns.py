"""Columns that get another type, of which existing rows can be read.

References
----------
PROTOCOL.md#type-widening, PROTOCOL.md#void-type
"""

from __future__ import annotations

from pyspark.sql.types import DataType, FloatType, NullType, StringType, StructField, StructType

from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.protocol_upgrades import IDENTITY_START
from sparkdelta.base.protocol.table_properties import is_type_widening_enabled
from sparkdelta.base.protocol.type_changes import is_supported_type_change
from sparkdelta.base.schema.column_alterations import (
    field_at,
    path_text,
    type_at,
    with_changed_column,
    with_wider_type,
)
from sparkdelta.base.schema.declared_columns import bounded_text
from sparkdelta.base.schema.row_checks import CHAR_OR_VARCHAR, is_longer_text
from sparkdelta.base.schema.written_schema import check_columns, clean_field
from sparkdelta.exceptions import UnsupportedColumnChangeError
from sparkdelta.table.definition.rule_expressions import check_unused
from sparkdelta.table.snapshot.snapshot import Snapshot


def retyped(
    snapshot: Snapshot, schema: StructType, path: ColumnPath, data_type: DataType
) -> StructType:
    """The schema with another type at a path, if rows of the table can be read as such.

    Raises
    ------
    UnsupportedColumnChangeError
        The type cannot become this one, or not in this table.
    ConstraintDependentColumnError, GeneratedDependentColumnError
        An expression of the table uses the column.
    """
    table, before, field = snapshot.configuration, type_at(schema, path), field_at(schema, path)
    stored = bounded_text(StructField("column", data_type))
    check_columns(StructType([stored]))
    metadata = {} if field is None else dict(field.metadata or {})

    def refused(problem: str) -> UnsupportedColumnChangeError:
        own = metadata.get(CHAR_OR_VARCHAR, before.simpleString())
        return UnsupportedColumnChangeError(
            column=path_text(path), before=own, after=data_type.simpleString(), problem=problem
        )

    def with_text(field: StructField) -> StructField:
        return _with_text_type(field, new)

    old, new = metadata.get(CHAR_OR_VARCHAR), stored.metadata.get(CHAR_OR_VARCHAR)
    if stored.dataType == before:
        if old == new:
            return schema
        if field is None or not is_longer_text(old, new):
            raise refused("texts can only become longer")
        return with_changed_column(schema, path, with_text)
    if isinstance(before, NullType | StringType):
        if isinstance(before, StringType):
            if not isinstance(stored.dataType, StringType) or new is not None:
                raise refused("texts can only become longer, or get another collation")
            # Expressions of the table would compare otherwise.
            check_unused(
                snapshot.log.spark, table, [path], path=snapshot.path, is_generated_too=True
            )
        schema = with_wider_type(schema, path, clean_field(stored).dataType, is_recorded=False)
        return schema if field is None else with_changed_column(schema, path, with_text)
    if not is_type_widening_enabled(table.protocol, table.properties):
        raise refused(
            "enable type widening first, set_properties({'delta.enableTypeWidening': 'true'})"
        )
    names = before.jsonValue(), stored.dataType.jsonValue()
    if not all(isinstance(n, str) for n in names) or not is_supported_type_change(*map(str, names)):
        raise refused("the type is not wider")
    if IDENTITY_START in metadata:
        raise refused("it is an identity column")
    if path[0] in table.partition_columns and isinstance(before, FloatType):
        raise refused("partition values of FLOAT are short of the digits that DOUBLE needs")
    check_unused(snapshot.log.spark, table, [path], path=snapshot.path, is_generated_too=True)
    return with_wider_type(schema, path, stored.dataType)


def _with_text_type(field: StructField, declared: str | None) -> StructField:
    metadata = {k: v for k, v in (field.metadata or {}).items() if k != CHAR_OR_VARCHAR}
    if declared is not None:
        metadata[CHAR_OR_VARCHAR] = declared
    return StructField(field.name, field.dataType, field.nullable, metadata)
