"""The lines of a range of commits that a log compaction file keeps.

References
----------
PROTOCOL.md#log-compaction-files
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from sparkdelta.exceptions import MalformedLogFileError
from sparkdelta.frames.log.file_keys import canonical_path
from sparkdelta.frames.log.log_lines import parse_log_lines
from sparkdelta.frames.log.reconciliation import keyed_actions, newest_actions, newest_file_actions
from sparkdelta.schema.action_schemas import DELETION_VECTOR


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
"""What tells which actions speak of the same thing."""


def compacted_lines(lines: DataFrame, *, table_root: str, is_local: bool) -> DataFrame:
    """The lines whose actions are the newest of their range: Action Reconciliation of it alone.

    The state before the range is not known, so every remove stays, however old, and every
    `domainMetadata` with `removed=true`, and every transaction. What is no part of reconciliation,
    as commitInfo and cdc, goes. A line stays as it was written, with fields unknown here.

    Parameters
    ----------
    lines
        version LONG, line STRING.
    is_local
        Whether it is one partition already.

    Returns
    -------
    DataFrame
        line STRING, in no order; a line of more than one action fails the query.

    References
    ----------
    PROTOCOL.md#log-compaction-files, PROTOCOL.md#action-reconciliation
    """
    parsed = parse_log_lines(lines, actions=_KEYS, keep_line=True)
    # What is not an add is superseded by the next of its key, as a remove is.
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
    """Null for what is no part of Action Reconciliation."""
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
