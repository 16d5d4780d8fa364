"""The settings of Spark that rows and data files of a write depend on.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#check-constraints, PROTOCOL.md#generated-columns
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    MapType,
    StructType,
    TimestampType,
    UserDefinedType,
)

from sparkdelta.base.parquet.parquet_options import (
    CALENDAR_SETTINGS,
    TIMESTAMP_SETTINGS,
    VARIANT_SETTINGS,
    WRITE_SETTINGS,
)
from sparkdelta.base.schema.table_constraints import row_rules
from sparkdelta.base.spark.library_sessions import TABLE_SETTINGS, TIME_ZONE
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.layout import FIELD_ID_SETTING, write_settings

_FIELD_ID = "parquet.field.id"


def needed_settings(
    table: TableConfiguration,
    rows: Iterable[StructType] = (),
    *,
    path: str,
    has_expressions: bool = False,
    target_file_size: int | None = None,
) -> Mapping[str, str]:
    """Return the settings that can change the rows or files of a write, given the types of the
    rows, the table and its rules.

    Parameters
    ----------
    rows
        The schemas of the rows that are converted to the types of the table's.
    has_expressions
        True if values of any type are converted, which expressions of the user compute.
    """
    schemas = (table.schema, *rows)
    types = {type(found) for schema in schemas for found in _types(schema)}
    rules = row_rules(table.schema, table.protocol, table.properties, path=path)
    has_expressions |= bool(rules.constraints or rules.defaults or rules.generated)
    settings = {
        **TABLE_SETTINGS,
        **WRITE_SETTINGS,
        **write_settings(table, target_file_size),
    }
    unused: set[str] = set()
    if not table.is_mapped and not any(_FIELD_ID in schema.json() for schema in schemas):
        unused.add(FIELD_ID_SETTING)
    if not has_expressions and TimestampType not in types:
        unused.add(TIME_ZONE)
    if TimestampType not in types:
        unused |= TIMESTAMP_SETTINGS
    if types.isdisjoint((TimestampType, DateType)):
        unused |= CALENDAR_SETTINGS
    if all(found.__name__ != "VariantType" for found in types):
        unused |= VARIANT_SETTINGS
    return {name: value for name, value in settings.items() if name not in unused}


def _types(data_type: DataType) -> Iterator[DataType]:
    yield data_type
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            yield from _types(field.dataType)
    elif isinstance(data_type, ArrayType):
        yield from _types(data_type.elementType)
    elif isinstance(data_type, MapType):
        yield from _types(data_type.keyType)
        yield from _types(data_type.valueType)
    elif isinstance(data_type, UserDefinedType):
        yield from _types(data_type.sqlType())
