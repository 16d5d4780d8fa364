"""Assignment of fresh row ids to new files, for large commits.

`base.protocol.row_ids` implements the same rules in Python for small commits;
`tests/table/commit/test_row_id_frames.py` compares the two.

References
----------
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.schema.sql_text import from_json_text
from sparkdelta.base.spark.row_groups import grouped

GROUPS = 1_000
"""The number of groups into which files are divided, by a hash of their paths."""

GROUP, FIRST_ROW_ID = "group", "firstRowId"
FIRST_ROW_IDS = StructType([StructField(GROUP, LongType()), StructField(FIRST_ROW_ID, LongType())])

_STATS = StructType([StructField("numRecords", LongType())])


def new_row_totals(actions: DataFrame, *, groups: int = GROUPS) -> DataFrame:
    """Return the number of rows that need row ids, per group of files.

    Parameters
    ----------
    actions
        add STRUCT, remove STRUCT, cdc STRUCT, see `conformed_actions`.

    Returns
    -------
    DataFrame
        group LONG, num_rows LONG, uncounted STRING (the path of a new file without `numRecords`,
        null if there is none).
    """
    return grouped(
        actions.filter(_is_new()),
        [_group(groups).alias(GROUP)],
        F.coalesce(F.sum(_num_records()), F.lit(0)).alias("num_rows"),
        F.min(F.when(_num_records().isNull(), F.col("add.path"))).alias("uncounted"),
    )


def with_row_ids(
    actions: DataFrame, first_row_ids: DataFrame, *, version: Version, groups: int = GROUPS
) -> DataFrame:
    """Return the actions with row ids and the commit version in adds that have no row ids.

    Within a group, row ids are assigned in the order of paths.

    Parameters
    ----------
    actions
        add STRUCT, remove STRUCT, cdc STRUCT, see `conformed_actions`; no two adds of
        the same file.
    first_row_ids
        The columns of `FIRST_ROW_IDS`, one row per group of `new_row_totals`.
    version
        The version of the commit.
    """
    grouped = actions.withColumn(GROUP, _group(groups))
    earlier = Window.partitionBy(GROUP).orderBy("add.path").rowsBetween(
        Window.unboundedPreceding, -1
    )  # fmt: skip
    rows_before = F.sum(F.when(_is_new(), _num_records())).over(earlier)
    numbered = (
        F.col("add")
        .withField("baseRowId", F.col(FIRST_ROW_ID) + F.coalesce(rows_before, F.lit(0)))
        .withField("defaultRowCommitVersion", F.lit(version).cast("long"))
    )
    return grouped.join(F.broadcast(first_row_ids), GROUP, "left").select(
        F.when(_is_new(), numbered).otherwise(F.col("add")).alias("add"), "remove", "cdc"
    )


def _is_new() -> Column:
    return F.expr("add.path IS NOT NULL AND add.baseRowId IS NULL")


def _num_records() -> Column:
    """Return the number of rows of a file; null if its statistics have none, or a negative one."""
    count = F.expr(f"{from_json_text('add.stats', _STATS)}.numRecords")
    return F.when(count >= 0, count)


def _group(groups: int) -> Column:
    return F.expr(f"pmod(xxhash64(coalesce(add.path, remove.path, cdc.path)), {groups}L)")
