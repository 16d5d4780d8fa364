"""The types on which Spark's Parquet reader must not filter the rows of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DateType, DecimalType, StructField, StructType, TimestampType

from sparkdelta.base.parquet.parquet_options import UnpushedType
from sparkdelta.base.predicates.calendar_gap_rules import has_day_of_gap
from sparkdelta.base.predicates.predicate_rules import Predicate, columns, unusable_parts
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.column_mapping import physical_path
from sparkdelta.base.schema.type_widening import TYPE_CHANGES
from sparkdelta.table.log.configuration import TableConfiguration
from sparkdelta.table.log.log_reader import LogReader

MAX_SEARCHED_BYTES = 256 * 1024
"""Up to this many bytes of commits are searched for old dates, which takes less than a call of the
JVM."""

_ADD = r'(?i)"add"\s*:\s*\{'
_MODERN_YEAR = r"(?:1[6-9]|[2-9]\d)\d\d-"


def unpushed_types(
    configuration: TableConfiguration,
    log: LogReader | None,
    predicate: Predicate | None,
    *,
    is_late: bool = False,
) -> frozenset[UnpushedType]:
    """Return the types whose comparisons Spark's Parquet reader may get wrong in a scan.

    DECIMAL: Spark cuts a constant to the digits of a file that was written before the column was
    widened. DATE and TIMESTAMP: see `base.predicates.calendar_gap_rules`. Only old dates are
    concerned, so these types are pushed where statistics show that there are none.

    Parameters
    ----------
    log
        The log that added the files of the scan; None if others did, too.
    predicate
        The condition of the scan. Its rows may be filtered further by conditions that nobody knows
        yet.
    is_late
        True for a `DeferredScan`, which checks these conditions.
    """
    unpushed = set()
    for _, field in _fields(configuration.schema):
        if isinstance(field.dataType, DecimalType) and TYPE_CHANGES in (field.metadata or {}):
            unpushed.add(UnpushedType.DECIMAL)
    days = columns_of_days(configuration)
    if days and not _pushes_days(configuration, log, predicate, days, is_late=is_late):
        unpushed |= {UnpushedType.DATE, UnpushedType.TIMESTAMP}
    return frozenset(unpushed)


def columns_of_days(configuration: TableConfiguration) -> dict[ColumnPath, StructField]:
    """Return the DATE and TIMESTAMP columns of data files that Spark's Parquet reader filters."""
    partitions = configuration.partition_columns
    return {
        path: field
        for path, field in _fields(configuration.schema)
        if isinstance(field.dataType, DateType | TimestampType) and path[0] not in partitions
    }


def _fields(
    struct: StructType, parents: ColumnPath = ()
) -> Iterator[tuple[ColumnPath, StructField]]:
    """Yield the fields of a struct at every level, outside of arrays and maps."""
    for field in struct.fields:
        yield (*parents, field.name), field
        if isinstance(field.dataType, StructType):
            yield from _fields(field.dataType, (*parents, field.name))


def _pushes_days(
    configuration: TableConfiguration,
    log: LogReader | None,
    predicate: Predicate | None,
    days: dict[ColumnPath, StructField],
    *,
    is_late: bool,
) -> bool:
    if predicate is not None and _may_compare_with_gap(predicate, days):
        return False
    lines = None if log is None or log.checkpoint is not None else log.commits.local_lines
    if lines is not None and lines.nbytes <= MAX_SEARCHED_BYTES:
        adds = lines["line"].filter(pc.match_substring_regex(lines["line"], _ADD))
        names = [
            physical_path(configuration.schema, path, configuration.column_mapping)[-1]
            for path in days
        ]
        return len(set(names)) == len(names) and all(_are_modern(adds, name) for name in names)
    if is_late:
        return True
    # Without such a condition, to push these types would be of use to further conditions alone.
    return predicate is not None and not days.keys().isdisjoint(columns(predicate))


def _may_compare_with_gap(predicate: Predicate, days: dict[ColumnPath, StructField]) -> bool:
    unusable = [part.text.lower() for part in unusable_parts(predicate)]
    return has_day_of_gap(predicate) or any(
        path[-1].lower() in text for path in days for text in unusable
    )


def _are_modern(adds: pa.ChunkedArray, name: str) -> bool:
    """Return True if each add action has a minimum and a maximum of a column, from 1600 on."""
    bound = rf'\\"{re.escape(name)}\\"\s*:\s*\\"'
    bounds = pc.count_substring_regex(adds, bound)
    modern = pc.count_substring_regex(adds, bound + _MODERN_YEAR)
    is_modern = pc.and_(pc.equal(bounds, modern), pc.greater_equal(modern, 2))
    return pc.all(is_modern, min_count=0).as_py() is True
