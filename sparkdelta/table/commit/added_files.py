"""Added files of a small winning commit, compared with predicates by statistics.

References
----------
PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, DataSkipping
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.table.commit.conflict_rules import WinningCommit

_ADDS = pa.schema(
    [
        ("path", pa.string()),
        ("partitionValues", pa.map_(pa.string(), pa.string())),
        ("stats", pa.string()),
    ]
)


def files_that_may_match(
    winner: WinningCommit, *, spark: SparkSession, skipping: Sequence[DataSkipping]
) -> tuple[AddFile, ...]:
    """The added files that may hold a row for which a predicate is true."""
    if not winner.adds or not skipping:
        return ()
    adds = [
        {"path": a.path, "partitionValues": [*a.partition_values.items()], "stats": a.stats}
        for a in winner.adds
    ]
    frame = arrow_frame(spark, pa.Table.from_pylist(adds, _ADDS))
    kept = [each.keep(frame, NOTHING_STORED).select("path") for each in skipping]
    rows = read_rows(
        reduce(DataFrame.unionAll, kept),
        what="added files that may match what was read",
        bound=len(kept) * len(adds),
        version=winner.version,
    )
    paths = {row["path"] for row in rows}
    return tuple(add for add in winner.adds if add.path in paths)
