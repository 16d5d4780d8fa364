"""Writes a checkpoint: staged by executors, verified, published, and only then pointed to.

::

    staging directory   executors write: sidecars, then the checkpoint's own file
    verify              what was written has as many live files as the version
    _sidecars/          new sidecars get their names; sidecars taken over are seen to be there
    _delta_log/         the checkpoint gets its name: from here on readers may use it
    _last_checkpoint    points to it, unless it points to a newer one already

References
----------
PROTOCOL.md#checkpoints, PROTOCOL.md#v2-spec
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.actions import Sidecar
from sparkdelta.base.protocol.arguments import checked_version
from sparkdelta.base.protocol.log_files import LogFileKind, Version, listing_prefix
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.library_sessions import compile_plans
from sparkdelta.base.spark.progress import progress as shown_progress
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import CheckpointMismatchError
from sparkdelta.operations.checkpoint.checkpoint_contents import CheckpointContents
from sparkdelta.operations.checkpoint.checkpoint_files import (
    StagedCheckpoint,
    stage_classic,
    stage_top_level,
    update_hint,
)
from sparkdelta.operations.checkpoint.checkpoint_options import (
    ADDS_PER_SIDECAR,
    CheckpointOptions,
    Layout,
)
from sparkdelta.operations.checkpoint.sidecar_files import (
    damaged_sidecars,
    delete_sidecars,
    publish_sidecars,
    stage_sidecars,
)
from sparkdelta.operations.checkpoint.sidecar_reuse import plan_reuse
from sparkdelta.operations.checkpoint.sidecar_reuse_rules import Reuse
from sparkdelta.table.checkpoint.checkpoint_kind_rules import (
    CLASSIC_NAME_INTERVAL,
    MAX_JSON_SIDECARS,
    CheckpointKind,
    checkpoint_kind,
    needs_classic_name,
)
from sparkdelta.table.definition.writable import open_writable
from sparkdelta.table.listing.listing import list_log_files, open_log_for_writing
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import Staging, staging

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCheckpoint(Result):
    """A checkpoint that was written, or that was there already.

    Attributes
    ----------
    kind
        `classic`, `v2-classic`, `v2-json` or `v2-parquet`.
    file
        The checkpoint's own file; None where none was written.
    num_actions, num_adds, num_removes
        In all of it; of them the live files and the tombstones.
    num_sidecars, num_reused_sidecars
        Its sidecars; of them the last checkpoint's that were reused.
    size_in_bytes, bytes_written
        Of its own file and all sidecars; of them what was written.
    """

    version: Version
    kind: str
    file: str | None = None
    num_actions: int = 0
    num_adds: int = 0
    num_removes: int = 0
    num_sidecars: int = 0
    num_reused_sidecars: int = 0
    size_in_bytes: int = 0
    bytes_written: int = 0
    seconds: float = 0.0

    @property
    def is_written(self) -> bool:
        """True if anything was written: an existing classic checkpoint is never replaced, and
        nothing is written if the last checkpoint is of this version and a new one would be no
        better.
        """
        return self.file is not None

    def as_dict(self) -> dict[str, object]:
        """Return the attributes by name, and `is_written`, as plain values for JSON."""
        return {"is_written": self.is_written, **asdict(self)}


class ReuseFailed(Exception):  # noqa: N818 - it never reaches the user
    """Sidecars to reuse are missing or do not add up: a full checkpoint must be written.

    Attributes
    ----------
    broken
        The files of the last checkpoint, where it lacks sidecars and cannot be read any more.
    """

    def __init__(self, problem: object, broken: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.broken = broken


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointer:
    """The writing of one checkpoint.

    Attributes
    ----------
    kind
        V2_JSON stands for V2 where the options ask for none: it has the classic name now and then,
        and is Parquet where it has very many sidecars.
    """

    contents: CheckpointContents
    kind: CheckpointKind

    def write(self) -> WrittenCheckpoint:
        """Write the checkpoint, unless an equivalent one exists.

        Raises
        ------
        CheckpointMismatchError
            The files written differ from the version; nothing was published.
        ReuseFailed
            A full checkpoint is to be written, of a snapshot that is loaded anew.
        """
        started = time.monotonic()
        if self.kind.has_classic_name and self._has_classic_name():
            return self._nothing()
        is_incremental = self.contents.options.incremental and self.kind.is_v2
        plan = plan_reuse(self.contents) if is_incremental else None
        if is_incremental and self._is_there(plan):
            return self._nothing()
        try:
            written = self._write(plan)
        except CheckpointMismatchError as error:
            if plan is None:
                raise
            raise ReuseFailed(error) from error
        except FileExistsError:  # another writer was first to the classic name
            return self._nothing()
        written = replace(written, seconds=round(time.monotonic() - started, 3))
        _LOGGER.info("Checkpoint of %s: %s", self.contents.snapshot.path, written)
        return written

    @property
    def _version(self) -> Version:
        return self.contents.snapshot.version

    def _nothing(self) -> WrittenCheckpoint:
        return WrittenCheckpoint(version=self._version, kind=self.kind.value)

    def _has_classic_name(self) -> bool:
        store = self.contents.snapshot.log.store
        return any(
            file.kind is LogFileKind.CLASSIC_CHECKPOINT and file.version == self._version
            for file in list_log_files(store, listing_prefix(self._version))
        )

    def _is_there(self, plan: Reuse | None) -> bool:
        """Return True if the last checkpoint is of this version and no worse than a new one."""
        log = self.contents.snapshot.log
        checkpoint = log.segment.checkpoint
        if self.contents.options.kind is not None:
            return False
        if checkpoint is None or checkpoint.version != self._version:
            return False
        if plan is None:  # without files there are no sidecars; V2 it is by its name
            return not log.sidecars and checkpoint.kind is LogFileKind.UUID_CHECKPOINT
        return len(plan.reused) == len(log.sidecars)

    def _write(self, plan: Reuse | None) -> WrittenCheckpoint:
        log = self.contents.snapshot.log
        with staging(log.spark, log.store) as stage:
            staged = (
                self._staged_v2(stage, plan)
                if self.kind.is_v2
                else stage_classic(stage, self.contents)
            )
            self._publish(stage, staged)
        update_hint(log.store, staged.hint(self._version))
        return self._outcome(staged)

    def _staged_v2(self, stage: Staging, plan: Reuse | None) -> StagedCheckpoint:
        sidecars = stage_sidecars(stage, self.contents, plan)
        kind = self._v2_kind(len(sidecars.all))
        return stage_top_level(stage, self.contents, kind, sidecars)

    def _publish(self, stage: Staging, staged: StagedCheckpoint) -> None:
        """Give all files their names, the checkpoint's own last.

        On failure the new sidecars are taken back where it is sure that no checkpoint names them.
        """
        store, sidecars = stage.store, staged.sidecars
        try:
            publish_sidecars(stage, sidecars.new)
            self._require(sidecars.reused)
        except BaseException:
            delete_sidecars(store, sidecars.new)
            raise
        # If the classic name is taken, then by another's checkpoint, or by this one if the answer
        # of the storage was lost. So the new sidecars stay; cleanup takes those that nobody names.
        staged.publish(stage)
        try:
            self._require(sidecars.reused)
        except ReuseFailed:
            store.delete([staged.name])
            delete_sidecars(store, sidecars.new)
            raise

    def _require(self, sidecars: Sequence[Sidecar]) -> None:
        """Raise if sidecars of the last checkpoint are missing or not of their full size."""
        log = self.contents.snapshot.log
        if sidecars and (damage := damaged_sidecars(log.store, sidecars)):
            assert log.segment.checkpoint is not None
            raise ReuseFailed(damage, [file.name for file in log.segment.checkpoint.files])

    def _v2_kind(self, num_sidecars: int) -> CheckpointKind:
        if self.contents.options.kind is not None:
            return self.kind
        first = max(0, self._version - CLASSIC_NAME_INTERVAL)
        files = list_log_files(self.contents.snapshot.log.store, listing_prefix(first))
        if needs_classic_name(files, self._version):
            return CheckpointKind.V2_CLASSIC
        has_few = num_sidecars <= MAX_JSON_SIDECARS
        return CheckpointKind.V2_JSON if has_few else CheckpointKind.V2_PARQUET

    def _outcome(self, staged: StagedCheckpoint) -> WrittenCheckpoint:
        return WrittenCheckpoint(
            version=self._version,
            kind=staged.kind.value,
            file=staged.name,
            num_actions=staged.num_actions,
            num_adds=staged.num_adds,
            num_removes=staged.num_removes,
            num_sidecars=len(staged.sidecars.all),
            num_reused_sidecars=len(staged.sidecars.reused),
            size_in_bytes=staged.size_in_bytes,
            bytes_written=staged.bytes_written,
        )


def write_checkpoint(
    spark: SparkSession,
    path: str,
    *,
    version: int | None = None,
    kind: str | None = None,
    layout: Layout = "clustered",
    incremental: bool = True,
    adds_per_sidecar: int = ADDS_PER_SIDECAR,
    compression: str = "snappy",
    progress: bool = True,
) -> WrittenCheckpoint:
    """Write the checkpoint of a version. Executors write it; the actions do not pass through the
    driver.

    Parameters
    ----------
    spark
        A classic or Spark Connect session.
    path
        The table's root.
    version
        The latest by default.
    kind
        ``classic``, or ``v2-json`` or ``v2-parquet`` with a UUID in the name, or ``v2-classic``.
        The default follows the table's ``delta.checkpointPolicy``; for V2 it is JSON, and one in a
        hundred versions has the classic name, so that old clients find it.
    layout
        ``clustered`` orders files by partition values and then by statistics, so that a condition
        on these reads only a few sidecars; ``hash`` distributes files by path.
    incremental
        True if a V2 checkpoint reuses the unchanged sidecars of the previous one.
    adds_per_sidecar
        Approximate number of files in a sidecar of a V2 checkpoint.
    compression
        A compression codec of Spark's Parquet writer.
    progress
        True to show a progress bar, see `read_delta`.

    Returns
    -------
    WrittenCheckpoint
        The written checkpoint. `is_written` is False if an equivalent checkpoint, or one that is
        never replaced, already exists.

    Raises
    ------
    DeltaError
        This engine cannot write the table or its storage, or the written files do not match the
        version (`CheckpointMismatchError`); nothing is published.

    Examples
    --------
    >>> write_checkpoint(spark, "/data/people").num_adds  # doctest: +SKIP
    3

    References
    ----------
    PROTOCOL.md#checkpoints
    """
    options = CheckpointOptions(
        kind=kind,
        layout=layout,
        incremental=incremental,
        adds_per_sidecar=adds_per_sidecar,
        compression=compression,
    )
    version = checked_version(version)
    store = open_log_for_writing(spark, path)
    with (
        jobs_of(store.table_root, version),
        engine_of(spark).log_session() as session,
        shown_progress(session, f"Checkpoint of {path}", is_on=progress),
    ):
        return checkpoint_table(session, path, options, version=version)


def checkpoint_table(
    session: SparkSession,
    path: str,
    options: CheckpointOptions | None = None,
    *,
    now_ms: int | None = None,
    version: Version | None = None,
    snapshot: Snapshot | None = None,
) -> WrittenCheckpoint:
    """Load a version and write its checkpoint.

    Parameters
    ----------
    session
        A `log_session`.
    now_ms
        The time in milliseconds since the epoch by which tombstones and transactions are expired;
        the current time by default.
    snapshot
        The version in that session, if it is loaded already.
    """
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    chosen = options or CheckpointOptions()
    if snapshot is not None:
        version = snapshot.version

    def written(
        options: CheckpointOptions, loaded: Snapshot | None, without: Sequence[str] = ()
    ) -> WrittenCheckpoint:
        table = loaded or open_writable(session, path, version=version, without=without)
        compile_plans(session, wanted=not table.log.is_small)
        contents = CheckpointContents.of(table, options, now_ms=now)
        kind = checkpoint_kind(options.kind, table.protocol, table.properties)
        return Checkpointer(contents=contents, kind=kind).write()

    try:
        return written(chosen, snapshot)
    except ReuseFailed as problem:
        _LOGGER.warning("A full checkpoint instead of an incremental one: %r", problem)
        return written(replace(chosen, incremental=False), None, problem.broken)
