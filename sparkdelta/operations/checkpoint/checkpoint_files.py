"""The top-level file of a checkpoint, written to a staging directory, and `_last_checkpoint`.

References
----------
PROTOCOL.md#v1-spec, PROTOCOL.md#v2-spec, PROTOCOL.md#checkpoint-metadata-tags,
PROTOCOL.md#last-checkpoint-file, PROTOCOL.md#last-checkpoint-file-schema
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from pyspark.sql import Column, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.base.protocol.log_files import (
    LAST_CHECKPOINT,
    LogFile,
    LogFileKind,
    Version,
    listing_prefix,
)
from sparkdelta.base.spark.driver import read_row, read_rows
from sparkdelta.base.storage.log_store import FileEntry, LogStore
from sparkdelta.operations.checkpoint.checkpoint_contents import CheckpointContents
from sparkdelta.operations.checkpoint.checkpoint_row_frames import checkpoint_rows
from sparkdelta.operations.checkpoint.sidecar_files import Sidecars, verify
from sparkdelta.table.checkpoint.checkpoint_footers import (
    count_actions,
    read_metadata,
    reads_footers,
)
from sparkdelta.table.checkpoint.checkpoint_kind_rules import CheckpointKind
from sparkdelta.table.checkpoint.checkpoint_layout_frames import in_one_file
from sparkdelta.table.checkpoint.sidecar_summary_frames import counted_type, counts
from sparkdelta.table.listing.last_checkpoint_rules import last_checkpoint_bytes
from sparkdelta.table.listing.listing import list_log_files, read_hint
from sparkdelta.table.listing.log_segment_rules import complete_checkpoints
from sparkdelta.table.snapshot.staging import Staging

MAX_EMBEDDED = 30
"""The most sidecars, and the most other actions, of a V2 checkpoint that the hint repeats."""

MAX_EMBEDDED_BYTES = 64 * 1024
"""The largest top-level file, in bytes, of a checkpoint whose actions the hint repeats."""

MAX_SCHEMA_CHARACTERS = 20_000
"""The most characters of a schema that the hint holds."""

_PART = "checkpoint"
_OPTIONAL = ("v2Checkpoint", "checkpointSchema")


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedCheckpoint:
    """A checkpoint that has no name in the log yet.

    Attributes
    ----------
    file
        In the staging directory.
    name
        That it will have.
    num_rows
        Of the file.
    num_adds, num_removes
        Of the checkpoint.
    more
        The fields of `_last_checkpoint` that only this kind has.
    """

    kind: CheckpointKind
    file: FileEntry
    name: str
    num_rows: int
    num_adds: int
    num_removes: int
    sidecars: Sidecars = field(default_factory=Sidecars)
    more: Mapping[str, object] = field(default_factory=dict)

    @property
    def num_actions(self) -> int:
        """The number of rows in the top-level file and all sidecars."""
        return self.num_rows + sum(self.sidecars.totals)

    @property
    def size_in_bytes(self) -> int:
        return self.file.size_bytes + sum(one.size_in_bytes for one in self.sidecars.all)

    @property
    def bytes_written(self) -> int:
        return self.size_in_bytes - sum(one.size_in_bytes for one in self.sidecars.reused)

    def publish(self, stage: Staging) -> None:
        """Give the top-level file its name in the log."""
        is_new_name = not self.kind.has_classic_name
        stage.publish(_PART, self.file.name, self.name, is_new_name=is_new_name)

    def hint(self, version: Version) -> dict[str, object]:
        """Return the contents of `_last_checkpoint` for this checkpoint."""
        return {
            "version": version,
            "size": self.num_actions,
            "sizeInBytes": self.size_in_bytes,
            "numOfAddFiles": self.num_adds,
            **self.more,
        }


def stage_classic(stage: Staging, contents: CheckpointContents) -> StagedCheckpoint:
    """Write all actions to one Parquet file."""
    state = contents.snapshot.state
    columns = contents.schema.classic_file
    frames = [contents.table_actions(columns), contents.adds(state)]
    if state.may_hold("remove"):
        frames.append(contents.removes(state))
    rows = checkpoint_rows(*frames, columns=columns)
    order = contents.order if contents.is_clustered else None
    rows = in_one_file(rows, order, is_small=state.log.is_small)
    given = Observation()
    rows = rows.observe(given, *counts())
    (file,) = stage.write_parquet(rows, _PART, contents.parquet_options)
    num_rows, num_adds, num_removes = _counts(stage, contents, file)
    verify(contents, contents.known_num_adds, given, num_adds, num_removes)
    return StagedCheckpoint(
        kind=CheckpointKind.CLASSIC,
        file=file,
        name=CheckpointKind.CLASSIC.file_name(contents.snapshot.version, ""),
        num_rows=num_rows,
        num_adds=num_adds,
        num_removes=num_removes,
        more=_schema(columns),
    )


def stage_top_level(
    stage: Staging,
    contents: CheckpointContents,
    kind: CheckpointKind,
    sidecars: Sidecars,
) -> StagedCheckpoint:
    """Write the file that names the sidecars and has all other actions."""
    version, columns = contents.snapshot.version, contents.schema.v2_file
    num_adds, num_removes = sidecars.totals
    tags = {
        "sidecarNumActions": str(num_adds + num_removes),
        "sidecarSizeInBytes": str(sum(one.size_in_bytes for one in sidecars.all)),
        "numOfAddFiles": str(num_adds),
        "sidecarFileSchema": contents.schema.sidecar_file.json(),
    }
    opening = [{"checkpointMetadata": {"version": version, "tags": tags}}]
    rows = contents.table_actions(
        columns, [*opening, *({"sidecar": one.to_dict()} for one in sidecars.all)]
    ).coalesce(1)
    given = Observation()
    rows = rows.observe(given, F.count("*").alias("num_rows"))
    if kind.is_json:
        (file,) = stage.write_lines(rows.select(_as_text(columns)), _PART)
    else:
        (file,) = stage.write_parquet(rows, _PART, {"compression": contents.options.compression})
    num_rows = given.get["num_rows"]
    name = kind.file_name(version, str(uuid4()))
    own = {"path": name, "sizeInBytes": file.size_bytes}
    modified = {"modificationTime": file.modification_time_ms}
    repeated = _repeated(stage, contents, file, num_rows, is_json=kind.is_json)
    return StagedCheckpoint(
        kind=kind,
        file=file,
        name=name,
        num_rows=num_rows,
        num_adds=num_adds,
        num_removes=num_removes,
        sidecars=sidecars,
        more={
            "v2Checkpoint": {**own, **modified, **repeated},
            **({} if kind.is_json else _schema(columns)),
        },
    )


def _repeated(
    stage: Staging, contents: CheckpointContents, file: FileEntry, num_rows: int, *, is_json: bool
) -> dict[str, object]:
    """Return the actions of a V2 checkpoint's top-level file that `_last_checkpoint` repeats."""
    if num_rows > 2 * MAX_EMBEDDED or file.size_bytes > MAX_EMBEDDED_BYTES:
        return {}
    if is_json:
        # Not by splitlines, which takes more for the end of a line than JSON does.
        return _embedded(stage.read(_PART, file.name).decode().rstrip("\n").split("\n"))
    columns = contents.schema.v2_file
    rows, _ = stage.read_parquet(_PART, columns)
    lines = read_rows(
        rows.select(_as_text(columns)),
        what="checkpoint actions repeated in _last_checkpoint",
        bound=num_rows,
        version=contents.snapshot.version,
    )
    return _embedded([line["value"] for line in lines])


