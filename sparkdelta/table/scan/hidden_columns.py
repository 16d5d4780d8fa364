"""The columns on which Spark's Parquet reader must not filter the row groups of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DateType, DecimalType, StructField, StructType, TimestampType

from sparkdelta.base.parquet.row_group_workers import Bound
from sparkdelta.base.predicates.calendar_gap_rules import FIRST_DAY, LAST_DAY
from sparkdelta.base.predicates.predicate_rules import Predicate, without_not
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.schema.column_mapping import physical_path
from sparkdelta.base.schema.type_widening import TYPE_CHANGES
from sparkdelta.base.skipping.row_group_bounds import row_group_bounds
from sparkdelta.table.log.log_reader import LogReader
from sparkdelta.table.log.table_configuration import TableConfiguration

MAX_SEARCHED_BYTES = 256 * 1024
"""Up to this many bytes of commits are searched for old dates, which takes less than a call of the
JVM."""

_ADD = r'(?i)"add"\s*:\s*\{'
_MODERN_YEAR = r"(?:1[6-9]|[2-9]\d)\d\d-"
_DAY = timedelta(days=1)  # a timestamp may be on the day before or after, by its time zone


def hidden_columns(
    configuration: TableConfiguration,
    log: LogReader | None,
    predicate: Predicate | None,
    *,
    is_deferred: bool = False,
) -> frozenset[ColumnPath]:
    """Return the columns whose comparisons Spark's Parquet reader may get wrong in a scan.

    DECIMAL: Spark cuts a constant to the digits of a file that was written before the column was
    widened. DATE and TIMESTAMP: see `base.predicates.calendar_gap_rules`. Only old dates are
    concerned, so a column stays visible where statistics or the scan's condition exclude them.

    Parameters
    ----------
    log
        The log that added the files of the scan; None if others did, too.
    predicate
        The condition of the scan. Its rows may be filtered further by unknown conditions.
    is_deferred
        True for a `DeferredScan`, which checks these conditions.
    """
    fields = dict(_fields(configuration.schema))
    widened = {
        path
        for path, field in fields.items()
        if isinstance(field.dataType, DecimalType) and TYPE_CHANGES in (field.metadata or {})
    }
    return frozenset(
        widened | _columns_with_old_days(configuration, log, predicate, is_deferred=is_deferred)
    )


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


def _columns_with_old_days(
    configuration: TableConfiguration,
    log: LogReader | None,
    predicate: Predicate | None,
    *,
    is_deferred: bool,
) -> set[ColumnPath]:
    """Return the columns that may have days of the gap, in the rows that a predicate selects."""
    days = columns_of_days(configuration)
    if not days:
        return set()
    lines = None if log is None or log.checkpoint is not None else log.commits.local_lines
    if lines is not None and lines.nbytes <= MAX_SEARCHED_BYTES:
        adds = lines["line"].filter(pc.match_substring_regex(lines["line"], _ADD))
        names = {
            path: physical_path(configuration.schema, path, configuration.column_mapping)[-1]
            for path in days
        }
        of_names = list(names.values())
        old = {
            path
            for path, name in names.items()
            if of_names.count(name) > 1 or not _are_modern(adds, name)
        }
    else:
        old = set() if is_deferred else set(days)
    if not old or predicate is None:
        return old
    partitions = frozenset(configuration.partition_columns)
    bounds = row_group_bounds(without_not(predicate), configuration.schema, partitions)
    return old - {bound.column for bound in bounds if _is_outside_gap(bound.lower, bound.upper)}


def _is_outside_gap(lower: Bound | None, upper: Bound | None) -> bool:
    is_after = isinstance(lower, date) and _day(lower) > LAST_DAY + _DAY
    return is_after or (isinstance(upper, date) and _day(upper) < FIRST_DAY - _DAY)


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _are_modern(adds: pa.ChunkedArray, name: str) -> bool:
    """Return True if each add action has a minimum and a maximum of a column, from 1600 on."""
    bound = rf'\\"{re.escape(name)}\\"\s*:\s*\\"'
    bounds = pc.count_substring_regex(adds, bound)
    modern = pc.count_substring_regex(adds, bound + _MODERN_YEAR)
    is_modern = pc.and_(pc.equal(bounds, modern), pc.greater_equal(modern, 2))
    return pc.all(is_modern, min_count=0).as_py() is True
