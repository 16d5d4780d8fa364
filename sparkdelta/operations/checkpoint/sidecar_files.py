"""Sidecar files: written by executors, summed up in their tags, then given their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from pyspark.sql import DataFrame, Observation

from sparkdelta.base.protocol.actions import Sidecar
from sparkdelta.base.protocol.log_files import SIDECAR_DIRECTORY, sidecar_name
from sparkdelta.base.spark.driver import read_row, read_rows
from sparkdelta.base.spark.row_range_frames import SAMPLES_PER_RANGE, RowRanges, range_bounds
from sparkdelta.base.storage.log_store import FileEntry, LogStore
from sparkdelta.exceptions import CheckpointMismatchError
from sparkdelta.operations.checkpoint.checkpoint_contents import (
    REMOVES_PER_SIDECAR,
    CheckpointContents,
)
from sparkdelta.operations.checkpoint.checkpoint_row_frames import checkpoint_rows
from sparkdelta.operations.checkpoint.sidecar_reuse_rules import Reuse
from sparkdelta.table.checkpoint.checkpoint_layout_frames import by_deletion, hashed
from sparkdelta.table.checkpoint.checkpoint_reader import MAX_SIDECARS, SMALL_CHECKPOINT_BYTES
from sparkdelta.table.checkpoint.sidecar_summary_frames import (
    counts,
    sidecar_summaries,
    summarized_type,
)
from sparkdelta.table.checkpoint.sidecar_tag_rules import SidecarTags
from sparkdelta.table.log.state import TableState
from sparkdelta.table.snapshot.staging import Staging

_PART = "sidecars"


@dataclass(frozen=True, slots=True)
class StagedSidecar:
    """A sidecar file that has no name in the log yet.

    Attributes
    ----------
    file
        Its name in the staging directory.
    """

    file: str
    sidecar: Sidecar
    num_adds: int
    num_removes: int


@dataclass(frozen=True, slots=True)
class Sidecars:
    """The sidecars of a new checkpoint.

    Attributes
    ----------
    reused
        Sidecars of the last checkpoint.
    reused_totals
        Their live files and their tombstones.
    """

    reused: tuple[Sidecar, ...] = ()
    reused_totals: tuple[int, int] = (0, 0)
    new: tuple[StagedSidecar, ...] = ()

    @property
    def all(self) -> tuple[Sidecar, ...]:
        return (*self.reused, *(one.sidecar for one in self.new))

    @property
    def totals(self) -> tuple[int, int]:
        """The numbers of live files and tombstones."""
        adds, removes = self.reused_totals
        return (
            adds + sum(one.num_adds for one in self.new),
            removes + sum(one.num_removes for one in self.new),
        )


def stage_sidecars(stage: Staging, contents: CheckpointContents, reuse: Reuse | None) -> Sidecars:
    """Write the live files and tombstones that no reused sidecar holds to new sidecars.

    Raises
    ------
    CheckpointMismatchError
        The live files are not as many as the version has.
    """
    state, known = contents.snapshot.state, contents.known_num_adds
    reused = Sidecars()
    if reuse is not None:
        state = state.with_sidecars(reuse.rewritten)
        reused = Sidecars(reuse.reused, (reuse.num_adds, reuse.num_removes))
        known = reuse.num_live if known is None else known
        known = None if known is None else known - reuse.num_adds
    num_adds, num_removes = state.log.estimate_file_actions()
    rows = _adds(contents, state, num_adds if known is None else known)
    if num_removes:
        files = _files(num_removes, REMOVES_PER_SIDECAR)
        rows = checkpoint_rows(
            rows,
            by_deletion(contents.removes(state), files),
            columns=contents.schema.sidecar_file,
        )
    given = Observation()
    rows = rows.observe(given, *counts())
    written = stage.write_parquet(rows, _PART, contents.parquet_options)
    new = _summed_up(stage, contents, written)
    found = sum(one.num_adds for one in new), sum(one.num_removes for one in new)
    verify(contents, known, given, *found)
    return replace(reused, new=tuple(new))


def verify(
    contents: CheckpointContents,
    known_num_adds: int | None,
    given: Observation,
    num_adds: int,
    num_removes: int,
) -> None:
    """Refuse to publish a checkpoint that differs from its version.

    Parameters
    ----------
    known_num_adds
        By the version checksum, or what the last checkpoint's tags and the commits give; None where
        neither has it.
    given
        The `counts` of what replay gave, taken as it was written.
    num_adds, num_removes
        The number of actions in the files.
    """
    replayed = given.get
    for what, wanted, found in (
        ("live files", known_num_adds, num_adds),
        ("live files", replayed["num_adds"], num_adds),
        ("tombstones", replayed["num_removes"], num_removes),
    ):
        if wanted not in (None, found):
            snapshot = contents.snapshot
            raise CheckpointMismatchError(
                path=snapshot.path,
                version=snapshot.version,
                what=what,
                expected=wanted,
                found=found,
            )


def _adds(contents: CheckpointContents, state: TableState, count: int) -> DataFrame:
    """Return the rows of the live files, a partition for each sidecar."""
    rows, files = contents.adds(state), _files(count, contents.options.adds_per_sidecar)
    laid_out = hashed(rows, files)
    if contents.is_clustered:
        ranges = _ranges(contents, state, files, count) if files > 1 else None
        laid_out = contents.order.clustered(rows, ranges)
    return checkpoint_rows(laid_out, columns=contents.schema.sidecar_file)


def _ranges(contents: CheckpointContents, state: TableState, files: int, count: int) -> RowRanges:
    """Return the ranges of keys, one for each file, from a sample."""
    order, fraction = contents.order, min(1.0, files * SAMPLES_PER_RANGE / count)
    bounds = read_row(
        range_bounds(order.sampled_keys(*state.sampled_adds(fraction, order.leading)), files),
        what="ranges of new sidecars",
        version=contents.snapshot.version,
    )
    return RowRanges.of(bounds)


def _files(rows: int, per_file: int) -> int:
    return max(1, -(-rows // per_file))


def _summed_up(
    stage: Staging, contents: CheckpointContents, written: Sequence[FileEntry]
) -> list[StagedSidecar]:
    if not written:
        return []
    rows, file_name = stage.read_parquet(_PART, summarized_type(contents.order))
    if sum(file.size_bytes for file in written) <= SMALL_CHECKPOINT_BYTES:
        rows = rows.coalesce(1)
    summaries = read_rows(
        sidecar_summaries(rows, file_name, contents.order),
        what="totals of written sidecars",
        bound=MAX_SIDECARS,
        version=contents.snapshot.version,
    )
    facts = {row["file"]: row for row in summaries}
    staged = []
    for file in written:
        if file.name not in facts:  # a partition without rows leaves a file without rows
            continue
        row = facts[file.name]
        tags = SidecarTags(
            num_adds=row["num_adds"],
            num_removes=row["num_removes"],
            fingerprint=contents.fingerprint,
            partition_values=row["partition_values"] or "{}",
            statistics=row["statistics"] or "{}",
            first_deletion=row["first_deletion"],
            last_deletion=row["last_deletion"],
            add_bytes=row["add_bytes"],
        )
        sidecar = Sidecar(
            f"{uuid4()}.parquet", file.size_bytes, file.modification_time_ms, tags.as_tags()
        )
        staged.append(StagedSidecar(file.name, sidecar, row["num_adds"], row["num_removes"]))
    return staged


def publish_sidecars(stage: Staging, staged: Sequence[StagedSidecar]) -> None:
    """Give new sidecars their names in the log."""
    for one in staged:
        stage.publish(_PART, one.file, sidecar_name(one.sidecar.path), is_new_name=True)


def delete_sidecars(store: LogStore, staged: Sequence[StagedSidecar]) -> None:
    """Delete new sidecars that no checkpoint names."""
    store.delete([sidecar_name(one.sidecar.path) for one in staged])


def damaged_sidecars(store: LogStore, sidecars: Sequence[Sidecar]) -> dict[str, str]:
    """Return the problems of sidecars that are missing or not of their full size, by names in the
    log.
    """
    found = {entry.name: entry.size_bytes for entry in store.list_directory(SIDECAR_DIRECTORY)}
    return {
        sidecar_name(one.path): _damage(found.get(one.path), one.size_in_bytes)
        for one in sidecars
        if found.get(one.path) != one.size_in_bytes
    }


def _damage(size: int | None, expected: int) -> str:
    return "is missing" if size is None else f"has {size} bytes instead of {expected}"
