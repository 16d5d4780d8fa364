"""Totals of the files of a version or a commit, for version checksums.

`table.commit.checksum_step_rules` implements the same rules in Python for small commits;
`tests/table/checksum/test_version_checksum_contracts.py` compares the two.

References
----------
PROTOCOL.md#version-checksum-file-schema, PROTOCOL.md#actions
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.base.protocol.file_totals import DELETED_BOUNDARIES
from sparkdelta.base.schema.file_key_frames import canonical_path, deletion_vector_id
from sparkdelta.base.spark.row_groups import grouped

IS_PLAIN = "is_plain"
_SIGN, _PATH, _DV = "sign", "_path", "_dv"


def file_bins(files: DataFrame, *, size_boundaries: Sequence[int]) -> DataFrame:
    """Count live files by the bins of both histograms, in one aggregation.

    Returns
    -------
    DataFrame
        One row per pair of bins (see `protocol.file_totals.FileBin`): size_bin INT,
        deleted_bin INT, files LONG, size_bytes LONG, deletion_vectors LONG, deleted_records LONG.
    """
    return _binned(files.select("size", "deletionVector", F.lit(1).alias(_SIGN)), size_boundaries)


def changed_bins(
    actions: DataFrame, *, table_root: str, size_boundaries: Sequence[int]
) -> DataFrame:
    """Return the changes that one commit makes to `file_bins`.

    The changes are exact (`is_plain`) if every remove has a size and every path has either one
    action, or one remove and one add with different deletion vectors.

    Parameters
    ----------
    actions
        add STRUCT, remove STRUCT: the actions of one commit, in one partition.

    Returns
    -------
    DataFrame
        The columns of `file_bins` and is_plain BOOLEAN.
    """
    path = canonical_path("coalesce(add.path, remove.path)", table_root=table_root)
    vector = "coalesce(add.deletionVector, remove.deletionVector)"
    of_path = Window.partitionBy(_PATH)
    is_single = F.count("*").over(of_path) == 1
    is_replaced = (
        (F.count("*").over(of_path) == 2)
        & (F.sum(_SIGN).over(of_path) == 0)
        & (F.min(_DV).over(of_path) != F.max(_DV).over(of_path))
    )
    signed = (
        actions.select(
            F.expr(path).alias(_PATH),
            F.expr(deletion_vector_id(vector)).alias(_DV),
            F.expr(vector).alias("deletionVector"),
            F.coalesce("add.size", "remove.size").alias("size"),
            F.when(F.col("add.path").isNotNull(), 1).otherwise(-1).alias(_SIGN),
        )
        .filter(F.col(_PATH).isNotNull())
        .select("size", "deletionVector", _SIGN, (is_single | is_replaced).alias(IS_PLAIN))
    )
    has_size = F.col("size").isNotNull()
    return _binned(signed, size_boundaries, F.bool_and(F.col(IS_PLAIN) & has_size).alias(IS_PLAIN))


def _binned(files: DataFrame, size_boundaries: Sequence[int], *aggregates: Column) -> DataFrame:
    deleted = F.coalesce("deletionVector.cardinality", F.lit(0).cast("long"))
    sign = F.col(_SIGN)
    bins = [
        F.expr(_bin("size", size_boundaries)).alias("size_bin"),
        F.expr(_bin("deleted", DELETED_BOUNDARIES)).alias("deleted_bin"),
    ]
    has_vector = F.col("deletionVector.storageType").isNotNull()
    return grouped(
        files.withColumn("deleted", deleted),
        bins,
        F.sum(sign).alias("files"),
        F.sum(sign * F.coalesce("size", F.lit(0))).alias("size_bytes"),
        F.sum(F.when(has_vector, sign).otherwise(0)).alias("deletion_vectors"),
        F.sum(sign * F.col("deleted")).alias("deleted_records"),
        *aggregates,
    )


def _bin(column: str, boundaries: Sequence[int], first: int = 0) -> str:
    """Return SQL for the index of the last boundary not greater than a number, by bisection."""
    if len(boundaries) == 1:
        return str(first)
    middle = len(boundaries) // 2
    below = _bin(column, boundaries[:middle], first)
    above = _bin(column, boundaries[middle:], first + middle)
    return f"IF(coalesce({column}, 0) < {boundaries[middle]}L, {below}, {above})"


def wire_text(action: StructType) -> Column:
    """Return the JSON (STRING) of an action in the log, from a row with the action's fields.

    Null fields are omitted; null partition values are kept.
    """
    return F.to_json(F.struct(*action.names), {"ignoreNullFields": "true"})
