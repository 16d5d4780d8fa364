"""Sidecar files: written by executors, summed up in their tags, then given their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from sparkdelta.exceptions import CheckpointMismatchError
from sparkdelta.frames.checkpoint_layout import by_deletion, hashed
from sparkdelta.frames.checkpoint_rows import checkpoint_rows
from sparkdelta.frames.sidecar_summaries import sidecar_summaries, summarized_type
from sparkdelta.protocol.actions import Sidecar
from sparkdelta.protocol.log_files import SIDECAR_DIRECTORY
from sparkdelta.protocol.sidecar_reuse import Reuse
from sparkdelta.protocol.sidecar_tags import SidecarTags
from sparkdelta.storage.log_store import FileEntry, LogStore
from sparkdelta.table.checkpoint_contents import CheckpointContents
from sparkdelta.table.driver import read_rows
from sparkdelta.table.staging import Staging
from sparkdelta.table.state import TableState

ROW_GROUP_BYTES = 4 * 1024 * 1024
"""Of clustered sidecars, in memory: some 25,000 files each, which a pushed predicate skips."""

_MAX_SIDECARS = 1_000_000


@dataclass(frozen=True, slots=True)
class StagedSidecar:
    """A sidecar file that has no name in the log yet.

    Attributes
    ----------
    part, file
        Where it is in the staging directory.
    """

    part: str
    file: str
    sidecar: Sidecar
    num_adds: int
    num_removes: int


@dataclass(frozen=True, slots=True)
class Sidecars:
    """The sidecars of a new checkpoint.

    Attributes
    ----------
    kept
        Those of the last checkpoint.
    kept_totals
        Their live files and their tombstones.
    """

    kept: tuple[Sidecar, ...] = ()
    kept_totals: tuple[int, int] = (0, 0)
    new: tuple[StagedSidecar, ...] = ()

    @property
    def all(self) -> tuple[Sidecar, ...]:
        return (*self.kept, *(one.sidecar for one in self.new))

    @property
    def totals(self) -> tuple[int, int]:
        """Live files and tombstones."""
        adds, removes = self.kept_totals
        return (
            adds + sum(one.num_adds for one in self.new),
            removes + sum(one.num_removes for one in self.new),
        )


def stage_sidecars(
    stage: Staging, contents: CheckpointContents, reuse: Reuse | None, compression: str
) -> Sidecars:
    """Write what replay gives, but for sidecars that are taken over, to new ones.

    Raises
    ------
    CheckpointMismatchError
        The live files are not as many as the version has.
    """
    state, known = contents.snapshot.state, contents.known_num_adds
    kept = Sidecars()
    if reuse is not None:
        state = state.with_sidecars(reuse.rewritten)
        kept = Sidecars(reuse.kept, (reuse.num_adds, reuse.num_removes))
        known = None if known is None else known - reuse.num_adds
    num_adds, num_removes = counted(contents, state, known)
    written = []
    if num_adds:
        written += _write_adds(stage, contents, state, num_adds, compression)
    if num_removes:
        written += _write_removes(stage, contents, state, num_removes, compression)
    new = _summed_up(stage, contents, written)
    verify(contents, num_adds, sum(one.num_adds for one in new))
    verify(contents, num_removes, sum(one.num_removes for one in new))
    return replace(kept, new=tuple(new))


def counted(
    contents: CheckpointContents, state: TableState, known_num_adds: int | None
) -> tuple[int, int]:
    """How many live files and tombstones are to be written.

    Parameters
    ----------
    known_num_adds
        By the version checksum; adds are counted where it does not tell, or tells that there are
        none.
    """
    has_adds = known_num_adds is not None and known_num_adds > 0
    sizes = contents.sizes(state, num_adds=known_num_adds if has_adds else None)
    version = contents.snapshot.version
    (row,) = read_rows(sizes, what="size of a checkpoint", bound=1, version=version)
    if known_num_adds is not None:
        verify(contents, known_num_adds, row["num_adds"])
    return row["num_adds"], row["num_removes"]


def verify(contents: CheckpointContents, expected: int, found: int) -> None:
    """Refuse to publish what is not the version."""
    if expected != found:
        snapshot = contents.snapshot
        raise CheckpointMismatchError(
            path=snapshot.path, version=snapshot.version, expected=expected, found=found
        )


def _write_adds(
    stage: Staging, contents: CheckpointContents, state: TableState, count: int, compression: str
) -> list[tuple[str, FileEntry]]:
    files, options = _files(count, contents.adds_per_sidecar), {"compression": compression}
    rows = contents.adds(state)
    if contents.layout == "hash":
        rows = hashed(rows, files)
    else:
        rows = contents.order.clustered(rows, files)
        options["parquet.block.size"] = str(ROW_GROUP_BYTES)
    rows = checkpoint_rows(rows, columns=contents.schema.sidecar_file)
    return [("adds", file) for file in stage.write_parquet(rows, "adds", options)]


def _write_removes(
    stage: Staging, contents: CheckpointContents, state: TableState, count: int, compression: str
) -> list[tuple[str, FileEntry]]:
    rows = by_deletion(contents.removes(state), _files(count, contents.removes_per_sidecar))
    rows = checkpoint_rows(rows, columns=contents.schema.sidecar_file)
    options = {"compression": compression}
    return [("removes", file) for file in stage.write_parquet(rows, "removes", options)]


def _files(rows: int, per_file: int) -> int:
    return max(1, -(-rows // per_file))


def _summed_up(
    stage: Staging, contents: CheckpointContents, written: Sequence[tuple[str, FileEntry]]
) -> list[StagedSidecar]:
    if not written:
        return []
    parts = list(dict.fromkeys(part for part, _ in written))
    rows, file_name = stage.read_parquet(parts, summarized_type(contents.order))
    summaries = read_rows(
        sidecar_summaries(rows, file_name, contents.order),
        what="what was written to sidecars",
        bound=_MAX_SIDECARS,
        version=contents.snapshot.version,
    )
    facts = {row["file"]: row for row in summaries}
    staged = []
    for part, file in written:
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
        )
        sidecar = Sidecar(
            f"{uuid4()}.parquet", file.size_bytes, file.modification_time_ms, tags.as_tags()
        )
        staged.append(StagedSidecar(part, file.name, sidecar, row["num_adds"], row["num_removes"]))
    return staged


def publish_sidecars(stage: Staging, staged: Sequence[StagedSidecar]) -> None:
    """Give the files their names."""
    for one in staged:
        stage.publish(one.part, one.file, _name(one.sidecar))


def delete_sidecars(store: LogStore, staged: Sequence[StagedSidecar]) -> None:
    """Take back what no checkpoint names."""
    store.delete([_name(one.sidecar) for one in staged])


def missing_sidecars(store: LogStore, sidecars: Sequence[Sidecar]) -> list[str]:
    """The names of those that are not there in their full size."""
    found = {entry.name: entry.size_bytes for entry in store.list_directory(SIDECAR_DIRECTORY)}
    return [one.path for one in sidecars if found.get(one.path) != one.size_in_bytes]


def _name(sidecar: Sidecar) -> str:
    return f"{SIDECAR_DIRECTORY}/{sidecar.path}"
