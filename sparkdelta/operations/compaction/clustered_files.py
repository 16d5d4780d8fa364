"""The files that a run of OPTIMIZE clusters: new files, and files of Z-cubes that are not full.

References
----------
PROTOCOL.md#clustered-table, PROTOCOL.md#writer-requirements-for-clustered-table
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.z_cubes import CLUSTERING_PROVIDER, ZCUBE_COLUMNS, ZCUBE_ID
from sparkdelta.base.schema.checkpoint_schema import STATS_PARSED
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.spark.driver import read_row
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.table.log.state import NUM_RECORDS
from sparkdelta.table.snapshot.snapshot import Snapshot

_CUBE, _IS_OTHER, _LIVE_BYTES = "__sparkdelta_cube", "__sparkdelta_other", "__sparkdelta_bytes"


@dataclass(frozen=True, slots=True)
class ClusteredFiles:
    """The files of a clustered table before a run.

    Attributes
    ----------
    num_cubes
        Z-cubes by the table's clustering columns, of `cube_files` files.
    other_files
        Files that are not clustered, or by other columns.
    """

    num_cubes: int
    cube_files: int
    cube_bytes: int
    other_files: int
    other_bytes: int


def files_to_cluster(
    snapshot: Snapshot, names: Sequence[str], *, min_cube_bytes: int, is_full: bool
) -> tuple[DataFrame | None, ClusteredFiles]:
    """Return the files to cluster; None if there is nothing to do.

    These are files of no Z-cube, and Z-cubes of less than `min_cube_bytes`. A single Z-cube is left
    alone.

    Parameters
    ----------
    names
        The clustering columns, as tags have them.
    is_full
        True for files that are clustered by other columns or by another engine, too.

    Returns
    -------
    tuple
        As `Snapshot.add_files` gives them; and what there is.
    """
    adds, columns = snapshot.add_files(), F.col("tags")[ZCUBE_COLUMNS]
    cube = F.when(columns.isNotNull(), F.col("tags")[ZCUBE_ID])
    listed = F.expr(f"from_json({text_literal(json.dumps(list(names)))}, 'ARRAY<STRING>')")
    has_others = cube.isNotNull() & ~F.from_json(columns, "ARRAY<STRING>").eqNullSafe(listed)
    is_foreign = F.coalesce(F.col("clusteringProvider") != CLUSTERING_PROVIDER, F.lit(False))
    num_records = F.col(STATS_PARSED)[NUM_RECORDS]
    gone = F.when(num_records > 0, F.col("deletionVector.cardinality") / num_records)
    described = adds.select(
        "*",
        cube.alias(_CUBE),
        (has_others | is_foreign).alias(_IS_OTHER),
        (F.col("size") * (1 - F.coalesce(gone, F.lit(0)))).alias(_LIVE_BYTES),
    )
    cubes = grouped(
        described,
        [_CUBE, _IS_OTHER],
        F.count("*").alias("files"),
        F.sum("size").alias("bytes"),
        (F.sum(_LIVE_BYTES) >= min_cube_bytes).alias("is_stable"),
    )
    own = F.col(_CUBE).isNotNull() & (F.lit(is_full) | ~F.col(_IS_OTHER))
    is_small = ~F.col(_IS_OTHER) & (F.col(_CUBE).isNull() | ~F.col("is_stable"))
    row = read_row(
        cubes.agg(
            F.count_if(own),
            *(
                F.coalesce(F.sum(F.when(of, F.col(total))), F.lit(0))
                for of in (own, ~own)
                for total in ("files", "bytes")
            ),
            F.count_if(is_small),
            F.count_if(is_small & F.col(_CUBE).isNull()),
            F.count_if(_IS_OTHER),
        ),
        what="totals of clustered files",
        version=snapshot.version,
    )
    before, (small, unclustered, others) = ClusteredFiles(*row[:5]), row[5:]
    takes_others = is_full and others > 0
    if not takes_others and not unclustered and small <= 1:
        return None, before
    stable = cubes.filter(F.col("is_stable") & ~F.col(_IS_OTHER)).select(_CUBE, "is_stable")
    chosen = described.join(F.broadcast(stable), _CUBE, "left").filter(
        F.when(F.col(_IS_OTHER), F.lit(takes_others)).otherwise(F.col("is_stable").isNull())
    )
    return chosen.select(*adds.columns), before