def _embedded(lines: Sequence[str]) -> dict[str, object]:
    """Return the actions of a V2 checkpoint's top-level file as the hint repeats them; nothing if
    they are many.
    """
    actions = [json.loads(line) for line in lines]
    sidecars = [action["sidecar"] for action in actions if "sidecar" in action]
    others = [action for action in actions if "sidecar" not in action]
    if max(len(sidecars), len(others)) > MAX_EMBEDDED:
        return {}
    return {"nonFileActions": others, "sidecarFiles": sidecars}


def _as_text(columns: StructType) -> Column:
    """Return the column `value`: the action of a row, other than a file action, as JSON."""
    names = [name for name in columns.names if name not in ("add", "remove")]
    return F.to_json(F.struct(*names), {"ignoreNullFields": "true"}).alias("value")


def _schema(columns: StructType) -> dict[str, object]:
    """Return the field `checkpointSchema` of `_last_checkpoint`; nothing for a long schema."""
    text = columns.json()
    return {"checkpointSchema": json.loads(text)} if len(text) <= MAX_SCHEMA_CHARACTERS else {}


def _counts(stage: Staging, contents: CheckpointContents, file: FileEntry) -> tuple[int, int, int]:
    """Return the numbers of rows, adds and removes in a written file, by its footer if possible."""
    if reads_footers(stage.spark):
        name, kind = f"{stage.name}/{_PART}/{file.name}", LogFileKind.CLASSIC_CHECKPOINT
        written = LogFile(name, kind, contents.snapshot.version, file.size_bytes)
        footer = read_metadata(stage.store, written, written.version)
        known = count_actions(footer)
        if {"add", "remove"} <= known.keys():
            return footer.num_rows, known["add"], known["remove"]
    rows, _ = stage.read_parquet(_PART, counted_type())
    found = read_row(
        rows.coalesce(1).agg(*counts()),  # one file: nothing to bring together
        what="totals of a written checkpoint",
        version=contents.snapshot.version,
    )
    return found.num_rows, found.num_adds, found.num_removes


def update_hint(store: LogStore, document: Mapping[str, object]) -> None:
    """Point `_last_checkpoint` to a checkpoint, unless it points to a newer one that exists.

    Two writers that do this at once may leave the older of their hints: readers then list more.
    """
    version = document["version"]
    assert isinstance(version, int)
    known = read_hint(store)
    if known is not None and known > version and _is_there(store, known):
        return
    present = {name: value for name, value in document.items() if value is not None}
    store.overwrite(LAST_CHECKPOINT, last_checkpoint_bytes(present, optional=_OPTIONAL))


def _is_there(store: LogStore, version: Version) -> bool:
    files = list_log_files(store, listing_prefix(version))
    return version in complete_checkpoints(file for file in files if file.kind.is_checkpoint)
