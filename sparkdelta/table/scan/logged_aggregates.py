"""Aggregates over all rows of a table that the log knows: ``count(*)``, ``min`` and ``max``.

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
from pyspark.sql import DataFrame
from pyspark.sql.types import ByteType, DateType, IntegerType, LongType, ShortType

from sparkdelta.base.parquet.parquet_options import QueryId
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.aggregates import Aggregate
from sparkdelta.base.schema.checkpoint_schema import PARTITION_VALUES_PARSED, STATS_PARSED
from sparkdelta.base.schema.column_mapping import physical_name
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_table
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import LogFileNotFoundError, StorageError
from sparkdelta.table.log.state import NUM_RECORDS
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.deferred_scan import FollowingFiles, LateFiles
from sparkdelta.table.scan.live_files import LiveFiles, has_vectors

_EXACT_TYPES = (ByteType, ShortType, IntegerType, LongType, DateType)
_GREGORIAN = "DATE '1582-10-15'"
"""The first day from which on all calendars of writers agree."""

_NUM_ROWS = "__sparkdelta_num_rows"
_OF_FILES = ["num_files", "size_bytes", "num_unknown"]


def count_by_log(rows: DataFrame) -> int | None:
    """Return the number of rows, if they are all rows of a table whose log knows it."""
    late_scans = engine_of(rows.sparkSession).late_scans
    scan = None if late_scans is None else late_scans.scan_of_rows(rows)
    counted = None if scan is None else _answer(scan, [Aggregate("count")], lambda: None)
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
    scan, aggregates = found

    def answered(query: QueryId) -> DataFrame | None:
        answer = _answer(scan, aggregates, query)
        return None if answer is None else arrow_frame(scan.listing, answer)

    if _answer(scan, aggregates, lambda: None) is None:
        return rows
    return late_scans.rows_when_planned(rows, answered, scan.listing)


def _answer(
    scan: LateFiles | FollowingFiles, aggregates: Sequence[Aggregate], query: QueryId
) -> pa.Table | None:
    """Return a row of the aggregates of the version that a query reads; None if the log does not
    know them.
    """
    live = scan.at(query).live
    log, key = live.state.log, ("aggregates", *aggregates)
    totals = log.file_lists.find(key)
    if totals is None:
        wanted = [_Total.of(each, live.state.configuration) for each in aggregates]
        known = [total for total in wanted if total is not None]
        if len(known) < len(wanted):
            return None
        typed = any(each.column is not None for each in aggregates)
        try:
            with jobs_of(log.table_root, log.segment.version):
                totals = read_table(
                    _totals(live, known, typed=typed),
                    what="aggregates of a table",
                    bound=1,
                    version=log.segment.version,
                )
        except LogFileNotFoundError:
            raise
        except StorageError:  # a read of the rows may do without the checkpoint
            return None
        [row] = totals.select(_OF_FILES).to_pylist()
        live.check_totals(row["num_files"], row["size_bytes"])
        log.file_lists.keep(key, totals)
    is_known = totals["num_unknown"][0].as_py() == 0
    return totals.drop_columns(_OF_FILES) if is_known else None


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
            return cls(f"coalesce(sum({_NUM_ROWS}), 0)")
        fields = {name_key(each.name): each for each in configuration.schema}
        field = fields.get(name_key(aggregate.column))
        if field is None or not isinstance(field.dataType, _EXACT_TYPES):
            return None
        if field in configuration.partition_fields:
            return cls(_of_rows(aggregate, f"{PARTITION_VALUES_PARSED}.{quoted(field.name)}"))
        column = quoted(physical_name(field, configuration.column_mapping))
        bound = f"{STATS_PARSED}.{aggregate.function}Values.{column}"
        is_exact = f"{bound} IS NOT NULL"
        if isinstance(field.dataType, DateType):
            is_exact = f"{bound} >= {_GREGORIAN}"
        is_null = f"{bound} IS NULL AND {STATS_PARSED}.nullCount.{column} = {NUM_RECORDS}"
        is_tight = f"coalesce({STATS_PARSED}.tightBounds, TRUE) AND {_NUM_ROWS} = {NUM_RECORDS}"
        return cls(_of_rows(aggregate, bound), f"{is_tight} AND ({is_exact} OR {is_null})")


def _of_rows(aggregate: Aggregate, value: str) -> str:
    """Return SQL of ``min`` or ``max`` of a value of the files that have rows."""
    return f"{aggregate.function}(CASE WHEN {_NUM_ROWS} > 0 THEN {value} END)"


def _totals(live: LiveFiles, totals: Sequence[_Total], *, typed: bool) -> DataFrame:
    """Return one row: the totals, then `_OF_FILES`: the number of files, their size, and the number
    of files for which the log does not know all values.

    Parameters
    ----------
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
    return files.selectExpr("*", f"{num_rows} AS {_NUM_ROWS}").selectExpr(
        *(f"{total.value} AS a{number}" for number, total in enumerate(totals)),
        "count(*) AS num_files",
        "coalesce(sum(size), 0) AS size_bytes",
        f"count_if(NOT coalesce({_NUM_ROWS} = 0 OR ({_NUM_ROWS} > 0 AND {known}), FALSE)) "
        "AS num_unknown",
    )
