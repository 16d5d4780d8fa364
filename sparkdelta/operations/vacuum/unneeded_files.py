"""The files of a table that no version within the retention period needs.

References
----------
PROTOCOL.md#data-files, PROTOCOL.md#deletion-vector-files, PROTOCOL.md#change-data-files
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.partition_values import escaped_name
from sparkdelta.base.protocol.results import FileCount
from sparkdelta.base.schema.action_schemas import FILE_REFERENCES, REMOVE
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.spark.driver import has_rows, read_rows
from sparkdelta.base.spark.local_data import empty_frame
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.exceptions import DeltaError, InvalidArgumentError, VersionsNotContiguousError
from sparkdelta.operations.vacuum.file_deletion_workers import linked_files
from sparkdelta.operations.vacuum.vacuum_outcome_frames import (
    LIVE,
    MAX_OUTCOMES,
    TO_RESOLVE,
    UNNEEDED,
    YOUNG,
    change_files,
    inventory_entries,
    needed_files,
    outcomes,
    relative_path,
    removed_files,
)
from sparkdelta.operations.vacuum.vacuum_rules import visible_paths
from sparkdelta.table.listing.listing import list_log_files
from sparkdelta.table.listing.log_segment_rules import commits_between, readable_commits
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.snapshot.directory_listing import list_directory
from sparkdelta.table.snapshot.file_listing_workers import FileLister
from sparkdelta.table.snapshot.snapshot import Snapshot, open_snapshot
from sparkdelta.table.snapshot.staging import Staging

_IS_CANDIDATE, _IS_LINKED = "__sparkdelta_candidate", "__sparkdelta_linked"
_NEEDED = StructType([StructField(name, StringType()) for name in ("path", "reason", "place")])
_INVENTORY: dict[str, str] = {
    "path": "string",
    "length": "bigint",
    "isDir": "boolean",
    "modificationTime": "bigint",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """The outcome of each file and directory, and their totals by outcome and `isDir`.

    Attributes
    ----------
    frame
        See `vacuum_outcome_frames.outcomes`; computed once.
    """

    frame: DataFrame
    totals: Mapping[tuple[str, bool], FileCount]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Files and directories that may be unneeded.

    Attributes
    ----------
    entries
        See `vacuum_outcome_frames.outcomes`.
    is_empty
        True if there are none, surely.
    are_few
        True if the table may have many times as many files.
    has_links
        True if there may be symbolic links, by which the log may name other files.
    missing_versions
        The first and last commits that the log lacks for a complete answer; None if it has
        them.
    """

    entries: DataFrame
    is_empty: bool = False
    are_few: bool = False
    has_links: bool = False
    missing_versions: tuple[Version, Version] | None = None


def from_listing(snapshot: Snapshot, stage: Staging) -> Candidates:
    """Return the files and directories below the table's root, see
    `directory_listing.list_directory`.

    Parameters
    ----------
    snapshot
        In the session of `stage`.
    """
    spark, root, options = stage.spark, snapshot.path, snapshot.log.options
    files, visible = worker_files(spark, root, options), _visible_paths(snapshot)
    lister = FileLister(files=files, root=root, visible=visible)
    rows = list_directory(lister, stage, options, by_workers=is_near_workers(snapshot))
    has_others = has_rows(
        rows.filter("isOther"), what="entry that is neither a file nor a directory"
    )
    entries = rows.filter("NOT isOther").drop("isOther")
    return Candidates(entries=entries, has_links=has_others)


def is_near_workers(snapshot: Snapshot) -> bool:
    """Return True if workers can list and delete the table's files without a JVM of their own."""
    return worker_files(snapshot.log.spark, snapshot.path, {}).is_near(snapshot.path)


def from_inventory(inventory: DataFrame, snapshot: Snapshot, stage: Staging) -> Candidates:
    """Return the files below the table's root that an inventory lists."""
    types = dict(inventory.dtypes)
    for name, wanted in _INVENTORY.items():
        if types.get(name) != wanted:
            found = f"is {types[name].upper()}" if name in types else "is missing"
            raise DeltaError.of(
                "DELTA_INVALID_INVENTORY_SCHEMA", problem=f"its column {name} {found}"
            )
    entries = inventory_entries(
        inventory.select(*_INVENTORY), table_root=snapshot.path, visible=_visible_paths(snapshot)
    )
    return Candidates(entries=stage.compute_once(entries, "entries"), has_links=True)


def from_log(
    snapshot: Snapshot, *, last: Version | None, end: Version | None, before_ms: int
) -> Candidates:
    """Return the files that commits removed, and their change data files.

    Where the log has no commits back to the last run, the tombstones of the earliest version that
    can be read stand for them; these are all only if it had none of that age dropped.

    Parameters
    ----------
    last
        The newest version whose removed files are deleted; None if no run has told.
    end
        The newest version before the retention period; None if there is none.
    before_ms
        The begin of the retention period.
    """
    log, root = snapshot.log, snapshot.path
    start = 0 if last is None else last + 1
    if end is None or start > end:
        nothing = removed_files(empty_frame(log.spark, REMOVE), table_root=root)
        return Candidates(entries=nothing, is_empty=True)
    files = list_log_files(log.store)
    readable = readable_commits(files, path=root)
    earliest = readable[0].version
    kept = [file for file in readable if file.version >= start]
    missing = None
    first = min((file.version for file in kept), default=end + 1)
    if first > start:
        first, missing = earliest + 1, (start, first - 1)
    commits = commits_between(files, first, max(first - 1, end), path=root)
    changes = CommitRange.read(log.reader, commits)
    removes = _removes(changes).select("remove.*")
    if missing is not None:
        then = open_snapshot(log.spark, root, version=earliest, store=log.store)
        removes = removes.unionByName(then.remove_files().select(removes.columns))
    old = removes.filter(f"coalesce(deletionTimestamp, 0) < {before_ms}L")
    written = changes.changes("cdc").filter("cdc.path IS NOT NULL").select("cdc.*")
    entries = removed_files(old, table_root=root).unionAll(change_files(written, table_root=root))
    are_few = log.checkpoint is not None  # else the same commits tell all files
    return Candidates(entries=entries, are_few=are_few, missing_versions=missing)


