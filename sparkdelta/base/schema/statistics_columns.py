"""Selection of the columns with statistics in new files.

References
----------
PROTOCOL.md#per-file-statistics, PROTOCOL.md#field-path
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql.types import NullType, StructType

from sparkdelta.base.protocol.column_lists import STATISTICS_COLUMNS, column_list
from sparkdelta.base.protocol.column_names import ColumnPath, name_key
from sparkdelta.base.protocol.table_properties import num_indexed_columns
from sparkdelta.base.schema.spatial_types import UNORDERED_TYPES
from sparkdelta.base.schema.statistics_schema import leaves
from sparkdelta.base.schema.table_schema import known_path
from sparkdelta.exceptions import ColumnNotFoundError

DEFAULT_PREFIX_LENGTH = 32


def statistics_columns(
    schema: StructType,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
) -> tuple[ColumnPath, ...]:
    """Return the leaf data columns with statistics.

    `delta.dataSkippingStatsColumns` names them; else they are the first
    `delta.dataSkippingNumIndexedCols`.
    """
    partitions = {name_key(name) for name in partition_columns}
    data = StructType([field for field in schema.fields if name_key(field.name) not in partitions])
    paths = [
        path for path, kind in leaves(data) if not isinstance(kind, (NullType, *UNORDERED_TYPES))
    ]
    named = configuration.get(STATISTICS_COLUMNS)
    if named is not None:
        wanted = [_key(path) for path in column_list(STATISTICS_COLUMNS, named)]
        return tuple(path for path in paths if any(_key(path)[: len(w)] == w for w in wanted))
    count = num_indexed_columns(configuration)
    return tuple(paths if count < 0 else paths[:count])


def check_statistics_columns(schema: StructType, configuration: Mapping[str, str]) -> None:
    """Raise if `delta.dataSkippingStatsColumns` names a column that is not in the schema."""
    named = configuration.get(STATISTICS_COLUMNS)
    for path in [] if named is None else column_list(STATISTICS_COLUMNS, named):
        found_column(schema, path)


def string_prefix_length(configuration: Mapping[str, str]) -> int:
    """Return the number of characters that min/max values of strings are truncated to."""
    text = configuration.get("delta.dataSkippingStringPrefixLength", "")
    return int(text) if text.isdecimal() else DEFAULT_PREFIX_LENGTH


def found_column(schema: StructType, path: ColumnPath) -> ColumnPath:
    """Return the path spelled as in the schema, which it matches case-insensitively."""
    found = known_path(schema, path)
    if len(found) < len(path):
        raise ColumnNotFoundError(column=".".join(path), available=schema.names)
    return found


def _key(path: ColumnPath) -> ColumnPath:
    return tuple(name_key(name) for name in path)
