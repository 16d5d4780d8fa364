"""The contents of a log segment as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sparkdelta.engine.driver import our_errors, read_rows
from sparkdelta.engine.file_readers import read_files
from sparkdelta.engine.job_names import named_jobs
from sparkdelta.engine.local_frames import empty_frame
from sparkdelta.exceptions import DataFileNotReadError
from sparkdelta.frames.checkpoint.sidecar_summaries import counted_type, counts
from sparkdelta.frames.log.log_lines import may_name, parse_log_lines
from sparkdelta.protocol.actions import Sidecar
from sparkdelta.protocol.log_files import SIDECAR_DIRECTORY, LogFile, LogFileKind, Version
from sparkdelta.protocol.log_segment import LogSegment
from sparkdelta.protocol.sidecar_tags import SidecarTags, may_hold, parse_sidecar_tags
from sparkdelta.schema.action_schemas import ADD, SIDECAR, actions
from sparkdelta.storage.log_store import LogStore, log_path
from sparkdelta.storage.parquet import PARQUET_OPTIONS, is_hidden
from sparkdelta.table.log.line_reader import (
    executor_lines,
    fits_the_driver,
    is_searched_by_driver,
    lines_of,
    lines_that_name,
    local_lines,
    read_lines,
    total_size,
)

BROADCAST_LOG_BYTES = 64 * 1024 * 1024
"""Up to this many bytes of commits after a checkpoint, their keys are broadcast to filter it."""

SMALL_CHECKPOINT_BYTES = 1024 * 1024
"""Up to this many bytes of a checkpoint, some ten thousand files, one task reads it sooner than
many are started."""

_FEW_LINES = 1_000  # parsed anew by every filter, which is sooner done than a job
_NOT_OF_FILES = frozenset({"protocol", "metaData", "txn", "domainMetadata"})


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads one log segment.

    Attributes
    ----------
    sidecars
        The sidecar files of the segment's checkpoint, by their names alone; file actions are there,
        or else in the checkpoint's own files.
    sidecar_schema
        The columns of the sidecar files, where the checkpoint says it.
    broken
        The files of newer checkpoints that cannot be read, and why not.
    chosen
        Those of the sidecars whose file actions are read; None for all.
    executor_lines
        version LONG, line STRING of `segment.deltas`, where executors read them.
    local_lines
        The same in the driver's memory; None where executors read them.
    """

    spark: SparkSession
    store: LogStore
    segment: LogSegment
    options: Mapping[str, str]
    executor_lines: DataFrame | None
    local_lines: pa.Table | None
    sidecars: tuple[Sidecar, ...] = ()
    sidecar_schema: StructType | None = None
    chosen: tuple[Sidecar, ...] | None = None
    broken: Mapping[str, str] = field(default_factory=dict)
    _stored_types: dict[str, StructType | None] = field(default_factory=dict, repr=False)
    _frames: dict[str, DataFrame] = field(default_factory=dict, repr=False)
    _found: list[pa.Table] = field(default_factory=list, repr=False)

    @classmethod
    def open(
        cls, spark: SparkSession, store: LogStore, segment: LogSegment, options: Mapping[str, str]
    ) -> LogReader:
        """Read the segment's commits, or arrange for the executors to do it."""
        if not fits_the_driver(segment.deltas):
            lines = executor_lines(spark, store, segment.deltas, options)
            return cls(spark, store, segment, options, lines, None)
        return cls(spark, store, segment, options, None, read_lines(store, segment.deltas))

    def extended(self, segment: LogSegment) -> LogReader:
        """The reader of a segment that has further commits on the same checkpoint; reads only
        them.
        """
        new = segment.deltas[len(self.segment.deltas) :]
        if self.local_lines is None or not fits_the_driver(segment.deltas):
            lines = executor_lines(self.spark, self.store, segment.deltas, self.options)
            return replace(
                self,
                segment=segment,
                executor_lines=lines,
                local_lines=None,
                _frames={},
                _found=[],
            )
        table = pa.concat_tables([self.local_lines, read_lines(self.store, new)])
        return replace(self, segment=segment, local_lines=table, _frames={}, _found=[])

    def in_session(self, spark: SparkSession) -> LogReader:
        """The same reader with its DataFrames in another session."""
        lines = self.executor_lines
        if lines is not None:
            lines = executor_lines(spark, self.store, self.segment.deltas, self.options)
        return replace(self, spark=spark, executor_lines=lines, _frames={})

    @property
    def commit_lines(self) -> DataFrame:
        """version LONG, line STRING of `segment.deltas`."""
        if self.local_lines is None:
            assert self.executor_lines is not None
            return self.executor_lines
        # Who appends to a table with a version checksum has no need of it.
        if "lines" not in self._frames:
            self._frames["lines"] = local_lines(self.spark, self.local_lines)
        return self._frames["lines"]

    def lines_of(self, commits: Sequence[LogFile]) -> DataFrame:
        """version LONG, line STRING of any commits of the log."""
        return lines_of(self.spark, self.store, commits, self.options)

    @property
    def has_commits(self) -> bool:
        return bool(self.segment.deltas)

    @property
    def is_local(self) -> bool:
        """Whether the commits are in the driver's memory."""
        return self.local_lines is not None

    @property
    def _read_sidecars(self) -> tuple[Sidecar, ...]:
        return self.sidecars if self.chosen is None else self.chosen

    @property
    def is_small(self) -> bool:
        """Whether the commits and the checkpoint are best read by one task."""
        checkpoint = self.segment.checkpoint
        own = total_size(checkpoint.files) if checkpoint is not None else 0
        stored = own + sum(sidecar.size_in_bytes for sidecar in self._read_sidecars)
        return self.is_local and stored <= SMALL_CHECKPOINT_BYTES

    @property
    def lacks_a_schema(self) -> bool:
        """Whether a metaData action at hand has no schema, as no version checksum may cover up."""
        if self.local_lines is None:
            return False
        lines = pc.match_substring_regex(self.local_lines["line"], r'"schemaString"\s*:\s*""')
        return bool(pc.any(lines).as_py())

    def may_hold(self, action: str) -> bool:
        """Whether a commit of the segment may hold an action of this kind."""
        lines = self._lines_with(action)
        return self.has_commits if lines is None else lines.num_rows > 0

    @property
    def broadcasts_keys(self) -> bool:
        """Whether the keys of the commits are known to be few enough to be sent to every
        executor.
        """
        return total_size(self.segment.deltas) <= BROADCAST_LOG_BYTES

    def table_actions(self) -> DataFrame:
        """version, protocol, metaData: the rows of the commits that hold one of the two.

        Costs no Spark job where the commits are small, see `log_text.DRIVER_SCAN_BYTES`.
        """
        names = ("protocol", "metaData")
        found = self._lines_with(*names)
        if found is None:
            lines = self.commit_lines.filter(may_name(*names))
        else:
            lines = local_lines(self.spark, found)
        rows = parse_log_lines(lines, actions=actions(*names), few=found is not None)
        return rows.filter("protocol IS NOT NULL OR metaData IS NOT NULL")

    @property
    def is_searched(self) -> bool:
        """Whether the driver finds what the commits say besides files."""
        return self.is_local or is_searched_by_driver(self.segment.deltas)

    def _lines_with(self, *names: str) -> pa.Table | None:
        """The lines of the commits that may hold an action of these kinds; None where the driver
        does not look for them.
        """
        if self.local_lines is not None:
            return lines_that_name(self.local_lines, *names)
        if not self.is_searched or not _NOT_OF_FILES.issuperset(names):
            return None
        if not self._found:
            lines = read_lines(self.store, self.segment.deltas)
            self._found.append(lines_that_name(lines, *sorted(_NOT_OF_FILES)))
        return lines_that_name(self._found[0], *names)

    def about_file_actions(self) -> tuple[int, int]:
        """About how many live files and tombstones replay gives: enough to lay them out, as exact
        as is to be had without replay. Costs a Spark job where the checkpoint does not tell, and
        one where the driver does not look through the commits.
        """
        adds, removes = self._stored_file_actions()
        new, gone = self._named_file_actions()
        return max(adds + new - gone, new), removes + gone

    def _named_file_actions(self) -> tuple[int, int]:
        """How many lines of the commits name an add, and how many a remove."""
        names = ("add", "remove")
        if self.is_searched:
            lines = self.local_lines
            if lines is None:
                lines = read_lines(self.store, self.segment.deltas)
            adds, removes = (lines_that_name(lines, name).num_rows for name in names)
        else:
            named = (F.count_if(F.expr(may_name(name))) for name in names)
            ((adds, removes),) = read_rows(
                self.commit_lines.agg(*named),
                what="size of the commits",
                bound=1,
                version=self.segment.version,
            )
        return adds, removes

    def _stored_file_actions(self) -> tuple[int, int]:
        """How many adds and removes there are in the checkpoint or its chosen sidecars."""
        if self.segment.checkpoint is None:
            return 0, 0
        tags = self._tags()
        if tags is not None:
            return sum(one.num_adds for one in tags), sum(one.num_removes for one in tags)
        if self.sidecars:
            names = [f"{SIDECAR_DIRECTORY}/{one.path}" for one in self._read_sidecars]
            rows = self._parquet(names, counted_type())
        else:
            rows = self.checkpoint_actions(*counted_type().fields)
        (row,) = read_rows(
            rows.agg(*counts()), what="size of a checkpoint", bound=1, version=self.segment.version
        )
        # All that is no add: were one tombstone overlooked, all would be.
        return row["num_adds"], row["num_rows"] - row["num_adds"]

    def totals_in_tags(self) -> tuple[int, int] | None:
        """The number of live files and their bytes, where the tags of all sidecars tell and no
        commit follows the checkpoint.
        """
        tags = None if self.has_commits else self._tags()
        if tags is None:
            return None
        sizes = [one.add_bytes for one in tags if one.add_bytes is not None]
        return (sum(one.num_adds for one in tags), sum(sizes)) if len(sizes) == len(tags) else None

    def _tags(self) -> list[SidecarTags] | None:
        """What the tags of the sidecars say; None where there are none, or one lacks ours."""
        if not self.sidecars:
            return None
        tags = [parse_sidecar_tags(one.tags) for one in self._read_sidecars]
        known = [one for one in tags if one is not None]
        return known if len(known) == len(tags) else None

    def commit_actions(self, *names: str, above: Version | None = None) -> DataFrame:
        """version LONG and the named actions of the commits above a version; a row per action, the
        others included where they are read all the same.
        """
        # Of one kind there are few lines or none, where Spark has nothing to do.
        found = self._lines_with(*names) if len(names) == 1 else None
        if found is not None:
            lines = local_lines(self.spark, found)
        elif _NOT_OF_FILES.issuperset(names):
            lines = self.commit_lines.filter(may_name(*names))
        else:
            lines = self.commit_lines
        if found is not None or self.is_local:
            # In one partition, what groups the actions by file needs no shuffle.
            lines = lines.coalesce(1)
        if above is not None:
            lines = lines.filter(F.col("version") > above)
        return parse_log_lines(lines, actions=actions(*names))

    def checkpoint_actions(self, *fields: StructField) -> DataFrame:
        """The given action columns of the checkpoint's own files; a missing column is null."""
        checkpoint = self.segment.checkpoint
        assert checkpoint is not None
        if checkpoint.is_json:
            return self._json_actions(checkpoint.files, StructType(list(fields))).drop("version")
        return self._parquet([file.name for file in checkpoint.files], StructType(list(fields)))

    def _json_actions(self, files: Sequence[LogFile], fields: StructType) -> DataFrame:
        names = fields.names
        if not is_searched_by_driver(files):
            lines = executor_lines(self.spark, self.store, files, self.options)
            return parse_log_lines(lines.filter(may_name(*names)), actions=fields)
        table = lines_that_name(read_lines(self.store, files), *names)
        lines = local_lines(self.spark, table)
        return parse_log_lines(lines, actions=fields, few=table.num_rows <= _FEW_LINES)

    def checkpoint_file_actions(self, field: StructField) -> DataFrame:
        """The fields of a file action (`add` or `remove`) in the checkpoint or its sidecars."""
        if self.sidecars:
            names = [
                f"{SIDECAR_DIRECTORY}/{sidecar.path}"
                for sidecar in self._read_sidecars
                if may_hold(sidecar.tags, field.name)
            ]
            frame = self._parquet(names, StructType([field]))
        else:
            frame = self.checkpoint_actions(field)
        return frame.filter(f"{field.name}.path IS NOT NULL").select(f"{field.name}.*")

    def sidecar_keys(self, action: str, sidecars: Sequence[Sidecar]) -> DataFrame:
        """path STRING, deletionVector STRUCT of the adds or removes in some sidecars, and file
        STRING: which one.
        """
        key = StructType([ADD["path"], ADD["deletionVector"]])
        names = [f"{SIDECAR_DIRECTORY}/{sidecar.path}" for sidecar in sidecars]
        rows = self._parquet(names, StructType([StructField(action, key)]))
        file = rows.metadataColumn("_metadata")["file_name"] if names else F.lit("")
        present = rows.filter(F.col(f"{action}.path").isNotNull())
        return present.select(f"{action}.*", file.alias("file"))

    def stored_add_type(self) -> StructType | None:
        """The type of `add` in the checkpoint's Parquet files.

        Where the checkpoint does not say it, one file's footer does, which starts a Spark job the
        first time. None for a JSON checkpoint without sidecars.

        References
        ----------
        PROTOCOL.md#checkpoint-metadata-tags
        """
        if "add" not in self._stored_types:
            schema = self.sidecar_schema if self.sidecars else None
            schema = self._read_stored_schema() if schema is None else schema
            add = schema["add"].dataType if "add" in schema.names else None
            self._stored_types["add"] = add if isinstance(add, StructType) else None
        return self._stored_types["add"]

    def _read_stored_schema(self) -> StructType:
        checkpoint = self.segment.checkpoint
        assert checkpoint is not None
        if self.sidecars:
            name = f"{SIDECAR_DIRECTORY}/{self.sidecars[0].path}"
        elif checkpoint.is_json:
            return StructType()
        else:
            name = checkpoint.files[0].name
        path = log_path(self.store.table_root, name)
        what, version = "schema of a checkpoint", self.segment.version
        with our_errors(version), named_jobs(self.spark, what, version=version):
            stored = self.spark.read.options(**self.options, **PARQUET_OPTIONS).parquet(path)
        return stored.schema

    def named_sidecars(self, checkpoints: Sequence[LogFile]) -> DataFrame:
        """path STRING of the sidecars that checkpoint files name; V1 checkpoints name none."""
        fields = StructType([StructField("sidecar", SIDECAR)])
        texts = [file for file in checkpoints if file.extension == "json"]
        names = [
            file.name
            for file in checkpoints
            if file.extension != "json" and file.kind is not LogFileKind.MULTI_PART_CHECKPOINT
        ]
        rows = parse_log_lines(self.lines_of(texts), actions=fields).select("sidecar")
        if names:
            rows = rows.unionByName(self._parquet(names, fields))
        return rows.filter(F.col("sidecar.path").isNotNull()).select("sidecar.path")

    def _parquet(self, names: Sequence[str], schema: StructType) -> DataFrame:
        if not names:
            return empty_frame(self.spark, schema)
        paths = [log_path(self.store.table_root, name) for name in names]
        hidden = [path for path in paths if is_hidden(path)]
        if hidden:
            raise DataFileNotReadError(files=hidden, version=self.segment.version)
        options = {**self.options, **PARQUET_OPTIONS}
        with our_errors(self.segment.version):
            return read_files(self.spark, "parquet", paths, options=options, schema=schema)
