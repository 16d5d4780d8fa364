"""Statistics of data files of a table, anew from their footers.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.base.parquet.legacy_calendar_workers import calendars
from sparkdelta.base.parquet.parquet_schema_workers import file_schema
from sparkdelta.base.protocol.exact_json import exact_text, parse_exact
from sparkdelta.base.storage.worker_files import StoredFiles
from sparkdelta.table.rows.footer_statistics_workers import file_statistics

RECOMPUTED = StructType([StructField("path", StringType()), StructField("stats", StringType())])

_KINDS = ("minValues", "maxValues", "nullCount")
_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsReader:
    """A reader of statistics from the footers of files.

    Attributes
    ----------
    files
        The access to files on workers.
    columns
        The physical paths of the columns whose statistics are read.
    keeps_others
        True if the statistics of other columns stay as they are, or else there are none.
    prefix_length
        The maximum length of string bounds, in characters.
    """

    files: StoredFiles
    columns: tuple[tuple[str, ...], ...]
    keeps_others: bool
    prefix_length: int

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Convert batches of path, file, stats and hasVector to `RECOMPUTED`."""
        with ThreadPoolExecutor(_THREADS) as threads:
            for batch in batches:
                stats = [*threads.map(self._statistics, batch.to_pylist())]
                columns = [batch.column("path"), pa.array(stats, pa.string())]
                yield pa.RecordBatch.from_arrays(columns, names=RECOMPUTED.names)

    def _statistics(self, row: Mapping[str, Any]) -> str:
        with self.files.open(row["file"]) as source:
            file = pq.ParquetFile(source)
            # Dates and timestamps of the hybrid calendar have other bounds than their values.
            columns = () if calendars(file.metadata.metadata).dates else self.columns
            found = file_statistics(file.metadata, file_schema(file), columns, self.prefix_length)
        new = parse_exact(found)
        if row["stats"] is not None and (self.keeps_others or columns != self.columns):
            old = parse_exact(row["stats"])
            for kind in _KINDS:
                new[kind] = _with_others(old.get(kind, {}), new[kind], columns)
        # The footer counts deleted rows, too.
        return exact_text({**new, "tightBounds": not row["hasVector"]})


def recomputed_statistics(files: DataFrame, reader: StatisticsReader) -> DataFrame:
    """Read the statistics of files by workers.

    Parameters
    ----------
    files
        path STRING (as in the log), file STRING (absolute, decoded), stats STRING (the JSON that
        the log has), hasVector BOOLEAN (True with a deletion vector).

    Returns
    -------
    DataFrame
        path STRING, stats STRING.
    """
    return files.select("path", "file", "stats", "hasVector").mapInArrow(reader.read, RECOMPUTED)


def _with_others(
    old: dict[str, Any], new: dict[str, Any], columns: tuple[tuple[str, ...], ...]
) -> dict[str, Any]:
    """Return the new facts of columns, and the old ones of others."""
    facts = dict(old)
    for name in {path[0] for path in columns}:
        inner = tuple(path[1:] for path in columns if path[0] == name and len(path) > 1)
        found = new.get(name)
        if inner and isinstance(old.get(name), dict):
            found = _with_others(old[name], found or {}, inner)
        facts.pop(name, None)
        if found is not None:
            facts[name] = found
    return facts
