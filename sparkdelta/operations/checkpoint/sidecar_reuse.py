"""Finds the sidecars that commits have touched, by tags and then by key columns alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from sparkdelta.base.protocol.actions import Sidecar
from sparkdelta.base.protocol.log_files import listing_prefix
from sparkdelta.base.schema.partition_value_frames import (
    is_invalid_partition_value,
    partition_value,
    partition_value_or_null,
)
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.schema.statistics_frames import parsed_statistics
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.operations.checkpoint.checkpoint_contents import (
    REMOVES_PER_SIDECAR,
    CheckpointContents,
)
from sparkdelta.operations.checkpoint.sidecar_reuse_rules import KnownSidecars, Reuse
from sparkdelta.table.checkpoint.checkpoint_layout_frames import FileOrder, value_ranges_type
from sparkdelta.table.checkpoint.sidecar_tag_rules import parse_sidecar_tags
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.log.reconciliation_frames import (
    newest_adds,
    newest_file_actions,
    superseding_keys,
    surviving_actions,
)

_NOT_WORTH_A_LOOK = 2
"""Up to this many sidecars of a small checkpoint (one of adds and one of removes) are rewritten
without looking up which ones commits have touched: the rewrite takes less time."""


def plan_reuse(contents: CheckpointContents) -> Reuse | None:
    """Return the sidecars that a new checkpoint reuses; None where a full one is to be written."""
    log = contents.snapshot.log
    if not log.sidecars or log.broken or not _is_newest(contents):
        return None
    if log.has_commits and log.is_small and len(log.sidecars) <= _NOT_WORTH_A_LOOK:
        return None
    known = KnownSidecars.of(
        log.sidecars, fingerprint=contents.fingerprint, expired_at_ms=contents.expired_at_ms
    )
    touched, more_live = _touched(contents, known) if log.has_commits else (set(), 0)
    return known.reuse(
        touched,
        adds_per_sidecar=contents.options.adds_per_sidecar,
        removes_per_sidecar=REMOVES_PER_SIDECAR,
        more_live=more_live,
    )


def _is_newest(contents: CheckpointContents) -> bool:
    """Return True if no checkpoint is newer: the sidecars of an older one may be about to be
    deleted.
    """
    version = contents.snapshot.version
    later = list_log_files(contents.snapshot.log.store, listing_prefix(version + 1))
    return not any(file.kind.is_checkpoint for file in later)


def _touched(contents: CheckpointContents, known: KnownSidecars) -> tuple[set[str], int]:
    """Return the names of the sidecars with actions that later commits supersede, and the change in
    the number of live files since the checkpoint.
    """
    log, checkpoint = contents.snapshot.log, contents.snapshot.log.checkpoint
    assert checkpoint is not None
    keyed = contents.snapshot.state.keyed_commits
    near = _near(contents, known.adds, keyed) if known.adds else set()
    candidates = {"add": [one for one in known.adds if one.path in near], "remove": known.removes}
    keys = superseding_keys(keyed)
    added = newest_adds(newest_file_actions(keyed)).selectExpr("'' AS file", "1L AS more_live")
    changes = [
        surviving_actions(
            checkpoint.sidecar_keys(action, sidecars),
            keys,
            are_adds=action == "add",
            table_root=log.table_root,
            broadcast_keys=log.commits.broadcasts_keys,
            join="left_semi",
        ).selectExpr("file", f"{-1 if action == 'add' else 0}L AS more_live")
        for action, sidecars in candidates.items()
        if sidecars
    ]
    found = grouped(reduce(DataFrame.unionAll, changes, added), ["file"], F.sum("more_live"))
    rows = _read(contents, found)
    return {file for file, _ in rows if file}, sum(more_live for _, more_live in rows)


def _near(contents: CheckpointContents, adds: Sequence[Sidecar], keyed: DataFrame) -> set[str]:
    """Return the names of the sidecars whose ranges include a file action of the commits."""
    tags = [parse_sidecar_tags(one.tags) for one in adds]
    ranges = [None if one is None else one.partition_values for one in tags]
    table = pa.table(
        {
            "name": pa.array([one.path for one in adds], pa.string()),
            "partition_values": pa.array(ranges, pa.string()),
        }
    )
    sidecars = arrow_frame(contents.snapshot.log.spark, table)
    rows = _read(contents, sidecars_in_range(sidecars, keyed, contents.order))
    return {row["name"] for row in rows}


def _read(contents: CheckpointContents, by_sidecar: DataFrame) -> list[Row]:
    return read_rows(
        by_sidecar,
        what="sidecars that commits may touch",
        bound=len(contents.snapshot.log.sidecars) + 1,
        version=contents.snapshot.version,
    )


def sidecars_in_range(sidecars: DataFrame, keyed: DataFrame, order: FileOrder) -> DataFrame:
    """Return the sidecars (name STRING) whose ranges include the partition values of an action.

    A file action may belong to any sidecar if a partition value is missing or is not of its type.

    Parameters
    ----------
    sidecars
        name STRING, partition_values STRING (the tag).
    keyed
        The file actions, from `reconciliation.keyed_file_actions`.
    """
    keys = order.ranged_partition_keys
    if not keys:
        return sidecars.select("name")
    values = "coalesce(add.partitionValues, remove.partitionValues)"
    has_keys = [f"map_contains_key({values}, {text_literal(key)})" for key, _ in keys]
    texts = [(partition_value(values, key), field) for key, field in keys]
    zone = order.time_zone
    wrong = (is_invalid_partition_value(text, field, time_zone=zone) for text, field in texts)
    are_values = [f"NOT coalesce({is_wrong}, FALSE)" for is_wrong in wrong]
    typed = (partition_value_or_null(text, field, time_zone=zone) for text, field in texts)
    values_of_actions = keyed.selectExpr(
        f"coalesce({' AND '.join([*has_keys, *are_values])}, FALSE) AS is_complete",
        *(f"{value} AS value_{number}" for number, value in enumerate(typed)),
    ).distinct()
    ranges = parsed_statistics("partition_values", statistics=value_ranges_type(keys))
    ranged = sidecars.selectExpr("name", f"{ranges} AS ranges")
    inside = (_inside(f"value_{number}", quoted(key)) for number, (key, _) in enumerate(keys))
    condition = F.expr(f"NOT is_complete OR ({' AND '.join(inside)})")
    return values_of_actions.join(F.broadcast(ranged), condition, "inner").select("name").distinct()


def _inside(value: str, key: str) -> str:
    """Return SQL that is true if a value may be in the ranges of a sidecar; so it is by default."""
    nulls = f"ranges.nullCount.{key}"
    in_range = (
        f"coalesce({nulls} < ranges.numRecords, TRUE) "
        f"AND coalesce(ranges.minValues.{key} <= {value}, TRUE) "
        f"AND coalesce({value} <= ranges.maxValues.{key}, TRUE)"
    )
    has_nulls = f"coalesce({nulls} > 0, TRUE)"
    return f"CASE WHEN {value} IS NULL THEN {has_nulls} ELSE {in_range} END"