def removed_since(snapshot: Snapshot, version: Version | None) -> DataFrame:
    """Return the remove actions (remove STRUCT) of all commits after a version. Checkpoints may
    lack those that are older than the table's retention period.

    Raises
    ------
    InvalidArgumentError
        The log no longer has these commits.
    """
    log, start = snapshot.log, 0 if version is None else version + 1
    try:
        commits = commits_between(
            list_log_files(log.store), start, snapshot.version, path=snapshot.path
        )
    except VersionsNotContiguousError:
        problem = (
            "the log no longer tells which files were removed in that time; set "
            "delta.deletedFileRetentionDuration to keep removed files longer than now"
        )
        raise InvalidArgumentError(argument="retention_hours", problem=problem) from None
    return _removes(CommitRange.read(log.reader, commits)).select("remove")


def _removes(commits: CommitRange) -> DataFrame:
    """Return the rows with a remove action; other lines are not parsed."""
    fields = StructType([FILE_REFERENCES["remove"]])
    return commits.parsed(fields).filter("remove.path IS NOT NULL")


def decide(
    candidates: Candidates,
    actions: DataFrame,
    stage: Staging,
    *,
    root: str,
    before_ms: int,
) -> Decisions:
    """Decide for each file and directory whether it is needed, and give the reason if it is kept.

    Parameters
    ----------
    actions
        The live adds and the tombstones of the retention period, perhaps with older ones, as
        `TableState.file_references` gives them in the session of `stage`. The version must be
        loaded after the listing, so that a file that was listed and then added again is kept.
    """
    entries = candidates.entries
    if candidates.is_empty:
        needed = empty_frame(stage.spark, _NEEDED)
        return Decisions(frame=outcomes(entries, needed, before_ms=before_ms), totals={})
    local_root = root.removeprefix("file:") if root.startswith("file:") else None
    absolute = absolute_path("uri", table_root=root)
    is_elsewhere = f"path IS NULL AND startswith({absolute}, 'file:')"
    place = "NULL" if local_root is None else f"IF({is_elsewhere}, substring({absolute}, 6), NULL)"
    needed = (
        needed_files(actions, since_ms=before_ms)
        .selectExpr("*", f"{relative_path('uri', table_root=root)} AS path")
        .selectExpr("path", "reason", f"CAST({place} AS STRING) AS place")
        .filter("path IS NOT NULL OR place IS NOT NULL")
    )
    if candidates.are_few:  # then other files below the root are neither shuffled nor staged
        entries = stage.compute_once(entries, "entries")
        marks = entries.select("path", F.lit(True).alias(_IS_CANDIDATE))
        marked = needed.join(marks, "path", "left")
        needed = marked.filter(f"`{_IS_CANDIDATE}` OR place IS NOT NULL").select(*needed.columns)
    follows = local_root is not None and candidates.has_links
    frame = outcomes(entries, needed, before_ms=before_ms, root=local_root if follows else None)
    decisions = _staged(frame, "outcomes", stage)
    if local_root is None or (TO_RESOLVE, False) not in decisions.totals:
        return decisions
    places = decisions.frame.filter(F.col("outcome") == TO_RESOLVE)
    with worker_python(stage.spark):
        linked = linked_files(places, local_root)
    marks = linked.distinct().withColumn(_IS_LINKED, F.lit(True))
    others = decisions.frame.filter(F.col("outcome") != TO_RESOLVE)
    is_kept_for_link = F.col(_IS_LINKED) & F.col("outcome").isin(UNNEEDED, YOUNG)
    outcome = F.when(is_kept_for_link, LIVE).otherwise(F.col("outcome"))
    found = others.join(marks, "path", "left").withColumn("outcome", outcome).drop(_IS_LINKED)
    return _staged(found, "linked_outcomes", stage)


def _staged(frame: DataFrame, part: str, stage: Staging) -> Decisions:
    frame = stage.compute_once(frame, part)
    totals = grouped(
        frame,
        ["outcome", "isDir"],
        F.count("*").alias("n"),
        F.coalesce(F.sum("length"), F.lit(0)).alias("bytes"),
    )
    rows = read_rows(totals, what="files by outcome", bound=MAX_OUTCOMES)
    return Decisions(
        frame=frame,
        totals={(row["outcome"], row["isDir"]): FileCount(row["n"], row["bytes"]) for row in rows},
    )


def _visible_paths(snapshot: Snapshot) -> str:
    keys = snapshot.configuration.partition_keys
    names = {name for key, column in keys for name in (key, column.name)}
    names |= {escaped_name(name) for name in names}
    return visible_paths(sorted(names), snapshot.properties)
