"""Positions of rows in data files, for deletion vectors.

References
----------
PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.table.vectors.deletion_vector_writing_workers import BITS, FILE_KEY, WORD

ROW_INDEX = "row_index"


def file_key(file: str) -> str:
    """Return SQL for a key (LONG) of a file, which is cheaper to group by than a path.

    Two files may have the same key, which is very unlikely. `file` is SQL of a STRING: an absolute
    path, as by `base.schema.file_key_frames.plain_path`.
    """
    return f"xxhash64({file})"


def position_words(positions: DataFrame) -> DataFrame:
    """Return positions as words of 64 rows: bit i of word w is row 64 w + i of the file.

    `positions` has file_key LONG, row_index LONG; rows may repeat.

    Returns
    -------
    DataFrame
        file_key LONG, word LONG, bits LONG; one row per word that has a row.
    """
    # Spark aggregates LONGs by hash; its bitmap_construct_agg would sort the rows first.
    bit = F.expr(f"shiftleft(1L, CAST({ROW_INDEX} & 63 AS int))")
    word = F.shiftright(ROW_INDEX, 6).alias(WORD)
    return grouped(positions, [F.col(FILE_KEY), word], F.bit_or(bit).alias(BITS))
