"""Aggregates over the rows of a table that the log knows: ``count``, ``min`` and ``max``, also of
groups with the same partition values.

The log has the number of rows of each file, and how many its deletion vector deletes. Tight bounds
are values of their file. Only bounds of whole numbers and dates are used: a text may be cut off, a
fraction rounded, and NaN left out.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
)

from sparkdelta.base.parquet.parquet_options import QueryId
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.aggregates import Aggregate, AggregateQuery
from sparkdelta.base.schema.checkpoint_schema import PARTITION_VALUES_PARSED, STATS_PARSED
from sparkdelta.base.schema.column_mapping import physical_name
from sparkdelta.base.schema.row_checks import CHAR_OR_VARCHAR
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DriverReadTooLargeError, LogFileNotFoundError, StorageError
from sparkdelta.table.log.state import NUM_RECORDS
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.live_files import LiveFiles, has_vectors

_EXACT_TYPES = (ByteType, ShortType, IntegerType, LongType, DateType)
_MAX_GROUPS = 10_000
"""The most groups that the driver holds."""

_GREGORIAN = "DATE '1582-10-15'"
"""The first day from which on all calendars of writers agree."""

_NUM_ROWS = "__sparkdelta_num_rows"
_NUM_ROWS_OF_FILES = f"coalesce(sum({_NUM_ROWS}), 0)"
_OF_FILES = ["num_rows", "num_files", "size_bytes", "num_unknown"]
_COUNT = AggregateQuery((Aggregate("count"),))


def count_by_log(rows: DataFrame) -> int | None:
    """Return the number of rows, if they are all rows of a table whose log knows it."""
    scan = engine_of(rows.sparkSession).scan_of_rows(rows)
    counted = None if scan is None else _answer(scan.live_at(lambda: None), _COUNT)
    return None if counted is None else int(counted[0][0].as_py())


def aggregated_by_log(rows: DataFrame) -> DataFrame:
    """Return the result of a query, without reading data files if it is the aggregates of a table
    whose log knows them.

    The log is read now, and again when a query on the result is planned, which reads data files if
    the log does not know the aggregates of a later version.
    """
    late_scans = engine_of(rows.sparkSession).late_scans
    found = None if late_scans is None else late_scans.aggregates_of_scan(rows)
    if late_scans is None or found is None:
        return rows
    scan = found.scan

    def answered(query: QueryId) -> DataFrame | None:
        answer = _answer(scan.live_at(query), found.query)
        return None if answer is None else arrow_frame(scan.listing, answer)

    if _answer(scan.live_at(lambda: None), found.query) is None:
        return rows
    return late_scans.rows_when_planned(rows, found, answered, scan.listing)


def _answer(live: LiveFiles, wanted: AggregateQuery) -> pa.Table | None:
    """Return the aggregates of a version; None if the log does not know them, or if there are too
    many groups.
    """
    log, key = live.state.log, ("aggregates", wanted)
    totals = log.file_lists.find(key)
    if totals is None:
        found = [_Total.of(each, live.state.configuration) for each in wanted.aggregates]
        groups = [_partition_value(name, live.state.configuration) for name in wanted.groups]
        known = [total for total in found if total is not None]
        values = [value for value in groups if value is not None]
        if len(known) < len(found) or len(values) < len(groups):
            return None
        typed = any(each.column is not None for each in wanted.aggregates) or bool(groups)
        try:
            with jobs_of(log.table_root, log.segment.version):
                totals = read_table(
                    _totals(live, known, values, typed=typed),
                    what="aggregates of a table",
                    bound=_MAX_GROUPS,
                    version=log.segment.version,
                )
        except LogFileNotFoundError:
            raise
        except (DriverReadTooLargeError, StorageError):
            return None  # a read of the rows may do without the checkpoint
        live.check_totals(_sum(totals["num_files"]), _sum(totals["size_bytes"]))
        log.file_lists.keep(key, totals)
    if _sum(totals["num_unknown"]):
        return None
    if wanted.groups:
        totals = totals.filter(pc.greater(totals["num_rows"], 0))
    return totals.drop_columns(_OF_FILES)


@dataclass(frozen=True, slots=True)
class _Total:
    """An aggregate as SQL over the rows of `TableState.adds` with `_NUM_ROWS`.

    Attributes
    ----------
    is_known
        The condition that the log knows the value of a file that has rows.
    """

    value: str
    is_known: str = "TRUE"

    @classmethod
    def of(cls, aggregate: Aggregate, configuration: TableConfiguration) -> _Total | None:
        """Return the total of an aggregate; None if the log has no exact values for it."""
        if aggregate.column is None:
            return cls(_NUM_ROWS_OF_FILES)
        value = _partition_value(aggregate.column, configuration)
        if value is not None:
            return cls(_of_partitions(aggregate, value))
        field = _field(aggregate.column, configuration)
        if field is None or not isinstance(field.dataType, _EXACT_TYPES):
            return None
        if aggregate.function not in ("min", "max") or field in configuration.partition_fields:
            return None
        column = quoted(physical_name(field, configuration.column_mapping))
        bound = f"{STATS_PARSED}.{aggregate.function}Values.{column}"
        is_exact = f"{bound} IS NOT NULL"
        if isinstance(field.dataType, DateType):
            is_exact = f"{bound} >= {_GREGORIAN}"
        is_null = f"{bound} IS NULL AND {STATS_PARSED}.nullCount.{column} = {NUM_RECORDS}"
        is_tight = f"coalesce({STATS_PARSED}.tightBounds, TRUE) AND {_NUM_ROWS} = {NUM_RECORDS}"
        of_files = f"{aggregate.function}({_if_rows(bound)})"
        return cls(of_files, f"{is_tight} AND ({is_exact} OR {is_null})")


def _field(name: str, configuration: TableConfiguration) -> StructField | None:
    fields = {name_key(each.name): each for each in configuration.schema}
    return fields.get(name_key(name))


def _partition_value(name: str, configuration: TableConfiguration) -> str | None:
    """Return SQL of the value of a partition column in a file; None for other columns, and for
    types whose equal values may look different.
    """
    field = _field(name, configuration)
    if field is None or field not in configuration.partition_fields:
        return None
    is_text = field.dataType == StringType() and CHAR_OR_VARCHAR not in field.metadata
    is_exact = is_text or isinstance(field.dataType, (*_EXACT_TYPES, BooleanType))
    return f"{PARTITION_VALUES_PARSED}.{quoted(field.name)}" if is_exact else None


def _of_partitions(aggregate: Aggregate, value: str) -> str:
    """Return SQL of an aggregate of a partition column."""
    if aggregate.function == "group":
        return f"first({value})"
    if aggregate.function == "count":
        return f"coalesce(sum(CASE WHEN {value} IS NOT NULL THEN {_NUM_ROWS} END), 0)"
    of_files = _if_rows(value)
    if aggregate.function == "count distinct":
        return f"count(DISTINCT {of_files})"
    return f"{aggregate.function}({of_files})"


def _if_rows(value: str) -> str:
    """Return SQL of a value of a file; null if it has no rows."""
    return f"CASE WHEN {_NUM_ROWS} > 0 THEN {value} END"


def _sum(numbers: pa.ChunkedArray) -> int:
    return int(pc.sum(numbers).as_py() or 0)


def _totals(
    live: LiveFiles, totals: Sequence[_Total], groups: Sequence[str], *, typed: bool
) -> DataFrame:
    """Return a row for each group: the totals, then `_OF_FILES`: the numbers of rows and files,
    their size, and the number of files for which the log does not know all values.

    Parameters
    ----------
    groups
        SQL of the values by which files are grouped.
    typed
        True for more than the number of rows.
    """
    state, fields, num_rows = live.state, ["size"], NUM_RECORDS
    if has_vectors(state.configuration):
        fields.append("deletionVector")
        num_rows += " - if(deletionVector.storageType IS NULL, 0, deletionVector.cardinality)"
    if typed:
        fields += [STATS_PARSED, PARTITION_VALUES_PARSED, f"{STATS_PARSED}.{NUM_RECORDS}"]
        files = state.adds(with_json=False).selectExpr(*fields)
    else:
        files = state.scan_files(*fields)
    known = " AND ".join(dict.fromkeys(total.is_known for total in totals))
    is_known = f"{_NUM_ROWS} = 0 OR ({_NUM_ROWS} > 0 AND {known})"
    of_files = [
        *(f"{total.value} AS a{number}" for number, total in enumerate(totals)),
        f"{_NUM_ROWS_OF_FILES} AS num_rows",
        "count(*) AS num_files",
        "coalesce(sum(size), 0) AS size_bytes",
        f"count_if(NOT coalesce({is_known}, FALSE)) AS num_unknown",
    ]
    files = files.selectExpr("*", f"{num_rows} AS {_NUM_ROWS}")
    if not groups:
        return files.selectExpr(*of_files)
    keys = [f"g{number}" for number in range(len(groups))]
    keyed = files.selectExpr(
        "*", *(f"{value} AS {key}" for value, key in zip(groups, keys, strict=True))
    )
    return grouped(keyed, keys, *map(F.expr, of_files)).drop(*keys).limit(_MAX_GROUPS + 1)
