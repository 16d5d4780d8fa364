"""The pairs of a row of a table and a row of a MERGE's source that match it, and their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.local_data import empty_frame
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.exceptions import DriverReadTooLargeError
from sparkdelta.operations.merge.merge_sides import FILE, POSITION, SOURCE_ROW
from sparkdelta.table.snapshot.staging import Staging
from sparkdelta.table.vectors.deletion_vector_writing_workers import FILE_KEY
from sparkdelta.table.vectors.row_position_frames import ROW_INDEX

CLAUSE = "__sparkdelta_clause"
"""The index of the clause that acts on a row; null if none does."""

MAX_READ_PAIRS = 500_000
"""Up to this many pairs come to the driver, which counts them, and writes deletion vectors of their
positions: executors would take longer to start."""

REPEATED = "repeated"
_PAIR_BYTES = 16  # of a pair in a staged file, at most, apart from its header and footer
_PART = "pairs"
_PAIRS = StructType(
    [
        StructField(FILE, LongType()),
        StructField(POSITION, LongType()),
        StructField(SOURCE_ROW, LongType()),
        StructField(CLAUSE, IntegerType()),
    ]
)


class RowCount(NamedTuple):
    """The number of rows that a clause acts on; if it is None, of those that match and stay as they
    are.

    Attributes
    ----------
    num_repeated
        Rows among them that match several rows of the source.
    """

    clause: int | None
    num_rows: int
    num_repeated: int = 0


@dataclass(frozen=True, slots=True)
class MergePairs:
    """The pairs of rows that match.

    Attributes
    ----------
    rows
        `FILE`, `POSITION`, `SOURCE_ROW` and `CLAUSE`.
    known
        The same on the driver; None if they are too many.
    """

    rows: DataFrame
    known: pa.Table | None

    @property
    def by_row(self) -> DataFrame:
        """The rows of the table that match, each once: `FILE`, `POSITION`, `CLAUSE`, one
        `SOURCE_ROW` of each, and `REPEATED`, true if there are more.
        """
        clause, row = quoted(CLAUSE), quoted(SOURCE_ROW)
        return grouped(
            self.rows,
            [FILE, POSITION],
            F.expr(f"max({clause}) AS {clause}"),
            F.expr(f"min({row}) AS {row}"),
            F.expr(f"count(1) > 1 AS {REPEATED}"),
        )

    @property
    def known_counts(self) -> list[RowCount]:
        """The rows of the table by clause."""
        assert self.known is not None
        by_row = self.known.group_by([FILE, POSITION]).aggregate(
            [(CLAUSE, "max"), ([], "count_all")]
        )
        is_repeated = pc.greater(by_row["count_all"], 1).cast(pa.int64())
        rows = pa.table({CLAUSE: by_row[f"{CLAUSE}_max"], REPEATED: is_repeated})
        counts = rows.group_by(CLAUSE).aggregate([([], "count_all"), (REPEATED, "sum")])
        ordered = counts.select([CLAUSE, "count_all", f"{REPEATED}_sum"])
        return [RowCount(*row.values()) for row in ordered.to_pylist()]

    @property
    def num_source_rows(self) -> int:
        """The rows of the source that match any of the table."""
        assert self.known is not None
        return int(pc.count_distinct(self.known[SOURCE_ROW]).as_py())

    @property
    def known_positions(self) -> pa.Table | None:
        """file_key LONG and row_index LONG of the rows of the table that a clause acts on; they may
        repeat.
        """
        if self.known is None:
            return None
        acted = self.known.filter(self.known[CLAUSE].is_valid())
        return acted.select([FILE, POSITION]).rename_columns([FILE_KEY, ROW_INDEX])


def stage_pairs(pairs: DataFrame, stage: Staging) -> MergePairs:
    """Compute the pairs once, and stage them.

    Parameters
    ----------
    pairs
        As `MergePairs.rows`.
    """
    staged, known = stage.stage_rows(pairs, _PART, _PAIRS), None
    if stage.size_bytes(_PART) <= MAX_READ_PAIRS * _PAIR_BYTES:
        try:
            known = stage.read_table(_PART, what="pairs of a merge", bound=MAX_READ_PAIRS)
        except DriverReadTooLargeError:
            known = None
    return MergePairs(staged, known)


def no_pairs(stage: Staging) -> MergePairs:
    """Return the pairs of a merge in which no rows match."""
    fields = [(FILE, pa.int64()), (POSITION, pa.int64()), (SOURCE_ROW, pa.int64())]
    known = pa.schema([*fields, (CLAUSE, pa.int32())]).empty_table()
    return MergePairs(empty_frame(stage.spark, _PAIRS), known)
