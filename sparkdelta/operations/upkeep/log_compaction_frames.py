"""Lines of a log compaction file, from the commits of its range.

References
----------
PROTOCOL.md#log-compaction-files, PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from sparkdelta.base.schema.action_schemas import DELETION_VECTOR
from sparkdelta.base.schema.file_key_frames import canonical_path
from sparkdelta.exceptions import MalformedLogFileError
from sparkdelta.table.listing.log_line_frames import parse_log_lines
from sparkdelta.table.log.reconciliation_frames import (
    keyed_actions,
    newest_actions,
    newest_file_actions,
)


def _with(*fields: StructField) -> StructType:
    return StructType(list(fields))


_PATH = StructField("path", StringType())
_FILE = _with(_PATH, StructField("deletionVector", DELETION_VECTOR))
_KEYS = _with(
    StructField("add", _FILE),
    StructField("remove", _FILE),
    StructField("metaData", _with(StructField("id", StringType()))),
    StructField("protocol", _with(StructField("minReaderVersion", IntegerType()))),
    StructField("txn", _with(StructField("appId", StringType()))),
    StructField("domainMetadata", _with(StructField("domain", StringType()))),
)
"""The fields that identify the subject of each action."""


def compacted_lines(lines: DataFrame, *, table_root: str, is_local: bool) -> DataFrame:
    """Return the lines with the newest actions of a range of commits (Action Reconciliation).

    The state before the range is unknown, so all removes, all transaction identifiers and every
    `domainMetadata` with `removed=true` are kept, regardless of their age. Actions that are not
    reconciled, such as commitInfo and cdc, are dropped. Lines are copied verbatim, with unknown
    fields.

    Parameters
    ----------
    lines
        version LONG, line STRING.
    is_local
        True if `lines` has a single partition.

    Returns
    -------
    DataFrame
        line STRING, unordered. A line with more than one action fails the query.
    """
    parsed = parse_log_lines(lines, actions=_KEYS, keep_line=True)
    # Every other action is superseded by the next one with its key, like a remove.
    is_add = F.col("add.path").isNotNull()
    line = _checked_line().alias("line")
    other = F.struct(F.col("remove.path"), F.col("remove.deletionVector"), line)
    carried = parsed.select(
        "*",
        F.when(is_add, F.struct("add.path", "add.deletionVector", line)).alias("_add"),
        F.when(~is_add, other).alias("_other"),
    )
    key = _key(table_root)
    actions = carried.select(
        "version", F.col("_add").alias("add"), F.col("_other").alias("remove"), key.alias("_key")
    )
    keyed = keyed_actions(actions, "_key", is_local=is_local)
    newest = newest_actions(newest_file_actions(keyed))
    return newest.select(F.coalesce("add.line", "remove.line").alias("line"))


def _key(table_root: str) -> Column:
    """Return the key of an action; null if it is not part of Action Reconciliation."""
    file = F.expr(canonical_path("coalesce(add.path, remove.path)", table_root=table_root))
    return F.coalesce(
        F.concat(F.lit("file "), file),
        F.concat(F.lit("txn "), "txn.appId"),
        F.concat(F.lit("domainMetadata "), "domainMetadata.domain"),
        F.when(F.col("protocol").isNotNull(), "protocol"),
        F.when(F.col("metaData").isNotNull(), "metaData"),
    )


def _checked_line() -> Column:
    kinds = [F.col(name).isNotNull().cast("int") for name in _KEYS.names]
    count = sum(kinds[1:], start=kinds[0])
    problem = F.concat(
        F.lit(f"[{MalformedLogFileError.error_class}] Version "),
        F.col("version").cast("string"),
        F.lit(" of the log contains a line with more than one action, which cannot be compacted."),
    )
    return F.when(count <= 1, F.col("line")).otherwise(F.raise_error(problem))
