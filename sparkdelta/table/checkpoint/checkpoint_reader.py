"""A checkpoint as DataFrames: its own files and its sidecars.

References
----------
PROTOCOL.md#checkpoint-metadata-tags
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.protocol.actions import Sidecar
from sparkdelta.base.protocol.column_names import stored_name_key
from sparkdelta.base.protocol.log_files import Version, sidecar_name
from sparkdelta.base.schema.action_schemas import ADD
from sparkdelta.base.skipping.data_skipping_frames import DataSkipping
from sparkdelta.base.spark.driver import read_row, read_rows
from sparkdelta.base.spark.local_data import arrow_frame
from sparkdelta.table.checkpoint.checkpoint_footers import (
    CheckpointFooters,
    RecentCheckpoints,
    read_footers,
    reads_footers,
)
from sparkdelta.table.checkpoint.sidecar_skipping_frames import SidecarSkipping
from sparkdelta.table.checkpoint.sidecar_summary_frames import counted_type, counts
from sparkdelta.table.checkpoint.sidecar_tag_rules import SidecarTags, may_hold, parse_sidecar_tags
from sparkdelta.table.listing.file_reader import LogFileReader
from sparkdelta.table.listing.line_reader import (
    is_searched_by_driver,
    lines_that_name,
    local_lines,
    read_lines,
    total_size,
)
from sparkdelta.table.listing.log_line_frames import may_name, parse_log_lines
from sparkdelta.table.listing.log_segment_rules import Checkpoint

SMALL_CHECKPOINT_BYTES = 1024 * 1024
"""Checkpoints of up to this many bytes, some ten thousand files, are read by one task: it is done
before several would have started."""

MAX_SIDECARS = 1_000_000
"""A checkpoint has at most this many sidecars: the driver holds the action of each."""

_recent_footers = RecentCheckpoints[CheckpointFooters](64)
_FEW_LINES = 1_000  # parsed anew by every filter, which is sooner done than a job


@dataclass(frozen=True, slots=True)
class CheckpointReader:
    """A reader of one checkpoint.

    Attributes
    ----------
    version
        The version that is reconstructed from it, for errors.
    sidecars
        Its sidecar files, by their names alone; without them, file actions are in the checkpoint's
        own files.
    sidecar_schema
        The columns of the sidecar files, if the checkpoint states them.
    chosen
        The sidecars whose file actions are read; None for all.
    """

    reader: LogFileReader
    checkpoint: Checkpoint
    version: Version
    sidecars: tuple[Sidecar, ...] = ()
    sidecar_schema: StructType | None = None
    chosen: tuple[Sidecar, ...] | None = None
    _add_type: list[StructType | None] = field(default_factory=list, repr=False)

    def matching(self, skipping: DataSkipping) -> CheckpointReader:
        """Return the checkpoint without the sidecars whose tags exclude a matching file.

        Sidecars of other writers have no such tags and stay. Costs no Spark job.
        """
        if not self.sidecars or self.chosen is not None:
            return self
        tags = {one.path: parse_sidecar_tags(one.tags) for one in self.sidecars}
        tagged = {name: one for name, one in tags.items() if one is not None and one.num_adds}
        if not tagged:
            return self
        table = pa.table(
            {
                "name": pa.array(list(tagged), pa.string()),
                "partition_values": pa.array([one.partition_values for one in tagged.values()]),
                "statistics": pa.array([one.statistics for one in tagged.values()]),
            }
        )
        matching = SidecarSkipping(skipping).keep(arrow_frame(self.reader.spark, table))
        if matching is None:
            return self
        rows = read_rows(
            matching, what="sidecars that may match", bound=len(tagged), version=self.version
        )
        names = {row["name"] for row in rows}
        chosen = (one for one in self.sidecars if one.path in names or tags[one.path] is None)
        return replace(self, chosen=tuple(chosen))

    @property
    def _read_sidecars(self) -> tuple[Sidecar, ...]:
        return self.sidecars if self.chosen is None else self.chosen

    @property
    def size_bytes(self) -> int:
        """The size of the checkpoint's own files and of the sidecars that are read."""
        sidecars = sum(sidecar.size_in_bytes for sidecar in self._read_sidecars)
        return total_size(self.checkpoint.files) + sidecars

    @property
    def tags(self) -> list[SidecarTags] | None:
        """The tags of the sidecars that are read; None unless all have sparkdelta's tags."""
        if not self.sidecars:
            return None
        tags = [parse_sidecar_tags(one.tags) for one in self._read_sidecars]
        parsed = [one for one in tags if one is not None]
        return parsed if len(parsed) == len(tags) else None

    def count_file_actions(self) -> tuple[int, int]:
        """Count the adds and the removes. Costs a Spark job unless tags count them."""
        tags = self.tags
        if tags is not None:
            return sum(one.num_adds for one in tags), sum(one.num_removes for one in tags)
        if self.sidecars:
            names = [sidecar_name(one.path) for one in self._read_sidecars]
            rows = self._parquet(names, counted_type())
        else:
            rows = self.actions(*counted_type().fields)
        row = read_row(rows.agg(*counts()), what="size of a checkpoint", version=self.version)
        # All that is no add: were one tombstone overlooked, all would be.
        return row["num_adds"], row["num_rows"] - row["num_adds"]

    def actions(self, *fields: StructField) -> DataFrame:
        """Return the action columns of the checkpoint's own files; a missing column is null."""
        schema = StructType(list(fields))
        if self.checkpoint.is_json:
            return self._json_actions(schema).drop("version")
        return self._parquet([file.name for file in self.checkpoint.files], schema)

    def searched_lines(self) -> pa.Table | None:
        """Return version LONG, line STRING of a JSON checkpoint; None if the driver does not search
        it, see `line_reader.DRIVER_SCAN_BYTES`.
        """
        files = self.checkpoint.files
        if not self.checkpoint.is_json or not is_searched_by_driver(files):
            return None
        return read_lines(self.reader.store, files)

    def _json_actions(self, fields: StructType) -> DataFrame:
        names, searched = fields.names, self.searched_lines()
        if searched is None:
            lines = self.reader.executor_lines(self.checkpoint.files)
            return parse_log_lines(lines.filter(may_name(*names)), actions=fields)
        table = lines_that_name(searched, *names)
        lines = local_lines(self.reader.spark, table)
        return parse_log_lines(lines, actions=fields, few=table.num_rows <= _FEW_LINES)

    def file_actions(self, field: StructField) -> DataFrame:
        """Return the fields of all `add` or `remove` actions, also in sidecars."""
        if self.sidecars:
            names = [
                sidecar_name(one.path)
                for one in self._read_sidecars
                if may_hold(one.tags, field.name)
            ]
            frame = self._parquet(names, StructType([field]))
        else:
            frame = self.actions(field)
        return frame.filter(f"{field.name}.path IS NOT NULL").select(f"{field.name}.*")

    def sidecar_keys(self, action: str, sidecars: Sequence[Sidecar]) -> DataFrame:
        """Return the keys of the adds or removes in some sidecars.

        path STRING, deletionVector STRUCT, file STRING: the sidecar's name.
        """
        key = StructType([ADD["path"], ADD["deletionVector"]])
        names = [sidecar_name(one.path) for one in sidecars]
        rows = self._parquet(names, StructType([StructField(action, key)]))
        file = rows.metadataColumn("_metadata")["file_name"] if names else F.lit("")
        present = rows.filter(F.col(f"{action}.path").isNotNull())
        return present.select(f"{action}.*", file.alias("file"))

    def checked_footers(self) -> CheckpointFooters | None:
        """Read and check the footers of the checkpoint's own files; return None for JSON.

        They cost no Spark job, except on Spark Connect. A damaged file is a StorageError.
        """
        store, checkpoint = self.reader.store, self.checkpoint
        if checkpoint.is_json:
            return None
        footers = _recent_footers.find(store, checkpoint)
        if footers is not None:
            return footers
        if reads_footers(self.reader.spark):
            footers = read_footers(store, checkpoint, self.version)
        else:
            names = [file.name for file in checkpoint.files]
            schema = self.reader.parquet_schema(*names, version=self.version)
            columns = frozenset(stored_name_key(name) for name in schema.names)
            footers = CheckpointFooters(tuple(columns for _ in names))
        footers.check(store, checkpoint)
        _recent_footers.keep(store, checkpoint, footers)
        return footers

    def num_adds_by_metadata(self) -> int | None:
        """Return the number of adds by tags or footers; None if these do not count them."""
        if self.sidecars:
            tags = self.tags
            return None if tags is None else sum(one.num_adds for one in tags)
        footers = self.checked_footers()
        return None if footers is None else footers.counts.get("add")

    def may_hold(self, action: str) -> bool:
        """Return False if the checkpoint surely holds no `remove`, `txn` or `domainMetadata`."""
        if self.sidecars and action == "remove":
            return any(may_hold(one.tags, action) for one in self._read_sidecars)
        footers = self._driver_footers()
        return footers is None or footers.counts.get(action) != 0

    def _driver_footers(self) -> CheckpointFooters | None:
        """Return the `checked_footers`; None if they would cost a job."""
        return self.checked_footers() if reads_footers(self.reader.spark) else None

    def stored_add_type(self) -> StructType | None:
        """Return the type of `add` in the checkpoint's Parquet files.

        If the checkpoint does not state it, one file's footer is read, by a Spark job the first
        time unless Spark wrote the file. None for a JSON checkpoint without sidecars.
        """
        if not self._add_type:
            schema = self.sidecar_schema if self.sidecars else None
            schema = self._read_schema() if schema is None else schema
            add = schema["add"].dataType if "add" in schema.names else None
            self._add_type.append(add if isinstance(add, StructType) else None)
        return self._add_type[0]

    def _read_schema(self) -> StructType:
        if self.sidecars:
            name = sidecar_name(self.sidecars[0].path)
        elif self.checkpoint.is_json:
            return StructType()
        else:
            footers = self._driver_footers()
            if footers is not None and footers.schema is not None:
                return footers.schema
            name = self.checkpoint.files[0].name
        return self.reader.parquet_schema(name, version=self.version)

    def _parquet(self, names: Sequence[str], schema: StructType) -> DataFrame:
        return self.reader.parquet(names, schema, version=self.version)
